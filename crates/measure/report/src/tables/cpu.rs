//! CPU time, and what it bought.

use super::{Labels, mean, ratio_cell, reason_cell, rows};
use crate::format::{Scale, counted};
use crate::layout::{Protocol, Run, Set};
use crate::table::{Cell, Table};
use stats::{CpuResult, Estimate, Metric};

/// CPU by role and payload bits per CPU-second of every cell of a set.
pub(crate) fn cpu(run: &Run<'_>, set: &Set<'_>) -> Table {
    let bulk = set.protocol != Protocol::Ping;
    let ratio = bulk && set.compared_with().is_some();
    let mut table = Labels::of(set)
        .head(Table::new(
            format!("CPU by role, {}", set.protocol.name()),
            note(run, set, bulk),
        ))
        .figure("A")
        .figure("B")
        .figure("Device")
        .figure("Kernel")
        .figure("Busy");
    if bulk {
        table = table.figure("Per CPU-second").figure("Device's");
    }
    if ratio {
        table = table.figure("Ratio");
    }
    for (point, cell) in rows(set) {
        let mut cells = Labels::of(set).cells(point, cell);
        match &cell.cpu {
            Some(cpu) => {
                cells.extend(roles(cpu).map(role_cell));
                if bulk {
                    let machine = cpu.payload_bits_per_cpu_s.as_ref();
                    let machine = machine.map(|found| Scale::si(found.mean, "bit").estimate(found));
                    let device = cpu.payload_bits_per_dut_cpu_s.as_ref();
                    let device = device.map(|found| mean(found, "bit"));
                    cells.extend([machine, device].map(Cell::or_missing));
                }
            }
            None => {
                cells.push(reason_cell(cell));
                cells.extend((1..if bulk { 7 } else { 5 }).map(|_| Cell::missing()));
            }
        }
        if ratio {
            cells.push(ratio_cell(run, cell, Metric::PayloadBitsPerCpuSecond));
        }
        table.push(cells);
    }
    table
}

fn note(run: &Run<'_>, set: &Set<'_>, bulk: bool) -> String {
    let cores = run.cpus().map_or_else(String::new, |cpus| {
        format!(" of {}", counted(cpus.into(), "core"))
    });
    let bits = match (bulk, set.compared_with()) {
        (false, _) => String::new(),
        (true, None) => format!("; {PER_CPU_SECOND}"),
        (true, Some(baseline)) => {
            format!("; {PER_CPU_SECOND}; ratio: the former by that of {baseline}")
        }
    };
    let common = &set.common;
    format!(
        "{common}; cores kept busy{cores}, mean of the repeats; A and B: the stations; kernel: \
         softirq, kernel threads and the tester itself{bits}"
    )
}

const PER_CPU_SECOND: &str =
    "payload received per CPU-second of the whole machine, and of the device's processes alone";

/// Stations, device, kernel and all of it, as tables of CPU by role have them.
pub(crate) const fn roles(cpu: &CpuResult) -> [Option<&Estimate>; 5] {
    [
        Some(&cpu.station_a_cores),
        Some(&cpu.station_b_cores),
        cpu.dut_cores.as_ref(),
        Some(&cpu.kernel_cores),
        Some(&cpu.busy_cores),
    ]
}

/// Cores kept busy, where that is known.
pub(crate) fn role_cell(role: Option<&Estimate>) -> Cell {
    role.map_or_else(
        || Cell::plain("unknown".to_owned()),
        |role| Cell::plain(format!("{:.2}", role.mean)),
    )
}

//! CPU time by role, and payload per CPU-second.

use super::{cell_table, mean, without_figure};
use crate::format::{Scale, counted};
use crate::layout::{Protocol, Run, Set};
use crate::table::{Cell, Table, joined};
use stats::{CpuResult, Estimate, Metric};

/// CPU by role and payload bits per CPU-second, for every cell of these sets.
pub(crate) fn cpu(run: &Run<'_>, sets: &[Set<'_>]) -> Vec<Table> {
    let tables = sets.iter().map(|set| of(run, set));
    let settings = Set::settings(sets).into_iter();
    joined("CPU by role", settings.zip(tables).collect())
}

fn of(run: &Run<'_>, set: &Set<'_>) -> Table {
    let bulk = set.protocol != Protocol::Ping;
    let caption = format!("CPU by role, {}", set.protocol.name());
    let table = Table::new(caption, note(run, set, bulk));
    let titles = [
        "A",
        "B",
        "Device",
        "Kernel",
        "Busy",
        "Per CPU-second",
        "Device's",
    ];
    let titles = &titles[..if bulk { 7 } else { 5 }];
    let metric = bulk.then_some(Metric::PayloadBitsPerCpuSecond);
    cell_table(run, set, table, titles, metric, |cell| {
        let Some(cpu) = &cell.cpu else {
            return without_figure(cell, titles.len());
        };
        let mut cells: Vec<Cell> = roles(cpu).map(role_cell).into();
        if bulk {
            let machine = cpu.payload_bits_per_cpu_s.as_ref();
            let machine = machine.map(|found| Scale::si(found.mean, "bit").estimate(found));
            let device = cpu.payload_bits_per_dut_cpu_s.as_ref();
            let device = device.map(|found| mean(found, "bit"));
            cells.extend([machine, device].map(Cell::or_missing));
        }
        cells
    })
}

fn note(run: &Run<'_>, set: &Set<'_>, bulk: bool) -> String {
    let cores = run
        .cpus()
        .map_or_else(String::new, |cpus| format!(" of {}", counted(cpus, "core")));
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

/// Stations, device, kernel and their sum, in the order of the tables of CPU by role.
pub(crate) const fn roles(cpu: &CpuResult) -> [Option<&Estimate>; 5] {
    [
        Some(&cpu.station_a_cores),
        Some(&cpu.station_b_cores),
        cpu.dut_cores.as_ref(),
        Some(&cpu.kernel_cores),
        Some(&cpu.busy_cores),
    ]
}

/// Busy cores, if known.
pub(crate) fn role_cell(role: Option<&Estimate>) -> Cell {
    role.map_or_else(
        || Cell::plain("unknown".to_owned()),
        |role| Cell::plain(format!("{:.2}", role.mean)),
    )
}

//! CPU time by role, and cycles per packet.

mod chart;
pub(crate) mod columns;
mod cycles;

use super::frames::{self, caption, fill, head};
use crate::kit::cells::{cell_table, joined_sets, mean, without_figure};
use crate::kit::fact::{Fact, Subject};
use crate::kit::format::{Scale, bits_per_cpu_s, capitalized, counted};
use crate::kit::ratios;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::frames::FrameSet;
use crate::layout::{Protocol, Run, Set};
use cycles::cycles;
use plan::Measurement;
use stats::{CellResult, CpuResult, Estimate, Metric};

// The CPU time of crypto devices is in the section about their speed.
pub(super) const SECTION: Section = Section::annex("cpu", "CPU", |run, out| {
    for (index, set) in run.sets().iter().enumerate() {
        let title = format!("{}, {}", capitalized(set.protocol.name()), set.common);
        out.chart(title, reading(run, set), || {
            chart::draw(run, set, &format!("cpu-{index}"))
        });
    }
    for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Ping] {
        let sets = run.sets_of(protocol);
        out.tables(joined_sets("CPU by role", &sets, |set| of(run, set)));
        for set in &sets {
            out.tables(cycles(run, set));
        }
    }
    let sets = run.frame_sets();
    out.tables(frames::joined("CPU by role", &sets, |set| {
        Some(of_frames(run, set))
    }));
    out.tables(frames::joined("Cycles per packet", &sets, |set| {
        cycles::of_frames(run, set)
    }));
});

fn reading(run: &Run<'_>, set: &Set<'_>) -> String {
    let cores = run.cpus().map_or_else(String::new, |cpus| {
        format!(" The machine has {}.", counted(cpus, "core"))
    });
    match set.protocol {
        Protocol::Ping => format!("Cores kept busy, by role.{cores}"),
        Protocol::Tcp | Protocol::Udp => format!(
            "Left: cores kept busy, by role.{cores} Right: payload received per CPU-second of the \
             whole machine."
        ),
    }
}

/// CPU by role and payload bits per CPU-second, for every cell of a set.
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
    // The last two titles need a payload, which ping lacks.
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
const fn roles(cpu: &CpuResult) -> [Option<&Estimate>; 5] {
    [
        Some(&cpu.station_a_cores),
        Some(&cpu.station_b_cores),
        cpu.dut_cores.as_ref(),
        Some(&cpu.kernel_cores),
        Some(&cpu.busy_cores),
    ]
}

/// Busy cores, if known.
fn role_cell(role: Option<&Estimate>) -> Cell {
    role.map_or_else(
        // Only the device's time can be unknown: it may run on other machines.
        || Cell::plain("unknown".to_owned()),
        |role| Cell::plain(format!("{:.2}", role.mean)),
    )
}

/// Busy cores by role, in the trials with recorded evidence.
fn of_frames(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let cores = run
        .cpus()
        .map_or_else(String::new, |cpus| format!(" of {}", counted(cpus, "core")));
    let note = format!(
        "{}; cores kept busy{cores}, mean of the repeats, in the trials whose evidence is recorded; \
         A and B: the stations; kernel: softirq, kernel threads and the tester itself",
        set.common
    );
    let title = format!("CPU by role, {}", set.kind.title().to_lowercase());
    let table = head(set, Table::new(caption(set, &title), note))
        .figures(["A", "B", "Device", "Kernel", "Busy"]);
    fill(table, run, set, |cell| {
        Some(roles(cell.cpu.as_ref()?).map(role_cell))
    })
}

/// The efficiency of a device.
pub(super) fn facts(of: &Subject<'_>) -> Vec<Fact> {
    efficiency(of.run, of.device).into_iter().collect()
}

/// TCP payload per CPU-second of the whole machine, relative to the baseline.
fn efficiency(run: &Run<'_>, device: &str) -> Option<Fact> {
    let cells = || {
        run.results
            .cells
            .iter()
            .filter(|cell| cell.dut == device && is_tcp(run, cell))
    };
    // By the time of the whole machine, as a device in the kernel has no processes to count.
    let found = ratios::of(run, cells(), Metric::PayloadBitsPerCpuSecond)?;
    let best = cells()
        .filter_map(|cell| cell.cpu.as_ref()?.payload_bits_per_cpu_s.as_ref())
        .max_by(|a, b| a.mean.total_cmp(&b.mean))?;
    let detail = format!("at most {} of the whole machine", bits_per_cpu_s(best));
    Some(found.fact("TCP payload per CPU-second".into(), detail))
}

fn is_tcp(run: &Run<'_>, cell: &CellResult) -> bool {
    run.planned(cell)
        .is_some_and(|planned| matches!(planned.measurement, Measurement::Tcp { .. }))
}

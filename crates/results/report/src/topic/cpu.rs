//! CPU time by role, and cycles per packet.

mod chart;
pub(crate) mod columns;

use super::frames::{self, caption, fill, head};
use crate::kit::cells::{cell_table, joined_sets, mean, without_figure};
use crate::kit::fact::{Fact, Subject};
use crate::kit::format::{Scale, bits_per_cpu_s, capitalized, counted};
use crate::kit::ratios;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::frames::FrameSet;
use crate::layout::{Protocol, Run, Set};
use plan::Measurement;
use stats::{CellResult, CpuResult, Estimate, Metric, PerPacket};

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
        cycles_of_frames(run, set)
    }));
});

fn reading(run: &Run<'_>, set: &Set<'_>) -> String {
    let cores = run.measuring_cpus().map_or_else(String::new, |cpus| {
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
        // The reason, or dashes if the cell has other figures.
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
    let bits = match (bulk, set.compared_with()) {
        (false, _) => String::new(),
        (true, None) => format!("; {PER_CPU_SECOND}"),
        (true, Some(baseline)) => {
            format!("; {PER_CPU_SECOND}; ratio: the former by that of {baseline}")
        }
    };
    roles_note(run, &set.common, "mean of the repeats") + &bits
}

/// How to read columns of roles; `of` says what their figures are of.
fn roles_note(run: &Run<'_>, common: &str, of: &str) -> String {
    let cores = run
        .measuring_cpus()
        .map(|cpus| format!(" of {}", counted(cpus, "core")));
    let cores = cores.unwrap_or_default();
    format!(
        "{common}; cores kept busy{cores}, {of}; A and B: the stations; kernel: softirq, kernel threads and the \
         tester itself"
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
    let of = "mean of the repeats, in the trials whose evidence is recorded";
    let note = roles_note(run, &set.common, of);
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
    // The ratio is of all settings, and the rate is the best of them.
    let best = cells()
        .filter_map(|cell| cell.cpu.as_ref()?.payload_bits_per_cpu_s.as_ref())
        .max_by(|a, b| a.mean.total_cmp(&b.mean))?;
    let detail = format!("at most {} of the whole machine", bits_per_cpu_s(best));
    Some(found.fact("TCP payload per CPU-second".into(), String::new(), detail))
}

fn is_tcp(run: &Run<'_>, cell: &CellResult) -> bool {
    run.planned(cell)
        .is_some_and(|planned| matches!(planned.measurement, Measurement::Tcp { .. }))
}

/// Titles of the columns.
const CYCLES: [&str; 6] = [
    "Cycles, all",
    "Less A, B",
    "Device's",
    "Instr., all",
    "Less A, B",
    "Device's",
];

/// Cycles and instructions per datagram of a set; `None` without any.
fn cycles(run: &Run<'_>, set: &Set<'_>) -> Option<Table> {
    let mut cells = set.points.iter().flat_map(|point| &point.cells);
    // TCP has no cycles per packet: its segments pass the links joined, so nothing counts packets.
    cells.any(|cell| cell.packet_cost.is_some()).then(|| {
        let caption = format!("Cycles per packet, {}", set.protocol.name());
        let table = Table::new(caption, cycles_note(&set.common, "datagram"));
        cell_table(run, set, table, &CYCLES, None, |cell| {
            cycle_cells(cell).map_or_else(|| without_figure(cell, CYCLES.len()), Vec::from)
        })
    })
}

/// The figures of a cell below [`CYCLES`].
fn cycle_cells(cell: &CellResult) -> Option<[Cell; 6]> {
    let cost = cell.packet_cost.as_ref()?;
    let [all, beside, device] = per_packet(&cost.cycles);
    let [all_instructions, beside_instructions, device_instructions] =
        per_packet(&cost.instructions);
    Some([
        all,
        beside,
        device,
        all_instructions,
        beside_instructions,
        device_instructions,
    ])
}

fn per_packet(found: &PerPacket) -> [Cell; 3] {
    let mean = |one: &Estimate| Scale::plain().number(one.mean);
    [
        Cell::plain(mean(&found.machine)),
        Cell::plain(Scale::plain().estimate(&found.beside_stations)),
        Cell::or_missing(found.dut.as_ref().map(mean)),
    ]
}

/// How to read a table of a set; `packet` names its packets.
fn cycles_note(common: &str, packet: &str) -> String {
    format!(
        "{common}; for one {packet} received, by the processor's counters, user mode and kernel; all: \
         the whole machine; less A, B: without the stations' tools, so device and kernel; device's: \
         its processes alone, on both gateways; mean of the repeats"
    )
}

/// Cycles and instructions per frame, in the same trials; `None` without any.
fn cycles_of_frames(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let mut cells = set.rows().map(|(_, cell)| cell);
    cells.any(|cell| cell.packet_cost.is_some()).then(|| {
        let title = format!("Cycles per frame, {}", set.kind.title().to_lowercase());
        let note = cycles_note(&set.common, "frame");
        let table = head(set, Table::new(caption(set, &title), note));
        fill(table.figures(CYCLES), run, set, cycle_cells)
    })
}

//! Cycles and instructions per packet, if the processor's counters were available.

use crate::kit::cells::{cell_table, without_figure};
use crate::kit::format::Scale;
use crate::kit::table::{Cell, Table};
use crate::layout::frames::FrameSet;
use crate::layout::{Run, Set};
use crate::topic::frames::{caption, fill, head};
use stats::{CellResult, Estimate, PerPacket};

/// Titles of the columns.
const TITLES: [&str; 6] = [
    "Cycles, all",
    "Less A, B",
    "Device's",
    "Instr., all",
    "Less A, B",
    "Device's",
];

/// Cycles and instructions per datagram of a set; `None` without any.
pub(super) fn cycles(run: &Run<'_>, set: &Set<'_>) -> Option<Table> {
    let mut cells = set.points.iter().flat_map(|point| &point.cells);
    // TCP has no cycles per packet: its segments pass the links joined, so nothing counts packets.
    cells.any(|cell| cell.packet_cost.is_some()).then(|| {
        let caption = format!("Cycles per packet, {}", set.protocol.name());
        let table = Table::new(caption, note(&set.common, "datagram"));
        cell_table(run, set, table, &TITLES, None, |cell| {
            figures(cell).map_or_else(|| without_figure(cell, TITLES.len()), Vec::from)
        })
    })
}

/// The figures of a cell below [`TITLES`].
fn figures(cell: &CellResult) -> Option<[Cell; 6]> {
    let cost = cell.packet_cost.as_ref()?;
    let [all, beside, device] = columns(&cost.cycles);
    let [all_instructions, beside_instructions, device_instructions] = columns(&cost.instructions);
    Some([
        all,
        beside,
        device,
        all_instructions,
        beside_instructions,
        device_instructions,
    ])
}

fn columns(per_packet: &PerPacket) -> [Cell; 3] {
    let mean = |found: &Estimate| Scale::plain().number(found.mean);
    [
        Cell::plain(mean(&per_packet.machine)),
        Cell::plain(Scale::plain().estimate(&per_packet.beside_stations)),
        Cell::or_missing(per_packet.dut.as_ref().map(mean)),
    ]
}

/// How to read a table of a set; `packet` names its packets.
fn note(common: &str, packet: &str) -> String {
    format!(
        "{common}; for one {packet} received, by the processor's counters, user mode and kernel; all: \
         the whole machine; less A, B: without the stations' tools, so device and kernel; device's: \
         its processes alone, on both gateways; mean of the repeats"
    )
}

/// Cycles and instructions per frame, in the same trials; `None` without any.
pub(super) fn of_frames(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let mut cells = set.rows().map(|(_, cell)| cell);
    cells.any(|cell| cell.packet_cost.is_some()).then(|| {
        let title = format!("Cycles per frame, {}", set.kind.title().to_lowercase());
        let note = note(&set.common, "frame");
        let table = head(set, Table::new(caption(set, &title), note));
        fill(table.figures(TITLES), run, set, figures)
    })
}

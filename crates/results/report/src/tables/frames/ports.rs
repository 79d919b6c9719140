//! The tester's ports, frame mixes, CPU time and cycles.

use super::{fill, head};
use crate::format::counted;
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::order::grouped;
use crate::table::{Cell, Table};
use crate::tables::cpu::{role_cell, roles};
use crate::tables::cycles as per_packet;
use stats::PortUsed;

/// How the stations sent and received, one row per path; `None` without frame tests.
pub(crate) fn ports(run: &Run<'_>) -> Option<Table> {
    let note = "the fastest that works is taken unless the campaign says otherwise";
    let mut table = Table::new("Ports of the tester", note)
        .labels(["End", "Port"])
        .figure("Threads")
        .text("Crypto")
        .figure("Cells")
        .text("Why none faster");
    for (end, port) in [
        ("sender", sender as fn(&stats::FrameFigures) -> &PortUsed),
        ("receiver", |found| &found.receiver),
    ] {
        let found = run.results.cells.iter().filter_map(|cell| cell.frames());
        let different = grouped(found.map(|found| (port(found), ())));
        for (used, cells) in different {
            let why = if used.passed_over.is_empty() {
                "–".to_owned()
            } else {
                used.passed_over.join("; ")
            };
            let mut port = used.ports.join(", ");
            if !used.xdp_modes.is_empty() {
                port = format!("{port} ({})", used.xdp_modes.join("; "));
            }
            table.push(vec![
                Cell::label(end),
                Cell::label(port),
                Cell::plain(used.threads.to_string()),
                Cell::or_missing(used.engine.clone()),
                Cell::plain(cells.len().to_string()),
                Cell::plain(why),
            ]);
        }
    }
    table.with_rows()
}

fn sender(found: &stats::FrameFigures) -> &PortUsed {
    &found.sender
}

/// Composition of each mix; `None` if every test uses a fixed frame size.
pub(crate) fn mixes(run: &Run<'_>) -> Option<Table> {
    let note = "sizes include the FCS; numbers are of frames";
    let mut table = Table::new("Mixes of frame sizes", note)
        .label("Mix")
        .text("Genome")
        .figure("Mean size");
    let traffic = run.results.cells.iter().filter_map(|cell| cell.traffic());
    let mixes = traffic.filter(|traffic| traffic.frame_bytes.is_none());
    for (genome, alike) in grouped(mixes.map(|traffic| (&traffic.genome, traffic))) {
        table.push(vec![
            Cell::label(&alike[0].mix),
            Cell::plain(genome),
            Cell::plain(format!("{:.1} B", alike[0].mean_frame_bytes)),
        ]);
    }
    table.with_rows()
}

/// Busy cores by role, in the trials with recorded evidence.
pub(crate) fn cpu(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let cores = run
        .cpus()
        .map_or_else(String::new, |cpus| format!(" of {}", counted(cpus, "core")));
    let note = format!(
        "{}; cores kept busy{cores}, mean of the repeats, in the trials whose evidence is recorded; \
         A and B: the stations; kernel: softirq, kernel threads and the tester itself",
        set.common
    );
    let title = format!("CPU by role, {}", set.kind.name().to_lowercase());
    let table = head(set, Table::new(super::caption(set, &title), note))
        .figures(["A", "B", "Device", "Kernel", "Busy"]);
    fill(table, run, set, |cell| {
        Some(roles(cell.cpu.as_ref()?).map(role_cell))
    })
}

/// Cycles and instructions per frame, in the same trials; `None` without any.
pub(crate) fn cycles(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let mut cells = set.rows().map(|(_, cell)| cell);
    cells.any(|cell| cell.packet_cost.is_some()).then(|| {
        let title = format!("Cycles per frame, {}", set.kind.name().to_lowercase());
        let note = per_packet::note(&set.common, "frame");
        let table = head(set, Table::new(super::caption(set, &title), note));
        fill(
            table.figures(per_packet::TITLES),
            run,
            set,
            per_packet::figures,
        )
    })
}

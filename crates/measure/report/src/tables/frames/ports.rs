//! What the tester was made of: ports, mixes, and the CPU time of it all.

use super::{head, labels, without_figure};
use crate::format::counted;
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::table::{Cell, Table};
use crate::tables::cpu::{role_cell, roles};
use stats::PortUsed;

/// How the stations sent and received, a row per different way; `None` without frame tests.
pub(crate) fn ports(run: &Run<'_>) -> Option<Table> {
    let note = "the fastest that works is taken unless the campaign says otherwise";
    let mut table = Table::new("Ports of the tester", note)
        .label("End")
        .label("Port")
        .figure("Threads")
        .text("Crypto")
        .figure("Cells")
        .text("Why none faster");
    for (end, port) in [
        ("sender", sender as fn(&stats::FrameFigures) -> &PortUsed),
        ("receiver", |found| &found.receiver),
    ] {
        let mut different: Vec<(&PortUsed, u64)> = Vec::new();
        for found in run.results.cells.iter().filter_map(|cell| cell.frames()) {
            let used = port(found);
            match different.iter_mut().find(|(known, _)| *known == used) {
                Some((_, cells)) => *cells += 1,
                None => different.push((used, 1)),
            }
        }
        for (used, cells) in different {
            let why = match used.passed_over.is_empty() {
                true => "–".to_owned(),
                false => used.passed_over.join("; "),
            };
            table.push(vec![
                Cell::label(end),
                Cell::label(used.ports.join(", ")),
                Cell::plain(used.threads.to_string()),
                Cell::or_missing(used.engine.clone()),
                Cell::plain(cells.to_string()),
                Cell::plain(why),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn sender(found: &stats::FrameFigures) -> &PortUsed {
    &found.sender
}

/// What each mix is made of; `None` when all frames of a test are of one size.
pub(crate) fn mixes(run: &Run<'_>) -> Option<Table> {
    let note = "sizes include the FCS; numbers are of frames";
    let mut table = Table::new("Mixes of frame sizes", note)
        .label("Mix")
        .text("Genome")
        .figure("Mean size");
    let mut told: Vec<&str> = Vec::new();
    for traffic in run.results.cells.iter().filter_map(|cell| cell.traffic()) {
        if traffic.frame_bytes.is_none() && !told.contains(&traffic.genome.as_str()) {
            told.push(&traffic.genome);
            table.push(vec![
                Cell::label(&traffic.mix),
                Cell::plain(&traffic.genome),
                Cell::plain(format!("{:.1} B", traffic.mean_frame_bytes)),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Cores kept busy, by role, in the trials whose evidence is recorded.
pub(crate) fn cpu(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let cores = run.cpus().map_or_else(String::new, |cpus| {
        format!(" of {}", counted(cpus.into(), "core"))
    });
    let note = format!(
        "{}; cores kept busy{cores}, mean of the repeats, in the trials whose evidence is recorded; \
         A and B: the stations; kernel: softirq, kernel threads and the tester itself",
        set.common
    );
    let title = format!("CPU by role, {}", set.kind.name().to_lowercase());
    let mut table = head(set, Table::new(super::caption(set, &title), note))
        .figure("A")
        .figure("B")
        .figure("Device")
        .figure("Kernel")
        .figure("Busy");
    for (point, cell) in set.rows() {
        let mut cells = labels(run, set, point, cell);
        match &cell.cpu {
            Some(cpu) => {
                cells.extend(roles(cpu).map(role_cell));
            }
            None => cells.extend(without_figure(cell, 5)),
        }
        table.push(cells);
    }
    table
}

//! Keys renewed under a load.

use super::without_figure;
use super::{
    Table, caption, fill, head, kept, labels, load_cells, longest, mean_count, mean_time, most, of,
};
use crate::format::Scale;
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::table::Cell;
use stats::RekeyResult;

/// What a rekey costs.
pub(super) fn rekeys(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; took: until the device said that it was done; lost: frames from one rekey to the next; gap: from a \
         rekey to its last loss; all three over the rekeys of all repeats; kept: forwarding rate by that of the \
         same load without rekeys",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figure("Rekeys")
        .figure("Asked, 1/s")
        .figure("Reached, 1/s")
        .figure("Took")
        .figure("Lost, mean")
        .figure("Lost, most")
        .figure("Longest gap")
        .figure("Throughput kept");
    fill(table, run, set, |found| Some(cells(found.rekey.as_ref()?)))
}

fn cells(found: &RekeyResult) -> [Cell; 8] {
    let number = |value: f64| Scale::plain().number(value);
    let reached = found.reached_per_s.as_ref();
    [
        Cell::plain(found.rekeys.to_string()),
        Cell::plain(number(found.asked_per_s)),
        Cell::or_missing(reached.map(|found| number(found.mean))),
        mean_time(found.took_ns.as_ref()),
        mean_count(found.lost_frames.as_ref()),
        most(found.lost_frames.as_ref()),
        longest(&found.outage_ns),
        Cell::or_missing(found.kept_ratio.as_ref().map(kept)),
    ]
}

/// The load with rekeys, and without.
pub(super) fn loads(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; the same load for the same time, first with the keys left alone; latency one way, from the intended \
         send time, all repeats pooled",
        set.common
    );
    let mut table = head(set, Table::new(caption(set, "loss and latency"), note))
        .label("Keys")
        .figure("Forwarded")
        .figure("Lost")
        .figure("p50")
        .figure("p99")
        .figure("p99.9")
        .figure("Max");
    for (point, cell) in set.rows() {
        let found = of(cell);
        let quiet = found.and_then(|found| found.quiet.as_ref());
        let renewed = found.and_then(|found| Some(&found.rekey.as_ref()?.disturbed));
        for (name, load) in [("left alone", quiet), ("renewed", renewed)] {
            let mut cells = labels(run, set, point, cell);
            cells.push(Cell::label(name));
            match load {
                Some(load) => cells.extend(load_cells(load)),
                None => cells.extend(without_figure(cell, 6)),
            }
            table.push(cells);
        }
    }
    table
}

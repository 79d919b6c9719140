//! Latency and delay variation by trial.

use super::{caption, head, labels, load_name};
use crate::kit::format::time_ns;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use stats::{LatencyByTrial, TrialSpread};

/// Medians over the trials; `None` if no cell has delay variation.
pub(super) fn variation(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let note = format!(
        "{}; each trial is one value: median of the trials (1st to 99th percentile of the trials, by \
         nearest rank); typical latency: the median of a trial, worst case: its 99.9th percentile (RFC \
         8219 §7.2); PDV: delay less the smallest of the trial; IPDV: delay less that of the frame before \
         in the same flow (RFC 5481 §4); with both directions loaded, PDV and IPDV are of the direction \
         that varies more",
        set.common
    );
    let mut table = head(
        set,
        Table::new(caption(set, "Latency and delay variation by trial"), note),
    )
    .label("Load")
    .figures(["Trials", "Typical latency", "Worst case"])
    .figures(["PDV p50", "PDV p99", "PDV p99.9", "PDV max"])
    .figures(["IPDV min", "IPDV p50", "IPDV max"]);
    for (point, cell) in set.rows() {
        for latency in cell.frames().map_or(&[][..], |found| &found.latency) {
            let Some(by_trial) = &latency.by_trial else {
                continue;
            };
            let mut cells = labels(run, set, point, cell);
            cells.push(Cell::label(load_name(latency)));
            cells.extend(figures(by_trial));
            table.push(cells);
        }
    }
    table.with_rows()
}

fn figures(found: &LatencyByTrial) -> [Cell; 10] {
    let one = |spread: &TrialSpread| Cell::plain(in_words(spread, found.trials));
    // A percentile needs slower frames than it, which a short trial may lack.
    let maybe = |spread: Option<&TrialSpread>| {
        Cell::or_missing(spread.map(|it| in_words(it, found.trials)))
    };
    let ipdv = found.ipdv.as_ref();
    [
        Cell::plain(found.trials.to_string()),
        one(&found.typical_ns),
        maybe(found.worst_case_ns.as_ref()),
        one(&found.pdv_p50_ns),
        maybe(found.pdv_p99_ns.as_ref()),
        maybe(found.pdv_p99_9_ns.as_ref()),
        one(&found.pdv_max_ns),
        maybe(ipdv.map(|ipdv| &ipdv.min_ns)),
        maybe(ipdv.map(|ipdv| &ipdv.p50_ns)),
        maybe(ipdv.map(|ipdv| &ipdv.max_ns)),
    ]
}

/// `12 µs (11 µs–15 µs)`; for a single trial, its value.
fn in_words(spread: &TrialSpread, trials: u32) -> String {
    match trials {
        1 => signed(spread.median),
        _ => format!(
            "{} ({} to {})",
            signed(spread.median),
            signed(spread.p1),
            signed(spread.p99)
        ),
    }
}

/// A time that may be negative.
fn signed(ns: f64) -> String {
    if ns < 0.0 {
        format!("−{}", time_ns(-ns))
    } else {
        time_ns(ns)
    }
}

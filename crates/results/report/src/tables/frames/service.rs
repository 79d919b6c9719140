//! A service test, step by step.

use super::{head, labels, mean_rate, share, without_figure};
use crate::format;
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::table::{Cell, Table};
use stats::{ServiceResult, ServiceStepResult};

/// Each step, compared with the service's limits.
pub(crate) fn service(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; frames/s of one direction; up to the CIR, loss, mean delay and delay variation (99.9th \
         percentile less the smallest delay) are limited; above it, at least the CIR must arrive, and under \
         policing at most CIR and EIR and 1 %; a step passes if it does in every repeat (ITU-T Y.1564)",
        set.common
    );
    let mut table = head(set, Table::new(super::caption(set, set.kind.name()), note))
        .label("Step")
        .figures([
            "Offered",
            "Received",
            "Lost",
            "Mean delay",
            "Delay variation",
        ])
        .text("Result");
    for (point, cell) in set.rows() {
        let Some(found) = cell.frames().and_then(|found| found.service()) else {
            let mut cells = labels(run, set, point, cell);
            cells.push(Cell::label(""));
            cells.extend(without_figure(cell, 6));
            table.push(cells);
            continue;
        };
        for step in &found.steps {
            let mut cells = labels(run, set, point, cell);
            cells.push(Cell::label(&step.step));
            cells.extend(figures(step));
            table.push(cells);
        }
    }
    table
}

/// `passed`, or the first step that failed.
pub(super) fn figure(found: &ServiceResult) -> String {
    match found.first_failed() {
        None => "passed".to_owned(),
        Some(step) => format!("failed: {}", step.step),
    }
}

fn figures(step: &ServiceStepResult) -> [Cell; 6] {
    let load = &step.load;
    let time = |found: Option<&stats::Estimate>| Cell::or_missing(found.map(format::time));
    [
        Cell::plain(mean_rate(&load.offered.frames_per_s)),
        Cell::plain(mean_rate(&load.forwarded.frames_per_s)),
        Cell::plain(share(load.account.lost, load.lost_ppm.mean)),
        time(step.delay_ns.as_ref()),
        time(step.variation_ns.as_ref()),
        match step.failures.first() {
            None => Cell::plain("passed"),
            Some(why) => Cell::reason(format!("failed. {why}")),
        },
    ]
}

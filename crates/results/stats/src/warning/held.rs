//! Rates that were held for a short time only.

use super::{Warning, WarningKind, counted, warning};
use crate::cell::CellResult;
use journal::Journal;
use plan::Procedure;
use units::human::duration_ns;

/// A rate that was held for less is a rate of that time (RFC 2544 §24: trials of 60 s at least). A
/// device that is warm after a minute may clock its processor down.
pub const HELD_LEAST_NS: u64 = 60_000_000_000;

/// Figures that rest on shorter trials: a device that throttles later carries less.
pub(super) fn held_shortly(journal: &Journal, cells: &[CellResult]) -> Option<Warning> {
    let measured = cells.iter().filter(|cell| !cell.measures_rig());
    let held = measured.filter_map(|cell| Some((cell, held_ns(journal, cell)?)));
    let held: Vec<(&CellResult, u64)> = held.filter(|(_, ns)| *ns < HELD_LEAST_NS).collect();
    let (shortest, least_ns) = held.iter().min_by_key(|(_, ns)| *ns)?;
    let text = format!(
        "In {} the rate was held for less than {} at a time (least: `{}`, {}): it is not known to be \
         sustained for longer.",
        counted(held.len(), "cell"),
        duration_ns(HELD_LEAST_NS as f64),
        shortest.id,
        duration_ns(*least_ns as f64)
    );
    warning(
        WarningKind::HeldShortly,
        held.iter().map(|(cell, _)| cell.id.clone()).collect(),
        text,
        "A device that throttles when it is warm carries less: confirm the figure with `profile: rfc2544`, \
         with trials of a minute or more, or with a `soak` at 100 % of it.",
    )
}

/// Longest time that a cell's rate was held without a pause; `None` without a rate.
fn held_ns(journal: &Journal, cell: &CellResult) -> Option<u64> {
    let frames = cell.frames()?;
    let mut planned = journal.header.plan.cells.iter();
    let planned = planned.find(|planned| planned.id == cell.id)?;
    let test = planned.measurement.frames()?;
    match &test.procedure {
        // A search measured for how long one trial held the rate; other procedures hold it for the
        // planned time of a trial.
        Procedure::Throughput(_) => frames.throughput.as_ref()?.goals.first()?.held_ns,
        procedure => procedure
            .plan()
            .held_ns()
            .filter(|_| frames.frame_rate().is_some()),
    }
}

//! The next round of repeats, for limits that are undecided.

use super::{Expected, ExpectedCell};
use crate::Results;
use crate::analysis::change::REPEATS_MAX;
use crate::analysis::gate::LimitOutcome;
use journal::Journal;
use std::collections::BTreeSet;

/// Cells that get further repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// Their ids, in the plan's order.
    pub cells: Vec<String>,
    /// Repeats that each of them has afterwards.
    pub repeats: u32,
}

impl Expected {
    /// The next round: the cells that leave a limit undecided, with those that they are compared
    /// with, and as many repeats as fit in what is left of the time. `None` if repeats cannot
    /// decide, or if the time is used up.
    #[must_use]
    pub fn next_round(&self, journal: &Journal, results: &Results) -> Option<Round> {
        let plan = &journal.header.plan;
        let left_ns = self.until_decided_ns?.checked_sub(self.added_ns)?;
        let is_open =
            |cell: &&ExpectedCell| cell.outcome == LimitOutcome::Undecided && cell.is_repeatable;
        let open = self.limits.iter().flat_map(|limit| &limit.cells);
        let open = open.filter(is_open);
        // The other cell of a ratio is measured again too: its repeats form the pairs.
        let ids = open.flat_map(|cell| {
            let other = cell.reference.as_deref();
            let other = other.filter(|id| results.cell(id).is_some());
            std::iter::once(cell.cell.as_str()).chain(other)
        });
        let ids: BTreeSet<&str> = ids.collect();
        let cells = plan.cells.iter().map(|cell| cell.id.as_str());
        let cells: Vec<&str> = cells.filter(|id| ids.contains(id)).collect();
        let now = cells.iter().map(|id| plan.repeats_of(id)).max()?;
        let once_ns: u64 = cells.iter().map(|id| time_ns(journal, id)).sum();
        let affordable = left_ns / once_ns.max(1);
        // Half as many again: few looks, and no more than half of the repeats in vain.
        let step = u64::from((now / 2).max(2)).min(affordable);
        let most = REPEATS_MAX.max(plan.repeats).saturating_sub(now);
        let step = u32::try_from(step).unwrap_or(u32::MAX).min(most);
        (step > 0).then(|| Round {
            cells: cells.into_iter().map(str::to_owned).collect(),
            repeats: now + step,
        })
    }
}

/// Mean time of the trials of a cell so far; as estimated without one.
fn time_ns(journal: &Journal, id: &str) -> u64 {
    let trials = journal.trials.iter().filter(|trial| trial.cell == id);
    let (count, sum) = trials.fold((0_u64, 0_u64), |(count, sum), trial| {
        (count + 1, sum.saturating_add(trial.duration_ns))
    });
    let planned = journal.header.plan.cells.iter().find(|cell| cell.id == id);
    let estimate = planned.map_or(0, |cell| cell.estimate_ns);
    sum.checked_div(count).unwrap_or(estimate)
}

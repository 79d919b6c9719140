//! Sittings of a run: the first, and one more for each resume.
//!
//! Repeats of two cells form pairs because they were measured one after the other. A repeat that
//! `resume` made hours later still pairs by number, but not by time: a change of the machine
//! between them does not cancel.

use crate::cell::{CellResult, LateRepeat, Status};
use journal::Journal;
use journal::record::Outcome;
use std::collections::BTreeMap;

/// When a repeat was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Made {
    /// Resumes before it.
    sitting: usize,
    at_ns: u64,
}

/// When each repeat of each cell was measured.
#[derive(Debug)]
pub(crate) struct Sittings<'a> {
    by_cell: BTreeMap<&'a str, BTreeMap<u32, Made>>,
}

impl<'a> Sittings<'a> {
    /// Of the repeats that have figures.
    pub(crate) fn of(journal: &'a Journal) -> Self {
        let mut by_cell: BTreeMap<&str, BTreeMap<u32, Made>> = BTreeMap::new();
        for (&(cell, repeat), trial) in &journal.latest_trials() {
            if !matches!(trial.outcome, Outcome::Measured(_)) {
                continue;
            }
            let at_ns = trial.started_unix_ns;
            // A trial belongs to the sitting of the last resume before it.
            let before = journal.resumed.iter();
            let before = before.filter(|resumed| resumed.at_unix_ns <= at_ns);
            let sitting = before.count();
            let own = by_cell.entry(cell).or_default();
            own.insert(repeat, Made { sitting, at_ns });
        }
        Self { by_cell }
    }

    /// The longest time between the repeats of a pair of different sittings; `None` if every pair
    /// of these cells is of one sitting.
    pub(crate) fn apart_ns(&self, cell: &str, other: &str) -> Option<u64> {
        let (own, other) = (self.by_cell.get(cell)?, self.by_cell.get(other)?);
        let pairs = own
            .iter()
            .filter_map(|(repeat, made)| Some((made, other.get(repeat)?)));
        let apart = pairs.filter(|(made, other)| made.sitting != other.sitting);
        apart
            .map(|(made, other)| made.at_ns.abs_diff(other.at_ns))
            .max()
    }

    /// Sets the late repeats of each cell that has a figure.
    pub(crate) fn mark(&self, cells: &mut [CellResult]) {
        let has_figure =
            |cell: &CellResult| matches!(cell.status, Status::Measured | Status::Partly);
        // Copies of the ids, as the cells are changed in the loop below.
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| has_figure(cell)) {
            let own = groups.entry(cell.group.clone()).or_default();
            own.push(cell.id.clone());
        }
        for cell in cells.iter_mut().filter(|cell| has_figure(cell)) {
            let own = self.by_cell.get(cell.id.as_str());
            let others = groups.get(&cell.group).map_or(&[][..], Vec::as_slice);
            let late = own.into_iter().flatten().filter_map(|(&repeat, made)| {
                let others = others.iter();
                let others = others.filter_map(|id| self.by_cell.get(id.as_str())?.get(&repeat));
                // Only the later of two repeats is marked: the earlier one was measured in its
                // block.
                let earlier = others.filter(|other| other.sitting < made.sitting);
                let later_ns = earlier.map(|other| made.at_ns.saturating_sub(other.at_ns));
                Some(LateRepeat {
                    repeat,
                    later_ns: later_ns.max()?,
                })
            });
            cell.late_repeats = late.collect();
        }
    }
}

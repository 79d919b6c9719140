//! The plan of a run: its cells and their trials.

use crate::{Capture, Cell, Claim, Expectations, LabPlan, Order, Published, PublishedReport};
use serde::{Deserialize, Serialize};

/// The plan of a run: cells, each measured `repeats` times, and the lab they are measured in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the campaign, fit for a folder name (`[a-z0-9-]+`).
    pub name: String,
    /// One line for people; may be empty.
    pub title: String,
    /// The lab that the cells are measured in.
    pub lab: LabPlan,
    /// Times that each cell is measured; at least 1.
    pub repeats: u32,
    /// The order of the trials in each repeat.
    #[serde(default)]
    pub order: Order,
    /// The cells, in the order of the campaign, the DUT varying fastest.
    pub cells: Vec<Cell>,
    /// Claims about the DUTs, printed next to the figures of their cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Limits that figures must keep.
    #[serde(default, skip_serializing_if = "Expectations::is_empty")]
    pub expect: Expectations,
    /// Published figures of other systems, printed next to the figures of these cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// The captures of each trial; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// The complete reports that published them: figures that no cell measures are printed with the
    /// reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<PublishedReport>,
}

impl Plan {
    /// Longest name in characters: it becomes part of a folder's name.
    pub const NAME_CHARS_MAX: usize = 64;
    /// Largest number of repeats.
    pub const REPEATS_MAX: u32 = 1000;

    /// Time that the whole run will take: the sum over its trials, in nanoseconds.
    #[must_use]
    pub fn estimate_ns(&self) -> u64 {
        // The numbers may be of a changed journal, so nothing here may wrap.
        let times = self.cells.iter().map(|cell| cell.estimate_ns);
        let once = times.fold(0, u64::saturating_add);
        once.saturating_mul(self.repeats.into())
    }

    /// The same plan with only the cells that [calibrate the tester](Cell::calibrates).
    #[must_use]
    pub fn calibration_only(mut self) -> Self {
        self.cells.retain(Cell::calibrates);
        // They are about devices, which this plan does not measure.
        self.claims.clear();
        self.expect = Expectations::default();
        self.published.clear();
        self.reports.clear();
        self
    }

    /// The trials in running order: all cells once per repeat, so that a drift of the machine
    /// affects DUT and baseline equally; within a repeat in the order of [`order`](Self::order).
    pub fn trials(&self) -> impl Iterator<Item = TrialRef<'_>> {
        let added = self.expect.added.values().copied().max();
        let most = added.map_or(self.repeats, |added| added.max(self.repeats));
        (1..=most).flat_map(move |repeat| {
            let cells = self.order.cells(&self.cells, repeat).into_iter();
            let planned = cells.filter(move |cell| repeat <= self.repeats_of(&cell.id));
            planned.map(move |cell| TrialRef { cell, repeat })
        })
    }

    /// The repeats of a cell: the plan's, or more if a run has added some.
    #[must_use]
    pub fn repeats_of(&self, cell: &str) -> u32 {
        let added = self.expect.added.get(cell);
        added.map_or(self.repeats, |added| self.repeats.max(*added))
    }

    /// The number of trials.
    #[must_use]
    pub fn trial_count(&self) -> usize {
        let planned = self.cells.len().saturating_mul(self.repeats as usize);
        let more = self.expect.added.values();
        let more = more.map(|added| added.saturating_sub(self.repeats) as usize);
        more.fold(planned, usize::saturating_add)
    }
}

/// One trial to run: a cell and the number of its repeat.
#[derive(Debug, Clone, Copy)]
pub struct TrialRef<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// From 1 to [`Plan::repeats_of`] the cell.
    pub repeat: u32,
}

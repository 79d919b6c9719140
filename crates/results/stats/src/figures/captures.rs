//! The captures of a run, from each trial that counts, valid or not.

use journal::Journal;
use journal::record::{Captured, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

/// A capture of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialCapture {
    /// Id of the trial's cell.
    pub cell: String,
    /// The trial's repeat, from 1.
    pub repeat: u32,
    /// File and contents.
    pub capture: Captured,
}

/// All captures, in the order of the plan's cells.
pub(crate) fn captures(journal: &Journal) -> Vec<TrialCapture> {
    let latest = journal.latest_trials();
    let cells = journal.header.plan.cells.iter();
    let trials = cells.flat_map(|cell| {
        let repeats = 1..=journal.header.plan.repeats_of(&cell.id);
        repeats.map(move |repeat| (cell, repeat))
    });
    let trials = trials.filter_map(|(cell, repeat)| latest.get(&(cell.id.as_str(), repeat)));
    let captures = trials.flat_map(|trial| {
        let captures = match &trial.outcome {
            // The capture of an invalid trial may show why its check failed.
            Outcome::Measured(measured) | Outcome::Invalid { measured, .. } => {
                &measured.captures[..]
            }
            Outcome::Failed { .. } => &[],
        };
        captures.iter().map(|capture| TrialCapture {
            cell: trial.cell.clone(),
            repeat: trial.repeat,
            capture: capture.clone(),
        })
    });
    captures.collect()
}

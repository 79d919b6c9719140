//! Progress of a run, in trials.

use super::{CellResult, Repeats};
use journal::Journal;
use journal::record::{DeviceResult, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

/// Progress of a run, in trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Progress {
    /// Whether the run is complete.
    pub ended: bool,
    /// Planned trials.
    pub trials_planned: u64,
    /// Of those, measured with all checks passed.
    pub trials_measured: u64,
    /// Of those measured, with a crypto device that failed or gave a wrong result: a valid
    /// measurement of a bad device.
    pub trials_with_bad_device: u64,
    /// Of those, measured but found invalid.
    pub trials_invalid: u64,
    /// Of those, failed.
    pub trials_failed: u64,
    /// Of those, not run.
    pub trials_not_run: u64,
    /// Of those, left out because the machine has too few cores, as the campaign permits.
    pub trials_skipped: u64,
}

impl Progress {
    pub(crate) fn of(journal: &Journal, cells: &[CellResult]) -> Self {
        let sum = |count: fn(&Repeats) -> u32| -> u64 {
            cells
                .iter()
                .map(|cell| u64::from(count(&cell.repeats)))
                .sum()
        };
        Self {
            ended: journal.end.is_some(),
            trials_planned: sum(|repeats| repeats.planned),
            trials_measured: sum(|repeats| repeats.measured),
            trials_with_bad_device: journal
                .latest_trials()
                .values()
                .filter(|trial| has_bad_device(&trial.outcome))
                .count() as u64,
            trials_invalid: sum(|repeats| repeats.invalid),
            trials_failed: sum(|repeats| repeats.failed),
            trials_not_run: sum(|repeats| repeats.not_run),
            trials_skipped: sum(|repeats| repeats.skipped),
        }
    }
}

fn has_bad_device(outcome: &Outcome) -> bool {
    match outcome {
        // A trial that finds a wrong device is valid: the finding is its result.
        Outcome::Measured(measured) => measured.device().is_some_and(DeviceResult::is_bad),
        Outcome::Invalid { .. } | Outcome::Failed { .. } => false,
    }
}

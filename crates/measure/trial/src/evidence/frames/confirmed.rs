//! Whether trials at the load of a throughput confirm it.

use super::FrameObserved;
use crate::evidence::check;
use crate::frames::Confirmation;
use journal::record::{Check, FrameTrial};

/// The load that a search found is carried again, as its goal asks: else there is no such figure.
pub(super) fn throughput_confirmed(observed: &FrameObserved<'_>) -> Option<Check> {
    let found = Confirmation::of(observed.test, observed.result)?;
    let met = found.trials.iter().filter(|trial| found.is_met_by(trial));
    let outcomes = found.trials.iter().map(|trial: &FrameTrial| {
        let lost = trial.intended.saturating_sub(trial.received);
        format!("{lost} of {} lost", trial.intended)
    });
    let outcomes: Vec<String> = outcomes.collect();
    let detail = format!(
        "after the search, {} of {} trials at its load met the goal `{}`: {}",
        met.count(),
        found.trials.len(),
        found.goal.name,
        outcomes.join(", ")
    );
    check("throughput-confirmed", found.holds(), detail)
}

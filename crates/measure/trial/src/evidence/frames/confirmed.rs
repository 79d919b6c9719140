//! Whether trials at the load of a throughput confirm it.

use super::FrameObserved;
use crate::evidence::failure::percent;
use crate::evidence::{check, then_repeat_or};
use crate::frames::Confirmation;
use journal::record::{Check, Explanation, FrameTrial};
use units::human::frame_rate;

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
    let failure = (!found.holds()).then(|| {
        let missed = found.trials.iter().filter(|trial| !found.is_met_by(trial));
        let worst = missed.max_by_key(|trial| trial.intended.saturating_sub(trial.received));
        let words = |trial: &FrameTrial| {
            let lost = trial.intended.saturating_sub(trial.received);
            format!(
                "{} of the frames were lost when the throughput found, {}, was offered again",
                percent(lost, trial.intended),
                frame_rate(trial.load as f64)
            )
        };
        let difference = worst.map_or_else(
            || "the throughput found was not carried again".to_owned(),
            words,
        );
        Explanation::new(
            difference,
            "the device or the machine was slower than during the search, because other programs ran or its clock \
             fell; or the device's capacity varies",
            then_repeat_or(
                "stop what else uses this machine",
                "use longer trials or a goal that allows some loss, in a new run",
            ),
        )
    });
    check("throughput-confirmed", failure, detail)
}

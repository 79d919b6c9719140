//! Whether trials at the load of a throughput confirm it.

use super::FrameObserved;
use crate::evidence::failure::percent;
use crate::evidence::{check, then_repeat_or};
use crate::frames::confirm::Confirmation;
use journal::record::{Check, Explanation, FrameTrial};
use units::human::{duration_ns, frame_rate};

/// Checks that the load that a search found is carried again, as its goal asks: otherwise the
/// figure is wrong.
pub(super) fn throughput_confirmed(observed: &FrameObserved<'_>) -> Option<Check> {
    let found = Confirmation::of(observed.test, observed.result)?;
    let trials = found.trials.iter().copied();
    let met = trials.clone().filter(|trial| found.is_met_by(trial));
    let outcomes: Vec<String> = trials.clone().map(outcome).collect();
    let detail = format!(
        "after the search, {} of {} trials at its load met the goal `{}`: {}",
        met.count(),
        found.trials.len(),
        found.goal.name,
        outcomes.join(", ")
    );
    let failure = (!found.holds()).then(|| {
        let missed = trials.filter(|trial| !found.is_met_by(trial));
        // The search counts frames of a late sender and of a growing queue as lost too, so this is
        // the worst by its measure.
        let worst = missed.max_by_key(|trial| trial.counts().lost());
        let (difference, cause) = worst.map_or_else(
            || {
                (
                    "the throughput found was not carried again".to_owned(),
                    SLOWER,
                )
            },
            contradiction,
        );
        Explanation::new(
            difference,
            cause,
            then_repeat_or(
                "stop what else uses this machine",
                "use longer trials or a goal that allows some loss, in a new run",
            ),
        )
    });
    check("throughput-confirmed", failure, detail)
}

/// A cause on the device's side, or of the whole machine.
const SLOWER: &str = "the device or the machine was slower than during the search, because other programs ran or its clock \
                      fell; or the device's capacity varies";
/// A cause on the tester's side.
const TESTER_SLOWER: &str = "the tester lacked CPU time for this load: other programs ran, or the device took more of the \
                             cores that they share";

/// Counts of a trial, and what else kept it from meeting the goal.
fn outcome(trial: &FrameTrial) -> String {
    let lost = missing(trial);
    let mut words = format!("{lost} of {} lost", trial.intended);
    let queued = trial.queued();
    if trial.took_too_long() {
        let [took, planned] = sending_times(trial);
        words += &format!(" (sent in {took} instead of {planned})");
    } else if queued > 0 {
        words += &format!(" ({queued} carried only by a growing queue)");
    }
    words
}

/// How a trial contradicts the throughput found, and the likely cause.
fn contradiction(trial: &FrameTrial) -> (String, &'static str) {
    let rate = frame_rate(trial.load as f64);
    let lost = missing(trial);
    let share = |frames| percent(frames, trial.intended);
    // Most frames that the search counts as lost were never offered in time: the tester is the
    // likelier cause.
    if trial.took_too_long() && lost.saturating_mul(2) <= trial.counts().lost() {
        let [took, planned] = sending_times(trial);
        let what = format!(
            "the tester took {took} instead of {planned} to offer the throughput found, {rate}, again"
        );
        return (what, TESTER_SLOWER);
    }
    let again = format!("when the throughput found, {rate}, was offered again");
    let queued = trial.queued();
    let what = if queued > lost {
        format!(
            "{} of the frames were carried only by a growing queue {again}",
            share(queued)
        )
    } else {
        format!("{} of the frames were lost {again}", share(lost))
    };
    (what, SLOWER)
}

/// Intended frames that were not received.
const fn missing(trial: &FrameTrial) -> u64 {
    trial.intended.saturating_sub(trial.received)
}

/// The longest time that sending took in a direction, and the planned time.
fn sending_times(trial: &FrameTrial) -> [String; 2] {
    let took = trial
        .each_direction()
        .iter()
        .map(|own| own.elapsed_ns)
        .max();
    [took.unwrap_or(0), trial.duration_ns].map(|ns| duration_ns(ns as f64))
}

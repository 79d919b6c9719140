//! The figure of a frame test, as progress shows it.

use journal::record::{Disturbance, FrameResult, GoalOutcome, ProcedureRecord, SoakSegment};
use units::human;

/// Describes a result of a frame test: the procedure's figure, or the fastest load's.
pub(super) fn frames_figure(frames: &FrameResult) -> String {
    // A procedure with a figure besides throughput is named by that figure. The others are
    // searches, or trials at given loads.
    let own = match &frames.found {
        ProcedureRecord::Nothing => None,
        ProcedureRecord::Bursts(_) => stats::longest_burst(frames)
            .map(|burst| format!("{} frames back to back", human::number(burst as f64))),
        ProcedureRecord::Recovery(recovery) => {
            let time = human::duration_ns(recovery.recovery_ns as f64);
            Some(format!("recovery in {time}"))
        }
        ProcedureRecord::Disturbed(disturbed) => disturbed_figure(frames, &disturbed.disturbances),
        ProcedureRecord::Service(steps) => {
            let steps = steps.len();
            Some(format!("{steps} steps of a service"))
        }
        ProcedureRecord::Soak(segments) => soak_figure(frames, segments),
    };
    if let Some(own) = own {
        return own;
    }
    let found = frames.throughput.iter().flat_map(|found| &found.goals);
    let goals: Vec<String> = found
        .map(|goal| match goal.lower {
            Some(load) => format!("{} {}", goal.goal, human::frame_rate(load as f64)),
            // Both lack a lower bound, but only the other one is a finding about the device.
            None if goal.outcome == Some(GoalOutcome::Unfinished) => {
                format!("{} not found in the time of the search", goal.goal)
            }
            None => format!("{} below the lowest load", goal.goal),
        })
        .collect();
    if !goals.is_empty() {
        return goals.join(", ");
    }
    // Several loads have no common mean. As in the report, the fastest one is shown.
    match stats::fastest_load(frames) {
        Some((rate, lost_percent)) => format!(
            "{}, {} % lost",
            human::frame_rate(rate),
            human::number(lost_percent)
        ),
        None => "no frame".to_owned(),
    }
}

/// Describes the loss and the duration of a soak.
fn soak_figure(frames: &FrameResult, segments: &[SoakSegment]) -> Option<String> {
    let trials = segments
        .iter()
        .filter_map(|segment| frames.trials.get(segment.trial));
    let (time_ns, lost) = trials.fold((0, 0), |(time_ns, lost), trial| {
        (time_ns + trial.duration_ns, lost + trial.lost())
    });
    (time_ns > 0).then(|| {
        format!(
            "{} lost in {}",
            human::counted(lost, "frame"),
            human::duration_ns(time_ns as f64)
        )
    })
}

/// Describes the events and the loss that they caused.
fn disturbed_figure(frames: &FrameResult, disturbances: &[Disturbance]) -> Option<String> {
    let events = disturbances.iter().flat_map(|found| &found.events);
    let (count, lost) = events.fold((0_u64, 0), |(count, lost), event| {
        (count + 1, lost + event.lost)
    });
    // Attacks have no events: their figure is the loss under the worst of them.
    if count > 0 {
        return Some(format!(
            "{}, {} lost",
            human::counted(count, "event"),
            human::counted(lost, "frame")
        ));
    }
    let attacked = disturbances.iter().filter(|found| found.attack.is_some());
    let trials = attacked.filter_map(|found| frames.trials.get(found.trial));
    let losses = trials.map(|trial| 100.0 * trial.lost() as f64 / trial.sent.max(1) as f64);
    let most = losses.reduce(f64::max)?;
    Some(format!(
        "{} % lost at most under attack",
        human::number(most)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{FrameTrial, GoalBounds, SearchRecord};

    fn trial(received: u64) -> FrameTrial {
        FrameTrial {
            duration_ns: 1_000_000_000,
            elapsed_ns: 1_000_000_000,
            sent: 1000,
            received,
            ..FrameTrial::default()
        }
    }

    #[test]
    fn the_trial_with_the_evidence_is_no_part_of_the_figure() {
        let frames = FrameResult {
            trials: vec![trial(1), trial(600), trial(800), trial(2)],
            flood_trial: Some(0),
            evidence_trial: Some(3),
            ..FrameResult::default()
        };
        let shown = frames_figure(&frames);
        assert!(
            shown.starts_with("700 ") && shown.ends_with(", 30 % lost"),
            "{shown}"
        );
        assert_eq!(frames_figure(&FrameResult::default()), "no frame");
        // Loads of a curve have no mean: the fastest one is the figure, as in the report.
        let at = |load, received| FrameTrial {
            load,
            ..trial(received)
        };
        let frames = FrameResult {
            trials: vec![at(1000, 900), at(500, 500), at(100, 100)],
            ..FrameResult::default()
        };
        let shown = frames_figure(&frames);
        assert!(
            shown.starts_with("900 ") && shown.ends_with(", 10 % lost"),
            "{shown}"
        );
    }

    #[test]
    fn a_search_that_ran_out_of_time_does_not_blame_the_lowest_load() {
        let bounds = |outcome| GoalBounds {
            goal: "ndr".to_owned(),
            outcome,
            ..GoalBounds::default()
        };
        for (outcome, shown) in [
            (
                Some(GoalOutcome::Unfinished),
                "ndr not found in the time of the search",
            ),
            (Some(GoalOutcome::MinLoadFails), "ndr below the lowest load"),
        ] {
            let found = SearchRecord {
                goals: vec![bounds(outcome)],
                ..SearchRecord::default()
            };
            let frames = FrameResult {
                throughput: Some(found),
                ..FrameResult::default()
            };
            assert_eq!(frames_figure(&frames), shown);
        }
    }
}

//! A frame trial that begins, as progress shows it.

use trial::{FrameStep, PlannedDisturbance};
use units::human;

/// Describes a frame trial that begins, with its cell.
pub(super) fn whole(step: &FrameStep<'_>) -> String {
    format!("{}: {}", step.cell.id, parts(step).join(", "))
}

/// Describes a frame trial that begins, the most important part first: its load, the bounds so far,
/// and the loss of the previous one.
pub(super) fn parts(step: &FrameStep<'_>) -> Vec<String> {
    let load = match step.load {
        Some(load) => human::frame_rate(load as f64),
        None => "full speed".to_owned(),
    };
    let planned = step.planned.map_or_else(String::new, disturbance);
    let mut parts = vec![format!("frame trial {} at {load}{planned}", step.number)];
    let rate = |load: u64| human::frame_rate(load as f64);
    parts.extend(step.bounds.iter().filter_map(|goal| {
        let name = &goal.goal;
        Some(match (goal.lower, goal.upper) {
            (Some(lower), Some(upper)) => {
                format!("{name} from {} to {}", rate(lower), rate(upper))
            }
            (Some(lower), None) => format!("{name} at least {}", rate(lower)),
            (None, Some(upper)) => format!("{name} below {}", rate(upper)),
            (None, None) => return None,
        })
    }));
    if let Some(last) = step.last.filter(|last| last.sent > 0) {
        let percent = 100.0 * last.lost() as f64 / last.sent as f64;
        parts.push(format!("the one before lost {} %", human::number(percent)));
    }
    parts
}

/// Describes the events of a frame trial.
fn disturbance(planned: &PlannedDisturbance) -> String {
    match (&planned.hostile, planned.actions.len()) {
        (Some(hostile), _) => format!(
            " and {} % as many hostile packets ({})",
            hostile.percent,
            hostile.attack.name()
        ),
        (None, 0) => " alone".to_owned(),
        (None, 1) => ", 1 event".to_owned(),
        (None, actions) => format!(", {actions} events"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{FrameTrial, GoalBounds};

    #[test]
    fn a_step_is_in_plain_words_with_units() {
        let campaign = campaign::Campaign::quick();
        let host = campaign::HostFacts { cores: 2 };
        let plan = campaign.plan(&campaign.usual_lab(), &host).unwrap();
        let bounds = |lower, upper| GoalBounds {
            goal: "ndr".to_owned(),
            lower,
            upper,
            ..GoalBounds::default()
        };
        let last = FrameTrial {
            sent: 1000,
            received: 975,
            ..FrameTrial::default()
        };
        let shown = |goal: GoalBounds, last: Option<&FrameTrial>| {
            let step = FrameStep {
                cell: &plan.cells[0],
                number: 18,
                load: Some(273_000),
                duration_ns: 1,
                planned: None,
                last,
                bounds: &[goal],
            };
            parts(&step).join(", ")
        };
        assert_eq!(
            shown(bounds(None, Some(281_000)), Some(&last)),
            "frame trial 18 at 273 kpps, ndr below 281 kpps, the one before lost 2.5 %"
        );
        assert_eq!(
            shown(bounds(Some(24_900), Some(281_000)), None),
            "frame trial 18 at 273 kpps, ndr from 24.9 kpps to 281 kpps"
        );
        assert_eq!(
            shown(bounds(None, None), None),
            "frame trial 18 at 273 kpps"
        );
    }
}

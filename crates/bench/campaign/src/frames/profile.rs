//! Reads the goals of searches: by the name of a profile, or spelled out.

use crate::axis::RUN_MAX;
use crate::keys::{millis, seconds};
use plan::{Criteria, Goal, Profile};
use std::time::Duration;
use units::Ratio;
use yaml::Absent::{Default, Required};
use yaml::{Key, Map, Node, Reported, Value};

/// The profiles that campaigns may name.
pub(crate) const NAMED: [Profile; 3] = [Profile::Fast, Profile::Rfc2544, Profile::Tst009];

/// More goals make a search longer than one each.
const GOALS_MAX: usize = 8;

/// Keys of a goal. What is left out is as in the profile `fast`.
#[rustfmt::skip]
pub(super) const GOAL: &[Key] = &[
    Key::new("name", Value::Identifier(16), Required, "What tables call it"),
    Key::new("loss", BELOW_ALL, Required,
        "A trial with more loss is a high-loss trial (Goal Loss Ratio)"),
    Key::new("exceed", BELOW_ALL, Default("50 %"),
        "Highest share of high-loss trials in `sum` (Goal Exceed Ratio)"),
    Key::new("initial", GOAL_TRIAL, Default("100 ms"), "Duration of the first trials")
        .range("10 ms to 1 h, at most `final`"),
    Key::new("final", GOAL_TRIAL, Default("500 ms"), "Duration of trials that count in full")
        .range("10 ms to 1 h, at most `sum`"),
    Key::new("sum", Value::Time(millis(10), RUN_MAX), Default("1 s"), "Sum of trial durations that decides a load"),
    Key::new("width", Value::Ratio(Ratio::from_ppm(1_000), Ratio::from_percent(50)),
        Default("3 %"),
        "Relative distance of the bounds that ends the search; the report warns if it is below \
         `loss`"),
];

/// A goal of 100 % loss is met at any load, and has no upper bound to find.
const BELOW_ALL: Value = Value::Ratio(Ratio::from_ppm(0), Ratio::from_ppm(999_999));
/// Below 10 ms, the start of a trial is most of it.
const GOAL_TRIAL: Value = Value::Time(millis(10), seconds(3600));

/// Reads goals that are spelled out.
pub(crate) fn goals(node: Node<'_>) -> Result<Vec<Goal>, Reported> {
    let mut goals: Vec<Goal> = Vec::new();
    node.list(|item| {
        let goal = item.keys(GOAL, goal)?;
        if goals.iter().any(|earlier| earlier.name == goal.name) {
            let what = format!("a goal named `{}` is there already", goal.name);
            return Err(item.mistake(what, "give this one another `name`"));
        }
        goals.push(goal);
        Ok(())
    })?;
    match goals.len() {
        1..=GOALS_MAX => Ok(goals),
        count => {
            let what = format!("a search for {count} goals is not possible");
            let help =
                format!("write 1 to {GOALS_MAX}, for example `- {{ name: ndr, loss: 0 % }}`");
            Err(node.mistake(what, help))
        }
    }
}

fn goal(map: &Map<'_>) -> Result<Goal, Reported> {
    let node = map.node();
    let name = map.get("name");
    let (loss, exceed) = (map.get("loss"), map.get("exceed"));
    let (initial, last) = (map.spanned("initial"), map.spanned("final"));
    let (sum, width) = (map.spanned::<u64>("sum"), map.get("width"));
    let (initial, last, sum) = (initial?, last?, sum?);
    let print = |ns| units::time::print(Duration::from_nanos(ns));
    // `sum` below `final` could be decided by no whole trial.
    for (shorter, longer, names) in [
        (&initial, &last, ("initial", "final")),
        (&last, &sum, ("final", "sum")),
    ] {
        if shorter.value > longer.value {
            // A default has the place of the map.
            let is_default = longer.place == node.place();
            let place = if is_default {
                &shorter.place
            } else {
                &longer.place
            };
            let what = format!(
                "`{}` of {} is longer than `{}` of {}",
                names.0,
                print(shorter.value),
                names.1,
                print(longer.value)
            );
            let help = "trials grow from `initial` to `final`, and `sum` of them decide a load";
            return Err(node.mistake_at(place, what, help));
        }
    }
    let criteria = Criteria {
        loss_ratio_ppm: loss?,
        exceed_ratio_ppm: exceed?,
        initial_trial_ns: initial.value,
        final_trial_ns: last.value,
        duration_sum_ns: sum.value,
        width_ppm: width?,
    };
    Ok(Goal {
        name: name?,
        criteria,
    })
}

//! Reads the goals of searches: by the name of a profile, or spelled out.

use plan::{Criteria, Goal, Profile, nanos};
use std::time::Duration;
use units::Ratio;
use yaml::{Map, Node, Reported};

/// The profiles that campaigns may name.
pub(crate) const NAMED: [Profile; 3] = [Profile::Fast, Profile::Rfc2544, Profile::Tst009];

/// More goals make a search longer than one each.
const GOALS_MAX: usize = 8;
const GOAL_NAME_CHARS_MAX: usize = 16;

/// Shortest trial: below it, the start of a trial is most of it.
const TRIAL_MIN: Duration = Duration::from_millis(10);
const TRIAL_MAX: Duration = Duration::from_secs(3600);
const SUM_MAX: Duration = Duration::from_secs(24 * 3600);

/// Ratios of goals are at most one, so they fit.
fn ppm(ratio: Ratio) -> u32 {
    u32::try_from(ratio.ppm()).unwrap_or(u32::MAX)
}

/// Reads goals that are spelled out.
pub(crate) fn goals(node: Node<'_>) -> Result<Vec<Goal>, Reported> {
    let mut goals: Vec<Goal> = Vec::new();
    node.list(|item| {
        let goal = item.map(goal)?;
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
    let default = Profile::unless_spelled_out();
    let ratio = |key, default: u32, range: std::ops::RangeInclusive<Ratio>| {
        map.with_default(key, default, |node| node.ratio(range).map(ppm))
    };
    let time = |key, default: u64, max| {
        map.with_default(key, node.spanned(default), |node| {
            let time = node.duration(TRIAL_MIN..=max)?;
            Ok(node.spanned(nanos(time)))
        })
    };
    // A goal of 100 % loss is met at any load, and has no upper bound to find.
    let below_all = Ratio::from_ppm(0)..=Ratio::from_ppm(999_999);
    let name = map
        .required("name")
        .and_then(|node| node.identifier(1..=GOAL_NAME_CHARS_MAX));
    let loss = map
        .required("loss")
        .and_then(|node| node.ratio(below_all.clone()).map(ppm));
    let exceed = ratio("exceed", default.exceed_ratio_ppm, below_all);
    let initial = time("initial", default.initial_trial_ns, TRIAL_MAX);
    let last = time("final", default.final_trial_ns, TRIAL_MAX);
    let sum = time("sum", default.duration_sum_ns, SUM_MAX);
    let width = ratio(
        "width",
        default.width_ppm,
        Ratio::from_ppm(1_000)..=Ratio::from_percent(50),
    );
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
        name: name?.to_owned(),
        criteria,
    })
}

//! Profiles: sets of search goals and times with a name.
//!
//! | | `fast` | `rfc2544` | `tst009` |
//! | --- | --- | --- | --- |
//! | goals | NDR: 0 % loss, PDR: 0.5 % | NDR: 0 % | NDR: 0 % |
//! | exceed ratio | 50 % | 0 % | 50 % |
//! | initial trial | 100 ms | 1 s | 60 s |
//! | final trial | 500 ms | 60 s | 60 s |
//! | duration sum | 1 s | 60 s | 120 s |
//! | width | 3 % | 0.5 % | 0.5 % |
//! | drain | 100 ms | 2 s | 2 s |
//! | timeout | 60 s | 2 h | 4 h |
//! | latency: each load | 1 s | 120 s | 120 s |
//! | recovery: overload, relief | 2 s, 2 s | 60 s, 60 s | 60 s, 60 s |
//!
//! `rfc2544` and `tst009` are the goals that RFC 9971 gives for the two documents: one trial of 60
//! s without loss, and TST 009's loss verification, where a lossy trial is repeated (an exceed
//! ratio of one half over a sum of two trials is just that). Bounds rest on trials of full length
//! alone, so `rfc2544` may look for them with shorter ones; TST 009's bisection has one length.
//! `fast` has the usual two loss ratios and that verification, with trials a hundredth as long: on
//! a machine that is shared, one lost frame is often the machine's, and a goal without verification
//! would measure that. Its width bounds the error below the capacity by 3 %; above it, a queue is
//! noticed when it grows by 1 % of the time (`search::DelayTrend`), and not sooner.

use crate::axis::nanos;
use crate::plan::{Criteria, Goal, Profile};
use std::time::Duration;
use units::Ratio;
use yaml::{Map, Node, Reported};

/// Settings of a profile besides its goals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) drain: Duration,
    pub(crate) timeout: Duration,
    /// Each load's time in a latency test.
    pub(crate) latency: Duration,
    /// Time of an overload, and time watched afterwards.
    pub(crate) recovery: Duration,
}

/// The profiles that campaigns may name.
pub(crate) const NAMES: [(&str, Profile); 3] = [
    (Profile::Fast.name(), Profile::Fast),
    (Profile::Rfc2544.name(), Profile::Rfc2544),
    (Profile::Tst009.name(), Profile::Tst009),
];

const NDR: &str = "ndr";
const PDR: &str = "pdr";
const PDR_LOSS: Ratio = Ratio::from_ppm(5_000);

/// More goals make a search longer than one each.
const GOALS_MAX: usize = 8;
const GOAL_NAME_CHARS_MAX: usize = 16;

/// Shortest trial: below it, the start of a trial is most of it.
const TRIAL_MIN: Duration = Duration::from_millis(10);
const TRIAL_MAX: Duration = Duration::from_secs(3600);
const SUM_MAX: Duration = Duration::from_secs(24 * 3600);

impl Profile {
    /// Its goals; those that a campaign spells out take what they leave open from `fast`.
    pub(crate) fn goals(self) -> Vec<Goal> {
        let ndr = match self {
            Self::Fast | Self::Custom => named(NDR, fast(Ratio::from_ppm(0))),
            Self::Rfc2544 => named(
                NDR,
                Criteria {
                    initial_trial_ns: nanos(Duration::from_secs(1)),
                    ..minutes(0, 1)
                },
            ),
            Self::Tst009 => named(NDR, minutes(50, 2)),
        };
        match self {
            Self::Fast => vec![ndr, named(PDR, fast(PDR_LOSS))],
            Self::Rfc2544 | Self::Tst009 | Self::Custom => vec![ndr],
        }
    }

    /// Its times.
    pub(crate) const fn times(self) -> Times {
        match self {
            Self::Fast | Self::Custom => Times {
                drain: Duration::from_millis(100),
                timeout: Duration::from_secs(60),
                latency: Duration::from_secs(1),
                recovery: Duration::from_secs(2),
            },
            Self::Rfc2544 | Self::Tst009 => Times {
                // RFC 2544 §23 d.
                drain: Duration::from_secs(2),
                timeout: Duration::from_secs(match self {
                    Self::Tst009 => 4 * 3600,
                    _ => 2 * 3600,
                }),
                // RFC 2544 §26.2.
                latency: Duration::from_secs(120),
                // RFC 2544 §26.5.
                recovery: Duration::from_secs(60),
            },
        }
    }
}

fn named(name: &str, criteria: Criteria) -> Goal {
    Goal {
        name: name.to_owned(),
        criteria,
    }
}

fn fast(loss: Ratio) -> Criteria {
    Criteria {
        loss_ratio_ppm: ppm(loss),
        exceed_ratio_ppm: ppm(Ratio::from_percent(50)),
        initial_trial_ns: nanos(Duration::from_millis(100)),
        final_trial_ns: nanos(Duration::from_millis(500)),
        duration_sum_ns: nanos(Duration::from_secs(1)),
        width_ppm: ppm(Ratio::from_percent(3)),
    }
}

/// Zero loss in trials of a minute.
fn minutes(exceed_percent: u32, trials: u32) -> Criteria {
    let minute = Duration::from_secs(60);
    Criteria {
        loss_ratio_ppm: 0,
        exceed_ratio_ppm: ppm(Ratio::from_percent(exceed_percent)),
        initial_trial_ns: nanos(minute),
        final_trial_ns: nanos(minute),
        duration_sum_ns: nanos(minute * trials),
        width_ppm: ppm(Ratio::from_ppm(5_000)),
    }
}

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
    let default = fast(Ratio::from_ppm(0));
    let ratio = |key, default: u32, range: std::ops::RangeInclusive<Ratio>| {
        map.with_default(key, default, |node| node.ratio(range).map(ppm))
    };
    let time = |key, default: u64, max| {
        map.with_default(key, node.spanned(default), |node| {
            let time = node.duration(TRIAL_MIN..=max)?;
            Ok(node.spanned(nanos(time)))
        })
    };
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
    for (shorter, longer, names) in [
        (&initial, &last, ("initial", "final")),
        (&last, &sum, ("final", "sum")),
    ] {
        if shorter.value > longer.value {
            // A default has no place of its own.
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
    Ok(named(name?, criteria))
}

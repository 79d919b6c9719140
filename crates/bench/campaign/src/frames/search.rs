//! A search for throughput as configured.

use crate::axis::RUN_MAX;
use crate::frames::keys::{SEARCH, is_empty};
use crate::frames::profile;
use crate::frames::rate::Rate;
use plan::{
    Axis, Coordinate, Goal, Profile, ProfileTimes, ThroughputSearch, Value, compact, compact_time,
    nanos,
};
use std::time::Duration;
use units::{FrameRate, Ratio};
use wire::mix::FrameMix;
use yaml::{Key, Map, Node, Reported, Spanned};

/// Goals and loads of a search; loads may still be bit rates.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    profile: Profile,
    goals: Vec<Goal>,
    max_load: Option<Spanned<Rate>>,
    min_load: Spanned<Rate>,
    drain: Duration,
    timeout: Spanned<Duration>,
}

/// Goals that are spelled out may need any time; the named profiles have this multiple of theirs.
const TIMEOUT_SUMS: u32 = 30;

impl Search {
    pub(super) fn read(map: &Map<'_>) -> Result<Self, Reported> {
        let (profile, goals) = goals(map);
        let max_load = map.get::<Option<_>>("max_load");
        let min_load = map.spanned("min_load");
        let drain = map.find("drain");
        let timeout = map.find("timeout");
        let (profile, goals) = (profile?, goals?);
        let usual = || map.node().spanned(timeout_for(profile, &goals));
        Ok(Self {
            profile,
            max_load: max_load?,
            min_load: min_load?,
            drain: drain?.unwrap_or(profile.times().drain),
            timeout: timeout?.unwrap_or_else(usual),
            goals,
        })
    }

    /// Defaults that depend on the profile; any when it could not be read.
    pub(super) fn times(search: &Result<Self, Reported>) -> ProfileTimes {
        let profile = search
            .as_ref()
            .map_or(Profile::Fast, |search| search.profile);
        profile.times()
    }

    /// Highest and lowest load.
    pub(super) fn loads(&self) -> Vec<&Spanned<Rate>> {
        let highest = self.max_load.iter();
        highest.chain([&self.min_load]).collect()
    }

    /// Checks loads and times against each other, independently of the mix.
    pub(super) fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        let min = self.min_load.value;
        if let Some(max_load) = &self.max_load {
            let max = max_load.value;
            // Compared in frames of each mix, since the two may be rates of different layers.
            if mixes
                .iter()
                .any(|mix| max.frames_per_s(mix) <= min.frames_per_s(mix))
            {
                let what = format!("`max_load` of {max} is not above `min_load` of {min}");
                let help = "raise `max_load`, or write a lower `min_load`";
                node.mistake_at(&max_load.place, what, help);
            }
        }
        // The mix with the fewest frames, and the shortest trial of any goal.
        let lowest = mixes.iter().map(|mix| min.frames_per_s(mix)).min();
        let shortest = self
            .goals
            .iter()
            .map(|goal| goal.criteria.initial_trial_ns)
            .min();
        if let (Some(lowest), Some(shortest)) = (lowest, shortest.map(Duration::from_nanos))
            && is_empty(lowest, shortest)
        {
            let time = units::time::print(shortest);
            let what = format!("a trial of {time} at `min_load` of {min} has no frame");
            let least = Duration::from_secs(1)
                .as_nanos()
                .div_ceil(shortest.as_nanos());
            let least = FrameRate::new(u64::try_from(least).unwrap_or(u64::MAX));
            let help =
                format!("write `min_load: {least}` or more, or goals with a longer `initial`");
            node.mistake_at(&self.min_load.place, what, help);
        }
        let longest = self
            .goals
            .iter()
            .map(|goal| goal.criteria.duration_sum_ns)
            .max();
        let longest = Duration::from_nanos(longest.unwrap_or_default());
        if self.timeout.value < longest {
            let print = units::time::print;
            let (timeout, sum) = (print(self.timeout.value), print(longest));
            let what = format!("a timeout of {timeout} is shorter than a goal's `sum` of {sum}");
            let help = "not even one load could be decided: write a longer `timeout`";
            node.mistake_at(&self.timeout.place, what, help);
        }
    }

    /// Checks a separate trial of this time at the lowest load.
    pub(super) fn check_lowest(&self, node: Node<'_>, mixes: &[&FrameMix], trial: Duration) {
        let min = self.min_load.value;
        let lowest = mixes.iter().map(|mix| min.frames_per_s(mix)).min();
        if lowest.is_some_and(|lowest| is_empty(lowest, trial)) {
            let time = units::time::print(trial);
            let what = format!("in {time} at `min_load` of {min}, which is 0 %, there is no frame");
            let help = "raise `min_load` or `duration`, or leave 0 % out of `loads`";
            node.mistake_at(&self.min_load.place, what, help);
        }
    }

    /// The search for frames of this mix.
    pub(super) fn resolve(&self, mix: &FrameMix) -> ThroughputSearch {
        let max_load = self.max_load.as_ref();
        ThroughputSearch {
            profile: self.profile,
            goals: self.goals.clone(),
            max_load: max_load.map(|load| load.value.frames_per_s(mix)),
            min_load: self.min_load.value.frames_per_s(mix),
            drain_ns: nanos(self.drain),
            timeout_ns: nanos(self.timeout.value),
        }
    }

    /// Its coordinates, in the order of ids.
    pub(super) fn coordinates(&self) -> Vec<Coordinate> {
        let goals = match self.profile {
            // Two sets of goals may have equal names, so ids have their parameters.
            Profile::Custom => self.goals.iter().map(goal_id).collect::<Vec<_>>().join("+"),
            profile => profile.name().to_owned(),
        };
        // Values equal to the profile's are implied by its name.
        let own = |time: Duration, usual| {
            if time == usual {
                Value::from("usual")
            } else {
                time.into()
            }
        };
        // A given value that equals the default has the default's word: both are one setting, and
        // so one coordinate.
        let usual = timeout_for(self.profile, &self.goals);
        vec![
            Axis::Profile.at(goals),
            Axis::MaxLoad.at(self.max_load.as_ref().map(|load| load.value)),
            Axis::MinLoad.at(self.min_load.value),
            Axis::Drain.at(own(self.drain, self.profile.times().drain)),
            Axis::Timeout.at(own(self.timeout.value, usual)),
        ]
    }
}

/// Keys that only a search has: each is a mistake, for that reason.
pub(super) fn refuse(map: &Map<'_>, why: &str) -> Result<(), Reported> {
    let mut outcome = Ok(());
    for key in SEARCH.iter().map(Key::name) {
        if let Some(node) = map.optional(key) {
            let help = format!("remove `{key}`, or write a share of the throughput: `load: 50 %`");
            outcome = Err(node.mistake(why, help));
        }
    }
    outcome
}

/// The goals and their source.
fn goals(map: &Map<'_>) -> (Result<Profile, Reported>, Result<Vec<Goal>, Reported>) {
    let named = map.optional("profile");
    let profile =
        named.map(|node| node.one_of("profile", &profile::NAMED.map(|it| (it.name(), it))));
    let spelled_out = map.optional("goals").map(profile::goals);
    match (profile, spelled_out) {
        (Some(Ok(_)), Some(goals)) => {
            let what = "`goals` are given, and a profile has goals of its own";
            let help = "remove one of the two; what goals leave open is as in `fast`";
            let place = named.map_or_else(|| map.node().place(), Node::place);
            (Err(map.node().mistake_at(&place, what, help)), goals)
        }
        // Goals next to a wrong profile are read too, for their mistakes.
        (Some(Err(reported)), goals) => (Err(reported), goals.unwrap_or(Err(reported))),
        (None, Some(goals)) => (Ok(Profile::Custom), goals),
        (Some(Ok(profile)), None) => (Ok(profile), Ok(profile.goals())),
        (None, None) => (Ok(Profile::Fast), Ok(Profile::Fast.goals())),
    }
}

fn timeout_for(profile: Profile, goals: &[Goal]) -> Duration {
    let usual = profile.times().timeout;
    if profile != Profile::Custom {
        return usual;
    }
    let sums = goals
        .iter()
        .map(|goal| Duration::from_nanos(goal.criteria.duration_sum_ns));
    // Not shorter than the usual timeout, and not longer than a timeout may be.
    let needed = sums.sum::<Duration>() * TIMEOUT_SUMS;
    needed.clamp(usual, RUN_MAX)
}

/// A goal in a cell's id: `ndr(0%,50%,100ms,500ms,1s,3%)`.
fn goal_id(goal: &Goal) -> String {
    let ratio = |ppm: u32| compact(&Ratio::from_ppm(ppm.into()));
    let time = |ns| compact_time(Duration::from_nanos(ns));
    format!(
        "{}({},{},{},{},{},{})",
        goal.name,
        ratio(goal.criteria.loss_ratio_ppm),
        ratio(goal.criteria.exceed_ratio_ppm),
        time(goal.criteria.initial_trial_ns),
        time(goal.criteria.final_trial_ns),
        time(goal.criteria.duration_sum_ns),
        ratio(goal.criteria.width_ppm)
    )
}

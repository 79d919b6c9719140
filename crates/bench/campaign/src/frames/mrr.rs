//! The keys of `mrr`.

use crate::frames::keys::{drain, is_empty, max_load, trial_time};
use crate::frames::rate::Rate;
use plan::{Axis, Coordinate, Mrr, Profile, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

/// The procedure as configured: the load may still be a bit rate.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    max_load: Option<Spanned<Rate>>,
    trials: u32,
    trial: Duration,
    drain: Duration,
}

/// As in CSIT.
const TRIALS_DEFAULT: u32 = 10;
const TRIALS_MAX: u32 = 1000;
const TRIAL_DEFAULT: Duration = Duration::from_secs(1);

pub(super) fn read(map: &Map<'_>) -> Result<Config, Reported> {
    let max_load = max_load(map);
    let trials = map.with_default("trials", TRIALS_DEFAULT, |node| {
        node.integer(1..=TRIALS_MAX)
    });
    let trial = map.with_default("duration", TRIAL_DEFAULT, trial_time);
    let drain = drain(map, Profile::Fast.times().drain);
    Ok(Config {
        max_load: max_load?,
        trials: trials?,
        trial: trial?,
        drain: drain?,
    })
}

impl Config {
    /// The procedure for frames of this mix.
    pub(super) fn resolve(&self, mix: &FrameMix) -> Mrr {
        let max_load = self.max_load.as_ref();
        Mrr {
            max_load: max_load.map(|load| load.value.frames_per_s(mix)),
            trials: self.trials,
            trial_ns: nanos(self.trial),
            drain_ns: nanos(self.drain),
        }
    }

    pub(super) const fn load(&self) -> Option<&Spanned<Rate>> {
        self.max_load.as_ref()
    }

    /// Reports a load without a frame in a trial, for some mix.
    pub(super) fn check<'m>(&self, node: Node<'_>, mixes: impl Iterator<Item = &'m FrameMix>) {
        let Some(load) = &self.max_load else {
            return;
        };
        let least = mixes.map(|mix| load.value.frames_per_s(mix)).min();
        if least.is_some_and(|least| is_empty(least, self.trial)) {
            let time = units::time::print(self.trial);
            let what = format!("in {time} at {} there is no frame", load.value);
            node.mistake_at(&load.place, what, "raise `max_load` or `duration`");
        }
    }

    /// Its coordinates, in the order of ids.
    pub(super) fn coordinates(&self) -> Vec<Coordinate> {
        vec![
            Axis::MaxLoad.at(self.max_load.as_ref().map(|load| load.value)),
            Axis::Duration.at(self.trial),
            Axis::Trials.at(self.trials),
            Axis::Drain.at(self.drain),
        ]
    }
}

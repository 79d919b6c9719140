//! The keys of `mrr`.

use super::ProcedureConfig;
use crate::frames::keys::{check_for_frames, drain, max_load, trial_time};
use crate::frames::rate::Rate;
use plan::{Axis, Coordinate, Mrr, Procedure, Profile, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

#[derive(Debug)]
pub(super) struct Config {
    max_load: Option<Spanned<Rate>>,
    trials: u32,
    trial: Duration,
    drain: Duration,
}

/// As in CSIT.
const TRIALS_DEFAULT: u32 = 10;
const TRIALS_MAX: u32 = 1000;
const TRIAL_DEFAULT: Duration = Duration::from_secs(1);

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let max_load = max_load(map);
    let trials = map.with_default("trials", TRIALS_DEFAULT, |node| {
        node.integer(1..=TRIALS_MAX)
    });
    let trial = map.with_default("duration", TRIAL_DEFAULT, trial_time);
    let drain = drain(map, Profile::Fast.times().drain);
    Ok(vec![Config {
        max_load: max_load?,
        trials: trials?,
        trial: trial?,
        drain: drain?,
    }])
}

impl ProcedureConfig for Config {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        let max_load = self.max_load.as_ref();
        Procedure::Mrr(Mrr {
            max_load: max_load.map(|load| load.value.frames_per_s(mix)),
            trials: self.trials,
            trial_ns: nanos(self.trial),
            drain_ns: nanos(self.drain),
        })
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        self.max_load.iter().collect()
    }

    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        if let Some(load) = &self.max_load {
            check_for_frames(
                node,
                load,
                self.trial,
                mixes,
                "raise `max_load` or `duration`",
            );
        }
    }

    fn coordinates(&self) -> Vec<Coordinate> {
        vec![
            Axis::MaxLoad.at(self.max_load.as_ref().map(|load| load.value)),
            Axis::Duration.at(self.trial),
            Axis::Trials.at(self.trials),
            Axis::Drain.at(self.drain),
        ]
    }
}

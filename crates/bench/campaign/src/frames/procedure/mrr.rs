//! The keys of `mrr`.

use super::ProcedureConfig;
use crate::frames::keys::{DRAIN, MAX_LOAD, TRAFFIC, TRIAL, check_for_frames};
use crate::frames::rate::Rate;
use crate::keys::OF_ALL;
use plan::{Axis, Coordinate, Mrr, Procedure, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::Absent::Default;
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    OF_ALL,
    TRAFFIC,
    MAX_LOAD.meaning("The offered load")
        .range("1 frame/s to 1 G frames/s, a frame in each trial"),
    // As in CSIT.
    Key::new("trials", Value::Integer(1, 1000), Default("10"), "Trials"),
    Key::new("duration", TRIAL, Default("1 s"), "Each trial's time"),
    DRAIN,
];

#[derive(Debug)]
pub(super) struct Config {
    max_load: Option<Spanned<Rate>>,
    trials: u32,
    trial: Duration,
    drain: Duration,
}

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let (max_load, trials) = (map.get("max_load"), map.get("trials"));
    let (trial, drain) = (map.get("duration"), map.get("drain"));
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

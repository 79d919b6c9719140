//! The keys of `loss-curve`.

use super::ProcedureConfig;
use crate::frames::keys::{DRAIN, MAX_LOAD, TRAFFIC, TRIAL, is_empty};
use crate::frames::rate::Rate;
use crate::keys::OF_ALL;
use plan::{Axis, Coordinate, LossCurve, Procedure, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::Absent::Default;
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    OF_ALL,
    TRAFFIC,
    MAX_LOAD.meaning("The load of 100 %")
        .range("1 frame/s to 1 G frames/s, a frame at the lowest load"),
    Key::new("step", Value::Percent(1, 50), Default("10 %"), "From one load to the next"),
    Key::new("duration", TRIAL, Default("1 s"), "Each load's time"),
    DRAIN,
];

#[derive(Debug)]
pub(super) struct Config {
    max_load: Option<Spanned<Rate>>,
    step_percent: u8,
    trial: Duration,
    drain: Duration,
}

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let (max_load, step) = (map.get("max_load"), map.get("step"));
    let (trial, drain) = (map.get("duration"), map.get("drain"));
    Ok(vec![Config {
        max_load: max_load?,
        step_percent: step?,
        trial: trial?,
        drain: drain?,
    }])
}

impl ProcedureConfig for Config {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        let max_load = self.max_load.as_ref();
        Procedure::LossCurve(LossCurve {
            max_load: max_load.map(|load| load.value.frames_per_s(mix)),
            step_percent: self.step_percent,
            trial_ns: nanos(self.trial),
            drain_ns: nanos(self.drain),
        })
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        self.max_load.iter().collect()
    }

    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        let Some(load) = &self.max_load else {
            return;
        };
        let lowest_percent = lowest_percent(self.step_percent);
        // Of the mix with the fewest frames: a bit rate is fewer long frames.
        let highest = mixes.iter().map(|mix| load.value.frames_per_s(mix)).min();
        let lowest = highest.map(|highest| highest * lowest_percent / 100);
        if lowest.is_some_and(|lowest| is_empty(lowest, self.trial)) {
            let time = units::time::print(self.trial);
            let what = format!(
                "in {time} at the lowest load, {lowest_percent} % of {}, there is no frame",
                load.value
            );
            let help = "raise `max_load`, `step` or `duration`";
            node.mistake_at(&load.place, what, help);
        }
    }

    fn coordinates(&self) -> Vec<Coordinate> {
        vec![
            Axis::MaxLoad.at(self.max_load.as_ref().map(|load| load.value)),
            Axis::Step.at(self.step_percent),
            Axis::Duration.at(self.trial),
            Axis::Drain.at(self.drain),
        ]
    }
}

/// The lowest load of a curve, in per cent of the highest.
fn lowest_percent(step_percent: u8) -> u64 {
    let step = u64::from(step_percent.max(1));
    // The steps go down from 100 % and stay above zero.
    100 - (100 - 1) / step * step
}

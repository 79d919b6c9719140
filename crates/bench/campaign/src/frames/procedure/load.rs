//! The keys of `load`.

use super::ProcedureConfig;
use crate::axis::Axes;
use crate::frames::keys::{TRAFFIC, TRIAL, check_for_frames};
use crate::frames::rate::{LOAD, Rate};
use crate::keys::OF_ALL;
use plan::{Axis, Coordinate, Load, Procedure, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::Absent::Default;
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    OF_ALL,
    TRAFFIC,
    Key::new("rate", Value::Axis(&Value::Or("max", &LOAD)), Default("max"),
        "Intended load; `max`: the generator's maximum")
        .words("load or `max`, axis").range("1 frame/s to 1 G frames/s"),
    Key::new("duration", Value::Axis(&TRIAL), Default("10 s"), "How long"),
];

#[derive(Debug)]
pub(super) struct Config {
    rate: Option<Spanned<Rate>>,
    duration: Duration,
}

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let axes = Axes::of(map);
    let rates = axes.get::<Option<Rate>>("rate");
    let durations = axes.get::<Duration>("duration");
    axes.done()?;
    // Both are axes; the duration varies faster, as its coordinate is the later one in ids.
    let pairs = rates.iter().flat_map(|rate| {
        durations.iter().map(move |duration| Config {
            rate: rate.value.map(|value| Spanned {
                value,
                place: rate.place.clone(),
            }),
            duration: duration.value,
        })
    });
    Ok(pairs.collect())
}

impl ProcedureConfig for Config {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        let rate = self.rate.as_ref();
        Procedure::Load(Load {
            frames_per_s: rate.map(|rate| rate.value.frames_per_s(mix)),
            duration_ns: nanos(self.duration),
        })
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        self.rate.iter().collect()
    }

    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        if let Some(rate) = &self.rate {
            check_for_frames(
                node,
                rate,
                self.duration,
                mixes,
                "raise `rate` or `duration`",
            );
        }
    }

    fn coordinates(&self) -> Vec<Coordinate> {
        vec![
            Axis::Rate.at(self.rate.as_ref().map(|load| load.value)),
            Axis::Duration.at(self.duration),
        ]
    }
}

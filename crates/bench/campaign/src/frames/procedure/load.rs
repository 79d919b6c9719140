//! The keys of `load`.

use super::ProcedureConfig;
use crate::axis::{AxisValues, axis};
use crate::frames::keys::{check_for_frames, trial_time};
use crate::frames::rate::{self, Rate};
use plan::{Axis, Coordinate, Load, Procedure, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

#[derive(Debug)]
pub(super) struct Config {
    rate: Option<Spanned<Rate>>,
    duration: Duration,
}

const DURATION_DEFAULT: Duration = Duration::from_secs(10);

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let rates = axis(map, "rate", None, |node| node.word_or("max", rate::read));
    let durations: AxisValues<Duration> = axis(map, "duration", DURATION_DEFAULT, trial_time);
    let (rates, durations) = (rates.all()?, durations.all()?);
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

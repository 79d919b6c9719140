//! The keys of `service`.

use crate::frames::keys::{drain, is_empty, trial_time};
use crate::frames::rate::{self, Rate};
use plan::{Axis, Coordinate, Profile, ServiceStep, ServiceTest, compact, nanos};
use std::time::Duration;
use units::Ratio;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

/// The procedure as configured: rates may still be bit rates.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    cir: Spanned<Rate>,
    eir: Option<Spanned<Rate>>,
    loss: Ratio,
    delay: Option<Duration>,
    variation: Option<Duration>,
    policing: bool,
    step: Duration,
    drain: Duration,
}

const STEP_DEFAULT: Duration = Duration::from_secs(10);
const LIMIT_MIN: Duration = Duration::from_nanos(1);
const LIMIT_MAX: Duration = Duration::from_secs(10);
const LOSS_MAX: Ratio = Ratio::from_percent(10);

pub(super) fn read(map: &Map<'_>) -> Result<Config, Reported> {
    let rate = |node: Node<'_>| rate::read(node).map(|rate| node.spanned(rate));
    let limit = |key| {
        let limit = map
            .optional(key)
            .map(|node| node.duration(LIMIT_MIN..=LIMIT_MAX));
        limit.transpose()
    };
    let cir = map.required("cir").and_then(rate);
    let eir = map.optional("eir").map(rate).transpose();
    let loss = map.with_default("loss", Ratio::from_ppm(0), |node| {
        node.ratio(Ratio::from_ppm(0)..=LOSS_MAX)
    });
    let (delay, variation) = (limit("delay"), limit("variation"));
    let policing = map.with_default("policing", false, Node::bool);
    let step = map.with_default("duration", STEP_DEFAULT, trial_time);
    let drain = drain(map, Profile::Fast.times().drain);
    Ok(Config {
        cir: cir?,
        eir: eir?,
        loss: loss?,
        delay: delay?,
        variation: variation?,
        policing: policing?,
        step: step?,
        drain: drain?,
    })
}

impl Config {
    /// The procedure for frames of this mix.
    pub(super) fn resolve(&self, mix: &FrameMix) -> ServiceTest {
        let eir = self.eir.as_ref();
        ServiceTest {
            cir: self.cir.value.frames_per_s(mix),
            eir: eir.map_or(0, |rate| rate.value.frames_per_s(mix)),
            loss_ppm: self.loss.ppm() as u32,
            delay_ns: self.delay.map(nanos),
            variation_ns: self.variation.map(nanos),
            policing: self.policing,
            step_ns: nanos(self.step),
            drain_ns: nanos(self.drain),
        }
    }

    pub(super) const fn rates(&self) -> (Option<&Spanned<Rate>>, Option<&Spanned<Rate>>) {
        (Some(&self.cir), self.eir.as_ref())
    }

    /// A first step without a frame, for some mix.
    pub(super) fn check<'m>(&self, node: Node<'_>, mixes: impl Iterator<Item = &'m FrameMix>) {
        let first = |mix| {
            let test = self.resolve(mix);
            test.load(ServiceStep::Cir(25))
        };
        if mixes
            .map(first)
            .min()
            .is_some_and(|least| is_empty(least, self.step))
        {
            let time = units::time::print(self.step);
            let what = format!("in {time} at 25 % of {} there is no frame", self.cir.value);
            node.mistake_at(&self.cir.place, what, "raise `cir` or `duration`");
        }
    }

    /// Its coordinates, in the order of ids.
    pub(super) fn coordinates(&self) -> Vec<Coordinate> {
        vec![
            Axis::Cir.at(self.cir.value),
            Axis::Eir.at(self.eir.as_ref().map(|rate| rate.value)),
            Axis::Loss.at(compact(&self.loss)),
            Axis::Delay.at(self.delay),
            Axis::Variation.at(self.variation),
            Axis::Policing.at(self.policing),
            Axis::Duration.at(self.step),
            Axis::Drain.at(self.drain),
        ]
    }
}

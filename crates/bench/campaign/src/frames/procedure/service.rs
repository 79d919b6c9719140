//! The keys of `service`.

use super::ProcedureConfig;
use crate::frames::keys::{drain, is_empty, trial_time};
use crate::frames::rate::{self, Rate};
use plan::{Axis, Coordinate, Procedure, Profile, ServiceStep, ServiceTest, compact, nanos};
use std::time::Duration;
use units::Ratio;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

#[derive(Debug)]
pub(super) struct Config {
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

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
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
    Ok(vec![Config {
        cir: cir?,
        eir: eir?,
        loss: loss?,
        delay: delay?,
        variation: variation?,
        policing: policing?,
        step: step?,
        drain: drain?,
    }])
}

impl Config {
    fn test(&self, mix: &FrameMix) -> ServiceTest {
        let eir = self.eir.as_ref();
        ServiceTest {
            cir: self.cir.value.frames_per_s(mix),
            eir: eir.map_or(0, |rate| rate.value.frames_per_s(mix)),
            // Fits: `LOSS_MAX` is far below it.
            loss_ppm: self.loss.ppm() as u32,
            delay_ns: self.delay.map(nanos),
            variation_ns: self.variation.map(nanos),
            policing: self.policing,
            step_ns: nanos(self.step),
            drain_ns: nanos(self.drain),
        }
    }
}

impl ProcedureConfig for Config {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        Procedure::Service(self.test(mix))
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        std::iter::once(&self.cir).chain(&self.eir).collect()
    }

    /// A first step without a frame, for some mix.
    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        // The first step has the lowest load of all.
        let first = |mix: &&FrameMix| self.test(mix).load(ServiceStep::Cir(25));
        let least = mixes.iter().map(first).min();
        if least.is_some_and(|least| is_empty(least, self.step)) {
            let time = units::time::print(self.step);
            let what = format!("in {time} at 25 % of {} there is no frame", self.cir.value);
            node.mistake_at(&self.cir.place, what, "raise `cir` or `duration`");
        }
    }

    fn coordinates(&self) -> Vec<Coordinate> {
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

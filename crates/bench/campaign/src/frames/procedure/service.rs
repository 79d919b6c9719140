//! The keys of `service`.

use super::ProcedureConfig;
use crate::frames::keys::{DRAIN, LOSS, TRAFFIC, TRIAL, is_empty};
use crate::frames::rate::{LOAD, Rate};
use crate::keys::{OF_ALL, seconds};
use plan::{Axis, Coordinate, Procedure, ServiceStep, ServiceTest, compact, nanos};
use std::time::Duration;
use units::Ratio;
use wire::mix::FrameMix;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    OF_ALL,
    TRAFFIC,
    Key::new("cir", LOAD, Required, "Committed information rate")
        .words("load").range("1 frame/s to 1 G frames/s, a frame in the first step"),
    Key::new("eir", LOAD, Depends("none"), "Excess information rate, on top of the CIR")
        .words("load").range("1 frame/s to 1 G frames/s"),
    Key::new("loss", LOSS, Default("0 %"), "Highest loss up to the CIR"),
    Key::new("delay", LIMIT, Depends("none"), "Highest mean delay up to the CIR"),
    Key::new("variation", LIMIT, Depends("none"),
        "Highest delay variation up to the CIR: 99.9th percentile less the smallest delay"),
    Key::new("policing", Value::Switch, Default("off"),
        "Also offer more than CIR and EIR, which must not pass"),
    Key::new("duration", TRIAL, Default("10 s"), "Each step's time"),
    DRAIN,
];
const LIMIT: Value = Value::Time(Duration::from_nanos(1), seconds(10));

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

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let (cir, eir, loss) = (map.spanned("cir"), map.find("eir"), map.get("loss"));
    let (delay, variation) = (map.find("delay"), map.find("variation"));
    let policing = map.get("policing");
    let (step, drain) = (map.get("duration"), map.get("drain"));
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
            // Fits: the bound of `loss` is far below it.
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

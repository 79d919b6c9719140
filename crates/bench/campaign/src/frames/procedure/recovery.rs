//! The keys of `recovery`.

use super::ProcedureConfig;
use crate::frames::keys::{trial_time, whole_percent};
use crate::frames::rate::Rate;
use crate::frames::search::Search;
use plan::{Axis, Coordinate, Procedure, Recovery, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

#[derive(Debug)]
pub(super) struct Config {
    search: Search,
    overload_percent: u16,
    relief_percent: u16,
    overload: Duration,
    relief: Duration,
}

/// RFC 2544 §26.5.
const OVERLOAD_PERCENT: u16 = 110;
const RELIEF_PERCENT: u16 = 50;

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let search = Search::read(map);
    let times = Search::times(&search);
    // Above the throughput by definition, and the relief below it.
    let overload = map.with_default("overload", OVERLOAD_PERCENT, |node| {
        whole_percent(node, 101..=1000)
    });
    let relief = map.with_default("relief", RELIEF_PERCENT, |node| whole_percent(node, 1..=99));
    let overload_time = map.with_default("overload_time", times.recovery, trial_time);
    let relief_time = map.with_default("relief_time", times.recovery, trial_time);
    Ok(vec![Config {
        search: search?,
        overload_percent: overload?,
        relief_percent: relief?,
        overload: overload_time?,
        relief: relief_time?,
    }])
}

impl ProcedureConfig for Config {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        Procedure::Recovery(Recovery {
            search: self.search.resolve(mix),
            overload_percent: self.overload_percent,
            relief_percent: self.relief_percent,
            overload_ns: nanos(self.overload),
            relief_ns: nanos(self.relief),
        })
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        self.search.loads()
    }

    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        self.search.check(node, mixes);
    }

    fn coordinates(&self) -> Vec<Coordinate> {
        let mut at = self.search.coordinates();
        at.push(Axis::Overload.at(self.overload_percent));
        at.push(Axis::Relief.at(self.relief_percent));
        at.push(Axis::OverloadTime.at(self.overload));
        at.push(Axis::ReliefTime.at(self.relief));
        at
    }
}

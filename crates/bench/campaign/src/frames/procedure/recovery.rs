//! The keys of `recovery`.

use super::ProcedureConfig;
use crate::frames::keys::{SEARCHED, TRAFFIC, TRIAL};
use crate::frames::rate::Rate;
use crate::frames::search::Search;
use crate::keys::OF_ALL;
use plan::{Axis, Coordinate, Procedure, Recovery, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::Absent::{Default, Depends};
use yaml::{Key, Map, Node, Reported, Spanned, Value};

/// The overload is above the throughput by definition, and the relief below it.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    OF_ALL,
    TRAFFIC,
    SEARCHED,
    // RFC 2544 §26.5, and the relief too.
    Key::new("overload", Value::Percent(101, 1000), Default("110 %"),
        "Overload, relative to the throughput of the first goal"),
    Key::new("relief", Value::Percent(1, 99), Default("50 %"),
        "Load afterwards, relative to the same"),
    Key::new("overload_time", TRIAL, Depends("the profile's"), "Time of the overload"),
    Key::new("relief_time", TRIAL, Depends("the profile's"), "Time watched afterwards"),
];

#[derive(Debug)]
pub(super) struct Config {
    search: Search,
    overload_percent: u16,
    relief_percent: u16,
    overload: Duration,
    relief: Duration,
}

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let search = Search::read(map);
    let usual = Search::times(&search).recovery;
    let (overload, relief) = (map.get("overload"), map.get("relief"));
    let (overload_time, relief_time) = (map.find("overload_time"), map.find("relief_time"));
    Ok(vec![Config {
        search: search?,
        overload_percent: overload?,
        relief_percent: relief?,
        overload: overload_time?.unwrap_or(usual),
        relief: relief_time?.unwrap_or(usual),
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

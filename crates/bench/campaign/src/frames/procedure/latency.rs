//! The keys of `latency`.

use super::ProcedureConfig;
use crate::axis::Axes;
use crate::frames::keys::{SEARCHED, TRAFFIC, TRIAL};
use crate::frames::rate::Rate;
use crate::frames::search::Search;
use crate::keys::OF_ALL;
use plan::{Axis, Coordinate, LatencyPath, LatencyTest, Procedure, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::Absent::{Default, Depends};
use yaml::{FromNode, Key, Map, Node, Place, Reported, Spanned, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    OF_ALL,
    TRAFFIC,
    SEARCHED,
    Key::new("loads", Value::OneOrMany(&PERCENT), Default("[0 %, 10 %, 50 %, 90 %]"),
        "Shares of the throughput; 0 % is `min_load`").words("list of ratios"),
    Key::new("duration", TRIAL, Depends("the profile's"), "Each trial's time"),
    Key::new("trials", Value::Integer(1, 1000), Default("1"),
        "Trials at each load; RFC 8219 asks for 20, and reports their median with the 1st and \
         99th percentile"),
    Key::new("path",
        Value::Axis(&Value::Name(|| LatencyPath::ALL.map(LatencyPath::name).to_vec())),
        Default("one-way"),
        "The timed path: frames from A to B, or there and back by reflection at station B ([round \
         trips](methodology/frames.md#round-trips-of-frames))"),
];
const PERCENT: Value = Value::Percent(0, 100);

#[derive(Debug)]
pub(super) struct Config {
    search: Search,
    percents: Vec<u8>,
    trial: Duration,
    trials: u32,
    path: Spanned<LatencyPath>,
}

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let search = Search::read(map);
    let percents = map.read("loads", |node| {
        let mut percents: Vec<u8> = Vec::new();
        node.one_or_many(|item| {
            let percent = u8::from_node(item, &PERCENT)?;
            if percents.contains(&percent) {
                return Err(item.mistake("this load is given twice", "remove one"));
            }
            percents.push(percent);
            Ok(())
        })?;
        Ok(percents)
    });
    let times = Search::times(&search);
    let (trial, trials) = (map.find("duration"), map.get("trials"));
    let axes = Axes::of(map);
    let paths = axes.read("path", |node| {
        node.one_of("path", &LatencyPath::ALL.map(|it| (it.name(), it)))
    });
    let (search, percents, trials) = (search?, percents?, trials?);
    let trial = trial?.unwrap_or(times.latency);
    // Only the path is an axis. The loads of one trial share its search.
    let config = |path: &Spanned<LatencyPath>| Config {
        search: search.clone(),
        percents: percents.clone(),
        trial,
        trials,
        path: path.clone(),
    };
    axes.done()?;
    Ok(paths.iter().map(config).collect())
}

impl ProcedureConfig for Config {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        Procedure::Latency(LatencyTest {
            search: self.search.resolve(mix),
            percents: self.percents.clone(),
            trial_ns: nanos(self.trial),
            trials: self.trials,
            path: self.path.value,
        })
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        self.search.loads()
    }

    fn round_trips(&self) -> Option<&Place> {
        (self.path.value == LatencyPath::RoundTrip).then_some(&self.path.place)
    }

    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        self.search.check(node, mixes);
        // The other loads are shares of the throughput.
        if self.percents.contains(&0) {
            self.search.check_lowest(node, mixes, self.trial);
        }
    }

    fn coordinates(&self) -> Vec<Coordinate> {
        let loads = self.percents.iter().map(|percent| format!("{percent}%"));
        let mut at = self.search.coordinates();
        at.push(Axis::Loads.at(loads.collect::<Vec<_>>().join("+")));
        at.push(Axis::Duration.at(self.trial));
        at.push(Axis::Trials.at(self.trials));
        at.push(Axis::Path.at(self.path.value));
        at
    }
}

//! The keys of `latency`.

use super::ProcedureConfig;
use crate::axis::{AxisValues, axis};
use crate::frames::keys::{trial_time, whole_percent};
use crate::frames::rate::Rate;
use crate::frames::search::Search;
use plan::{Axis, Coordinate, LatencyPath, LatencyTest, Procedure, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::{Map, Node, Place, Reported, Spanned};

#[derive(Debug)]
pub(super) struct Config {
    search: Search,
    percents: Vec<u8>,
    trial: Duration,
    trials: u32,
    path: Spanned<LatencyPath>,
}

const PERCENTS_DEFAULT: [u8; 4] = [0, 10, 50, 90];
const TRIALS_DEFAULT: u32 = 1;
const TRIALS_MAX: u32 = 1000;

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let search = Search::read(map);
    let percents = map.with_default("loads", PERCENTS_DEFAULT.to_vec(), |node| {
        let mut percents: Vec<u8> = Vec::new();
        node.one_or_many(|item| {
            // In range, so it fits.
            let percent = whole_percent(item, 0..=100)? as u8;
            if percents.contains(&percent) {
                return Err(item.mistake("this load is given twice", "remove one"));
            }
            percents.push(percent);
            Ok(())
        })?;
        Ok(percents)
    });
    let times = Search::times(&search);
    let trial = map.with_default("duration", times.latency, trial_time);
    let trials = map.with_default("trials", TRIALS_DEFAULT, |node| {
        node.integer(1..=TRIALS_MAX)
    });
    let paths: AxisValues<LatencyPath> = axis(map, "path", LatencyPath::OneWay, |node| {
        node.one_of("path", &LatencyPath::ALL.map(|it| (it.name(), it)))
    });
    let (search, percents, trial, trials) = (search?, percents?, trial?, trials?);
    // Only the path is an axis. The loads of one trial share its search.
    let config = |path: &Spanned<LatencyPath>| Config {
        search: search.clone(),
        percents: percents.clone(),
        trial,
        trials,
        path: path.clone(),
    };
    Ok(paths.all()?.iter().map(config).collect())
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

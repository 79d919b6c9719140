//! Procedures: the keys of each kind of frame trial.

use crate::axis::{AxisValues, axis};
use crate::frames::disturbed;
use crate::frames::keys::{drain, is_empty, max_load, trial_time, whole_percent};
use crate::frames::mrr;
use crate::frames::rate::{self, Rate};
use crate::frames::search::Search;
use crate::frames::{service, soak};
use plan::{
    Axis, BackToBack, Coordinate, LatencyPath, LatencyTest, Load, LossCurve, Procedure, Profile,
    Recovery, nanos,
};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::{Map, Node, Place, Reported, Spanned};

type Read<T> = Result<Vec<T>, Reported>;

/// Reads the keys of a kind: one procedure, or one for each value of its axes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reader {
    /// A procedure without a disturbance.
    Steady(fn(&Map<'_>) -> Read<ProcedureConfig>),
    /// A procedure with a disturbance, which needs both ends of the DUT.
    Disturbed(fn(&Map<'_>) -> Read<disturbed::Config>),
}

impl Reader {
    pub(super) fn read(self, map: &Map<'_>) -> Read<ProcedureConfig> {
        match self {
            Self::Steady(read) => read(map),
            Self::Disturbed(read) => Ok(read(map)?
                .into_iter()
                .map(ProcedureConfig::Disturbed)
                .collect()),
        }
    }
}

/// The kinds of frame trials, by the names of their procedures.
pub(crate) const PROCEDURES: [(&str, Reader); 15] = [
    ("load", Reader::Steady(loads)),
    ("throughput", Reader::Steady(throughput)),
    ("mrr", Reader::Steady(mrrs)),
    ("service", Reader::Steady(services)),
    ("loss-curve", Reader::Steady(loss_curve)),
    ("back-to-back", Reader::Steady(back_to_back)),
    ("latency", Reader::Steady(latency)),
    ("recovery", Reader::Steady(recovery)),
    ("rekey", Reader::Disturbed(disturbed::rekey)),
    ("failover", Reader::Disturbed(disturbed::failover)),
    ("reset", Reader::Disturbed(disturbed::reset)),
    ("setup", Reader::Disturbed(disturbed::setup)),
    ("desync", Reader::Disturbed(disturbed::desync)),
    ("hostile", Reader::Disturbed(disturbed::hostile)),
    ("soak", Reader::Steady(soaks)),
];

/// A procedure as configured: loads may still be bit rates.
#[derive(Debug, Clone)]
pub(crate) enum ProcedureConfig {
    Load {
        rate: Option<Spanned<Rate>>,
        duration: Duration,
    },
    Throughput(Search),
    Mrr(mrr::Config),
    Service(service::Config),
    LossCurve {
        max_load: Option<Spanned<Rate>>,
        step_percent: u8,
        trial: Duration,
        drain: Duration,
    },
    BackToBack(BackToBack),
    Latency {
        search: Search,
        percents: Vec<u8>,
        trial: Duration,
        trials: u32,
        path: Spanned<LatencyPath>,
    },
    Recovery {
        search: Search,
        overload_percent: u16,
        relief_percent: u16,
        overload: Duration,
        relief: Duration,
    },
    Disturbed(disturbed::Config),
    Soak(soak::Config),
}

const LOAD_DURATION_DEFAULT: Duration = Duration::from_secs(10);
const TRIAL_DEFAULT: Duration = Duration::from_secs(1);
const STEP_PERCENT_DEFAULT: u8 = 10;
/// RFC 9004 §5.
const BURST_DEFAULT: Duration = Duration::from_secs(2);
const BURST_MIN: Duration = Duration::from_millis(1);
const BURST_MAX: Duration = Duration::from_secs(60);
/// RFC 2544 §26.4.
const BURSTS_DEFAULT: u32 = 50;
const BURSTS_MAX: u32 = 1000;
const LATENCY_PERCENTS: [u8; 4] = [0, 10, 50, 90];
const LATENCY_TRIALS_DEFAULT: u32 = 1;
const LATENCY_TRIALS_MAX: u32 = 1000;
/// RFC 2544 §26.5.
const OVERLOAD_PERCENT: u16 = 110;
const RELIEF_PERCENT: u16 = 50;

fn loads(map: &Map<'_>) -> Read<ProcedureConfig> {
    let rates = axis(map, "rate", None, |node| node.word_or("max", rate::read));
    let durations: AxisValues<Duration> = axis(map, "duration", LOAD_DURATION_DEFAULT, trial_time);
    let (rates, durations) = (rates.all()?, durations.all()?);
    let pairs = rates.iter().flat_map(|rate| {
        durations.iter().map(move |duration| ProcedureConfig::Load {
            rate: rate.value.map(|value| Spanned {
                value,
                place: rate.place.clone(),
            }),
            duration: duration.value,
        })
    });
    Ok(pairs.collect())
}

fn throughput(map: &Map<'_>) -> Read<ProcedureConfig> {
    Ok(vec![ProcedureConfig::Throughput(Search::read(map)?)])
}

fn mrrs(map: &Map<'_>) -> Read<ProcedureConfig> {
    Ok(vec![ProcedureConfig::Mrr(mrr::read(map)?)])
}

fn services(map: &Map<'_>) -> Read<ProcedureConfig> {
    Ok(vec![ProcedureConfig::Service(service::read(map)?)])
}

fn soaks(map: &Map<'_>) -> Read<ProcedureConfig> {
    Ok(soak::read(map)?
        .into_iter()
        .map(ProcedureConfig::Soak)
        .collect())
}

fn loss_curve(map: &Map<'_>) -> Read<ProcedureConfig> {
    let max_load = max_load(map);
    let step = map.with_default("step", STEP_PERCENT_DEFAULT, |node| {
        // In range, so it fits.
        whole_percent(node, 1..=50).map(|percent| percent as u8)
    });
    let trial = map.with_default("duration", TRIAL_DEFAULT, trial_time);
    let drain = drain(map, Profile::Fast.times().drain);
    Ok(vec![ProcedureConfig::LossCurve {
        max_load: max_load?,
        step_percent: step?,
        trial: trial?,
        drain: drain?,
    }])
}

fn back_to_back(map: &Map<'_>) -> Read<ProcedureConfig> {
    let burst = map.with_default("burst", BURST_DEFAULT, |node| {
        node.duration(BURST_MIN..=BURST_MAX)
    });
    let bursts = map.with_default("bursts", BURSTS_DEFAULT, |node| {
        node.integer(1..=BURSTS_MAX)
    });
    let drain = drain(map, Profile::Fast.times().drain);
    Ok(vec![ProcedureConfig::BackToBack(BackToBack {
        burst_ns_max: nanos(burst?),
        bursts: bursts?,
        drain_ns: nanos(drain?),
    })])
}

fn latency(map: &Map<'_>) -> Read<ProcedureConfig> {
    let search = Search::read(map);
    let percents = map.with_default("loads", LATENCY_PERCENTS.to_vec(), |node| {
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
    let trials = map.with_default("trials", LATENCY_TRIALS_DEFAULT, |node| {
        node.integer(1..=LATENCY_TRIALS_MAX)
    });
    let paths: AxisValues<LatencyPath> = axis(map, "path", LatencyPath::OneWay, |node| {
        node.one_of("path", &LatencyPath::ALL.map(|it| (it.name(), it)))
    });
    let (search, percents, trial, trials) = (search?, percents?, trial?, trials?);
    let asked = |path: &Spanned<LatencyPath>| ProcedureConfig::Latency {
        search: search.clone(),
        percents: percents.clone(),
        trial,
        trials,
        path: path.clone(),
    };
    Ok(paths.all()?.iter().map(asked).collect())
}

fn recovery(map: &Map<'_>) -> Read<ProcedureConfig> {
    let search = Search::read(map);
    let times = Search::times(&search);
    let overload = map.with_default("overload", OVERLOAD_PERCENT, |node| {
        whole_percent(node, 101..=1000)
    });
    let relief = map.with_default("relief", RELIEF_PERCENT, |node| whole_percent(node, 1..=99));
    let overload_time = map.with_default("overload_time", times.recovery, trial_time);
    let relief_time = map.with_default("relief_time", times.recovery, trial_time);
    Ok(vec![ProcedureConfig::Recovery {
        search: search?,
        overload_percent: overload?,
        relief_percent: relief?,
        overload: overload_time?,
        relief: relief_time?,
    }])
}

impl ProcedureConfig {
    /// The procedure for frames of this mix.
    pub(crate) fn resolve(&self, mix: &FrameMix) -> Procedure {
        let frames =
            |rate: &Option<Spanned<Rate>>| rate.as_ref().map(|rate| rate.value.frames_per_s(mix));
        match self {
            Self::Load { rate, duration } => Procedure::Load(Load {
                frames_per_s: frames(rate),
                duration_ns: nanos(*duration),
            }),
            Self::Throughput(search) => Procedure::Throughput(search.resolve(mix)),
            Self::Mrr(asked) => Procedure::Mrr(asked.resolve(mix)),
            Self::Service(asked) => Procedure::Service(asked.resolve(mix)),
            Self::LossCurve {
                max_load,
                step_percent,
                trial,
                drain,
            } => Procedure::LossCurve(LossCurve {
                max_load: frames(max_load),
                step_percent: *step_percent,
                trial_ns: nanos(*trial),
                drain_ns: nanos(*drain),
            }),
            Self::BackToBack(test) => Procedure::BackToBack(test.clone()),
            Self::Latency {
                search,
                percents,
                trial,
                trials,
                path,
            } => Procedure::Latency(LatencyTest {
                search: search.resolve(mix),
                percents: percents.clone(),
                trial_ns: nanos(*trial),
                trials: *trials,
                path: path.value,
            }),
            Self::Recovery {
                search,
                overload_percent,
                relief_percent,
                overload,
                relief,
            } => Procedure::Recovery(Recovery {
                search: search.resolve(mix),
                overload_percent: *overload_percent,
                relief_percent: *relief_percent,
                overload_ns: nanos(*overload),
                relief_ns: nanos(*relief),
            }),
            Self::Disturbed(asked) => Procedure::Disturbed(asked.resolve(mix)),
            Self::Soak(asked) => Procedure::Soak(asked.resolve(mix)),
        }
    }

    /// The place of a feature that some DUTs do not support; `None` if every DUT does.
    pub(crate) const fn event_place(&self) -> Option<&Place> {
        match self {
            Self::Disturbed(asked) => Some(&asked.place),
            _ => None,
        }
    }

    /// Returns the place that asks for round trips.
    pub(crate) fn round_trips(&self) -> Option<&Place> {
        match self {
            Self::Latency { path, .. } if path.value == LatencyPath::RoundTrip => Some(&path.place),
            _ => None,
        }
    }

    /// Loads that were given, which may be above a lab's line rate.
    pub(crate) fn loads(&self) -> impl Iterator<Item = &Spanned<Rate>> {
        let (first, second) = match self {
            Self::Load { rate: load, .. } | Self::LossCurve { max_load: load, .. } => {
                (load.as_ref(), None)
            }
            Self::Throughput(search)
            | Self::Latency { search, .. }
            | Self::Recovery { search, .. } => search.loads(),
            Self::Mrr(asked) => (asked.load(), None),
            Self::Service(asked) => asked.rates(),
            Self::Disturbed(asked) => asked.loads(),
            Self::Soak(asked) => asked.loads(),
            Self::BackToBack(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Loads and times that do not go together for some mix.
    pub(crate) fn check(&self, node: Node<'_>, mixes: &AxisValues<FrameMix>) {
        let mixes = || mixes.iter().map(|mix| &mix.value);
        match self {
            Self::Throughput(search) | Self::Recovery { search, .. } => search.check(node, mixes),
            Self::Latency {
                search,
                percents,
                trial,
                ..
            } => {
                search.check(node, mixes);
                // The other loads are shares of the throughput.
                if percents.contains(&0) {
                    search.check_lowest(node, mixes, *trial);
                }
            }
            Self::LossCurve {
                max_load: Some(load),
                step_percent,
                trial,
                ..
            } => {
                let highest = mixes().map(|mix| load.value.frames_per_s(mix)).min();
                let lowest = highest.map(|highest| highest * lowest_percent(*step_percent) / 100);
                if lowest.is_some_and(|lowest| is_empty(lowest, *trial)) {
                    let time = units::time::print(*trial);
                    let what = format!(
                        "in {time} at the lowest load, {} % of {}, there is no frame",
                        lowest_percent(*step_percent),
                        load.value
                    );
                    let help = "raise `max_load`, `step` or `duration`";
                    node.mistake_at(&load.place, what, help);
                }
            }
            Self::Load {
                rate: Some(rate),
                duration,
            } => {
                let load = mixes().map(|mix| rate.value.frames_per_s(mix)).min();
                if load.is_some_and(|load| is_empty(load, *duration)) {
                    let time = units::time::print(*duration);
                    let what = format!("in {time} at {} there is no frame", rate.value);
                    node.mistake_at(&rate.place, what, "raise `rate` or `duration`");
                }
            }
            Self::Mrr(asked) => asked.check(node, mixes()),
            Self::Service(asked) => asked.check(node, mixes()),
            Self::Disturbed(asked) => asked.check(node, mixes),
            Self::Soak(asked) => asked.check(node, mixes),
            Self::Load { rate: None, .. }
            | Self::LossCurve { max_load: None, .. }
            | Self::BackToBack(_) => {}
        }
    }

    /// Its coordinates, in the order of ids.
    pub(crate) fn coordinates(&self) -> Vec<Coordinate> {
        match self {
            Self::Load { rate, duration } => vec![
                Axis::Rate.at(rate.as_ref().map(|load| load.value)),
                Axis::Duration.at(*duration),
            ],
            Self::Throughput(search) => search.coordinates(),
            Self::Mrr(asked) => asked.coordinates(),
            Self::Service(asked) => asked.coordinates(),
            Self::LossCurve {
                max_load,
                step_percent,
                trial,
                drain,
            } => vec![
                Axis::MaxLoad.at(max_load.as_ref().map(|load| load.value)),
                Axis::Step.at(*step_percent),
                Axis::Duration.at(*trial),
                Axis::Drain.at(*drain),
            ],
            Self::BackToBack(test) => vec![
                Axis::Burst.at(test.burst_ns_max),
                Axis::Bursts.at(test.bursts),
                Axis::Drain.at(test.drain_ns),
            ],
            Self::Latency {
                search,
                percents,
                trial,
                trials,
                path,
            } => {
                let loads: Vec<_> = percents
                    .iter()
                    .map(|percent| format!("{percent}%"))
                    .collect();
                let mut axes = search.coordinates();
                axes.push(Axis::Loads.at(loads.join("+")));
                axes.push(Axis::Duration.at(*trial));
                axes.push(Axis::Trials.at(*trials));
                axes.push(Axis::Path.at(path.value));
                axes
            }
            Self::Recovery {
                search,
                overload_percent,
                relief_percent,
                overload,
                relief,
            } => {
                let mut axes = search.coordinates();
                axes.push(Axis::Overload.at(*overload_percent));
                axes.push(Axis::Relief.at(*relief_percent));
                axes.push(Axis::OverloadTime.at(*overload));
                axes.push(Axis::ReliefTime.at(*relief));
                axes
            }
            Self::Disturbed(asked) => asked.coordinates(),
            Self::Soak(asked) => asked.coordinates(),
        }
    }
}

/// The lowest load of a loss curve, in per cent of the highest.
fn lowest_percent(step_percent: u8) -> u64 {
    let step = u64::from(step_percent.max(1));
    100 - (100 - 1) / step * step
}

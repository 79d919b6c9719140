//! Disturbances of a DUT under a constant load: the keys of `rekey`, `failover`, `reset`, `setup`,
//! `desync` and `hostile`.

use super::ProcedureConfig;
use crate::axis::{RUN_MAX, required_axis};
use crate::frames::keys::{is_empty, trial_time, whole_percent};
use crate::frames::rate::{self, Rate};
use crate::frames::search::{self, Search};
use plan::{Attack, Axis, BaseLoad, Coordinate, Desync, Disturbed, Event, Procedure, nanos};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::{Map, Node, Place, Reported, Spanned};

#[derive(Debug)]
pub(super) struct Config {
    load: Load,
    event: Event,
    /// The place of the event that a DUT must support: a value of an axis, or the trial.
    place: Place,
}

/// A load that is given, or a share of the throughput.
#[derive(Debug, Clone)]
pub(super) enum Load {
    Given(Spanned<Rate>),
    Share { percent: u8, search: Box<Search> },
}

const PERCENT_DEFAULT: u8 = 50;
const REKEY_EVERY_DEFAULT: Duration = Duration::from_secs(1);
const REKEY_DURATION_DEFAULT: Duration = Duration::from_secs(20);
/// Each is recorded.
const REKEYS_MAX: u128 = 10_000;
const FAILURES_DEFAULT: u32 = 5;
const DOWN_DEFAULT: Duration = Duration::from_secs(1);
/// Encryptors that exchange keys need seconds to find each other again.
const FAILOVER_WATCH_DEFAULT: Duration = Duration::from_secs(5);
const RESETS_DEFAULT: u32 = 5;
/// A reset is followed by what encryptors that exchange keys need, as a failure is.
const RESET_WATCH_DEFAULT: Duration = FAILOVER_WATCH_DEFAULT;
const SETUPS_DEFAULT: u32 = 10;
const SETUP_WATCH_DEFAULT: Duration = Duration::from_secs(2);
const DESYNCS_DEFAULT: u32 = 5;
const DESYNC_WATCH_DEFAULT: Duration = Duration::from_secs(5);
const TIMES_MAX: u32 = 1000;
/// From a failure to its end, and the time watched afterwards.
const PHASE_MIN: Duration = Duration::from_millis(10);
const PHASE_MAX: Duration = Duration::from_secs(3600);
const SHARES_DEFAULT: [u16; 5] = [1, 10, 50, 100, 200];
const SHARE_MAX: u16 = 1000;
const HOSTILE_DURATION_DEFAULT: Duration = Duration::from_secs(5);

pub(super) fn rekey(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let every = map.with_default("every", map.node().spanned(REKEY_EVERY_DEFAULT), |node| {
        Ok(node.spanned(node.duration(PHASE_MIN..=RUN_MAX)?))
    });
    let duration = map.with_default("duration", REKEY_DURATION_DEFAULT, trial_time);
    let throughput = searched_again(map, &load);
    let (load, every, duration, throughput) = (load?, every?, duration?, throughput?);
    if every.value >= duration {
        let print = units::time::print;
        let what = format!(
            "a trial of {} ends before the first rekey, after {}",
            print(duration),
            print(every.value)
        );
        return Err(map.node().mistake_at(
            &every.place,
            what,
            "raise `duration`, or lower `every`",
        ));
    }
    // Not zero: `every` is at least `PHASE_MIN`.
    let rekeys = duration.as_nanos() / every.value.as_nanos();
    if rekeys > REKEYS_MAX {
        let what = format!(
            "a trial of {} has {rekeys} rekeys",
            units::time::print(duration)
        );
        let help = format!("raise `every`, or lower `duration`: at most {REKEYS_MAX} are recorded");
        return Err(map.node().mistake_at(&every.place, what, help));
    }
    let event = Event::Rekey {
        every_ns: nanos(every.value),
        duration_ns: nanos(duration),
        throughput,
    };
    Ok(vec![Config::new(load, event, map.node().place())])
}

/// Whether the throughput is searched with rekeys too: a load that is given has none.
fn searched_again(map: &Map<'_>, load: &Result<Load, Reported>) -> Result<bool, Reported> {
    let Some(node) = map.optional("throughput") else {
        return Ok(false);
    };
    let wanted = node.bool()?;
    if wanted && matches!(load, Ok(Load::Given(_))) {
        return Err(node.mistake(
            "`load` is a rate, so no throughput is searched for that another could be held against",
            "write `load` as a share of the throughput, or leave `throughput` out",
        ));
    }
    Ok(wanted)
}

pub(super) fn failover(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let failures = required_axis(map, "failure", |node| node.choice("failure"));
    let times = times(map, FAILURES_DEFAULT);
    let down = map.with_default("down", DOWN_DEFAULT, phase);
    let watch = map.with_default("watch", FAILOVER_WATCH_DEFAULT, phase);
    let (load, times, down, watch) = (load?, times?, down?, watch?);
    let failures = failures.all()?;
    let asked = failures.into_iter().map(|failure| {
        let event = Event::Failover {
            failure: failure.value,
            times,
            down_ns: nanos(down),
            watch_ns: nanos(watch),
        };
        Config::new(load.clone(), event, failure.place)
    });
    Ok(asked.collect())
}

pub(super) fn reset(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let kinds = required_axis(map, "kind", |node| node.choice("kind"));
    let times = times(map, RESETS_DEFAULT);
    let watch = map.with_default("watch", RESET_WATCH_DEFAULT, phase);
    let (load, times, watch) = (load?, times?, watch?);
    let kinds = kinds.all()?;
    let asked = kinds.into_iter().map(|kind| {
        let event = Event::Reset {
            kind: kind.value,
            times,
            watch_ns: nanos(watch),
        };
        Config::new(load.clone(), event, kind.place)
    });
    Ok(asked.collect())
}

pub(super) fn setup(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let times = times(map, SETUPS_DEFAULT);
    let watch = map.with_default("watch", SETUP_WATCH_DEFAULT, phase);
    let event = Event::Setup {
        times: times?,
        watch_ns: nanos(watch?),
    };
    Ok(vec![Config::new(load?, event, map.node().place())])
}

pub(super) fn desync(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let causes = required_axis(map, "cause", |node| {
        node.one_of("cause", &Desync::ALL.map(|it| (it.name(), it)))
    });
    let times = times(map, DESYNCS_DEFAULT);
    let watch = map.with_default("watch", DESYNC_WATCH_DEFAULT, phase);
    let (load, times, watch) = (load?, times?, watch?);
    let causes = causes.all()?;
    let asked = causes.into_iter().map(|cause| {
        let event = Event::Desync {
            cause: cause.value,
            times,
            watch_ns: nanos(watch),
        };
        Config::new(load.clone(), event, cause.place)
    });
    Ok(asked.collect())
}

pub(super) fn hostile(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let attacks = required_axis(map, "attack", |node| {
        node.one_of("attack", &Attack::ALL.map(|it| (it.name(), it)))
    });
    let percents = map.with_default("shares", SHARES_DEFAULT.to_vec(), shares);
    let duration = map.with_default("duration", HOSTILE_DURATION_DEFAULT, trial_time);
    let (load, percents, duration) = (load?, percents?, duration?);
    let attacks = attacks.all()?;
    let asked = attacks.into_iter().map(|attack| {
        let event = Event::Hostile {
            attack: attack.value,
            percents: percents.clone(),
            trial_ns: nanos(duration),
        };
        Config::new(load.clone(), event, attack.place)
    });
    Ok(asked.collect())
}

/// Rising, so that a lower share is measured before a higher one can disturb it.
fn shares(node: Node<'_>) -> Result<Vec<u16>, Reported> {
    let mut percents: Vec<u16> = Vec::new();
    node.one_or_many(|item| {
        let percent = whole_percent(item, 1..=SHARE_MAX)?;
        if percents.last().is_some_and(|last| *last >= percent) {
            let help = "write the shares rising, each once";
            return Err(item.mistake("this share is not above the one before", help));
        }
        percents.push(percent);
        Ok(())
    })?;
    Ok(percents)
}

fn times(map: &Map<'_>, default: u32) -> Result<u32, Reported> {
    map.with_default("times", default, |node| node.integer(1..=TIMES_MAX))
}

fn phase(node: Node<'_>) -> Result<Duration, Reported> {
    node.duration(PHASE_MIN..=PHASE_MAX)
}

impl Load {
    /// A rate, or a share of the throughput: then the keys of its search are known too.
    pub(super) fn read(map: &Map<'_>) -> Result<Self, Reported> {
        let node = map.optional("load");
        // Anything but a share is read as a rate, which reports it if it is neither.
        let is_rate = |node: &Node<'_>| !node.text().is_ok_and(|text| text.ends_with('%'));
        if let Some(node) = node.filter(is_rate) {
            let rate = rate::read(node).map(|rate| Self::Given(node.spanned(rate)));
            // The keys of a search are requested in both cases, and refused here with the reason.
            return search::refuse(map, "`load` is a rate, so nothing is searched for").and(rate);
        }
        let search = Search::read(map);
        let percent = node.map_or(Ok(PERCENT_DEFAULT.into()), |node| {
            whole_percent(node, 1..=100)
        });
        Ok(Self::Share {
            // In range, so it fits.
            percent: percent? as u8,
            search: Box::new(search?),
        })
    }

    /// The load for frames of this mix.
    pub(super) fn resolve(&self, mix: &FrameMix) -> BaseLoad {
        match self {
            Self::Given(rate) => BaseLoad::Given {
                frames_per_s: rate.value.frames_per_s(mix),
            },
            Self::Share { percent, search } => BaseLoad::Share {
                percent: *percent,
                search: search.resolve(mix),
            },
        }
    }

    pub(super) fn loads(&self) -> Vec<&Spanned<Rate>> {
        match self {
            Self::Given(rate) => vec![rate],
            Self::Share { search, .. } => search.loads(),
        }
    }

    /// Its coordinates, in the order of ids.
    pub(super) fn coordinates(&self) -> Vec<Coordinate> {
        match self {
            Self::Given(rate) => vec![Axis::Load.at(rate.value)],
            Self::Share { percent, search } => {
                let mut at = vec![Axis::Load.at(*percent)];
                at.extend(search.coordinates());
                at
            }
        }
    }

    /// Reports wrong bounds of a search, or a load without a frame in that time, for some mix. The
    /// smallest share of the load is checked too.
    pub(super) fn check(
        &self,
        node: Node<'_>,
        mixes: &[&FrameMix],
        (shortest, percent): (Duration, u16),
    ) {
        let rate = match self {
            Self::Given(rate) => rate,
            // The throughput is not known before it is measured, so a share of it cannot be
            // checked here.
            Self::Share { search, .. } => return search.check(node, mixes),
        };
        let Some(least) = mixes.iter().map(|mix| rate.value.frames_per_s(mix)).min() else {
            return;
        };
        let time = units::time::print(shortest);
        if is_empty(least, shortest) {
            let what = format!("in {time} at {} there is no frame", rate.value);
            node.mistake_at(&rate.place, what, "raise `load`, or the time");
        } else if is_empty(least * u64::from(percent) / 100, shortest) {
            let what = format!(
                "in {time} at {percent} % of {} there is no hostile packet",
                rate.value
            );
            node.mistake_at(&rate.place, what, "raise `load`, or the least share");
        }
    }
}

impl Config {
    const fn new(load: Load, event: Event, place: Place) -> Self {
        Self { load, event, place }
    }

    /// The shortest observed time, and the smallest share of the load in it.
    fn shortest(&self) -> (Duration, u16) {
        let (ns, percent) = match &self.event {
            Event::Rekey { every_ns, .. } => (*every_ns, 100),
            // Loss is counted while the part is down, and again while the path recovers.
            Event::Failover {
                down_ns, watch_ns, ..
            } => (*down_ns.min(watch_ns), 100),
            Event::Reset { watch_ns, .. }
            | Event::Setup { watch_ns, .. }
            | Event::Desync { watch_ns, .. } => (*watch_ns, 100),
            Event::Hostile {
                percents, trial_ns, ..
            // Hostile packets are counted by themselves. Their lowest share comes first, and the
            // load itself limits shares above 100 %.
            } => (*trial_ns, percents.first().copied().unwrap_or(100).min(100)),
        };
        (Duration::from_nanos(ns), percent)
    }
}

impl ProcedureConfig for Config {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        Procedure::Disturbed(Disturbed {
            load: self.load.resolve(mix),
            event: self.event.clone(),
        })
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        self.load.loads()
    }

    fn event_place(&self) -> Option<&Place> {
        Some(&self.place)
    }

    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        self.load.check(node, mixes, self.shortest());
    }

    fn coordinates(&self) -> Vec<Coordinate> {
        let mut at = match &self.event {
            Event::Rekey {
                every_ns,
                duration_ns,
                ..
            } => vec![Axis::Every.at(*every_ns), Axis::Duration.at(*duration_ns)],
            Event::Failover {
                failure,
                times,
                down_ns,
                watch_ns,
            } => vec![
                Axis::Failure.at(failure.name()),
                Axis::Times.at(*times),
                Axis::Down.at(*down_ns),
                Axis::Watch.at(*watch_ns),
            ],
            Event::Reset {
                kind,
                times,
                watch_ns,
            } => vec![
                Axis::Kind.at(kind.name()),
                Axis::Times.at(*times),
                Axis::Watch.at(*watch_ns),
            ],
            Event::Setup { times, watch_ns } => {
                vec![Axis::Times.at(*times), Axis::Watch.at(*watch_ns)]
            }
            Event::Desync {
                cause,
                times,
                watch_ns,
            } => vec![
                Axis::Cause.at(cause.name()),
                Axis::Times.at(*times),
                Axis::Watch.at(*watch_ns),
            ],
            Event::Hostile {
                attack,
                percents,
                trial_ns,
            } => {
                let shares = percents.iter().map(|percent| format!("{percent}%"));
                vec![
                    Axis::Attack.at(attack.name()),
                    // One cell measures all shares, so they are one value of the axis.
                    Axis::Shares.at(shares.collect::<Vec<_>>().join("+")),
                    Axis::Duration.at(*trial_ns),
                ]
            }
        };
        at.extend(self.load.coordinates());
        at
    }
}

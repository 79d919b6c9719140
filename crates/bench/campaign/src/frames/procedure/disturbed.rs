//! Disturbances of a DUT under a constant load: the keys of `rekey`, `failover`, `reset`, `setup`,
//! `desync` and `hostile`.

use super::ProcedureConfig;
use crate::axis::{Axes, RUN_MAX};
use crate::frames::keys::{SEARCHED, TRAFFIC, TRIAL, is_empty};
use crate::frames::rate::{self, Rate};
use crate::frames::search::{self, Search};
use crate::keys::{OF_ALL, millis, seconds};
use plan::{
    Attack, Axis, BaseLoad, Coordinate, Desync, Disturbed, Event, Failure, Procedure, Reset,
};
use std::time::Duration;
use wire::mix::FrameMix;
use yaml::Absent::{Default, Required};
use yaml::{FromNode, Key, Map, Node, Place, Reported, Spanned, Value};

/// The load of each, a key of soaks too.
#[rustfmt::skip]
pub(super) const LOAD: Key = Key::new("load", Value::Any(&[SHARE, rate::LOAD]), Default("50 %"),
    "In each direction. A ratio is a share of the throughput of the first goal, which is searched \
     first: the keys of searches apply then, and then only")
    .words("load or ratio").range("1 frame/s to 1 G frames/s, or 1 % to 100 %, whole");
const SHARE: Value = Value::Percent(1, 100);
/// Keys of all of them, in a separate table.
const OF_EACH: Key = Key::group("(load)", &[LOAD]);

#[rustfmt::skip]
pub(super) const REKEY: &[Key] = &[
    OF_ALL, TRAFFIC, SEARCHED, OF_EACH,
    Key::new("every", Value::Time(PHASE_MIN, RUN_MAX), Default("1 s"),
        "Interval between rekeys; one that takes longer delays the next")
        .range("10 ms to 24 h, below `duration`, at least a 10 000th of it"),
    Key::new("duration", TRIAL, Default("20 s"), "Time of each of the two trials"),
    Key::new("throughput", Value::Switch, Default("off"),
        "Search for the throughput again, with rekeys in each trial of the search; the figure is \
         the ratio to the throughput without rekeys")
        .range("only with a `load` that is a share"),
];
#[rustfmt::skip]
pub(super) const FAILOVER: &[Key] = &[
    OF_ALL, TRAFFIC, SEARCHED, OF_EACH,
    Key::new("failure", Value::Axis(&Value::Name(Value::variants::<Failure>)), Required,
        "The encryptor on gw2 is killed (SIGKILL) and started again; or the link between the \
         gateways goes down at gw1 and comes up again; or the encryptor on gw1 crashes while a \
         default route of that gateway leads past it, which shows [whether it fails \
         closed](methodology/events.md#whether-an-encryptor-fails-closed)"),
    TIMES,
    Key::new("down", PHASE, Default("1 s"),
        "From the failure to its end: the start of the encryptor, or the link coming up"),
    WATCH,
];
#[rustfmt::skip]
pub(super) const RESET: &[Key] = &[
    OF_ALL, TRAFFIC, SEARCHED, OF_EACH,
    Key::new("kind", Value::Axis(&Value::Name(Value::variants::<Reset>)), Required,
        "Its processes are killed (SIGKILL), or terminated (SIGTERM), and started immediately \
         with the same configuration; for `external` boxes only: the command `reset` of the box \
         at B's side"),
    TIMES,
    WATCH.meaning("From one reset to the next: longer than the device takes to recover"),
];
#[rustfmt::skip]
pub(super) const SETUP: &[Key] = &[
    OF_ALL, TRAFFIC, SEARCHED, OF_EACH,
    TIMES.default("10"),
    WATCH.default("2 s"),
];
#[rustfmt::skip]
pub(super) const DESYNC: &[Key] = &[
    OF_ALL, TRAFFIC, SEARCHED, OF_EACH,
    Key::new("cause", Value::Axis(&Value::Name(|| Desync::ALL.map(Desync::name).to_vec())),
        Required,
        "gw2's keys for the current epoch differ from gw1's; or it misses a rollover to the next"),
    TIMES,
    WATCH.meaning("Time watched after each"),
];
#[rustfmt::skip]
pub(super) const HOSTILE: &[Key] = &[
    OF_ALL, TRAFFIC, SEARCHED, OF_EACH,
    Key::new("attack", Value::Axis(&Value::Name(|| Attack::ALL.map(Attack::name).to_vec())),
        Required,
        "Sealed packets with a new sequence number and a wrong check value; copies of sealed \
         packets; random bytes after the outer headers"),
    Key::new("shares", Value::OneOrMany(&HOSTILE_SHARE), Default("[1 %, 10 %, 50 %, 100 %, 200 %]"),
        "Their rates, as shares of the load's")
        .words("list of ratios").range("1 % to 1000 %, whole, rising"),
    Key::new("duration", TRIAL, Default("5 s"), "Time of each trial"),
];

const HOSTILE_SHARE: Value = Value::Percent(1, 1000);
const TIMES: Key = Key::new("times", Value::Integer(1, 1000), Default("5"), "How often");
/// Encryptors that exchange keys need seconds to find each other again.
const WATCH: Key = Key::new("watch", PHASE, Default("5 s"), "Time watched afterwards");
/// From a failure to its end, and the time watched afterwards.
const PHASE: Value = Value::Time(PHASE_MIN, seconds(3600));
const PHASE_MIN: Duration = millis(10);
/// Each is recorded.
const REKEYS_MAX: u128 = 10_000;

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

pub(super) fn rekey(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let (every, duration) = (
        map.spanned::<Duration>("every"),
        map.get::<Duration>("duration"),
    );
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
        every_ns: plan::nanos(every.value),
        duration_ns: plan::nanos(duration),
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

/// One trial for each value of an axis, which selects the event.
fn each<T>(
    axes: &Axes<'_, '_>,
    (load, values): (Result<Load, Reported>, Vec<Spanned<T>>),
    event: impl Fn(T) -> Result<Event, Reported>,
) -> Result<Vec<Config>, Reported> {
    axes.done()?;
    let load = load?;
    let of = |value: Spanned<T>| {
        let event = event(value.value)?;
        Ok(Config::new(load.clone(), event, value.place))
    };
    values.into_iter().map(of).collect()
}

pub(super) fn failover(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let (load, axes) = (Load::read(map), Axes::of(map));
    let failures = axes.read("failure", |node| node.choice("failure"));
    let (times, down, watch) = (map.get("times"), map.get("down"), map.get("watch"));
    each(&axes, (load, failures), |failure| {
        Ok(Event::Failover {
            failure,
            times: times?,
            down_ns: down?,
            watch_ns: watch?,
        })
    })
}

pub(super) fn reset(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let (load, axes) = (Load::read(map), Axes::of(map));
    let kinds = axes.read("kind", |node| node.choice("kind"));
    let (times, watch) = (map.get("times"), map.get("watch"));
    each(&axes, (load, kinds), |kind| {
        Ok(Event::Reset {
            kind,
            times: times?,
            watch_ns: watch?,
        })
    })
}

pub(super) fn setup(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let (times, watch) = (map.get("times"), map.get("watch"));
    let event = Event::Setup {
        times: times?,
        watch_ns: watch?,
    };
    Ok(vec![Config::new(load?, event, map.node().place())])
}

pub(super) fn desync(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let (load, axes) = (Load::read(map), Axes::of(map));
    let causes = axes.read("cause", |node| {
        node.one_of("cause", &Desync::ALL.map(|it| (it.name(), it)))
    });
    let (times, watch) = (map.get("times"), map.get("watch"));
    each(&axes, (load, causes), |cause| {
        Ok(Event::Desync {
            cause,
            times: times?,
            watch_ns: watch?,
        })
    })
}

pub(super) fn hostile(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let (load, axes) = (Load::read(map), Axes::of(map));
    let attacks = axes.read("attack", |node| {
        node.one_of("attack", &Attack::ALL.map(|it| (it.name(), it)))
    });
    let percents = map.read("shares", shares);
    let duration = map.get("duration");
    each(&axes, (load, attacks), |attack| {
        Ok(Event::Hostile {
            attack,
            percents: percents.clone()?,
            trial_ns: duration?,
        })
    })
}

/// Rising, so that a lower share is measured before a higher one can disturb it.
fn shares(node: Node<'_>) -> Result<Vec<u16>, Reported> {
    let mut percents: Vec<u16> = Vec::new();
    node.one_or_many(|item| {
        let percent = u16::from_node(item, &HOSTILE_SHARE)?;
        if percents.last().is_some_and(|last| *last >= percent) {
            let help = "write the shares rising, each once";
            return Err(item.mistake("this share is not above the one before", help));
        }
        percents.push(percent);
        Ok(())
    })?;
    Ok(percents)
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
        let percent = map.read("load", |node| u8::from_node(node, &SHARE));
        Ok(Self::Share {
            percent: percent?,
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

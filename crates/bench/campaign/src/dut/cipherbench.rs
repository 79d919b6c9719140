//! The settings of the project's encryptor, each an axis, and checks which of them are
//! incompatible.

use super::entry::{Entry, Variants, WeakAllowed, name, suite, suites};
use crate::axis::{AxisValues, RUN_MAX, axis};
use catalog::{Choice, CpuChoice};
use plan::{Encryptor, KeySource, Mode, compact, compact_time, nanos};
use std::time::Duration;
use units::{BitRate, Layer};
use wire::Suite;
use yaml::{Map, Node, Reported};

/// Most worker threads per gateway.
const WORKERS_MAX: u16 = 256;
/// Most tunnels of one encryptor.
const TUNNELS_MAX: u16 = 1000;

/// Minimum lifetime of agreed keys: a handshake of each tunnel takes milliseconds.
const REKEY_EVERY_MIN: Duration = Duration::from_millis(100);

/// Settings that vary are added to the name, in this order: mode, suite, workers, tunnels, engine,
/// aggregation, polling, keys, time of a rekey.
pub(super) fn read(map: &Map<'_>) -> Result<Entry<Encryptor>, Reported> {
    let name = name(map, "cipherbench");
    let allowed = WeakAllowed::read(map);
    let axes = Axes {
        mode: axis(map, "mode", Mode::L3, |node| node.choice("mode")),
        suite: suites(map, Suite::Aes256Gcm, &allowed, |node, allowed| {
            suite(node, &Suite::ALL, allowed)
        }),
        workers: axis(map, "workers", 1, |node| node.integer(1..=WORKERS_MAX)),
        tunnels: axis(map, "tunnels", 1, |node| node.integer(1..=TUNNELS_MAX)),
        engine: axis(map, "engine", Choice::Auto, engine),
        aggregate: axis(map, "aggregate", false, Node::bool),
        busy_poll: axis(map, "busy_poll", false, Node::bool),
        keys: axis(map, "keys", KeySource::Static, |node| {
            node.one_of(
                "key source",
                &KeySource::ALL.map(|keys| (keys.name(), keys)),
            )
        }),
        rekey_every: axis(map, "rekey_every", KeySource::REKEY_EVERY, |node| {
            node.duration(REKEY_EVERY_MIN..=RUN_MAX)
        }),
    };
    axes.check(map.node());
    axes.variants().named(name)
}

struct Axes {
    mode: AxisValues<Mode>,
    suite: AxisValues<Suite>,
    workers: AxisValues<u16>,
    tunnels: AxisValues<u16>,
    engine: AxisValues<Choice>,
    aggregate: AxisValues<bool>,
    busy_poll: AxisValues<bool>,
    keys: AxisValues<KeySource>,
    rekey_every: AxisValues<Duration>,
}

/// A name, or a map as the encryptor's configuration has it. The control cannot be combined: the
/// other end could not distinguish its packets from others.
fn engine(node: Node<'_>) -> Result<Choice, Reported> {
    let choice = choice::read(node, true)?;
    if node.is_map() && choice.is_null() {
        let what = "the control `null` is one of several engines";
        return Err(node.mistake(what, "measure it alone: `engine: \"null\"`"));
    }
    Ok(choice)
}

/// An engine as in names of DUTs.
fn word(choice: &Choice) -> String {
    match choice {
        Choice::Auto => "auto".to_owned(),
        Choice::Named(name) => name.clone(),
        Choice::Threshold {
            below,
            small,
            large,
        } => format!("{small} below {below} else {large}"),
        Choice::Model { model, otherwise } => {
            let (latency, rate) = (compact_time(model.latency), model.rate_bps);
            let rate = compact(&BitRate::new(rate, Layer::Ip));
            let rest = otherwise
                .as_ref()
                .map(|otherwise| format!(" else {otherwise}"));
            format!("model {latency} {rate}{}", rest.unwrap_or_default())
        }
    }
}

/// The engines that a choice names.
fn named(choice: &Choice) -> Vec<&str> {
    let one = |choice| match choice {
        &CpuChoice::Auto => None,
        CpuChoice::Named(name) => Some(name.as_str()),
    };
    match choice {
        Choice::Auto => Vec::new(),
        Choice::Named(name) => vec![name],
        Choice::Threshold { small, large, .. } => vec![small, large],
        Choice::Model { model, otherwise } => {
            let otherwise = otherwise.as_ref().and_then(one);
            one(&model.engine).into_iter().chain(otherwise).collect()
        }
    }
}

impl Axes {
    /// Checks axes against each other.
    fn check(&self, node: Node<'_>) {
        self.check_sas(node);
        self.check_engines(node);
        self.check_keys(node);
        let Some(bridging) = self.mode.iter().find(|mode| mode.value.bridges()) else {
            return;
        };
        let mode = bridging.value.name();
        if let Some(many) = self.tunnels.iter().find(|tunnels| tunnels.value > 1) {
            let what = format!(
                "{} tunnels, and `mode: {mode}` has one: it joins two interfaces",
                many.value
            );
            node.mistake_at(&many.place, what, "write `tunnels: 1`, or `mode: l3`");
        }
        if let Some(aggregate) = self.aggregate.iter().find(|aggregate| aggregate.value) {
            let what = format!("`aggregate` packs IP packets, and `mode: {mode}` carries frames");
            let help = "leave `aggregate` off, or write `mode: l3`";
            node.mistake_at(&aggregate.place, what, help);
        }
    }

    /// Without ESP there are no keys, and static ones are not renewed by time.
    fn check_keys(&self, node: Node<'_>) {
        let agreed = || self.keys.iter().filter(|keys| keys.value.is_agreed());
        let clear = self.mode.iter().find(|mode| !mode.value.has_esp());
        if let (Some(mode), Some(keys)) = (clear, agreed().next()) {
            let (mode, keys_name) = (mode.value.name(), keys.value.name());
            let what = format!("`mode: {mode}` has no keys, and `{keys_name}` agrees on some");
            let help = "write `mode: l2tpv3`, which is the same in ESP, or leave `keys` out";
            node.mistake_at(&keys.place, what, help);
        }
        // An unreadable value may have been an agreed key source.
        let given = self.rekey_every.iter().next();
        // A default has the place of the map, and applies to agreed keys only.
        let given = given.filter(|every| every.place != node.place());
        if let Some(every) = given
            && self.keys.is_whole()
            && agreed().next().is_none()
        {
            let what = "static keys are not renewed by time";
            let help = "leave `rekey_every` out, or write `keys: pqc`; the trial `rekey` renews static ones on demand";
            node.mistake_at(&every.place, what, help);
        }
    }

    /// Keys have room for a limited number of SAs.
    fn check_sas(&self, node: Node<'_>) {
        // Axes multiply: each number of tunnels meets the most workers in some DUT.
        let most_workers = self.workers.iter().max_by_key(|workers| workers.value);
        let most_workers = most_workers.map_or(1, |workers| u32::from(workers.value));
        for tunnels in self.tunnels.iter() {
            let sas = u32::from(tunnels.value) * most_workers;
            if sas > Encryptor::SAS_MAX {
                let what = format!(
                    "{} tunnels with {most_workers} workers are {sas} SAs a direction, and keys have \
                     room for {}",
                    tunnels.value,
                    Encryptor::SAS_MAX
                );
                let help = format!("write `tunnels: {}`", Encryptor::SAS_MAX / most_workers);
                node.mistake_at(&tunnels.place, what, help + " or less, or fewer workers");
            }
        }
    }

    /// Each engine that is named has every suite.
    fn check_engines(&self, node: Node<'_>) {
        // Without ESP the engine is not used at all, and any is accepted.
        if self.mode.iter().all(|mode| !mode.value.has_esp()) {
            return;
        }
        for engine in self.engine.iter() {
            let missing = named(&engine.value).into_iter().find_map(|name| {
                let mut suites = self.suite.iter().map(|suite| suite.value);
                let suite = suites.find(|suite| !catalog::serves(name, *suite))?;
                Some((name, suite))
            });
            let Some((name, suite)) = missing else {
                continue;
            };
            let have: Vec<_> = catalog::engines()
                .filter(|engine| catalog::serves(engine, suite))
                .map(|engine| format!("`{engine}`"))
                .collect();
            let help = format!(
                "write `engine: auto`, or one that has it: {}; other suites go into a DUT of their own",
                have.join(", ")
            );
            let what = format!("engine `{name}` does not have `{suite}`");
            node.mistake_at(&engine.place, what, help);
        }
    }

    /// Static keys are not renewed by time: all times make one DUT of them.
    fn variants(self) -> Variants<Encryptor> {
        Variants::of(Encryptor::new(Suite::Aes256Gcm))
            .by(self.mode, |it, mode| {
                it.mode = mode;
                mode.name()
            })
            .by(self.suite, |it, suite| {
                it.suite = suite;
                suite.name()
            })
            .by(self.workers, |it, workers| {
                it.workers = workers;
                format!("w{workers}")
            })
            .by(self.tunnels, |it, tunnels| {
                it.tunnels = tunnels;
                format!("t{tunnels}")
            })
            .by(self.engine, |it, engine| {
                it.engine = engine;
                word(&it.engine)
            })
            .by(self.aggregate, |it, aggregate| {
                it.aggregate = aggregate;
                if aggregate { "aggregate" } else { "" }
            })
            .by(self.busy_poll, |it, busy_poll| {
                it.busy_poll = busy_poll;
                if busy_poll { "polling" } else { "" }
            })
            .by(self.keys, |it, keys| {
                it.keys = keys;
                keys.name()
            })
            .by(self.rekey_every, |it, every| {
                // Follows the axis `keys`, which it depends on.
                it.rekey_every_ns = it.keys.is_agreed().then(|| nanos(every));
                match it.rekey_every_ns {
                    Some(_) => format!("every {}", compact_time(every)),
                    None => String::new(),
                }
            })
    }
}

//! The settings of our own encryptor, each an axis, and which of them do not go together.

use super::settings::{Encryptor, Mode};
use crate::adapter::entry::{DUTS_MAX, Entry, name, suite, with_suffix};
use crate::axis::{AxisValues, RUN_MAX, axis, nanos, product};
use crate::plan::keys::KeySource;
use crate::words::{compact, compact_time};
use choice::{Choice, CpuChoice};
use std::time::Duration;
use units::{BitRate, Layer};
use wire::Suite;
use yaml::{Map, Node, Reported, Spanned};

/// Most worker threads per gateway.
const WORKERS_MAX: u16 = 256;
/// Most tunnels of one encryptor.
const TUNNELS_MAX: u16 = 1000;

/// Keys that are agreed on are used no shorter: a handshake of each tunnel takes milliseconds.
const REKEY_EVERY_MIN: Duration = Duration::from_millis(100);

const KEY_SOURCES: [(&str, KeySource); 5] = [
    (KeySource::Static.name(), KeySource::Static),
    (KeySource::Pqc.name(), KeySource::Pqc),
    (KeySource::Ppk.name(), KeySource::Ppk),
    (KeySource::Qkd.name(), KeySource::Qkd),
    (KeySource::Both.name(), KeySource::Both),
];

const MODES: [(&str, Mode); 4] = [
    (Mode::L3.name(), Mode::L3),
    (Mode::L2.name(), Mode::L2),
    (Mode::L2tpv3.name(), Mode::L2tpv3),
    (Mode::L2tpv3Clear.name(), Mode::L2tpv3Clear),
];

/// Settings that vary are added to the name, in this order: mode, suite, workers, tunnels, engine,
/// aggregation, polling, keys, time of a rekey.
pub(in crate::adapter) fn read(map: &Map<'_>) -> Result<Entry<Encryptor>, Reported> {
    let name = name(map, "cipherbench");
    let legacy = map.with_default("legacy", false, Node::bool);
    let insecure = map.with_default("insecure", false, Node::bool);
    let axes = Axes {
        mode: axis(map, "mode", Mode::L3, |node| node.one_of("mode", &MODES)),
        suite: axis(map, "suite", Suite::Aes256Gcm, |node| {
            suite(node, &Suite::ALL, &legacy, &insecure)
        }),
        workers: axis(map, "workers", 1, |node| node.integer(1..=WORKERS_MAX)),
        tunnels: axis(map, "tunnels", 1, |node| node.integer(1..=TUNNELS_MAX)),
        engine: axis(map, "engine", Choice::Auto, engine),
        aggregate: axis(map, "aggregate", false, Node::bool),
        busy_poll: axis(map, "busy_poll", false, Node::bool),
        keys: axis(map, "keys", KeySource::Static, |node| {
            node.one_of("key source", &KEY_SOURCES)
        }),
        rekey_every: axis(map, "rekey_every", KeySource::REKEY_EVERY, |node| {
            node.duration(REKEY_EVERY_MIN..=RUN_MAX)
        }),
    };
    axes.check(map.node());
    let (name, values) = (name?, axes.all()?);
    legacy?;
    insecure?;
    let duts = values.duts(&name);
    Ok(Entry { name, duts })
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

struct Values {
    mode: Vec<Spanned<Mode>>,
    suite: Vec<Spanned<Suite>>,
    workers: Vec<Spanned<u16>>,
    tunnels: Vec<Spanned<u16>>,
    engine: Vec<Spanned<Choice>>,
    aggregate: Vec<Spanned<bool>>,
    busy_poll: Vec<Spanned<bool>>,
    keys: Vec<Spanned<KeySource>>,
    rekey_every: Vec<Spanned<Duration>>,
}

/// A name, or a map as the encryptor's configuration has it. The control stands alone: its packets
/// and others could not be told apart at the other end.
fn engine(node: Node<'_>) -> Result<Choice, Reported> {
    let choice = Choice::read(node, true)?;
    if node.is_map() && choice.is_null() {
        let what = "the control `null` is one of several engines";
        return Err(node.mistake(what, "measure it alone: `engine: \"null\"`"));
    }
    Ok(choice)
}

/// An engine as names of DUTs have it.
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
    /// Axes against one another.
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
        // What could not be read may have been one that is agreed on.
        let given = self.rekey_every.iter().next();
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

    /// Keys have room for so many SAs.
    fn check_sas(&self, node: Node<'_>) {
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
        if self.mode.iter().all(|mode| !mode.value.has_esp()) {
            return;
        }
        for engine in self.engine.iter() {
            let missing = named(&engine.value).into_iter().find_map(|name| {
                let mut suites = self.suite.iter().map(|suite| suite.value);
                let suite = suites.find(|suite| !choice::serves(name, *suite))?;
                Some((name, suite))
            });
            let Some((name, suite)) = missing else {
                continue;
            };
            let have: Vec<_> = choice::engines()
                .filter(|engine| choice::serves(engine, suite))
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

    fn all(self) -> Result<Values, Reported> {
        let Self {
            mode,
            suite,
            workers,
            tunnels,
            engine,
            aggregate,
            busy_poll,
            keys,
            rekey_every,
        } = self;
        Ok(Values {
            mode: mode.all()?,
            suite: suite.all()?,
            workers: workers.all()?,
            tunnels: tunnels.all()?,
            engine: engine.all()?,
            aggregate: aggregate.all()?,
            busy_poll: busy_poll.all()?,
            keys: keys.all()?,
            rekey_every: rekey_every.all()?,
        })
    }
}

impl Values {
    /// One more than there may be is enough to tell. Static keys are not renewed by time: the first
    /// of several times stands for all.
    fn duts(&self, name: &str) -> Vec<(String, Encryptor)> {
        let combinations = product([
            self.mode.len(),
            self.suite.len(),
            self.workers.len(),
            self.tunnels.len(),
            self.engine.len(),
            self.aggregate.len(),
            self.busy_poll.len(),
            self.keys.len(),
            self.rekey_every.len(),
        ]);
        let is_agreed = |keys: usize| self.keys[keys].value.is_agreed();
        let combinations =
            combinations.filter(|[.., keys, rekey_every]| *rekey_every == 0 || is_agreed(*keys));
        let mut duts = Vec::new();
        for [
            mode,
            suite,
            workers,
            tunnels,
            engine,
            aggregate,
            busy_poll,
            keys,
            rekey_every,
        ] in combinations.take(DUTS_MAX + 1)
        {
            let engine = &self.engine[engine].value;
            let rekey_every = is_agreed(keys).then(|| self.rekey_every[rekey_every].value);
            let encryptor = Encryptor {
                mode: self.mode[mode].value,
                suite: self.suite[suite].value,
                workers: self.workers[workers].value,
                tunnels: self.tunnels[tunnels].value,
                engine: engine.clone(),
                aggregate: self.aggregate[aggregate].value,
                busy_poll: self.busy_poll[busy_poll].value,
                keys: self.keys[keys].value,
                rekey_every_ns: rekey_every.map(nanos),
                fault: None,
            };
            duts.push((self.name(name, &encryptor, &word(engine)), encryptor));
        }
        duts
    }

    /// The name with the settings that vary.
    fn name(&self, name: &str, encryptor: &Encryptor, engine: &str) -> String {
        let workers = format!("w{}", encryptor.workers);
        let tunnels = format!("t{}", encryptor.tunnels);
        let every = encryptor.rekey_every_ns.map(Duration::from_nanos);
        let every_word = every.map_or_else(String::new, |every| {
            format!("every {}", compact_time(every))
        });
        let words = [
            (self.mode.len() > 1, encryptor.mode.name()),
            (self.suite.len() > 1, encryptor.suite.name()),
            (self.workers.len() > 1, &workers),
            (self.tunnels.len() > 1, &tunnels),
            (self.engine.len() > 1, engine),
            (self.aggregate.len() > 1 && encryptor.aggregate, "aggregate"),
            (self.busy_poll.len() > 1 && encryptor.busy_poll, "polling"),
            (self.keys.len() > 1, encryptor.keys.name()),
            (self.rekey_every.len() > 1 && every.is_some(), &every_word),
        ];
        with_suffix(name, words)
    }
}

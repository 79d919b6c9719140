//! The settings of the project's encryptor, each an axis, and checks which of them are
//! incompatible.

use super::entry::{Duts, INSECURE, LEGACY, NAME, SUITE, Variants, WeakAllowed, suite};
use super::settings::SETTINGS;
use super::software::SOFTWARE;
use crate::axis::{Axes, RUN_MAX};
use crate::keys::millis;
use catalog::{Choice, CpuChoice};
use plan::{Adapter, Encryptor, KeySource, Mode, compact, compact_time, nanos};
use std::time::Duration;
use units::{BitRate, Layer};
use wire::Suite;
use yaml::Absent::Default;
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    NAME,
    Key::new("mode", Value::Axis(&Value::Name(Value::variants::<Mode>)), Default("l3"),
        "Payload, see below"),
    SUITE,
    LEGACY,
    INSECURE,
    Key::new("workers", Value::Axis(&Value::Integer(1, 256)), Default("1"),
        "Worker threads (lanes) on each gateway"),
    Key::new("tunnels", Value::Axis(&Value::Integer(1, 1000)), Default("1"),
        "Tunnels between the gateways, each with separate keys and networks")
        .range("1 to 1000, with `workers` multiplied at most 4096, 1 unless `mode: l3`"),
    Key::new("aggregate", Value::Axis(&Value::Switch), Default("off"),
        "Small packets share ESP packets (AGGFRAG, RFC 9347); only with `direction: both`")
        .range("with `mode: l3`"),
    Key::new("busy_poll", Value::Axis(&Value::Switch), Default("off"),
        "Workers poll for packets: lowest latency, one core each"),
    Key::new("keys", Value::Axis(&Value::Name(|| KeySource::ALL.map(KeySource::name).to_vec())),
        Default("static"), "Source of keys, see below")
        .range("`static`, `pqc`, `ppk`, `qkd`, `both`, `ike`, `ike-classic`, `ike-ppk`; only \
         `static` with `mode: l2tpv3-clear`"),
    // A handshake of each tunnel takes milliseconds.
    Key::new("rekey_every", Value::Axis(&Value::Time(millis(100), RUN_MAX)), Default("1 h"),
        "Interval at which gateways negotiate new keys")
        .range("100 ms to 24 h, not with `static` alone"),
    Key::new("engine", Value::Axis(&choice::VALUE), Default("auto"),
        "Crypto engine; `auto` uses the fastest for each batch among the engines that pass their \
         known-answer tests. `{ below: 128 B, use: rustcrypto, else: ipsec-mb }` fixes a \
         threshold, `{ model: { latency: 50 µs, rate: 10 Gbit/s }, else: auto }` models a \
         coprocessor ([encryptor](encryptor.md))")
        .words("name or map, axis")
        .range("`auto`, `ipsec-mb`, `aws-lc`, `rustcrypto`, `gost-avx512`, `gost-avx2`, \
         `gost-portable`, `\"null\"`, or a map"),
    SOFTWARE,
    SETTINGS,
];

/// Settings that vary are added to the name, in this order: mode, suite, workers, tunnels, engine,
/// aggregation, polling, keys, time of a rekey.
pub(super) fn read(map: &Map<'_>) -> Result<Duts, Reported> {
    let (allowed, axes) = (WeakAllowed::read(map), Axes::of(map));
    let mode = axes.read("mode", |node| node.choice("mode"));
    let suite = allowed.suites(&axes, |node, allowed| suite(node, &Suite::ALL, allowed));
    let (workers, tunnels) = (axes.get("workers"), axes.get("tunnels"));
    let engine = axes.read("engine", engine);
    let (aggregate, busy_poll) = (axes.get("aggregate"), axes.get("busy_poll"));
    // Apart from the others: one check needs all values of this axis.
    let of_keys = Axes::of(map);
    let known = KeySource::ALL.map(|keys| (keys.name(), keys));
    let keys = of_keys.read("keys", |node| node.one_of("key source", &known));
    let settings = Settings {
        mode,
        suite,
        workers,
        tunnels,
        engine,
        aggregate,
        busy_poll,
        keys,
        rekey_every: axes.get("rekey_every"),
    };
    settings.check(map.node(), of_keys.done().is_ok());
    of_keys.done().and(axes.done())?;
    Ok(settings.variants().duts(Adapter::Cipherbench))
}

/// The values of all axes.
struct Settings {
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

impl Settings {
    /// Checks axes against each other.
    fn check(&self, node: Node<'_>, all_keys: bool) {
        self.check_sas(node);
        self.check_engines(node);
        self.check_keys(node, all_keys);
        self.check_ike(node);
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
    fn check_keys(&self, node: Node<'_>, all_keys: bool) {
        let agreed = || self.keys.iter().filter(|keys| keys.value.is_agreed());
        let clear = self.mode.iter().find(|mode| !mode.value.has_esp());
        if let (Some(mode), Some(keys)) = (clear, agreed().next()) {
            let (mode, keys_name) = (mode.value.name(), keys.value.name());
            let what = format!("`mode: {mode}` has no keys, and `{keys_name}` agrees on some");
            let help = "write `mode: l2tpv3`, which is the same in ESP, or leave `keys` out";
            node.mistake_at(&keys.place, what, help);
        }
        // An unreadable value may have been an agreed key source.
        let given = self.rekey_every.first();
        // A default has the place of the map, and applies to agreed keys only.
        let given = given.filter(|every| every.place != node.place());
        if let Some(every) = given
            && all_keys
            && agreed().next().is_none()
        {
            let what = "static keys are not renewed by time";
            let help = "leave `rekey_every` out, or write `keys: pqc`; the trial `rekey` renews static ones on demand";
            node.mistake_at(&every.place, what, help);
        }
    }

    /// IKE of the encryptor has one SA of IP packets at a time. Axes multiply, so that each value
    /// meets each source of keys in some DUT.
    fn check_ike(&self, node: Node<'_>) {
        let Some(ike) = self.keys.iter().find(|keys| keys.value.is_ike()) else {
            return;
        };
        let name = ike.value.name();
        let refuse = |what: String, help: &str| {
            let what = format!("`keys: {name}` with {what}");
            node.mistake_at(&ike.place, what, help);
        };
        if self.workers.iter().any(|workers| workers.value > 1) {
            let what = "several workers: IKE creates one SA, and each worker needs its own";
            refuse(what.to_owned(), "write `workers: 1`, or `keys: pqc`");
        }
        if self.tunnels.iter().any(|tunnels| tunnels.value > 1) {
            let what = "several tunnels: IKE tells them apart by the addresses of the gateways";
            refuse(what.to_owned(), "write `tunnels: 1`, or `keys: pqc`");
        }
        if let Some(mode) = self.mode.iter().find(|mode| mode.value != Mode::L3) {
            let what = format!(
                "`mode: {}`: IKE negotiates tunnels of IP packets",
                mode.value.name()
            );
            refuse(what, "write `mode: l3`, or `keys: pqc`");
        }
        if self.aggregate.iter().any(|aggregate| aggregate.value) {
            let what = "`aggregate`, which this version's IKE does not negotiate (RFC 9347 §5.1)";
            refuse(
                what.to_owned(),
                "leave `aggregate` off, or write `keys: pqc`",
            );
        }
        if let Some(suite) = self
            .suite
            .iter()
            .find(|suite| !ike.value.suits(suite.value))
        {
            let what = format!("`{}`, which IKE does not negotiate", suite.value);
            refuse(
                what,
                "use AES-GCM, ChaCha20-Poly1305, or AES-CBC with an HMAC of SHA",
            );
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
    fn variants(&self) -> Variants<Encryptor> {
        Variants::of(Encryptor::new(Suite::Aes256Gcm))
            .by(&self.mode, |it, mode| {
                it.mode = mode;
                mode.name()
            })
            .by(&self.suite, |it, suite| {
                it.suite = suite;
                suite.name()
            })
            .by(&self.workers, |it, workers| {
                it.workers = workers;
                format!("w{workers}")
            })
            .by(&self.tunnels, |it, tunnels| {
                it.tunnels = tunnels;
                format!("t{tunnels}")
            })
            .by(&self.engine, |it, engine| {
                it.engine = engine;
                word(&it.engine)
            })
            .by(&self.aggregate, |it, aggregate| {
                it.aggregate = aggregate;
                if aggregate { "aggregate" } else { "" }
            })
            .by(&self.busy_poll, |it, busy_poll| {
                it.busy_poll = busy_poll;
                if busy_poll { "polling" } else { "" }
            })
            .by(&self.keys, |it, keys| {
                it.keys = keys;
                keys.name()
            })
            .by(&self.rekey_every, |it, every| {
                // Follows the axis `keys`, which it depends on.
                it.rekey_every_ns = it.keys.is_agreed().then(|| nanos(every));
                match it.rekey_every_ns {
                    Some(_) => format!("every {}", compact_time(every)),
                    None => String::new(),
                }
            })
    }
}

//! Crypto devices: one entry of `devices` to one DUT or, if `count` is a list, several.
//!
//! To add a kind: a variant of [`DeviceKind`], its name in [`KINDS`], its keys in [`Kind::keys`],
//! and a reader of its settings here; what opens it is in `device`.

use super::entry::{Entry, NAME, name};
use crate::axis::Axes;
use crate::keys::{SHARE, seconds};
use crate::words::path;
use plan::{Adapter, Device, DeviceFault, DeviceKind, DeviceModel, Devices, Dut};
use std::time::Duration;
use units::Layer;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Map, Node, Place, Reported, Spanned, Value};

/// Most devices that work in parallel.
const COUNT_MAX: u32 = 64;
const TEXT_CHARS_MAX: usize = 100;

/// Keys of each entry.
#[rustfmt::skip]
const EACH: Key = Key::group("(each)", &[
    NAME.depends("by its kind").meaning("Name in tables"),
    Key::new("offload", Value::Switch, Depends("on for `pkcs11` and `model`"),
        "Declares that the device takes work off the CPU, so that its figures need \
         [proof](#who-did-the-work)"),
]);
/// Of each that is not unique.
#[rustfmt::skip]
const COUNT: Key = Key::group("(count)", &[
    Key::new("count", Value::Axis(&Value::Integer(1, COUNT_MAX as u64)), Default("1"),
        "Number of equal devices used together. In a list, numbers above 1 are added to the name: \
         `card x2`"),
]);

#[rustfmt::skip]
const ENGINE: &[Key] = &[
    Key::new("kernel", Value::Or("auto", &Value::Name(|| Value::names(&KERNELS))), Default("auto"),
        "Kernel of the GOST ciphers; `auto`: the fastest here"),
];
#[rustfmt::skip]
const OPENSSL: &[Key] = &[
    Key::new("provider", Value::Text, Depends("the default provider"),
        "A provider by name; not with `engine`").excludes(&["engine"]),
    Key::new("engine", Value::Text, Depends("none"),
        "An engine by name: `gost`, `afalg`, or that of a card"),
    Key::new("module", Value::Path, Depends("where OpenSSL looks"),
        "File of the provider or engine").range("with `provider` or `engine`"),
];
#[rustfmt::skip]
const PKCS11: &[Key] = &[
    Key::new("module", Value::Path, Required, "The module: `/usr/lib/softhsm/libsofthsm2.so`"),
    Key::new("slot", Value::Integer(0, u32::MAX as u64), Depends("the only one with a token"),
        "Slot").range("not with `token`").excludes(&["token"]),
    Key::new("token", Value::Text, Depends("none"), "The token by its label"),
    Key::new("pin_file", Value::Path, Required,
        "File with only the user's PIN, readable by its owner only, so that the PIN is in no \
         campaign and no journal"),
];
#[rustfmt::skip]
const MODEL: &[Key] = &[
    Key::new("rate", Value::BitRate(Layer::Payload, 1_000, 1_000_000_000_000), Required,
        "Input that one unit processes"),
    Key::new("latency", MODEL_TIME, Default("20 µs"),
        "From the end of processing until the result is back"),
    Key::new("operation", MODEL_TIME, Default("0 ns"),
        "Additional time of a unit for each operation"),
    Key::new("parallel", Value::Integer(1, 1024), Default("1"), "Units that work in parallel"),
    Key::new("queue", Value::Integer(1, 65_536), Default("256"),
        "Maximum number of operations in the device; others wait"),
    Key::new("errors", SHARE, Default("0 %"), "Share of the operations that fail"),
    Key::new("fault", Value::Name(|| Value::names(&FAULTS)), Default("fails"),
        "Kind of failure: the operation reports an error; one byte is wrong, without an error; \
         the device stops until it is restarted; the operation never returns; the process that \
         uses the device crashes"),
];
/// A slower device is a slip of the unit.
const MODEL_TIME: Value = Value::Time(Duration::ZERO, seconds(10));
#[rustfmt::skip]
const SEVERAL: &[Key] = &[
    Key::new("members", Value::List(&Value::Kinds(|| {
        members().into_iter().map(|(name, kind)| (name, kind.own_keys())).collect()
    })), Required, "Devices as above, without `name`, `count` and `offload`").range("1 to 64"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Engine,
    OpenSsl,
    Pkcs11,
    SoftHsm,
    Model,
    Several,
}

const KINDS: [(&str, Kind); 6] = [
    ("engine", Kind::Engine),
    ("openssl", Kind::OpenSsl),
    ("pkcs11", Kind::Pkcs11),
    ("softhsm", Kind::SoftHsm),
    ("model", Kind::Model),
    ("several", Kind::Several),
];

pub(super) const KINDS_VALUE: Value =
    Value::Kinds(|| KINDS.map(|(name, kind)| (name, kind.keys())).to_vec());

impl Kind {
    /// The keys as an entry.
    const fn keys(self) -> &'static [Key] {
        match self {
            Self::Engine => const { &[EACH, COUNT, Key::group("(own)", ENGINE)] },
            Self::OpenSsl => const { &[EACH, COUNT, Key::group("(own)", OPENSSL)] },
            // A token is unique: `count` is reported as an unknown key there.
            Self::Pkcs11 => const { &[EACH, Key::group("(own)", PKCS11)] },
            Self::SoftHsm => &[EACH, COUNT],
            Self::Model => const { &[EACH, COUNT, Key::group("(own)", MODEL)] },
            Self::Several => const { &[EACH, Key::group("(own)", SEVERAL)] },
        }
    }

    /// The keys as a member of several.
    const fn own_keys(self) -> &'static [Key] {
        match self {
            Self::Engine => ENGINE,
            Self::OpenSsl => OPENSSL,
            Self::Pkcs11 => PKCS11,
            Self::Model => MODEL,
            Self::SoftHsm | Self::Several => &[],
        }
    }
}

/// The kinds of members.
fn members() -> Vec<(&'static str, Kind)> {
    let mut kinds = KINDS.to_vec();
    kinds.retain(|(_, kind)| *kind != Kind::Several);
    kinds
}

const KERNELS: [(&str, &str); 3] = [
    ("portable", "portable"),
    ("avx2", "avx2"),
    ("avx512", "avx512"),
];

const FAULTS: [(&str, DeviceFault); 5] = [
    ("fails", DeviceFault::Fails),
    ("wrong", DeviceFault::Wrong),
    ("stops", DeviceFault::Stops),
    ("hangs", DeviceFault::Hangs),
    ("crashes", DeviceFault::Crashes),
];

/// Reads one entry of `devices`.
pub(super) fn read(node: Node<'_>) -> Result<(Entry, Place), Reported> {
    let (kind, body) = node.variant("device", &KINDS)?;
    body.keys(kind.keys(), |map| {
        let offload = map.find("offload");
        if kind == Kind::Several {
            return Ok((several(map, offload)?, map.node().place()));
        }
        let axes = Axes::of(map);
        let counts = match kind {
            Kind::Pkcs11 => vec![map.node().spanned(1)],
            _ => axes.get("count"),
        };
        let device = of_kind(map, kind);
        let name = name(
            map,
            &device.as_ref().map_or_else(|_| String::new(), usual_name),
        );
        axes.done()?;
        let (name, device, offload) = (name?, device?, offload?);
        let duts = identical(&name, &device, offload, &counts);
        Ok((Entry::of_devices(name, duts), map.node().place()))
    })
}

/// A number of devices of one kind; if it varies, numbers above one are in the name.
fn identical(
    name: &str,
    device: &DeviceKind,
    offload: Option<bool>,
    counts: &[Spanned<u32>],
) -> Vec<(String, Devices)> {
    let make = |count: &Spanned<u32>| {
        let members = match count.value {
            1 => vec![Device {
                name: name.to_owned(),
                kind: device.clone(),
            }],
            many => (1..=many)
                .map(|number| Device {
                    name: format!("{name} {number}"),
                    kind: device.clone(),
                })
                .collect(),
        };
        let full_name = if counts.len() > 1 && count.value > 1 {
            format!("{name} x{}", count.value)
        } else {
            name.to_owned()
        };
        // Stated by the campaign if an engine or a provider of OpenSSL leads to hardware: its
        // name does not show it.
        let offloads = offload.unwrap_or(device.offloads());
        (full_name, Devices { members, offloads })
    };
    counts.iter().map(make).collect()
}

/// Different devices in parallel.
fn several(map: &Map<'_>, offload: Result<Option<bool>, Reported>) -> Result<Entry, Reported> {
    let name = name(map, "several");
    let members = map.required("members").and_then(|node| {
        let members = node.list(member)?;
        match members.len() {
            1..=64 => Ok(members),
            _ => Err(node.mistake(
                format!("{} devices cannot work at once", members.len()),
                format!("list from 1 to {COUNT_MAX}"),
            )),
        }
    });
    let (name, members) = (name?, members?);
    // One member on the CPU is enough for the group to need it.
    let offloads = offload?.unwrap_or(members.iter().all(|kind| kind.offloads()));
    let members = (1..).zip(members).map(|(number, kind)| Device {
        name: format!("{name} {number}"),
        kind,
    });
    let members = members.collect();
    let duts = vec![(name.clone(), Devices { members, offloads })];
    Ok(Entry::of_devices(name, duts))
}

impl Entry {
    fn of_devices(name: String, duts: Vec<(String, Devices)>) -> Self {
        let duts = duts.into_iter();
        Self {
            name,
            duts: duts
                .map(|(name, devices)| Dut::new(name, Adapter::Device(devices)))
                .collect(),
        }
    }
}

fn member(node: Node<'_>) -> Result<DeviceKind, Reported> {
    let (kind, body) = node.variant("device", &members())?;
    body.keys(kind.own_keys(), |map| of_kind(map, kind))
}

fn of_kind(map: &Map<'_>, kind: Kind) -> Result<DeviceKind, Reported> {
    match kind {
        Kind::Engine => engine(map),
        Kind::OpenSsl => openssl(map),
        Kind::Pkcs11 => pkcs11(map),
        Kind::Model => model(map).map(DeviceKind::Model),
        // Several are no kind of device; the caller has handled them.
        Kind::SoftHsm | Kind::Several => Ok(DeviceKind::SoftHsm),
    }
}

/// The default name of a device.
fn usual_name(device: &DeviceKind) -> String {
    match device {
        DeviceKind::Engine { kernel: None } => "engine".to_owned(),
        DeviceKind::Engine {
            kernel: Some(kernel),
        } => format!("engine {kernel}"),
        DeviceKind::OpenSsl {
            provider, engine, ..
        } => {
            let part = engine.as_ref().or(provider.as_ref());
            part.map_or_else(|| "openssl".to_owned(), |part| format!("openssl {part}"))
        }
        DeviceKind::Pkcs11 { .. } => "pkcs11".to_owned(),
        DeviceKind::SoftHsm => "softhsm".to_owned(),
        DeviceKind::Model(_) => "model".to_owned(),
    }
}

fn engine(map: &Map<'_>) -> Result<DeviceKind, Reported> {
    let kernel = map.read("kernel", |node| {
        node.word_or("auto", |node| node.one_of("kernel", &KERNELS))
    });
    Ok(DeviceKind::Engine {
        kernel: kernel?.map(str::to_owned),
    })
}

fn openssl(map: &Map<'_>) -> Result<DeviceKind, Reported> {
    let provider = map.find_with("provider", word);
    let engine = map.find_with("engine", |node, text| {
        word(node, text).map(|engine| node.spanned(engine))
    });
    let module = map.find_with("module", |node, module| {
        path(node, module).map(|module| node.spanned(module))
    });
    let (provider, engine, module) = (provider?, engine?, module?);
    if let (Some(_), Some(engine)) = (&provider, &engine) {
        let what = "a provider and an engine are given, and one of them does the work";
        let help = "keep one; the other can be a device of its own";
        return Err(map.node().mistake_at(&engine.place, what, help));
    }
    // A module is loaded under the name of its provider or engine.
    if let (None, None, Some(module)) = (&provider, &engine, &module) {
        let what = "a module is given, and not what is in it";
        let help = "write `engine: NAME` or `provider: NAME` beside it";
        return Err(map.node().mistake_at(&module.place, what, help));
    }
    Ok(DeviceKind::OpenSsl {
        provider,
        engine: engine.map(|engine| engine.value),
        module: module.map(|module| module.value),
    })
}

fn pkcs11(map: &Map<'_>) -> Result<DeviceKind, Reported> {
    let (module, slot) = (map.get_with("module", path), map.find::<Spanned<_>>("slot"));
    let (token, pin_file) = (map.find_with("token", word), map.get_with("pin_file", path));
    let (slot, token) = (slot?, token?);
    if let (Some(slot), Some(_)) = (&slot, &token) {
        let what = "the token is named twice: by its slot and by its label";
        return Err(map.node().mistake_at(&slot.place, what, "keep one of them"));
    }
    Ok(DeviceKind::Pkcs11 {
        module: module?,
        slot: slot.map(|slot| slot.value),
        token,
        pin_file: pin_file?,
    })
}

fn model(map: &Map<'_>) -> Result<DeviceModel, Reported> {
    let (latency, rate) = (map.get("latency"), map.get("rate"));
    let (operation, parallel) = (map.get("operation"), map.get("parallel"));
    let (queue, errors) = (map.get("queue"), map.get("errors"));
    let fault = map.read("fault", |node| node.one_of("fault", &FAULTS));
    Ok(DeviceModel {
        latency_ns: latency?,
        rate_bps: rate?,
        operation_ns: operation?,
        parallel: parallel?,
        queue: queue?,
        errors_ppm: errors?,
        fault: fault?,
    })
}

/// A name defined elsewhere: one line, not empty.
fn word(node: Node<'_>, text: String) -> Result<String, Reported> {
    if text.chars().count() <= TEXT_CHARS_MAX && !text.chars().any(char::is_control) {
        Ok(text)
    } else {
        Err(node.mistake(
            "this name is too long",
            format!("use one line of up to {TEXT_CHARS_MAX} characters"),
        ))
    }
}

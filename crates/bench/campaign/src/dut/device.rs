//! Crypto devices: one entry of `devices` to one DUT or, if `count` is a list, several.
//!
//! To add a kind: a variant of [`DeviceKind`], its name in [`KINDS`], a reader of its settings
//! here, and its row in `docs/campaign.md`; what opens it is in `device`.

use super::entry::{Entry, name};
use crate::axis::axis;
use plan::{Device, DeviceFault, DeviceKind, DeviceModel, Devices, nanos};
use std::time::Duration;
use units::{Layer, Ratio};
use yaml::{Map, Node, Place, Reported, Spanned};

/// Most devices that work in parallel.
const COUNT_MAX: u32 = 64;
/// Most units of a modelled coprocessor, and the longest queue before it.
const PARALLEL_MAX: u32 = 1024;
const QUEUE_MAX: u32 = 65_536;
const TEXT_CHARS_MAX: usize = 100;

const LATENCY_DEFAULT: Duration = Duration::from_micros(20);
const QUEUE_DEFAULT: u32 = 256;
/// Of the model's times: a slower device is a slip of the unit.
const MODEL_TIME_MAX: Duration = Duration::from_secs(10);

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
pub(super) fn read(node: Node<'_>) -> Result<(Entry<Devices>, Place), Reported> {
    let (kind, body) = node.variant("device", &KINDS)?;
    body.map(|map| {
        let offload = map.with_default("offload", None, |node| node.bool().map(Some));
        if kind == Kind::Several {
            return Ok((several(map, offload)?, map.node().place()));
        }
        // Not requested for a token: `count` is reported as an unknown key there.
        let counts = (kind != Kind::Pkcs11).then(|| {
            axis(map, "count", 1, |node: Node<'_>| {
                node.integer(1..=COUNT_MAX)
            })
        });
        let device = of_kind(map, kind);
        let name = name(
            map,
            &device.as_ref().map_or_else(|_| String::new(), usual_name),
        );
        // A token is unique: `count` does not apply to it.
        let counts = match counts {
            Some(counts) => counts.all()?,
            None => vec![map.node().spanned(1)],
        };
        let (name, device, offload) = (name?, device?, offload?);
        let duts = identical(&name, &device, offload, &counts);
        Ok((Entry { name, duts }, map.node().place()))
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
fn several(
    map: &Map<'_>,
    offload: Result<Option<bool>, Reported>,
) -> Result<Entry<Devices>, Reported> {
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
    Ok(Entry { name, duts })
}

fn member(node: Node<'_>) -> Result<DeviceKind, Reported> {
    let kinds: Vec<_> = KINDS
        .into_iter()
        .filter(|(_, kind)| *kind != Kind::Several)
        .collect();
    let (kind, body) = node.variant("device", &kinds)?;
    body.map(|map| of_kind(map, kind))
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
    let kernel = map.with_default("kernel", None, |node| {
        node.word_or("auto", |node| node.one_of("kernel", &KERNELS))
    });
    Ok(DeviceKind::Engine {
        kernel: kernel?.map(str::to_owned),
    })
}

fn openssl(map: &Map<'_>) -> Result<DeviceKind, Reported> {
    let provider = map.with_default("provider", None, |node| word(node).map(Some));
    let engine = map.with_default("engine", None, |node| {
        word(node).map(|engine| Some(node.spanned(engine)))
    });
    let module = map.with_default("module", None, |node| {
        node.path().map(|path| Some(node.spanned(path)))
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
    let module = map.required("module").and_then(Node::path);
    let slot = map.with_default("slot", None, |node| {
        let slot = node.integer(0..=u64::from(u32::MAX))?;
        Ok(Some(node.spanned(slot)))
    });
    let token = map.with_default("token", None, |node| word(node).map(Some));
    let pin_file = map.required("pin_file").and_then(Node::path);
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
    let time = |node: Node<'_>| node.duration(Duration::ZERO..=MODEL_TIME_MAX).map(nanos);
    let latency = map.with_default("latency", nanos(LATENCY_DEFAULT), time);
    let rate = map.required("rate").and_then(|node| {
        node.bit_rate(Layer::Payload, 1_000..=1_000_000_000_000)
            .map(|rate| rate.bps())
    });
    let operation = map.with_default("operation", 0, time);
    let parallel = map.with_default("parallel", 1, |node| node.integer(1..=PARALLEL_MAX));
    let queue = map.with_default("queue", QUEUE_DEFAULT, |node| node.integer(1..=QUEUE_MAX));
    let errors = map.with_default("errors", 0, |node| {
        // Not above one, so it fits.
        node.ratio(Ratio::from_ppm(0)..=Ratio::from_percent(100))
            .map(|ratio| ratio.ppm() as u32)
    });
    let fault = map.with_default("fault", DeviceFault::Fails, |node| {
        node.one_of("fault", &FAULTS)
    });
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
fn word(node: Node<'_>) -> Result<String, Reported> {
    let text = node.text()?;
    if text.chars().count() <= TEXT_CHARS_MAX && !text.contains('\n') {
        Ok(text.to_owned())
    } else {
        Err(node.mistake(
            "this name is too long",
            format!("use one line of up to {TEXT_CHARS_MAX} characters"),
        ))
    }
}

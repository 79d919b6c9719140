//! Trials of crypto devices as configured: `kat`, `speed` and `fatigue`.
//!
//! To add one: a variant of [`DeviceTrial`] and of [`plan::DeviceTest`], its time in
//! [`plan::estimate`], its words in `text`, and its keys here.

mod operations;
mod points;

use crate::axis::{Axes, RUN_MAX};
use crate::dut;
use crate::keys::{millis, seconds};
use catalog::{Algorithm, Operation};
use operations::{block_bytes, read_algorithms, read_operations};
use plan::{self, Adapter, DeviceKind, DeviceTest, Workers, nanos};
use std::time::Duration;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
const OF_ALL: Key = Key::group("(devices)", &[
    Key::new("devices", Value::OneOrMany(&Value::Text), Depends("all"),
        "The devices that this trial measures").words("name or list").range("names of devices"),
]);

#[rustfmt::skip]
const KAT: &[Key] = &[
    OF_ALL,
    Key::new("algorithms", NAMES, Depends("all"), "Algorithms to test")
        .words("list").range("algorithms, classes"),
];
/// Algorithms, operations and classes of them have hundreds of names.
const NAMES: Value = Value::OneOrMany(&Value::Text);

#[rustfmt::skip]
const SPEED: &[Key] = &[
    OF_ALL,
    Key::new("operation", NAMES, Required, "Operations to measure; each is a cell")
        .words("name or list").range("operations, classes"),
    // The default sizes of `openssl speed`, except the largest.
    Key::new("size", Value::Axis(&Value::Size(1, 1 << 20)),
        Default("[16 B, 64 B, 256 B, 1024 B, 8192 B]"),
        "Input of one operation. Not for signatures, RSA and key encapsulation")
        .range("1 B to 1 MiB; whole blocks in ECB and CBC"),
    Key::new("concurrency", Value::Axis(&CONCURRENCY), Default("1"),
        "Workers in parallel, shared equally by all devices of `count`"),
    Key::new("workers", Value::Axis(&Value::Name(Value::variants::<Workers>)), Default("threads"),
        "Kind of workers")
        .range("`threads`, `processes`; not processes of a `model`, each of which would have its \
         own model"),
    Key::new("depth", Value::Axis(&Value::Integer(1, 1024)), Default("1"),
        "Operations that each worker keeps in flight in the device. A device without a queue has \
         no figure for more than 1"),
    Key::new("duration", Value::Axis(&Value::Time(millis(20), RUN_MAX)), Default("1 s"),
        "Measured time"),
];

#[rustfmt::skip]
const FATIGUE: &[Key] = &[
    OF_ALL,
    Key::new("operations", NAMES, Depends("all"),
        "Operations to perform; operations that a device does not have are left out")
        .words("list").range("operations, classes"),
    Key::new("threads", Value::Axis(&CONCURRENCY), Default("8"), "Threads on each device"),
    Key::new("loops", Value::Integer(1, 1_000_000_000_000), Depends("none"),
        "Rounds of each thread through the operations").range("from 1"),
    // A device may be run for weeks.
    Key::new("duration", Value::Time(seconds(1), seconds(30 * 24 * 3600)),
        Depends("1 min without `loops`"),
        "Time under load. With `loops`, the first limit reached ends the trial")
        .range("1 s to 30 days"),
    Key::new("invalid_every", Value::Integer(0, 1_000_000), Default("16"),
        "One input in this number is invalid; 0: none"),
    Key::new("restart", Value::Switch, Default("on"),
        "Whether a device is opened again after it failed or its process died"),
];
const CONCURRENCY: Value = Value::Integer(1, CONCURRENCY_MAX as u64);

/// A trial of crypto devices.
#[derive(Debug)]
pub(crate) enum DeviceTrial {
    /// Whether results are right.
    Kat(Vec<Algorithm>),
    /// How fast it is.
    Speed(Speed),
    /// How long it works without failure.
    Fatigue(Fatigue),
}

/// The axes of a speed trial.
#[derive(Debug)]
pub(crate) struct Speed {
    operations: Vec<Operation>,
    size: Vec<Spanned<u32>>,
    concurrency: Vec<Spanned<u32>>,
    workers: Vec<Spanned<Workers>>,
    depth: Vec<Spanned<u32>>,
    duration: Vec<Spanned<Duration>>,
}

/// The axes of a fatigue trial, and its single values.
#[derive(Debug)]
pub(crate) struct Fatigue {
    operations: Vec<Operation>,
    threads: Vec<Spanned<u32>>,
    loops: Option<u64>,
    duration: Option<Duration>,
    invalid_every: u32,
    restart: bool,
}

/// Reads the keys of a trial.
pub(crate) type Reader = fn(&Map<'_>) -> Result<DeviceTrial, Reported>;

/// The trials, by name, with their keys.
pub(crate) const TRIALS: [(&str, Reader, &[Key]); 3] = [
    ("kat", kat, KAT),
    ("speed", |map| speed(map).map(DeviceTrial::Speed), SPEED),
    (
        "fatigue",
        |map| fatigue(map).map(DeviceTrial::Fatigue),
        FATIGUE,
    ),
];

/// Most threads or processes in parallel, as in the report of the crypto card.
pub(crate) const CONCURRENCY_MAX: u32 = 1000;
/// Time of a fatigue trial that has no end.
const FATIGUE_DEFAULT: Duration = Duration::from_secs(60);
/// Equal parts of a measurement that are counted apart: enough to see that it was steady.
const SLICES: u32 = 10;

/// Minimum interval between snapshots of a fatigue trial; a long one has a hundred in all.
const SNAPSHOT_MIN: Duration = Duration::from_secs(30);
const SNAPSHOTS: u32 = 100;

fn kat(map: &Map<'_>) -> Result<DeviceTrial, Reported> {
    let algorithms = map.optional("algorithms").map(read_algorithms);
    let all = || catalog::ALGORITHMS.to_vec();
    Ok(DeviceTrial::Kat(
        algorithms.transpose()?.unwrap_or_else(all),
    ))
}

fn speed(map: &Map<'_>) -> Result<Speed, Reported> {
    let operations = map.required("operation").and_then(read_operations);
    let axes = Axes::of(map);
    let read = Speed {
        size: axes.get("size"),
        concurrency: axes.get("concurrency"),
        workers: axes.read("workers", |node| node.choice("worker kind")),
        depth: axes.get("depth"),
        duration: axes.get("duration"),
        operations: operations?,
    };
    check_sizes(map.node(), &read.operations, &read.size);
    // The default applies to operations that take a size.
    let sized = read
        .operations
        .iter()
        .any(|operation| operation.takes_size());
    if let (false, Some(given)) = (sized, map.optional("size")) {
        let what = "none of these operations has a size to choose";
        given.mistake(what, "remove `size`");
    }
    axes.done().map(|()| read)
}

/// Some modes know whole blocks only.
fn check_sizes(node: Node<'_>, operations: &[Operation], sizes: &[Spanned<u32>]) {
    for size in sizes.iter() {
        let broken = operations
            .iter()
            .find(|operation| !size.value.is_multiple_of(block_bytes(**operation)));
        if let Some(operation) = broken {
            let block = block_bytes(*operation);
            let what = format!("{} B are no whole blocks of `{operation}`", size.value);
            let help = format!(
                "write a multiple of {block} B, or measure the other operations in a trial of their own"
            );
            node.mistake_at(&size.place, what, help);
        }
    }
}

fn fatigue(map: &Map<'_>) -> Result<Fatigue, Reported> {
    let operations = map.optional("operations").map(read_operations);
    let axes = Axes::of(map);
    let threads = axes.get("threads");
    let (loops, duration) = (map.find("loops"), map.find("duration"));
    let (invalid_every, restart) = (map.get("invalid_every"), map.get("restart"));
    axes.done()?;
    let all = || {
        catalog::ALGORITHMS
            .iter()
            .flat_map(|algorithm| algorithm.operations())
    };
    let (loops, duration) = (loops?, duration?);
    Ok(Fatigue {
        operations: match operations {
            Some(operations) => operations?,
            None => all().collect(),
        },
        threads,
        duration: match (loops, duration) {
            // A trial needs one of the two ends. With `loops` alone it takes the time that these
            // need.
            (None, None) => Some(FATIGUE_DEFAULT),
            (_, given) => given,
        },
        loops,
        invalid_every: invalid_every?,
        restart: restart?,
    })
}

impl Fatigue {
    fn test(&self, threads: u32) -> DeviceTest {
        // A trial that ends by loops alone has no known time: its snapshots come at the least
        // interval.
        let snapshot = self.duration.unwrap_or_default() / SNAPSHOTS;
        DeviceTest::Fatigue(plan::Fatigue {
            operations: self.operations.iter().map(ToString::to_string).collect(),
            threads,
            loops: self.loops,
            duration_ns: self.duration.map(nanos),
            invalid_every: self.invalid_every,
            restart: self.restart,
            snapshot_ns: nanos(snapshot.max(SNAPSHOT_MIN)),
        })
    }
}

/// Features of a point that a device does not support.
pub(crate) fn wrong_for(
    test: &DeviceTest,
    duts: &[&dut::Listed],
) -> Option<(String, &'static str)> {
    let DeviceTest::Speed(speed) = test else {
        return None;
    };
    if speed.workers == Workers::Threads || speed.concurrency == 1 {
        return None;
    }
    // A model's queue is memory of one process, and its limits are to be shared by all workers.
    let is_model = |dut: &&&dut::Listed| match &dut.dut.adapter {
        Adapter::Device(devices) => devices
            .members
            .iter()
            .any(|device| matches!(device.kind, DeviceKind::Model(_))),
        _ => false,
    };
    let modelled: Vec<_> = duts.iter().filter(is_model).copied().collect();
    if modelled.is_empty() {
        None
    } else {
        Some((
            format!(
                "`workers: processes` cannot be measured of {}: each process would have a model of its own",
                dut::names(&modelled)
            ),
            "write `workers: threads`, or `devices:` with the others",
        ))
    }
}

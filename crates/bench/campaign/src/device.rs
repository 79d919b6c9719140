//! Trials of crypto devices as configured: `kat`, `speed` and `fatigue`.
//!
//! To add one: a variant of [`DeviceTrial`] and of [`plan::DeviceTest`], its time in
//! [`plan::estimate`], its words in `text`, and its table in `docs/campaign.md`.

mod operations;
mod points;

use crate::axis::{AxisValues, RUN_MAX, axis};
use crate::dut;
use catalog::{Algorithm, Operation};
use operations::{block_bytes, read_algorithms, read_operations};
use plan::{self, Adapter, DeviceKind, DeviceTest, Workers, nanos};
use std::time::Duration;
use units::Bytes;
use yaml::{Map, Node, Reported, Spanned};

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

/// The trials, by name.
pub(crate) const TRIALS: [(&str, Reader); 3] = [
    ("kat", kat),
    ("speed", |map| speed(map).map(DeviceTrial::Speed)),
    ("fatigue", |map| fatigue(map).map(DeviceTrial::Fatigue)),
];

/// Most threads or processes in parallel, as in the report of the crypto card.
pub(crate) const CONCURRENCY_MAX: u32 = 1000;
const DEPTH_MAX: u32 = 1024;
const SIZE_MAX: u64 = 1 << 20;
/// The default sizes of `openssl speed`, except the largest.
const SIZES_DEFAULT: [u32; 5] = [16, 64, 256, 1024, 8192];
const DURATION_DEFAULT: Duration = Duration::from_secs(1);
const DURATION_MIN: Duration = Duration::from_millis(20);
const THREADS_DEFAULT: u32 = 8;
const FATIGUE_DEFAULT: Duration = Duration::from_secs(60);
const LOOPS_MAX: u64 = 1_000_000_000_000;
/// By default one input in this many is invalid.
const INVALID_EVERY_DEFAULT: u32 = 16;
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
    // The default is five sizes, which an axis's single default cannot be: it is put in below.
    let sizes_given = map.optional("size");
    let size: AxisValues<u32> = axis(map, "size", SIZES_DEFAULT[0], size);
    let concurrency = axis(map, "concurrency", 1, |node| {
        node.integer(1..=CONCURRENCY_MAX)
    });
    let workers = axis(map, "workers", Workers::Threads, |node| {
        node.choice("worker kind")
    });
    let depth = axis(map, "depth", 1, |node| node.integer(1..=DEPTH_MAX));
    let duration = axis(map, "duration", DURATION_DEFAULT, |node| {
        node.duration(DURATION_MIN..=RUN_MAX)
    });
    if let Ok(operations) = &operations {
        check_sizes(map.node(), operations, &size);
        // Without a given size there is nothing to refuse: the default applies to operations that
        // take one.
        let sized = operations.iter().any(|operation| operation.takes_size());
        if let (false, Some(given)) = (sized, sizes_given) {
            let what = "none of these operations has a size to choose";
            given.mistake(what, "remove `size`");
        }
    }
    let size = match sizes_given {
        Some(_) => size.all()?,
        None => SIZES_DEFAULT
            .into_iter()
            .map(|bytes| map.node().spanned(bytes))
            .collect(),
    };
    Ok(Speed {
        operations: operations?,
        size,
        concurrency: concurrency.all()?,
        workers: workers.all()?,
        depth: depth.all()?,
        duration: duration.all()?,
    })
}

fn size(node: Node<'_>) -> Result<u32, Reported> {
    // In range, so it fits.
    node.size(Bytes::new(1)..=Bytes::new(SIZE_MAX))
        .map(|size| size.get() as u32)
}

/// Some modes know whole blocks only.
fn check_sizes(node: Node<'_>, operations: &[Operation], sizes: &AxisValues<u32>) {
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
    let threads = axis(map, "threads", THREADS_DEFAULT, |node| {
        node.integer(1..=CONCURRENCY_MAX)
    });
    let loops = map.with_default("loops", None, |node| node.integer(1..=LOOPS_MAX).map(Some));
    let duration = map.with_default("duration", None, |node| {
        node.duration(Duration::from_secs(1)..=fatigue_max())
            .map(Some)
    });
    let invalid_every = map.with_default("invalid_every", INVALID_EVERY_DEFAULT, |node| {
        node.integer(0..=1_000_000)
    });
    let restart = map.with_default("restart", true, Node::bool);
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
        threads: threads.all()?,
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

/// A device may be run for weeks.
const fn fatigue_max() -> Duration {
    Duration::from_secs(30 * 24 * 3600)
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

//! Records of trials on crypto devices: rows of the functional trial, speed with the proof of
//! offloading, and times without failure.
//!
//! Counts and times are integers, as everywhere in a journal. In a trial on several devices in
//! parallel each has an entry, in the order of the plan ([`plan::Devices::members`]).

pub use catalog::device::{Facts, FatigueCounts, KatOutcome, KatRow};

use super::{at_most_one, is_empty};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// The result of a trial on crypto devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceResult {
    /// The devices' metadata.
    pub devices: Vec<DeviceFacts>,
    /// The findings.
    pub found: DeviceRecord,
}

/// The findings of a trial on crypto devices, by its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceRecord {
    /// No figure and no failure: the device does not offer the operation, with the reason.
    NotOffered(String),
    /// For `kat`.
    Kat(Vec<KatRow>),
    /// For `speed`.
    Speed(SpeedTrial),
    /// For `fatigue`: one segment for each start or resume of the run, in order.
    Fatigue(Vec<FatigueSegment>),
}

/// No case was tried.
impl Default for DeviceRecord {
    fn default() -> Self {
        Self::Kat(Vec::new())
    }
}

impl DeviceResult {
    /// Whether a device gave a wrong result, accepted an invalid input, or failed. (For a speed
    /// trial the evidence has this.)
    #[must_use]
    pub fn is_bad(&self) -> bool {
        let segments = self.fatigue().iter();
        let mut devices = segments.flat_map(|segment| &segment.devices);
        self.kat().iter().any(|row| row.outcome.is_bad())
            || devices.any(|device| !device.is_sound())
    }

    /// Why the operation is not offered.
    #[must_use]
    pub const fn not_offered(&self) -> Option<&str> {
        match &self.found {
            DeviceRecord::NotOffered(why) => Some(why.as_str()),
            _ => None,
        }
    }

    /// The rows of `kat`; empty for others.
    #[must_use]
    pub fn kat(&self) -> &[KatRow] {
        match &self.found {
            DeviceRecord::Kat(rows) => rows,
            _ => &[],
        }
    }

    /// The trial of `speed`.
    #[must_use]
    pub const fn speed(&self) -> Option<&SpeedTrial> {
        match &self.found {
            DeviceRecord::Speed(speed) => Some(speed),
            _ => None,
        }
    }

    /// The segments of `fatigue`; empty for others.
    #[must_use]
    pub fn fatigue(&self) -> &[FatigueSegment] {
        match &self.found {
            DeviceRecord::Fatigue(segments) => segments,
            _ => &[],
        }
    }
}

/// The form in journals: a key for each kind, only one with a value.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    devices: Cow<'a, [DeviceFacts]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_offered: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    kat: Cow<'a, [KatRow]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speed: Option<Cow<'a, SpeedTrial>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    fatigue: Cow<'a, [FatigueSegment]>,
}

impl Serialize for DeviceResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            devices: Cow::Borrowed(&self.devices),
            not_offered: self.not_offered().map(Cow::Borrowed),
            kat: Cow::Borrowed(self.kat()),
            speed: self.speed().map(Cow::Borrowed),
            fatigue: Cow::Borrowed(self.fatigue()),
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DeviceResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let found = [
            wire.not_offered
                .map(|why| DeviceRecord::NotOffered(why.into_owned())),
            // Empty lists are not written, so a list shows its kind only if it is filled.
            (!wire.kat.is_empty()).then(|| DeviceRecord::Kat(wire.kat.into_owned())),
            wire.speed
                .map(|speed| DeviceRecord::Speed(speed.into_owned())),
            (!wire.fatigue.is_empty()).then(|| DeviceRecord::Fatigue(wire.fatigue.into_owned())),
        ];
        let keys = "`not_offered`, `kat`, `speed` and `fatigue`";
        Ok(Self {
            devices: wire.devices.into_owned(),
            found: at_most_one(found, keys)?.unwrap_or_default(),
        })
    }
}

/// A device's metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Name of the member in the plan: `card 1`.
    pub member: String,
    /// The facts.
    #[serde(flatten)]
    pub facts: Facts,
}

/// One operation, repeated by all threads and processes in parallel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpeedTrial {
    /// From the first process's beginning to the last one's end. Rates are counts over this time,
    /// so that processes that worked alone for a while do not raise them.
    pub span_ns: u64,
    /// Time with all processes at work, as part of `span_ns`.
    pub together_ns: u64,
    /// Each device that had work.
    pub devices: Vec<DeviceSpeed>,
    /// Cipherbench's engines with the same operation and size on one thread, measured just before,
    /// for a device that should take work off the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<CpuReference>,
    /// Proof of offloading, for a device that should take work off the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// One device's results in a speed trial, over all its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpeed {
    /// Index in [`DeviceResult::devices`].
    pub device: usize,
    /// Processes.
    pub processes: u32,
    /// Threads of all processes.
    pub threads: u32,
    /// Completed operations.
    pub operations: u64,
    /// Bytes of their input.
    pub bytes: u64,
    /// CPU time of the processes, user and system.
    pub cpu_ns: u64,
    /// Operations in equal parts of the measured time, in order.
    pub slices: Vec<u64>,
    /// Failed operations; in no other count.
    pub failed: u64,
    /// Results checked against the CPU: selected at random from the measured time and, if those are
    /// too few, from right after it. In older journals only some of the last ones.
    pub checked: u64,
    /// Of those, results of the measured time; `None` in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_measured: Option<u64>,
    /// Probability, in parts per million, that they would have contained a wrong one if 1 of 1000
    /// results were wrong ([`catalog::sample`]); `None` in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_ppm: Option<u32>,
    /// Of those, wrong.
    pub wrong: u64,
    /// Verdicts on invalid inputs; `None` if the operation gives no verdict, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<u64>,
    /// Of those, inputs that were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
    /// Probability, in parts per million, that one would have been accepted if 1 of 1000 invalid
    /// inputs were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance_power_ppm: Option<u32>,
    /// Median latency of an operation: the median of the processes' medians.
    pub latency_ns_p50: u64,
    /// 99th percentile of the latency: the median of the processes' percentiles.
    pub latency_ns_p99: u64,
    /// Maximum of all timed latencies.
    pub latency_ns_max: u64,
    /// Fewest operations of a process.
    pub operations_min: u64,
    /// Most operations of a process.
    pub operations_max: u64,
    /// Operations in that time by the device's counter; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_operations: Option<u64>,
}

/// The cost of the same work by Cipherbench's engines on the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReference {
    /// Completed operations.
    pub operations: u64,
    /// CPU time.
    pub cpu_ns: u64,
    /// Wall time.
    pub elapsed_ns: u64,
}

/// Evidence of the hardware that did the work of a device that should take it off the CPU, in order
/// from best to worst.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(rename = "ProofResult")]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The device did it: its counter matches the number of requested operations.
    Counted,
    /// The device did it: an operation costs less than half of the CPU time of Cipherbench's
    /// engines.
    CpuFell,
    /// Not proven: the device does not count, and Cipherbench's engines do not offer the operation.
    Unknown,
    /// Not proven: neither of these. Flagged, since the card equals the CPU.
    EqualsCpu,
}

impl Proof {
    /// In words: the hardware that did the work, and the evidence for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counted => "the device, by its counter",
            Self::CpuFell => "the device: CPU time fell",
            Self::Unknown => "not known",
            Self::EqualsCpu => "card equals CPU",
        }
    }
}

/// A snapshot of a fatigue trial in progress, which an interrupted run keeps. A later one with the
/// same [`FatigueSegment::start`] replaces it; the trial's record includes it at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatigueProgress {
    /// [`plan::Cell::id`].
    pub cell: String,
    /// From 1.
    pub repeat: u32,
    /// The devices' metadata.
    pub devices: Vec<DeviceFacts>,
    /// The segment so far.
    pub segment: FatigueSegment,
}

/// A fatigue trial from one start or resume to its end or interruption.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatigueSegment {
    /// 1, and one more for each resume of the run.
    pub start: u32,
    /// When the devices began to work, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Each device.
    pub devices: Vec<DeviceFatigue>,
}

impl FatigueSegment {
    /// Returns the longest time of a device under load.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        let each = self.devices.iter().map(|device| device.elapsed_ns);
        each.max().unwrap_or(0)
    }
}

/// One device's results in a segment, over all its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFatigue {
    /// Index in [`DeviceResult::devices`].
    pub device: usize,
    /// Threads that used it.
    pub threads: u32,
    /// Time under load.
    pub elapsed_ns: u64,
    /// Operations and restarts.
    #[serde(flatten)]
    pub counts: FatigueCounts,
    /// Deaths of its process; restarts are counted separately, and the last death may have none.
    pub crashes: u64,
    /// Time under load that no worker could report on, since it died before its next report. The
    /// operations of this time are in no count. 0 in older journals.
    #[serde(default)]
    pub unreported_ns: u64,
    /// Rounds through the offered operations that every thread completed; `None` in journals that
    /// did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Times without failure in order, including the one that the end cut short. At most 1 000 are
    /// kept.
    pub lives: Vec<Life>,
    /// Lives that were not kept.
    #[serde(default)]
    pub lives_left_out: u64,
    /// The timeline: at most some hundred points.
    pub points: Vec<FatiguePoint>,
    /// The first failures as text, at most 20.
    pub reasons: Vec<String>,
    /// Peak resident memory of its processes, in bytes.
    pub resident_bytes_max: u64,
}

impl DeviceFatigue {
    /// Maximum number of lives kept per device and segment.
    pub const LIVES_MAX: usize = 1000;

    /// Whether there was no failure.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.counts.bad() == 0 && self.crashes == 0
    }
}

/// From a start of a device, or a restart, to its next failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// From the segment's beginning.
    pub began_ns: u64,
    /// From the segment's beginning.
    pub ended_ns: u64,
    /// Whether a failure ended it. Otherwise the trial ended first, and the time is censored: the
    /// device would have run longer.
    pub failed: bool,
}

impl Life {
    /// Time without failure.
    #[must_use]
    pub const fn ran_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.began_ns)
    }
}

/// A device's counts at a time, since the segment's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatiguePoint {
    /// From the segment's beginning.
    pub at_ns: u64,
    /// Right results, including refused inputs.
    pub right: u64,
    /// Wrong results, failures and accepted invalid inputs.
    pub bad: u64,
}

//! What trials of crypto devices record: the functional trial's rows, the speed with the proof of
//! who did the work, and how long devices ran without a failure.
//!
//! Counts and times are integers, as everywhere in a journal. Of a trial on several devices at once
//! each has its own entry, in the order of the plan ([`campaign::plan::Devices::members`]).

pub use operation::device::{Facts, KatOutcome, KatRow};

use super::{at_most_one, is_empty};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// The result of a trial on crypto devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceResult {
    /// What the devices say of themselves.
    pub devices: Vec<DeviceFacts>,
    /// What the trial found.
    pub found: DeviceFound,
}

/// What a trial on crypto devices found, by its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceFound {
    /// Why there is no figure though nothing failed: the device does not have the operation.
    NotOffered(String),
    /// For `kat`.
    Kat(Vec<KatRow>),
    /// For `speed`.
    Speed(SpeedTrial),
    /// For `fatigue`: one each time that the run was begun or taken up again, in that order.
    Fatigue(Vec<FatigueSegment>),
}

/// No case was tried.
impl Default for DeviceFound {
    fn default() -> Self {
        Self::Kat(Vec::new())
    }
}

impl DeviceResult {
    /// Whether a device gave a wrong result, let an invalid input pass, or failed. (Of a speed
    /// trial the evidence says it.)
    #[must_use]
    pub fn is_bad(&self) -> bool {
        let segments = self.fatigue().iter();
        let mut devices = segments.flat_map(|segment| &segment.devices);
        self.kat().iter().any(|row| row.outcome.is_bad())
            || devices.any(|device| !device.is_sound())
    }

    /// Why there is no figure though nothing failed.
    #[must_use]
    pub const fn not_offered(&self) -> Option<&str> {
        match &self.found {
            DeviceFound::NotOffered(why) => Some(why.as_str()),
            _ => None,
        }
    }

    /// The rows of `kat`; empty for others.
    #[must_use]
    pub fn kat(&self) -> &[KatRow] {
        match &self.found {
            DeviceFound::Kat(rows) => rows,
            _ => &[],
        }
    }

    /// The trial of `speed`.
    #[must_use]
    pub const fn speed(&self) -> Option<&SpeedTrial> {
        match &self.found {
            DeviceFound::Speed(speed) => Some(speed),
            _ => None,
        }
    }

    /// The segments of `fatigue`; empty for others.
    #[must_use]
    pub fn fatigue(&self) -> &[FatigueSegment] {
        match &self.found {
            DeviceFound::Fatigue(segments) => segments,
            _ => &[],
        }
    }
}

/// As journals have it: a key for each kind, of which one has a value.
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
                .map(|why| DeviceFound::NotOffered(why.into_owned())),
            (!wire.kat.is_empty()).then(|| DeviceFound::Kat(wire.kat.into_owned())),
            wire.speed
                .map(|speed| DeviceFound::Speed(speed.into_owned())),
            (!wire.fatigue.is_empty()).then(|| DeviceFound::Fatigue(wire.fatigue.into_owned())),
        ];
        let keys = "`not_offered`, `kat`, `speed` and `fatigue`";
        Ok(Self {
            devices: wire.devices.into_owned(),
            found: at_most_one(found, keys)?.unwrap_or_default(),
        })
    }
}

/// What a device says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Name of the member in the plan: `card 1`.
    pub member: String,
    /// The facts.
    #[serde(flatten)]
    pub facts: Facts,
}

/// One operation done again and again by everything that works at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpeedTrial {
    /// From the first process's beginning to the last one's end: rates are counts over this, so
    /// that processes which worked alone for a while flatter nobody.
    pub span_ns: u64,
    /// Of that, the time in which all of them worked.
    pub together_ns: u64,
    /// Each device that had work.
    pub devices: Vec<DeviceSpeed>,
    /// Our own engines at the same operation and size by one thread, measured just before, where
    /// the device is said to take work off the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<CpuReference>,
    /// Who did the work, where the device is said to take it off the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What one device did in a speed trial, by all processes that used it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpeed {
    /// Index in [`DeviceResult::devices`].
    pub device: usize,
    /// Processes.
    pub processes: u32,
    /// Threads in all of them together.
    pub threads: u32,
    /// Operations done.
    pub operations: u64,
    /// Bytes of their input.
    pub bytes: u64,
    /// CPU time of the processes, user and system.
    pub cpu_ns: u64,
    /// Operations in equal parts of the measured time, one after the other.
    pub slices: Vec<u64>,
    /// Operations that failed; in no other count.
    pub failed: u64,
    /// Results that were looked at after the measurement.
    pub checked: u64,
    /// Of those, wrong.
    pub wrong: u64,
    /// Median latency of an operation: the median over the processes of each one's own.
    pub latency_ns_p50: u64,
    /// 99th percentile, likewise.
    pub latency_ns_p99: u64,
    /// Longest of all that were timed.
    pub latency_ns_max: u64,
    /// Operations of the process that did fewest.
    pub operations_min: u64,
    /// Operations of the process that did most.
    pub operations_max: u64,
    /// What the device says that it did in that time; `None` where it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_operations: Option<u64>,
}

/// What the same work costs our own engines on the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuReference {
    /// Operations done.
    pub operations: u64,
    /// CPU time of it.
    pub cpu_ns: u64,
    /// Time of it.
    pub elapsed_ns: u64,
}

/// Who did the work of a device that is said to take it off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The device: it counted as many operations as were asked of it.
    Counted,
    /// The device: an operation costs the CPU less than half of what our own engines need for it.
    CpuFell,
    /// Nobody knows: neither is so. To be flagged: the card equals the CPU.
    EqualsCpu,
    /// Nobody knows: the device does not count, and our own engines do not have the operation.
    Unknown,
}

/// A snapshot of a fatigue trial that is going on, so that it is not lost when the run breaks off.
/// A later one with the same [`FatigueSegment::start`] takes its place; when the trial ends it is
/// in the trial's own record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatigueProgress {
    /// [`campaign::plan::Cell::id`].
    pub cell: String,
    /// From 1.
    pub repeat: u32,
    /// What the devices say of themselves.
    pub devices: Vec<DeviceFacts>,
    /// What came of it so far.
    pub segment: FatigueSegment,
}

/// A fatigue trial from one beginning, or taking up, to its end or to where it broke off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatigueSegment {
    /// 1, and one more each time that the run was taken up again.
    pub start: u32,
    /// When the devices began to work, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Each device.
    pub devices: Vec<DeviceFatigue>,
}

impl FatigueSegment {
    /// Time under load: of the device that was under it longest.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        let each = self.devices.iter().map(|device| device.elapsed_ns);
        each.max().unwrap_or(0)
    }
}

/// What one device went through in a segment, by all processes that used it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFatigue {
    /// Index in [`DeviceResult::devices`].
    pub device: usize,
    /// Threads that worked on it.
    pub threads: u32,
    /// Time that it was under load.
    pub elapsed_ns: u64,
    /// Operations done and right.
    pub right: u64,
    /// Operations with a wrong result.
    pub wrong: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Invalid inputs that were refused, as they should be.
    pub refused: u64,
    /// Invalid inputs that passed: a failure.
    pub passed_invalid: u64,
    /// Times that the device was opened anew after a failure.
    pub restarts: u64,
    /// Of those, times that its process had died.
    pub crashes: u64,
    /// Rounds through those operations that it has which every thread did; `None` in journals that
    /// did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Times without failure, in order, the one that the end cut short included. At most 1 000 are
    /// kept.
    pub lives: Vec<Life>,
    /// Lives that were not kept.
    #[serde(default)]
    pub lives_left_out: u64,
    /// What it had done by when: at most some hundred points.
    pub points: Vec<FatiguePoint>,
    /// What went wrong first, at most 20 texts.
    pub reasons: Vec<String>,
    /// Most resident memory of its processes at once, in bytes.
    pub resident_bytes_max: u64,
}

impl DeviceFatigue {
    /// Most lives that are kept of a device and segment.
    pub const LIVES_MAX: usize = 1000;

    /// Whether nothing went wrong.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.wrong == 0 && self.failed == 0 && self.passed_invalid == 0 && self.crashes == 0
    }
}

/// From a start of a device, or a restart, to its next failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// From the segment's beginning.
    pub began_ns: u64,
    /// From the segment's beginning.
    pub ended_ns: u64,
    /// Whether a failure ended it; otherwise the trial did, and the device would have run longer: a
    /// time that is censored.
    pub failed: bool,
}

impl Life {
    /// Time without failure.
    #[must_use]
    pub const fn ran_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.began_ns)
    }
}

/// What a device had done by then, since the segment's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatiguePoint {
    /// From the segment's beginning.
    pub at_ns: u64,
    /// Operations done and right, refused inputs included.
    pub right: u64,
    /// Wrong results, failures and invalid inputs that passed.
    pub bad: u64,
}

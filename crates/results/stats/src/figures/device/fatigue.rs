//! Fatigue trials: each device's time without failure.
//!
//! A failure is a wrong result, a failed operation, an accepted invalid input, or a process that
//! died. The time without failure of a device is its time under load until the first failure;
//! without one it is censored, since the device would have run longer. Segments of a resumed run
//! add up; the time between them does not count.

use super::survival::{Life, Survival};
use super::{DeviceTestInfo, Repeats};
use crate::figures::repeats::{Total, per_second};
use journal::record::{DeviceFatigue, FatigueCounts, FatigueSegment};
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of reasons reported per device, over all its segments.
const REASONS_TOLD: usize = 20;

/// The result of a fatigue trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FatigueResult {
    /// Each device in each repeat.
    pub devices: Vec<FatigueDevice>,
    /// Times to the first failure, each device of each repeat once.
    pub survival: Survival,
    /// Times from every start to its failure, restarts included; `null` without restarts. If some
    /// lives were not kept, its mean time between failures still covers all: time under load by
    /// failures.
    pub lives: Option<Survival>,
}

/// One device in one repeat.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FatigueDevice {
    /// Its name in the plan.
    pub member: String,
    /// From 1.
    pub repeat: u32,
    /// Threads that used it.
    pub threads: u32,
    /// Times that the trial was started or resumed.
    pub starts: u32,
    /// Time under load.
    pub elapsed_ns: u64,
    /// Time under load until the first failure; all of it without one.
    pub without_failure_ns: u64,
    /// Whether a failure ended it.
    pub has_failed: bool,
    /// Operations and restarts.
    #[serde(flatten)]
    pub counts: FatigueCounts,
    /// Times that its process died or was killed because it hung. After the last time it may not
    /// have been restarted.
    pub crashes: u64,
    /// Time under load without counted operations, since the process died before it reported them:
    /// the counts are lower bounds if this is above 0.
    pub unreported_ns: u64,
    /// Right results and refused invalid inputs, by the time under load that was reported on.
    pub operations_per_s: f64,
    /// Times without failure that were kept, one after each start.
    pub lives_kept: u64,
    /// Times that were not kept: for a device that fails all the time, only the first ones are.
    pub lives_left_out: u64,
    /// Longest kept time without failure after a start.
    pub longest_life_ns: u64,
    /// Peak resident memory of its processes.
    pub resident_bytes_max: u64,
    /// The first failures, as text.
    pub reasons: Vec<String>,
}

/// One device's segments of a repeat, with the time under load before each.
struct Parts<'a>(Vec<(u64, &'a DeviceFatigue)>);

impl<'a> Parts<'a> {
    fn of(segments: &'a [FatigueSegment], device: usize) -> Self {
        let own = segments
            .iter()
            .flat_map(|segment| &segment.devices)
            .filter(|part| part.device == device);
        let mut before_ns = 0_u64;
        let parts = own.map(|part| {
            let at = before_ns;
            // Time under load before each segment: times within a segment are counted from its
            // start.
            before_ns = before_ns.saturating_add(part.elapsed_ns);
            (at, part)
        });
        Self(parts.collect())
    }

    fn sum(&self, of: fn(&DeviceFatigue) -> u64) -> u64 {
        let parts = self.0.iter().map(|(_, part)| of(part));
        parts.total()
    }

    fn counts(&self) -> FatigueCounts {
        let mut counts = FatigueCounts::default();
        for (_, part) in &self.0 {
            counts += part.counts;
        }
        counts
    }

    /// Time under load until the first failure.
    fn first_failure_ns(&self) -> Option<u64> {
        let (before_ns, part) = self.0.iter().find(|(_, part)| !is_sound(part))?;
        let life = part
            .lives
            .iter()
            .find(|life| life.failed)
            .map(|life| life.ended_ns);
        // Without a failed life, the first point that shows a failure; without one, the time is
        // unknown.
        let point = part.points.iter().find(|point| point.bad > 0);
        let at = life.or_else(|| point.map(|point| point.at_ns));
        let at = at.unwrap_or(part.elapsed_ns).min(part.elapsed_ns.max(1));
        Some(before_ns.saturating_add(at))
    }

    fn lives(&self) -> impl Iterator<Item = Life> {
        let lives = self.0.iter().flat_map(|(_, part)| &part.lives);
        lives.map(|life| Life {
            ns: life.ran_ns(),
            failed: life.failed,
        })
    }
}

/// Whether neither counts nor lives show a failure.
fn is_sound(part: &DeviceFatigue) -> bool {
    part.is_sound() && part.lives.iter().all(|life| !life.failed)
}

impl FatigueResult {
    /// `None` when nothing was recorded.
    pub(super) fn of(info: &DeviceTestInfo, repeats: &Repeats<'_>) -> Option<Self> {
        let mut devices = Vec::new();
        let mut lives = Vec::new();
        for (repeat, found) in repeats {
            for (device, member) in info.members.iter().enumerate() {
                let parts = Parts::of(found.fatigue(), device);
                lives.extend(parts.lives());
                devices.extend(FatigueDevice::of(member, *repeat, &parts));
            }
        }
        let restarts = devices.iter().any(|device| device.counts.restarts > 0);
        let sum = |of: fn(&FatigueDevice) -> u64| devices.iter().map(of).total();
        // Every life but the last was ended by a failure.
        let kept = lives.iter().filter(|life| life.failed).count() as u64;
        let left_out = sum(|device| device.lives_left_out);
        let more = |found: Survival| match left_out {
            0 => found,
            _ => found.of_more(
                sum(|device| device.elapsed_ns),
                kept.saturating_add(left_out),
            ),
        };
        Some(Self {
            survival: Survival::of(devices.iter().map(FatigueDevice::life).collect())?,
            // Without restarts each device has one life, and this curve would repeat the first one.
            lives: if restarts {
                Survival::of(lives).map(more)
            } else {
                None
            },
            devices,
        })
    }
}

impl FatigueDevice {
    fn of(member: &str, repeat: u32, parts: &Parts<'_>) -> Option<Self> {
        let last = parts.0.last()?.1;
        let elapsed_ns = parts.sum(|part| part.elapsed_ns);
        let unreported_ns = parts.sum(|part| part.unreported_ns);
        let first_failure_ns = parts.first_failure_ns();
        let counts = parts.counts();
        let mut reasons: Vec<String> = Vec::new();
        for reason in parts.0.iter().flat_map(|(_, part)| &part.reasons) {
            // A later segment with the same reason is the same finding.
            if reasons.len() < REASONS_TOLD && !reasons.contains(reason) {
                reasons.push(reason.clone());
            }
        }
        Some(Self {
            member: member.to_owned(),
            repeat,
            threads: last.threads,
            starts: u32::try_from(parts.0.len()).unwrap_or(u32::MAX),
            elapsed_ns,
            without_failure_ns: first_failure_ns.unwrap_or(elapsed_ns),
            has_failed: first_failure_ns.is_some(),
            counts,
            crashes: parts.sum(|part| part.crashes),
            unreported_ns,
            // The operations of a process that died before its report are not known, so the time
            // without a report does not count either.
            operations_per_s: per_second(counts.good(), elapsed_ns.saturating_sub(unreported_ns))
                .unwrap_or(0.0),
            lives_kept: parts.lives().count() as u64,
            lives_left_out: parts.sum(|part| part.lives_left_out),
            longest_life_ns: parts
                .lives()
                .map(|life| life.ns)
                .max()
                .unwrap_or(elapsed_ns),
            resident_bytes_max: parts
                .0
                .iter()
                .map(|(_, part)| part.resident_bytes_max)
                .max()
                .unwrap_or(0),
            reasons,
        })
    }

    pub(crate) fn life(&self) -> Life {
        Life {
            ns: self.without_failure_ns,
            failed: self.has_failed,
        }
    }
}

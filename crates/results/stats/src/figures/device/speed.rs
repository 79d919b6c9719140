//! Speed of a device with one operation, its CPU cost, and which hardware did the work.

use super::{DeviceTestInfo, Repeats};
use crate::figures::estimate::Estimate;
use crate::figures::repeats::{Total, estimate, per_second, ratio};
use catalog::Operation;
use journal::record::{CpuReference, DeviceSpeed, Proof, SpeedTrial};
use schemars::JsonSchema;
use serde::Serialize;

/// Minimum probability of detecting a device with 1 wrong result in 1000: 99 %, as
/// [`catalog::sample`] plans it.
pub const FOUND_MIN: f64 = catalog::sample::POWER_MIN_PPM as f64 / 1e6;

/// Workers count as parallel if all of them worked for at least this share of the time.
pub(crate) const TOGETHER_MIN_RATIO: f64 = 0.9;

/// The result of a speed trial. Rates are over all devices, from the beginning of the first to the
/// end of the last.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceSpeedResult {
    /// Completed operations.
    pub operations_per_s: Estimate,
    /// Bytes of their input; `null` if its size is meaningless.
    pub bytes_per_s: Option<Estimate>,
    /// CPU time of the worker processes per operation, user and system.
    pub cpu_ns_per_operation: Estimate,
    /// Cores that they kept busy.
    pub cpu_cores: Estimate,
    /// Median latency of an operation: the median of the processes' medians, over the repeats.
    pub latency_p50_ns: Estimate,
    /// 99th percentile likewise.
    pub latency_p99_ns: Estimate,
    /// Maximum of all timed latencies, in all repeats.
    pub latency_max_ns: u64,
    /// Each device's part.
    pub members: Vec<MemberSpeed>,
    /// Share of the time during which all of them worked; the minimum of the repeats.
    pub together_ratio: f64,
    /// Largest distance of one of the equal parts of the time from their mean, in per cent of it;
    /// the maximum of all repeats.
    pub slice_distance_percent: Option<f64>,
    /// Operations that failed, over all repeats.
    pub failed: u64,
    /// Results checked against the CPU, over all repeats: selected at random from the measured time
    /// and from right after it.
    pub checked: u64,
    /// Probability of detecting a device with 1 wrong result in 1000 and, if results are verdicts,
    /// one that accepts 1 in 1000 invalid inputs: the minimum of both, over devices and repeats;
    /// `null` in older journals.
    pub found_one_in_1000: Option<f64>,
    /// Wrong ones of these results, and invalid inputs that were accepted.
    pub wrong: u64,
    /// Invalid inputs that were offered, over all repeats; `null` if the operation gives no
    /// verdict, and in older journals.
    pub invalid_offered: Option<u64>,
    /// Invalid inputs that were accepted.
    pub invalid_accepted: Option<u64>,
    /// CPU time of our engines for one such operation, measured just before; `null` if they do not
    /// offer it, or the device is not declared to take work off the CPU.
    pub reference_cpu_ns_per_operation: Option<Estimate>,
    /// Ratio of an operation's CPU time to the CPU time of our engines.
    pub cpu_ratio: Option<f64>,
    /// Which hardware did the work; `null` if the device is not declared to take work off the CPU.
    pub proof: Option<Proof>,
}

/// One device's part of a speed trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MemberSpeed {
    /// Its name in the plan.
    pub member: String,
    /// Completed operations.
    pub operations_per_s: Estimate,
    /// Operations by the device's counter, divided by requested operations; `null` without a
    /// counter. The minimum of the repeats.
    pub counted_ratio: Option<f64>,
    /// Most operations of a process, divided by the fewest; `null` if a process did none.
    pub most_by_fewest: Option<f64>,
}

impl DeviceSpeedResult {
    /// `None` when no repeat has a speed.
    pub(super) fn of(info: &DeviceTestInfo, repeats: &Repeats<'_>) -> Option<Self> {
        let trials: Vec<(u32, &SpeedTrial)> = repeats
            .iter()
            .filter_map(|(repeat, found)| Some((*repeat, found.speed()?)))
            .collect();
        // A trial's figures are over all of its devices, which work in parallel.
        let sum = |trial: &SpeedTrial, of: fn(&DeviceSpeed) -> u64| -> u64 {
            trial.devices.iter().map(of).total()
        };
        let over_all = |of: fn(&DeviceSpeed) -> u64| -> u64 {
            trials.iter().map(|(_, trial)| sum(trial, of)).total()
        };
        let over_all_known = |of: fn(&DeviceSpeed) -> Option<u64>| -> Option<u64> {
            let devices = trials.iter().flat_map(|(_, trial)| &trial.devices);
            let known = devices.map(of).collect::<Option<Vec<u64>>>()?;
            Some(known.into_iter().total())
        };
        let rate = |of: fn(&DeviceSpeed) -> u64| {
            estimate(&trials, move |trial| {
                per_second(sum(trial, of), trial.span_ns)
            })
        };
        let cpu = estimate(&trials, |trial| {
            ratio(
                sum(trial, |one| one.cpu_ns),
                sum(trial, |one| one.operations),
            )
        })?;
        let references: Vec<(u32, CpuReference)> = trials
            .iter()
            .filter_map(|(repeat, trial)| Some((*repeat, trial.reference?)))
            .collect();
        let reference = estimate(&references, |found| ratio(found.cpu_ns, found.operations));
        let together = trials
            .iter()
            .filter_map(|(_, trial)| ratio(trial.together_ns, trial.span_ns));
        let proofs = trials.iter().filter_map(|(_, trial)| trial.proof);
        Some(Self {
            operations_per_s: rate(|one| one.operations)?,
            bytes_per_s: match info.input_bytes {
                Some(_) => Some(rate(|one| one.bytes)?),
                None => None,
            },
            cpu_cores: estimate(&trials, |trial| {
                ratio(sum(trial, |one| one.cpu_ns), trial.span_ns)
            })?,
            latency_p50_ns: estimate(&trials, |trial| middle(trial, |one| one.latency_ns_p50))?,
            latency_p99_ns: estimate(&trials, |trial| middle(trial, |one| one.latency_ns_p99))?,
            latency_max_ns: trials
                .iter()
                .flat_map(|(_, trial)| &trial.devices)
                .map(|one| one.latency_ns_max)
                .max()
                .unwrap_or(0),
            members: members(info, &trials),
            // The worst repeat counts: workers that ran alone in one of them spoil the mean.
            together_ratio: together.fold(1.0, f64::min),
            slice_distance_percent: trials
                .iter()
                .filter_map(|(_, trial)| slice_distance(trial))
                .reduce(f64::max),
            failed: over_all(|one| one.failed),
            checked: over_all(|one| one.checked),
            found_one_in_1000: found_one_in_1000(&trials, gives_verdict(info)),
            // To accept an invalid input is a wrong result too, of an operation that gives a
            // verdict.
            wrong: over_all(|one| one.wrong.saturating_add(one.accepted.unwrap_or(0))),
            invalid_offered: over_all_known(|one| one.invalid),
            invalid_accepted: over_all_known(|one| one.accepted),
            cpu_ratio: reference
                .as_ref()
                .filter(|reference| reference.mean > 0.0)
                .map(|reference| cpu.mean / reference.mean),
            reference_cpu_ns_per_operation: reference,
            // Proofs are ordered from the best to the worst, and the worst repeat counts.
            proof: proofs.max(),
            cpu_ns_per_operation: cpu,
        })
    }

    /// The main figure of the trial: bytes per second, or operations if the size is meaningless.
    #[must_use]
    pub fn figure(&self) -> &Estimate {
        self.bytes_per_s.as_ref().unwrap_or(&self.operations_per_s)
    }
}

fn gives_verdict(info: &DeviceTestInfo) -> bool {
    let operation = info.operation.as_deref().map(Operation::parse);
    operation.is_some_and(|operation| operation.is_ok_and(Operation::gives_verdict))
}

/// Returns the least detection power of the devices' samples; `None` if one does not record it.
fn found_one_in_1000(trials: &[(u32, &SpeedTrial)], gives_verdict: bool) -> Option<f64> {
    let devices = trials.iter().flat_map(|(_, trial)| &trial.devices);
    let power = |one: &DeviceSpeed| {
        if gives_verdict {
            Some(one.power_ppm?.min(one.acceptance_power_ppm?))
        } else {
            one.power_ppm
        }
    };
    // If one device does not record it, the least of all is unknown.
    let powers: Option<Vec<u32>> = devices.map(power).collect();
    Some(f64::from(powers?.into_iter().min()?) / 1e6)
}

/// The devices' mean of a time, weighted by operations.
fn middle(trial: &SpeedTrial, of: impl Fn(&DeviceSpeed) -> u64) -> Option<f64> {
    let all = trial.devices.iter().map(|one| one.operations).total();
    let sum: f64 = trial
        .devices
        .iter()
        .map(|one| one.operations as f64 * of(one) as f64)
        .sum();
    (all > 0).then(|| sum / all as f64)
}

fn members(info: &DeviceTestInfo, trials: &[(u32, &SpeedTrial)]) -> Vec<MemberSpeed> {
    let of = |(device, member): (usize, &String)| {
        let own: Vec<(u32, (&DeviceSpeed, u64))> = trials
            .iter()
            .filter_map(|(repeat, trial)| {
                let one = trial.devices.iter().find(|one| one.device == device)?;
                Some((*repeat, (one, trial.span_ns)))
            })
            .collect();
        let counted = own
            .iter()
            .filter_map(|(_, (one, _))| ratio(one.device_operations?, one.operations));
        let most = own
            .iter()
            .map(|(_, (one, _))| ratio(one.operations_max, one.operations_min));
        Some(MemberSpeed {
            member: member.clone(),
            operations_per_s: estimate(&own, |(one, span_ns)| {
                per_second(one.operations, *span_ns)
            })?,
            counted_ratio: counted.reduce(f64::min),
            most_by_fewest: most
                .collect::<Option<Vec<f64>>>()
                .and_then(|all| all.into_iter().reduce(f64::max)),
        })
    };
    info.members.iter().enumerate().filter_map(of).collect()
}

/// Largest distance of a part of the time from the mean of all parts, over all devices, in per
/// cent; `None` with one part.
fn slice_distance(trial: &SpeedTrial) -> Option<f64> {
    // Only the parts that every device has, so that each sum is over all devices.
    let parts = trial.devices.iter().map(|one| one.slices.len()).min()?;
    let sums: Vec<f64> = (0..parts)
        .map(|part| {
            trial
                .devices
                .iter()
                .map(|one| one.slices[part] as f64)
                .sum()
        })
        .collect();
    let mean = sums.iter().sum::<f64>() / parts.max(1) as f64;
    let most = sums.iter().map(|sum| (sum - mean).abs()).reduce(f64::max)?;
    (parts > 1 && mean > 0.0).then(|| 100.0 * most / mean)
}

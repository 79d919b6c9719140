//! Evidence of a speed trial: which hardware did the work, and checks of its figure.

use crate::evidence::{count, percent, then_repeat, then_repeat_or};
use catalog::Operation;
use catalog::sample::WRONG_ONE_IN;
use journal::record::{Check, DeviceSpeed, Explanation, Proof, SpeedTrial};
use plan::DeviceSpeed as Test;

/// The counts of a device and of its workers may differ by the operations in flight at both ends,
/// and by one in this many.
const COUNT_TOLERANCE: u64 = 100;
/// Minimum time during which all workers work, in per cent of the time from the first one's
/// beginning to the last one's end.
const TOGETHER_PERCENT: u64 = 50;

/// Returns the proof that a device takes work off the CPU, or the lack of it.
pub(super) fn proof(trial: &SpeedTrial, test: &Test) -> Proof {
    let counts = counted(trial);
    match counts {
        Some((counted, requested)) if counted > 0 && agree(counted, requested, test) => {
            return Proof::Counted;
        }
        // Its counter shows no work. If CPU time fell nevertheless, this device was not the reason.
        Some((0, requested)) if requested > 0 => return Proof::EqualsCpu,
        _ => {}
    }
    let operations: u64 = trial.devices.iter().map(|device| device.operations).sum();
    let cpu_ns: u64 = trial.devices.iter().map(|device| device.cpu_ns).sum();
    // Without operations there is no time of one operation.
    let reference = trial.reference.filter(|found| found.operations > 0);
    match reference.filter(|_| operations > 0) {
        Some(reference) => {
            let product =
                |cpu_ns: u64, operations: u64| u128::from(cpu_ns) * u128::from(operations);
            let own = product(cpu_ns, reference.operations);
            // Less than half of the CPU time per operation, compared by products: integers, and no
            // division by a small time.
            if own.saturating_mul(2) < product(reference.cpu_ns, operations) {
                Proof::CpuFell
            } else {
                Proof::EqualsCpu
            }
        }
        // A counter that does not agree is no proof, and without a reference there is no other one.
        None if counts.is_some() => Proof::EqualsCpu,
        None => Proof::Unknown,
    }
}

/// Returns the devices' counts and the requested operations; `None` if a device does not count.
fn counted(trial: &SpeedTrial) -> Option<(u64, u64)> {
    let devices = trial.devices.iter();
    let counted = devices.clone().map(|device| device.device_operations);
    let requested = devices.map(|device| device.operations + device.failed);
    // Failed operations were requested too, and a device may count them.
    Some((counted.sum::<Option<u64>>()?, requested.sum()))
}

/// Describes the invalid inputs that were offered, and what they find; empty if the operation gives
/// no verdict.
fn invalid_inputs(trial: &SpeedTrial) -> String {
    let sum =
        |of: fn(&DeviceSpeed) -> Option<u64>| -> Option<u64> { trial.devices.iter().map(of).sum() };
    let power = trial.devices.iter().map(|one| one.acceptance_power_ppm);
    let (Some(invalid), Some(accepted), Some(Some(power))) =
        (sum(|one| one.invalid), sum(|one| one.accepted), power.min())
    else {
        return String::new();
    };
    format!(
        "; {invalid} invalid inputs were offered at random, and {accepted} of them accepted; with 1 false acceptance in \
         {WRONG_ONE_IN} a device is found with a probability of {:.2} %; a valid input that it refuses is a failed \
         operation",
        f64::from(power) / 10_000.0
    )
}

/// Describes which results were checked, and what that finds; empty without any.
fn selection(trial: &SpeedTrial, operations: u64) -> String {
    let measured: Option<u64> = trial.devices.iter().map(|one| one.checked_measured).sum();
    let power = trial.devices.iter().map(|one| one.power_ppm).min();
    let (Some(measured), Some(Some(power))) = (measured, power) else {
        return String::new();
    };
    let share = 100.0 * measured as f64 / operations.max(1) as f64;
    format!(
        "; selected at random, {measured} of them ({share:.3} %) from the measured time and the others from right after \
         it under the same load; with 1 wrong result in {WRONG_ONE_IN} a device is found with a probability of {:.2} %",
        f64::from(power) / 10_000.0
    )
}

fn agree(counted: u64, done: u64, test: &Test) -> bool {
    // The counters are read while operations are in flight, at both ends of the time.
    let in_flight = u64::from(test.concurrency) * u64::from(test.depth) * 2;
    counted.abs_diff(done) <= done / COUNT_TOLERANCE + in_flight
}

/// Whether the results of the trial's operation are verdicts.
pub(super) fn gives_verdict(test: &Test) -> bool {
    Operation::parse(&test.operation).is_ok_and(Operation::gives_verdict)
}

/// Makes the checks of the figure. A device that did not do the work is flagged by its [`Proof`]
/// instead, since the measured work itself was done.
pub(super) fn checks(trial: &SpeedTrial, test: &Test) -> Vec<Check> {
    let sum = |of: fn(&DeviceSpeed) -> u64| -> u64 { trial.devices.iter().map(of).sum() };
    let (operations, failed) = (sum(|device| device.operations), sum(|device| device.failed));
    let (checked, wrong) = (sum(|device| device.checked), sum(|device| device.wrong));
    let invalid = gives_verdict(test).then(|| Verdicts {
        invalid: sum(|device| device.invalid.unwrap_or(0)),
        accepted: sum(|device| device.accepted.unwrap_or(0)),
    });
    let mut checks = vec![
        Check::new(
            "results-right",
            wrong_results(checked, wrong, invalid.as_ref()),
            match checked {
                0 => format!("no result was checked{}", invalid_inputs(trial)),
                _ => format!(
                    "{wrong} of {checked} checked results were wrong{}{}",
                    selection(trial, operations),
                    invalid_inputs(trial)
                ),
            },
        ),
        Check::new(
            "nothing-failed",
            failed_operations(operations, failed),
            format!("{operations} operations succeeded, {failed} failed"),
        ),
    ];
    let processes: u32 = trial.devices.iter().map(|device| device.processes).sum();
    if processes > 1 {
        // Only for processes: threads of one process begin together at a barrier.
        let share = trial.together_ns.saturating_mul(100) / trial.span_ns.max(1);
        let idle = trial
            .devices
            .iter()
            .any(|device| device.operations_min == 0);
        let difference = match idle {
            true => Some(format!("some of {processes} processes did nothing")),
            false if share < TOGETHER_PERCENT => Some(format!(
                "the {processes} processes worked in parallel for only {share} % of the time"
            )),
            false => None,
        };
        let failure = difference.map(|difference| {
            Explanation::new(
                difference,
                "the trial is too short for all of them to start, or they waited for cores or for the device",
                then_repeat_or(
                    "stop what else uses this machine",
                    "raise `duration` in a new run",
                ),
            )
        });
        let detail = if idle {
            format!("some of {processes} processes did nothing")
        } else {
            format!(
                "all {processes} processes worked in parallel for {share} % of the time from the first one's \
                 beginning to the last one's end; at least {TOGETHER_PERCENT} % are required"
            )
        };
        checks.push(Check::new("worked-at-once", failure, detail));
    }
    if let Some((counted, done)) = counted(trial)
        && counted > 0
    {
        let failure = (!agree(counted, done, test)).then(|| {
            let by = count(counted.abs_diff(done), done, "operation");
            let than = if counted > done { "more" } else { "fewer" };
            Explanation::new(
                format!("the device counted {by} {than} than were requested"),
                if counted > done { "another program uses the device too" } else { "a library or driver computed some on the CPU instead, or the counter is wrong" },
                then_repeat(
                    "stop what else uses the device, and look in its driver's log for a fallback to software",
                ),
            )
        });
        let detail = format!("the device counted {counted} of {done} requested operations");
        checks.push(Check::new("device-counted", failure, detail));
    }
    checks
}

/// Verdicts on invalid inputs.
struct Verdicts {
    invalid: u64,
    accepted: u64,
}

fn wrong_results(checked: u64, wrong: u64, verdicts: Option<&Verdicts>) -> Option<Explanation> {
    if let Some(Verdicts { invalid, accepted }) = verdicts {
        // First, since it is the worst: a device that accepts forged input.
        if *accepted > 0 {
            return Some(Explanation::new(
                format!(
                    "{} were accepted",
                    count(*accepted, *invalid, "invalid input")
                ),
                "the device or its driver does not verify, or not everything",
                "run `cipherbench kat` on the device, and report it to its maker: do not rely on its verdicts",
            ));
        }
        // Valid inputs alone would pass a device that accepts everything.
        if *invalid == 0 && checked > 0 {
            return Some(Explanation::new(
                "the device gave no verdict on any invalid input",
                "it fails at them, or the measured time is too short",
                "run `cipherbench kat` on the device, or raise `duration` in a new run",
            ));
        }
    }
    if checked == 0 {
        return Some(Explanation::new(
            "no result was checked",
            "no operation ended in the measured time",
            "raise `duration` in a new run",
        ));
    }
    (wrong > 0).then(|| {
        Explanation::new(
            format!(
                "{} were wrong",
                count(wrong, checked, "checked result")
            ),
            "the device or its driver computes wrong under this load",
            "run `cipherbench kat` on the device, and report it to its maker: none of its figures counts",
        )
    })
}

fn failed_operations(operations: u64, failed: u64) -> Option<Explanation> {
    if failed == 0 && operations > 0 {
        return None;
    }
    let difference = match operations {
        0 => "no operation succeeded".to_owned(),
        _ => format!(
            "{failed} operations ({}) failed",
            percent(failed, operations.saturating_add(failed))
        ),
    };
    Some(Explanation::new(
        difference,
        "the device refuses this operation or size or valid input, ran out of sessions or buffers, or broke down",
        then_repeat_or(
            "look in its driver's log for the reason, and remove it",
            "lower `concurrency` or `depth`, in a new run",
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::CpuReference;
    use plan::Workers;

    const TEST: Test = Test {
        operation: String::new(),
        bytes: None,
        concurrency: 4,
        workers: Workers::Threads,
        depth: 1,
        duration_ns: 1_000,
        slices: 1,
    };

    fn trial(operations: u64, cpu_ns: u64, device_operations: Option<u64>) -> SpeedTrial {
        SpeedTrial {
            span_ns: 1_000,
            together_ns: 900,
            devices: vec![DeviceSpeed {
                processes: 1,
                operations,
                cpu_ns,
                checked: 3,
                operations_min: operations,
                device_operations,
                ..DeviceSpeed::default()
            }],
            reference: Some(CpuReference {
                operations: 100,
                cpu_ns: 10_000,
                elapsed_ns: 10_000,
            }),
            proof: None,
        }
    }

    fn failed(trial: &SpeedTrial) -> Vec<String> {
        let checks = checks(trial, &TEST).into_iter();
        checks
            .filter(|check| !check.passed)
            .map(|check| check.name)
            .collect()
    }

    #[test]
    fn a_device_did_the_work_if_it_counted_it_or_cpu_time_fell() {
        let proof = |trial: &SpeedTrial| proof(trial, &TEST);
        assert_eq!(proof(&trial(1_000, 100_000, Some(1_005))), Proof::Counted);
        // 49 ns and 51 ns; our engines need 100 ns.
        assert_eq!(proof(&trial(1_000, 49_000, None)), Proof::CpuFell);
        assert_eq!(proof(&trial(1_000, 51_000, None)), Proof::EqualsCpu);
        // Its counter did not move: it is no offload at any CPU time.
        assert_eq!(proof(&trial(1_000, 1, Some(0))), Proof::EqualsCpu);
        let unknown = SpeedTrial {
            reference: None,
            ..trial(1_000, 1, None)
        };
        assert_eq!(proof(&unknown), Proof::Unknown);
        // A reference without operations is no reference.
        let idle = CpuReference {
            operations: 0,
            cpu_ns: 200_000_000,
            elapsed_ns: 200_000_000,
        };
        let idle = SpeedTrial {
            reference: Some(idle),
            ..trial(1_000, 1, None)
        };
        assert_eq!(proof(&idle), Proof::Unknown);
        // A device without operations spared no CPU time.
        assert_eq!(proof(&trial(0, 0, None)), Proof::Unknown);
        // Less than a nanosecond per operation still counts.
        let short = |cpu_ns| SpeedTrial {
            reference: Some(CpuReference {
                operations: 1_000,
                cpu_ns: 900,
                elapsed_ns: 900,
            }),
            ..trial(1_000, cpu_ns, None)
        };
        assert_eq!(proof(&short(449)), Proof::CpuFell);
        assert_eq!(proof(&short(450)), Proof::EqualsCpu);
    }

    #[test]
    fn wrong_results_failures_and_false_counts_fail_checks() {
        assert!(failed(&trial(1_000, 1, Some(1_000))).is_empty());
        assert_eq!(failed(&trial(1_000, 1, Some(1_500))), ["device-counted"]);
        let mut wrong = trial(1_000, 1, None);
        wrong.devices[0].wrong = 1;
        assert_eq!(failed(&wrong), ["results-right"]);
        wrong.devices[0] = DeviceSpeed {
            checked: 0,
            wrong: 0,
            failed: 1,
            ..wrong.devices[0].clone()
        };
        assert_eq!(failed(&wrong), ["results-right", "nothing-failed"]);
    }

    /// Before, a verification that does nothing passed, since all inputs were valid.
    #[test]
    fn a_device_that_accepts_an_invalid_input_fails_a_check() {
        let test = Test {
            operation: "ecdsa-p256 verify".to_owned(),
            ..TEST
        };
        let check = |invalid, accepted| {
            let mut trial = trial(1_000, 1, None);
            trial.devices[0].invalid = Some(invalid);
            trial.devices[0].accepted = Some(accepted);
            trial.devices[0].acceptance_power_ppm = Some(990_123);
            checks(&trial, &test).swap_remove(0)
        };
        let right = check(4_603, 0);
        assert!(right.passed, "{right:?}");
        let detail = "4603 invalid inputs were offered at random, and 0 of them accepted; with 1 false acceptance in 1000 \
                      a device is found with a probability of 99.01 %";
        assert!(right.detail.contains(detail), "{right:?}");
        for (invalid, accepted) in [(4_603, 4_603), (4_603, 1), (0, 0)] {
            let found = check(invalid, accepted);
            assert!(!found.passed, "{found:?}");
        }
        // Other operations have none.
        assert!(failed(&trial(1_000, 1, None)).is_empty());
    }

    #[test]
    fn processes_that_take_turns_are_not_parallel() {
        let mut apart = trial(1_000, 1, None);
        apart.devices[0].processes = 2;
        assert!(failed(&apart).is_empty());
        apart.together_ns = 400;
        assert_eq!(failed(&apart), ["worked-at-once"]);
    }
}

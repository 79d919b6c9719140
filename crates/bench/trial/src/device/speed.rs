//! The speed trial: all workers get ready, begin together, and their results are summed up.

use super::pool::{WorkerPool, raise_descriptor_limit};
use super::proof::{checks, gives_verdict, proof};
use super::{Context, facts, measured, problem, spec};
use crate::error::TrialError;
use crate::measurer::judge;
use catalog::device::Facts;
use catalog::sample::power_ppm;
use catalog::worker::{Line, Spec, Speed};
use journal::record::{
    Cpu, CpuReference, DeviceRecord, DeviceResult, DeviceSpeed, Evidence, Figures, Measured,
    Outcome, SpeedTrial,
};
use plan::{Device, DeviceKind, DeviceSpeed as Test, DeviceTest, Devices, Workers};
use std::time::{Duration, Instant};

/// Time until all workers are ready: a constant, and a share for each of them.
const READY_LIMIT: Duration = Duration::from_secs(120);
const READY_LIMIT_EACH: Duration = Duration::from_millis(200);
/// From the end of the measured time until results are verified: workers do so within 70 s, and
/// the others of a thousand on a few cores wait meanwhile.
const CHECK_LIMIT: Duration = Duration::from_secs(120);
/// Duration of the reference measurement of our engines, before a device that offloads the CPU.
const REFERENCE: Duration = Duration::from_millis(200);
const REFERENCE_SLICES: u32 = 4;

/// The results of workers, each with the index of its device; or why the operation is not offered.
type Speeds = Result<Vec<(usize, Speed)>, String>;

impl Context<'_> {
    pub(super) fn speed(&self, devices: &Devices, test: &Test) -> Result<Outcome, TrialError> {
        raise_descriptor_limit();
        // Before the device's workers run, which would take CPU time from it.
        let reference = if devices.offloads {
            self.reference(test)?
        } else {
            None
        };
        let members = &devices.members;
        let mut found = vec![None; members.len()];
        let speeds = self.run_workers(members, test, &mut found)?;
        let found = members.iter().zip(&found);
        let found = found
            .map(|(member, found)| facts(member, found.as_ref()))
            .collect();
        let speeds = match speeds {
            Ok(speeds) => speeds,
            Err(why) => return Ok(measured(found, DeviceRecord::NotOffered(why))),
        };
        let mut trial = sum_up(&speeds, test, members.len());
        trial.reference = reference;
        // Other devices compute on the CPU, so there is nothing to prove.
        trial.proof = devices.offloads.then(|| proof(&trial, test));
        let cpu_ns = trial.devices.iter().map(|device| device.cpu_ns).sum();
        let measured = Measured {
            cpu: Cpu {
                wall_ns: trial.span_ns,
                dut_ns: Some(cpu_ns),
                busy_ns: cpu_ns,
                ..Cpu::default()
            },
            evidence: Evidence {
                checks: checks(&trial, test),
                ..Evidence::default()
            },
            figures: Figures::Device(Box::new(DeviceResult {
                devices: found,
                found: DeviceRecord::Speed(trial),
            })),
            ..Measured::default()
        };
        Ok(judge(measured, None, None))
    }

    /// Measures the same work by our engines, on one thread; `None` if they do not offer it.
    fn reference(&self, test: &Test) -> Result<Option<CpuReference>, TrialError> {
        let cpu = [Device {
            name: "our own engines".to_owned(),
            kind: DeviceKind::Engine { kernel: None },
        }];
        let test = Test {
            // CPU time per operation is compared, which parallel threads would not change.
            concurrency: 1,
            workers: Workers::Threads,
            depth: 1,
            duration_ns: REFERENCE.as_nanos() as u64,
            slices: REFERENCE_SLICES,
            ..test.clone()
        };
        let speeds = self.run_workers(&cpu, &test, &mut [None])?;
        let first = speeds.ok().and_then(|speeds| speeds.into_iter().next());
        Ok(first.map(|(_, speed)| CpuReference {
            operations: speed.operations,
            cpu_ns: speed.cpu_ns,
            elapsed_ns: speed.elapsed_ns,
        }))
    }

    /// Runs the workers of all devices. `facts` receives the facts of the devices that open.
    fn run_workers(
        &self,
        members: &[Device],
        test: &Test,
        facts: &mut [Option<Facts>],
    ) -> Result<Speeds, TrialError> {
        let mut pool = WorkerPool::new(self, true)?;
        // The device index of each worker.
        let mut uses: Vec<usize> = Vec::new();
        let limit = |workers: usize| {
            let usual = READY_LIMIT + READY_LIMIT_EACH * workers as u32;
            self.devices.silence.unwrap_or(usual)
        };
        let mut ready = 0;
        for (index, member) in members.iter().enumerate() {
            let share = share(test.concurrency, members.len(), index);
            // With fewer users than devices, some devices have none: no process is started for
            // them.
            let (processes, threads) = match test.workers {
                Workers::Threads => (share.min(1), share),
                Workers::Processes => (share, 1),
            };
            let own = DeviceTest::Speed(Test {
                concurrency: threads,
                ..test.clone()
            });
            let spec = Spec {
                processes,
                ..spec(member, own)
            };
            for _ in 0..processes {
                pool.start(&spec)?;
                uses.push(index);
                // The first worker opens the device before the others try: a thousand wrong PINs
                // would lock any token.
                while facts[index].is_none() {
                    match self.next(&mut pool, limit(uses.len()), members, &uses)? {
                        (device, Line::Open(opened)) => facts[device] = Some(opened),
                        (_, Line::Ready) => ready += 1,
                        (_, Line::NotOffered(why)) => return Ok(Err(why)),
                        (device, line) => return Err(unexpected(&members[device], &line)),
                    }
                }
            }
        }
        // Workers that are ready wait for the order, so the slowest one does not shorten the common
        // time.
        while ready < uses.len() {
            match self.next(&mut pool, limit(uses.len()), members, &uses)? {
                (_, Line::Open(_)) => {}
                (_, Line::Ready) => ready += 1,
                (_, Line::NotOffered(why)) => return Ok(Err(why)),
                (device, line) => return Err(unexpected(&members[device], &line)),
            }
        }
        pool.begin();
        // A worker waits for its slowest thread for a tenth of the time.
        let measured = Duration::from_nanos(test.duration_ns) * 11 / 10;
        // A limit for all together, not for each message: a worker that hangs is not excused by
        // others that report.
        let limit = measured + self.devices.silence.unwrap_or(CHECK_LIMIT);
        let end = Instant::now() + limit;
        let mut speeds: Vec<Option<Speed>> = vec![None; uses.len()];
        while let Some(waiting) = speeds.iter().position(Option::is_none) {
            let left = end.saturating_duration_since(Instant::now());
            let Some((worker, message)) = pool.receive(left)? else {
                return Err(problem(format!(
                    "`{}` hangs: its operations did not end within {:.0} s, {:.0} s of them measured; look at the \
                     device's log, and restart it",
                    members[uses[waiting]].name,
                    limit.as_secs_f64(),
                    measured.as_secs_f64(),
                )));
            };
            let device = uses[worker];
            match self.line(&members[device], message)? {
                Line::Speed(speed) => speeds[worker] = Some(speed),
                Line::End => {}
                Line::NotOffered(why) => return Ok(Err(why)),
                line => return Err(unexpected(&members[device], &line)),
            }
        }
        let speeds = uses.into_iter().zip(speeds.into_iter().flatten());
        Ok(Ok(speeds.collect()))
    }

    /// Returns the next line of any worker, with the index of its device. `uses` has the device
    /// index of each worker.
    ///
    /// # Errors
    /// When a worker failed or died, or none sent a line in time.
    fn next(
        &self,
        pool: &mut WorkerPool<'_>,
        limit: Duration,
        members: &[Device],
        uses: &[usize],
    ) -> Result<(usize, Line), TrialError> {
        let Some((worker, message)) = pool.receive(limit)? else {
            let seconds = limit.as_secs_f64();
            let names = members.iter().map(|member| format!("`{}`", member.name));
            return Err(problem(format!(
                "{} hangs before it is measured: nothing came from it for {seconds:.1} s; look at the device's log, and \
                 restart it",
                names.collect::<Vec<_>>().join(" or ")
            )));
        };
        let device = uses[worker];
        Ok((device, self.line(&members[device], message)?))
    }
}

fn unexpected(device: &Device, line: &Line) -> TrialError {
    problem(format!("`{}` sent an unexpected {line:?}", device.name))
}

/// Returns how many of the parallel users share the device with this index.
fn share(concurrency: u32, devices: usize, index: usize) -> u32 {
    // There are some dozen devices at most.
    let (devices, index) = (devices.max(1) as u32, index as u32);
    concurrency / devices + u32::from(index < concurrency % devices)
}

/// Sums up all workers as one trial.
fn sum_up(speeds: &[(usize, Speed)], test: &Test, members: usize) -> SpeedTrial {
    let began = || speeds.iter().map(|(_, speed)| speed.began_unix_ns);
    let ended = || {
        let ends = speeds.iter();
        ends.map(|(_, speed)| speed.began_unix_ns.saturating_add(speed.elapsed_ns))
    };
    let between = |from: Option<u64>, to: Option<u64>| {
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        to.saturating_sub(from)
    };
    let mut used: Vec<usize> = speeds.iter().map(|(device, _)| *device).collect();
    // Workers are started device by device, so the ones of a device are neighbors.
    used.dedup();
    let device = |device: usize| {
        let own = speeds.iter().filter(|(uses, _)| *uses == device);
        let own: Vec<&Speed> = own.map(|(_, speed)| speed).collect();
        DeviceSpeed {
            device,
            threads: share(test.concurrency, members, device),
            ..device_speed(&own, gives_verdict(test))
        }
    };
    SpeedTrial {
        // Each process reports its beginning by the time of day. The span covers the slowest one,
        // so that the rate of the sum is not too high.
        span_ns: between(began().min(), ended().max()),
        together_ns: between(began().max(), ended().min()),
        devices: used.into_iter().map(device).collect(),
        reference: None,
        proof: None,
    }
}

/// Sums up the workers of one device, without its index and number of threads.
fn device_speed(own: &[&Speed], gives_verdict: bool) -> DeviceSpeed {
    let all = |of: fn(&Speed) -> u64| own.iter().map(move |speed| of(speed));
    let sum = |of| all(of).sum::<u64>();
    let max = |of| all(of).max().unwrap_or(0);
    // Over workers, not over operations: each reports only percentiles.
    let median = |of| {
        let mut all: Vec<u64> = all(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let (operations, checked) = (sum(|speed| speed.operations), sum(|speed| speed.checked));
    let checked_measured = sum(|speed| speed.checked_measured);
    let invalid = sum(|speed| speed.invalid);
    // A worker that ended early has fewer slices; it adds nothing to the later ones.
    let slices = max(|speed| speed.slices.len() as u64) as usize;
    let slice = |index: usize| {
        let counts = own.iter().filter_map(|speed| speed.slices.get(index));
        counts.sum::<u64>()
    };
    DeviceSpeed {
        // A thousand at most.
        processes: own.len() as u32,
        operations,
        bytes: sum(|speed| speed.bytes),
        cpu_ns: sum(|speed| speed.cpu_ns),
        slices: (0..slices).map(slice).collect(),
        failed: sum(|speed| speed.failed),
        checked,
        checked_measured: Some(checked_measured),
        // All results of the measured time, or a sample of these and of those right after it.
        power_ppm: Some(if checked_measured >= operations {
            power_ppm(checked, operations)
        } else {
            power_ppm(checked, u64::MAX)
        }),
        wrong: sum(|speed| speed.wrong),
        invalid: gives_verdict.then_some(invalid),
        accepted: gives_verdict.then(|| sum(|speed| speed.accepted)),
        // The offered inputs are a sample of an unlimited number.
        acceptance_power_ppm: gives_verdict.then(|| power_ppm(invalid, u64::MAX)),
        latency_ns_p50: median(|speed| speed.latency_ns[0]),
        latency_ns_p99: median(|speed| speed.latency_ns[1]),
        latency_ns_max: max(|speed| speed.latency_ns[2]),
        operations_min: all(|speed| speed.operations).min().unwrap_or(0),
        operations_max: max(|speed| speed.operations),
        device_operations: own.iter().map(|speed| speed.device_operations).sum(),
        ..DeviceSpeed::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_users_are_shared_evenly() {
        let shares = |concurrency, devices| -> Vec<u32> {
            (0..devices)
                .map(|index| share(concurrency, devices, index))
                .collect()
        };
        assert_eq!(shares(1, 2), [1, 0]);
        assert_eq!(shares(5, 2), [3, 2]);
        assert_eq!(shares(1000, 3), [334, 333, 333]);
        for concurrency in 1..50 {
            for devices in 1..7 {
                assert_eq!(
                    shares(concurrency, devices).iter().sum::<u32>(),
                    concurrency
                );
            }
        }
    }
}

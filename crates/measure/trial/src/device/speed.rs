//! The speed trial: all workers are made ready, begin together, and are added up.

use super::crew::{Crew, Heard, allow_descriptors};
use super::proof::{checks, proof};
use super::{Context, facts, problem, spec};
use crate::error::TrialError;
use crate::measurer::judge;
use campaign::plan::{Device, DeviceKind, DeviceSpeed as Test, DeviceTest, Devices, Workers};
use device::Facts;
use device::report::{Line, Speed};
use journal::record::{
    Cpu, CpuReference, DeviceFacts, DeviceFound, DeviceResult, DeviceSpeed, Evidence, Figures,
    Measured, Outcome, SpeedTrial,
};
use std::time::Duration;

/// Until all workers are ready: so long, and so much for each of them.
const READY_LIMIT: Duration = Duration::from_secs(120);
const READY_LIMIT_EACH: Duration = Duration::from_millis(200);
/// From the end of the measured time until results are checked.
const CHECK_LIMIT: Duration = Duration::from_secs(300);
/// Our own engines are measured so long before a device that is to spare the CPU.
const REFERENCE: Duration = Duration::from_millis(200);
const REFERENCE_SLICES: u32 = 4;

/// What came of one crew.
enum Ran {
    Measured {
        facts: Vec<Option<Facts>>,
        /// With the device that each worker used.
        speeds: Vec<(usize, Speed)>,
    },
    NotOffered {
        facts: Vec<Option<Facts>>,
        why: String,
    },
}

impl Context<'_> {
    pub(super) fn speed(&self, devices: &Devices, test: &Test) -> Result<Outcome, TrialError> {
        allow_descriptors();
        let reference = match devices.offloads {
            true => self.reference(test)?,
            false => None,
        };
        let members = &devices.members;
        let (found, speeds) = match self.crew(members, test)? {
            Ran::Measured { facts, speeds } => (facts, speeds),
            Ran::NotOffered { facts, why } => {
                return Ok(super::measured(
                    named(members, &facts),
                    DeviceFound::NotOffered(why),
                ));
            }
        };
        let mut trial = added_up(&speeds, test, members.len());
        trial.reference = reference;
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
                devices: named(members, &found),
                found: DeviceFound::Speed(trial),
            })),
        };
        Ok(judge(measured, None, None))
    }

    /// The same work by our own engines, on one thread; `None` where they do not have it.
    fn reference(&self, test: &Test) -> Result<Option<CpuReference>, TrialError> {
        let cpu = [Device {
            name: "our own engines".to_owned(),
            kind: DeviceKind::Engine { kernel: None },
        }];
        let test = Test {
            concurrency: 1,
            workers: Workers::Threads,
            depth: 1,
            duration_ns: REFERENCE.as_nanos() as u64,
            slices: REFERENCE_SLICES,
            ..test.clone()
        };
        Ok(match self.crew(&cpu, &test)? {
            Ran::NotOffered { .. } => None,
            Ran::Measured { speeds, .. } => speeds.first().map(|(_, speed)| CpuReference {
                operations: speed.operations,
                cpu_ns: speed.cpu_ns,
                elapsed_ns: speed.elapsed_ns,
            }),
        })
    }

    fn crew(&self, members: &[Device], test: &Test) -> Result<Ran, TrialError> {
        let mut crew = Crew::new(self, true)?;
        // Of each worker.
        let mut uses: Vec<usize> = Vec::new();
        let of = |uses: &[usize], worker: usize| &*members[uses[worker]].name;
        let limit = |workers: usize| READY_LIMIT + READY_LIMIT_EACH * workers as u32;
        let mut facts: Vec<Option<Facts>> = vec![None; members.len()];
        let mut ready = 0;
        for (index, member) in members.iter().enumerate() {
            let share = share(test.concurrency, members.len(), index);
            let (processes, threads) = match test.workers {
                Workers::Threads => (share.min(1), share),
                Workers::Processes => (share, 1),
            };
            let own = DeviceTest::Speed(Test {
                concurrency: threads,
                ..test.clone()
            });
            let spec = spec(member, own);
            for _ in 0..processes {
                crew.start(&spec)?;
                uses.push(index);
                // The first opens the device before the others try: a thousand wrong PINs would
                // lock any token.
                while facts[index].is_none() {
                    match self.next(&mut crew, limit(uses.len()), members, &uses)? {
                        (worker, Line::Open(opened)) => facts[uses[worker]] = Some(opened),
                        (_, Line::Ready) => ready += 1,
                        (_, Line::NotOffered(why)) => return Ok(Ran::NotOffered { facts, why }),
                        (worker, line) => return Err(unexpected(of(&uses, worker), &line)),
                    }
                }
            }
        }
        while ready < uses.len() {
            match self.next(&mut crew, limit(uses.len()), members, &uses)? {
                (_, Line::Open(_)) => {}
                (_, Line::Ready) => ready += 1,
                (_, Line::NotOffered(why)) => return Ok(Ran::NotOffered { facts, why }),
                (worker, line) => return Err(unexpected(of(&uses, worker), &line)),
            }
        }
        crew.go();
        let limit = Duration::from_nanos(test.duration_ns) + CHECK_LIMIT;
        let mut speeds: Vec<Option<Speed>> = vec![None; uses.len()];
        while speeds.iter().any(Option::is_none) {
            match self.next(&mut crew, limit, members, &uses)? {
                (worker, Line::Speed(speed)) => speeds[worker] = Some(speed),
                (_, Line::End) => {}
                (_, Line::NotOffered(why)) => return Ok(Ran::NotOffered { facts, why }),
                (worker, line) => return Err(unexpected(of(&uses, worker), &line)),
            }
        }
        let speeds = uses.into_iter().zip(speeds.into_iter().flatten());
        Ok(Ran::Measured {
            facts,
            speeds: speeds.collect(),
        })
    }

    /// What a worker says next; that one failed or died ends the trial. `uses` has the device of
    /// each worker.
    fn next(
        &self,
        crew: &mut Crew<'_>,
        limit: Duration,
        members: &[Device],
        uses: &[usize],
    ) -> Result<(usize, Line), TrialError> {
        let of = |worker: usize| &members[uses[worker]];
        match crew.hear(limit)? {
            Some((worker, Heard::Line(Line::PinRefused(text)))) => {
                Err(self.pin_refused(of(worker), &text))
            }
            Some((worker, Heard::Line(Line::Failed(text)) | Heard::Died(text))) => {
                Err(problem(format!("`{}`: {text}", of(worker).name)))
            }
            Some((worker, Heard::Line(line))) => Ok((worker, line)),
            None => Err(problem(format!(
                "nothing was heard of the devices for {} s",
                limit.as_secs()
            ))),
        }
    }
}

fn unexpected(name: &str, line: &Line) -> TrialError {
    problem(format!("`{name}` was not expected to say {line:?}"))
}

/// So many of those that work at once use the device with that index.
fn share(concurrency: u32, devices: usize, index: usize) -> u32 {
    // At most some dozen devices.
    let (devices, index) = (devices.max(1) as u32, index as u32);
    concurrency / devices + u32::from(index < concurrency % devices)
}

fn named(members: &[Device], found: &[Option<Facts>]) -> Vec<DeviceFacts> {
    let found = members.iter().zip(found);
    found
        .map(|(member, found)| facts(member, found.as_ref()))
        .collect()
}

/// All workers as one trial.
fn added_up(speeds: &[(usize, Speed)], test: &Test, members: usize) -> SpeedTrial {
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
    used.dedup();
    SpeedTrial {
        span_ns: between(began().min(), ended().max()),
        together_ns: between(began().max(), ended().min()),
        devices: used
            .into_iter()
            .map(|device| {
                let own = speeds.iter().filter(|(uses, _)| *uses == device);
                let own: Vec<&Speed> = own.map(|(_, speed)| speed).collect();
                DeviceSpeed {
                    threads: share(test.concurrency, members, device),
                    ..of_device(device, &own)
                }
            })
            .collect(),
        reference: None,
        proof: None,
    }
}

/// All but how many threads there were.
fn of_device(device: usize, own: &[&Speed]) -> DeviceSpeed {
    let sum = |of: fn(&Speed) -> u64| own.iter().map(|speed| of(speed)).sum::<u64>();
    let median = |of: fn(&Speed) -> u64| {
        let mut all: Vec<u64> = own.iter().map(|speed| of(speed)).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let slices = own
        .iter()
        .map(|speed| speed.slices.len())
        .max()
        .unwrap_or(0);
    let slice = |index: usize| {
        let counts = own.iter().filter_map(|speed| speed.slices.get(index));
        counts.sum::<u64>()
    };
    DeviceSpeed {
        device,
        // A thousand at most.
        processes: own.len() as u32,
        threads: 0,
        operations: sum(|speed| speed.operations),
        bytes: sum(|speed| speed.bytes),
        cpu_ns: sum(|speed| speed.cpu_ns),
        slices: (0..slices).map(slice).collect(),
        failed: sum(|speed| speed.failed),
        checked: sum(|speed| speed.checked),
        wrong: sum(|speed| speed.wrong),
        latency_ns_p50: median(|speed| speed.latency_ns[0]),
        latency_ns_p99: median(|speed| speed.latency_ns[1]),
        latency_ns_max: own
            .iter()
            .map(|speed| speed.latency_ns[2])
            .max()
            .unwrap_or(0),
        operations_min: own.iter().map(|speed| speed.operations).min().unwrap_or(0),
        operations_max: own.iter().map(|speed| speed.operations).max().unwrap_or(0),
        device_operations: own.iter().map(|speed| speed.device_operations).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_work_at_once_are_shared_evenly() {
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

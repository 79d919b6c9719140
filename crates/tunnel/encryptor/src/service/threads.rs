//! The workers' threads.

use super::error::ServiceError;
use crate::inbound::InboundKeys;
use crate::privileges::InForce;
use crate::worker::Worker;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use port::{CipherPort, ClearPort, Stop};
use std::io;
use std::thread;

/// Refuses CPUs that this process may not use.
pub(super) fn check_cpus(pin: &[usize]) -> Result<(), ServiceError> {
    if pin.is_empty() {
        return Ok(());
    }
    let set = sched_getaffinity(this_thread()).map_err(resources)?;
    let allowed = |cpu: usize| set.is_set(cpu).unwrap_or(false);
    match pin.iter().find(|cpu| !allowed(**cpu)) {
        None => Ok(()),
        Some(cpu) => Err(ServiceError::NoCpu {
            cpu: *cpu,
            allowed: ranges((0..CpuSet::count()).filter(|cpu| allowed(*cpu))),
        }),
    }
}

/// Runs each worker on a separate thread, on the CPUs of `pin` in turn, until the stop flag is
/// raised or one of them fails.
pub(super) fn run<C, P, K>(
    pin: &[usize],
    in_force: InForce,
    workers: Vec<Worker<C, P, K>>,
    stop: &Stop,
) -> Result<(), ServiceError>
where
    C: ClearPort,
    P: CipherPort,
    K: InboundKeys,
{
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (lane, worker) in (0u16..).zip(workers) {
            let work = move || {
                // The remaining lanes would carry only part of the flows: when one ends, for any
                // reason, all stop.
                let _all = RaiseOnDrop(stop);
                settle(pin, in_force, lane)?;
                let ended = worker.run(stop);
                ended.map_err(|error| ServiceError::LaneEnded { lane, error })
            };
            let name = format!("lane-{lane}");
            let started = thread::Builder::new().name(name).spawn_scoped(scope, work);
            threads.push(started.map_err(|error| {
                // The scope waits for the lanes that already run.
                stop.raise();
                ServiceError::Resources(error)
            })?);
        }
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}

/// Pins the calling thread to its CPU, and drops privileges that a worker does not need.
fn settle(pin: &[usize], in_force: InForce, lane: u16) -> Result<(), ServiceError> {
    if !pin.is_empty() {
        let mut set = CpuSet::new();
        set.set(pin[usize::from(lane) % pin.len()])
            .map_err(resources)?;
        sched_setaffinity(this_thread(), &set).map_err(resources)?;
    }
    Ok(in_force.restrict_worker()?)
}

/// The calling thread, for the affinity calls.
const fn this_thread() -> Pid {
    Pid::from_raw(0)
}

fn resources(error: nix::errno::Errno) -> ServiceError {
    ServiceError::Resources(io::Error::from(error))
}

/// Raises the flag when dropped, also by a panic.
struct RaiseOnDrop<'s>(&'s Stop);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// Numbers in rising order, as the kernel writes them: `0-3,7`.
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last): (usize, usize)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_written_as_ranges() {
        assert_eq!(ranges([0, 1, 2, 3, 7, 9, 10].into_iter()), "0-3,7,9-10");
        assert_eq!(ranges(std::iter::empty()), "");
    }

    #[test]
    fn a_missing_cpu_is_refused_and_the_usable_ones_are_listed() {
        let last = CpuSet::count() - 1;
        let message = check_cpus(&[last]).unwrap_err().to_string();
        assert!(
            message.contains(&format!("there is no cpu {last}")),
            "{message}"
        );
        let (_, allowed) = message.split_once("this process may use ").unwrap();
        assert!(
            allowed.starts_with(|first: char| first.is_ascii_digit()),
            "{message}"
        );
        check_cpus(&[]).unwrap();
    }
}

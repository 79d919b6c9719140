//! The speed trial: every thread repeats one operation.
//!
//! 1. Each thread opens its session, prepares its job, runs the operation once, and waits for the
//!    order to begin.
//! 2. Once all have run it again, the first reading is taken: each thread's count, the CPU time,
//!    the device's operation counter. More readings follow at the end of each slice, by a thread
//!    that sleeps in between.
//! 3. Some operations are timed individually, for the latency, and their results are verified
//!    (module `sample`). If these are too few after the last reading, threads continue, and the
//!    results of all operations are verified until they are enough.
//! 4. Threads are stopped. Results that could not be compared immediately are verified.
//!
//! Operations that give a verdict ([`Operation::gives_verdict`]) have invalid inputs among the
//! examined ones. A refusal of these is a completed operation.
//!
//! Between two operations the loop only takes the next input of a ring, and does a comparison and
//! one store to memory that no other thread writes ([`Job::repeat`]), so that the device is
//! measured.

mod sample;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::count::{Count, Tally};
use crate::orders::Orders;
use crate::threads::{Gate, check_threads, panicked, process_cpu_ns, start};
use crate::{Case, Device, DeviceError, Inputs, Job, Keys, Queue};
use catalog::device::DeviceSpeed;
use catalog::sample::results_needed;
use catalog::worker::Speed;
use catalog::{Action, Operation};
use sample::{Plan, SampledResult, Sampler, Verified};

/// Maximum number of samples per thread; more are thinned out.
const SAMPLES_MAX: usize = 1024;
const SLICES_MAX: u32 = 10_000;
/// Longest time after the measurement in which operations continue until enough results are
/// examined. A device fast enough to need it takes about as long as the measurement.
const CONTINUED_MAX: Duration = Duration::from_secs(10);
/// The slowest thread may take this fraction of the measurement to begin.
const SETTLING_PART: u32 = 10;

/// The phases of a trial, common to all threads.
mod phase {
    pub(super) const MEASURED: u8 = 0;
    /// The measurement is over, but not enough results have been examined.
    pub(super) const CONTINUED: u8 = 1;
    pub(super) const OVER: u8 = 2;
}

/// The results of a thread.
struct ThreadResult {
    samples: Samples,
    verified: Verified,
    kept: Vec<SampledResult>,
}

/// How a process examines results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examination {
    /// Minimum number of results to verify, if there are enough.
    pub(crate) needed: u64,
    /// Selects the results.
    pub(crate) seed: u64,
}

impl Examination {
    /// The share of one of this many processes on a device; the selection is unpredictable.
    pub(crate) fn of_processes(processes: u32) -> Self {
        let mut seed = [0; 8];
        // Without random numbers the time decides, which a device cannot know exactly either.
        if aws_lc_rs::rand::fill(&mut seed).is_err() {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            seed = (since.unwrap_or_default().as_nanos() as u64).to_le_bytes();
        }
        Self {
            needed: results_needed().div_ceil(processes.max(1).into()),
            seed: u64::from_le_bytes(seed),
        }
    }
}

/// A reading of all counters.
struct Reading {
    at: Duration,
    operations: u64,
    failed: u64,
    cpu_ns: u64,
    device_operations: Option<u64>,
}

/// Runs the trial. `ready` is called when all threads wait, and returns whether to begin. `None`:
/// the order is to stop.
///
/// # Errors
/// [`DeviceError`]: the device does not offer the operation, does not support this many threads, or
/// is absent at the end.
pub(crate) fn measure(
    device: &dyn Device,
    cpu: &dyn Device,
    keys: &Keys,
    test: &DeviceSpeed,
    examination: Examination,
    orders: &Orders,
    ready: impl FnOnce() -> bool,
) -> Result<Option<Speed>, DeviceError> {
    let operation = Operation::parse(&test.operation)?;
    check_threads(test.concurrency)?;
    // Before the threads start, so that the CPU's work on inputs is no part of the measurement.
    let maker = cpu.session()?;
    let bytes = test.bytes.unwrap_or(0) as usize;
    let cases = (0..sample::ring_length(bytes) as u64)
        .map(|number| {
            let variant = keys.seed.wrapping_add(number);
            Case::valid(operation, bytes, variant, keys, &*maker)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let invalid = (0..cases.len() as u64)
        .filter(|_| operation.gives_verdict())
        .filter_map(|number| {
            let variant = keys.seed.wrapping_add(number);
            Case::invalid(operation, bytes, variant, keys, &*maker).transpose()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let plan = Plan::new(
        &cases,
        &invalid,
        examination.needed,
        test.concurrency,
        test.duration_ns,
        examination.seed,
    );
    let trial = Trial {
        device,
        cpu,
        keys,
        operation,
        test,
        inputs: cases.iter().map(Case::input).collect(),
        plan,
        gate: Gate::default(),
        phase: AtomicU8::new(phase::MEASURED),
        tallies: (0..test.concurrency).map(|_| Tally::default()).collect(),
    };
    let measured = trial.run(orders, ready)?;
    // A token that was unplugged may go on computing in its library.
    device.present()?;
    Ok(measured)
}

struct Trial<'a> {
    device: &'a dyn Device,
    cpu: &'a dyn Device,
    keys: &'a Keys,
    operation: Operation,
    test: &'a DeviceSpeed,
    /// The inputs of the plan's cases.
    inputs: Vec<&'a [u8]>,
    plan: Plan<'a>,
    gate: Gate,
    /// One of [`phase`].
    phase: AtomicU8,
    tallies: Vec<Tally>,
}

impl Trial<'_> {
    fn run(
        &self,
        orders: &Orders,
        ready: impl FnOnce() -> bool,
    ) -> Result<Option<Speed>, DeviceError> {
        thread::scope(|scope| {
            let work = |(number, tally), sender| self.work(number, tally, sender);
            let (threads, prepared) = start(scope, (0..).zip(&self.tallies), work);
            // The gate must open in any case: threads that are ready wait at it, and the scope
            // waits for them.
            if prepared.is_err() || !ready() {
                self.gate.open(false);
                return prepared.map(|_| None);
            }
            let bytes_each = prepared?.into_iter().max().unwrap_or_default();

            self.gate.open(true);
            let readings = self
                .observe(orders)
                .filter(|readings| self.continue_until_examined(readings, orders));
            // Threads look at the phase between operations, so each ends with a complete one.
            self.phase.store(phase::OVER, Ordering::Relaxed);
            let mut found = Vec::with_capacity(threads.len());
            for thread in threads {
                found.extend(thread.join().map_err(|_| panicked())?);
            }
            Ok(readings.map(|readings| self.sum_up(&readings, found, bytes_each)))
        })
    }

    /// One thread: sends the bytes per operation, or why it cannot work; then works.
    fn work(
        &self,
        number: u64,
        tally: &Tally,
        sender: mpsc::Sender<Result<u64, DeviceError>>,
    ) -> Option<ThreadResult> {
        let session = self.device.session();
        let mut output = Vec::new();
        let session = session.as_deref().map_err(Clone::clone);
        // A session runs one operation at a time, so each thread has one.
        let job = session.and_then(|session| session.job(self.operation, self.keys));
        let prepared = job.and_then(|mut job| {
            if self.test.depth > 1 && job.queue().is_none() {
                let text = "it has no queue; leave `depth` at 1";
                return Err(DeviceError::NotOffered(text.to_owned()));
            }
            // Other errors will recur and be counted.
            match job.run(self.inputs[0], &mut output) {
                Err(error @ DeviceError::NotOffered(_)) => Err(error),
                _ => Ok(job),
            }
        });
        let mut job = match prepared {
            Ok(job) => job,
            Err(error) => {
                let _ = sender.send(Err(error));
                return None;
            }
        };
        let _ = sender.send(Ok(self.bytes_of(&output)));
        // The starter waits until all senders are gone.
        drop(sender);
        if !self.gate.wait() {
            return None;
        }
        let depth = self.test.depth as usize;
        let mut sampler = Sampler::new(&self.plan, number);
        let samples = match job.queue() {
            Some(queue) if depth > 1 => {
                self.keep_full(queue, depth, &mut output, tally, &mut sampler)
            }
            _ => self.repeat(&mut *job, &mut output, tally, &mut sampler),
        };
        Some(ThreadResult {
            samples,
            verified: sampler.verified,
            kept: sampler.kept,
        })
    }

    /// Returns the bytes of plaintext or message per operation; 0 for public-key operations.
    fn bytes_of(&self, output: &[u8]) -> u64 {
        match self.operation.action {
            _ if !self.operation.takes_size() => 0,
            Action::Decrypt => output.len() as u64,
            _ => self.inputs[0].len() as u64,
        }
    }

    /// The measured loop. Returns samples of times.
    fn repeat(
        &self,
        job: &mut dyn Job,
        output: &mut Vec<u8>,
        tally: &Tally,
        sampler: &mut Sampler<'_>,
    ) -> Samples {
        let mut inputs = Inputs::new(&self.inputs);
        let mut samples = Samples::default();
        let mut count = Count::new(tally);
        let mut unexamined = 0;
        let mut refusal = Refusal::default();
        loop {
            let phase = self.phase.load(Ordering::Relaxed);
            if phase == phase::OVER {
                return samples;
            }
            // Without a look at the clock or at results in between: with short operations these
            // would take a large part of the time.
            job.repeat(unexamined, &mut inputs, output, &mut count);
            let is_measured = phase == phase::MEASURED;
            if let Some(case) = sampler.invalid(is_measured) {
                let begin = Instant::now();
                let result = job.run(self.plan.invalid[case].input(), output);
                let took = begin.elapsed().as_nanos() as u64;
                let result = match result {
                    Err(DeviceError::Failed(_)) if refusal.is_error(self, case, job) => {
                        output.clear();
                        Ok(false)
                    }
                    result => result,
                };
                count.add(result.is_ok());
                sampler.examine_invalid(case, &result, output);
                unexamined = sampler.gap(took, is_measured);
                continue;
            }
            let (case, input) = inputs.next();
            let begin = Instant::now();
            let result = job.run(input, output);
            let took = begin.elapsed().as_nanos() as u64;
            count.add(matches!(result, Ok(true)));
            if is_measured {
                samples.add(took);
            }
            sampler.examine(case, &result, output, is_measured);
            unexamined = sampler.gap(took, is_measured);
        }
    }

    /// The measured loop with several operations in flight. Their inputs differ, so that results in
    /// the wrong order are wrong.
    fn keep_full(
        &self,
        queue: &mut dyn Queue,
        depth: usize,
        output: &mut Vec<u8>,
        tally: &Tally,
        sampler: &mut Sampler<'_>,
    ) -> Samples {
        let mut inputs = Inputs::new(&self.inputs);
        let mut samples = Samples::default();
        let mut sent = VecDeque::with_capacity(depth);
        let mut count = Count::new(tally);
        let mut unexamined = 0;
        // The invalid input that is submitted next.
        let mut next_invalid = None;
        let mut completed = Instant::now();
        loop {
            let phase = self.phase.load(Ordering::Relaxed);
            let is_measured = phase == phase::MEASURED;
            while phase != phase::OVER && sent.len() < depth {
                let now = Instant::now();
                let invalid: Option<usize> = next_invalid.take();
                let (case, input) = match invalid {
                    Some(case) => (case, self.plan.invalid[case].input()),
                    None => inputs.next(),
                };
                if queue.submit(input).is_err() {
                    count.add(false);
                    break;
                }
                sent.push_back((now, case, invalid.is_some()));
            }
            // Empty if the device refuses each submission, or at the end. What is in flight at the
            // end is still completed, since a device may not be left with open operations.
            let Some((begin, case, is_invalid)) = sent.pop_front() else {
                match phase {
                    phase::OVER => return samples,
                    _ => continue,
                }
            };
            let result = queue.complete(output);
            if is_invalid {
                count.add(result.is_ok());
                sampler.examine_invalid(case, &result, output);
                continue;
            }
            let succeeded = matches!(result, Ok(true));
            count.add(succeeded);
            let before = std::mem::replace(&mut completed, Instant::now());
            if succeeded && is_measured {
                samples.add((completed - begin).as_nanos() as u64);
            }
            if unexamined == 0 || !is_measured {
                sampler.examine(case, &result, output, is_measured);
                // One valid input and, with the same probability as in the other loop, an invalid
                // one after it.
                next_invalid = sampler.invalid(is_measured);
                // Operations overlap, so each one's cost is the time since the previous completion.
                let took = (completed - before).as_nanos() as u64;
                unexamined = sampler.gap(took, is_measured);
            } else {
                unexamined -= 1;
            }
        }
    }

    /// Lets the threads continue after the measurement until enough results are examined: the
    /// number in the plan, or all measured results if these are fewer. `false` means stop.
    fn continue_until_examined(&self, readings: &[(SystemTime, Reading)], orders: &Orders) -> bool {
        let [(_, first), .., (_, last)] = readings else {
            return true;
        };
        let enough = self.plan.needed.min(last.operations - first.operations);
        let end = Instant::now() + CONTINUED_MAX;
        while self.plan.examined() < enough && Instant::now() < end {
            self.phase.store(phase::CONTINUED, Ordering::Relaxed);
            if !orders.pause(Duration::from_millis(1)) {
                return false;
            }
        }
        true
    }

    /// Reads the counters at the beginning and after each slice. `None`: the order is to stop.
    fn observe(&self, orders: &Orders) -> Option<Vec<(SystemTime, Reading)>> {
        let duration = Duration::from_nanos(self.test.duration_ns);
        let settled = Instant::now() + duration / SETTLING_PART;
        let works = |tally: &Tally| tally.done() + tally.failed() > 0;
        // Until every thread has run once: with many threads the first operations compete with the
        // start of the last threads.
        while Instant::now() < settled && !self.tallies.iter().all(works) {
            if !orders.pause(Duration::from_millis(1)) {
                return None;
            }
        }
        let slices = self.test.slices.clamp(1, SLICES_MAX);
        let start = Instant::now();
        let first = self.read(start);
        // Not from `start`: among a thousand threads this one may have waited for seconds before it
        // read the counters.
        let begun = start + first.at;
        let mut readings = vec![(SystemTime::now(), first)];
        for slice in 1..=slices {
            let end = begun + duration.mul_f64(f64::from(slice) / f64::from(slices));
            if !orders.wait_until(end, || false) {
                return None;
            }
            // A slice may be read late. The rates use the time of the reading, not the planned one.
            readings.push((SystemTime::now(), self.read(start)));
        }
        Some(readings)
    }

    fn read(&self, start: Instant) -> Reading {
        let sum = |count: fn(&Tally) -> u64| self.tallies.iter().map(count).sum();
        Reading {
            at: start.elapsed(),
            operations: sum(Tally::done),
            failed: sum(Tally::failed),
            cpu_ns: process_cpu_ns().saturating_sub(self.device.stand_in_ns()),
            device_operations: self.device.operations_done(),
        }
    }

    fn sum_up(
        &self,
        readings: &[(SystemTime, Reading)],
        found: Vec<ThreadResult>,
        bytes_each: u64,
    ) -> Speed {
        let [(began, first), .., (_, last)] = readings else {
            unreachable!("there is at least one slice, with a reading before and one after it")
        };
        let operations = last.operations - first.operations;
        let mut samples: Vec<u64> = Vec::new();
        found
            .iter()
            .for_each(|found| samples.extend(&found.samples.kept));
        samples.sort_unstable();
        let samples_max = found.iter().map(|found| found.samples.max).max();
        let verified = Verified::sum(found.iter().map(|found| found.verified));
        let kept: Vec<SampledResult> = found.into_iter().flat_map(|found| found.kept).collect();
        // After all threads have ended, since verifying takes the CPU that the device's driver
        // needs.
        let later = sample::verify(&self.plan, kept, self.operation, self.cpu, self.keys);
        let verified = Verified::sum([verified, later].into_iter());
        let quantile = |share: usize| {
            samples
                .get((samples.len() * share).div_ceil(100).saturating_sub(1))
                .copied()
                .unwrap_or(0)
        };
        let unix = began
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Speed {
            operations,
            bytes: operations * bytes_each,
            began_unix_ns: unix.as_nanos() as u64,
            elapsed_ns: (last.at - first.at).as_nanos() as u64,
            cpu_ns: last.cpu_ns.saturating_sub(first.cpu_ns),
            slices: slices(readings),
            failed: last.failed - first.failed,
            checked: verified.checked,
            checked_measured: verified.measured.min(operations),
            wrong: verified.wrong,
            invalid: verified.invalid,
            accepted: verified.accepted,
            latency_ns: [quantile(50), quantile(99), samples_max.unwrap_or(0)],
            device_operations: last
                .device_operations
                .zip(first.device_operations)
                .map(|(last, first)| last - first),
        }
    }
}

/// Whether a device refuses invalid inputs by reporting a failure, as some tokens do.
#[derive(Default)]
struct Refusal {
    by_error: bool,
}

impl Refusal {
    /// Whether a failure at an invalid input was a refusal: then the device does a valid input
    /// right, and fails at the invalid one again. It is tried until it is so once; these operations
    /// are in no count.
    fn is_error(&mut self, trial: &Trial<'_>, case: usize, job: &mut dyn Job) -> bool {
        let mut output = Vec::new();
        self.by_error = self.by_error
            || (job.run(trial.inputs[0], &mut output) == Ok(true)
                && trial.plan.cases[0].check(true, &output, None).is_ok()
                && job
                    .run(trial.plan.invalid[case].input(), &mut output)
                    .is_err());
        self.by_error
    }
}

/// Returns the operations in equal parts of the time. A late reading is interpolated to the end of
/// its slice, at the rate between it and the one before.
fn slices(readings: &[(SystemTime, Reading)]) -> Vec<u64> {
    let (Some((_, first)), Some((_, last))) = (readings.first(), readings.last()) else {
        return Vec::new();
    };
    let parts = readings.len() as u128 - 1;
    let span = (last.at - first.at).as_nanos();
    let count_at = |part: u128| -> u64 {
        let end = span * part / parts;
        let since = |reading: &Reading| (reading.at - first.at).as_nanos();
        let later = readings
            .iter()
            .position(|(_, reading)| since(reading) >= end);
        let later = later.unwrap_or(readings.len() - 1).max(1);
        let (before, after) = (&readings[later - 1].1, &readings[later].1);
        let done = u128::from(after.operations - before.operations);
        let time = (since(after) - since(before)).max(1);
        let share = done * end.saturating_sub(since(before)) / time;
        before.operations + (share.min(done)) as u64
    };
    let counts: Vec<_> = (0..=parts).map(count_at).collect();
    counts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A sample of times in nanoseconds, taken evenly over the whole measurement, and the maximum of
/// all.
#[derive(Default)]
struct Samples {
    kept: Vec<u64>,
    /// One of 2 to this power is kept.
    thinned: u32,
    seen: u64,
    max: u64,
}

impl Samples {
    fn add(&mut self, ns: u64) {
        self.max = self.max.max(ns);
        if self.seen.is_multiple_of(1 << self.thinned) {
            if self.kept.len() == SAMPLES_MAX {
                let mut place = 0;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.thinned += 1;
            }
            // After thinning out, this sample may not be one of those kept from now on.
            if self.seen.is_multiple_of(1 << self.thinned) {
                self.kept.push(ns);
            }
        }
        self.seen += 1;
    }
}

#[cfg(test)]
mod tests;

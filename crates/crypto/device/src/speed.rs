//! The speed trial: every thread repeats one operation.
//!
//! 1. Each thread opens its session, prepares its job, runs the operation once, and waits for the
//!    order to begin.
//! 2. Once all have run it again, the first reading is taken: each thread's count, the CPU time,
//!    the device's own count. More readings follow at the end of each slice, by a thread that
//!    sleeps in between.
//! 3. Threads are stopped. The last result of each is checked against the CPU, and so are some more
//!    operations. With several operations in flight they go through the same queue with different
//!    inputs, so that results in the wrong order are noticed.
//!
//! Between two operations the loop only does a comparison and one store to memory that no other
//! thread writes ([`Job::repeat`]), so that the device is measured. Some operations are timed
//! individually, for the latency.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::count::{Count, Tally};
use crate::operation::device::DeviceSpeed;
use crate::orders::Orders;
use crate::report::Speed;
use crate::threads::{Gate, check_threads, panicked, process_cpu_ns, start};
use crate::{Action, Case, Device, DeviceError, Job, Keys, Operation, Queue};

/// Approximate time between two timed operations.
const TIMED_EVERY_NS: u64 = 100_000;
const UNTIMED_MAX: u64 = 10_000;
/// Maximum number of samples per thread; more are thinned out.
const SAMPLES_MAX: usize = 1024;
const SLICES_MAX: u32 = 10_000;
/// Minimum number of results that all threads together check after the measurement.
const CHECKED_MIN: u32 = 64;
/// Number of different inputs in flight when results are checked.
const DIFFERENT: u64 = 16;
/// The slowest thread may take this fraction of the measurement to begin.
const SETTLING_PART: u32 = 10;

/// The results of a thread.
struct ThreadResult {
    samples: Samples,
    checked: u64,
    wrong: u64,
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
    orders: &Orders,
    ready: impl FnOnce() -> bool,
) -> Result<Option<Speed>, DeviceError> {
    let operation = Operation::parse(&test.operation)?;
    check_threads(test.concurrency)?;
    let maker = cpu.session()?;
    let bytes = test.bytes.unwrap_or(0) as usize;
    // The first one is measured.
    let different = if test.depth > 1 { DIFFERENT } else { 1 };
    let cases = (0..different)
        .map(|number| {
            let variant = keys.seed.wrapping_add(number);
            Case::valid(operation, bytes, variant, keys, &*maker)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let trial = Trial {
        device,
        cpu,
        keys,
        operation,
        test,
        case: &cases[0],
        cases: &cases,
        gate: Gate::default(),
        stop: AtomicBool::new(false),
        tallies: (0..test.concurrency).map(|_| Tally::default()).collect(),
    };
    let measured = trial.run(orders, ready)?;
    device.present()?;
    Ok(measured)
}

struct Trial<'a> {
    device: &'a dyn Device,
    cpu: &'a dyn Device,
    keys: &'a Keys,
    operation: Operation,
    test: &'a DeviceSpeed,
    /// The measured input.
    case: &'a Case,
    /// The measured input, and others for checking a device with several in flight.
    cases: &'a [Case],
    gate: Gate,
    stop: AtomicBool,
    tallies: Vec<Tally>,
}

impl Trial<'_> {
    fn run(
        &self,
        orders: &Orders,
        ready: impl FnOnce() -> bool,
    ) -> Result<Option<Speed>, DeviceError> {
        thread::scope(|scope| {
            let work = |tally, sender| self.work(tally, sender);
            let (threads, prepared) = start(scope, &self.tallies, work);
            if prepared.is_err() || !ready() {
                self.gate.open(false);
                return prepared.map(|_| None);
            }
            let bytes_each = prepared?.into_iter().max().unwrap_or_default();

            self.gate.open(true);
            let readings = self.observe(orders);
            self.stop.store(true, Ordering::Relaxed);
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
        tally: &Tally,
        sender: mpsc::Sender<Result<u64, DeviceError>>,
    ) -> Option<ThreadResult> {
        let session = self.device.session();
        let mut output = Vec::new();
        let session = session.as_deref().map_err(Clone::clone);
        let job = session.and_then(|session| session.job(self.operation, self.keys));
        let prepared = job.and_then(|mut job| {
            if self.test.depth > 1 && job.queue().is_none() {
                let text = "it has no queue; leave `depth` at 1";
                return Err(DeviceError::NotOffered(text.to_owned()));
            }
            // Other errors will recur and be counted.
            match job.run(self.case.input(), &mut output) {
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
        drop(sender);
        if !self.gate.wait() {
            return None;
        }
        let depth = self.test.depth as usize;
        let (samples, succeeded) = match job.queue() {
            Some(queue) if depth > 1 => self.keep_full(queue, depth, &mut output, tally),
            _ => self.repeat(&mut *job, &mut output, tally),
        };
        Some(self.check(&mut *job, samples, succeeded.then_some(&output[..])))
    }

    /// Returns the bytes of plaintext or message per operation; 0 for public-key operations.
    fn bytes_of(&self, output: &[u8]) -> u64 {
        match self.operation.action {
            _ if !self.operation.takes_size() => 0,
            Action::Decrypt => output.len() as u64,
            _ => self.case.input().len() as u64,
        }
    }

    /// The measured loop. Returns samples of times, and whether the last operation succeeded; its
    /// result is then in `output`.
    fn repeat(&self, job: &mut dyn Job, output: &mut Vec<u8>, tally: &Tally) -> (Samples, bool) {
        let input = self.case.input();
        let mut samples = Samples::default();
        let mut count = Count::new(tally);
        let (mut untimed, mut succeeded) = (0, false);
        while !self.stop.load(Ordering::Relaxed) {
            job.repeat(untimed, input, output, &mut count);
            let begin = Instant::now();
            succeeded = job.repeat(1, input, output, &mut count);
            let took = begin.elapsed().as_nanos() as u64;
            samples.add(took);
            untimed = (TIMED_EVERY_NS / took.max(1)).min(UNTIMED_MAX);
        }
        (samples, succeeded)
    }

    /// The measured loop with several operations in flight.
    fn keep_full(
        &self,
        queue: &mut dyn Queue,
        depth: usize,
        output: &mut Vec<u8>,
        tally: &Tally,
    ) -> (Samples, bool) {
        let input = self.case.input();
        let mut samples = Samples::default();
        let mut succeeded = false;
        let mut sent = VecDeque::with_capacity(depth);
        let mut count = Count::new(tally);
        loop {
            let stop = self.stop.load(Ordering::Relaxed);
            while !stop && sent.len() < depth {
                let now = Instant::now();
                if queue.submit(input).is_err() {
                    count.add(false);
                    break;
                }
                sent.push_back(now);
            }
            match sent.pop_front() {
                Some(begin) => {
                    succeeded = matches!(queue.complete(output), Ok(true));
                    count.add(succeeded);
                    if succeeded {
                        samples.add(begin.elapsed().as_nanos() as u64);
                    }
                }
                None if stop => return (samples, succeeded),
                None => {}
            }
        }
    }

    /// Checks results after the measurement. `last` is the result of the last measured operation.
    fn check(&self, job: &mut dyn Job, samples: Samples, last: Option<&[u8]>) -> ThreadResult {
        let mut found = ThreadResult {
            samples,
            checked: 0,
            wrong: 0,
        };
        let cpu = self
            .case
            .needs_inverse()
            .then(|| self.cpu.session().ok())
            .flatten();
        let inverse = self.operation.inverse();
        let inverse = cpu
            .as_ref()
            .zip(inverse)
            .map(|(cpu, inverse)| cpu.job(inverse, self.keys));
        let mut inverse = inverse.and_then(Result::ok);
        let mut check = |case: &Case, authentic: bool, output: &[u8]| {
            found.checked += 1;
            let right = case.check(authentic, output, inverse.as_deref_mut());
            found.wrong += u64::from(right.is_err());
        };
        if let Some(last) = last {
            check(self.case, true, last);
        }
        let each = CHECKED_MIN.div_ceil(self.test.concurrency) as usize;
        let depth = self.test.depth as usize;
        match job.queue() {
            Some(queue) if depth > 1 => {
                // At least as many as are in flight, or the order would not be checked.
                let all = each.max(depth.min(CHECKED_MIN as usize));
                check_queue(
                    queue,
                    depth,
                    self.cases.iter().cycle().take(all),
                    &mut check,
                );
            }
            _ => {
                let mut output = Vec::new();
                for _ in 0..each {
                    // A failed operation has no result to check.
                    if let Ok(authentic) = job.run(self.case.input(), &mut output) {
                        check(self.case, authentic, &output);
                    }
                }
            }
        }
        found
    }

    /// Reads the counters at the beginning and after each slice. `None`: the order is to stop.
    fn observe(&self, orders: &Orders) -> Option<Vec<(SystemTime, Reading)>> {
        let duration = Duration::from_nanos(self.test.duration_ns);
        let settled = Instant::now() + duration / SETTLING_PART;
        let works = |tally: &Tally| tally.done() + tally.failed() > 0;
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
        let quantile = |share: usize| {
            samples
                .get((samples.len() * share).div_ceil(100).saturating_sub(1))
                .copied()
                .unwrap_or(0)
        };
        let max = found
            .iter()
            .map(|found| found.samples.max)
            .max()
            .unwrap_or(0);
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
            checked: found.iter().map(|found| found.checked).sum(),
            wrong: found.iter().map(|found| found.wrong).sum(),
            latency_ns: [quantile(50), quantile(99), max],
            device_operations: last
                .device_operations
                .zip(first.device_operations)
                .map(|(last, first)| last - first),
        }
    }
}

/// Keeps the queue full with these cases, and checks each result against the input whose turn it
/// is.
fn check_queue<'c>(
    queue: &mut dyn Queue,
    depth: usize,
    mut cases: impl Iterator<Item = &'c Case>,
    check: &mut impl FnMut(&Case, bool, &[u8]),
) {
    let mut sent = VecDeque::with_capacity(depth);
    let mut output = Vec::new();
    loop {
        while sent.len() < depth {
            let Some(case) = cases.next() else { break };
            if queue.submit(case.input()).is_ok() {
                sent.push_back(case);
            }
        }
        let Some(case) = sent.pop_front() else { return };
        if let Ok(authentic) = queue.complete(&mut output) {
            check(case, authentic, &output);
        }
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

//! Counts of all threads, and times and reasons of failures.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::threads::lock;
use catalog::device::FatigueCounts;
use catalog::worker::Fatigue;

/// Longest time between two progress reports.
const TICK: Duration = Duration::from_secs(1);
/// Time until the first one. Each later one follows after the run time so far, but after at most a
/// [`TICK`], so that a process that dies loses at most half of its counts, and at most a [`TICK`].
const FIRST_TICK: Duration = Duration::from_millis(10);
const TIMES_MAX: usize = 10_000;
const REASONS_MAX: usize = 20;

/// Counts of all threads over all lives of the device.
pub(super) struct Tallies {
    pub(super) workers: Vec<Worker>,
    /// Times that the device was found absent.
    pub(super) absent: AtomicU64,
    /// Operations in a round; 0 until known.
    round: AtomicU64,
    began: OnceLock<Instant>,
    /// Time of the last progress report, since the beginning of the trial.
    reported_ns: AtomicU64,
    notes: Mutex<Notes>,
}

/// One thread's counts, continued in its next life. Aligned so that threads share no cache line.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Worker {
    /// Operations run, whether or not they succeeded.
    pub(super) steps: AtomicU64,
    pub(super) right: AtomicU64,
    pub(super) wrong: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) passed_invalid: AtomicU64,
}

#[derive(Default)]
struct Notes {
    restarts: u64,
    failures_ns: Vec<u64>,
    restarts_ns: Vec<u64>,
    reasons: Vec<String>,
}

impl Tallies {
    pub(super) fn new(threads: u32) -> Self {
        Self {
            workers: (0..threads).map(|_| Worker::default()).collect(),
            absent: AtomicU64::new(0),
            round: AtomicU64::new(0),
            began: OnceLock::new(),
            reported_ns: AtomicU64::new(0),
            notes: Mutex::default(),
        }
    }

    /// Sets the number of operations in a round, which is the number that the device offers.
    pub(super) fn set_round(&self, operations: usize) {
        self.round.store(operations as u64, Ordering::Relaxed);
    }

    /// Rounds that every thread has completed.
    fn rounds(&self) -> u64 {
        let steps = self
            .workers
            .iter()
            .map(|worker| worker.steps.load(Ordering::Relaxed));
        let round = self.round.load(Ordering::Relaxed);
        steps
            .min()
            .unwrap_or_default()
            .checked_div(round)
            .unwrap_or_default()
    }

    /// Records the beginning of a life.
    pub(super) fn begin(&self) {
        // The first life is no restart.
        if self.began.set(Instant::now()).is_ok() {
            return;
        }
        let elapsed = self.elapsed_ns();
        let mut notes = lock(&self.notes);
        notes.restarts += 1;
        push_below(&mut notes.restarts_ns, elapsed, TIMES_MAX);
    }

    /// Time since the first life began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Time until the next progress report is due.
    pub(super) fn due_in(&self) -> Duration {
        let reported = Duration::from_nanos(self.reported_ns.load(Ordering::Relaxed));
        // The interval doubles with the run time, from 10 ms to 1 s.
        (reported + reported.clamp(FIRST_TICK, TICK)).saturating_sub(self.elapsed())
    }

    /// Returns all counts so far for a progress report, which is then no longer due.
    pub(super) fn tick(&self) -> Fatigue {
        self.reported_ns.store(self.elapsed_ns(), Ordering::Relaxed);
        self.sum()
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Records the first failure of a life.
    pub(super) fn fail(&self) {
        let elapsed = self.elapsed_ns();
        push_below(&mut lock(&self.notes).failures_ns, elapsed, TIMES_MAX);
    }

    /// Records the reason of a failure, each text once.
    pub(super) fn note_reason(&self, reason: String) {
        let mut notes = lock(&self.notes);
        // A device that fails at each operation gives the same reason millions of times.
        if !notes.reasons.contains(&reason) {
            push_below(&mut notes.reasons, reason, REASONS_MAX);
        }
    }

    /// Returns all counts so far.
    fn sum(&self) -> Fatigue {
        let sum = |count: fn(&Worker) -> &AtomicU64| -> u64 {
            self.workers
                .iter()
                .map(|worker| count(worker).load(Ordering::Relaxed))
                .sum()
        };
        let notes = lock(&self.notes);
        Fatigue {
            elapsed_ns: self.elapsed_ns(),
            counts: FatigueCounts {
                right: sum(|worker| &worker.right),
                wrong: sum(|worker| &worker.wrong),
                failed: sum(|worker| &worker.failed) + self.absent.load(Ordering::Relaxed),
                refused: sum(|worker| &worker.refused),
                passed_invalid: sum(|worker| &worker.passed_invalid),
                restarts: notes.restarts,
            },
            rounds: Some(self.rounds()),
            failures_ns: notes.failures_ns.clone(),
            restarts_ns: notes.restarts_ns.clone(),
            reasons: notes.reasons.clone(),
            resident_bytes_max: resident_bytes_max(),
        }
    }
}

fn push_below<T>(list: &mut Vec<T>, item: T, max: usize) {
    if list.len() < max {
        list.push(item);
    }
}

/// Peak resident memory of this process in bytes; 0 if the kernel does not report it.
fn resident_bytes_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

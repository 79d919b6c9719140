//! The results that are verified: their selection, and their comparison with the CPU's.
//!
//! Operations take the inputs of a ring in turn, so that a result left over from another input is
//! wrong. Each operation is examined with the same probability, independently of the others: the
//! numbers of operations between two examined ones follow a geometric distribution, from a seed
//! that a device cannot know. So no device can spare the examined ones its faults.
//!
//! A result that the CPU knows in advance is compared immediately, outside of the timed operation.
//! The comparisons take at most a two-hundredth of the measured time ([`COST_PART`]), and fewer
//! results are examined then. A result that is different each time (signatures with a random
//! number, encryption with RSA) is kept, and verified on the CPU after the measurement.
//!
//! If the result is a verdict on the input ([`Operation::gives_verdict`]), some examined operations
//! take an invalid input instead, at random: half of them, but at most one in [`INVALID_PART`]
//! operations of the measured time, since refusing may take another time than accepting. Only these
//! find a device that accepts without work.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::case::split_mix;
use crate::threads::lock;
use crate::{Case, Device, DeviceError, Keys};
use catalog::Operation;

/// Longest mean time between two examined operations of a thread.
const INTERVAL_MAX_NS: u64 = 100_000;
/// Examined results are planned to be this many times those needed.
const MARGIN: u64 = 2;
/// Examining takes at most one in this many parts of the time.
const COST_PART: u64 = 200;
/// Time that two readings of the clock take, which the measured cost does not contain.
const CLOCK_NS: u64 = 50;
/// At most one in this many operations of the measured time has an invalid input.
const INVALID_PART: f64 = 16.0;
/// Most operations between two examined ones.
const GAP_MAX: f64 = 1e6;
/// Bytes of all inputs in the ring, so that they stay in the first cache.
const RING_BYTES: usize = 16 << 10;
const RING_MIN: usize = 2;
const RING_MAX: usize = 16;
/// Time limit for verifying kept results.
const VERIFY_MAX: Duration = Duration::from_secs(60);

/// Returns how many different inputs of this size are used in turn: a power of two.
pub(super) fn ring_length(input_bytes: usize) -> usize {
    let fit = (RING_BYTES / input_bytes.max(1)).clamp(RING_MIN, RING_MAX);
    1 << fit.ilog2()
}

/// The rule by which all threads of a process select results.
pub(super) struct Plan<'a> {
    pub(super) cases: &'a [Case],
    /// Inputs that must be refused; empty if the result is no verdict.
    pub(super) invalid: &'a [Case],
    /// Minimum number of results that this process verifies, if there are enough.
    pub(super) needed: u64,
    /// Mean time between two examined operations of a thread, if examining costs little.
    interval_ns: u64,
    /// Results that each thread keeps for verification after the measurement.
    kept_max: usize,
    seed: u64,
    /// Examined results of valid inputs of all threads.
    examined: AtomicU64,
    /// Invalid inputs that all threads offered.
    offered: AtomicU64,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        cases: &'a [Case],
        invalid: &'a [Case],
        needed: u64,
        threads: u32,
        duration_ns: u64,
        seed: u64,
    ) -> Self {
        let needed = needed.max(1);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let at_once = u64::from(threads).min(cores as u64);
        let kinds = 1 + u64::from(!invalid.is_empty());
        // Threads beyond the cores add no results: they share the same time.
        let planned = duration_ns.saturating_mul(at_once) / (needed * MARGIN * kinds);
        Self {
            cases,
            invalid,
            needed,
            interval_ns: planned.min(INTERVAL_MAX_NS),
            // Threads may be unequally fast.
            kept_max: (2 * MARGIN * needed).div_ceil(threads.max(1).into()) as usize,
            seed,
            examined: AtomicU64::new(0),
            offered: AtomicU64::new(0),
        }
    }

    /// Returns how many inputs of each kind all threads have examined so far.
    pub(super) fn examined(&self) -> u64 {
        let examined = self.examined.load(Ordering::Relaxed);
        if self.invalid.is_empty() {
            examined
        } else {
            examined.min(self.offered.load(Ordering::Relaxed))
        }
    }
}

/// Counts of verified results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Verified {
    pub(super) checked: u64,
    /// Of those, results of the measured time.
    pub(super) measured: u64,
    pub(super) wrong: u64,
    /// Verdicts on invalid inputs.
    pub(super) invalid: u64,
    /// Of those, inputs that were accepted.
    pub(super) accepted: u64,
}

impl Verified {
    fn add(&mut self, is_measured: bool, is_right: bool) {
        self.checked += 1;
        self.measured += u64::from(is_measured);
        self.wrong += u64::from(!is_right);
    }

    pub(super) fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            checked: sum.checked + one.checked,
            measured: sum.measured + one.measured,
            wrong: sum.wrong + one.wrong,
            invalid: sum.invalid + one.invalid,
            accepted: sum.accepted + one.accepted,
        })
    }
}

/// A result that is verified after the measurement.
pub(super) struct SampledResult {
    /// Index of its input in the ring.
    case: usize,
    is_measured: bool,
    output: Vec<u8>,
}

/// One thread's selection.
pub(super) struct Sampler<'a> {
    plan: &'a Plan<'a>,
    random: u64,
    /// Time to examine a result, smoothed.
    cost_ns: u64,
    /// Mean number of operations between two examined ones.
    mean_gap: f64,
    pub(super) verified: Verified,
    pub(super) kept: Vec<SampledResult>,
    /// Results that could have been kept.
    offered: u64,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, thread: u64) -> Self {
        let mut seed = plan.seed ^ thread.wrapping_mul(0xd605_1ba5_2b2e_d7a3);
        Self {
            plan,
            random: split_mix(&mut seed),
            cost_ns: CLOCK_NS,
            mean_gap: 0.0,
            verified: Verified::default(),
            kept: Vec::new(),
            offered: 0,
        }
    }

    /// Returns the number of operations that are not examined before the next one that is.
    /// `operation_ns` is the time of one operation; `is_measured`: the measurement is not over,
    /// and is not to be disturbed.
    pub(super) fn gap(&mut self, operation_ns: u64, is_measured: bool) -> u64 {
        // Nothing is to be disturbed any more: each result is examined, until there are enough.
        if !is_measured {
            return 0;
        }
        // Slow checks are made more rarely, so that they do not slow down the measurement.
        let least = COST_PART * (self.cost_ns + CLOCK_NS);
        let interval = self.plan.interval_ns.max(least);
        let mean = (interval / operation_ns.max(1)) as f64;
        self.mean_gap = mean;
        if mean < 1.0 {
            return 0;
        }
        // Geometric, with this mean: each operation is examined with the probability
        // 1 / (mean + 1).
        let gap = self.uniform().ln() / (-1.0 / (mean + 1.0)).ln_1p();
        gap.min(GAP_MAX) as u64
    }

    /// Returns the index of the invalid input that the next examined operation takes; `None` for a
    /// valid one.
    pub(super) fn invalid(&mut self, is_measured: bool) -> Option<usize> {
        if self.plan.invalid.is_empty() {
            return None;
        }
        let most = (self.mean_gap + 1.0) / INVALID_PART;
        // Only examined operations can be invalid, so their share among these is higher than among
        // all.
        let share = if is_measured { most.min(0.5) } else { 0.5 };
        if self.uniform() > share {
            return None;
        }
        let place = split_mix(&mut self.random) % self.plan.invalid.len() as u64;
        Some(place as usize)
    }

    /// Returns a random number above 0, and 1 at most.
    fn uniform(&mut self) -> f64 {
        ((split_mix(&mut self.random) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Examines the verdict on the invalid input with the index `case`. A failed operation has
    /// none.
    pub(super) fn examine_invalid(
        &mut self,
        case: usize,
        result: &Result<bool, DeviceError>,
        output: &[u8],
    ) {
        self.plan.offered.fetch_add(1, Ordering::Relaxed);
        let is_right = match result {
            Ok(authentic) => {
                let checked = self.plan.invalid[case].check(*authentic, output, None);
                checked.is_ok()
            }
            Err(DeviceError::Wrong(_)) => false,
            Err(_) => return,
        };
        self.verified.invalid += 1;
        self.verified.accepted += u64::from(!is_right);
    }

    /// Examines the result of the input with the index `case`. A failed operation has none.
    pub(super) fn examine(
        &mut self,
        case: usize,
        result: &Result<bool, DeviceError>,
        output: &[u8],
        is_measured: bool,
    ) {
        let begin = Instant::now();
        self.look(case, result, output, is_measured);
        // A delay of the thread is no cost of examining.
        let cost = (begin.elapsed().as_nanos() as u64).min(2 * self.cost_ns + CLOCK_NS);
        self.cost_ns = (7 * self.cost_ns + cost) / 8;
    }

    /// [`Self::examine`] without the clock.
    fn look(
        &mut self,
        case: usize,
        result: &Result<bool, DeviceError>,
        output: &[u8],
        is_measured: bool,
    ) {
        let right = match result {
            Ok(true) if self.plan.cases[case].needs_inverse() => None,
            Ok(true) => Some(self.plan.cases[case].check(true, output, None).is_ok()),
            Err(DeviceError::Wrong(_)) => Some(false),
            Ok(false) | Err(_) => return,
        };
        match right {
            Some(right) => self.verified.add(is_measured, right),
            None => self.keep(case, is_measured, output),
        }
        self.plan.examined.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps a result: all offered ones are kept with the same probability (reservoir sampling).
    fn keep(&mut self, case: usize, is_measured: bool, output: &[u8]) {
        self.offered += 1;
        let place = if self.kept.len() < self.plan.kept_max {
            self.kept.push(SampledResult {
                case,
                is_measured,
                output: Vec::new(),
            });
            self.kept.len() - 1
        } else {
            // An index beyond the kept ones drops the result.
            (split_mix(&mut self.random) % self.offered) as usize
        };
        if let Some(kept) = self.kept.get_mut(place) {
            kept.case = case;
            kept.is_measured = is_measured;
            kept.output.clear();
            kept.output.extend_from_slice(output);
        }
    }
}

/// Verifies kept results on the CPU, on all of its cores: the needed number, selected at random,
/// for at most [`VERIFY_MAX`]. Results that the CPU cannot verify are wrong.
pub(super) fn verify(
    plan: &Plan<'_>,
    mut kept: Vec<SampledResult>,
    operation: Operation,
    cpu: &dyn Device,
    keys: &Keys,
) -> Verified {
    if kept.is_empty() {
        return Verified::default();
    }
    let mut random = plan.seed;
    for last in (1..kept.len()).rev() {
        kept.swap(last, (split_mix(&mut random) % (last as u64 + 1)) as usize);
    }
    // After the shuffle: the first results of a thread are no more likely to be verified than its
    // last.
    kept.truncate(plan.needed as usize);
    let end = Instant::now() + VERIFY_MAX;
    let next = AtomicUsize::new(0);
    let sum = std::sync::Mutex::new(Vec::new());
    let work = || {
        let mut verified = Verified::default();
        let session = cpu.session().ok();
        let mut inverse = session.as_ref().zip(operation.inverse());
        let mut inverse = inverse
            .take()
            .and_then(|(session, inverse)| session.job(inverse, keys).ok());
        while let Some(one) = kept.get(next.fetch_add(1, Ordering::Relaxed)) {
            if Instant::now() >= end {
                break;
            }
            let checked = plan.cases[one.case].check(true, &one.output, inverse.as_deref_mut());
            verified.add(one.is_measured, checked.is_ok());
        }
        lock(&sum).push(verified);
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..cores.min(kept.len()) {
            // Without another thread this one verifies all.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    Verified::sum(lock(&sum).drain(..))
}

#[cfg(test)]
mod tests;

//! Time of frame tests.
//!
//! The number of trials of a search depends on the DUT and the machine: steady ones need less than
//! half of the number used here, noisy ones up to [`NOISY_SEARCHES`] times that number.
//! `tests/estimates.rs` checks the figures against simulated DUTs. Bursts are counted as if the
//! longest passed; a DUT that does not carry the highest load takes less.

use super::ProcedurePlan;
use crate::ThroughputSearch;
use std::time::Duration;

/// Around each trial of frames, without its drain: stations prepared, results read.
pub const FRAMES_AROUND: Duration = Duration::from_millis(50);
/// The trial after the procedure that supplies the evidence.
pub const EVIDENCE_RUN: Duration = Duration::from_secs(1);
/// The trial at the highest load that warms the device up, and finds that load if the campaign does
/// not set it.
pub const FLOOD_RUN: Duration = Duration::from_millis(250);
/// Ratio of actual to estimated time of all searches together on a noisy machine.
pub const NOISY_SEARCHES: u32 = 3;
/// Time for stragglers if a procedure sets none.
pub(super) const DRAIN: Duration = Duration::from_millis(100);

/// Trials of a search that look for the bounds, of the initial duration.
const SHORT_TRIALS: u32 = 5;
/// Loads for each goal that are tried for the whole duration sum: its two bounds.
const FULL_LOADS: u32 = 2;
/// Time of a procedure with the trials before and after it.
pub(super) fn whole(plan: &dyn ProcedurePlan, searches: u32) -> Duration {
    // Every trial waits for late frames, the one for the evidence too.
    let drain = plan.drain();
    let trial = |time_ns: u64| Duration::from_nanos(time_ns) + drain + FRAMES_AROUND;
    // Other procedures have a given load, and their first trial warms the device up.
    let flood = if plan.needs_highest_load() || plan.search().is_some() {
        FLOOD_RUN + DRAIN + FRAMES_AROUND
    } else {
        Duration::ZERO
    };
    // The trial for the evidence is the last: it runs at the load of the figures.
    flood + plan.time(&trial, searches) + EVIDENCE_RUN + drain + FRAMES_AROUND
}

/// Time of a search that takes `times` its usual time: 5 × initial trial + per goal 2 × duration
/// sum, at most its timeout.
pub(super) fn search_time(test: &ThroughputSearch, times: u32) -> Duration {
    let nanos = Duration::from_nanos;
    let around = nanos(test.drain_ns) + FRAMES_AROUND;
    let initial = test
        .goals
        .iter()
        .map(|goal| nanos(goal.criteria.initial_trial_ns));
    // Goals share the trials that look for their bounds: the longest of each counts once.
    let short = (initial.max().unwrap_or_default() + around) * SHORT_TRIALS;
    let full = test.goals.iter().map(|goal| {
        let trials = goal
            .criteria
            .duration_sum_ns
            .div_ceil(goal.criteria.final_trial_ns.max(1));
        // A sum of a day and trials of 10 ms: it fits.
        let around = around * u32::try_from(trials).unwrap_or(u32::MAX);
        (nanos(goal.criteria.duration_sum_ns) + around) * FULL_LOADS
    });
    let time = full.fold(short, |sum, time| sum.saturating_add(time));
    // A search ends at its timeout, on any machine.
    time.saturating_mul(times).min(nanos(test.timeout_ns))
}

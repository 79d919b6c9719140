//! Time of frame tests.
//!
//! How many trials a search needs depends on the DUT: a steady one needs half of what is counted
//! here, a noisy one twice as many. `tests/estimates.rs` holds the figures against simulated DUTs.

use crate::plan::{Procedure, ThroughputSearch};
use std::time::Duration;

/// Around each trial of frames, beside its drain: stations made ready, results read.
pub const FRAMES_AROUND: Duration = Duration::from_millis(50);

/// Trials of a search that look for where the bounds are; of the initial duration.
const SHORT_TRIALS: u32 = 5;
/// Loads for each goal that are tried for the whole duration sum: its two bounds.
const FULL_LOADS: u32 = 2;
/// Bursts until the longest that passes is found: halvings from two seconds at line rate down to one
/// frame.
const BURST_HALVINGS: u32 = 20;

/// Time that a procedure takes, drains included.
pub(super) fn time(procedure: &Procedure) -> Duration {
    let nanos = Duration::from_nanos;
    match procedure {
        Procedure::Load(load) => nanos(load.duration_ns) + FRAMES_AROUND,
        Procedure::Throughput(test) => search(test),
        Procedure::LossCurve(test) => {
            let loads = 100_u32.div_ceil(u32::from(test.step_percent.max(1)));
            (nanos(test.trial_ns) + nanos(test.drain_ns) + FRAMES_AROUND) * loads
        }
        Procedure::BackToBack(test) => {
            // The first burst is the longest, and those after it halve; what then passes is short.
            let bursts = test.bursts.saturating_add(BURST_HALVINGS);
            nanos(test.burst_ns_max) * 2 + (nanos(test.drain_ns) + FRAMES_AROUND) * bursts
        }
        Procedure::Latency(test) => {
            // A list of per cents, each once.
            let loads = test.percents.len() as u32;
            let trial = nanos(test.trial_ns) + nanos(test.search.drain_ns) + FRAMES_AROUND;
            search(&test.search) + trial * loads
        }
        Procedure::Recovery(test) => {
            let trial = nanos(test.overload_ns) + nanos(test.relief_ns);
            search(&test.search) + trial + nanos(test.search.drain_ns) + FRAMES_AROUND
        }
    }
}

fn search(test: &ThroughputSearch) -> Duration {
    let nanos = Duration::from_nanos;
    let around = nanos(test.drain_ns) + FRAMES_AROUND;
    let initial = test.goals.iter().map(|goal| nanos(goal.initial_trial_ns));
    let short = (initial.max().unwrap_or_default() + around) * SHORT_TRIALS;
    let full = test.goals.iter().map(|goal| {
        let trials = goal.duration_sum_ns.div_ceil(goal.final_trial_ns.max(1));
        // A sum of a day and trials of 10 ms: it fits.
        let around = around * u32::try_from(trials).unwrap_or(u32::MAX);
        (nanos(goal.duration_sum_ns) + around) * FULL_LOADS
    });
    let time = full.fold(short, |sum, time| sum.saturating_add(time));
    time.min(nanos(test.timeout_ns))
}

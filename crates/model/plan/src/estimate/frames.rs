//! Time of frame tests.
//!
//! The number of trials of a search depends on the DUT and the machine: steady ones need less than
//! half of the number used here, noisy ones up to [`NOISY_SEARCHES`] times that number.
//! `tests/estimates.rs` checks the figures against simulated DUTs. Bursts are counted as if the
//! longest passed; a DUT that does not carry the highest load takes less.

use crate::{Disturbed, Event, Procedure, Soak, ThroughputSearch};
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
/// Load before the first event, to record the normal state.
pub const LEAD_RUN: Duration = Duration::from_secs(1);
/// Tunnels taken down and set up once.
const SETUP_RUN: Duration = Duration::from_millis(500);
/// Time for stragglers if a procedure sets none.
const DRAIN: Duration = Duration::from_millis(100);

/// Trials of a search that look for the bounds, of the initial duration.
const SHORT_TRIALS: u32 = 5;
/// Loads for each goal that are tried for the whole duration sum: its two bounds.
const FULL_LOADS: u32 = 2;
/// Bursts until the longest that passes is found: halvings from two seconds at line rate down to
/// one frame.
const BURST_HALVINGS: u32 = 20;

/// Time of a procedure with the trials before and after it, drains included, if a search takes
/// `searches` times its usual time.
pub(super) fn time(procedure: &Procedure, searches: u32) -> Duration {
    let nanos = Duration::from_nanos;
    let search = |test: &ThroughputSearch| search(test, searches);
    let drain = match procedure {
        Procedure::Load(_) => DRAIN,
        Procedure::Mrr(test) => nanos(test.drain_ns),
        Procedure::Service(test) => nanos(test.drain_ns),
        Procedure::LossCurve(test) => nanos(test.drain_ns),
        Procedure::BackToBack(test) => nanos(test.drain_ns),
        Procedure::Throughput(search) => nanos(search.drain_ns),
        Procedure::Latency(test) => nanos(test.search.drain_ns),
        Procedure::Recovery(test) => nanos(test.search.drain_ns),
        Procedure::Disturbed(Disturbed { load, .. }) | Procedure::Soak(Soak { load, .. }) => {
            load.search().map_or(DRAIN, |search| nanos(search.drain_ns))
        }
    };
    let trial = |time: Duration| time + drain + FRAMES_AROUND;
    let own = match procedure {
        Procedure::Load(load) => trial(nanos(load.duration_ns)),
        Procedure::Throughput(test) => search(test),
        Procedure::Mrr(test) => trial(nanos(test.trial_ns)) * test.trials,
        // A handful of steps.
        Procedure::Service(test) => trial(nanos(test.step_ns)) * test.steps().count() as u32,
        Procedure::LossCurve(test) => {
            let loads = 100_u32.div_ceil(u32::from(test.step_percent.max(1)));
            trial(nanos(test.trial_ns)) * loads
        }
        Procedure::BackToBack(test) => {
            let bursts = test.bursts.saturating_add(BURST_HALVINGS);
            trial(nanos(test.burst_ns_max)) * bursts
        }
        Procedure::Latency(test) => {
            // A list of per cents, each once.
            let loads = test.percents.len() as u32;
            search(&test.search) + trial(nanos(test.trial_ns)) * loads * test.trials
        }
        Procedure::Recovery(test) => {
            search(&test.search) + trial(nanos(test.overload_ns) + nanos(test.relief_ns))
        }
        Procedure::Disturbed(test) => {
            let found = test.load.search().map_or(Duration::ZERO, search);
            let again = match test.event {
                Event::Rekey {
                    throughput: true, ..
                } => found,
                _ => Duration::ZERO,
            };
            found + disturbed(&test.event, trial) + again
        }
        Procedure::Soak(test) => {
            let found = test.load.search().map_or(Duration::ZERO, search);
            let probe = test.probe_ns.map_or(Duration::ZERO, |ns| trial(nanos(ns)));
            let segments = test
                .segments(0)
                .map(|time_ns| trial(nanos(time_ns)) + probe);
            found + segments.sum::<Duration>() + probe
        }
    };
    let flood = if is_warmed_up(procedure) {
        FLOOD_RUN + DRAIN + FRAMES_AROUND
    } else {
        Duration::ZERO
    };
    flood + own + trial(EVIDENCE_RUN)
}

/// Time of a disturbance.
fn disturbed(event: &Event, trial: impl Fn(Duration) -> Duration) -> Duration {
    let nanos = Duration::from_nanos;
    match *event {
        Event::Rekey { duration_ns, .. } => trial(nanos(duration_ns)) * 2,
        Event::Failover {
            times,
            down_ns,
            watch_ns,
            ..
        } => trial(LEAD_RUN + (nanos(down_ns) + nanos(watch_ns)) * times),
        Event::Reset {
            times, watch_ns, ..
        }
        | Event::Desync {
            times, watch_ns, ..
        } => trial(LEAD_RUN + nanos(watch_ns) * times),
        Event::Setup { times, watch_ns } => {
            // Once before, to learn its duration.
            SETUP_RUN + trial(LEAD_RUN + (SETUP_RUN + nanos(watch_ns)) * times)
        }
        Event::Hostile {
            ref percents,
            trial_ns,
            ..
        } => trial(nanos(trial_ns)) * (percents.len() as u32 + 1),
    }
}

/// Whether a trial at the highest load precedes it.
fn is_warmed_up(procedure: &Procedure) -> bool {
    let needs_highest = matches!(
        procedure,
        Procedure::BackToBack(_) | Procedure::LossCurve(_) | Procedure::Mrr(_)
    );
    needs_highest || procedure.search().is_some()
}

fn search(test: &ThroughputSearch, times: u32) -> Duration {
    let nanos = Duration::from_nanos;
    let around = nanos(test.drain_ns) + FRAMES_AROUND;
    let initial = test
        .goals
        .iter()
        .map(|goal| nanos(goal.criteria.initial_trial_ns));
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
    time.saturating_mul(times).min(nanos(test.timeout_ns))
}

//! A search, then latency at shares of its result (RFC 2544 §26.2, RFC 8219 §7.2, §7.3, RFC 8762).

use super::{ProcedureTrials, last};
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::{Basis, searched, share};
use crate::frames::trials::{EVIDENCE_NS, Trials, latency_trial};
use journal::record::{FrameResult, FrameTrial, LatencyTrial};
use plan::{LatencyPath, LatencyTest};

impl ProcedureTrials for LatencyTest {
    /// Times one way, if that is asked for and the clocks of the stations agree well enough;
    /// otherwise round trips, also if the clocks stop agreeing in the middle.
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        trials.reflected = self.path == LatencyPath::RoundTrip || is_inexact_one_way(trials, self)?;
        loop {
            let basis = latency_on_path(trials, self)?;
            let inexact = trials.result.latency.iter().any(LatencyTrial::is_inexact);
            // Round trips are timed by one clock and never inexact, so the loop ends after the
            // second pass.
            if !inexact || !trials.rig.reflects() {
                return Ok(basis);
            }
            // The throughput is searched again too: a load that is reflected fills both directions,
            // and the device may carry less of it.
            trials.result.latency.clear();
            trials.reflected = true;
        }
    }

    fn figure_trials<'r>(
        &self,
        result: &'r FrameResult,
        trials: &'r [FrameTrial],
    ) -> Vec<&'r FrameTrial> {
        last(trials, result.latency.len())
    }

    fn needs_latency(&self) -> bool {
        true
    }
}

/// Whether a first trial, at a low load, shows that the clocks of two hosts agree too little for
/// latencies one way, and there is another way to time.
fn is_inexact_one_way(trials: &mut Trials<'_>, plan: &LatencyTest) -> Result<bool, TrialError> {
    if !trials.rig.reflects() || !trials.rig.has_two_clocks() {
        return Ok(false);
    }
    let load = RigLoad::new(
        Some(plan.search.min_load),
        EVIDENCE_NS,
        plan.search.drain_ns,
    );
    let run = trials.make_unrecorded(&load)?;
    Ok(latency_trial(None, &run).is_inexact())
}

/// Searches for the throughput, and times frames at shares of it.
fn latency_on_path(trials: &mut Trials<'_>, plan: &LatencyTest) -> Result<Basis, TrialError> {
    let throughput = match searched(trials, &plan.search)? {
        Ok(throughput) => throughput,
        Err(basis) => return Ok(basis),
    };
    for &percent in &plan.percents {
        let load = match percent {
            // 0 % is the device at rest, which still needs frames to be timed.
            0 => plan.search.min_load.min(throughput),
            _ => share(throughput, percent.into()),
        };
        let load = RigLoad::new(Some(load), plan.trial_ns, plan.search.drain_ns).with_variation();
        for _ in 0..plan.trials {
            let run = trials.make(&load)?;
            let timed = latency_trial(Some(percent), &run);
            trials.result.latency.push(timed);
        }
    }
    Ok(Basis::on(throughput, plan.search.drain_ns))
}

//! A load for minutes to hours, in segments that are reported as they end. Before each of them and
//! after the last one a short overload probes the capacity: a constant load without loss does not
//! show a loss of capacity.

use super::ProcedureTrials;
use super::disturbed::{base_load, drain_ns};
use crate::checkpoint::Checkpoint;
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::Basis;
use crate::frames::trials::{DRAIN_NS, Trials};
use journal::record::{FrameResult, FrameTrial, ProcedureRecord, SoakProbe, SoakProgress};
use plan::Soak;
use units::human::duration_ns;

impl ProcedureTrials for Soak {
    /// Carries it out, or resumes it after the trial's checkpoints.
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        let earlier: Vec<&SoakProgress> = trials
            .trial
            .checkpoints
            .iter()
            .filter_map(Checkpoint::soak)
            .collect();
        let drain_ns = drain_ns(&self.load);
        // The same load as before: another search would find another one.
        let load = match earlier.first() {
            Some(first) => {
                trials.result.throughput.clone_from(&first.throughput);
                first.load
            }
            None => match base_load(trials, &self.load)? {
                Ok(load) => load,
                Err(basis) => return Ok(basis),
            },
        };
        let mut measured_ns = 0_u64;
        for segment in &earlier {
            trials.take_up(segment);
            measured_ns = measured_ns.saturating_add(segment.trial.duration_ns);
        }
        let start = earlier.last().map_or(1, |last| last.segment.start + 1);
        for time_ns in self.segments(measured_ns) {
            let segment = RigLoad::new(Some(load), time_ns, drain_ns);
            let probes = probe(trials, self).map_err(|error| after(error, measured_ns, self))?;
            let made = trials.soak(&segment, self.point_ns, start, probes);
            made.map_err(|error| after(error, measured_ns, self))?;
            measured_ns = measured_ns.saturating_add(time_ns);
        }
        let last = probe(trials, self).map_err(|error| after(error, measured_ns, self))?;
        let mut segments = std::mem::take(&mut trials.segments);
        // The probe after the last segment has no segment behind it, so it is kept with the last
        // one.
        if let Some(segment) = segments.last_mut() {
            segment.probes.extend(last);
        }
        trials.result.found = ProcedureRecord::Soak(segments);
        Ok(Basis::on(load, drain_ns))
    }

    fn figure_trials<'r>(
        &self,
        result: &'r FrameResult,
        trials: &'r [FrameTrial],
    ) -> Vec<&'r FrameTrial> {
        let segments = result.soak().iter();
        segments.filter_map(|one| trials.get(one.trial)).collect()
    }

    fn compares_times(&self) -> bool {
        true
    }
}

/// Probes the capacity, if that is planned: at the line rate, or as fast as the generator can (RFC
/// 2285 §3.6.2: forwarding rate at maximum offered load). It is no trial of the soak, which counts
/// and checks only its load.
fn probe(trials: &mut Trials<'_>, plan: &Soak) -> Result<Option<SoakProbe>, TrialError> {
    let Some(probe_ns) = plan.probe_ns else {
        return Ok(None);
    };
    let load = RigLoad::new(trials.rig.line_rate(), probe_ns, DRAIN_NS);
    let at_unix_ns = trials.rig.now_unix_ns();
    let trial = trials.make_unrecorded(&load)?.trial;
    Ok(Some(SoakProbe { at_unix_ns, trial }))
}

/// Adds the measured time to an error: when a device fails in a soak, the time matters most.
fn after(error: TrialError, measured_ns: u64, plan: &Soak) -> TrialError {
    if error.is_interrupt() {
        return error;
    }
    let [measured, planned] = [measured_ns, plan.duration_ns].map(|ns| duration_ns(ns as f64));
    TrialError::frames(format!("after {measured} of {planned}: {error}"))
}

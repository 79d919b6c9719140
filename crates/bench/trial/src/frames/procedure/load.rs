//! One load for one time.

use super::ProcedureTrials;
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::Basis;
use crate::frames::trials::{DRAIN_NS, Trials, latency_trial};
use journal::record::{FrameResult, FrameTrial};
use plan::Load;

impl ProcedureTrials for Load {
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        let load = RigLoad::new(self.frames_per_s, self.duration_ns, DRAIN_NS).with_variation();
        let mut latency = latency_trial(None, &trials.make(&load)?);
        // An unpaced load there would be another one back.
        if latency.is_inexact() && self.frames_per_s.is_some() && trials.rig.reflects() {
            trials.reflected = true;
            latency = latency_trial(None, &trials.make(&load)?);
            trials.reflected = false;
        }
        trials.result.latency.push(latency);
        Ok(Basis {
            load: self.frames_per_s,
            drain_ns: DRAIN_NS,
            objection: None,
        })
    }

    /// Includes the trial that reflected frames for their times.
    fn figure_trials<'r>(
        &self,
        _result: &'r FrameResult,
        trials: &'r [FrameTrial],
    ) -> Vec<&'r FrameTrial> {
        trials.iter().collect()
    }
}

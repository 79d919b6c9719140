//! The steps of a service test (ITU-T Y.1564 §8.1).

use super::ProcedureTrials;
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::Basis;
use crate::frames::trials::{Trials, latency_trial};
use journal::record::{FrameResult, FrameTrial, ProcedureRecord, ServiceTrial};
use plan::ServiceTest;

impl ProcedureTrials for ServiceTest {
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        let mut steps = Vec::new();
        for step in self.steps() {
            let trial = trials.result.trials.len();
            let load = RigLoad::new(Some(self.load(step)), self.step_ns, self.drain_ns);
            let run = trials.make(&load.with_variation())?;
            steps.push(ServiceTrial {
                step,
                trial,
                latency: latency_trial(None, &run),
            });
        }
        trials.result.found = ProcedureRecord::Service(steps);
        Ok(Basis::on(self.cir, self.drain_ns))
    }

    fn figure_trials<'r>(
        &self,
        result: &'r FrameResult,
        trials: &'r [FrameTrial],
    ) -> Vec<&'r FrameTrial> {
        let steps = result.service().iter();
        steps.filter_map(|step| trials.get(step.trial)).collect()
    }

    fn needs_latency(&self) -> bool {
        true
    }
}

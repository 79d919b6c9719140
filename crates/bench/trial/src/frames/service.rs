//! The steps of a service test (ITU-T Y.1564 §8.1).

use super::RigLoad;
use super::basis::Basis;
use super::trials::{Trials, latency_trial};
use crate::error::TrialError;
use journal::record::{FrameFound, ServiceTrial};
use plan::ServiceTest;

pub(super) fn service(trials: &mut Trials<'_>, plan: &ServiceTest) -> Result<Basis, TrialError> {
    let mut steps = Vec::new();
    for step in plan.steps() {
        let trial = trials.result.trials.len();
        let load = RigLoad::new(Some(plan.load(step)), plan.step_ns, plan.drain_ns);
        let run = trials.make(&load.with_variation())?;
        steps.push(ServiceTrial {
            step,
            trial,
            latency: latency_trial(None, &run),
        });
    }
    trials.result.found = FrameFound::Service(steps);
    Ok(Basis::on(plan.cir, plan.drain_ns))
}

//! The maximum receive rate: frames that arrive when the highest load is offered.

use super::RigLoad;
use super::basis::Basis;
use super::trials::Trials;
use crate::error::TrialError;
use plan::Mrr;

pub(super) fn mrr(trials: &mut Trials<'_>, plan: &Mrr) -> Result<Basis, TrialError> {
    let (max_load, _) = trials.highest_load(plan.max_load)?;
    let load = RigLoad::new(Some(max_load), plan.trial_ns, plan.drain_ns);
    for _ in 0..plan.trials {
        trials.make(&load)?;
    }
    Ok(Basis::on(max_load, plan.drain_ns))
}

//! The maximum receive rate: frames that arrive when the highest load is offered (CSIT).

use super::ProcedureTrials;
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::Basis;
use crate::frames::trials::Trials;
use plan::Mrr;

impl ProcedureTrials for Mrr {
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        let (max_load, _) = trials.highest_load(self.max_load)?;
        let load = RigLoad::new(Some(max_load), self.trial_ns, self.drain_ns);
        for _ in 0..self.trials {
            trials.make(&load)?;
        }
        Ok(Basis::on(max_load, self.drain_ns))
    }
}

//! Falling loads until two in a row lose nothing (RFC 2544 §26.3).

use super::ProcedureTrials;
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::Basis;
use crate::frames::trials::Trials;
use plan::LossCurve;
use search::Step;

impl ProcedureTrials for LossCurve {
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        let (max_load, _) = trials.highest_load(self.max_load)?;
        let mut curve = search::LossCurve::new(max_load, self.step_percent, self.trial_ns)?;
        let (mut basis, mut lossless) = (max_load, None);
        while let Step::Measure(trial) = curve.next() {
            let load = RigLoad::new(Some(trial.load), trial.duration_ns, self.drain_ns);
            let counts = trials.make(&load)?.trial.counts();
            curve.record(trial, counts);
            // Loads fall, so the first one without loss is the highest. Without any, the evidence
            // is taken at the last and lowest one.
            basis = trial.load;
            if counts.lost() == 0 {
                lossless = lossless.or(Some(trial.load));
            }
        }
        Ok(Basis::on(lossless.unwrap_or(basis), self.drain_ns))
    }
}

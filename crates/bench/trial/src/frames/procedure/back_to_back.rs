//! Bursts by bisection, then repeats of the longest lossless one (RFC 9004).

use super::ProcedureTrials;
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::Basis;
use crate::frames::trials::Trials;
use journal::record::{BurstTrial, ProcedureRecord};
use plan::BackToBack;
use search::BurstStep;

/// Load of the trial with the evidence, in per cent of the highest load: bursts find no load.
const EVIDENCE_PERCENT_OF_MAX: u64 = 10;

impl ProcedureTrials for BackToBack {
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        let (max_load, _) = trials.highest_load(None)?;
        let longest = RigLoad::new(Some(max_load), self.burst_ns_max, 0).intended();
        let mut lengths = search::BackToBack::new(longest, self.bursts)?;
        let mut bursts = Vec::new();
        while let BurstStep::Send { frames, confirming } = lengths.next() {
            let run = trials.make(&RigLoad::burst(frames, max_load, self.drain_ns))?;
            let lost = run.trial.counts_at_last().lost();
            lengths.record(lost);
            bursts.push(BurstTrial {
                frames,
                lost,
                confirming,
            });
        }
        trials.result.found = ProcedureRecord::Bursts(bursts);
        let load = max_load * EVIDENCE_PERCENT_OF_MAX / 100;
        Ok(Basis::on(load.max(1), self.drain_ns))
    }
}

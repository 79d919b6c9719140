//! A search, then an overload and relief in one trial (RFC 2544 §26.5).

use super::{ProcedureTrials, last};
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::{Basis, searched, share};
use crate::frames::trials::Trials;
use journal::record::{FrameResult, FrameTrial, ProcedureRecord, RecoveryTrial};
use plan::Recovery;
use traffic_spec::Then;

/// Last part of the time after an overload, which must be free of loss, in per cent.
const RECOVERED_PERCENT: u64 = 10;

impl ProcedureTrials for Recovery {
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        let throughput = match searched(trials, &self.search)? {
            Ok(throughput) => throughput,
            Err(basis) => return Ok(basis),
        };
        // RFC 2544 §26.5: at most the line's rate.
        let overload = share(throughput, self.overload_percent.into());
        let overload = trials
            .rig
            .line_rate()
            .map_or(overload, |line| overload.min(line));
        let relief = share(throughput, self.relief_percent.into());
        let run = trials.make(&RigLoad {
            then: Some(Then {
                frames_per_s: relief,
                duration_ns: self.relief_ns,
            }),
            ..RigLoad::new(Some(overload), self.overload_ns, self.search.drain_ns)
        })?;
        let after = run.relief.unwrap_or_default();
        let relief_lost = after.sent.saturating_sub(after.received);
        let quiet_from_ns = self.relief_ns - self.relief_ns / 100 * RECOVERED_PERCENT;
        trials.result.found = ProcedureRecord::Recovery(RecoveryTrial {
            overload,
            relief,
            // Gaps that reordering leaves and fills are no loss; gaps of the overload were noticed
            // later.
            recovery_ns: if relief_lost > 0 {
                after.last_loss_ns
            } else {
                0
            },
            // Frames must still arrive near the end: a device that went silent shows no further
            // gap.
            recovered: relief_lost == 0
                || after.last_loss_ns < quiet_from_ns && after.last_received_ns >= quiet_from_ns,
            overload_lost: run.trial.lost().saturating_sub(relief_lost),
            relief_lost,
        });
        Ok(Basis::on(throughput, self.search.drain_ns))
    }

    fn figure_trials<'r>(
        &self,
        result: &'r FrameResult,
        trials: &'r [FrameTrial],
    ) -> Vec<&'r FrameTrial> {
        last(trials, usize::from(result.recovery().is_some()))
    }

    fn overloads(&self) -> bool {
        true
    }
}

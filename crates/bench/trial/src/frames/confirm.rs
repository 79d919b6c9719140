//! Confirms a throughput by trials at its load, so that no trial of the evidence contradicts the
//! figure.
//!
//! After a search a trial runs at the lower bound of the first goal. If it does not meet the goal,
//! more trials follow, as long as the first one or as the goal's trials if these are longer, until
//! the share of time that did not meet it is within the goal's exceed ratio (RFC 9971), or the time
//! is up: a device could carry shorter ones with capacity that it saved between them. The search
//! itself makes these trials, and goes on with the ones that contradict it; trials that follow
//! other trials after a search can only refuse the figure.

use super::{ProcedureResult, Rig, RigLoad};
use crate::error::TrialError;
use journal::record::{FrameResult, FrameTrial};
use plan::{FrameTest, Goal, Procedure};
use testbed::Interrupt;

/// Time of confirming trials, as a multiple of the first one's, or one trial of the goal if that is
/// longer.
const CONFIRMING_TIMES: u64 = 3;

/// Most trials at one load, the first included, while the tester itself may be the cause.
pub(super) const TRIES: u32 = 3;

/// How trials at the load of a throughput agree with its goal.
#[derive(Debug, Clone)]
pub(super) struct Confirmation<'a> {
    /// The goal.
    pub(super) goal: &'a Goal,
    /// The trials at its lower bound after the search, without the ones that a later one replaces.
    pub(super) trials: Vec<&'a FrameTrial>,
}

impl<'a> Confirmation<'a> {
    /// How these trials agree with the goal.
    pub(super) fn by(goal: &'a Goal, made: &'a [FrameTrial]) -> Self {
        let mut trials: Vec<&FrameTrial> = Vec::new();
        // The first one is the last of its tries, or has the evidence, so it always counts.
        let mut tries = TRIES;
        for (at, trial) in made.iter().enumerate() {
            // None has replaced the last one, although the tester may have disturbed it.
            let is_last = at + 1 == made.len();
            if tries < TRIES && !is_last && is_disturbed(trial) {
                tries += 1;
            } else {
                trials.push(trial);
                tries = 1;
            }
        }
        Self { goal, trials }
    }

    /// Returns how a result is confirmed; `None` without a throughput whose load was tried again,
    /// and for a soak.
    pub(super) fn of(test: &'a FrameTest, result: &'a FrameResult) -> Option<Self> {
        // It holds the load for hours, and failing to carry that load is its finding.
        if matches!(test.procedure, Procedure::Soak(_)) {
            return None;
        }
        let goal = test.procedure.search()?.goals.first()?;
        let lower = result.throughput.as_ref()?.goals.first()?.lower?;
        let trials = result.trials.get(result.evidence_trial?..)?;
        (trials.first()?.load == lower).then(|| Self::by(goal, trials))
    }

    /// Time of all trials, and time of the trials that do not meet the goal.
    fn times_ns(&self) -> (u64, u64) {
        let (mut all_ns, mut failed_ns) = (0, 0);
        for trial in &self.trials {
            all_ns += trial.duration_ns;
            if !self.is_met_by(trial) {
                failed_ns += trial.duration_ns;
            }
        }
        (all_ns, failed_ns)
    }

    /// Whether a trial lost no more than the goal allows, counted as the search counts.
    pub(super) fn is_met_by(&self, trial: &FrameTrial) -> bool {
        trial.meets(self.goal.criteria.loss_ratio_ppm)
    }

    /// Whether the share of time that did not meet the goal is within its exceed ratio.
    pub(super) fn holds(&self) -> bool {
        let (all, failed) = self.times_ns();
        let allowed = u128::from(all) * u128::from(self.goal.criteria.exceed_ratio_ppm);
        u128::from(failed) * 1_000_000 <= allowed
    }

    /// Duration of the next trial, no shorter than the first; `None` if the trials decide.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let first = self.trials.first()?.duration_ns;
        let trial_ns = self.goal.criteria.final_trial_ns.max(first).max(1);
        let most = first.saturating_mul(CONFIRMING_TIMES);
        let most = most.max(first.saturating_add(trial_ns));
        let (all, _) = self.times_ns();
        // Without an exceed ratio a single trial decides.
        let is_open = !self.holds() && self.goal.criteria.exceed_ratio_ppm > 0;
        (is_open && all.saturating_add(trial_ns) <= most).then_some(trial_ns)
    }
}

/// Whether a trial proves nothing about the device: the generator was late, or frames found a queue
/// of the machine full that belongs to no interface of the path.
pub(super) fn is_disturbed(trial: &FrameTrial) -> bool {
    // Both count frames as lost that the device may have carried.
    trial.took_too_long() || trial.unattributed_loss() > 0
}

/// Makes the trial with the evidence, unless the search ended with it, and further ones until they
/// decide about the throughput.
///
/// # Errors
/// When a frame trial cannot be made, or the run is interrupted.
pub fn take_evidence(
    found: &mut ProcedureResult,
    test: &FrameTest,
    rig: &mut dyn Rig,
    interrupt: &Interrupt,
) -> Result<(), TrialError> {
    // A search for throughput has confirmed its figure with samples already.
    if found.result.evidence_trial.is_some() {
        return Ok(());
    }
    let load = found.evidence_load;
    let run = rig.run(&load, interrupt)?;
    found.add_evidence(&run);
    while let Some(duration_ns) = Confirmation::of(test, &found.result).and_then(|it| it.next_ns())
    {
        let further = RigLoad {
            duration_ns,
            // The evidence is there; samples take time from a core of the machine.
            sampled: false,
            ..load
        };
        let run = rig.run(&further, interrupt)?;
        found.result.trials.push(run.trial);
        found.strays.add(&run.strays);
    }
    Ok(())
}

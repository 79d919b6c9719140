//! The procedures of frame tests: the trials of each in one file, registered in [`of`].
//!
//! Latency is timed one way, or there and back.
//!
//! Each procedure returns the load of its figures, for the trial with samples and CPU time. That
//! trial follows the procedure; in a search for throughput it is the last one, which confirms the
//! result.

mod back_to_back;
mod disturbed;
mod latency;
mod load;
mod loss_curve;
mod mrr;
mod recovery;
mod service;
mod soak;
mod throughput;

use super::basis::Basis;
use super::trials::{EVIDENCE_NS, Trials};
use super::{ProcedureResult, Rig, RigLoad, Strays};
use crate::error::TrialError;
use crate::event::EventSink;
use crate::measurer::Trial;
use journal::record::{DisturbedTrials, FrameResult, FrameTrial};
use plan::{FrameTest, Procedure};
use testbed::Interrupt;

/// The trials of a procedure.
pub(crate) trait ProcedureTrials {
    /// Makes them, and returns the load of the figures.
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError>;

    /// The trials that a figure is read from directly, of those before the evidence. None by
    /// default: a search counts a load that was not offered as not carried, and a loss curve
    /// reports the frames sent and the receiver's loss at each load.
    fn figure_trials<'r>(
        &self,
        _result: &'r FrameResult,
        _trials: &'r [FrameTrial],
    ) -> Vec<&'r FrameTrial> {
        Vec::new()
    }

    /// Whether it has no figure without latencies, however inexact they are.
    fn needs_latency(&self) -> bool {
        false
    }

    /// Whether it relates times of this program to times of the stations.
    fn compares_times(&self) -> bool {
        false
    }

    /// Whether it offers more than can be carried.
    fn overloads(&self) -> bool {
        false
    }
}

/// The trials of a procedure.
pub(crate) const fn of(procedure: &Procedure) -> &dyn ProcedureTrials {
    match procedure {
        Procedure::Load(plan) => plan,
        Procedure::Throughput(plan) => plan,
        Procedure::Mrr(plan) => plan,
        Procedure::Service(plan) => plan,
        Procedure::LossCurve(plan) => plan,
        Procedure::BackToBack(plan) => plan,
        Procedure::Latency(plan) => plan,
        Procedure::Recovery(plan) => plan,
        Procedure::Disturbed(plan) => plan,
        Procedure::Soak(plan) => plan,
    }
}

/// The last `count` trials.
fn last(trials: &[FrameTrial], count: usize) -> Vec<&FrameTrial> {
    trials[trials.len().saturating_sub(count)..]
        .iter()
        .collect()
}

/// Carries out the procedure of a frame test, on a path that is up. A soak resumes after the
/// trial's checkpoints; other procedures begin anew.
///
/// # Errors
/// When a frame trial cannot be made, or the run is interrupted.
pub fn carry_out(
    trial: &Trial<'_>,
    test: &FrameTest,
    rig: &mut dyn Rig,
    events: EventSink<'_>,
    interrupt: &Interrupt,
) -> Result<ProcedureResult, TrialError> {
    let mut trials = Trials {
        trial,
        rig,
        events,
        interrupt,
        result: FrameResult::default(),
        disturbed: DisturbedTrials::default(),
        segments: Vec::new(),
        strays: Strays::default(),
        bounds: Vec::new(),
        reflected: false,
    };
    // If it fails, the trials so far are not recorded: a procedure has a figure or none. Only a
    // soak has reported its segments before.
    let basis = of(&test.procedure).carry_out(&mut trials)?;
    Ok(ProcedureResult {
        result: trials.result,
        strays: trials.strays,
        evidence_load: RigLoad {
            reflected: trials.reflected,
            ..RigLoad::new(basis.load, EVIDENCE_NS, basis.drain_ns).with_samples()
        },
        objection: basis.objection,
    })
}

//! Frame tests: procedures on a rig that makes one frame trial at a time.
//!
//! ```text
//! FrameTest ─► procedure ─► Rig::run(RigLoad) ─► FrameRun ─► FrameResult
//!                 ▲                                │
//!                 └────────────────────────────────┘
//! ```
//!
//! Procedures do not depend on a lab: [`Rig`] is implemented by a pair of stations, by rings in
//! memory, and by simulated devices in tests.

mod attempt;
mod basis;
mod clocks;
mod confirm;
mod evidence;
mod outage;
mod points;
mod presence;
mod procedure;
mod receive_queues;
mod reset;
mod rig;
mod spec;
mod station;
mod throughput;
mod trials;

pub(crate) use attempt::attempt;
pub use confirm::take_evidence;
pub use evidence::{FrameObserved, FrameReadings, frame_checks};
pub use outage::{Bins, ExecutedAction};
pub use points::{DeviceReading, soaked, with_bins};
pub use procedure::carry_out;
pub use rig::{FrameRun, Relief, Rig, RigLoad, Soaked, Strays};
pub use spec::{BURST_NS, FrameStream, peer_engine};
pub use trials::was_offered;

use journal::record::FrameResult;

/// The result of a procedure.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcedureResult {
    /// The result; without the trial with the evidence, unless a search ended with that trial.
    pub result: FrameResult,
    /// Received frames that are not of a trial, over all trials.
    pub strays: Strays,
    /// Load of the trial with the evidence: the load of the figures.
    pub evidence_load: RigLoad,
    /// Why there is no figure; `None` if there is one.
    pub objection: Option<String>,
}

impl ProcedureResult {
    /// Adds the trial with the evidence.
    pub fn add_evidence(&mut self, run: &FrameRun) {
        // The procedure's latency is preferred: no samples were taken then.
        if self.result.latency.is_empty() {
            self.result.latency.push(trials::latency_trial(None, run));
        }
        self.result.evidence_trial = Some(self.result.trials.len());
        self.result.trials.push(run.trial.clone());
        self.strays.add(&run.strays);
    }
}

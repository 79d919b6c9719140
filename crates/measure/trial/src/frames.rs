//! Frame tests: procedures over a rig that makes one frame trial at a time.
//!
//! ```text
//! FrameTest ─► procedure ─► Rig::run(RigLoad) ─► FrameRun ─► FrameResult
//!                 ▲                                │
//!                 └────────────────────────────────┘
//! ```
//!
//! A procedure knows no lab: [`Rig`] is implemented by a pair of stations, by rings in memory, and
//! by simulated devices in tests.

mod attempt;
mod disturbed;
mod outage;
mod points;
mod procedures;
mod rig;
mod soak;
mod spec;
mod stand;
mod station;
mod throughput;
mod trials;

pub(crate) use attempt::attempt;
pub use outage::{Bins, Done};
pub(crate) use points::{counted, soaked};
pub use procedures::carry_out;
pub use rig::{FrameRun, Relief, Rig, RigLoad, Soaked, Strays};
pub use spec::BURST_NS;
pub(crate) use spec::{Way, peer_engine};
pub(crate) use trials::was_offered;

use journal::record::FrameResult;

/// What a procedure found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// All but the trial whose evidence is read.
    pub result: FrameResult,
    /// What came beside the frames of the trials, over all of them.
    pub strays: Strays,
    /// What that trial is to send: the load that the figures stand on.
    pub evidence_load: RigLoad,
    /// Why there is no figure, where there is none.
    pub objection: Option<String>,
}

impl Found {
    /// Takes in the trial whose evidence is read.
    pub fn add_evidence(&mut self, run: &FrameRun) {
        // Where the procedure timed frames itself, nothing watched the links meanwhile.
        if self.result.latency.is_empty() {
            self.result.latency.push(stand::timed(None, run));
        }
        self.result.evidence_trial = Some(self.result.trials.len());
        self.result.trials.push(run.trial.clone());
        self.strays.add(&run.strays);
    }
}

//! Frame tests: procedures over a rig that makes one frame trial at a time.
//!
//! ```text
//! FrameTest ─► procedure ─► Rig::run(RigLoad) ─► FrameRun ─► FrameResult
//!                 ▲                                │
//!                 └────────────────────────────────┘
//! ```
//!
//! A procedure knows no lab: [`Rig`] is implemented by a pair of stations, by rings in memory, and by
//! simulated devices in tests.

mod attempt;
mod disturbed;
mod outage;
mod points;
mod procedures;
mod rig;
mod soak;
mod spec;
mod station;
mod throughput;
mod trials;

pub(crate) use attempt::attempt;
pub use outage::{Bins, Done};
pub use points::Soaked;
pub(crate) use points::{counted, soaked};
pub use procedures::{carry_out, go_on};
pub use rig::{FrameRun, Happening, HostileLoad, PlannedAction, Relief, Rig, RigLoad, Strays};
pub use spec::BURST_NS;
pub(crate) use spec::{Way, peer_engine};
pub(crate) use trials::was_offered;

use crate::device::FatigueStep;
use campaign::plan::Cell;
use journal::record::{FrameResult, FrameTrial, GoalBounds, SoakSegment, ThroughputFound};

/// What a procedure tells of itself while it goes on.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// A frame trial begins.
    Begins(&'a FrameStep<'a>),
    /// A segment of a soak has ended.
    Soaked(&'a SoakedSegment<'a>),
    /// What came of a fatigue trial so far.
    Fatigued(&'a FatigueStep<'a>),
}

/// A segment of a soak that has ended, with all that is needed to go on after it.
#[derive(Debug, Clone, Copy)]
pub struct SoakedSegment<'a> {
    /// Load of the whole soak.
    pub load: u64,
    /// The search of which it is a share.
    pub throughput: Option<&'a ThroughputFound>,
    /// The segment's counts.
    pub trial: &'a FrameTrial,
    /// The segment.
    pub segment: &'a SoakSegment,
}

/// A frame trial that begins, and what is known so far.
#[derive(Debug, Clone, Copy)]
pub struct FrameStep<'a> {
    /// The cell whose trial it is a part of.
    pub cell: &'a Cell,
    /// Its number among the frame trials of this trial, from 1.
    pub number: usize,
    /// Intended load in frames/s; `None`: as fast as the generator can.
    pub load: Option<u64>,
    /// Intended duration, in nanoseconds.
    pub duration_ns: u64,
    /// What happens to the DUT in it; `None` in a trial that is not about that.
    pub happening: Option<&'a Happening>,
    /// What the frame trial before came to.
    pub last: Option<&'a FrameTrial>,
    /// Of a search: bounds so far, one for each goal; empty otherwise.
    pub bounds: &'a [GoalBounds],
}

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
            self.result.latency.push(procedures::timed(None, run));
        }
        self.result.evidence_trial = Some(self.result.trials.len());
        self.result.trials.push(run.trial.clone());
        self.strays.add(&run.strays);
    }
}

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

mod rig;

pub use rig::{FrameRun, Relief, Rig, RigLoad};

use campaign::plan::Cell;
use journal::record::{FrameTrial, GoalBounds};

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
    /// What the frame trial before came to.
    pub last: Option<&'a FrameTrial>,
    /// Of a search: bounds so far, one for each goal; empty otherwise.
    pub bounds: &'a [GoalBounds],
}

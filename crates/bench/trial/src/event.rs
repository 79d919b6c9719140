//! Events of a run, and of the trials in it, for progress displays and the journal.

use crate::checkpoint::Checkpoint;
use crate::disturbance::PlannedDisturbance;
use journal::record::{FrameTrial, GoalBounds, ToolParameters, TrialRecord, Tuned};
use plan::{Cell, TrialRef};
use std::time::Duration;

/// Progress of a run at an event.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Number of the trial among all of the plan, from 1.
    pub trial: usize,
    /// Trials of the plan.
    pub trials: usize,
    /// Estimated time until the run ends: the plan's estimates, scaled by how long trials took so
    /// far.
    pub left: Duration,
    /// The event.
    pub event: RunEvent<'a>,
}

/// An event of a run.
#[derive(Debug, Clone, Copy)]
pub enum RunEvent<'a> {
    /// An attempt to find better tool parameters begins.
    Attempt {
        /// The cell that is tuned.
        cell: &'a Cell,
        /// The parameters that the attempt uses.
        parameters: &'a ToolParameters,
        /// From 1.
        attempt: u32,
        /// Upper limit of the number of attempts.
        attempts_max: u32,
    },
    /// Tool parameters were found.
    Tuned(&'a Tuned),
    /// A trial begins.
    Started(TrialRef<'a>),
    /// A trial continues; a checkpoint has been recorded.
    InTrial(TrialRef<'a>, TrialEvent<'a>),
    /// A trial ended.
    Ended(&'a TrialRecord),
}

/// An event of a trial in progress.
#[derive(Debug, Clone, Copy)]
pub enum TrialEvent<'a> {
    /// A frame trial, one of several in a trial, begins.
    FrameTrial(&'a FrameStep<'a>),
    /// A step ended, and the trial can be resumed after it.
    Checkpoint(&'a Checkpoint),
}

/// Receives the events of a trial.
pub type EventSink<'a> = &'a mut dyn FnMut(TrialEvent<'_>);

/// A frame trial that begins, and the results so far.
#[derive(Debug, Clone, Copy)]
pub struct FrameStep<'a> {
    /// The cell of the trial that it belongs to.
    pub cell: &'a Cell,
    /// Its number among the frame trials of this trial, from 1.
    pub number: usize,
    /// Intended load in frames/s; `None`: as fast as the generator can.
    pub load: Option<u64>,
    /// Intended duration, in nanoseconds.
    pub duration_ns: u64,
    /// Disturbance of the DUT in it; `None` in a trial without one.
    pub planned: Option<&'a PlannedDisturbance>,
    /// Counts of the previous frame trial.
    pub last: Option<&'a FrameTrial>,
    /// Of a search: bounds so far, one for each goal; empty otherwise.
    pub bounds: &'a [GoalBounds],
}

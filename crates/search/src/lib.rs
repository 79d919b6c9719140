//! Searches for the highest load that a device carries: pure, driven by any measurer.
//!
//! ```text
//! Search::next() ─► Step::Measure(Trial) ─► the measurer ─► Search::record(Trial, Counts) ─► next()
//!                └► Step::Done
//! ```
//!
//! A search does no I/O and keeps no clock: time is what trials have taken. [`MlrSearch`] is MLRsearch
//! as RFC 9971 has it, with several goals at once; [`Bisection`] is what RFC 2544 §26.1 is usually done by,
//! kept as the yardstick; [`BackToBack`] is RFC 9004.

#![forbid(unsafe_code)]

/// A trial to make: a load for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Frames per second.
    pub load: u64,
    /// Intended duration, in nanoseconds.
    pub duration_ns: u64,
}

/// What a trial came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Frames that should have been sent at the intended load.
    pub intended: u64,
    /// Frames that were forwarded, each once.
    pub forwarded: u64,
}

impl Counts {
    /// Frames that were not forwarded. What the tester did not send counts too: a load that was not
    /// offered was not carried.
    #[must_use]
    pub const fn lost(self) -> u64 {
        self.intended.saturating_sub(self.forwarded)
    }
}

/// A search goal (RFC 9971). Ratios are in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// A trial that loses more is a high-loss trial.
    pub loss_ratio_ppm: u32,
    /// Share of the duration sum that high-loss trials may take.
    pub exceed_ratio_ppm: u32,
    /// Trials begin with this duration.
    pub initial_trial_ns: u64,
    /// Trials that count in full.
    pub final_trial_ns: u64,
    /// Sum of trial durations that decides a load.
    pub duration_sum_ns: u64,
    /// Relative distance of the bounds at which the goal is reached: (upper - lower) / upper.
    pub width_ppm: u32,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Make this trial and record it.
    Measure(Trial),
    /// The search has ended.
    Done,
}

/// What a search says of one goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Relevant lower bound: the highest load known to meet the goal, below the upper bound. `None` when not
    /// even the lowest load does (an irregular result).
    pub lower: Option<u64>,
    /// Relevant upper bound: the lowest load known not to meet the goal. `None` when the highest load
    /// meets it.
    pub upper: Option<u64>,
    /// Conditional throughput at the lower bound: forwarding rate, in frames/s.
    pub conditional_throughput: f64,
    /// Trials made at the lower bound's load.
    pub lower_trials: u32,
    /// Trials made at the upper bound's load.
    pub upper_trials: u32,
}

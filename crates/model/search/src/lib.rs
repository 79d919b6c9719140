//! Searches for the highest load that a device carries: pure, independent of how trials are
//! measured.
//!
//! ```text
//! next() ─► Step::Measure(Trial) ─► the measurer ─► record(Trial, Counts, took) ─► next()
//!        └► Step::Done ─► bounds(goal)
//! ```
//!
//! A search does no I/O and reads no clock: time is the sum of the trials' times.
//!
//! | Type | Finds | Source |
//! | --- | --- | --- |
//! | [`MlrSearch`] | throughput for several goals in one search | RFC 9971 |
//! | [`Bisection`] | the same for one goal, by trials of one length; baseline | RFC 2544 §26.1 |
//! | | the same, with a lossy trial repeated before it counts | ETSI GS NFV-TST 009 §12.3.3 |
//! | [`LossCurve`] | loss at falling loads | RFC 2544 §26.3 |
//! | [`BackToBack`] | the longest burst without loss | RFC 9004 |
//!
//! A load must be carried, not queued: [`Counts::sustained`] takes the frames that only a growing
//! queue carried from those forwarded, by the [`DelayTrend`] of the trial. Nor may a device's saved
//! capacity carry it: a [`Reserve`] that one trial shows also applies to all others.
//!
//! [`Method`] starts any of the searches for throughput behind [`Searcher`]. [`simulate`] has
//! devices of known capacity to try searches on; `examples/compare.rs` uses them.
//!
//! Deliberately not done: no search decides whether the tester was the bottleneck. Frames that were
//! not sent and frames that the tester itself lost count as lost ([`Counts::lost`]); the caller has
//! all counts and can distinguish them.

#![forbid(unsafe_code)]

/// The example in `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod back_to_back;
mod bisection;
mod budget;
mod classify;
mod delay;
mod error;
mod loss_curve;
mod mlr;
mod reserve;
mod results;
pub mod simulate;
mod width;

pub use back_to_back::{BackToBack, BurstBounds, BurstStep};
pub use bisection::Bisection;
pub use budget::Limits;
pub use classify::{Class, classify, conditional_throughput};
pub use delay::{
    DELAY_SLICES, DelaySlice, DelayTrend, GROWTH_NS_MAX, GROWTH_PPM_MAX, RISE_NS_MAX, RISE_PPM_MAX,
};
pub use error::SearchError;
pub use loss_curve::LossCurve;
pub use mlr::MlrSearch;
pub use reserve::Reserve;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A trial to make: a load for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Frames per second.
    pub load: u64,
    /// Intended duration, in nanoseconds.
    pub duration_ns: u64,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Frames that should have been sent at the intended load.
    pub intended: u64,
    /// Frames that were forwarded: received intact, each once, and neither because a growing queue
    /// held them until the load was over nor because of a reserve that it used up
    /// ([`Counts::sustained`]).
    pub forwarded: u64,
}

impl Counts {
    /// Frames that were not forwarded, including frames that the tester did not send or lost before
    /// the check: a load that was not offered, or not received, was not carried.
    #[must_use]
    pub const fn lost(self) -> u64 {
        self.intended.saturating_sub(self.forwarded)
    }

    /// Whether the trial was high-loss (RFC 9971, Trial Classification): its loss ratio is larger
    /// than `loss_ratio_ppm`. Decided in whole numbers: with 0 ppm one lost frame is enough. A
    /// trial that intended no frame shows nothing, and counts as high-loss.
    #[must_use]
    pub const fn is_high_loss(self, loss_ratio_ppm: u32) -> bool {
        self.intended == 0
            || self.lost() as u128 * PPM as u128 > self.intended as u128 * loss_ratio_ppm as u128
    }

    /// Highest load that a trial's forwarding rate suggests for a loss ratio, in frames/s: the rate
    /// itself for none, more if some loss is allowed; at most the load.
    pub(crate) fn carried(self, load: u64, loss_ratio_ppm: u32) -> u64 {
        // In 128 bits: a load, a count and parts per million do not fit 64.
        let forwarded = u128::from(self.intended - self.lost()) * u128::from(PPM);
        let allowed = u128::from(self.intended.max(1)) * u128::from(PPM - loss_ratio_ppm);
        let carried = u128::from(load) * forwarded / allowed;
        u64::try_from(carried).unwrap_or(load).min(load)
    }

    /// Trial forwarding ratio (RFC 9971): frames forwarded of those intended, from 0 to 1.
    #[must_use]
    pub const fn forwarding_ratio(self) -> f64 {
        match self.intended {
            0 => 0.0,
            intended => (intended - self.lost()) as f64 / intended as f64,
        }
    }
}

/// One, in parts per million.
pub(crate) const PPM: u32 = 1_000_000;

/// A search goal (RFC 9971, Search Goal). Ratios are in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GoalParameters")]
pub struct Goal {
    /// Goal Loss Ratio: a trial that loses more is a high-loss trial. Under 1 000 000.
    pub loss_ratio_ppm: u32,
    /// Goal Exceed Ratio: share of the duration sum that high-loss trials may take. Under
    /// 1 000 000.
    pub exceed_ratio_ppm: u32,
    /// Goal Initial Trial Duration: trials begin with this duration. At most the final one.
    pub initial_trial_ns: u64,
    /// Goal Final Trial Duration: trials of this duration or more count in full.
    pub final_trial_ns: u64,
    /// Goal Duration Sum: sum of trial durations that decides a load. At least the final duration.
    pub duration_sum_ns: u64,
    /// Goal Width: relative distance of the bounds that reaches the goal, (upper - lower) / upper.
    /// From 1 to 999 999. Loads are whole numbers: bounds that are one frame/s apart are close
    /// enough for any goal.
    pub width_ppm: u32,
}

/// The driver's next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Make this trial and record it.
    Measure(Trial),
    /// The search has ended.
    Done,
}

/// The result for one goal (RFC 9971, Goal Result).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Relevant lower bound: the highest load known to meet the goal, below the upper bound; `None`
    /// if unknown.
    pub lower: Option<u64>,
    /// Relevant upper bound: the lowest load known not to meet the goal; `None` if unknown.
    pub upper: Option<u64>,
    /// Whether the result is regular, and if not, why.
    pub outcome: Outcome,
    /// Conditional throughput at the lower bound: forwarding rate, in frames/s; 0 without a lower
    /// bound.
    pub conditional_throughput: f64,
    /// Trials made at the lower bound's load.
    pub lower_trials: u32,
    /// Trials made at the upper bound's load.
    pub upper_trials: u32,
}

/// Whether a goal's result is regular (RFC 9971, Goal Results), and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SearchOutcome")]
pub enum Outcome {
    /// Both bounds are known and as close as the goal asks.
    Regular,
    /// Irregular: the highest load meets the goal, so there is no upper bound. The throughput is at
    /// least the lower bound.
    MaxLoadMeets,
    /// Irregular: the lowest load does not meet the goal, so there is no lower bound.
    MinLoadFails,
    /// Irregular: the search is still running, or a limit ended it; the bounds are those found so
    /// far.
    Unfinished,
}

/// A search for throughput, seen by its driver.
///
/// `next` returns a trial, which the driver makes and records, until it returns [`Step::Done`]. A
/// trial that differs from the request (a load that the tester could not set, a trial cut short) is
/// recorded as it was made; the search takes it into account. After the end, further trials may be
/// recorded to confirm a bound: if they contradict it, `next` goes on.
pub trait Searcher {
    /// The next trial, or the end. Asking twice changes nothing.
    fn next(&self) -> Step;

    /// Notes a reserve that a trial shows, even if the trial is not recorded: trials that it can
    /// have carried are no evidence for their load. Call before the trial itself is recorded.
    fn learn(&mut self, trial: Trial, reserve: Reserve);

    /// Records a trial. `took_ns` is its whole time, including drain and set-up; it counts towards
    /// [`Limits::time_ns`] only.
    fn record(&mut self, trial: Trial, counts: Counts, took_ns: u64);

    /// The goals, in the order given.
    fn goals(&self) -> &[Goal];

    /// The result so far for a goal, by its index in [`Searcher::goals`].
    ///
    /// # Panics
    /// When the index is out of range.
    fn bounds(&self, goal: usize) -> Bounds;

    /// Whether a limit ended the search before its goals were reached.
    fn timed_out(&self) -> bool;

    /// Trials recorded so far.
    fn trials(&self) -> u32;

    /// Total time of the recorded trials, in nanoseconds.
    fn took_ns(&self) -> u64;
}

/// A method of searching for throughput. Closed: reports list each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// [`MlrSearch`].
    Mlr,
    /// [`Bisection::rfc2544`].
    Bisection,
    /// [`Bisection::tst009`].
    Tst009,
}

impl Method {
    /// Starts a search between two loads, in frames/s.
    ///
    /// # Errors
    /// When the goals, loads or limits do not fit together, or the method takes one goal and there
    /// are more.
    pub fn start(
        self,
        goals: &[Goal],
        min_load: u64,
        max_load: u64,
        limits: Limits,
    ) -> Result<Box<dyn Searcher + Send>, SearchError> {
        Ok(match self {
            Self::Mlr => Box::new(MlrSearch::new(goals, min_load, max_load, limits)?),
            Self::Bisection => Box::new(Bisection::rfc2544(goals, min_load, max_load, limits)?),
            Self::Tst009 => Box::new(Bisection::tst009(goals, min_load, max_load, limits)?),
        })
    }
}

//! MLRsearch: throughput for several goals in one search (RFC 9971).
//!
//! 1. The first trials locate the search interval: one at the highest load, one at its forwarding
//!    rate, and one at the forwarding rate of that (or a width above, when it passed). They have
//!    the shortest duration that the goals allow.
//! 2. From then on each unmet goal nominates the trial it needs ([`selector`]), and the one at the
//!    lowest load is made: bounds from below are safe, and a loss there matters to all goals above.
//!    Every goal uses every trial.
//! 3. The search ends when no goal needs a trial, or by a limit.
//!
//! RFC 9971 defines bounds and leaves the choice of trials free; the choice here follows the ideas
//! of the authors' implementation.

mod selector;
mod target;

use self::selector::{Range, Selector};
use crate::budget::Budget;
use crate::results::Results;
use crate::{Bounds, Counts, Goal, Limits, Reserve, SearchError, Searcher, Step, Trial};
use crate::{error, width};

/// MLRsearch (RFC 9971): see the [crate] for how it is driven.
#[derive(Debug, Clone)]
pub struct MlrSearch {
    goals: Vec<Goal>,
    range: Range,
    results: Results,
    phase: Phase,
    budget: Budget,
    step: Step,
}

/// The purpose of the next trial.
#[derive(Debug, Clone)]
enum Phase {
    /// The forwarding rate at the highest load.
    Max,
    /// The forwarding rate at that rate.
    Rate(u64),
    /// A load near it, for a first interval.
    Near { rate: u64, near: u64 },
    /// The goals' nominations.
    Select(Vec<Selector>),
}

impl MlrSearch {
    /// Starts a search between two loads, in frames/s. `min_load` should be one that the device
    /// certainly carries, and must put a frame into the shortest trial.
    ///
    /// # Errors
    /// When goals, loads or limits do not fit together.
    pub fn new(
        goals: &[Goal],
        min_load: u64,
        max_load: u64,
        limits: Limits,
    ) -> Result<Self, SearchError> {
        error::check(goals, min_load, max_load, limits)?;
        let mut search = Self {
            goals: goals.to_vec(),
            range: Range {
                min: min_load,
                max: max_load,
            },
            results: Results::default(),
            phase: Phase::Max,
            budget: Budget::new(limits),
            step: Step::Done,
        };
        search.plan();
        Ok(search)
    }

    /// Sets the next step.
    fn plan(&mut self) {
        let plan = match self.phase {
            Phase::Max => Some(self.initial_trial(self.range.max)),
            Phase::Rate(rate) => Some(self.initial_trial(rate)),
            Phase::Near { near, .. } => Some(self.initial_trial(near)),
            Phase::Select(ref mut selectors) => nominate(selectors, &self.results, self.range),
        };
        self.step = self.budget.step(plan);
    }

    /// A trial for all goals' first targets.
    fn initial_trial(&self, load: u64) -> Trial {
        // A shorter trial would not count in full for every goal.
        let longest = self.goals.iter().map(|goal| goal.initial_trial_ns).max();
        Trial {
            load,
            duration_ns: longest.unwrap_or_default(),
        }
    }

    /// Moves to the next phase after a trial.
    fn advance(&mut self, trial: Trial, counts: Counts) {
        // The strictest goal, so that the interval begins at the lowest of all answers.
        let loss_ratio_ppm = self.goals.iter().map(|goal| goal.loss_ratio_ppm).min();
        let loss_ratio_ppm = loss_ratio_ppm.unwrap_or_default();
        let widest = self
            .goals
            .iter()
            .map(|goal| width::step(goal.width_ppm))
            .fold(0.0, f64::max);
        let Range { min, max } = self.range;
        // Not closer to the load just tried than the widest goal can distinguish.
        let under = |load| width::below(trial.load, widest).min(load).max(min);
        self.phase = match self.phase {
            Phase::Max if !counts.is_high_loss(loss_ratio_ppm) || min == max => {
                self.select(None, Some(max))
            }
            Phase::Max => Phase::Rate(under(counts.carried(trial.load, loss_ratio_ppm))),
            Phase::Rate(rate) if counts.is_high_loss(loss_ratio_ppm) => {
                match under(counts.carried(trial.load, loss_ratio_ppm)) {
                    // Already at the lowest load.
                    near if near == rate => self.select(None, Some(rate)),
                    near => Phase::Near { rate, near },
                }
            }
            Phase::Rate(rate) => match width::above(rate, widest) {
                // The highest load is tried, and lost frames.
                near if near >= max => self.select(Some(rate), Some(max)),
                near => Phase::Near { rate, near },
            },
            // Which of the two failed is among the results, which the selectors read.
            Phase::Near { rate, near } => self.select(Some(rate.min(near)), Some(rate.max(near))),
            // The selectors keep their state.
            Phase::Select(_) => return,
        };
    }

    /// Starts the selection of trials by each goal.
    fn select(&self, lower: Option<u64>, upper: Option<u64>) -> Phase {
        let selectors = self
            .goals
            .iter()
            .map(|goal| Selector::new(goal, lower, upper));
        Phase::Select(selectors.collect())
    }
}

impl Searcher for MlrSearch {
    fn next(&self) -> Step {
        self.step
    }

    fn learn(&mut self, trial: Trial, reserve: Reserve) {
        self.results.learn(trial, reserve);
    }

    fn record(&mut self, trial: Trial, counts: Counts, took_ns: u64) {
        self.budget.spend(took_ns);
        self.results.record(trial, counts);
        self.advance(trial, counts);
        self.plan();
    }

    fn goals(&self) -> &[Goal] {
        &self.goals
    }

    fn bounds(&self, goal: usize) -> Bounds {
        let goal = &self.goals[goal];
        self.results
            .bounds(goal, self.range.outcome(self.results.relevant(goal), goal))
    }

    fn timed_out(&self) -> bool {
        self.budget.timed_out
    }

    fn trials(&self) -> u32 {
        self.budget.trials
    }

    fn took_ns(&self) -> u64 {
        self.budget.took_ns
    }
}

/// The nomination with the lowest load and, among those, the longest trial.
///
/// Every goal nominates, since nominating advances a goal to its next target.
fn nominate(selectors: &mut [Selector], results: &Results, range: Range) -> Option<Trial> {
    selectors
        .iter_mut()
        .filter_map(|selector| selector.nominate(results, range))
        // The durations are exchanged, so that the longest is the least.
        .min_by(|one, other| (one.load, other.duration_ns).cmp(&(other.load, one.duration_ns)))
}

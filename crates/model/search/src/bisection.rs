//! Bisection, the baseline: trials of one length, from the highest load down.
//!
//! RFC 2544 §26.1 leaves open how the rate is lowered and raised; halving the interval is the usual
//! way. ETSI GS NFV-TST 009 §12.3.3 adds loss verification: a lossy trial is repeated before it
//! counts. The lowest load is taken to pass until the interval has shrunk to it; then it is tried.

use crate::budget::Budget;
use crate::reserve::Reserves;
use crate::{Bounds, Counts, Goal, Limits, Outcome, Reserve, SearchError, Searcher, Step, Trial};
use crate::{error, width};

/// Bisection for one goal, with trials of its final duration. The goal's initial duration and
/// exceed ratio are not used.
#[derive(Debug, Clone)]
pub struct Bisection {
    goal: [Goal; 1],
    min: u64,
    max: u64,
    /// Trials that must all be lossy for a load to fail; at least 1.
    repeats: u64,
    /// The undecided load and the number of successive lossy trials at it. It may be the lower
    /// bound, which a trial contradicts.
    lossy: Option<(u64, u64)>,
    /// The loads that pass, rising: the last is the lower bound, and the one before takes its place
    /// when trials contradict it.
    passed: Vec<Decided>,
    upper: Option<Decided>,
    reserves: Reserves,
    budget: Budget,
    step: Step,
}

/// A decided load.
#[derive(Debug, Clone, Copy)]
struct Decided {
    load: u64,
    trials: u32,
    /// Of the deciding trial.
    counts: Counts,
}

impl Decided {
    /// Forwarding rate of the deciding trial, in frames/s.
    fn forwarding_rate(self) -> f64 {
        self.load as f64 * self.counts.forwarding_ratio()
    }
}

impl Bisection {
    /// Starts the usual search of RFC 2544 §26.1 between two loads, in frames/s: one trial decides.
    ///
    /// # Errors
    /// When goal, loads or limits do not fit together, or there is more than one goal.
    pub fn rfc2544(
        goals: &[Goal],
        min_load: u64,
        max_load: u64,
        limits: Limits,
    ) -> Result<Self, SearchError> {
        Self::new(goals, min_load, max_load, limits, |_| 1)
    }

    /// Starts a search with loss verification (ETSI GS NFV-TST 009 §12.3.3) between two loads, in
    /// frames/s: a load fails when each of max(r) trials was lossy, and passes with the first trial
    /// that was not.
    ///
    /// max(r) is the goal's duration sum over its final duration. Trials are repeated at any loss
    /// (z is infinite), so that the same goal with max(r) of 2 and an exceed ratio of 50 % is
    /// compatible with [`MlrSearch`](crate::MlrSearch) (RFC 9971, MLRsearch Compliant with TST009).
    ///
    /// # Errors
    /// When goal, loads or limits do not fit together, or there is more than one goal.
    pub fn tst009(
        goals: &[Goal],
        min_load: u64,
        max_load: u64,
        limits: Limits,
    ) -> Result<Self, SearchError> {
        Self::new(goals, min_load, max_load, limits, |goal| {
            goal.duration_sum_ns / goal.final_trial_ns
        })
    }

    fn new(
        goals: &[Goal],
        min: u64,
        max: u64,
        limits: Limits,
        repeats: impl FnOnce(&Goal) -> u64,
    ) -> Result<Self, SearchError> {
        error::check(goals, min, max, limits)?;
        let &[goal] = goals else {
            return Err(SearchError::OneGoal { found: goals.len() });
        };
        let mut search = Self {
            goal: [goal],
            min,
            max,
            repeats: repeats(&goal),
            lossy: None,
            passed: Vec::new(),
            upper: None,
            reserves: Reserves::default(),
            budget: Budget::new(limits),
            step: Step::Done,
        };
        search.plan();
        Ok(search)
    }

    fn plan(&mut self) {
        let duration_ns = self.goal[0].final_trial_ns;
        let plan = self.load().map(|load| Trial { load, duration_ns });
        self.step = self.budget.step(plan);
    }

    /// The load to try; `None` at the end.
    fn load(&self) -> Option<u64> {
        if self.outcome() != Outcome::Unfinished {
            return None;
        }
        if let Some((load, _)) = self.lossy {
            return Some(load);
        }
        let Some(upper) = self.upper else {
            return Some(self.max);
        };
        let lower = self.lower().map_or(self.min, |decided| decided.load);
        if width::is_narrow(lower, upper.load, self.goal[0].width_ppm) {
            // Trying the lowest load settles the outcome.
            return Some(self.min);
        }
        Some(lower.midpoint(upper.load))
    }

    fn lower(&self) -> Option<Decided> {
        self.passed.last().copied()
    }

    fn outcome(&self) -> Outcome {
        match (self.lower(), self.upper) {
            _ if self.lossy.is_some() => Outcome::Unfinished,
            (Some(lower), None) if lower.load >= self.max => Outcome::MaxLoadMeets,
            (None, Some(upper)) if upper.load <= self.min => Outcome::MinLoadFails,
            (Some(lower), Some(upper))
                if width::is_narrow(lower.load, upper.load, self.goal[0].width_ppm) =>
            {
                Outcome::Regular
            }
            _ => Outcome::Unfinished,
        }
    }

    /// Records a trial of full length; a trial that decides nothing new has no effect. One at the
    /// lower bound may contradict it.
    fn decide(&mut self, trial: Trial, counts: Counts) {
        let below_upper = self.upper.is_none_or(|upper| trial.load < upper.load);
        let from_lower = self.lower().is_none_or(|lower| lower.load <= trial.load);
        if !(below_upper && from_lower) {
            return;
        }
        // Only trials at the same load are repeats.
        let before = self.lossy.take().filter(|(load, _)| *load == trial.load);
        let trials = before.map_or(0, |(_, lossy)| lossy) + 1;
        let decided = Decided {
            load: trial.load,
            trials: u32::try_from(trials).unwrap_or(u32::MAX),
            counts,
        };
        if !counts.is_high_loss(self.goal[0].loss_ratio_ppm) {
            // A newer trial at the lower bound replaces it.
            self.passed.retain(|passed| passed.load < trial.load);
            self.passed.push(decided);
        } else if trials >= self.repeats {
            self.upper = Some(decided);
            // Also the lower bound, if it is the load that fails now.
            self.passed.retain(|passed| passed.load < trial.load);
        } else {
            self.lossy = Some((trial.load, trials));
        }
    }
}

impl Searcher for Bisection {
    fn next(&self) -> Step {
        self.step
    }

    fn learn(&mut self, trial: Trial, reserve: Reserve) {
        self.reserves.learn(trial, reserve);
        let [goal] = self.goal;
        // A load that passed by the reserve has not passed.
        self.passed.retain(|passed| {
            let trial = Trial {
                load: passed.load,
                duration_ns: goal.final_trial_ns,
            };
            self.reserves
                .judge(trial, passed.counts, goal.loss_ratio_ppm)
                == passed.counts
        });
    }

    fn record(&mut self, trial: Trial, counts: Counts, took_ns: u64) {
        self.budget.spend(took_ns);
        self.reserves.record(trial, counts);
        let [goal] = self.goal;
        // A trial that was cut short decides nothing.
        if trial.duration_ns >= goal.final_trial_ns {
            let judged = self.reserves.judge(trial, counts, goal.loss_ratio_ppm);
            self.decide(trial, judged);
        }
        self.plan();
    }

    fn goals(&self) -> &[Goal] {
        &self.goal
    }

    fn bounds(&self, goal: usize) -> Bounds {
        assert_eq!(goal, 0, "bisection has one goal");
        let lower = self.lower();
        Bounds {
            lower: lower.map(|decided| decided.load),
            upper: self.upper.map(|decided| decided.load),
            outcome: self.outcome(),
            conditional_throughput: lower.map_or(0.0, Decided::forwarding_rate),
            lower_trials: lower.map_or(0, |decided| decided.trials),
            upper_trials: self.upper.map_or(0, |decided| decided.trials),
        }
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

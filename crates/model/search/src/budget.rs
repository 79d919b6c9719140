//! Limits of a search.

use crate::{Step, Trial};

/// Limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest time for all trials together. A trial starts only if its duration fits the time
    /// left; drains may still exceed the limit.
    pub time_ns: u64,
    /// Maximum number of trials: a device with random results must not prolong a search for ever.
    pub trials: u32,
}

impl Limits {
    /// A limit in time and ten thousand trials.
    #[must_use]
    pub const fn time(time_ns: u64) -> Self {
        Self {
            time_ns,
            trials: 10_000,
        }
    }
}

/// Time and trials that a search has used, with their limits.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limits: Limits,
    pub(crate) took_ns: u64,
    pub(crate) trials: u32,
    /// Whether a limit ended the search.
    pub(crate) timed_out: bool,
}

impl Budget {
    pub(crate) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            took_ns: 0,
            trials: 0,
            timed_out: false,
        }
    }

    pub(crate) const fn spend(&mut self, took_ns: u64) {
        self.took_ns = self.took_ns.saturating_add(took_ns);
        self.trials = self.trials.saturating_add(1);
    }

    /// The step for a planned trial: the trial if it fits, else the end.
    pub(crate) fn step(&mut self, plan: Option<Trial>) -> Step {
        let trial = plan.filter(|trial| self.fits(*trial));
        // Set at each step: a trial recorded after the end may leave nothing to measure.
        self.timed_out = plan.is_some() && trial.is_none();
        trial.map_or(Step::Done, Step::Measure)
    }

    const fn fits(&self, trial: Trial) -> bool {
        self.trials < self.limits.trials
            && self.took_ns.saturating_add(trial.duration_ns) <= self.limits.time_ns
    }
}

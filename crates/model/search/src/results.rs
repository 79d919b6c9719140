//! All trials of a search, by load, and the bounds that they make.

use std::collections::BTreeMap;

use crate::classify::{Class, classify, conditional_throughput, is_full_length};
use crate::reserve::Reserves;
use crate::{Bounds, Counts, Goal, Outcome, Reserve, Trial};

/// Every trial recorded, by load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Results {
    by_load: BTreeMap<u64, Vec<(Trial, Counts)>>,
    reserves: Reserves,
}

/// Relevant bounds (RFC 9971, Relevant Upper Bound and Relevant Lower Bound).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Relevant {
    /// The highest lower bound below `upper`.
    pub(crate) lower: Option<u64>,
    /// The lowest upper bound.
    pub(crate) upper: Option<u64>,
}

impl Relevant {
    /// Whether a trial at a load can move a bound.
    pub(crate) fn leave_open(self, load: u64) -> bool {
        self.lower.is_none_or(|lower| lower < load) && self.upper.is_none_or(|upper| load < upper)
    }
}

impl Results {
    pub(crate) fn learn(&mut self, trial: Trial, reserve: Reserve) {
        self.reserves.learn(trial, reserve);
    }

    pub(crate) fn record(&mut self, trial: Trial, counts: Counts) {
        self.reserves.record(trial, counts);
        self.by_load
            .entry(trial.load)
            .or_default()
            .push((trial, counts));
    }

    fn at(&self, load: u64) -> &[(Trial, Counts)] {
        self.by_load.get(&load).map_or(&[], Vec::as_slice)
    }

    /// The trials at a load as a goal sees them. A full-length trial that a reserve can have
    /// carried shows the sustained rate. A short one is left out, since longer trials must show the
    /// rate without the reserve.
    pub(crate) fn judged(&self, load: u64, goal: &Goal) -> Vec<(Trial, Counts)> {
        let of = |&(trial, counts): &(Trial, Counts)| {
            let judged = self.reserves.judge(trial, counts, goal.loss_ratio_ppm);
            // Counts that the judgement has changed show that a reserve explains the trial.
            (judged == counts || is_full_length(trial, goal)).then_some((trial, judged))
        };
        self.at(load).iter().filter_map(of).collect()
    }

    /// Duration of a trial that counts for a goal at a load: the goal's final duration, or the
    /// longest high-loss trial there if that is longer.
    pub(crate) fn deciding_ns(&self, load: u64, goal: &Goal) -> u64 {
        let against = self.judged(load, goal).into_iter();
        let against = against.filter(|(_, counts)| counts.is_high_loss(goal.loss_ratio_ppm));
        let longest = against.map(|(trial, _)| trial.duration_ns).max();
        longest.unwrap_or(0).max(goal.final_trial_ns)
    }

    /// The relevant bounds for a goal. A load that passes above one that fails is ignored: loss
    /// inversion is resolved to the lower number.
    pub(crate) fn relevant(&self, goal: &Goal) -> Relevant {
        let mut relevant = Relevant::default();
        // In ascending order: the first upper bound is the lowest one.
        for &load in self.by_load.keys() {
            match classify(&self.judged(load, goal), goal) {
                Class::LowerBound => relevant.lower = Some(load),
                Class::UpperBound => {
                    relevant.upper = Some(load);
                    break;
                }
                Class::Undecided => {}
            }
        }
        relevant
    }

    /// The relevant bounds with their outcome, throughput and trial counts.
    pub(crate) fn bounds(&self, goal: &Goal, outcome: Outcome) -> Bounds {
        let Relevant { lower, upper } = self.relevant(goal);
        let trials = |load: Option<u64>| {
            load.map_or(0, |load| {
                u32::try_from(self.at(load).len()).unwrap_or(u32::MAX)
            })
        };
        Bounds {
            lower,
            upper,
            outcome,
            conditional_throughput: lower.map_or(0.0, |load| {
                conditional_throughput(load, &self.judged(load, goal), goal)
            }),
            lower_trials: trials(lower),
            upper_trials: trials(upper),
        }
    }
}

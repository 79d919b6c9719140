//! Selection of the next trial for a goal.
//!
//! A selector goes through its goal's targets. For each, in this order:
//!
//! 1. *Halve*: the middle of the previous target's final interval, when the width requires it.
//! 2. *Refine*: the ends of that interval, the lower one first. If both hold, the target is
//!    reached.
//! 3. *Extend*: when one bound is missing, or is far off while the limit is just outside that
//!    interval: a step outwards from the other bound, longer after each miss. The first step down
//!    goes as far as the forwarding rate suggests, when that is farther, and restarts the target
//!    there.
//! 4. *Bisect*: between both bounds.

use super::target::targets;
use crate::results::{Relevant, Results};
use crate::{Goal, Outcome, Trial, width};

/// Growth of a step outwards after one that missed. Two is usual; four takes fewer trials if the
/// limit is far off, and the same number if it is near (simulated).
const GROWTH: f64 = 4.0;

/// The range of loads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    /// Lowest.
    pub(super) min: u64,
    /// Highest.
    pub(super) max: u64,
}

impl Range {
    /// The outcome for a goal's relevant bounds.
    pub(super) fn outcome(self, relevant: Relevant, goal: &Goal) -> Outcome {
        match (relevant.lower, relevant.upper) {
            (Some(lower), None) if lower >= self.max => Outcome::MaxLoadMeets,
            // No lower bound can be below the lowest load.
            (_, Some(upper)) if upper <= self.min => Outcome::MinLoadFails,
            (Some(lower), Some(upper)) if width::is_narrow(lower, upper, goal.width_ppm) => {
                Outcome::Regular
            }
            _ => Outcome::Unfinished,
        }
    }
}

/// The selector of one goal.
#[derive(Debug, Clone)]
pub(super) struct Selector {
    targets: Vec<Goal>,
    current: usize,
    /// The initial interval, from the previous target or the first trials.
    hint: Relevant,
    /// Length of the next step outwards, on the logarithmic scale.
    step: f64,
    /// The last step outwards, while its load is undecided.
    extension: Option<Extension>,
    /// Whether a forwarding rate has moved this target's interval. It may do so once: a device with
    /// gradually growing loss would otherwise move it for ever.
    moved: bool,
}

#[derive(Debug, Clone, Copy)]
enum Extension {
    Up(u64),
    Down(u64),
}

impl Selector {
    pub(super) fn new(goal: &Goal, lower: Option<u64>, upper: Option<u64>) -> Self {
        let mut selector = Self {
            targets: targets(goal),
            current: 0,
            hint: Relevant::default(),
            step: 0.0,
            extension: None,
            moved: false,
        };
        selector.begin(Relevant { lower, upper });
        selector
    }

    /// The next trial for the goal; `None` when the goal is reached, or cannot be.
    pub(super) fn nominate(&mut self, results: &Results, range: Range) -> Option<Trial> {
        loop {
            let target = self.targets[self.current];
            let relevant = results.relevant(&target);
            // Only now: trials of other goals may have decided its load as well.
            self.settle_extension(relevant);
            if range.outcome(relevant, &target) == Outcome::Unfinished {
                let load = self.choose(relevant, &target, results, range);
                return Some(Trial {
                    load,
                    duration_ns: results.deciding_ns(load, &target),
                });
            }
            // The last target is the goal itself.
            if self.current + 1 == self.targets.len() {
                return None;
            }
            self.current += 1;
            self.moved = false;
            self.begin(relevant);
        }
    }

    /// Starts the current target with an interval.
    fn begin(&mut self, hint: Relevant) {
        self.hint = hint;
        self.extension = None;
        let least = width::step(self.targets[self.current].width_ppm);
        self.step = match hint {
            Relevant {
                lower: Some(lower),
                upper: Some(upper),
            } => width::distance(lower, upper).max(least),
            _ => least,
        };
    }

    /// Lengthens the step when the last one outwards only moved the bound that it started from.
    fn settle_extension(&mut self, relevant: Relevant) {
        let missed = match self.extension {
            Some(Extension::Up(load)) => relevant.lower == Some(load),
            Some(Extension::Down(load)) => relevant.upper == Some(load),
            None => false,
        };
        if missed {
            self.step *= GROWTH;
            self.extension = None;
        }
    }

    /// Returns a load strictly between the bounds. One bound may be missing.
    fn choose(
        &mut self,
        relevant: Relevant,
        target: &Goal,
        results: &Results,
        range: Range,
    ) -> u64 {
        // A load outside the bounds is decided: another trial there would change nothing.
        let open = |load: &u64| relevant.leave_open(*load);
        if let Some(load) = self.halving(target).filter(open) {
            return load;
        }
        if let Some(load) = self
            .hint
            .lower
            .filter(open)
            .or(self.hint.upper.filter(open))
        {
            return load;
        }
        if let Some(load) = self.forwarded(relevant, target, results, range) {
            return load;
        }
        let (load, extension) = match (relevant.lower, relevant.upper) {
            (Some(lower), Some(upper)) => self.inside(lower, upper, target),
            (Some(lower), None) => self.up(lower, target, range),
            (None, Some(upper)) => self.down(upper, target, range),
            // Nothing is known yet, or a reserve has taken the evidence away.
            (None, None) => (range.max, None),
        };
        self.extension = extension;
        load
    }

    /// The load that the upper bound's trials carried, when the initial interval is above it and a
    /// step down would not reach it; the interval moves there.
    fn forwarded(
        &mut self,
        relevant: Relevant,
        target: &Goal,
        results: &Results,
        range: Range,
    ) -> Option<u64> {
        let upper = relevant
            .upper
            .filter(|&upper| upper <= self.hint.lower.unwrap_or(upper))?;
        let (trial, counts) = results.judged(upper, target).pop()?;
        let load = counts
            .carried(trial.load, target.loss_ratio_ppm)
            .max(range.min);
        if self.moved || load >= width::below(upper, self.step) || !relevant.leave_open(load) {
            return None;
        }
        self.moved = true;
        // As narrow as the target asks: if both ends hold, it is reached.
        let above = width::above(load, width::step(target.width_ppm)).min(upper);
        self.begin(Relevant {
            lower: Some(load),
            upper: Some(above),
        });
        Some(load)
    }

    /// The middle of the initial interval, if that splits it into two narrow ones.
    fn halving(&self, target: &Goal) -> Option<u64> {
        let (lower, upper) = (self.hint.lower?, self.hint.upper?);
        let halves = !width::is_narrow(lower, upper, target.width_ppm)
            && width::is_narrow(lower, upper, width::doubled(target.width_ppm));
        halves.then(|| width::split(lower, upper, target.width_ppm))
    }

    fn up(&self, lower: u64, target: &Goal, range: Range) -> (u64, Option<Extension>) {
        let load = width::above(lower, self.step);
        // The target does not distinguish this load from the end.
        if load >= range.max || width::is_narrow(load, range.max, target.width_ppm) {
            return (range.max, None);
        }
        (load, Some(Extension::Up(load)))
    }

    fn down(&self, upper: u64, target: &Goal, range: Range) -> (u64, Option<Extension>) {
        let load = width::below(upper, self.step);
        if load <= range.min || width::is_narrow(range.min, load, target.width_ppm) {
            return (range.min, None);
        }
        (load, Some(Extension::Down(load)))
    }

    /// Between two bounds: the middle, unless one of them is far off by chance (another goal's, or
    /// the highest load) and the initial interval is near the other. Then a step from there.
    fn inside(&self, lower: u64, upper: u64, target: &Goal) -> (u64, Option<Extension>) {
        let middle = width::split(lower, upper, target.width_ppm);
        let up = width::above(lower, self.step);
        if self.hint.upper.is_some_and(|hint| hint <= lower) && up < middle {
            return (up, Some(Extension::Up(up)));
        }
        let down = width::below(upper, self.step);
        if self.hint.lower.is_some_and(|hint| upper <= hint) && middle < down {
            return (down, Some(Extension::Down(down)));
        }
        (middle, None)
    }
}

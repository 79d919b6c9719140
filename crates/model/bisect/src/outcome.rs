//! Results of a bisection.

use crate::Estimate;
use std::ops::RangeInclusive;

/// The result of a bisection.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The ends do not differ by the size searched for.
    NoChange(Estimate),
    /// The bad end is better than the good end: they are swapped, or the change is the opposite
    /// one.
    Swapped(Estimate),
    /// The change was found.
    Found(Box<LocatedChange>),
    /// The change was not found.
    Undecided {
        /// Why.
        why: Undecided,
        /// The candidates that may have it; `None` if not even the ends are known to differ.
        suspects: Option<RangeInclusive<usize>>,
        /// The bad end against the good end.
        total: Estimate,
    },
}

/// Why a bisection ended undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecided {
    /// The limit on pairs was reached.
    Limit,
    /// Some candidate is neither changed nor unchanged, or has too little of the change: it is
    /// spread over several candidates, or smaller than the size searched for.
    Spread,
}

/// A confirmed result.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedChange {
    /// The first candidate that may have changed the figure.
    pub first: usize,
    /// The last one. Equal to the first, unless candidates were skipped that would distinguish
    /// them.
    pub last: usize,
    /// The last one against the candidate before the first one, by new pairs.
    pub change: Estimate,
    /// The probability that the first change is among these candidates, if there is one change.
    pub probability: f64,
    /// The bad end against the good end.
    pub total: Estimate,
    /// The candidates before these.
    pub before: Rest,
    /// The candidates after these.
    pub after: Rest,
}

/// Whether the candidates on one side of a result have another change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rest {
    /// There is no candidate on that side.
    Adjacent,
    /// Both ends of that side do not differ by the size searched for.
    Excluded(Estimate),
    /// They differ.
    Change(Estimate),
    /// Not decided yet, or not within the limit on pairs.
    Undecided,
}

impl LocatedChange {
    /// Whether another change was found.
    #[must_use]
    pub const fn several(&self) -> bool {
        matches!(self.before, Rest::Change(_)) || matches!(self.after, Rest::Change(_))
    }
}

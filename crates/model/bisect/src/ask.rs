//! What a bisection is asked, what it asks for, and records of the answers.

use crate::{BisectError, Outcome};
use serde::{Deserialize, Serialize};

/// Most candidates.
const CANDIDATES_MAX: usize = 1 << 20;

/// The direction of the change that is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The figure drops, such as a rate.
    Drop,
    /// It rises, such as a delay.
    Rise,
}

/// The parameters of a bisection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Number of candidates, with the good end first and the bad end last.
    pub candidates: usize,
    /// The direction of the change.
    pub change: Change,
    /// Size of the smallest change that must be found, in parts per million of the good figure:
    /// 20 000 for 2 %. Smaller changes may be found or not.
    pub size_ppm: u32,
    /// Pairs of each [`Ask`].
    pub batch: u32,
    /// Most pairs before the bisection ends undecided.
    pub pairs_max: u32,
    /// Seed of the pairs' order.
    pub seed: u64,
}

/// The purpose of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Do the ends differ?
    Ends,
    /// Is the candidate changed?
    Search,
    /// Does the change appear between these two?
    Confirm,
    /// Is there another change before it?
    Before,
    /// Is there another change after it?
    After,
}

/// Which of a pair is measured first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The candidate, then the reference.
    CandidateFirst,
    /// The reference, then the candidate.
    ReferenceFirst,
}

/// Pairs to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What for.
    pub test: Test,
    /// Index of the candidate.
    pub candidate: usize,
    /// Index of the candidate that it is compared with.
    pub reference: usize,
    /// The pairs, by their order. It is drawn at random: this makes the errors independent of
    /// drift and outliers, so it must be kept.
    pub pairs: Vec<Order>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Measure these pairs.
    Measure(Ask),
    /// The bisection has ended.
    Done(Box<Outcome>),
}

/// The logarithm of a ratio of two figures, in units of 1e-9: a whole number, so that a stored
/// one is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogRatio(i64);

/// A record of a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "entry")]
pub enum Entry {
    /// Pairs were measured.
    Pairs {
        /// Index of the candidate.
        candidate: usize,
        /// Index of the reference.
        reference: usize,
        /// The candidate's figure divided by the reference's, of each pair.
        log_ratios_e9: Vec<LogRatio>,
    },
    /// A candidate cannot be measured.
    Skipped {
        /// Index of the candidate.
        candidate: usize,
    },
}

impl LogRatio {
    /// The ratio of a pair of figures.
    ///
    /// # Errors
    ///
    /// A figure is 0, negative or not finite, or the ratio is beyond a factor of a billion.
    pub fn of(candidate: f64, reference: f64) -> Result<Self, BisectError> {
        let nano = (candidate / reference).ln() * 1e9;
        // ln 1e9 is 20.7: in this range an `i64` and an `f64` have every whole number.
        let in_range = nano.is_finite() && nano.abs() < 2.1e10;
        // Each sign by itself: two negative figures have a finite logarithm.
        if candidate > 0.0 && reference > 0.0 && in_range {
            Ok(Self(nano.round() as i64))
        } else {
            Err(BisectError::Figure {
                candidate: candidate.to_string(),
                reference: reference.to_string(),
            })
        }
    }

    /// The ratio.
    #[must_use]
    pub fn ratio(self) -> f64 {
        self.value().exp()
    }

    pub(crate) fn value(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Config {
    /// A bisection over some candidates, for a change of some size, with the other parameters at
    /// their defaults: batches of 2 pairs, and at most 2000 pairs.
    #[must_use]
    pub const fn new(candidates: usize, change: Change, size_ppm: u32) -> Self {
        Self {
            candidates,
            change,
            size_ppm,
            batch: 2,
            pairs_max: 2000,
            seed: 0,
        }
    }

    /// The bad end.
    pub(crate) const fn last(&self) -> usize {
        self.candidates - 1
    }

    /// 1 if a loss is a falling figure, else −1.
    pub(crate) const fn sign(&self) -> f64 {
        match self.change {
            Change::Drop => 1.0,
            Change::Rise => -1.0,
        }
    }

    /// Checks all parameters.
    pub(crate) fn check(&self) -> Result<(), BisectError> {
        if !(2..=CANDIDATES_MAX).contains(&self.candidates) {
            let found = self.candidates;
            return Err(BisectError::Candidates { found });
        }
        // The upper limit keeps the ratio of a drop above 0: a drop of 100 % has no logarithm.
        if !(100..=900_000).contains(&self.size_ppm) {
            let ppm = self.size_ppm;
            return Err(BisectError::Size { ppm });
        }
        if !(1..=100).contains(&self.batch) || self.pairs_max < 50 {
            let (batch, limit) = (self.batch, self.pairs_max);
            return Err(BisectError::Pairs { batch, limit });
        }
        Ok(())
    }
}

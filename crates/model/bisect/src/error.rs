//! Errors of a bisection.

/// An error in the parameters of a bisection, or in its record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BisectError {
    /// There is nothing between, and no bad end.
    #[error("{found} candidates; give at least two, the good one first and the bad one last")]
    Candidates {
        /// Candidates given.
        found: usize,
    },
    /// The size of the change is out of range.
    #[error(
        "a change of {ppm} ppm cannot be searched for; it must be from 100 ppm (0.01 %) to \
         900000 ppm (90 %)"
    )]
    Size {
        /// Its size.
        ppm: u32,
    },
    /// A batch without pairs, or a limit that no test fits.
    #[error(
        "a batch of {batch} pairs with a limit of {limit}; a batch is 1 to 100, the limit 50 or \
         more"
    )]
    Pairs {
        /// Pairs of a batch.
        batch: u32,
        /// Highest number of pairs.
        limit: u32,
    },
    /// A figure without a logarithm.
    #[error(
        "a figure of {candidate} against {reference} is no ratio; both must be over 0 and finite: \
         record only pairs of valid figures"
    )]
    Figure {
        /// The candidate's figure, as text.
        candidate: String,
        /// The reference's.
        reference: String,
    },
    /// A record of more pairs than asked, or of none.
    #[error("{found} pairs recorded; {asked} were asked for, and at least one must be recorded")]
    NotAsked {
        /// Pairs recorded.
        found: usize,
        /// Pairs asked for.
        asked: usize,
    },
    /// The bisection has ended.
    #[error("the bisection has ended and asks for nothing more")]
    Ended,
    /// An end was to be skipped.
    #[error(
        "the {0} end cannot be skipped, since everything is compared with it; choose another \
         revision that builds"
    )]
    EndSkipped(&'static str),
    /// A candidate that is not part of what was asked.
    #[error("candidate {candidate} was not asked for; skip one of the two that are")]
    SkippedOther {
        /// The candidate.
        candidate: usize,
    },
    /// A record that this bisection did not ask for.
    #[error(
        "entry {entry} of the record is about candidates {found:?}, but {asked}; it belongs to \
         another bisection or another version of the program: begin again"
    )]
    Replay {
        /// Number of the entry, from 1.
        entry: usize,
        /// Candidate and reference of the entry.
        found: (usize, usize),
        /// What this bisection asks for at that point.
        asked: String,
    },
}

//! Noisy bisection: which of many ordered versions changed a figure. Pure: no I/O, no clock,
//! independent of how figures are measured.
//!
//! ```text
//! step() ─► Step::Measure(Ask) ─► interleaved pairs ─► record(ratios) ─► step()
//!       │                                         └► skip(candidate) ─┘
//!       └► Step::Done(Outcome)
//! ```
//!
//! Candidate 0 is known to be good, the last one bad. Each measurement is a pair: candidate and
//! reference one directly after the other, in an order that the bisection draws. Only their ratio
//! counts, so drift of the machine cancels.
//!
//! | Test | Candidate | Reference | Ends at |
//! | --- | --- | --- | --- |
//! | [`Test::Ends`] | bad | good | a change, none of the size searched for, or the opposite one |
//! | [`Test::Search`] | the most informative one | good | 99 % for *changed* or *unchanged* |
//! | [`Test::Confirm`] | the first changed one | the one before | a change, at an error of 2 % |
//! | [`Test::Before`] | the one before | good | another change, or none of the size searched for |
//! | [`Test::After`] | bad | the first changed one | the same |
//!
//! A wrong turn of the search is not final: all pairs weigh in one posterior, which leads back to
//! the candidate with the weakest evidence. And it accuses no candidate, since new pairs confirm
//! each result, at an error that depends on no model (`evidence.rs`).
//!
//! The state follows from parameters and [entries](Bisection::entries):
//! [`Bisection::resume`] continues from those that a caller stored. [`simulate`] has versions of
//! known truth; `examples/power.rs` makes the table in `docs/bisect.md`.
//!
//! Deliberately not done: several changes are noticed and not separated. Bisect again between the
//! named candidates.

#![forbid(unsafe_code)]

/// The example in `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod ask;
mod bisection;
mod error;
mod estimate;
mod evidence;
mod outcome;
mod posterior;
mod random;
pub mod simulate;

pub use ask::{Ask, Change, Config, Entry, LogRatio, Order, Step, Test};
pub use bisection::Bisection;
pub use error::BisectError;
pub use estimate::Estimate;
pub use outcome::{LocatedChange, Outcome, Rest, Undecided};

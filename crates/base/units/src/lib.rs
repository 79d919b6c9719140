//! Rates by layer, sizes, durations and ratios: parse and print.
//!
//! A quantity in a file is a number and a unit, `10 Gbit/s`, `64 B`, `30 s`; a number alone is a
//! mistake, and [`ParseError::help`] shows how it is written. There are two ways to print:
//!
//! - `Display` is exact: parsing what it prints gives the same value. For files, commands and
//!   identifiers.
//! - [`human`] rounds to three or four significant digits. For tables, logs and people.
//!
//! `docs/units.md` is the reference. Nothing here depends on locale or machine, does I/O or
//! allocates more than its output.

#![forbid(unsafe_code)]

/// The example in `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod decimal;
mod error;
pub mod human;
mod quantity;
mod rate;
mod ratio;
mod size;
pub mod time;

pub use error::{ErrorKind, ParseError};
pub use rate::{BitRate, FrameRate, Layer};
pub use ratio::Ratio;
pub use size::{Bytes, frame_constants};

//! What to measure.

use dispatch::{CpuChoice, Direction};
use std::time::Duration;
use wire::Suite;

/// A requested measurement.
#[derive(Debug)]
pub struct Request<'a> {
    /// The suites. Of several, those that the engine lacks are skipped.
    pub suites: &'a [Suite],
    /// One engine, or all that work here.
    pub engines: &'a CpuChoice,
    /// Lengths of the inner packets in bytes.
    pub sizes: &'a [u16],
    /// Directions of rates.
    pub directions: &'a [Direction],
    /// Packets in a batch.
    pub batch: u16,
    /// Time of each figure.
    pub duration: Duration,
    /// The cores: one for curves and for the first of each rate, all for the second if they are
    /// several.
    pub cores: &'a [usize],
    /// Whether curves are measured instead of rates.
    pub curves: bool,
    /// Version of this program.
    pub version: &'a str,
    /// The command that asks for it.
    pub command: String,
}

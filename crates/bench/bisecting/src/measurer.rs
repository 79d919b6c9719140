//! The boundary between a bisection and the bench.

use crate::BisectingError;
use journal::record::TrialRecord;
use stats::Quantity;
use std::path::PathBuf;
use std::time::Duration;

/// A version as it is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A program, in place of the one of the device.
    Program(PathBuf),
    /// The DUT of the campaign with this name, which has the settings of the version.
    Dut(String),
}

/// Measures versions.
pub trait Measurer {
    /// Makes one trial of a version.
    ///
    /// # Errors
    /// When nothing can be measured any more, or the user interrupted the trial. Faults of one
    /// trial are in its result.
    fn measure(&mut self, subject: &Subject) -> Result<Measured, BisectingError>;

    /// How long to wait after so many trials in a row that other work spoilt.
    fn pause_after(&self, _spoilt: u32) -> Duration {
        Duration::ZERO
    }
}

/// The result of a trial.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The quantity and the figure, over 0, or the reason for a missing one.
    pub figure: Result<(Quantity, f64), Fault>,
    /// The record with its evidence.
    pub trial: Option<Box<TrialRecord>>,
}

/// Why a trial has no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The version may be the cause: it does not start, or evidence speaks against the figure.
    Version(String),
    /// Other work took the machine.
    Machine(String),
}

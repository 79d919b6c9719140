//! Errors of a bisection on the bench.

use bisect::BisectError;
use journal::JournalError;
use session::SessionError;
use stats::GateError;
use std::io;
use std::path::PathBuf;
use testbed::LabError;

/// Error of a bisection on the bench.
#[derive(Debug, thiserror::Error)]
pub enum BisectingError {
    /// The campaign, the lab or a run.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The journal of the bisection, or of a run in it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The gate is none, or none about versions.
    #[error("{0}")]
    Gate(#[from] GateError),
    /// A mistake in the request: the command line, the repository, a program.
    #[error("{problem}\nhelp: {help}")]
    Mistake {
        /// The mistake and its place.
        problem: String,
        /// The remedy.
        help: String,
    },
    /// A parameter of the statistics.
    #[error("{0}")]
    Parameter(BisectError),
    /// A file or program of this machine.
    #[error("cannot {action} {}: {error}\nhelp: {help}", path.display())]
    Io {
        /// The action, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
        /// The remedy.
        help: &'static str,
    },
    /// One end cannot be built or measured, so nothing can be compared.
    #[error("the {end} end, {version}, {problem}\nhelp: {help}")]
    End {
        /// `good` or `bad`.
        end: &'static str,
        /// Its name.
        version: String,
        /// The problem, with the end of its output.
        problem: String,
        /// The remedy.
        help: String,
    },
    /// It broke off, and can be resumed.
    #[error("{reason}\nhelp: answers are kept; to continue: cipherbench bisect --resume {}", dir.display())]
    BrokeOff {
        /// Why.
        reason: String,
        /// Folder of the bisection.
        dir: PathBuf,
    },
}

impl BisectingError {
    pub(crate) fn mistake(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Mistake {
            problem: problem.into(),
            help: help.into(),
        }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self::Io {
            action,
            path: path.into(),
            error,
            help: "check the path, its owner and the disk",
        }
    }
}

impl From<BisectError> for BisectingError {
    fn from(error: BisectError) -> Self {
        match error {
            BisectError::Size { .. } => Self::mistake(
                "the change in the gate is too small or too large to be searched for",
                "write a change from 0.01 % to 90 %, such as `drops > 2 %`",
            ),
            BisectError::Pairs { .. } => Self::mistake(
                "fewer than 50 pairs decide nothing",
                "allow more with `--pairs`; the default is 2000",
            ),
            error => Self::Parameter(error),
        }
    }
}

impl From<LabError> for BisectingError {
    fn from(error: LabError) -> Self {
        Self::Session(error.into())
    }
}

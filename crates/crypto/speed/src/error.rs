//! Errors of a measurement.

use engine::{EngineError, EngineFailed};
use nix::errno::Errno;

/// Error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum SpeedError {
    /// The engine cannot be used.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine failed while it was measured.
    #[error(transparent)]
    Failed(#[from] EngineFailed),
    /// No engine has any of the suites.
    #[error("no suite can be measured with engine {0}")]
    Nothing(String),
    /// The cores of this process are unknown.
    #[error("cannot read the cores: {0}")]
    Cores(Errno),
    /// Each thread needs a core.
    #[error(
        "{threads} threads are more than the {cores} cores here\nhelp: each thread is measured on a core of its own"
    )]
    TooFewCores {
        /// The requested threads.
        threads: usize,
        /// The cores that this process may use.
        cores: usize,
    },
    /// A thread does not stay on its core.
    #[error("cannot pin a thread to core {core}: {error}")]
    Pin {
        /// The core.
        core: usize,
        /// The reason.
        error: Errno,
    },
}

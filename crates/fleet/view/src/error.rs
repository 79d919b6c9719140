//! Errors of views.

use fleet::FleetError;
use journal::JournalError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Error of a view.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The fleet does not answer, or refuses.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The run has no readable journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The fleet has no such job.
    #[error(
        "the fleet has no job {0}\nhelp: `cipherbench fleet status --all` lists jobs and their state"
    )]
    UnknownJob(String),
    /// No run has such a cell.
    #[error(
        "no run of the fleet has a cell {0}\nhelp: `cipherbench fleet history` lists the cells"
    )]
    UnknownCell(String),
    /// The user has no folder for a cache.
    #[error(
        "there is no folder for runs of the fleet\nhelp: set XDG_CACHE_HOME or HOME, or use `cipherbench fleet fetch`"
    )]
    NoCache,
    /// The cache cannot be used.
    #[error(
        "cannot {action} {path}: {error}\nhelp: set XDG_CACHE_HOME to a folder that you may write",
        path = path.display()
    )]
    Cache {
        /// The failed action.
        action: &'static str,
        /// Its file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The address of the pages cannot be used.
    #[error("cannot listen on {address}: {error}\nhelp: take another address: --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
}

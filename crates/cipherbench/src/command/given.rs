//! Runs as commands take them: a folder, or `fleet:JOB` of the fleet at $CIPHERBENCH_FLEET.

#[cfg(feature = "fleet")]
use super::fleet;
use crate::exit::Failure;
use journal::Journal;
use std::path::{Path, PathBuf};

/// The journal of a run.
pub(crate) fn journal_of(run: &Path) -> Result<Journal, Failure> {
    Ok(journal::read(&folder_of(run)?)?)
}

/// The folder of a run: the given one, or for `fleet:JOB` the folder in the cache.
pub(crate) fn folder_of(run: &Path) -> Result<PathBuf, Failure> {
    let job = run.to_str().and_then(|run| run.strip_prefix("fleet:"));
    match job {
        // A folder of that name has precedence, so that every run can be named.
        #[cfg(feature = "fleet")]
        Some(job) if !run.exists() => fleet::cached(job),
        #[cfg(not(feature = "fleet"))]
        Some(_) if !run.exists() => Err(Failure::without("fleet")),
        _ => Ok(run.to_owned()),
    }
}

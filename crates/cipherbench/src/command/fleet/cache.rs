//! Runs of the archive in the user's cache.

use super::{failure, unknown};
use crate::cli::DEFAULT_URL;
use crate::exit::{Exit, Failure};
use fleet::{Access, Fleet, fetch};
use journal::Journal;
use std::fs;
use std::path::{Path, PathBuf};

/// The journal of a run: a folder, or `fleet:JOB` of the fleet at $CIPHERBENCH_FLEET.
pub(crate) fn journal_of(run: &Path) -> Result<Journal, Failure> {
    Ok(journal::read(&folder_of(run)?)?)
}

/// The folder of a run: itself, or for `fleet:JOB` that of the cache.
pub(crate) fn folder_of(run: &Path) -> Result<PathBuf, Failure> {
    let job = run.to_str().and_then(|run| run.strip_prefix("fleet:"));
    match job {
        Some(job) if !run.exists() => {
            let access = Access {
                url: set("CIPHERBENCH_FLEET").map_or_else(
                    || DEFAULT_URL.to_owned(),
                    |url| url.to_string_lossy().into_owned(),
                ),
                key: set("CIPHERBENCH_FLEET_KEY").map(PathBuf::from),
                ca: set("CIPHERBENCH_FLEET_CA").map(PathBuf::from),
            };
            cached(&access, job)
        }
        _ => Ok(run.to_owned()),
    }
}

fn set(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The folder of an archived run, in the user's cache once it was fetched.
pub(super) fn cached(access: &Access, job: &str) -> Result<PathBuf, Failure> {
    let cache = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
    let Some(cache) = cache else {
        let text = "there is no folder for runs of the fleet\nhelp: set XDG_CACHE_HOME or HOME, or use `cipherbench fleet fetch`";
        return Err(Failure::new(Exit::Usage, text));
    };
    if !fleet::is_id(job) {
        return Err(unknown(&job.escape_debug().to_string()));
    }
    let servers: String = access
        .url
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let folder = cache.join("cipherbench/fleet").join(servers).join(job);
    // A run that is there is whole, and does not change any more.
    let find = || {
        let found = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut runs = found.map(|entry| entry.path());
        runs.find(|run| run.join(journal::FILE_NAME).is_file())
    };
    if let Some(run) = find() {
        return Ok(run);
    }
    let fetched = fleet::run(async { fetch(&Fleet::connect(access).await?, job, &folder).await });
    match (fetched, find()) {
        (Ok(Some(run)), _) => Ok(run),
        (Ok(None), _) => Err(unknown(job)),
        // Another program was faster.
        (Err(_), Some(run)) => Ok(run),
        (Err(error), None) => Err(failure(error)),
    }
}

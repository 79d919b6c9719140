//! Runs of the archive in the user's cache.

use super::{failure, unknown};
use crate::cli::DEFAULT_URL;
use crate::exit::{Exit, Failure};
use fleet::{Access, Fleet, fetch};
use guard::{Component, visible};
use journal::Journal;
use std::fs::{self, DirBuilder, DirEntry};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Runs of one server that are kept before another one is fetched.
const CACHE_BYTES_MAX: u64 = 4 << 30;

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
    let Some(name) = Component::new(job).ok().filter(|_| fleet::is_id(job)) else {
        return Err(unknown(&visible(job)));
    };
    let of_server = cache.join("cipherbench/fleet").join(access.folder_name());
    let folder = of_server.join(name);
    // A run that is there is whole, and does not change any more. One that is being fetched is
    // hidden.
    let find = || {
        let found = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut runs = found
            .filter(|entry| !is_hidden(entry))
            .map(|entry| entry.path());
        runs.find(|run| run.join(journal::FILE_NAME).is_file())
    };
    if let Some(run) = find() {
        return Ok(run);
    }
    let private = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&of_server);
    private.map_err(|error| {
        let text = format!(
            "cannot make {}: {error}\nhelp: set XDG_CACHE_HOME to a folder that you may write",
            of_server.display()
        );
        Failure::new(Exit::Usage, text)
    })?;
    prune(&of_server, CACHE_BYTES_MAX);
    let fetched = fleet::run(async { fetch(&Fleet::connect(access).await?, job, &folder).await });
    match (fetched, find()) {
        (Ok(Some(run)), _) => Ok(run),
        (Ok(None), _) => Err(unknown(job)),
        // Another program was faster.
        (Err(_), Some(run)) => Ok(run),
        (Err(error), None) => Err(failure(error)),
    }
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// Removes the runs that were fetched longest ago until the others have at most so many bytes.
/// Best effort: what another program holds or removes stays or is gone.
fn prune(of_server: &Path, bytes_max: u64) {
    let found = fs::read_dir(of_server).into_iter().flatten().flatten();
    let mut runs: Vec<(SystemTime, u64, PathBuf)> = found
        .filter_map(|entry| {
            let fetched_at = entry.metadata().ok()?.modified().ok()?;
            Some((fetched_at, bytes_in(&entry.path()), entry.path()))
        })
        .collect();
    runs.sort();
    let mut bytes: u64 = runs.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, of_run, path) in runs {
        if bytes <= bytes_max {
            break;
        }
        bytes -= of_run;
        // Another program sees the whole run or none.
        let Some(name) = path.file_name() else {
            continue;
        };
        let going = of_server.join(format!(".going-{}", name.to_string_lossy()));
        if fs::rename(&path, &going).is_ok() {
            let _ = fs::remove_dir_all(&going);
        }
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_in(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_runs_that_were_fetched_longest_ago_leave_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        for (number, job) in ["c", "a", "b"].iter().enumerate() {
            let run = folder.path().join(job).join("run");
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join("journal.jsonl"), [0; 100]).unwrap();
            let fetched_at = SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64);
            let job = fs::File::open(folder.path().join(job)).unwrap();
            job.set_modified(fetched_at).unwrap();
        }
        prune(folder.path(), 200);
        let left = || {
            let found = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = found.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(left(), ["a", "b"]);
        prune(folder.path(), 0);
        assert!(left().is_empty());
    }
}

//! Runs of the archive in the user's cache.

use crate::error::ViewError;
use fleet::{Access, Fleet, FleetError, Manifest, RunFile, fetch_if};
use guard::{Component, visible};
use std::fs::{self, DirBuilder, DirEntry, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Runs of one server that are kept, with one that is being fetched.
const CACHE_BYTES_MAX: u64 = 4 << 30;
/// Space of a file's or folder's entry, at most, on most disks; content takes whole blocks in
/// addition. So runs of many empty files are also bounded.
const ENTRY_BYTES: u64 = 4096;
/// One fetches at a time: two would not see each other's bytes.
const LOCK: &str = ".lock";

fn set(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the folder of an archived run, in the user's cache once it was fetched.
///
/// # Errors
/// When the fleet has no run of the job, or does not answer, and when the cache has no room for it.
pub fn cached(access: &Access, job: &str) -> Result<PathBuf, ViewError> {
    let cache = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
    let cache = cache.ok_or(ViewError::NoCache)?;
    // The id becomes the name of a folder, so it must be an id before it is looked for.
    let Some(name) = Component::new(job).ok().filter(|_| fleet::is_id(job)) else {
        return Err(ViewError::UnknownJob(visible(job).into_owned()));
    };
    let of_server = cache.join("cipherbench/fleet").join(access.folder_name());
    let folder = of_server.join(name);
    // A run found here is complete and does not change. Runs that are still being fetched are
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
        // Other users of the machine must neither read runs nor replace them.
        .mode(0o700)
        .create(&of_server);
    let unusable = |action| {
        let path = of_server.clone();
        move |error| ViewError::Cache {
            action,
            path,
            error,
        }
    };
    private.map_err(unusable("make"))?;
    let _lock = lock(&of_server.join(LOCK)).map_err(unusable("lock"))?;
    // Another program was faster.
    if let Some(run) = find() {
        return Ok(run);
    }
    // The folder, if it exists, has no complete run.
    let _ = fs::remove_dir_all(&folder);
    let accept = |manifest: &Manifest| {
        let bytes = bytes_of(manifest)?;
        // `bytes_of` refuses a run that is larger than the cache, so the difference is not
        // negative.
        if prune(&of_server, CACHE_BYTES_MAX - bytes) {
            Ok(())
        } else {
            Err(FleetError::Disk {
                what: format!("cannot make room in {}", of_server.display()),
                error: io::Error::from(io::ErrorKind::QuotaExceeded),
            })
        }
    };
    let fetched =
        fleet::run(async { fetch_if(&Fleet::connect(access).await?, job, &folder, accept).await });
    fetched?.ok_or_else(|| ViewError::UnknownJob(job.to_owned()))
}

/// The locked file, until it is dropped.
fn lock(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    // Waits until another program has fetched its run.
    file.lock()?;
    Ok(file)
}

/// Returns the space that a run will take in the cache.
///
/// # Errors
/// If the run exceeds the cache or has no journal: it would be fetched each time without success.
fn bytes_of(manifest: &Manifest) -> Result<u64, FleetError> {
    let entries = |file: &RunFile| file.path.as_str().split('/').count() as u64;
    let of_file =
        |file: &RunFile| size(file.bytes).saturating_add((entries(file) - 1) * ENTRY_BYTES);
    let sizes = manifest.files.iter().map(of_file);
    // The folders of the job and of the run.
    let bytes = sizes.fold(2 * ENTRY_BYTES, u64::saturating_add);
    let is_journal = |file: &RunFile| file.path.as_str() == journal::FILE_NAME;
    let reason = if bytes > CACHE_BYTES_MAX {
        format!(
            "it takes {} MiB, and all runs that are kept here have {} MiB: copy it by `cipherbench fleet fetch`",
            bytes >> 20,
            CACHE_BYTES_MAX >> 20
        )
    } else if !manifest.files.iter().any(is_journal) {
        format!("it has no {}", journal::FILE_NAME)
    } else {
        return Ok(bytes);
    };
    Err(FleetError::Unfit {
        what: format!("the run of job {}", manifest.job),
        reason,
    })
}

/// Space of a file with this number of bytes.
const fn size(bytes: u64) -> u64 {
    let blocks = bytes.div_ceil(ENTRY_BYTES).saturating_mul(ENTRY_BYTES);
    blocks.saturating_add(ENTRY_BYTES)
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// Removes the runs that were fetched longest ago until the others have at most `bytes_max` bytes;
/// returns whether they have.
fn prune(of_server: &Path, bytes_max: u64) -> bool {
    let found = fs::read_dir(of_server).into_iter().flatten().flatten();
    let mut runs: Vec<(SystemTime, u64, PathBuf)> = found
        // A program may wait for the lock, so its file stays.
        .filter(|entry| entry.file_name() != LOCK)
        .filter_map(|entry| {
            let fetched_at = entry.metadata().ok()?.modified().ok()?;
            let bytes = ENTRY_BYTES + bytes_in(&entry.path());
            Some((fetched_at, bytes, entry.path()))
        })
        .collect();
    // By the time of fetching, which is the first part of the tuple.
    runs.sort();
    let mut bytes: u64 = runs.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, of_run, path) in runs {
        if bytes <= bytes_max {
            break;
        }
        // Another program sees the whole run or none.
        let Some(name) = path.file_name() else {
            continue;
        };
        let going = of_server.join(format!(".going-{}", name.to_string_lossy()));
        if fs::rename(&path, &going).is_ok() && fs::remove_dir_all(&going).is_ok() {
            bytes -= of_run;
        }
    }
    bytes <= bytes_max
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // `DirEntry::metadata` follows no symbolic link, so this cannot leave the folder.
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => ENTRY_BYTES + bytes_in(&entry.path()),
        Ok(meta) => size(meta.len()),
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
            let job = File::open(folder.path().join(job)).unwrap();
            job.set_modified(fetched_at).unwrap();
        }
        fs::write(folder.path().join(LOCK), "").unwrap();
        // Two folders and a file each.
        assert!(prune(folder.path(), 2 * 4 * ENTRY_BYTES));
        let left = || {
            let found = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = found.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(left(), [LOCK, "a", "b"]);
        assert!(prune(folder.path(), 0));
        assert_eq!(left(), [LOCK]);
    }

    #[test]
    fn a_list_counts_at_least_what_its_run_takes() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("journal.jsonl", 5000), ("a/b/empty", 0), ("a/b/c", 4096)];
        let list = |files: &[(&str, u64)]| -> Manifest {
            let sha256 = "0".repeat(64);
            let files = files.iter().map(|(path, bytes)| {
                serde_json::json!({ "path": path, "bytes": bytes, "sha256": sha256 })
            });
            let files: Vec<_> = files.collect();
            let list = serde_json::json!({ "job": "1", "run": "run", "files": files });
            serde_json::from_value(list).unwrap()
        };
        for (path, bytes) in files {
            let path = folder.path().join("1/run").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes as usize]).unwrap();
        }
        let taken = bytes_in(folder.path());
        assert!(bytes_of(&list(&files)).unwrap() >= taken);
        let error = |files: &[(&str, u64)]| bytes_of(&list(files)).unwrap_err().to_string();
        assert!(error(&[("x", 1)]).contains("has no journal.jsonl"));
        for bytes in [CACHE_BYTES_MAX, u64::MAX] {
            let error = error(&[("journal.jsonl", 1), ("x", bytes)]);
            assert!(error.contains("4096 MiB: copy it by"), "{error}");
        }
    }
}

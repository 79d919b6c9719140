//! Runs in the archive: files by the hash of their content, and a list of files per run.
//!
//! A server may acknowledge data before it is on its disk, and lose the data when it is killed
//! (nats-server#7564, #6888). So a file counts as uploaded only after it was read back with the
//! right hash, and the list is written last.

use crate::bucket::{ANSWER_LIMIT, Versioned};
use crate::error::{FleetError, disk, is_full, refused};
use crate::message::{Manifest, RunFile};
use crate::room;
use crate::store::{FILES, Fleet};
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::object_store::ObjectMetadata;
use base16ct::lower::encode_string as hex;
use futures_util::StreamExt;
use guard::{Component, NameError, RelativePath};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::time::timeout;

/// Free bytes that must remain on the disk of a fetched run.
const ROOM_MIN: u64 = 64 << 20;

/// Copies a run's folder to the archive, file by file, each verified; files that are already there
/// are not sent again.
///
/// # Errors
/// [`FleetError::Unfit`] when the run is beyond the bounds of the archive. Otherwise when a file
/// cannot be read, or the server does not keep it; another call continues.
pub async fn upload(fleet: &Fleet, job: &str, folder: &Path) -> Result<Manifest, FleetError> {
    let run = folder.file_name().unwrap_or_default().to_string_lossy();
    let manifest = Manifest {
        job: job.to_owned(),
        run: Component::new(run).map_err(|error| unfit(folder, &error))?,
        files: files_of(folder)?,
    };
    manifest.check(job)?;
    for file in &manifest.files {
        if is_kept(fleet, file).await {
            continue;
        }
        // Also if the archive has a damaged one: it is replaced.
        put(fleet, file, &file.path.below(folder)).await?;
        if !is_kept(fleet, file).await {
            return Err(FleetError::Refused {
                what: format!("keep {} of job {job}", file.path),
                reason: "it has other bytes when it is read back".to_owned(),
            });
        }
    }
    // An earlier upload may have written the list without receiving the answer.
    loop {
        let found: Option<Versioned<Manifest>> = fleet.runs.read(job).await?;
        if found.as_ref().is_some_and(|found| found.value == manifest) {
            return Ok(manifest);
        }
        let revision = found.map_or(0, |found| found.revision);
        fleet.runs.swap(job, revision, &manifest).await?;
    }
}

/// Copies a job's run from the archive into a new folder in `into`, each file verified. Returns the
/// new folder; `None` if the archive has no run of that job.
///
/// Writes nothing outside that folder, which only its owner can read: a run may contain the keys of
/// its captures.
///
/// # Errors
/// When the list names other places or is beyond the bounds, a file is damaged or missing, or
/// cannot be written; nothing is left then.
pub async fn fetch(fleet: &Fleet, job: &str, into: &Path) -> Result<Option<PathBuf>, FleetError> {
    fetch_if(fleet, job, into, |_| Ok(())).await
}

/// As [`fetch`], if `accept` accepts the list of files. Nothing is written before that, and never
/// more than the list declares.
///
/// # Errors
/// As [`fetch`], or the error of `accept`.
pub async fn fetch_if(
    fleet: &Fleet,
    job: &str,
    into: &Path,
    accept: impl FnOnce(&Manifest) -> Result<(), FleetError>,
) -> Result<Option<PathBuf>, FleetError> {
    let Some(Versioned {
        value: manifest, ..
    }) = fleet.runs.read::<Manifest>(job).await?
    else {
        return Ok(None);
    };
    manifest.check(job)?;
    accept(&manifest)?;
    fs::create_dir_all(into).map_err(disk("make", into))?;
    let target = into.join(&manifest.run);
    if fs::symlink_metadata(&target).is_ok() {
        return Err(disk("write", &target)(io::ErrorKind::AlreadyExists.into()));
    }
    // Before anything is written: a full disk would fail in the middle.
    let free = room::free(into).map_err(disk("read", into))?;
    if manifest.bytes().saturating_add(ROOM_MIN) > free {
        return Err(FleetError::Disk {
            what: format!(
                "cannot write the {} of job {job} into {}",
                room::mebibytes(manifest.bytes()),
                into.display()
            ),
            error: io::Error::from(io::ErrorKind::StorageFull),
        });
    }
    // In the same folder, so that the rename is atomic.
    let partial = tempfile::Builder::new()
        .prefix(".fetch-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(into)
        .map_err(disk("write into", into))?;
    for file in &manifest.files {
        let path = file.path.below(partial.path());
        if let Some(parent) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(disk("make", parent))?;
        }
        let target = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(disk("write", &path))?;
        get(fleet, job, file, target).await?;
    }
    // From here on it is renamed or removed, and not by its drop.
    let partial = partial.keep();
    fs::rename(&partial, &target).map_err(|error| {
        // The error of the rename is the one to report.
        let _ = fs::remove_dir_all(&partial);
        disk("write", &target)(error)
    })?;
    Ok(Some(target))
}

/// The files of a run, in the order of their paths.
fn files_of(folder: &Path) -> Result<Vec<RunFile>, FleetError> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let cannot = disk("read", &next);
        for entry in fs::read_dir(&next).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            // Hidden files belong to programs that are still at work, such as an editor.
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let kind = entry.file_type().map_err(cannot)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(file_of(folder, &entry.path())?);
            }
        }
    }
    // The order of a folder differs between file systems, and two lists of one run are compared.
    files.sort_by(|one: &RunFile, other| one.path.cmp(&other.path));
    Ok(files)
}

fn file_of(folder: &Path, path: &Path) -> Result<RunFile, FleetError> {
    let cannot = disk("read", path);
    let mut hasher = Sha256::new();
    let mut file = File::open(path).map_err(cannot)?;
    let bytes = io::copy(&mut file, &mut Hashing(&mut hasher)).map_err(cannot)?;
    let within = path.strip_prefix(folder).unwrap_or(path);
    let name = within.to_string_lossy().into_owned();
    Ok(RunFile {
        path: RelativePath::new(name).map_err(|error| unfit(folder, &error))?,
        bytes,
        sha256: hex(&hasher.finalize()),
    })
}

struct Hashing<'a>(&'a mut Sha256);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unfit(folder: &Path, error: &NameError) -> FleetError {
    FleetError::Unfit {
        what: format!("the run in {}", folder.display()),
        reason: error.to_string(),
    }
}

/// Whether the archive returns a file unchanged.
async fn is_kept(fleet: &Fleet, file: &RunFile) -> bool {
    let read = read(fleet, file, |_| Ok(())).await;
    read.is_ok_and(|sha256| sha256 == file.sha256)
}

/// Reads a file from the archive, part by part, up to the size in its list. Returns its SHA-256.
///
/// The client's `get` is not used: it follows links between entries without a limit.
async fn read(
    fleet: &Fleet,
    file: &RunFile,
    mut part: impl FnMut(&[u8]) -> Result<(), FleetError>,
) -> Result<String, FleetError> {
    let failed = |error: &dyn std::error::Error| refused(format!("return {}", file.path), error);
    let damaged = |reason: String| FleetError::Refused {
        what: format!("return {} as it was", file.path),
        reason,
    };
    let entry = fleet.files.info(&file.sha256).await;
    let entry = entry.map_err(|error| failed(&error))?;
    // The list decides on the size, so that no more is read than it declares.
    if entry.deleted || entry.size as u64 != file.bytes {
        let size = if entry.deleted { 0 } else { entry.size };
        return Err(damaged(format!("it has {size} bytes of {}", file.bytes)));
    }
    let mut hasher = Sha256::new();
    // It has no parts, and waiting for one would run into the limit.
    if file.bytes == 0 {
        return Ok(hex(&hasher.finalize()));
    }
    // It becomes a part of a subject: a wildcard would match the parts of other files.
    if entry.nuid.is_empty() || !entry.nuid.bytes().all(|c| c.is_ascii_alphanumeric()) {
        return Err(damaged("its entry names no parts".to_owned()));
    }
    let stream = fleet.context.get_stream_no_info(format!("OBJ_{FILES}"));
    let stream = stream.await.map_err(|error| failed(&error))?;
    let consumer = stream.create_consumer(OrderedConfig {
        deliver_subject: fleet.context.client().new_inbox(),
        filter_subject: format!("$O.{FILES}.C.{}", entry.nuid),
        ..OrderedConfig::default()
    });
    let consumer = consumer.await.map_err(|error| failed(&error))?;
    let parts = consumer.messages().await;
    let mut parts = parts.map_err(|error| failed(&error))?;
    let mut bytes = 0;
    while bytes < file.bytes {
        // An entry may have no parts, or too few.
        let next = timeout(ANSWER_LIMIT, parts.next()).await;
        let next = next.map_err(|error| failed(&error))?;
        let Some(next) = next.transpose().map_err(|error| failed(&error))? else {
            break;
        };
        bytes += next.payload.len() as u64;
        hasher.update(&next.payload);
        // The server counts what is left, so a missing part shows before the timeout.
        let left = next.info().map_err(|error| failed(&*error))?.pending;
        if bytes > file.bytes || (left == 0) != (bytes == file.bytes) {
            return Err(damaged(format!("its parts have not {} bytes", file.bytes)));
        }
        part(&next.payload)?;
    }
    Ok(hex(&hasher.finalize()))
}

async fn put(fleet: &Fleet, file: &RunFile, path: &Path) -> Result<(), FleetError> {
    let mut content = tokio::fs::File::open(path)
        .await
        .map_err(disk("read", path))?;
    let meta = ObjectMetadata {
        name: file.sha256.clone(),
        ..ObjectMetadata::default()
    };
    // A denial of before may not hold any more.
    fleet.denials.forget("$O.");
    let sent = tokio::select! {
        sent = fleet.files.put(meta, &mut content) => sent,
        subject = fleet.denials.under("$O.") => return Err(FleetError::Denied {
            what: format!("keep {}", file.path),
            subject,
        }),
    };
    sent.map(drop).map_err(|error| {
        let (what, reason) = (format!("keep {}", file.path), error.to_string());
        if is_full(&reason) {
            FleetError::Full { what, reason }
        } else {
            FleetError::Refused { what, reason }
        }
    })
}

/// Copies a file from the archive into `target`, and verifies it.
async fn get(fleet: &Fleet, job: &str, file: &RunFile, mut target: File) -> Result<(), FleetError> {
    let write = |part: &[u8]| {
        let written = target.write_all(part);
        written.map_err(|error| FleetError::Disk {
            what: format!("cannot write {} of job {job}", file.path),
            error,
        })
    };
    // Compared after writing: a file of any size passes through memory in parts.
    if read(fleet, file, write).await? != file.sha256 {
        return Err(FleetError::Refused {
            what: format!("return {} of job {job} as it was", file.path),
            reason: "it has another SHA-256".to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn files_are_listed_with_their_hashes_and_paths_stay_inside() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("captures")).unwrap();
        fs::write(folder.path().join("captures/a.pcapng"), "abc").unwrap();
        fs::write(folder.path().join("journal.jsonl"), "").unwrap();
        let files = files_of(folder.path()).unwrap();
        let paths: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.bytes))
            .collect();
        assert_eq!(paths, [("captures/a.pcapng", 3), ("journal.jsonl", 0)]);
        // FIPS 180-4's example.
        assert!(
            files[0]
                .sha256
                .starts_with("ba7816bf8f01cfea414140de5dae2223")
        );
    }

    #[test]
    fn lists_that_lead_out_of_the_run_are_beyond_the_bounds_or_of_another_job_are_refused() {
        let sha256 = "0".repeat(64);
        let list = |run: &str, path: &str, bytes: u64, sha256: &str| {
            let file = json!({ "path": path, "bytes": bytes, "sha256": sha256 });
            json!({ "job": "1", "run": run, "files": [file] })
        };
        let parsed = |list: Value| serde_json::from_value::<Manifest>(list);
        let good = parsed(list("the-run", "captures/a.pcapng", 3, &sha256)).unwrap();
        assert!(good.check("1").is_ok());
        let error = good.check("2").unwrap_err().to_string();
        assert!(error.contains("that of job"), "{error}");
        for outside in [
            "../x",
            "/etc/passwd",
            "a/../../x",
            ".ssh/authorized_keys",
            "",
            "a//b",
        ] {
            assert!(
                parsed(list("the-run", outside, 3, &sha256)).is_err(),
                "{outside}"
            );
            assert!(parsed(list(outside, "a", 3, &sha256)).is_err(), "{outside}");
        }
        for (bytes, sha256) in [(u64::MAX, &*sha256), (3, "../x"), (3, "")] {
            let bad = parsed(list("the-run", "a", bytes, sha256)).unwrap();
            assert!(bad.check("1").is_err(), "{bad:?}");
        }
        let twice = Manifest {
            files: [good.files.clone(), good.files.clone()].concat(),
            ..good
        };
        assert!(twice.check("1").is_err());
    }
}

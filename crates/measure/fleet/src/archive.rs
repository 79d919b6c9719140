//! Runs in the archive: each file by the hash of its content, and a list of them.
//!
//! A server may acknowledge what it has not on its disk, and lose it when it is killed
//! (nats-server#7564, #6888). So a file counts as uploaded once it was read back and has its hash,
//! and the list is written last.

use crate::bucket::Found;
use crate::error::{FleetError, is_full, refused};
use crate::message::{Manifest, RunFile};
use crate::store::Fleet;
use async_nats::jetstream::object_store::ObjectMetadata;
use base16ct::lower::encode_string as hex;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tokio::io::AsyncReadExt;

/// Read at once.
const CHUNK_BYTES: usize = 128 << 10;

/// Copies a run's folder to the archive, file by file, each verified; what is there already is not
/// sent again.
///
/// # Errors
/// When a file cannot be read, or the server does not keep it. Calling it again goes on.
pub async fn upload(fleet: &Fleet, job: &str, folder: &Path) -> Result<Manifest, FleetError> {
    let manifest = Manifest {
        job: job.to_owned(),
        run: folder
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        files: files_of(folder)?,
    };
    for file in &manifest.files {
        if is_kept(fleet, file).await {
            continue;
        }
        put(fleet, file, &folder.join(&file.path)).await?;
        if !is_kept(fleet, file).await {
            return Err(FleetError::Refused {
                what: format!("keep {} of job {job}", file.path),
                reason: "it has other bytes when it is read back".to_owned(),
            });
        }
    }
    // Its list may be there from an upload whose end was not heard of.
    loop {
        let found: Option<Found<Manifest>> = fleet.runs.read(job).await?;
        if found.as_ref().is_some_and(|found| found.value == manifest) {
            return Ok(manifest);
        }
        let revision = found.map_or(0, |found| found.revision);
        fleet.runs.swap(job, revision, &manifest).await?;
    }
}

/// Copies a job's run from the archive into a new folder in `into`, each file verified. Returns it;
/// `None` if the archive has no run of that job.
///
/// # Errors
/// When a file is damaged or missing, or cannot be written; nothing is left then.
pub async fn fetch(fleet: &Fleet, job: &str, into: &Path) -> Result<Option<PathBuf>, FleetError> {
    let Some(Found {
        value: manifest, ..
    }) = fleet.runs.read::<Manifest>(job).await?
    else {
        return Ok(None);
    };
    let disk = |what: String| move |error| FleetError::Disk { what, error };
    fs::create_dir_all(into).map_err(disk(format!("cannot make {}", into.display())))?;
    let target = into.join(&manifest.run);
    if target.exists() {
        return Err(FleetError::Disk {
            what: format!("cannot write {}", target.display()),
            error: io::Error::from(io::ErrorKind::AlreadyExists),
        });
    }
    let partial = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(into)
        .map_err(disk(format!("cannot write into {}", into.display())))?;
    for file in &manifest.files {
        let path = partial.path().join(inside(&file.path)?);
        let bytes = get(fleet, file).await?;
        if hash(&bytes) != file.sha256 {
            return Err(FleetError::Refused {
                what: format!("return {} of job {job} as it was", file.path),
                reason: "it has another SHA-256".to_owned(),
            });
        }
        let cannot = || format!("cannot write {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(disk(cannot()))?;
        }
        fs::write(&path, bytes).map_err(disk(cannot()))?;
    }
    let partial = partial.keep();
    fs::rename(&partial, &target).map_err(|error| {
        // The reason is that of the renaming.
        let _ = fs::remove_dir_all(&partial);
        disk(format!("cannot write {}", target.display()))(error)
    })?;
    Ok(Some(target))
}

/// A path of a list, refused if it leads out of the run's folder.
fn inside(path: &str) -> Result<&Path, FleetError> {
    use std::path::Component;
    let path = Path::new(path);
    match path
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        true => Ok(path),
        false => Err(FleetError::Refused {
            what: "name a file of the run".to_owned(),
            reason: format!("{} leaves the run's folder", path.display()),
        }),
    }
}

/// The files of a run, in the order of their paths.
fn files_of(folder: &Path) -> Result<Vec<RunFile>, FleetError> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let cannot = |error| FleetError::Disk {
            what: format!("cannot read {}", next.display()),
            error,
        };
        for entry in fs::read_dir(&next).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let kind = entry.file_type().map_err(cannot)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(file_of(folder, &entry.path())?);
            }
        }
    }
    files.sort_by(|one: &RunFile, other| one.path.cmp(&other.path));
    Ok(files)
}

fn file_of(folder: &Path, path: &Path) -> Result<RunFile, FleetError> {
    let cannot = |error| FleetError::Disk {
        what: format!("cannot read {}", path.display()),
        error,
    };
    let mut hasher = Sha256::new();
    let mut file = fs::File::open(path).map_err(cannot)?;
    let bytes = io::copy(&mut file, &mut Hashing(&mut hasher)).map_err(cannot)?;
    let within = path.strip_prefix(folder).unwrap_or(path);
    Ok(RunFile {
        path: within.to_string_lossy().into_owned(),
        bytes,
        sha256: hex(&hasher.finalize()),
    })
}

struct Hashing<'a>(&'a mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether the archive returns a file as it is.
async fn is_kept(fleet: &Fleet, file: &RunFile) -> bool {
    match fleet.files.info(&file.sha256).await {
        Ok(info) if info.size as u64 == file.bytes && !info.deleted => {}
        _ => return false,
    }
    let Ok(mut object) = fleet.files.get(&file.sha256).await else {
        return false;
    };
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; CHUNK_BYTES]);
    loop {
        match object.read(&mut buffer).await {
            Ok(0) => return hex(&hasher.finalize()) == file.sha256,
            Ok(length) => hasher.update(&buffer[..length]),
            Err(_) => return false,
        }
    }
}

async fn put(fleet: &Fleet, file: &RunFile, path: &Path) -> Result<(), FleetError> {
    let mut content = tokio::fs::File::open(path)
        .await
        .map_err(|error| FleetError::Disk {
            what: format!("cannot read {}", path.display()),
            error,
        })?;
    let meta = ObjectMetadata {
        name: file.sha256.clone(),
        ..ObjectMetadata::default()
    };
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
        match is_full(&reason) {
            true => FleetError::Full { what, reason },
            false => FleetError::Refused { what, reason },
        }
    })
}

async fn get(fleet: &Fleet, file: &RunFile) -> Result<Vec<u8>, FleetError> {
    let failed = |error: &dyn std::error::Error| refused(format!("return {}", file.path), error);
    let object = fleet.files.get(&file.sha256).await;
    let mut object = object.map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    object
        .read_to_end(&mut bytes)
        .await
        .map_err(|error| failed(&error))?;
    Ok(bytes)
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(inside("captures/a.pcapng").is_ok());
        for outside in ["../x", "/etc/passwd", "a/../../x"] {
            assert!(inside(outside).is_err(), "{outside}");
        }
    }
}

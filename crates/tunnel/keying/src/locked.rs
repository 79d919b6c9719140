//! A key file in use: locked, with its epochs on the disk.
//!
//! Two processes with one secret must not draw the same epoch. So a key file is locked twice: its
//! inode, and a file next to it, named like the key file with `.lock` appended, which is never
//! replaced. The second lock still holds when another program puts a copy in the key file's place,
//! as `mv`, rsync and configuration management do. Each write to the epoch file first verifies that
//! this process opened or wrote all three files, and that the epoch file has the content that it
//! wrote last.

use crate::KeyError;
use crate::files::{
    KEY_FORBIDDEN, KEY_MODE, epoch_path, malformed, metadata_of_file, refuse_mode, with_suffix,
};
use crate::text::{Epochs, FILE_BYTES_MAX, KeyFile};
use guard::{Writers, read_wiped, sync_folder};
use nix::fcntl::OFlag;
use nix::unistd::{Gid, Uid, fchown, geteuid};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Mode bits that an epoch file must not have: write access by group or others, since an old epoch
/// repeats nonces.
const EPOCH_FORBIDDEN: u32 = 0o022;

/// Identity of a file in its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inode(u64, u64);

impl Inode {
    fn of(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// A locked key file: no other process can open it while this value lives.
pub(crate) struct LockedKeyFile {
    /// Canonical path without symbolic links, so that each key file has exactly one epoch file.
    pub(crate) path: PathBuf,
    pub(crate) content: KeyFile,
    /// The epochs recorded on the disk.
    recorded: Epochs,
    epochs_inode: Inode,
    /// The locks.
    file: File,
    lock: File,
}

impl LockedKeyFile {
    /// `writers`: who may have written the files and their folders; `None`: root, this process's
    /// user, and the key file's owner, who has the secret anyway.
    pub(crate) fn open(path: &Path, writers: Option<&Writers>) -> Result<Self, KeyError> {
        let not_read = |source| KeyError::NotRead {
            path: path.to_owned(),
            source,
        };
        let given = path;
        // Two names of one file must lead to one epoch file and one lock.
        let path = fs::canonicalize(path).map_err(not_read)?;
        let mut file = guard::open_regular(&path).map_err(not_read)?;
        let metadata = file.metadata().map_err(not_read)?;
        // Before it is read: a secret that others may have read is not to be used at all.
        refuse_mode(&path, metadata.mode(), KEY_FORBIDDEN, "use")?;
        let writers = match writers {
            Some(writers) => writers.clone(),
            None => Writers::of_process().and(metadata.uid()),
        };
        // The name as given: links on the way decide which file is read.
        writers.check(given)?;
        // This lock before the one on the key file. The key file may have been replaced since it
        // was opened; each write verifies that it was not.
        let lock = take_lock(&path, &metadata, &writers)?;
        try_lock(&file, &path, not_read)?;
        // A second name in another folder has another epoch file, which would begin with the same
        // epochs.
        if metadata.nlink() != 1 {
            return Err(KeyError::Linked {
                path,
                links: metadata.nlink(),
            });
        }
        let text = read_wiped(&mut file, FILE_BYTES_MAX).map_err(not_read)?;
        let content = KeyFile::parse(&text).map_err(|error| malformed(&path, error))?;
        let (recorded, epochs_inode) = read_epochs(&path, &writers)?;
        Ok(Self {
            path,
            content,
            recorded,
            epochs_inode,
            file,
            lock,
        })
    }

    /// The epochs recorded on the disk.
    pub(crate) const fn recorded(&self) -> Epochs {
        self.recorded
    }

    /// Records epochs on the disk.
    ///
    /// # Errors
    /// [`KeyError::Replaced`] if another program has touched the files.
    pub(crate) fn record(&mut self, epochs: Epochs) -> Result<(), KeyError> {
        // Before the write: an epoch file that another program has put back holds epochs that are
        // used up.
        self.verify()?;
        self.epochs_inode = write_epochs(&epoch_path(&self.path), epochs)?;
        self.recorded = epochs;
        Ok(())
    }

    /// Verifies that the files are the ones that this process has opened and written.
    fn verify(&self) -> Result<(), KeyError> {
        let epochs = epoch_path(&self.path);
        let is_open = |path: &Path, file: &File| -> io::Result<bool> {
            Ok(inode_at(path)? == Some(Inode::of(&file.metadata()?)))
        };
        let is_as_written = || -> io::Result<bool> {
            let text = guard::read_bytes(&epochs, FILE_BYTES_MAX)?;
            let same = Epochs::parse(&text).is_ok_and(|found| found == self.recorded);
            Ok(same && inode_at(&epochs)? == Some(self.epochs_inode))
        };
        let lock = lock_path(&self.path);
        let found = [
            (&self.path, is_open(&self.path, &self.file)),
            (&lock, is_open(&lock, &self.lock)),
            (&epochs, is_as_written()),
        ];
        for (path, is_known) in found {
            match is_known {
                Ok(true) => {}
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    let path = epochs.clone();
                    return Err(KeyError::EpochNotWritten { path, source });
                }
                // A missing file counts as replaced: it existed when this process opened it.
                Ok(false) | Err(_) => return Err(KeyError::Replaced { path: path.clone() }),
            }
        }
        Ok(())
    }
}

/// The identity of the directory entry at a path, if it exists.
fn inode_at(path: &Path) -> io::Result<Option<Inode>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(Inode::of(&found))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The path of a key file's lock file.
fn lock_path(key_file: &Path) -> PathBuf {
    with_suffix(key_file, ".lock")
}

/// Locks the file next to the key file, which is created once and never replaced.
fn take_lock(key_file: &Path, key: &Metadata, writers: &Writers) -> Result<File, KeyError> {
    let path = lock_path(key_file);
    let not_locked = |source| KeyError::NotLocked {
        path: path.clone(),
        source,
    };
    let open = || {
        // Created first: of two processes that find no file, the second must open the first one's.
        let created = match create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return open_unfollowed(&path);
            }
            created => created?,
        };
        if geteuid().is_root() {
            // The key file's owner may use it later without root. In a user namespace that does not
            // have this owner it stays with root.
            let owner = (Uid::from_raw(key.uid()), Gid::from_raw(key.gid()));
            let _ = fchown(&created, Some(owner.0), Some(owner.1));
        }
        // Otherwise a crash may lose the name, and another process would lock another file.
        sync_folder(&path)?;
        Ok(created)
    };
    // The file stays after the lock is released: removed, it would let two processes lock two files
    // of one name.
    let file = open().map_err(not_locked)?;
    metadata_of_file(&file).map_err(not_locked)?;
    writers.check(&path)?;
    try_lock(&file, key_file, not_locked)?;
    Ok(file)
}

/// Opens a file without following a link, which could lead to a file that another program
/// replaces.
fn open_unfollowed(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Without O_NONBLOCK a FIFO in this place would block the open.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    options.read(true).custom_flags(flags).open(path)
}

/// Creates a file for its owner that must not exist yet, not even as a link.
fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // O_EXCL of `create_new` refuses links too.
    let options = options.read(true).write(true).create_new(true);
    options.mode(KEY_MODE).open(path)
}

/// Locks a file; `failed` is the error if that fails although no process has it.
fn try_lock(
    file: &File,
    key_file: &Path,
    failed: impl FnOnce(io::Error) -> KeyError,
) -> Result<(), KeyError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => KeyError::InUse {
            path: key_file.to_owned(),
        },
        TryLockError::Error(error) => failed(error),
    })
}

/// Reads the epoch file of a key file.
///
/// # Errors
/// Also if anyone but `writers` could have put an older one in its place: an old epoch repeats
/// nonces.
fn read_epochs(key_file: &Path, writers: &Writers) -> Result<(Epochs, Inode), KeyError> {
    let path = epoch_path(key_file);
    let not_read = |source| KeyError::EpochNotRead {
        path: path.clone(),
        source,
    };
    let mut file = open_unfollowed(&path).map_err(not_read)?;
    let metadata = metadata_of_file(&file).map_err(not_read)?;
    refuse_mode(&path, metadata.mode(), EPOCH_FORBIDDEN, "write")?;
    writers.check(&path)?;
    let text = read_wiped(&mut file, FILE_BYTES_MAX).map_err(not_read)?;
    let epochs = Epochs::parse(&text).map_err(|error| malformed(&path, error))?;
    Ok((epochs, Inode::of(&metadata)))
}

/// Replaces the epoch file atomically: after a crash at any moment it is the old or the new one,
/// and once this has returned it is the new one. Only the holder of the key file's locks may call
/// it. Returns the identity of the new file.
fn write_epochs(path: &Path, epochs: Epochs) -> Result<Inode, KeyError> {
    let replace = || {
        let fresh = with_suffix(path, ".new");
        // Leftovers of a crash, or files placed there by others, are neither written to nor
        // followed.
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = create_new(&fresh)?;
        file.write_all(epochs.text().as_bytes())?;
        // The content before the name: after a crash the name must not lead to an empty file.
        file.sync_all()?;
        // The next write compares it: another program that puts a file in its place gets another
        // inode.
        let inode = Inode::of(&file.metadata()?);
        fs::rename(&fresh, path)?;
        // Without this the rename may be lost in a crash, and the old epoch would be drawn again.
        sync_folder(path)?;
        Ok(inode)
    };
    replace().map_err(|source| KeyError::EpochNotWritten {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn of_two_that_create_a_lock_file_together_one_has_it() {
        let folder = testing::folder().unwrap();
        for round in 0..200 {
            let key_file = folder.path().join(format!("{round}.key"));
            let metadata = create_new(&key_file).unwrap().metadata().unwrap();
            let writers = Writers::of_process().and(metadata.uid());
            let together = Barrier::new(2);
            let lock = || {
                together.wait();
                take_lock(&key_file, &metadata, &writers)
            };
            let both = thread::scope(|scope| {
                let other = scope.spawn(lock);
                [lock(), other.join().unwrap()]
            });
            let errors = both.iter().filter_map(|taken| taken.as_ref().err());
            let errors: Vec<_> = errors.collect();
            assert!(matches!(errors[..], [KeyError::InUse { .. }]), "{errors:?}");
        }
    }
}

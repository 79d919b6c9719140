//! Key, epoch and PPK files on the disk: created once; key files are locked, epoch files replaced
//! atomically.

use crate::KeyError;
use crate::Side;
use crate::derive::SECRET_BYTES;
use crate::text::{Epochs, FILE_BYTES_MAX, KeyFile, Malformed};
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Mode of created files: owner only.
const KEY_MODE: u32 = 0o600;
/// Mode bits that a key file must not have: any access by group or others.
const KEY_FORBIDDEN: u32 = 0o077;
/// Mode bits that an epoch file must not have: write access by group or others, since an old epoch
/// repeats nonces.
const EPOCH_FORBIDDEN: u32 = 0o022;
/// Mode bits that the folder of an epoch file must not have: who may write there may put an old
/// epoch file in the place of the present one.
const FOLDER_FORBIDDEN: u32 = 0o022;
/// With this bit, as /tmp has it, users replace only files of their own.
const STICKY: u32 = 0o1000;

/// Contents of a key file and its epoch file. Both must be accessible to the owner only.
pub struct FileTexts {
    /// Content of the key file.
    pub key: Zeroizing<String>,
    /// Content of the epoch file, whose name is the key file's name followed by `.epoch`.
    pub epochs: String,
}

/// Generates a pair of key files with a fresh secret in memory, for side a and side b. Each pair of
/// texts must be written once, to one place: a copy of a key file repeats nonces.
///
/// # Errors
/// [`KeyError::NoRandomness`].
pub fn pair_texts() -> Result<[FileTexts; 2], KeyError> {
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    aws_lc_rs::rand::fill(&mut *secret).map_err(|_| KeyError::NoRandomness)?;
    Ok([Side::A, Side::B].map(|side| {
        let key_file = KeyFile {
            side,
            secret: secret.clone(),
        };
        FileTexts {
            key: key_file.text(),
            epochs: Epochs::NONE.text(),
        }
    }))
}

/// Creates a pair of key files with a fresh secret, each with its epoch file `<file>.epoch`.
///
/// # Errors
/// [`KeyError::NotCreated`], also if one of the four files exists: nothing is ever overwritten, and
/// files created by this call are removed. [`KeyError::NoRandomness`].
pub fn create_pair(a: &Path, b: &Path) -> Result<(), KeyError> {
    let texts = pair_texts()?;
    let [of_a, of_b] = &texts;
    create_all(&[
        (a.to_owned(), of_a.key.as_bytes()),
        (epoch_path(a), of_a.epochs.as_bytes()),
        (b.to_owned(), of_b.key.as_bytes()),
        (epoch_path(b), of_b.epochs.as_bytes()),
    ])
}

/// Creates files that must not exist yet, durably and accessible to the owner only: all or none.
///
/// # Errors
/// [`KeyError::NotCreated`]; files created by this call are removed.
pub(crate) fn create_all(files: &[(PathBuf, &[u8])]) -> Result<(), KeyError> {
    let mut made = Vec::new();
    let result = files
        .iter()
        .try_for_each(|(path, content)| create(path, content, &mut made));
    if result.is_err() {
        for path in made {
            // A leftover unused key is harmless, and the first error is more informative.
            let _ = fs::remove_file(path);
        }
    }
    result
}

/// Creates one file, and adds it to `made` as soon as it exists.
fn create(path: &Path, content: &[u8], made: &mut Vec<PathBuf>) -> Result<(), KeyError> {
    let mut make = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(KEY_MODE)
            .open(path)?;
        made.push(path.to_owned());
        file.write_all(content)?;
        file.sync_all()?;
        sync_folder(path)
    };
    make().map_err(|source| KeyError::NotCreated {
        path: path.to_owned(),
        source,
    })
}

/// A locked key file: no other process can open it while this value lives.
pub(crate) struct LockedKeyFile {
    /// Canonical path without symbolic links, so that each key file has exactly one epoch file.
    pub(crate) path: PathBuf,
    pub(crate) content: KeyFile,
    /// The user to whom the key file belongs.
    owner: u32,
    /// The lock.
    _file: File,
}

impl LockedKeyFile {
    pub(crate) fn open(path: &Path) -> Result<Self, KeyError> {
        let not_read = |source| KeyError::NotRead {
            path: path.to_owned(),
            source,
        };
        let path = fs::canonicalize(path).map_err(not_read)?;
        let mut file = File::open(&path).map_err(not_read)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(KeyError::InUse { path }),
            Err(TryLockError::Error(error)) => return Err(not_read(error)),
        }
        let metadata = metadata_of_file(&file).map_err(not_read)?;
        refuse_mode(&path, metadata.mode(), KEY_FORBIDDEN, "use")?;
        if metadata.nlink() != 1 {
            return Err(KeyError::Linked {
                path,
                links: metadata.nlink(),
            });
        }
        let text = read_whole(&mut file, FILE_BYTES_MAX).map_err(not_read)?;
        let content = KeyFile::parse(&text).map_err(|error| malformed(&path, error))?;
        Ok(Self {
            path,
            content,
            owner: metadata.uid(),
            _file: file,
        })
    }

    /// Reads the epoch file beside it.
    ///
    /// # Errors
    /// Also if anyone but root, this process's user and the key file's owner could have put an
    /// older one in its place: an old epoch repeats nonces.
    pub(crate) fn read_epochs(&self) -> Result<Epochs, KeyError> {
        let path = epoch_path(&self.path);
        let not_read = |source| KeyError::EpochNotRead {
            path: path.clone(),
            source,
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(OFlag::O_NOFOLLOW.bits());
        let mut file = options.open(&path).map_err(not_read)?;
        let metadata = metadata_of_file(&file).map_err(not_read)?;
        refuse_mode(&path, metadata.mode(), EPOCH_FORBIDDEN, "write")?;
        self.refuse_stranger(&path, &metadata)?;
        let folder = folder_of(&path);
        let metadata = fs::metadata(folder).map_err(not_read)?;
        self.refuse_stranger(folder, &metadata)?;
        let mode = metadata.mode();
        if mode & FOLDER_FORBIDDEN != 0 && mode & STICKY == 0 {
            return Err(KeyError::FolderTooOpen {
                path: folder.to_owned(),
                mode: mode & 0o7777,
            });
        }
        let text = read_whole(&mut file, FILE_BYTES_MAX).map_err(not_read)?;
        Epochs::parse(&text).map_err(|error| malformed(&path, error))
    }

    /// Refuses what belongs to a user who has no access to the key itself.
    fn refuse_stranger(&self, path: &Path, metadata: &Metadata) -> Result<(), KeyError> {
        if [0, geteuid().as_raw(), self.owner].contains(&metadata.uid()) {
            return Ok(());
        }
        Err(KeyError::OwnedByStranger {
            path: path.to_owned(),
            uid: metadata.uid(),
        })
    }
}

/// Reads a PPK file. Rejects it if anyone but its owner may use it.
pub(crate) fn read_ppk(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let not_read = |source| KeyError::PpkNotRead {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(not_read)?;
    let metadata = metadata_of_file(&file).map_err(not_read)?;
    refuse_mode(path, metadata.mode(), KEY_FORBIDDEN, "use")?;
    read_whole(&mut file, FILE_BYTES_MAX).map_err(not_read)
}

/// The metadata of a regular file.
///
/// # Errors
/// Those of the operating system, and when it is no regular file.
pub fn metadata_of_file(file: &File) -> io::Result<Metadata> {
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok(metadata)
    } else {
        Err(io::Error::other("it is not a file"))
    }
}

/// The path of a key file's epoch file.
pub(crate) fn epoch_path(key_file: &Path) -> PathBuf {
    let mut path = key_file.as_os_str().to_owned();
    path.push(".epoch");
    path.into()
}

/// Replaces the epoch file atomically: after a crash at any moment it is the old or the new one,
/// and once this has returned it is the new one. Only the holder of the key file's lock may call
/// it.
pub(crate) fn write_epochs(path: &Path, epochs: Epochs) -> Result<(), KeyError> {
    let replace = || {
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        // What is left of a crash, or laid there by others, is neither written to nor followed.
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .mode(KEY_MODE)
            .open(&fresh)?;
        file.write_all(epochs.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        sync_folder(path)
    };
    replace().map_err(|source| KeyError::EpochNotWritten {
        path: path.to_owned(),
        source,
    })
}

/// Makes the directory entry of a file durable.
///
/// # Errors
/// Those of the operating system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder in which a file is.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn refuse_mode(path: &Path, mode: u32, forbidden: u32, may: &'static str) -> Result<(), KeyError> {
    if mode & forbidden == 0 {
        return Ok(());
    }
    Err(KeyError::TooOpen {
        path: path.to_owned(),
        mode: mode & 0o7777,
        may,
    })
}

/// Reads a file of up to `bytes_max` bytes into memory that is wiped when dropped and never
/// reallocated.
///
/// # Errors
/// Those of the operating system, and when the file is longer.
pub fn read_whole(file: &mut File, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut text = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    file.take(bytes_max as u64 + 1).read_to_end(&mut text)?;
    if text.len() > bytes_max {
        let what = format!("it has more than {bytes_max} bytes: is it the right file?");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(text)
}

pub(crate) fn malformed(path: &Path, error: Malformed) -> KeyError {
    KeyError::Malformed {
        path: path.to_owned(),
        line: error.line,
        what: error.what,
    }
}

//! Key, epoch and PPK files on the disk: created once, and read by those who trust their writers.

use crate::KeyError;
use crate::Side;
use crate::derive::SECRET_BYTES;
use crate::text::{Epochs, FILE_BYTES_MAX, KeyFile, Malformed};
use guard::{Writers, create_durable, read_wiped};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Mode of created files: owner only.
pub(crate) const KEY_MODE: u32 = 0o600;
/// Mode bits that a key file must not have: any access by group or others.
pub(crate) const KEY_FORBIDDEN: u32 = 0o077;

/// Contents of a key file and its epoch file. Both must be accessible to the owner only.
pub struct FileTexts {
    /// Content of the key file.
    pub key: Zeroizing<String>,
    /// Content of the epoch file, named like the key file with `.epoch` appended.
    pub epochs: String,
}

/// Generates a pair of key files with a fresh secret in memory, for side a and side b. Each pair of
/// texts must be written once, to one place: a copy of a key file repeats nonces.
///
/// # Errors
/// [`KeyError::NoRandomness`].
pub fn pair_texts() -> Result<[FileTexts; 2], KeyError> {
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    // From the operating system: a static secret has nothing else that is random.
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
    // Each key file has an epoch file from the start: without one nobody knows which epochs are
    // used up.
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
    for (index, (path, content)) in files.iter().enumerate() {
        create_durable(path, content, KEY_MODE).map_err(|source| {
            for (made, _) in &files[..index] {
                // A leftover unused key is harmless, and the first error is more informative.
                let _ = fs::remove_file(made);
            }
            KeyError::NotCreated {
                path: path.to_owned(),
                source,
            }
        })?;
    }
    Ok(())
}

/// The metadata of a regular file.
///
/// # Errors
/// The operating system's errors, and when it is no regular file.
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
    with_suffix(key_file, ".epoch")
}

/// The path with a text appended to its last part.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Reads a PPK file. Rejects it if anyone but its owner may use it, or if others than `writers`
/// could have written it.
pub(crate) fn read_ppk(path: &Path, writers: &Writers) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let not_read = |source| KeyError::PpkNotRead {
        path: path.to_owned(),
        source,
    };
    let mut file = guard::open_regular(path).map_err(not_read)?;
    // Of the open file, since the path may lead to another one by now.
    let metadata = file.metadata().map_err(not_read)?;
    refuse_mode(path, metadata.mode(), KEY_FORBIDDEN, "use")?;
    writers.check(path)?;
    read_wiped(&mut file, FILE_BYTES_MAX).map_err(not_read)
}

pub(crate) fn refuse_mode(
    path: &Path,
    mode: u32,
    forbidden: u32,
    may: &'static str,
) -> Result<(), KeyError> {
    // Refused, not mended: others may have read it by now.
    if mode & forbidden == 0 {
        return Ok(());
    }
    Err(KeyError::TooOpen {
        path: path.to_owned(),
        // Without the bits of the file's type, as `chmod` and `ls` show it.
        mode: mode & 0o7777,
        may,
    })
}

pub(crate) fn malformed(path: &Path, error: Malformed) -> KeyError {
    KeyError::Malformed {
        path: path.to_owned(),
        line: error.line,
        what: error.what,
    }
}

//! Certificate and key files: read with a size limit, created once, never overwritten.

use guard::{Writers, create_durable, read_wiped};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Mode of key files: owner only.
const SECRET_MODE: u32 = 0o600;
/// Mode of certificate files: readable by all.
const PUBLIC_MODE: u32 = 0o644;
/// Mode bits that a key file must not have: any access by group or others.
const SECRET_FORBIDDEN: u32 = 0o077;
/// Maximum file size; a certificate chain has a few kilobytes.
const BYTES_MAX: usize = 64 * 1024;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system reports an error, or it is not a regular file of acceptable size.
    #[error("{} cannot be read: {source}{}", .path.display(), remedy(.source))]
    NotRead {
        /// File.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could have written the file, which decides on trust.
    #[error(transparent)]
    Insecure(#[from] guard::Insecure),
    /// Users other than its owner may use a key.
    #[error("{} has mode {mode:04o}: others than its owner may use the key (chmod 600 {})",
        .path.display(), .path.display())]
    TooOpen {
        /// File.
        path: PathBuf,
        /// Its mode bits.
        mode: u32,
    },
}

/// The command that makes a file which is not there.
fn remedy(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::NotFound {
        " (to make certificates with their keys: cipherbench init gateway, or cipherbench keys certificate)"
    } else {
        ""
    }
}

/// Reads a public file that one of these users has written.
///
/// # Errors
/// [`ReadError::NotRead`] and [`ReadError::Insecure`].
pub fn read_public(path: &Path, by: &Writers) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    read(path, 0, by)
}

/// Reads a key file that one of these users has written. Rejects it if anyone but its owner may use
/// it.
///
/// # Errors
/// [`ReadError`].
pub fn read_secret(path: &Path, by: &Writers) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    read(path, SECRET_FORBIDDEN, by)
}

/// Reads the complete file into memory that is wiped when dropped and never reallocated.
fn read(path: &Path, forbidden: u32, by: &Writers) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    let not_read = |source| ReadError::NotRead {
        path: path.to_owned(),
        source,
    };
    let mut file = guard::open_regular(path).map_err(not_read)?;
    // Of the open file, not of its path: the path may name another file by now.
    let metadata = file.metadata().map_err(not_read)?;
    if metadata.mode() & forbidden != 0 {
        return Err(ReadError::TooOpen {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
        });
    }
    by.check(path)?;
    read_wiped(&mut file, BYTES_MAX).map_err(not_read)
}

/// Creates a public file, such as a certificate, and its key file durably: both, or neither.
///
/// # Errors
/// The operating system's errors, with the path; a file that exists is one, and stays as it is.
pub fn create_both(
    public: (&Path, &[u8]),
    key: (&Path, &[u8]),
) -> Result<(), (PathBuf, io::Error)> {
    let create = |(path, content): (&Path, &[u8]), mode| {
        create_durable(path, content, mode).map_err(|error| (path.to_owned(), error))
    };
    // The key first: the public file without its key is useless.
    create(key, SECRET_MODE)?;
    create(public, PUBLIC_MODE).inspect_err(|_| {
        // A leftover unused key is harmless, and the first error is more informative.
        let _ = fs::remove_file(key.0);
    })
}

//! Certificate and key files: read with a size limit, created once, never overwritten.

use guard::Writers;
use keying::{read_whole, sync_folder};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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
    #[error("{} cannot be read: {source}", .path.display())]
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

/// Reads a public file that one of these users has written.
pub(crate) fn read_public(path: &Path, by: &Writers) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    read(path, 0, by)
}

/// Reads a key file that one of these users has written. Rejects it if anyone but its owner may use
/// it.
pub(crate) fn read_secret(path: &Path, by: &Writers) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    read(path, SECRET_FORBIDDEN, by)
}

/// Reads the complete file into memory that is wiped when dropped and never reallocated.
fn read(path: &Path, forbidden: u32, by: &Writers) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    let not_read = |source| ReadError::NotRead {
        path: path.to_owned(),
        source,
    };
    let mut file = guard::open_regular(path).map_err(not_read)?;
    let metadata = file.metadata().map_err(not_read)?;
    if metadata.mode() & forbidden != 0 {
        return Err(ReadError::TooOpen {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
        });
    }
    by.check(path)?;
    read_whole(&mut file, BYTES_MAX).map_err(not_read)
}

/// Creates a certificate file and its key file durably: both, or neither.
pub(crate) fn create_both(
    certificate: (&Path, &[u8]),
    key: (&Path, &[u8]),
) -> Result<(), (PathBuf, io::Error)> {
    // The key first: a certificate without its key is useless.
    create(key.0, key.1, SECRET_MODE)?;
    create(certificate.0, certificate.1, PUBLIC_MODE).inspect_err(|_| {
        // A leftover unused key is harmless, and the first error is more informative.
        let _ = fs::remove_file(key.0);
    })
}

/// Creates a file that must not exist yet; removes it if writing fails.
fn create(path: &Path, content: &[u8], mode: u32) -> Result<(), (PathBuf, io::Error)> {
    let open = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    open.and_then(|mut file| {
        let written = file
            .write_all(content)
            .and_then(|()| file.sync_all())
            .and_then(|()| sync_folder(path));
        written.inspect_err(|_| {
            let _ = fs::remove_file(path);
        })
    })
    .map_err(|error| (path.to_owned(), error))
}

//! Program files.

use crate::BisectingError;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whether it is a file that somebody may execute.
pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// SHA-256 of a file, in hexadecimal digits.
pub(crate) fn digest(path: &Path) -> Result<String, BisectingError> {
    let mut hash = Sha256::new();
    File::open(path)
        .and_then(|mut file| io::copy(&mut file, &mut HashWriter(&mut hash)))
        .map_err(|error| BisectingError::io("read", path, error))?;
    Ok(base16ct::lower::encode_string(&hash.finalize()))
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

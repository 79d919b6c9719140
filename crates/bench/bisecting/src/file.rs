//! Program files.

use crate::BisectingError;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whether it is a file that somebody may execute.
pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// SHA-256 of a file, in hexadecimal digits.
pub(crate) fn digest(path: &Path) -> Result<String, BisectingError> {
    lab::programs::digest(path).map_err(|error| BisectingError::io("read", path, error))
}

//! The hash of this program's file: whether a host has the same file, and whether it arrived whole.

use crate::programs::digest;
use std::io;
use std::path::Path;
use testbed::protocol::THIS_PROGRAM;
use testbed::{LabError, Result};

/// Checks that the SHA-256 of this program's file, in hexadecimal, is that of the file sent.
///
/// # Errors
/// [`LabError::CannotBuild`] if the hash differs or the file cannot be read.
pub fn expect_whole(hash: &str) -> Result<()> {
    let help =
        "run it again; if it stays so, install the program there and name it in the lab: `program`";
    let what = match own_hash() {
        Ok(own) if own == hash => return Ok(()),
        Ok(_) => "this program did not arrive whole: its file has another SHA-256".to_owned(),
        Err(error) => format!("this program cannot read its own file: {error}"),
    };
    Err(LabError::cannot_build(what, help))
}

/// SHA-256 of this program, in hexadecimal.
pub(crate) fn own_hash() -> io::Result<String> {
    // The running file, although a newer build may have taken its name.
    digest(Path::new(THIS_PROGRAM))
}

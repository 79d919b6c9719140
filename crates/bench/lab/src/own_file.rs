//! The hash of this program's file: whether a host has the same file, and whether it arrived whole.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
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
    let mut file = File::open(THIS_PROGRAM)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            bytes => hasher.update(&buffer[..bytes]),
        }
    }
    let hash = hasher.finalize();
    Ok(base16ct::lower::encode_string(&hash))
}

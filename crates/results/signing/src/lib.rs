//! Signatures of runs, and the check that documents agree with their journal.
//!
//! A signed run has two more files: [`MANIFEST`], the SHA-256 of every file of its folder in the
//! format of `sha256sum`, and [`SIGNATURE`], an Ed25519 signature of that list in the format of
//! minisign. So a reader without this program verifies a run by `minisign -Vm SHA256SUMS -p KEY`
//! and `sha256sum --check SHA256SUMS`. What those two cannot verify, [`verify`] adds: it computes
//! every document from the journal again.

#![forbid(unsafe_code)]

mod figures;
mod key;
mod manifest;
mod signature;
mod words;

pub use figures::{Difference, DifferentLine};
pub use key::{KeyError, PublicKey, SecretKey, create_keys};
pub use manifest::{Changes, Manifest, ManifestError};
pub use signature::{Signature, Signed, Verified, sign, verify};

use std::io;
use std::path::PathBuf;

/// The list of a run's files with their SHA-256.
pub const MANIFEST: &str = "SHA256SUMS";

/// The signature of [`MANIFEST`].
pub const SIGNATURE: &str = "SHA256SUMS.minisig";

/// Why a run cannot be signed, or its signature not be verified.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] journal::JournalError),
    /// The list of files cannot be made or read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The journal ends in the middle of a record, or has other faults that reports warn of.
    #[error(
        "the journal is damaged: {warning}\nhelp: `cipherbench resume {run}` measures again what is \
             lost; then sign"
    )]
    Damaged {
        /// Folder of the run.
        run: String,
        /// The first warning.
        warning: String,
    },
    /// The signature file is not one.
    #[error("{} is no signature of minisign: {reason}\nhelp: take the file from its source again, or sign anew by \
             `cipherbench sign RUN --force`", path.display())]
    NotASignature {
        /// Its path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The key cannot sign.
    #[error("cannot sign: {reason}")]
    NotSigned {
        /// The reason.
        reason: String,
    },
    /// A document does not agree with the journal.
    #[error("{difference}\nhelp: `cipherbench report {run}` writes it anew; then sign")]
    Stale {
        /// Folder of the run.
        run: String,
        /// The first difference.
        difference: Difference,
    },
    /// There is a signature already.
    #[error("the run is signed already: {}\nhelp: `--force` replaces the signature", path.display())]
    SignedAlready {
        /// The signature's path.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}\nhelp: check the folder's owner, mode and free space", path.display())]
    File {
        /// Verb: `read` or `write`.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

//! Errors of key files and PPK files.

use std::io::{
    self,
    ErrorKind::{AlreadyExists, NotFound},
};
use std::path::PathBuf;

/// Why static keys or PPKs cannot be created, opened or stored. No message contains any part of a
/// secret.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The key file cannot be read.
    #[error("key file {} cannot be read: {source}{}", .path.display(), hint(.source,
        NotFound, " (make a pair: cipherbench keys static A B)"))]
    NotRead {
        /// The key file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process, or this one, has the key file open.
    #[error(
        "key file {} is in use: one process at a time may send under its keys (give each encryptor a \
         file of its own)",
        .path.display()
    )]
    InUse {
        /// The key file.
        path: PathBuf,
    },
    /// Users other than its owner have access that only the owner should have.
    #[error("{} has mode {mode:04o}: others than its owner may {may} it (chmod 600 {})",
        .path.display(), .path.display())]
    TooOpen {
        /// The file.
        path: PathBuf,
        /// Its mode bits.
        mode: u32,
        /// The access that others have.
        may: &'static str,
    },
    /// Others could have written a file, or could replace it.
    #[error(transparent)]
    Insecure(#[from] guard::Insecure),
    /// The file that keeps other processes from the key file cannot be locked.
    #[error(
        "lock file {} cannot be used: {source}; without it two processes could repeat nonces, so its \
         folder must be writable",
        .path.display()
    )]
    NotLocked {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another program has replaced or changed a file of a key that is in use.
    #[error(
        "{} was replaced or changed while it is in use: nonces could repeat, so no epoch is drawn \
         (restart this process, which then reads it again, and exclude the key file and the files next to \
         it from copying programs)",
        .path.display()
    )]
    Replaced {
        /// The key file, its epoch file or its lock file.
        path: PathBuf,
    },
    /// The key file has a second name, under which its epochs would restart.
    #[error(
        "key file {} has {links} hard links: nonces could repeat (remove the other links)",
        .path.display()
    )]
    Linked {
        /// The key file.
        path: PathBuf,
        /// Its number of names.
        links: u64,
    },
    /// A file has invalid content.
    #[error("{}:{line}: {what}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The mistake, and the expected form.
        what: String,
    },
    /// The PPK file cannot be read.
    #[error("PPK file {} cannot be read: {source}{}", .path.display(), hint(.source,
        NotFound, " (make one for both sides: cipherbench keys ppk FILE FILE2)"))]
    PpkNotRead {
        /// The PPK file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The used epochs are unknown.
    #[error(
        "epoch file {} cannot be read: {source}; without it nonces could repeat, so the keys are not \
         used (make a new pair: cipherbench keys static A B)",
        .path.display()
    )]
    EpochNotRead {
        /// The epoch file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The use of an epoch cannot be recorded.
    #[error(
        "epoch file {} cannot be written: {source}; without that nonces could repeat after a restart, \
         so its folder must be writable and have room",
        .path.display()
    )]
    EpochNotWritten {
        /// The epoch file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The key file has used its last epoch.
    #[error(
        "key file {} has used its last epoch, {}: it needs to be replaced (make a new pair: \
         cipherbench keys static A B)",
        .path.display(), crate::EPOCH_MAX
    )]
    EpochsUsedUp {
        /// The key file.
        path: PathBuf,
    },
    /// A new key file cannot be created.
    #[error("{} cannot be created: {source}{}", .path.display(), hint(.source, AlreadyExists,
        " (keys are never overwritten: move it away or choose another name)"))]
    NotCreated {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gives no random bytes, so no secret can be generated")]
    NoRandomness,
}

fn hint(error: &io::Error, kind: io::ErrorKind, hint: &'static str) -> &'static str {
    if error.kind() == kind { hint } else { "" }
}

//! Signing a run, and verifying its signature.

use crate::figures::differences;
use crate::key::number;
use crate::manifest::{BYTES_MAX, Changes};
use crate::{Difference, MANIFEST, Manifest, PublicKey, SIGNATURE, SecretKey, SigningError};
use guard::visible;
use minisign::SignatureBox;
use report::{CSV_NAME, HTML_NAME, JSON_NAME, MARKDOWN_NAME, Report};
use std::fs;
use std::io::{self, Cursor, ErrorKind, Write};
use std::path::Path;

/// The longest signature file that is read; one has four lines.
const SIGNATURE_BYTES_MAX: usize = 16 * 1024;
/// The files that a signature must cover.
const NEEDED: [&str; 5] = [
    journal::FILE_NAME,
    JSON_NAME,
    HTML_NAME,
    MARKDOWN_NAME,
    CSV_NAME,
];

/// The result of signing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Number of files.
    pub files: usize,
    /// Number of the key, as minisign prints it.
    pub key: String,
    /// Trials of the plan that are not in the journal: `resume` would make the signature invalid.
    pub not_run: u64,
}

/// The result of verifying a run. Nothing here trusts the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Documents that do not agree with the journal.
    pub differences: Vec<Difference>,
    /// Warnings of the journal.
    pub warnings: Vec<String>,
    /// The state of the signature.
    pub signature: Signature,
}

/// The state of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signature {
    /// The run is not signed.
    None,
    /// There is one, and no key to verify it with.
    NotVerified {
        /// Number of the key that it names.
        key: String,
    },
    /// It is not by the key that was given, or not of this list of files.
    Wrong {
        /// Number of the key that it names.
        key: String,
        /// The reason.
        reason: String,
    },
    /// The list of files was signed by the key that was given.
    Good {
        /// Number of the key.
        key: String,
        /// Words that are signed with the list: run, time and program.
        comment: String,
        /// Number of files in the list.
        files: usize,
        /// How the files of the folder differ from the list.
        changes: Changes,
        /// Needed files that the list does not have.
        not_covered: Vec<&'static str>,
    },
}

impl Verified {
    /// Returns whether the documents agree with the journal and, with a key, its owner signed
    /// all of it.
    #[must_use]
    pub fn is_good(&self, with_key: bool) -> bool {
        let documents = self.differences.is_empty() && self.warnings.is_empty();
        let signature = match &self.signature {
            Signature::None => !with_key,
            // A signature that nobody verified proves nothing.
            Signature::NotVerified { .. } | Signature::Wrong { .. } => false,
            Signature::Good {
                changes,
                not_covered,
                ..
            } => {
                // Further files were not signed, and no signed file refers to them.
                changes.changed.is_empty() && changes.missing.is_empty() && not_covered.is_empty()
            }
        };
        documents && signature
    }
}

/// Signs a run whose documents agree with its journal. `comment` is signed too.
///
/// # Errors
/// [`SigningError`]; then nothing is written, or only [`MANIFEST`].
pub fn sign(
    dir: &Path,
    key: &SecretKey,
    comment: &str,
    replace: bool,
) -> Result<Signed, SigningError> {
    let path = dir.join(SIGNATURE);
    // A signature of somebody else would be lost.
    if !replace && path.exists() {
        return Err(SigningError::SignedAlready { path });
    }
    let journal = journal::read(dir)?;
    let run = dir.display().to_string();
    if let Some(warning) = journal.warnings.first() {
        let warning = warning.to_string();
        return Err(SigningError::Damaged { run, warning });
    }
    let report = Report::of(&journal);
    let not_run = report.progress().trials_not_run;
    // The signer vouches for the figures as well: a report that was edited is not signed.
    if let Some(difference) = differences(dir, report)?.into_iter().next() {
        return Err(SigningError::Stale { run, difference });
    }
    let manifest = Manifest::of(dir)?;
    let text = manifest.text();
    let untrusted = format!("of {MANIFEST} by the key {}", key.number());
    let signature = minisign::sign(
        None,
        &key.key,
        Cursor::new(text.as_bytes()),
        Some(comment),
        Some(&untrusted),
    );
    let signature = signature.map_err(|error| SigningError::NotSigned {
        reason: error.to_string(),
    })?;
    // An old signature would not verify the new list.
    if let Err(error) = fs::remove_file(&path)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(file("write", &path, error));
    }
    write(&dir.join(MANIFEST), text.as_bytes())?;
    write(&path, signature.to_string().as_bytes())?;
    Ok(Signed {
        files: manifest.len(),
        key: key.number(),
        not_run,
    })
}

/// Computes a run's documents again and, with a key, verifies its signature.
///
/// # Errors
/// If a file cannot be read, or is no list of files or no signature.
pub fn verify(dir: &Path, key: Option<&PublicKey>) -> Result<Verified, SigningError> {
    let journal = journal::read(dir)?;
    Ok(Verified {
        differences: differences(dir, Report::of(&journal))?,
        warnings: journal.warnings.iter().map(ToString::to_string).collect(),
        signature: signature(dir, key)?,
    })
}

fn signature(dir: &Path, key: Option<&PublicKey>) -> Result<Signature, SigningError> {
    let path = dir.join(SIGNATURE);
    let text = match guard::read_text(&path, SIGNATURE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Signature::None),
        Err(error) => return Err(file("read", &path, error)),
    };
    let not_one = |reason: String| SigningError::NotASignature {
        path: path.clone(),
        reason,
    };
    let found = SignatureBox::from_string(&text).map_err(|error| not_one(error.to_string()))?;
    let number = number(found.keynum());
    let Some(key) = key else {
        return Ok(Signature::NotVerified { key: number });
    };
    let list = dir.join(MANIFEST);
    let text = guard::read_text(&list, BYTES_MAX).map_err(|error| file("read", &list, error))?;
    // Quiet and without a copy of the data: the caller prints the result. Signatures of the legacy
    // form, without a hash, are not accepted: `sign` makes none.
    let verified = minisign::verify(
        &key.key,
        &found,
        Cursor::new(text.as_bytes()),
        true,
        false,
        false,
    );
    if let Err(error) = verified {
        // The number is not signed and only explains: a forger can write any.
        let reason = if key.number() == number {
            format!(
                "it is not of this {MANIFEST}: one of the two was changed, or is of another run ({error})"
            )
        } else {
            format!("the key given is {}", key.number())
        };
        return Ok(Signature::Wrong {
            key: number,
            reason,
        });
    }
    let comment = found.trusted_comment();
    let comment = comment.map_err(|error| not_one(error.to_string()))?;
    // Parsed only now: nothing of an unverified list is used.
    let signed = Manifest::parse(&text)?;
    Ok(Signature::Good {
        key: number,
        // Signed, but perhaps by somebody with another program: it goes to a terminal.
        comment: visible(&comment).into_owned(),
        files: signed.len(),
        changes: signed.changes(&Manifest::of(dir)?),
        // Else any list by the same key, such as that for a release, would pass with a run next to
        // it: its files are only further ones then.
        not_covered: NEEDED
            .into_iter()
            .filter(|name| !signed.has(name))
            .collect(),
    })
}

fn write(path: &Path, content: &[u8]) -> Result<(), SigningError> {
    let written = guard::replace(path, |file| file.write_all(content));
    written.map_err(|error| file("write", path, error))
}

fn file(action: &'static str, path: &Path, source: io::Error) -> SigningError {
    SigningError::File {
        action,
        path: path.to_owned(),
        source,
    }
}

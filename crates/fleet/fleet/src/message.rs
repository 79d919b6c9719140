//! The entries of the server's buckets, as JSON.

use crate::error::FleetError;
use crate::progress::Progress;
use guard::{Component, RelativePath};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Version of these entries. A program refuses a server with another version.
pub const SCHEMA: u32 = 3;

/// The longest id, in bytes: [`new_id`](crate::new_id) makes 20, and the number of a period adds
/// some.
const ID_BYTES_MAX: usize = 100;

/// A campaign to be measured once, in one lab. Never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Unique; jobs sort by it as they were submitted.
    pub id: String,
    /// Name of the campaign's file, for people.
    pub name: String,
    /// The campaign file's text.
    pub campaign: String,
    /// Measure the campaign's short form.
    pub quick: bool,
    /// The labs that it may run in.
    pub selector: Selector,
    /// Higher ones come first.
    pub priority: i32,
    /// What distinguishes it, such as the firmware: `firmware` to `2.1`.
    pub labels: BTreeMap<String, String>,
    /// Who submitted it, as claimed by the submitter.
    pub by: String,
    /// The period of a repeated job, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// The number of the period of one repetition; its id ends with this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// A signature by a user's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

impl Job {
    /// Returns the repetition of this job in a period.
    #[must_use]
    pub fn in_period(&self, period: u64) -> Self {
        Self {
            id: format!("{}-{period:06}", self.id),
            period: Some(period),
            ..self.clone()
        }
    }

    /// Returns the id without the number of the period: the id of the repeated job.
    pub(crate) fn repeat_id(&self) -> &str {
        let Some(period) = self.period.filter(|_| self.every.is_some()) else {
            return &self.id;
        };
        let end = format!("-{period:06}");
        // An id without it is not trusted further: `objection_to_terms` refuses it.
        self.id.strip_suffix(&end).unwrap_or(&self.id)
    }
}

/// Version of the signed bytes. Signatures of version 1 named neither a fleet nor a validity.
pub const SIGNATURE_VERSION: u32 = 2;

/// A signature of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// [`SIGNATURE_VERSION`]; 0 in entries of an earlier version, which lack the field.
    #[serde(default)]
    pub version: u32,
    /// The conditions for running the job.
    #[serde(default)]
    pub terms: Terms,
    /// The user's public key.
    pub key: String,
    /// Ed25519, in hexadecimal.
    pub signature: String,
}

/// The conditions that are signed together with a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The id of the only fleet that runs the job ([`Fleet::id`](crate::Fleet::id)).
    pub fleet: String,
    /// When it was signed, by the submitter's clock, in seconds since 1970.
    pub signed_at: u64,
    /// When it expires, in seconds since 1970: it is not run from then on.
    pub expires_at: u64,
    /// The number of periods of a repeated job, including the first; otherwise 1.
    pub periods: u64,
}

/// The labs that a job may run in: all that match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector {
    /// This lab only.
    pub lab: Option<String>,
    /// Labels that the lab must have.
    pub labels: BTreeMap<String, String>,
}

impl Selector {
    /// Returns the first requirement that a lab does not meet.
    #[must_use]
    pub fn misfit(&self, offer: &LabOffer) -> Option<String> {
        if let Some(lab) = self.lab.as_ref().filter(|lab| **lab != offer.lab) {
            return Some(format!("it asks for lab {lab}"));
        }
        let unmet = |(key, wanted): (&String, &String)| match offer.labels.get(key) {
            Some(found) if found == wanted => None,
            Some(found) => Some(format!(
                "it asks for {key}={wanted}, and the lab has {found}"
            )),
            None => Some(format!(
                "it asks for {key}={wanted}, and the lab has no {key}"
            )),
        };
        // The first reason is enough: a job fits a lab or it does not.
        self.labels.iter().find_map(unmet)
    }
}

/// A job's state. Each change is a swap by revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum State {
    /// No agent has it.
    Queued {
        /// Times that a run of it began and did not end.
        attempts: u32,
        /// The job's priority.
        #[serde(default)]
        priority: i32,
    },
    /// An agent runs it. Only that agent resumes it, and no other begins it, even if the agent is
    /// gone.
    Running(Assignment),
    /// It ended; its run is in the archive.
    Done {
        /// The lab and the agent that ran it.
        held: Assignment,
        /// The program's exit code: 0, 1 or 5, which come with figures.
        exit: i32,
    },
    /// It ended without a run: the campaign or the lab is wrong, or it ended its agent each time.
    Parked {
        /// The reason.
        reason: String,
    },
    /// Somebody cancelled it.
    Cancelled,
}

impl State {
    /// Whether nothing more will happen.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Done { .. } | Self::Parked { .. } | Self::Cancelled
        )
    }

    /// Returns the state in one word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Running(_) => "running",
            Self::Done { .. } => "done",
            Self::Parked { .. } => "parked",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The lab and the agent that hold a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The lab.
    pub lab: String,
    /// The agent's lasting identity.
    pub agent: String,
    /// Number of this attempt, from 1.
    pub attempt: u32,
}

/// A lab that an agent offers: the agent's lease of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabOffer {
    /// Its name, from its file.
    pub lab: String,
    /// The agent's lasting identity: of this machine and folder.
    pub agent: String,
    /// A random word for this start of the agent, so that no two starts write equal entries.
    pub incarnation: String,
    /// Machine, kernel, cores, and the labels in the agent's file.
    pub labels: BTreeMap<String, String>,
    /// The job that runs there. While there is one, no other agent takes the lab.
    pub job: Option<String>,
    /// Whether a job waits until another lab of the machine was measured.
    #[serde(default, skip_serializing_if = "is_false")]
    pub waits: bool,
    /// The progress of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Renewals so far: an entry that changes is alive.
    pub beats: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Whether it is an id as [`new_id`](crate::new_id) makes them. Folders are named after ids.
#[must_use]
pub fn is_id(id: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-';
    id.len() <= ID_BYTES_MAX && id.chars().all(is_fine) && Component::new(id).is_ok()
}

/// Files of one run in the archive.
const RUN_FILES_MAX: usize = 10_000;
/// Bytes of one run in the archive.
const RUN_BYTES_MAX: u64 = 8 << 30;
/// Hexadecimal digits of a SHA-256.
const SHA256_DIGITS: usize = 64;

/// A run in the archive: its files by content.
///
/// Anyone with an agent's key may have written it. Names are checked when it is deserialized, sizes
/// by [`check`](Self::check).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The job's id.
    pub job: String,
    /// Name of the run's folder.
    pub run: Component,
    /// Every file, by path.
    pub files: Vec<RunFile>,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// Within the run's folder.
    pub path: RelativePath,
    /// In bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal: its name in the archive.
    pub sha256: String,
}

impl Manifest {
    /// Total size of the files in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sizes = self.files.iter().map(|file| file.bytes);
        sizes.fold(0, u64::saturating_add)
    }

    /// Checks that it is the run of this job, within the bounds of an archived run.
    ///
    /// # Errors
    /// [`FleetError::Unfit`] with the reason.
    pub fn check(&self, job: &str) -> Result<(), FleetError> {
        let fault = self.fault(job);
        fault.map_or(Ok(()), |reason| {
            Err(FleetError::Unfit {
                what: format!("the run of job {}", guard::visible(job)),
                reason,
            })
        })
    }

    fn fault(&self, job: &str) -> Option<String> {
        if self.job != job {
            return Some(format!("its list is that of job {:?}", self.job));
        }
        // Before the loop: anyone with an agent's key may have written the list.
        if self.files.len() > RUN_FILES_MAX {
            let count = self.files.len();
            return Some(format!("it has {count} files of at most {RUN_FILES_MAX}"));
        }
        if self.bytes() > RUN_BYTES_MAX {
            let bytes = self.bytes();
            return Some(format!("it has {bytes} bytes of at most {RUN_BYTES_MAX}"));
        }
        let is_digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        let mut paths = BTreeSet::new();
        for RunFile { path, sha256, .. } in &self.files {
            if sha256.len() != SHA256_DIGITS || !sha256.bytes().all(is_digit) {
                return Some(format!("{path} has no SHA-256 but {sha256:?}"));
            }
            // The second one could not be created.
            if !paths.insert(path) {
                return Some(format!("it has {path} twice"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_no_other_folder() {
        assert!(is_id(&crate::new_id()));
        for id in ["", ".", "..", "../x", "a/b", "/x", ".x", &"x".repeat(101)] {
            assert!(!is_id(id), "{id}");
        }
    }
}

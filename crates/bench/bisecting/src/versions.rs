//! Versions of a device: revisions of a repository, programs, or sets of settings.

use crate::BisectingError;
use crate::file::{digest, is_program};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use units::human::counted;

/// Digits of a revision in texts: no repository has two revisions with the same ones.
const COMMIT_DIGITS: usize = 12;

/// A version of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Version {
    /// A revision of a git repository.
    Revision {
        /// Its hash.
        commit: String,
        /// The first line of its message.
        subject: String,
    },
    /// A program.
    Program {
        /// Its path.
        path: String,
        /// SHA-256 of the file when the bisection began, in hexadecimal digits.
        sha256: String,
    },
    /// A set of the campaign's settings.
    Settings {
        /// Its name.
        name: String,
        /// The DUT of the campaign that has it.
        dut: String,
        /// The settings in words.
        settings: String,
    },
}

impl Version {
    /// Its name in a sentence: the beginning of its hash, the path, or the name of the set.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Revision { commit, .. } => commit.get(..COMMIT_DIGITS).unwrap_or(commit),
            Self::Program { path, .. } => path,
            Self::Settings { name, .. } => name,
        }
    }

    /// Its name with its subject or settings.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Revision { subject, .. } => format!("{} {subject}", self.name()),
            Self::Program { path, .. } => path.clone(),
            Self::Settings { name, settings, .. } => format!("{name}: {settings}"),
        }
    }

    /// The word for versions of its kind.
    pub(crate) const fn noun(&self) -> &'static str {
        match self {
            Self::Revision { .. } => "revision",
            Self::Program { .. } => "program",
            Self::Settings { .. } => "set",
        }
    }
}

/// The given programs as versions, in their order.
pub(crate) fn programs(paths: &[PathBuf]) -> Result<Vec<Version>, BisectingError> {
    if paths.len() < 2 {
        return Err(BisectingError::mistake(
            format!("a bisection of {}", counted(paths.len() as u64, "program")),
            "name at least two programs, the good one first and the bad one last: `--programs good,bad`",
        ));
    }
    paths.iter().map(|path| program(path)).collect()
}

fn program(path: &Path) -> Result<Version, BisectingError> {
    let help = "name programs that exist and can be executed";
    // The bisection may be resumed in another folder, and a link may lead elsewhere by then.
    let absolute = path.canonicalize().map_err(|error| BisectingError::Io {
        action: "find the program",
        path: path.to_owned(),
        error,
        help,
    })?;
    if !is_program(&absolute) {
        let problem = format!("{} is not a file that can be executed", path.display());
        return Err(BisectingError::mistake(problem, help));
    }
    // A journal has texts.
    let Some(text) = absolute.to_str() else {
        let problem = format!("the path {} is not UTF-8", path.display());
        return Err(BisectingError::mistake(
            problem,
            "rename the file or its folder",
        ));
    };
    Ok(Version::Program {
        path: text.to_owned(),
        sha256: digest(&absolute)?,
    })
}

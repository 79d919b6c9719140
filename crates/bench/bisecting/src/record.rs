//! The records of a bisection, in `bisect.jsonl`, with the checksums of a journal.

use crate::{Question, Version};
use bisect::{Config, Entry, Test};
use journal::record::{Environment, TrialRecord};
use plan::Plan;
use serde::{Deserialize, Serialize};

/// Name of the records in the folder of a bisection.
pub const FILE_NAME: &str = "bisect.jsonl";

/// Version of this format.
pub(crate) const FORMAT: u32 = 2;

/// A record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "record")]
pub(crate) enum Record {
    /// The first one.
    Header(Box<Header>),
    /// A lab is up: at the beginning, and after each resume.
    Opened {
        at_unix_ns: u64,
        /// Version and revision of this program.
        program: String,
        environment: Box<Environment>,
    },
    /// A version has its program; with sets of settings, the program of all of them.
    Built {
        version: usize,
        #[serde(flatten)]
        made: Made,
    },
    /// A trial, also one without a figure.
    Trial {
        version: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        figure: Option<f64>,
        /// Key of the figure's quantity; empty without one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        quantity: String,
        /// `None` if no bench made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trial: Option<Box<TrialRecord>>,
    },
    /// An answer to the bisection.
    Answer {
        test: Test,
        answer: Entry,
        /// Why a version was skipped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The run of all cells of the device begins, in this sub-folder.
    Others { run: String },
    /// The bisection has ended.
    End { at_unix_ns: u64 },
}

/// The beginning of a bisection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: u32,
    pub(crate) started_unix_ns: u64,
    /// Command line, word by word.
    pub(crate) command: Vec<String>,
    /// Version and revision of this program.
    pub(crate) program: String,
    pub(crate) config: Config,
    pub(crate) question: Question,
    /// From the good to the bad end.
    pub(crate) versions: Vec<Version>,
    /// How revisions are built; `None` for programs and settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) build: Option<BuildPlan>,
    /// Repeats of all cells of the device for the changed version and the one before; 0: not
    /// measured.
    pub(crate) repeats: u32,
    /// The campaign.
    pub(crate) plan: Plan,
}

/// How revisions are built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BuildPlan {
    /// Top folder of the repository.
    pub(crate) repository: String,
    /// For a shell.
    pub(crate) command: String,
    /// The program's path in the tree.
    pub(crate) program: String,
    pub(crate) limit_ns: u64,
    /// Folder of built programs.
    pub(crate) cache: String,
}

/// How a program was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// SHA-256 of the file, in hexadecimal digits.
    pub(crate) sha256: String,
    /// Whether it was in the cache.
    pub(crate) was_cached: bool,
    /// Time of the build.
    pub(crate) duration_ns: u64,
}

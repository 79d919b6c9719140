//! Errors of a session.

use journal::JournalError;
use lab::host::tuning::TuneError;
use report::WriteError;
use std::io;
use std::path::PathBuf;
use testbed::LabError;
use yaml::Mistakes;
use yaml::names::question;

/// Error of a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Mistakes in files.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// The lab cannot be built, or is lost.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The journal cannot be read or begun.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A document cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// This machine cannot be tuned.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The campaign has no key `quick`.
    #[error(
        "this campaign has no short form\nhelp: write one as its key `quick` (docs/campaign.md), or leave `--quick` \
         out; `--repeats 1` shortens any campaign"
    )]
    NoShortForm,
    /// Neither a file nor a built-in name.
    #[error(
        "no {kind} `{name}` is built in, and there is no such file\nhelp: {}`cipherbench examples` lists what is built \
         in; others are files, such as {example}",
        question(nearest.as_deref())
    )]
    UnknownName {
        /// A campaign or a lab.
        kind: &'static str,
        /// The given name.
        name: String,
        /// The name or file that was most likely meant.
        nearest: Option<String>,
        /// A path that exists in the source tree.
        example: &'static str,
    },
    /// There is no such file, but one of a similar name.
    #[error("there is no file {}\nhelp: {}", path.display(), question(Some(nearest.as_str())).trim_end())]
    NoFile {
        /// The given path.
        path: PathBuf,
        /// The name or file that was most likely meant.
        nearest: String,
    },
    /// No shipped campaign or lab has this name.
    #[error(
        "no shipped campaign or lab is named `{name}`\nhelp: {}`cipherbench examples` lists them",
        question(nearest.as_deref())
    )]
    UnknownExample {
        /// The given name.
        name: String,
        /// The name that was most likely meant.
        nearest: Option<String>,
    },
    /// The folder of runs cannot be read.
    #[error("cannot read the folder of runs {}: {error}\nhelp: {}", path.display(), help)]
    Runs {
        /// The folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
        /// The remedy.
        help: String,
    },
    /// The permissions file cannot be read.
    #[error(
        "cannot read {path}: {error}\nhelp: write what campaigns may run as lines, such as `up: ssh admin@192.0.2.1 \
         reload`; an empty file allows nothing",
        path = path.display()
    )]
    Permissions {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Programs that the run needs are missing.
    #[error("{0}")]
    MissingPrograms(String),
    /// A program that the campaign names cannot be built or used.
    #[error("{0}")]
    Program(String),
    /// The path of this program is unknown.
    #[error("cannot find this program's own path: {0}")]
    NoProgramPath(io::Error),
    /// A document of a new run cannot be written.
    #[error(
        "cannot write {path}: {error}\nhelp: nothing was measured yet, and the run's folder is removed; make room, or \
         name another place with `--out`",
        path = path.display()
    )]
    NoRoom {
        /// The document.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The journal's plan could not come from files.
    #[error(
        "{path}: the plan has what no campaign or lab file can have: {mistake}\nhelp: the journal was changed; run the \
         campaign again",
        path = path.display()
    )]
    ChangedPlan {
        /// The journal.
        path: PathBuf,
        /// The mistake.
        mistake: String,
    },
    /// The user did not begin the run here, and does not trust its commands.
    #[error(
        "{0}help: if you trust whoever wrote this journal, resume it with `--trust`; nothing was run"
    )]
    NotTrusted(String),
    /// The journal cannot be written any more, and recorded trials are kept.
    #[error(transparent)]
    JournalLost(JournalError),
    /// The run ended before its last trial.
    #[error("{0}")]
    Interrupted(String),
    /// The lab has no path with offloads.
    #[error(
        "this lab {0}\nhelp: `doctor --offloads` examines labs of kind `namespaces`, and two hosts that a cable joins"
    )]
    NoOffloads(String),
    /// A host did not answer.
    #[error("{host}: `cipherbench doctor` there failed: {reason}\nhelp: run it on that host")]
    NoAnswer {
        /// The host.
        host: String,
        /// The end of its error output.
        reason: String,
    },
}

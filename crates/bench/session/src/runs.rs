//! Recorded runs: their list, and the removal of old ones.
//!
//! The list reads of each run what it prints: the beginning and the end of the journal, the
//! beginning of the report, the sizes of the files. Only the journal of a run that has not ended is
//! read as a whole, to count its trials.

mod look;
mod prune;
mod watched;

pub use prune::{Rule, remove, select};
pub use watched::Watched;

use crate::error::SessionError;
use crate::listing::{self, Entry, shown};
use journal::DEFAULT_ROOT;
pub use look::devices;
use look::look;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use units::human;
use yaml::names;

/// A run in a list.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Name of its folder.
    pub name: String,
    /// Its folder.
    #[serde(serialize_with = "written")]
    pub path: PathBuf,
    /// Start, ISO 8601; `None` if the journal does not have it.
    started_utc: Option<String>,
    /// Start, in nanoseconds since the Unix epoch.
    #[serde(skip)]
    started_unix_ns: Option<u64>,
    /// Name of its campaign.
    campaign: Option<String>,
    /// Its title.
    title: Option<String>,
    /// Its state.
    #[serde(flatten)]
    state: State,
    /// Size of all files in its folder.
    bytes: u64,
    /// The run in a sentence, as its report has it.
    headline: Option<String>,
    /// When its journal was changed last.
    #[serde(skip)]
    changed: SystemTime,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
enum State {
    /// It has ended.
    Finished,
    /// It has not ended, and no process continues it.
    Interrupted { trials: usize, planned: usize },
    /// A process writes its journal.
    Running { trials: usize, planned: usize },
    /// The journal cannot be read.
    Damaged { problem: String },
}

/// The columns of the list.
const HEADINGS: [&str; 5] = ["Run", "Began (UTC)", "State", "Size", "Result"];
/// Lines of a result in the list.
const RESULT_LINES: usize = 2;

/// Returns the runs in a folder, the newest first. Links are not followed, and other folders are
/// left out.
///
/// # Errors
/// When the folder cannot be read.
pub fn list(root: &Path) -> Result<Vec<Run>, SessionError> {
    list_by(root, look)
}

/// As [`list`]; `look` looks at a folder.
fn list_by(root: &Path, look: impl FnMut(&Path) -> Option<Run>) -> Result<Vec<Run>, SessionError> {
    // The default folder is made by the first run, so that its absence is no mistake.
    if root == Path::new(DEFAULT_ROOT) && !root.exists() {
        return Ok(Vec::new());
    }
    fs::read_dir(root).map_err(|error| SessionError::Runs {
        path: root.to_owned(),
        help: help(root, error.kind()),
        error,
    })?;
    let folders = folders(root);
    let looked = folders.iter().map(PathBuf::as_path).filter_map(look);
    let mut runs: Vec<Run> = looked.collect();
    runs.sort_by_cached_key(|run| Reverse((run.started_unix_ns, run.name.clone())));
    Ok(runs)
}

fn help(root: &Path, kind: ErrorKind) -> String {
    let commands = ["open", "prune"];
    let nearest = root
        .to_str()
        .and_then(|name| names::nearest(name, commands));
    match nearest {
        Some(command) if kind == ErrorKind::NotFound => {
            let command = format!("cipherbench runs {command}");
            names::question(Some(&command)).trim_end().to_owned()
        }
        _ => format!("name the folder that `--out` named; the default is {DEFAULT_ROOT}"),
    }
}

/// Returns the folders of the runs in a folder, the newest first, without a look into them.
#[must_use]
pub fn paths(root: &Path) -> Vec<PathBuf> {
    let mut paths = folders(root);
    // Names begin with the time of the run.
    paths.sort_by(|a, b| b.file_name().cmp(&a.file_name()));
    paths
}

/// The folders in a folder that have a journal.
pub(crate) fn folders(root: &Path) -> Vec<PathBuf> {
    let here = root.as_os_str().is_empty();
    let entries = fs::read_dir(if here { Path::new(".") } else { root });
    let entries = entries.into_iter().flatten().flatten();
    // The type of the entry itself: a link to a folder is none.
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let paths = folders.map(|entry| root.join(entry.file_name()));
    paths
        .filter(|path| is_file(&path.join(journal::FILE_NAME)))
        .collect()
}

/// Whether there is a regular file, and not a link to one.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_file())
}

/// Returns the list of runs for a terminal of `width` columns.
#[must_use]
pub fn text(root: &Path, runs: &[Run], width: usize) -> String {
    if runs.is_empty() {
        return format!("no runs in {}\n", root.display());
    }
    let entries: Vec<Entry> = runs.iter().map(Run::entry).collect();
    listing::write(&HEADINGS, &entries, RESULT_LINES, width)
}

/// Writes a path that may not be UTF-8, which JSON cannot express.
fn written<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Returns the list of runs as JSON.
///
/// # Panics
/// Never: plain data with string keys has a JSON form.
#[must_use]
pub fn json(runs: &[Run]) -> String {
    let list = serde_json::json!({ "runs": runs });
    serde_json::to_string_pretty(&list).expect("a list can be written as JSON") + "\n"
}

impl Run {
    /// Returns the size of all files in its folder.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns its start in UTC, to the minute: the folder's name has the seconds. Empty if the
    /// journal does not have it.
    #[must_use]
    pub fn began(&self) -> String {
        let began = self.started_utc.as_deref().unwrap_or_default();
        let began = began.get(..16).map(|it| it.replace('T', " "));
        began.unwrap_or_default()
    }

    /// Returns its state in words.
    #[must_use]
    pub fn state(&self) -> String {
        self.state.in_words()
    }

    /// Returns its finding, otherwise its title; of a damaged run the problem.
    #[must_use]
    pub fn result(&self) -> &str {
        let result = match &self.state {
            State::Damaged { problem } => Some(problem),
            _ => self.headline.as_ref().or(self.title.as_ref()),
        };
        result.map_or("", String::as_str)
    }

    /// Returns the name of its campaign; `None` if the journal does not have it.
    #[must_use]
    pub fn campaign(&self) -> Option<&str> {
        self.campaign.as_deref()
    }

    /// Whether a process writes its journal.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Whether its journal cannot be read.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        matches!(self.state, State::Damaged { .. })
    }

    fn entry(&self) -> Entry {
        Entry {
            columns: vec![
                shown(&self.name),
                self.began(),
                self.state(),
                human::data(self.bytes as f64),
            ],
            text: shown(self.result()),
        }
    }
}

impl State {
    fn in_words(&self) -> String {
        match self {
            Self::Finished => "finished".to_owned(),
            Self::Interrupted { trials, planned } => {
                format!("interrupted: {trials} of {planned} trials")
            }
            Self::Running { trials, planned } => format!("running: {trials} of {planned} trials"),
            Self::Damaged { .. } => "damaged".to_owned(),
        }
    }
}

//! A folder of runs that is listed again and again.

use super::look::look;
use super::{Run, State, list_by};
use crate::error::SessionError;
use report::MARKDOWN_NAME;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder of runs of which only those that may have changed are read again.
#[derive(Debug)]
pub struct Watched {
    root: PathBuf,
    seen: HashMap<PathBuf, (Stamp, Run)>,
}

/// What changes with a run: size and time of its journal, time of its report.
type Stamp = [Option<(u64, SystemTime)>; 2];

impl Watched {
    /// Watches a folder; reads nothing yet.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            seen: HashMap::new(),
        }
    }

    /// Returns the folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns its runs, as [`list`](super::list) does.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&mut self) -> Result<Vec<Run>, SessionError> {
        let mut seen = std::mem::take(&mut self.seen);
        list_by(&self.root, |dir| {
            let stamp = stamp(dir);
            let known = seen.remove(dir).filter(|(before, _)| *before == stamp);
            let run = match known {
                Some((_, run)) => run,
                None => look(dir)?,
            };
            // Others may begin or end without a change of their files.
            if matches!(run.state, State::Finished | State::Damaged { .. }) {
                self.seen.insert(dir.to_owned(), (stamp, run.clone()));
            }
            Some(run)
        })
    }
}

fn stamp(dir: &Path) -> Stamp {
    [journal::FILE_NAME, MARKDOWN_NAME].map(|name| {
        let metadata = fs::symlink_metadata(dir.join(name)).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    })
}

//! The runs of the folder, as often as pages ask for them.

use journal::{Journal, JournalError};
use session::SessionError;
use session::progress::State;
use session::runs::{Run, Watched};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A list or a state is used again for this long, however many pages are open.
const FRESH: Duration = Duration::from_secs(2);
/// Reading a journal may take this share of the time at most: a large one is read less often.
const SHARE: u32 = 20;

/// The runs of a folder. Each method may read files.
#[derive(Debug)]
pub(crate) struct Shelf {
    root: PathBuf,
    listed: Mutex<Listed>,
    /// States of runs that other processes make, by name.
    states: Mutex<BTreeMap<String, Seen>>,
}

#[derive(Debug)]
struct Listed {
    watched: Watched,
    /// The last list, and when it was made.
    last: Option<(Instant, Arc<[Run]>)>,
}

#[derive(Debug)]
struct Seen {
    state: Arc<State>,
    until: Instant,
}

impl Shelf {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            listed: Mutex::new(Listed {
                watched: Watched::new(root.clone()),
                last: None,
            }),
            root,
            states: Mutex::default(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The runs, the newest first.
    pub(crate) fn list(&self) -> Result<Arc<[Run]>, SessionError> {
        // The lock is held while files are read: pages that ask meanwhile wait for this list and do
        // not read the folder again. A list is replaced as a whole, so a panic leaves none half
        // made.
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, runs)) = &listed.last
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(runs));
        }
        let runs: Arc<[Run]> = listed.watched.list()?.into();
        listed.last = Some((Instant::now(), Arc::clone(&runs)));
        Ok(runs)
    }

    /// The run of this name. Only names of the list lead to a path.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Run>, SessionError> {
        let runs = self.list()?;
        Ok(runs.iter().find(|run| run.name == name).cloned())
    }

    /// The journal of a run.
    pub(crate) fn journal(&self, run: &Run) -> Result<Journal, JournalError> {
        journal::read(&run.path)
    }

    /// The state of a run that another process makes.
    pub(crate) fn state(&self, run: &Run) -> Result<Arc<State>, JournalError> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        // Else the states of all runs that were ever shown would stay in memory.
        states.retain(|_, seen| seen.until > now);
        if let Some(seen) = states.get(&run.name) {
            return Ok(Arc::clone(&seen.state));
        }
        let journal = self.journal(run)?;
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let state = Arc::new(State::observed(
            &journal,
            &run.path,
            unix_ns,
            Instant::now(),
        ));
        // From the end of the reading, as `SHARE` is of the time until the next one.
        let until = Instant::now() + FRESH.max(now.elapsed() * SHARE);
        let seen = Seen {
            state: Arc::clone(&state),
            until,
        };
        states.insert(run.name.clone(), seen);
        Ok(state)
    }
}

//! Locks on lab names, and the removal of what a killed run left behind.
//!
//! One file per lab name, locked (flock) while the run lives. It names the lab's stations by number
//! and start time, and the mark that every process on them has in its environment. Normally they
//! end by themselves, as their input ends with the run; what was stopped, hangs, or was orphaned
//! because its station was killed too is found by the next run of that name, and killed. Namespaces
//! and links go with their last process.

use crate::kill::{kill_all, kill_tree};
use crate::mark::marked;
use crate::procfs::{self, ProcessStat};
use crate::sync::Deadline;
use crate::{LabError, NodeId, Privilege, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a process and everything below it may take to be gone once they were killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How long the stations of a killed run may take to give back the machine's interfaces, and to
/// take down boxes outside; they begin by themselves when their run is gone.
const RETURN_LIMIT: Duration = Duration::from_secs(60);
const RETURN_STEP: Duration = Duration::from_millis(5);

/// Attempts at the lock: runs that end at the same moment can remove the file meanwhile.
const LOCK_ATTEMPTS: usize = 100;

/// The file's content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// The boot that the numbers belong to.
    boot_id: String,
    /// The run.
    run: Process,
    /// What its processes have as [`MARK`](crate::mark::MARK): as unique as the run itself.
    #[serde(default)]
    mark: String,
    /// Its stations.
    stations: Vec<Process>,
    /// Whether the stations return something at their end; they are not killed before.
    #[serde(default)]
    returns: bool,
}

/// A process, distinguishable from a later one with the same number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    name: String,
    pid: u32,
    start_ticks: u64,
}

impl Process {
    fn now(name: &str, pid: u32) -> Self {
        let start_ticks = ProcessStat::read(pid).map_or(0, |stat| stat.start_ticks);
        Self {
            name: name.to_owned(),
            pid,
            start_ticks,
        }
    }

    /// The process if it still runs.
    fn alive(&self) -> Option<ProcessStat> {
        ProcessStat::read(self.pid)
            .filter(|stat| stat.start_ticks == self.start_ticks && stat.is_alive())
    }
}

/// A lab name that this run holds; dropping it gives the name back.
#[derive(Debug)]
pub(crate) struct Hold {
    file: File,
    path: PathBuf,
    state: State,
}

/// The folder of the state files: `/run/cipherbench` for root, a private folder of the user
/// otherwise.
///
/// # Errors
/// [`LabError::CannotBuild`] when it cannot be made, or belongs to another user.
pub fn folder(privilege: Privilege) -> Result<PathBuf> {
    let path = match privilege {
        Privilege::Root => PathBuf::from("/run/cipherbench"),
        Privilege::UserNamespace { uid } => {
            let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
            match runtime.filter(|path| is_private(path)) {
                Some(path) => path.join("cipherbench"),
                None => std::env::temp_dir().join(format!("cipherbench-{uid}")),
            }
        }
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    if made.is_ok() && is_private(&path) {
        return Ok(path);
    }
    let reason = made.err().map_or_else(
        || "it must be a folder of this user that no other user can write to".to_owned(),
        |error| error.to_string(),
    );
    Err(LabError::cannot_build(
        format!(
            "cannot use the folder {} for lab names: {reason}",
            path.display()
        ),
        "remove it if it is a left-over, or set TMPDIR or XDG_RUNTIME_DIR to a folder of yours",
    ))
}

/// Whether it is a folder of this user, no link, that only the user can write to: another user
/// could plant process numbers.
fn is_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| {
        meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o022 == 0
    })
}

impl Hold {
    /// Takes the lab name and removes what an earlier run of that name left; returns a sentence for
    /// each removal.
    pub(crate) fn take(folder: &Path, lab: &str) -> Result<(Self, Vec<String>)> {
        let path = folder.join(format!("{lab}.json"));
        let failed = |error: io::Error| {
            let what = format!(
                "cannot use the lab's state file {}: {error}",
                path.display()
            );
            let help = "see whether its folder can be written to and its disk has space left";
            LabError::cannot_build(what, help)
        };
        let Some(mut file) = lock_file(&path).map_err(failed)? else {
            let holder = fs::read_to_string(&path).ok();
            let state: State = holder
                .and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default();
            return Err(LabError::Taken {
                name: lab.to_owned(),
                pid: state.run.pid,
            });
        };
        let mut left = String::new();
        file.read_to_string(&mut left).map_err(failed)?;
        let swept = sweep(&left);
        let run = Process::now("run", std::process::id());
        let boot_id = procfs::boot_id();
        let mark = format!("{lab}/{}/{}/{boot_id}", run.pid, run.start_ticks);
        let state = State {
            boot_id,
            run,
            mark,
            stations: Vec::new(),
            returns: false,
        };
        let mut hold = Self {
            file,
            path: path.clone(),
            state,
        };
        hold.write().map_err(failed)?;
        Ok((hold, swept))
    }

    /// The value of [`MARK`](crate::mark::MARK) in the environment of every process of the lab.
    pub(crate) fn mark(&self) -> &str {
        &self.state.mark
    }

    /// Adds a process of the lab.
    pub(crate) fn record(&mut self, node: NodeId, pid: u32) -> Result<()> {
        self.state.stations.push(Process::now(node.name(), pid));
        self.put()
    }

    /// Records that stations will hold interfaces of the machine, or external boxes to take down.
    pub(crate) fn expect_returns(&mut self) -> Result<()> {
        self.state.returns = true;
        self.put()
    }

    fn put(&mut self) -> Result<()> {
        self.write().map_err(|error| {
            let file = self.path.display();
            let what = format!("cannot write the lab's state file {file}: {error}");
            LabError::cannot_build(what, "see whether its disk has space left")
        })
    }

    fn write(&mut self) -> io::Result<()> {
        let text = serde_json::to_string(&self.state)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Removed while locked: the next run creates a new file. A file left behind does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens and locks the file; `None` when another process has it locked.
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..LOCK_ATTEMPTS {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Its last holder may have removed it between the opening and the locking.
        let locked = file.metadata()?;
        if fs::metadata(path)
            .is_ok_and(|now| (now.dev(), now.ino()) == (locked.dev(), locked.ino()))
        {
            return Ok(Some(file));
        }
    }
    Err(io::Error::other("other runs keep replacing it"))
}

/// Waits until stations have ended by themselves. A stopped one will not.
fn await_returns(stations: &[Process]) {
    let deadline = Deadline::after(RETURN_LIMIT);
    let goes_on = |stat: ProcessStat| stat.is_alive() && !matches!(stat.state, 'T' | 't');
    while stations.iter().filter_map(Process::alive).any(goes_on) && !deadline.is_over() {
        std::thread::sleep(RETURN_STEP);
    }
}

/// Kills those of the recorded stations that are still the same processes with everything below
/// them, then whatever else has the run's mark.
///
/// A file without a valid state was not written to its end: its run had no stations yet.
fn sweep(text: &str) -> Vec<String> {
    let state: State = serde_json::from_str(text).unwrap_or_default();
    if state.boot_id != procfs::boot_id() {
        return Vec::new();
    }
    let run = state.run.pid;
    if state.returns {
        await_returns(&state.stations);
    }
    let survivors = state
        .stations
        .iter()
        .filter_map(|station| Some((station, station.alive()?)));
    let mut swept: Vec<String> = survivors
        .map(|(station, process)| {
            let below = kill_tree(&process, KILL_LIMIT).saturating_sub(1);
            let gone = if station.alive().is_none() {
                "removed"
            } else {
                "could not remove"
            };
            let Process { name, pid, .. } = station;
            format!(
                "{gone} station {name} of run {run}, which was killed: \
                 process {pid} and {below} below it"
            )
        })
        .collect();
    if !state.mark.is_empty() {
        let orphans = kill_all(|| marked(&state.mark), KILL_LIMIT);
        if orphans > 0 {
            swept.push(format!(
                "removed processes of run {run}, which was killed: {orphans}"
            ));
        }
    }
    swept
}

//! Locks on lab names, and the removal of a killed run's remains.
//!
//! One file per lab name, locked (flock) while the run lives. It identifies the lab's stations by
//! number and start time, and contains the mark that every process on them has in its environment.
//! Normally these processes end by themselves, because their input ends with the run. The next run
//! of that name finds and kills a process that was stopped, hangs, or was orphaned because its
//! station was killed too. Namespaces and links go with their last process. A killed run leaves its
//! file; if nothing else of it is left, the next run of any name removes the file.

use crate::kill::{kill_all, kill_tree};
use crate::mark::marked;
use crate::procfs::ProcessStat;
use crate::sync::Deadline;
use crate::{Privilege, privilege};
use guard::{open_regular, read_from, read_text};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use testbed::machine::boot_id;
use testbed::{LabError, NodeId, Result};

/// Time limit for a killed process and all its descendants to disappear.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Time limit for the stations of a killed run to return the machine's interfaces and to take down
/// external boxes; they begin by themselves when their run is gone.
const RETURN_LIMIT: Duration = Duration::from_secs(60);
const RETURN_STEP: Duration = Duration::from_millis(5);

/// Attempts at the lock: runs that end at the same moment can remove the file meanwhile, and
/// another run may be examining a dead run's file.
const LOCK_ATTEMPTS: usize = 100;
const LOCK_STEP: Duration = Duration::from_millis(5);

/// Far more than the state of any lab.
const BYTES_MAX: usize = 1 << 20;

/// The content of the state file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// The boot that the process numbers belong to.
    boot_id: String,
    /// The run's process.
    run: Process,
    /// The value of [`MARK`](crate::mark::MARK) in its processes, unique to the run.
    #[serde(default)]
    mark: String,
    /// The run's stations.
    stations: Vec<Process>,
    /// Whether the stations return something at their end; they are not killed before.
    #[serde(default)]
    returns: bool,
}

/// A process, distinguishable from a later process with the same number.
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

    /// Returns the process if it still runs.
    fn alive(&self) -> Option<ProcessStat> {
        ProcessStat::read(self.pid)
            .filter(|stat| stat.start_ticks == self.start_ticks && stat.is_alive())
    }
}

impl State {
    /// Whether the run was killed and none of its processes is left.
    fn is_over(&self) -> bool {
        // Numbers and start times of processes mean nothing after another boot.
        self.boot_id != boot_id()
            || (self.run.alive().is_none()
                && self
                    .stations
                    .iter()
                    .all(|station| station.alive().is_none())
                && (self.mark.is_empty() || marked(&self.mark).is_empty()))
    }
}

/// A lab name locked by this run; dropping it releases the name.
#[derive(Debug)]
pub(crate) struct Hold {
    file: File,
    path: PathBuf,
    state: State,
}

/// Returns the folder of the state files for this process's privilege.
///
/// # Errors
/// As [`folder`].
pub fn folder_of_process() -> Result<PathBuf> {
    folder(privilege::current().unwrap_or_else(Privilege::of_nobody))
}

/// Returns the folder of the state files: `/run/cipherbench` for root, otherwise a private folder
/// of the user.
///
/// # Errors
/// [`LabError::CannotBuild`] if it cannot be created, or belongs to another user.
pub fn folder(privilege: Privilege) -> Result<PathBuf> {
    let path = match privilege {
        Privilege::Root => PathBuf::from("/run/cipherbench"),
        Privilege::UserNamespace { uid } => {
            let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
            // `sudo` and `su` may keep the variable of another user, whom that folder belongs to.
            match runtime.filter(|path| is_private(path)) {
                Some(path) => path.join("cipherbench"),
                None => std::env::temp_dir().join(format!("cipherbench-{uid}")),
            }
        }
    };
    // Another user may have made this folder in /tmp first, or a link to another one: it is checked
    // after it exists.
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

/// Whether the path is a folder of this user, not a link, that no other user can write to: another
/// user could plant process numbers.
fn is_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| {
        meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o022 == 0
    })
}

impl Hold {
    /// Locks the lab name and removes the remains of an earlier run with that name; returns one
    /// sentence for each removal.
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
        let Some(file) = lock_file(&path).map_err(failed)? else {
            return Err(LabError::Taken {
                name: lab.to_owned(),
                pid: recorded(&path).run.pid,
            });
        };
        // From here on the name is locked, so no other run sweeps the same remains.
        // Read by the locked file and not by its path, which may lead to a newer file.
        let left = read(&file).map_err(failed)?;
        let swept = sweep(&left);
        remove_dead(folder, &path);
        let run = Process::now("run", std::process::id());
        let boot_id = boot_id();
        // With the boot, because numbers and start times begin anew with each boot.
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

    /// Records a process of the lab.
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
        // The whole state each time, as it is small.
        let text = serde_json::to_string(&self.state)?;
        // Cut after the write: the state of an earlier run may be longer.
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Removed while locked: the next run creates a new file. A leftover file does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// Reads the state from the file; the default if the file is absent or invalid.
fn recorded(path: &Path) -> State {
    let text = read_text(path, BYTES_MAX).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn read(file: &File) -> io::Result<String> {
    let text = String::from_utf8(read_from(file, BYTES_MAX)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Removes the files of other labs with finished runs: otherwise the file of a name that is never
/// used again, such as a test's, would remain until the next boot. Running processes are left to
/// the next run of their name. A file that cannot be removed does no harm.
fn remove_dead(folder: &Path, own: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path != own
            && path
                .extension()
                .is_some_and(|extension| extension == "json")
        {
            let _ = remove_if_dead(&path);
        }
    }
}

fn remove_if_dead(path: &Path) -> io::Result<()> {
    let file = open_regular(path)?;
    // Without the lock the text stays empty, which is no state, so the file stays.
    let mut text = String::new();
    if file.try_lock().is_ok() && is_at(&file, path)? {
        text = read(&file)?;
    }
    match serde_json::from_str::<State>(&text) {
        Ok(state) if state.is_over() => fs::remove_file(path),
        _ => Ok(()),
    }
}

/// Whether the path still leads to this file, rather than to a replacement.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let file = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (file.dev(), file.ino())))
}

/// Opens and locks the file; `None` if another run has locked it.
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    let mut is_locked = false;
    for _ in 0..LOCK_ATTEMPTS {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            // The state of an earlier run is read before it is overwritten.
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if recorded(path).run.alive().is_some() => {
                return Ok(None);
            }
            // Locked by a run that the file does not name: another run checks whether the named run
            // is over, or the locking run has just begun.
            Err(TryLockError::WouldBlock) => {
                is_locked = true;
                std::thread::sleep(LOCK_STEP);
                continue;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Its last holder may have removed it between opening and locking.
        if is_at(&file, path)? {
            return Ok(Some(file));
        }
    }
    if is_locked {
        return Ok(None);
    }
    Err(io::Error::other("other runs keep replacing it"))
}

/// Waits until stations have ended by themselves. A traced, stopped station will not.
fn await_returns(stations: &[Process]) {
    // A stopped station cannot see the end of its input.
    for station in stations.iter().filter_map(Process::alive) {
        station.resume();
    }
    let deadline = Deadline::after(RETURN_LIMIT);
    let goes_on = |stat: ProcessStat| stat.is_alive() && !matches!(stat.state, 'T' | 't');
    while stations.iter().filter_map(Process::alive).any(goes_on) && !deadline.is_over() {
        std::thread::sleep(RETURN_STEP);
    }
}

/// Kills the recorded stations that are still the same processes, with all their descendants, and
/// then all other processes with the run's mark.
///
/// A file without a valid state was not completely written: its run had no stations yet.
fn sweep(text: &str) -> Vec<String> {
    let state: State = serde_json::from_str(text).unwrap_or_default();
    if state.boot_id != boot_id() {
        return Vec::new();
    }
    let run = state.run.pid;
    // A station that is killed now could not return its borrowed interfaces.
    if state.returns {
        await_returns(&state.stations);
    }
    // Those that returned their interfaces have ended by now.
    let survivors = state
        .stations
        .iter()
        .filter_map(|station| Some((station, station.alive()?)));
    let mut swept: Vec<String> = survivors
        .map(|(station, process)| {
            // The tree includes the station.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A process that has ended.
    fn ended() -> Process {
        let mut child = Command::new("true").spawn().unwrap();
        let process = Process::now("ended", child.id());
        child.wait().unwrap();
        process
    }

    fn write(folder: &Path, name: &str, text: &str) {
        fs::write(folder.join(format!("{name}.json")), text).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn files_of_runs_that_are_over_are_removed_by_a_run_of_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let dead = State {
            boot_id: boot_id(),
            run: ended(),
            mark: "t1-1/none".to_owned(),
            stations: vec![ended()],
            returns: true,
        };
        let living = Process::now("run", std::process::id());
        let text = |state: &State| serde_json::to_string(state).unwrap();
        write(folder, "dead", &text(&dead));
        let mut other = dead.clone();
        other.stations.push(living.clone());
        write(folder, "station-lives", &text(&other));
        other.boot_id = "another".to_owned();
        write(folder, "earlier-boot", &text(&other));
        let begins = State {
            run: living,
            ..dead.clone()
        };
        write(folder, "run-lives", &text(&begins));
        // A run that has locked its file and not written it yet, and a file of another purpose.
        write(folder, "begins", "");
        write(folder, "tuning", "{\"applied\":[]}");
        write(folder, "looked-at", &text(&dead));
        let looking = File::open(folder.join("looked-at.json")).unwrap();
        looking.lock().unwrap();

        let (hold, swept) = Hold::take(folder, "own").unwrap();
        assert_eq!(swept, [""; 0]);
        let left = [
            "begins",
            "looked-at",
            "own",
            "run-lives",
            "station-lives",
            "tuning",
        ];
        assert_eq!(names(folder), left.map(|name| format!("{name}.json")));
        drop(hold);
        assert_eq!(names(folder).len(), left.len() - 1);
    }

    #[test]
    fn a_name_is_free_although_another_run_looks_at_its_dead_one() {
        let folder = tempfile::tempdir().unwrap();
        let state = State {
            boot_id: boot_id(),
            run: ended(),
            ..State::default()
        };
        write(
            folder.path(),
            "own",
            &serde_json::to_string(&state).unwrap(),
        );
        let looking = File::open(folder.path().join("own.json")).unwrap();
        looking.lock().unwrap();
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| Hold::take(folder.path(), "own").map(|_| ()));
            // Less than all attempts at the lock take.
            std::thread::sleep(5 * LOCK_STEP);
            assert!(!taking.is_finished());
            drop(looking);
            assert!(taking.join().unwrap().is_ok());
        });
    }
}

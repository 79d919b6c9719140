//! All programs of a station: their table, the reaper, and their end.

use super::process::Process;
use crate::own_children::OwnChild;
use crate::procfs;
use crate::sync::{Deadline, lock, wait};
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use testbed::protocol::{Ended, Program};

/// Most programs that one station keeps at a time, including ended programs not yet reported.
const PROCESSES_MAX: usize = 4096;

/// A process that still lives this long after it was killed hangs in the kernel; the station ends
/// without it.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Interval for checking a child again that another thread may await.
const AWAITED_STEP: Duration = Duration::from_millis(1);

/// The programs of a station.
pub(super) struct Processes {
    table: Mutex<Table>,
    started: Condvar,
    /// CPUs to assign to programs.
    cores: Vec<usize>,
}

#[derive(Default)]
struct Table {
    last_handle: u64,
    by_handle: BTreeMap<u64, Arc<Process>>,
}

impl Processes {
    /// An empty table with its reaper; programs are assigned to these CPUs.
    pub(super) fn new(cores: Vec<usize>) -> std::io::Result<Arc<Self>> {
        let processes = Arc::new(Self {
            table: Mutex::default(),
            started: Condvar::new(),
            cores,
        });
        let reaper = Arc::clone(&processes);
        std::thread::Builder::new()
            .name("reaper".into())
            .spawn(move || reaper.reap_forever())?;
        Ok(processes)
    }

    /// CPUs to assign to programs, by the kernel's numbers.
    pub(super) fn cores(&self) -> &[usize] {
        &self.cores
    }

    /// Starts a program; see [`Process::spawn`].
    pub(super) fn spawn(&self, program: &Program) -> Result<(u64, Arc<Process>), String> {
        // Held during the fork, so that the reaper finds every child in the table.
        let mut table = lock(&self.table);
        if table.by_handle.len() >= PROCESSES_MAX {
            return Err(format!(
                "{PROCESSES_MAX} programs are enough for one station"
            ));
        }
        let process = Process::spawn(program, &self.cores)?;
        table.last_handle += 1;
        let handle = table.last_handle;
        table.by_handle.insert(handle, Arc::clone(&process));
        self.started.notify_all();
        Ok((handle, process))
    }

    /// Runs a program to its end, or its time limit.
    pub(super) fn run(&self, program: &Program, limit: Duration) -> Result<Ended, String> {
        let (handle, process) = self.spawn(program)?;
        let ended = process.wait(limit);
        self.forget(handle);
        ended
    }

    /// Returns the program with this handle.
    pub(super) fn find(&self, handle: u64) -> Result<Arc<Process>, String> {
        let table = lock(&self.table);
        table.by_handle.get(&handle).cloned().ok_or_else(|| {
            format!("process {handle} is unknown here, or its end was already reported")
        })
    }

    /// Removes a program after its end has been reported.
    pub(super) fn forget(&self, handle: u64) {
        lock(&self.table).by_handle.remove(&handle);
    }

    /// Reaps every child as it ends: programs of the table, and orphans that this process adopted
    /// as their subreaper.
    fn reap_forever(&self) {
        loop {
            // Read before `waitid`: a program that starts after ECHILD must not be missed.
            let started_before = lock(&self.table).last_handle;
            // Does not reap, so that the number stays taken until `Process::reap` has its lock.
            match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
                Ok(status) => {
                    if let Some(pid) = status.pid() {
                        self.reap(pid);
                    }
                }
                Err(Errno::ECHILD) => self.await_start(started_before),
                Err(_) => {}
            }
        }
    }

    fn reap(&self, pid: Pid) {
        let known = {
            let table = lock(&self.table);
            table
                .by_handle
                .values()
                // An ended program that was not reported yet may have had the same number before.
                .find(|process| process.is_running_as(pid))
                .cloned()
        };
        match known {
            Some(process) => process.reap(),
            // Another thread may await it.
            None if OwnChild::is_expected() => std::thread::sleep(AWAITED_STEP),
            // An orphan. At the station's end `end_all` may be quicker.
            None => {
                let _ = waitpid(pid, None);
            }
        }
    }

    fn await_start(&self, started_before: u64) {
        let mut table = lock(&self.table);
        while table.last_handle == started_before {
            table = wait(&self.started, table, Deadline::NEVER);
        }
    }
}

/// Kills and reaps every descendant of this process, including daemons.
pub(super) fn end_all() {
    let deadline = Deadline::after(END_LIMIT);
    // A fork that escapes one round is a child of this process in the next.
    while !deadline.is_over() {
        let descendants = procfs::descendants(std::process::id());
        if descendants.is_empty() {
            return;
        }
        for process in descendants {
            process.kill();
            // Only children can be reaped, and the reaper may be quicker.
            let pid = Pid::from_raw(process.pid.cast_signed());
            let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

//! The program that measures, as a process of an agent.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Exit code of an interrupted run, which can be resumed.
pub(crate) const INTERRUPTED: i32 = 4;
/// Interval between checks whether a run has ended.
const STEP: Duration = Duration::from_millis(50);
/// How long a run may take to end after SIGTERM, giving its lab back, before SIGKILL.
const END_LIMIT: Duration = Duration::from_secs(60);

/// Returns a command that receives `signal` when this process ends. Each of its processes holds
/// `lock`, and a shared lock of each file in `shared`.
pub(crate) fn bound<'a>(
    signal: &str,
    lock: &Path,
    shared: impl Iterator<Item = &'a Path>,
    program: &Path,
) -> Command {
    // By programs of util-linux: PR_SET_PDEATHSIG and locks that are inherited need unsafe code
    // here.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal, "flock", "--no-fork"]);
    command.arg(lock);
    for lock in shared {
        command.args(["flock", "--no-fork", "--shared"]).arg(lock);
    }
    command.arg(program);
    command
}

/// Whether every process that was started with this lock has ended. They need a moment after their
/// parent was killed.
pub(crate) fn is_free(lock: &Path) -> io::Result<bool> {
    match File::create(lock)?.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Waits for the end of a run that an earlier start of the agent left. It got a signal when that
/// agent ended, and releases its lab before it ends.
pub(crate) async fn earlier_ended(lock: &Path) -> io::Result<()> {
    let free = async {
        while !is_free(lock)? {
            sleep(STEP).await;
        }
        Ok(())
    };
    let too_long = || io::Error::other("processes of an earlier run of it have not ended");
    let found = timeout(END_LIMIT, free).await;
    found.unwrap_or_else(|_| Err(too_long()))
}

pub(crate) fn code(status: ExitStatus) -> i32 {
    // A killed run counts as interrupted.
    status.code().unwrap_or(INTERRUPTED)
}

/// Waits for a program's end.
pub(crate) async fn ended(child: &mut Child) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        sleep(STEP).await;
    }
}

/// Ends a run by SIGTERM, or by SIGKILL after [`END_LIMIT`].
pub(crate) async fn end(child: &mut Child) {
    // It is not reaped yet, so its process id cannot have been reused.
    let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
    if timeout(END_LIMIT, ended(child)).await.is_err() {
        // Its children hold the lock too, so the next run waits for their end.
        let _ = child.kill();
        let _ = child.wait();
    }
}

//! The command of a build, with a limit on its time.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Polling interval of a running command.
const POLL: Duration = Duration::from_millis(20);

/// The end of a command.
pub(crate) enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// Killed at the limit.
    TimedOut,
    /// Killed after Ctrl-C.
    Interrupted,
}

/// Variables that lead git to another repository.
pub(crate) const GIT_VARIABLES: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
];

/// Runs a command of a shell in `folder`, with both outputs in `log`. No process that it started
/// in its group is left.
pub(crate) fn run(
    command: &str,
    folder: &Path,
    log: File,
    limit: Duration,
    interrupt: &Interrupt,
) -> io::Result<Ended> {
    let errors = log.try_clone()?;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        // Ctrl-C at a terminal reaches this process alone, which then ends the whole group.
        .process_group(0);
    for variable in GIT_VARIABLES {
        shell.env_remove(variable);
    }
    let began = Instant::now();
    let mut child = shell.spawn()?;
    let group = Pid::from_raw(child.id().cast_signed());
    // No thread waits for it: entering a user namespace needs a process with one thread.
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Ended::Exited(status);
        }
        if interrupt.is_set() {
            break Ended::Interrupted;
        }
        if began.elapsed() >= limit {
            break Ended::TimedOut;
        }
        thread::sleep(POLL);
    };
    // Fails if the group is empty, which is the usual end.
    let _ = killpg(group, Signal::SIGKILL);
    if !matches!(ended, Ended::Exited(_)) {
        child.wait()?;
    }
    Ok(ended)
}

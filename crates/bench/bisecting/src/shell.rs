//! The command of a build, with a limit on its time.

use session::software::{Ended, await_end, kill_group};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use testbed::Interrupt;

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
        // A build that asks git for its version would ask the repository of the caller.
        shell.env_remove(variable);
    }
    let mut child = shell.spawn()?;
    let ended = await_end(&mut child, limit, interrupt)?;
    // What the command has left behind, in the usual case nothing.
    kill_group(&child);
    Ok(ended)
}

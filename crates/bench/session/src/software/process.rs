//! The process of a build: its end within a limit, and the end of its output.

use guard::visible_lines;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Polling interval of a running build.
const STEP: Duration = Duration::from_millis(20);

/// The end of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// Killed at the limit.
    TimedOut,
    /// Killed after Ctrl-C.
    Interrupted,
}

/// Waits for the end of a build, which leads a process group of its own. At its limit, after an
/// interrupt and after an error the whole group is killed.
///
/// # Errors
/// When the process cannot be waited for.
pub fn await_end(child: &mut Child, limit: Duration, interrupt: &Interrupt) -> io::Result<Ended> {
    let begun = Instant::now();
    // No thread waits for it: entering a user namespace needs a process with one thread.
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Ended::Exited(status)),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        if interrupt.is_set() {
            break Ok(Ended::Interrupted);
        }
        if begun.elapsed() >= limit {
            break Ok(Ended::TimedOut);
        }
        thread::sleep(STEP);
    };
    // It is not reaped yet, so the number is still its group's.
    kill_group(child);
    let _ = child.wait();
    ended
}

/// Kills what is left of the process group that a child leads, or led.
pub fn kill_group(child: &Child) {
    // Fails if the group is empty.
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
}

/// The last lines of a build's output, each indented on a line of its own, from its last `bytes` at
/// most; empty if there are none.
#[must_use]
pub fn last_lines(log: &Path, lines: usize, bytes: u64) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
        let mut end = Vec::new();
        file.take(bytes).read_to_end(&mut end)?;
        Ok(end)
    };
    let end = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&end);
    let all: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &all[all.len().saturating_sub(lines)..];
    let quoted = last
        .iter()
        .map(|line| format!("\n  {}", visible_lines(line)));
    quoted.collect()
}

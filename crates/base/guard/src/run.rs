//! Execution of programs that may print without end, or never end.

use crate::read::read_from;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a command like [`Command::output`], with an empty standard input, but keeps at most
/// `bytes_max` bytes of each stream. The rest is read and discarded, so it does not block the
/// program.
///
/// # Errors
/// If the program cannot be started, or its output cannot be read.
pub fn output(command: &mut Command, bytes_max: usize) -> io::Result<Output> {
    run(command, bytes_max, Child::wait)
}

/// Like [`output`], but kills the program if it has not ended after `limit`.
///
/// # Errors
/// As for [`output`], and [`io::ErrorKind::TimedOut`] if the program was killed.
pub fn output_within(
    command: &mut Command,
    bytes_max: usize,
    limit: Duration,
) -> io::Result<Output> {
    run(command, bytes_max, |child| wait_within(child, limit))
}

fn run(
    command: &mut Command,
    bytes_max: usize,
    wait: impl FnOnce(&mut Child) -> io::Result<ExitStatus>,
) -> io::Result<Output> {
    // A program that asks for something would otherwise wait for a terminal.
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Both are read by threads of their kind: a program that fills one pipe while the other is
    // read would wait for ever.
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let stdout =
            scope.spawn(|| stdout.map_or(Ok(Vec::new()), |from| beginning(from, bytes_max)));
        let stderr =
            scope.spawn(|| stderr.map_or(Ok(Vec::new()), |from| beginning(from, bytes_max)));
        // A reader ends when the last copy of its pipe is closed, which a process that the
        // program left behind may hold.
        let status = wait(&mut child);
        let [stdout, stderr] = [stdout, stderr].map(|reader| {
            reader
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok(Output {
            status: status?,
            stdout: stdout?,
            stderr: stderr?,
        })
    })
}

fn wait_within(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(2));
    }
    // The program may have ended since, which `kill` does not report as an error.
    child.kill()?;
    child.wait()?;
    Err(io::ErrorKind::TimedOut.into())
}

/// Reads a source to its end and returns the beginning.
fn beginning(mut source: impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    // `take` limits it, so the check in `read_from` never fails here.
    let kept = read_from(source.by_ref().take(bytes_max as u64), bytes_max)?;
    io::copy(&mut source, &mut io::sink())?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_program_that_prints_much_the_beginning_is_kept() {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "echo begin; head -c 10000000 /dev/zero; echo no >&2; exit 3",
        ]);
        let ended = output(&mut shell, 1000).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.stdout.starts_with(b"begin\n") && ended.stdout.len() == 1000);
        assert_eq!(ended.stderr, b"no\n");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let mut sleeper = Command::new("sleep");
        let ended = output_within(sleeper.arg("600"), 1000, Duration::from_millis(50));
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let ended = output_within(
            Command::new("sh").args(["-c", "echo a"]),
            1000,
            Duration::MAX,
        );
        assert_eq!(ended.unwrap().stdout, b"a\n");
    }
}

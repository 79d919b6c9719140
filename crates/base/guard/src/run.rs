//! Execution of programs that may print without end, or never end.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a command like [`Command::output`], with an empty standard input, but keeps at most
/// `bytes_max` bytes of each stream. The rest is read and discarded, so it does not block the
/// program.
///
/// # Errors
/// If the program cannot be started, or its output cannot be read.
pub fn output(command: &mut Command, bytes_max: usize) -> io::Result<Output> {
    run(command, bytes_max, None)
}

/// Like [`output`], but kills the program if it has not ended after `limit`. A process that it left
/// behind may hold its streams longer; what was read by then is returned.
///
/// # Errors
/// As for [`output`], and [`io::ErrorKind::TimedOut`] if the program was killed.
pub fn output_within(
    command: &mut Command,
    bytes_max: usize,
    limit: Duration,
) -> io::Result<Output> {
    // A limit beyond the clock is none.
    run(command, bytes_max, Instant::now().checked_add(limit))
}

fn run(command: &mut Command, bytes_max: usize, deadline: Option<Instant>) -> io::Result<Output> {
    // A program that asks for something would otherwise wait for a terminal.
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Both are read by threads of their kind: a program that fills one pipe while the other is
    // read would wait for ever.
    let stdout = Reading::begin(child.stdout.take(), bytes_max);
    let stderr = Reading::begin(child.stderr.take(), bytes_max);
    // The streams first: they usually end with the program, which then need not be polled.
    let [stdout, stderr] = [stdout, stderr].map(|stream| stream.kept(deadline));
    let status = match deadline {
        None => child.wait()?,
        Some(deadline) => wait_until(&mut child, deadline)?,
    };
    Ok(Output {
        status,
        stdout: stdout?,
        stderr: stderr?,
    })
}

fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<ExitStatus> {
    loop {
        // Before the look at the clock: a program that has ended in time counts, even if a process
        // that it left behind held its streams until now.
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            // The program may have ended since, which `kill` does not report as an error.
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A stream of a program that a thread reads to its end.
struct Reading {
    /// Its beginning.
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<io::Result<()>>,
}

impl Reading {
    fn begin(source: Option<impl Read + Send + 'static>, bytes_max: usize) -> Self {
        let (kept, (ending, ended)) = (Arc::default(), mpsc::channel());
        if let Some(source) = source {
            let kept = Arc::clone(&kept);
            // Not awaited: a reader ends when the last copy of its pipe is closed, which a process
            // that the program left behind may hold as long as it likes.
            thread::spawn(move || {
                // Nobody listens once the deadline is over.
                let _ = ending.send(read_to_end(source, &kept, bytes_max));
            });
        }
        Self { kept, ended }
    }

    /// The beginning, once the stream has ended or the deadline is over.
    fn kept(self, deadline: Option<Instant>) -> io::Result<Vec<u8>> {
        let ended = match deadline {
            None => self.ended.recv().map_err(RecvTimeoutError::from),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.ended.recv_timeout(left)
            }
        };
        // No answer in time, or nothing to read.
        ended.unwrap_or(Ok(()))?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *kept))
    }
}

/// Reads a source to its end and keeps the beginning.
fn read_to_end(mut source: impl Read, kept: &Mutex<Vec<u8>>, bytes_max: usize) -> io::Result<()> {
    let mut bytes = [0; 8192];
    loop {
        let length = match source.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        // Locked for each part, so that what is there can be taken at the deadline.
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = bytes_max.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..length.min(room)]);
    }
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

    /// Ends a process that a test's program has left behind.
    fn end(pid: &str) {
        let ended = Command::new("sh")
            .args(["-c", "kill \"$0\"", pid.trim()])
            .status();
        assert!(ended.unwrap().success());
    }

    #[test]
    fn a_process_that_is_left_behind_does_not_hold_the_caller() {
        let mut shell = Command::new("sh");
        let ended = output_within(
            shell.args(["-c", "sleep 600 & echo $!"]),
            1000,
            Duration::from_secs(1),
        );
        let ended = ended.unwrap();
        assert!(ended.status.success());
        end(std::str::from_utf8(&ended.stdout).unwrap());
    }

    #[test]
    fn nor_does_one_whose_program_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $! > \"$0\"; wait"]);
        let ended = output_within(shell.arg(&file), 1000, Duration::from_secs(1));
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        end(&std::fs::read_to_string(&file).unwrap());
    }
}

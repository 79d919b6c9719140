//! The dialogue with a host's shell before it becomes a station: all over one connection, since
//! each costs hundreds of milliseconds.

use crate::Station;
use crate::caller::{Errors, INTERRUPT_INTERVAL, Pipes, last_words, start_piped};
use crate::sync::Deadline;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, BufRead, Read, Write};
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command};
use std::sync::{Arc, Mutex};
use testbed::protocol::Ended;
use testbed::{Interrupt, LabError, NodeId, Result};

/// More of a line than this is no answer to anything.
const LINE_BYTES_MAX: usize = 1 << 16;

/// A command that leads to a host's shell, and its output so far.
pub(super) struct Dialogue<'a> {
    child: Child,
    /// `None` once its end is awaited.
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// Output that was read but not consumed yet.
    heard: Vec<u8>,
    /// Whether the output has ended.
    is_over: bool,
    errors: Arc<Mutex<Errors>>,
    interrupt: &'a Interrupt,
}

/// The result of waiting for a line.
#[derive(Debug)]
pub(super) enum OutputEvent {
    Line(String),
    /// The output has ended.
    End,
    /// Nothing came in time.
    Silence,
}

impl<'a> Dialogue<'a> {
    /// # Errors
    /// When the command cannot be started.
    pub(super) fn begin(command: Command, interrupt: &'a Interrupt) -> io::Result<Self> {
        let (child, pipes) = start_piped(command, "a host")?;
        Ok(Self {
            child,
            input: Some(pipes.input),
            output: pipes.output,
            heard: Vec::new(),
            is_over: false,
            errors: pipes.errors,
            interrupt,
        })
    }

    /// Waits for a line of its output.
    ///
    /// # Errors
    /// [`LabError::Interrupted`].
    pub(super) fn line(&mut self, deadline: Deadline) -> Result<OutputEvent> {
        loop {
            // A line that is complete counts even after the end or the deadline.
            if let Some(line) = self.take_line() {
                return Ok(OutputEvent::Line(line));
            }
            if self.is_over {
                return Ok(OutputEvent::End);
            }
            self.interrupt.check()?;
            if deadline.is_over() {
                return Ok(OutputEvent::Silence);
            }
            // In short steps, between which the interrupt and the deadline are looked at.
            let mut fds = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, interval()).unwrap_or(0) > 0 {
                self.hear();
            }
        }
    }

    /// Writes the rest of `bytes` to the command's input, until the command prints a line or ends,
    /// or the deadline passes.
    ///
    /// # Errors
    /// `Err` within `Ok` when `bytes` cannot be read; [`LabError::Interrupted`].
    pub(super) fn tell(
        &mut self,
        bytes: &mut impl BufRead,
        deadline: Deadline,
    ) -> Result<io::Result<()>> {
        loop {
            let chunk = match bytes.fill_buf() {
                Ok([]) => return Ok(Ok(())),
                Ok(chunk) => chunk,
                Err(error) => return Ok(Err(error)),
            };
            let Some(input) = &mut self.input else {
                return Ok(Ok(()));
            };
            match input.write(chunk) {
                Ok(written) => bytes.consume(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.interrupt.check()?;
                    // A shell that prints before it reads must not block: its output is read
                    // meanwhile.
                    let mut fds = [
                        PollFd::new(input.as_fd(), PollFlags::POLLOUT),
                        PollFd::new(self.output.as_fd(), PollFlags::POLLIN),
                    ];
                    // The next write or read returns any error.
                    let _ = poll(&mut fds, interval());
                    if fds[1].any() == Some(true) {
                        self.hear();
                    }
                    if self.is_over || self.heard.contains(&b'\n') || deadline.is_over() {
                        return Ok(Ok(()));
                    }
                }
                // It has ended: its last lines say why.
                Err(_) => return Ok(Ok(())),
            }
        }
    }

    /// Reads what there is of its output.
    fn hear(&mut self) {
        let mut bytes = [0; 4096];
        match self.output.read(&mut bytes) {
            // More than this without a line is no answer, and must not fill the memory.
            Ok(length) if length > 0 && self.heard.len() < LINE_BYTES_MAX => {
                self.heard.extend_from_slice(&bytes[..length]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => self.is_over = true,
        }
    }

    /// Takes the first complete line; at the end of the output, also an incomplete one.
    fn take_line(&mut self) -> Option<String> {
        // By lines, because the script prints one for each answer.
        let end = self.heard.iter().position(|byte| *byte == b'\n');
        let rest = match end {
            Some(end) => self.heard.split_off(end + 1),
            None if self.is_over && !self.heard.is_empty() => Vec::new(),
            None => return None,
        };
        let line = mem::replace(&mut self.heard, rest);
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// Ends its input and waits a short time for its end. Returns how that was, with its last lines
    /// on standard error.
    pub(super) fn last_words(&mut self) -> Ended {
        self.input = None;
        let (status, lines) = last_words(&self.errors, || self.child.try_wait().ok().flatten());
        Ended {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stderr: lines.join("\n"),
            ..Ended::default()
        }
    }

    /// Turns the command, which has become an agent, into a station.
    ///
    /// # Errors
    /// [`LabError::CannotBuild`] when no thread can be started for it.
    pub(super) fn into_station(self, id: NodeId, interrupt: &Interrupt) -> Result<Station> {
        let Some(input) = self.input else {
            unreachable!("its end was awaited");
        };
        let pipes = Pipes {
            input,
            // Bytes behind the last line belong to the station already.
            output: io::Cursor::new(self.heard).chain(self.output),
            errors: self.errors,
        };
        Station::adopt(id, self.child, pipes, interrupt).map_err(|error| {
            let what = format!("cannot start a thread for station {}: {error}", id.name());
            LabError::cannot_build(what, "see whether this machine has processes left")
        })
    }

    /// Ends the command. The program on the host sees the end of its input.
    pub(super) fn end(mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn interval() -> PollTimeout {
    PollTimeout::try_from(INTERRUPT_INTERVAL).unwrap_or(PollTimeout::ZERO)
}

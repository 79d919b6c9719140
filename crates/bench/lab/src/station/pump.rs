//! The thread that feeds a program's standard input and reads its output.

use super::output::Capped;
use crate::sync::lock;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::{Condvar, Mutex};

/// Bytes read from one pipe per turn. No pipe holds more (`/proc/sys/fs/pipe-max-size` is 1 MiB),
/// so one turn reads everything that a program wrote before it ended.
const TURN_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 64 << 10;

/// A program's output so far.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) stdout: Capped,
    pub(super) stderr: Capped,
    /// Whether the program has ended and all its output has been read.
    pub(super) complete: bool,
}

/// The station's ends of a program's pipes.
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

impl Pipes {
    fn open(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let all = [
            self.stdin.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ];
        all.into_iter().flatten()
    }
}

/// Moves bytes until the program has ended and every pipe is closed.
///
/// A program may leave a daemon that holds its pipes. So the output is complete when the program
/// has ended and its pipes are empty; later output is read and discarded.
///
/// # Errors
/// If the kernel refuses to poll or to make a pipe non-blocking. The output counts as complete then
/// too.
pub(super) fn pump(
    mut pipes: Pipes,
    input: &[u8],
    ended: &EventFd,
    output: &Mutex<Output>,
    changed: &Condvar,
) -> io::Result<()> {
    let result = move_bytes(&mut pipes, input, ended, output, changed);
    lock(output).complete = true;
    changed.notify_all();
    result
}

fn move_bytes(
    pipes: &mut Pipes,
    mut input: &[u8],
    ended: &EventFd,
    output: &Mutex<Output>,
    changed: &Condvar,
) -> io::Result<()> {
    set_nonblocking(pipes)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut has_ended = false;
    // Beyond the end of the program: a daemon that holds its pipes must never block on a full one.
    while !has_ended || pipes.stdout.is_some() || pipes.stderr.is_some() {
        has_ended |= wait(pipes, ended, has_ended)?;
        // The program does not read it any more, or has everything.
        if has_ended || !feed(pipes.stdin.as_mut(), &mut input) {
            pipes.stdin = None;
        }
        take(&mut pipes.stdout, &mut buffer, |bytes| {
            keep(output, |o| o.stdout.push(bytes))
        });
        take(&mut pipes.stderr, &mut buffer, |bytes| {
            keep(output, |o| o.stderr.push(bytes))
        });
        if has_ended {
            lock(output).complete = true;
        }
        changed.notify_all();
    }
    Ok(())
}

fn keep(output: &Mutex<Output>, push: impl FnOnce(&mut Output)) {
    let mut output = lock(output);
    if !output.complete {
        push(&mut output);
    }
}

/// Waits until a pipe is ready; returns whether the program has ended.
fn wait(pipes: &Pipes, ended: &EventFd, has_ended: bool) -> io::Result<bool> {
    let mut fds = Vec::with_capacity(4);
    // The event is never read, so it stays readable, and polling it again would return immediately.
    // It comes first: `fds[0]` below is this event.
    if !has_ended {
        fds.push(PollFd::new(ended.as_fd(), PollFlags::POLLIN));
    }
    // Each end can be used in one way only, so the kernel ignores the other flag.
    let either = PollFlags::POLLIN | PollFlags::POLLOUT;
    fds.extend(pipes.open().map(|pipe| PollFd::new(pipe, either)));
    loop {
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => return Ok(!has_ended && fds[0].any() == Some(true)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes as much as the pipe accepts; returns `false` when nothing is left to write.
fn feed(pipe: Option<&mut ChildStdin>, input: &mut &[u8]) -> bool {
    let Some(pipe) = pipe else { return false };
    while !input.is_empty() {
        // A program may close its input before it has read everything: the rest is dropped.
        match pipe.write(input) {
            Ok(written) => *input = &input[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
    false
}

/// Reads the present content of the pipe, at most one turn; closes the pipe at its end.
fn take<P: Read>(pipe: &mut Option<P>, buffer: &mut [u8], mut push: impl FnMut(&[u8])) {
    let Some(open) = pipe else { return };
    let mut taken = 0;
    while taken < TURN_BYTES {
        match open.read(buffer) {
            Ok(0) => break,
            Ok(read) => {
                push(&buffer[..read]);
                taken += read;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => break,
        }
    }
    // The loop ended early: end of file, or an error.
    if taken < TURN_BYTES {
        *pipe = None;
    }
}

fn set_nonblocking(pipes: &Pipes) -> io::Result<()> {
    for fd in pipes.open() {
        fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    Ok(())
}

//! The caller's side of a station: a child process that answers on its standard output.

use crate::kill::kill_tree;
use crate::own_children::OwnChild;
use crate::procfs::ProcessStat;
use crate::sync::{Deadline, await_true, lock};
use guard::Lines;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, setsid};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use testbed::protocol::{
    BorrowedInterface, Call, PROTOCOL_VERSION, REPLY_BYTES_MAX, Reply, Request, Response,
};
use testbed::{Interrupt, LabError, Node, NodeId, Result};

/// Interval of a pending call's checks of the interrupt.
pub(crate) const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// How long a host may take to remove leftovers of a killed run, and to start its stations.
const TAKE_LIMIT: Duration = Duration::from_secs(90);

/// How long an answer may be overdue before the call fails.
const PATIENCE: Duration = Duration::from_secs(15);

/// From the end of a station's input to its end; it kills its programs in this time.
const HANG_UP_LIMIT: Duration = Duration::from_secs(6);

/// How long to wait for the end of a station after its output has ended.
const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// Last lines of a station's standard error that are kept for messages.
const STDERR_LINES: usize = 8;

/// Limit of bytes kept of each of these lines.
const STDERR_LINE_BYTES: usize = 4096;

/// A station that was started by this process. Dropping it ends it and everything on it.
#[derive(Debug)]
pub struct Station {
    id: NodeId,
    pid: u32,
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    calls: Arc<Mutex<Calls>>,
    errors: Arc<Mutex<Errors>>,
    last_call: AtomicU64,
    interrupt: Interrupt,
    /// The interfaces that it was last asked to give back at its end.
    lent: Arc<Mutex<Vec<BorrowedInterface>>>,
}

/// Pending calls by their number.
#[derive(Debug, Default)]
struct Calls {
    pending: BTreeMap<u64, mpsc::Sender<Result<Response, String>>>,
    /// Whether no more answers will come.
    hung_up: bool,
    /// The reason, if the station did not end by itself.
    lost: Option<String>,
}

/// The last lines of a station's standard error.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    lines: VecDeque<String>,
    complete: bool,
}

/// A child's standard input, to which writes do not block, its output, and its errors, which a
/// thread already collects.
pub(crate) struct Pipes<O> {
    pub(crate) input: ChildStdin,
    pub(crate) output: O,
    pub(crate) errors: Arc<Mutex<Errors>>,
}

impl Station {
    /// Starts a station and does not wait until it answers: `command` is the program with its
    /// arguments, or one that leads there (`ssh host cipherbench station`).
    ///
    /// # Errors
    /// [`LabError::CannotBuild`] when the command cannot be started.
    pub fn start(id: NodeId, command: Command, interrupt: &Interrupt) -> Result<Self> {
        let program = command.get_program().to_owned();
        let cannot_start = |error: io::Error| {
            let (id, program) = (id.name(), program.display());
            LabError::cannot_build(
                format!("cannot start station {id} ({program}): {error}"),
                "see whether the program is there and can be executed",
            )
        };
        let (child, pipes) = start_piped(command, id.name()).map_err(&cannot_start)?;
        Self::adopt(id, child, pipes, interrupt).map_err(cannot_start)
    }

    /// Returns the station that `child` has become.
    ///
    /// # Errors
    /// When no thread can be started; it is ended then.
    pub(crate) fn adopt<O: Read + Send + 'static>(
        id: NodeId,
        child: Child,
        Pipes {
            input,
            output,
            errors,
        }: Pipes<O>,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let station = Self {
            id,
            pid: child.id(),
            child: Mutex::new(child),
            input: Mutex::new(Some(input)),
            calls: Arc::default(),
            errors,
            last_call: AtomicU64::new(0),
            interrupt: interrupt.clone(),
            lent: Arc::default(),
        };
        let calls = Arc::clone(&station.calls);
        // An error drops the station, which ends the child.
        std::thread::Builder::new()
            .name(format!("replies of {}", id.name()))
            .spawn(move || hand_out_replies(output, &calls))?;
        Ok(station)
    }

    /// Waits until the station answers.
    ///
    /// # Errors
    /// [`LabError::Node`] with its error: it could not be set up, or speaks another protocol.
    pub fn hello(&self) -> Result<Response> {
        self.call(Request::Hello {
            protocol: PROTOCOL_VERSION,
        })
    }

    /// Gives the station up: pending and later calls fail with this reason, unless it has ended by
    /// itself. Its process, which may lead to another host, is killed.
    pub(crate) fn lose(&self, reason: &str) {
        {
            let mut calls = lock(&self.calls);
            // A station that has ended by itself is not lost: its last words say more than this
            // reason.
            if !calls.hung_up {
                calls.lost = Some(reason.to_owned());
            }
            calls.hung_up = true;
            calls.pending.clear();
        }
        // It may have ended by itself.
        let _ = lock(&self.child).kill();
    }

    /// Its process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The interfaces that it is to give back at its end, now and later.
    pub(crate) fn lent(&self) -> Arc<Mutex<Vec<BorrowedInterface>>> {
        Arc::clone(&self.lent)
    }

    /// Ends its input, upon which it ends everything and exits. Does not wait for that.
    pub fn hang_up(&self) {
        lock(&self.input).take();
        let mut child = lock(&self.child);
        // A stopped one would not see it. Its process id is not reused before it is reaped.
        if matches!(child.try_wait(), Ok(None)) {
            // It may end at this moment.
            let _ = kill(Pid::from_raw(self.pid.cast_signed()), Signal::SIGCONT);
        }
    }

    fn send(&self, call: &Call) -> Result<()> {
        let mut line = serde_json::to_vec(call)
            .unwrap_or_else(|error| unreachable!("a call is maps, texts and numbers: {error}"));
        line.push(b'\n');
        let mut input = lock(&self.input);
        let Some(pipe) = input.as_mut() else {
            // `gone` may wait for the station's end.
            drop(input);
            return Err(self.gone());
        };
        let written = self.write(pipe, &line);
        if written.is_err() {
            // Half a request may be in the pipe, so later requests would not parse.
            *input = None;
        }
        written
    }

    /// Writes all bytes; a stopped station accepts no more than its pipe holds.
    fn write(&self, pipe: &mut ChildStdin, mut bytes: &[u8]) -> Result<()> {
        let deadline = Deadline::after(PATIENCE);
        while !bytes.is_empty() {
            match pipe.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.interrupt.check()?;
                    if deadline.is_over() {
                        let limit = PATIENCE.as_secs();
                        return Err(self.error(format!("it took no request within {limit} s")));
                    }
                    let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)];
                    let timeout = PollTimeout::try_from(INTERRUPT_INTERVAL);
                    // The next write shows the outcome.
                    let _ = poll(&mut fds, timeout.unwrap_or(PollTimeout::ZERO));
                }
                Err(_) => return Err(self.gone()),
            }
        }
        Ok(())
    }

    fn error(&self, reason: String) -> LabError {
        (self as &dyn Node).error(reason)
    }

    /// The error for a station that has ended by itself, with its last words.
    fn gone(&self) -> LabError {
        if let Some(reason) = lock(&self.calls).lost.clone() {
            return self.error(reason);
        }
        let (status, lines) =
            last_words(&self.errors, || lock(&self.child).try_wait().ok().flatten());
        let status = status.map_or_else(String::new, |status| format!(" ({status})"));
        let lines = lines.join("\n");
        let colon = if lines.is_empty() { "" } else { ": " };
        self.error(format!("the station ended{status}{colon}{lines}"))
    }
}

impl Node for Station {
    fn id(&self) -> NodeId {
        self.id
    }

    fn call(&self, request: Request) -> Result<Response> {
        self.call_unless(request, &self.interrupt)
    }
}

impl Station {
    /// Like [`Node::call`], but ended by this interrupt instead of the station's.
    pub(crate) fn call_unless(&self, request: Request, interrupt: &Interrupt) -> Result<Response> {
        let limit = limit(&request).saturating_add(PATIENCE);
        self.call_within(request, limit, interrupt)
    }

    /// As [`Node::call`], with a limit for the answer.
    pub(crate) fn call_within(
        &self,
        request: Request,
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<Response> {
        interrupt.check()?;
        // Before it is sent: the station may carry it out although its answer is lost.
        if let Request::GiveBack { lent } = &request {
            lock(&self.lent).clone_from(lent);
        }
        // Begins before the request is sent, so that a station that is slow to take it has no more
        // time to answer.
        let deadline = Deadline::after(limit);
        let id = self.last_call.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = mpsc::channel();
        {
            let mut calls = lock(&self.calls);
            if calls.hung_up {
                drop(calls);
                return Err(self.gone());
            }
            // Before the request is sent, because the answer may come before `send` returns.
            calls.pending.insert(id, sender);
        }
        let result = self.send(&Call { id, request }).and_then(|()| {
            loop {
                // In short steps: a channel cannot be awaited together with the interrupt, which is
                // a flag.
                match receiver.recv_timeout(INTERRUPT_INTERVAL) {
                    Ok(result) => break result.map_err(|reason| self.error(reason)),
                    Err(RecvTimeoutError::Disconnected) => break Err(self.gone()),
                    Err(RecvTimeoutError::Timeout) => interrupt.check()?,
                }
                if deadline.is_over() {
                    break Err(self.error(format!("no answer within {} s", limit.as_secs())));
                }
            }
        });
        // A late answer finds no call and is dropped.
        lock(&self.calls).pending.remove(&id);
        result
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.hang_up();
        // No lock is needed any more, as nothing else can use a station that is dropped.
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The usual end: it has seen the end of its input, killed its programs and given interfaces
        // back.
        if reap(child, HANG_UP_LIMIT) {
            return;
        }
        // It hangs, or was stopped. Its process id is not reused before it is reaped.
        // With its programs, which it could not kill itself; its namespaces go with the last of
        // them.
        if let Some(stat) = ProcessStat::read(self.pid) {
            kill_tree(&stat, HANG_UP_LIMIT);
        }
        // A station that hangs in the kernel is abandoned.
        reap(child, LAST_WORDS_LIMIT);
    }
}

/// Starts a command with pipes, in a new session: Ctrl-C and hang-up reach only the run, which ends
/// its stations in order; nothing prompts on the run's terminal; and the kernel sends a station no
/// SIGHUP when the run dies while the station is stopped. `name` is for a thread.
pub(crate) fn start_piped(
    mut command: Command,
    name: &str,
) -> io::Result<(Child, Pipes<ChildStdout>)> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: between fork and exec only a system call is made: no allocation, no lock.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
    // If the command cannot be executed, `spawn` waits for the child itself.
    let own = OwnChild::expect();
    let mut child = command.spawn()?;
    // The reaper of a host's station may reap the child from here on: an error of `try_wait` counts
    // as its end.
    drop(own);
    let pipes = pipes_of(&mut child, name).inspect_err(|_| {
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    });
    Ok((child, pipes?))
}

fn pipes_of(child: &mut Child, name: &str) -> io::Result<Pipes<ChildStdout>> {
    let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(input), Some(output), Some(stderr)) = taken else {
        unreachable!("they were asked for");
    };
    // Writes must not wait for a station or a host that does not read.
    fcntl(&input, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    let errors = Arc::default();
    let kept = Arc::clone(&errors);
    std::thread::Builder::new()
        .name(format!("errors of {name}"))
        .spawn(move || keep_last_lines(stderr, &kept))?;
    Ok(Pipes {
        input,
        output,
        errors,
    })
}

/// Waits for a child to end, up to `limit`; returns whether it has ended.
pub(crate) fn reap(child: &mut Child, limit: Duration) -> bool {
    let is_over = || Ok::<_, Infallible>(!matches!(child.try_wait(), Ok(None)));
    let Ok(is_over) = await_true(limit, Duration::from_millis(1), is_over);
    is_over
}

/// How long the station may take to answer a request.
fn limit(request: &Request) -> Duration {
    match request {
        Request::Start { limit_ms, .. }
        | Request::Wait { limit_ms, .. }
        | Request::AwaitLine { limit_ms, .. }
        | Request::Sample { limit_ms, .. } => Duration::from_millis(*limit_ms),
        Request::Stop { grace_ms, .. } => Duration::from_millis(*grace_ms),
        // An earlier run's stations may have to give something back first.
        Request::TakePart { .. } => TAKE_LIMIT,
        // The host waits for the same time, and then answers.
        Request::On { request, .. } => limit(request).saturating_add(PATIENCE),
        _ => Duration::ZERO,
    }
}

fn hand_out_replies(output: impl Read, calls: &Mutex<Calls>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        // One byte more than allowed, so that a line that is too long differs from one of exactly
        // the limit.
        let mut beginning = output.by_ref().take(REPLY_BYTES_MAX as u64 + 1);
        match beginning.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        // No station sends a line of this length, so the rest is not a station's either. Closes its
        // output.
        if line.len() > REPLY_BYTES_MAX {
            let most = REPLY_BYTES_MAX >> 20;
            let reason = format!("it sent a line of more than {most} MiB, which no station does");
            lock(calls).lost = Some(reason);
            break;
        }
        // Other lines on its standard output, as a login shell may print, are ignored, and so are
        // answers to calls that timed out.
        let Ok(Reply { id, result }) = serde_json::from_slice(&line) else {
            continue;
        };
        if let Some(caller) = lock(calls).pending.remove(&id) {
            let _ = caller.send(result);
        }
    }
    let mut calls = lock(calls);
    calls.hung_up = true;
    calls.pending.clear();
}

/// Waits a short time for the end of a command after its output has ended, and for its errors to be
/// read. Returns its exit status, if it has ended, and its last lines on standard error.
pub(crate) fn last_words(
    errors: &Mutex<Errors>,
    mut try_wait: impl FnMut() -> Option<ExitStatus>,
) -> (Option<ExitStatus>, Vec<String>) {
    let deadline = Deadline::after(LAST_WORDS_LIMIT);
    let mut status = None;
    while (status.is_none() || !lock(errors).complete) && !deadline.is_over() {
        std::thread::sleep(Duration::from_millis(1));
        status = try_wait();
    }
    (status, Vec::from(lock(errors).lines.clone()))
}

fn keep_last_lines(stderr: impl Read, errors: &Mutex<Errors>) {
    // Read to the end even if nobody asks for it: a full pipe would stop the station.
    for line in Lines::new(BufReader::new(stderr), STDERR_LINE_BYTES) {
        let Ok(line) = line else { break };
        // Locked line by line, since a reader may want the last words at any time.
        let mut errors = lock(errors);
        errors.lines.push_back(line.text.trim_end().to_owned());
        if errors.lines.len() > STDERR_LINES {
            errors.lines.pop_front();
        }
    }
    lock(errors).complete = true;
}

#[cfg(test)]
mod attack;

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the call fails at the moment at which the station says that no line came.
    #[test]
    fn a_call_waits_longer_than_the_station_that_it_has_wait() {
        let line = Request::AwaitLine {
            process: 1,
            prefix: "ready".to_owned(),
            limit_ms: 15_000,
        };
        assert_eq!(limit(&line), Duration::from_secs(15));
        let on_host = Request::On {
            node: "gw1".to_owned(),
            request: Box::new(line),
        };
        assert_eq!(limit(&on_host), Duration::from_secs(15) + PATIENCE);
    }
}

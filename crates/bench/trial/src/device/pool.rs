//! The pool of worker processes of one trial: starts them, sends orders, receives their report
//! lines, and ends them in any case.

use super::{Context, problem};
use crate::error::TrialError;
use catalog::worker::{LINE_BYTES_MAX, Line, Spec};
use guard::Lines;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use testbed::{Interrupt, LabError};

/// Stack of a thread that reads lines: its calls are shallow, and there may be a thousand of them.
const STACK_BYTES: usize = 256 << 10;
/// Interval of checking for an interrupt.
const INTERRUPT_STEP: Duration = Duration::from_millis(100);
/// Bytes kept of the workers' standard error: its end.
const STDERR_TAIL_BYTES: usize = 4096;
/// Characters of the last line of standard error that are quoted.
const STDERR_LINE_CHARS_MAX: usize = 300;
/// Standard error beyond this size is cut to its end: drivers may write for weeks.
const STDERR_BYTES_MAX: u64 = 1 << 20;
/// From closing a worker's input until it is killed. It may have to remove its token of SoftHSM2.
const EXIT_LIMIT: Duration = Duration::from_secs(2);
/// From killing a worker until the pool stops waiting for it: it may hang in a driver.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Interval of polling whether a process has ended: the kernel does not notify without reaping it.
const EXIT_POLL: Duration = Duration::from_millis(5);

/// A message from a worker.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    Line(Line),
    /// It ended without a last line; the text says how.
    Died(String),
}

struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    /// It has sent its last line: what follows is its orderly end.
    is_done: bool,
    /// It has been waited for: its PID may be another process's by now.
    is_reaped: bool,
}

/// The workers of one trial, numbered in starting order.
pub(super) struct WorkerPool<'a> {
    context: &'a Context<'a>,
    workers: Vec<Worker>,
    sender: Sender<(usize, Option<Line>)>,
    receiver: Receiver<(usize, Option<Line>)>,
    /// Standard error of all workers.
    stderr: File,
    /// The process group of all workers if they share one: the first worker's.
    group: Option<Pid>,
    is_one_group: bool,
}

impl<'a> WorkerPool<'a> {
    /// An empty pool. Workers of one group can [begin](Self::begin) together; none of them may be
    /// started after another has ended.
    pub(super) fn new(context: &'a Context<'a>, is_one_group: bool) -> Result<Self, TrialError> {
        let (sender, receiver) = channel();
        // Workers append, so that the file can be truncated while they write.
        let stderr = tempfile::Builder::new().append(true).tempfile();
        let stderr = stderr
            .map_err(|error| problem(format!("cannot make a temporary file: {error}")))?
            .into_file();
        Ok(Self {
            context,
            workers: Vec::new(),
            sender,
            receiver,
            stderr,
            group: None,
            is_one_group,
        })
    }

    /// Starts a worker with its spec and returns its number.
    pub(super) fn start(&mut self, spec: &Spec) -> Result<usize, TrialError> {
        let [program, arguments @ ..] = &self.context.devices.worker[..] else {
            return Err(problem(
                "no worker program for crypto devices is configured",
            ));
        };
        let refused = |error| {
            problem(format!(
                "cannot start {}: {error}; check that the machine has processes and descriptors left (`ulimit -u -n`)",
                program.to_string_lossy()
            ))
        };
        self.reap_ended();
        let stderr = self.stderr.try_clone().map_err(refused)?;
        let mut child = Command::new(program)
            .args(arguments)
            .env("PATH", &self.context.devices.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            // Ctrl-C must reach the run, which stops the workers, but not the workers.
            .process_group(self.group.map_or(0, Pid::as_raw))
            .spawn()
            .map_err(refused)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        if self.is_one_group && self.group.is_none() {
            // Its first member gives a group its ID. It stays valid while that process is not
            // reaped, even after its end.
            self.group = i32::try_from(child.id()).ok().map(Pid::from_raw);
        }
        let number = self.workers.len();
        self.workers.push(Worker {
            child,
            input,
            is_done: false,
            is_reaped: false,
        });
        let spec = serde_json::to_string(spec).expect("a spec can be written as JSON");
        self.send(number, &spec);
        if let Some(output) = output {
            // A worker is useless if its output is not read.
            self.listen(number, output).map_err(|error| {
                self.kill(number);
                refused(error)
            })?;
        }
        Ok(number)
    }

    fn listen(&self, number: usize, output: impl Read + Send + 'static) -> std::io::Result<()> {
        let sender = self.sender.clone();
        let listen = move || {
            for line in Lines::new(BufReader::new(output), LINE_BYTES_MAX).map_while(Result::ok) {
                // Drivers may print other lines.
                let Ok(line) = serde_json::from_str(&line.text) else {
                    continue;
                };
                if sender.send((number, Some(line))).is_err() {
                    return;
                }
            }
            // The receiver is gone when the trial is over.
            let _ = sender.send((number, None));
        };
        thread::Builder::new()
            .name(format!("worker {number}"))
            .stack_size(STACK_BYTES)
            .spawn(listen)
            .map(drop)
    }

    /// Orders all workers to begin. A group is stopped meanwhile: otherwise the first hundreds of
    /// workers would leave this process no core to send the order to the others.
    pub(super) fn begin(&mut self) {
        let group = self.group.filter(|_| self.workers.len() > 1);
        let signal = |signal| {
            if let Some(group) = group {
                // Fails when all workers have ended, which their messages report.
                let _ = killpg(group, signal);
            }
        };
        // The order waits in the pipe of a stopped worker, and SIGCONT reaches the whole group in
        // one call.
        signal(Signal::SIGSTOP);
        for worker in 0..self.workers.len() {
            self.send(worker, "go");
        }
        signal(Signal::SIGCONT);
    }

    /// Sends a line to a worker: its spec, or the order `go` or `stop`. The end of a worker that
    /// does not receive it is reported by its messages.
    pub(super) fn send(&mut self, worker: usize, line: &str) {
        let worker = &mut self.workers[worker];
        if let Some(input) = &mut worker.input
            && input.write_all(format!("{line}\n").as_bytes()).is_err()
        {
            worker.input = None;
        }
    }

    /// Returns the next message of any worker; `None` after `limit`.
    ///
    /// # Errors
    /// On an interrupt.
    pub(super) fn receive(
        &mut self,
        limit: Duration,
    ) -> Result<Option<(usize, WorkerMessage)>, TrialError> {
        let until = Instant::now() + limit;
        loop {
            self.context.interrupt.check().map_err(TrialError::Lab)?;
            let left = until.saturating_duration_since(Instant::now());
            if let Some(message) = self.receive_uninterrupted(left.min(INTERRUPT_STEP)) {
                return Ok(Some(message));
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// As [`Self::receive`], without checking for an interrupt.
    pub(super) fn receive_uninterrupted(
        &mut self,
        limit: Duration,
    ) -> Option<(usize, WorkerMessage)> {
        let until = Instant::now() + limit;
        // Here, since every caller comes by often, and no thread is needed for it.
        self.truncate_stderr();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(left).ok()? {
                (number, Some(line)) => {
                    self.workers[number].is_done |= line.is_last();
                    return Some((number, WorkerMessage::Line(line)));
                }
                // Its output has ended after its last line, as it should. Its input is closed too,
                // so that it can be reaped.
                (number, None) if self.workers[number].is_done => {
                    self.workers[number].input = None;
                }
                (number, None) => {
                    let how = self.describe_end(number);
                    self.kill(number);
                    return Some((number, WorkerMessage::Died(how)));
                }
            }
        }
    }

    /// Kills a worker that does not respond, and all processes that it started. Of workers of one
    /// group it kills that one only: the others end with the pool.
    pub(super) fn kill(&mut self, worker: usize) {
        let is_one_group = self.is_one_group;
        let worker = &mut self.workers[worker];
        // The end of its output follows, and is no further death to report.
        worker.is_done = true;
        worker.input = None;
        if worker.is_reaped {
            return;
        }
        // Fails if it has ended by itself.
        let _ = if is_one_group {
            worker.child.kill()
        } else {
            killpg(worker.pid(), Signal::SIGKILL).map_err(Into::into)
        };
        self.reap_ended();
    }

    /// Reaps ended workers, which would keep their PIDs; not the workers of one group, since the
    /// group ID would become invalid.
    fn reap_ended(&mut self) {
        if self.is_one_group {
            return;
        }
        for worker in self.workers.iter_mut().filter(|it| !it.is_reaped) {
            // The order matters: while the worker is not reaped, its number cannot be another
            // process's, so the signal meets its group only.
            if worker.input.is_none() && worker.exit().is_some() {
                // Processes that it started may still run.
                let _ = killpg(worker.pid(), Signal::SIGKILL);
                worker.is_reaped = matches!(worker.child.try_wait(), Ok(Some(_)));
            }
        }
    }

    /// Describes how a worker died, with the last line of standard error.
    fn describe_end(&self, number: usize) -> String {
        // Its output is closed; its process may take a moment to end.
        let worker = &self.workers[number];
        let until = Instant::now() + Duration::from_secs(1);
        let how = loop {
            match worker.exit() {
                Some(how) => break how,
                None if Instant::now() < until => thread::sleep(EXIT_POLL),
                None => break "closed its output".to_owned(),
            }
        };
        match self.last_stderr_line() {
            Some(line) => format!("its process {how}; last on standard error: {line}"),
            None => format!("its process {how}"),
        }
    }

    /// Cuts standard error to its end when it has become too large.
    fn truncate_stderr(&mut self) {
        let length = self.stderr.metadata().map_or(0, |found| found.len());
        if length > STDERR_BYTES_MAX {
            let tail = self.stderr_tail(length).unwrap_or_default();
            // A file that cannot be cut continues to grow.
            let _ = self
                .stderr
                .set_len(0)
                .and_then(|()| self.stderr.write_all(&tail));
        }
    }

    fn stderr_tail(&self, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; STDERR_TAIL_BYTES];
        let from = length.saturating_sub(STDERR_TAIL_BYTES as u64);
        let read = self.stderr.read_at(&mut bytes, from).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    fn last_stderr_line(&self) -> Option<String> {
        let length = self.stderr.metadata().ok()?.len();
        let bytes = self.stderr_tail(length)?;
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(last.trim().chars().take(STDERR_LINE_CHARS_MAX).collect())
    }

    /// Kills the workers that have not ended, and all processes that any of them started.
    fn kill_all(&self) {
        let kill = |group| {
            // Fails when the group is empty, which is usual.
            let _ = killpg(group, Signal::SIGKILL);
        };
        if let Some(group) = self.group.filter(|_| self.is_one_group) {
            return kill(group);
        }
        let left = self.workers.iter().filter(|worker| !worker.is_reaped);
        left.for_each(|worker| kill(worker.pid()));
    }

    /// Waits until all workers have ended, at most for `limit`.
    fn await_exits(&self, limit: Duration) {
        let runs = |worker: &Worker| !worker.is_reaped && worker.exit().is_none();
        let until = Instant::now() + limit;
        while self.workers.iter().any(runs) && Instant::now() < until {
            thread::sleep(EXIT_POLL);
        }
    }
}

impl Worker {
    /// Its PID, which is also the ID of its process group, unless it shares one.
    fn pid(&self) -> Pid {
        // The kernel numbers processes by signed integers.
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Returns how it ended; `None` while it runs. It is not reaped, so that no other process gets
    /// its PID.
    fn exit(&self) -> Option<String> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.pid()), flags) {
            Ok(WaitStatus::Exited(_, code)) => Some(format!("ended with exit code {code}")),
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                Some(format!("died of signal {}", signal as i32))
            }
            Ok(_) => None,
            Err(_) => Some("ended".to_owned()),
        }
    }
}

impl Drop for WorkerPool<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.input = None;
        }
        // All inputs are closed first, so that a thousand workers end in parallel and remove their
        // tokens.
        self.await_exits(EXIT_LIMIT);
        self.kill_all();
        self.await_exits(KILL_LIMIT);
        for worker in self.workers.iter_mut().filter(|it| !it.is_reaped) {
            // A worker that hangs in a driver is left to the reaper of orphans.
            let _ = worker.child.try_wait();
        }
    }
}

/// Raises the limit of descriptors to the permitted maximum: a thousand workers have three thousand
/// pipes.
pub(super) fn raise_descriptor_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // If it is refused, starting a worker reports it.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Whether the run is to stop.
pub(super) fn is_interrupted(interrupt: &Interrupt) -> bool {
    matches!(interrupt.check(), Err(LabError::Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OnDevices;
    use plan::{DeviceKind, DeviceTest, Kat};
    use std::ffi::OsString;
    use std::fs;

    fn with_shell(script: &str, test: impl FnOnce(&mut WorkerPool<'_>)) {
        let context = Context {
            devices: &OnDevices::new(
                ["sh", "-c", script].map(OsString::from).to_vec(),
                std::env::var_os("PATH").unwrap(),
            ),
            interrupt: &Interrupt::new(),
        };
        test(&mut WorkerPool::new(&context, false).unwrap());
    }

    fn start(pool: &mut WorkerPool<'_>) -> usize {
        let spec = Spec {
            device: DeviceKind::Engine { kernel: None },
            test: DeviceTest::Kat(Kat {
                algorithms: Vec::new(),
            }),
            processes: 1,
            seed: 1,
        };
        pool.start(&spec).unwrap()
    }

    fn died(pool: &mut WorkerPool<'_>) -> String {
        match pool.receive(Duration::from_secs(60)).unwrap() {
            Some((_, WorkerMessage::Died(how))) => how,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a process is gone or a zombie.
    fn is_gone(pid: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") {
                return true;
            }
            thread::sleep(EXIT_POLL);
        }
        false
    }

    #[test]
    fn dead_workers_leave_neither_descriptors_nor_processes() {
        with_shell("read spec; exit 3", |pool| {
            for _ in 0..20 {
                start(pool);
                assert!(died(pool).contains("exit code 3"));
            }
            pool.reap_ended();
            let clean = |worker: &Worker| worker.input.is_none() && worker.is_reaped;
            assert!(pool.workers.iter().all(clean));
        });
    }

    #[test]
    fn processes_of_a_worker_end_with_it() {
        // The sleeper does not notice the end of any input.
        let script = "sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >&2; echo; wait";
        let mut sleepers = Vec::new();
        with_shell(script, |pool| {
            for _ in 0..2 {
                let worker = start(pool);
                let printed = || {
                    pool.last_stderr_line()
                        .filter(|pid| !sleepers.contains(pid))
                };
                let pid = loop {
                    match printed() {
                        Some(pid) => break pid,
                        None => thread::sleep(EXIT_POLL),
                    }
                };
                sleepers.push(pid.clone());
                if worker == 0 {
                    pool.kill(worker);
                    assert!(is_gone(&pid));
                }
            }
        });
        assert!(sleepers.iter().all(|pid| is_gone(pid)));
    }

    #[test]
    fn workers_may_clean_up_after_their_end_of_input() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("left");
        let path = file.display();
        let script = format!("touch {path}; read spec; echo x >&2; read end; sleep 0.2; rm {path}");
        with_shell(&script, |pool| {
            start(pool);
            while pool.last_stderr_line().is_none() {
                thread::sleep(EXIT_POLL);
            }
            assert!(file.exists());
        });
        assert!(!file.exists());
    }

    #[test]
    fn standard_error_is_cut_and_its_end_is_kept() {
        let script = "read spec; yes noise | head -c 3000000 >&2; echo the end >&2; exit 1";
        with_shell(script, |pool| {
            start(pool);
            assert!(died(pool).ends_with("the end"));
            assert!(pool.receive_uninterrupted(Duration::ZERO).is_none());
            let length = pool.stderr.metadata().unwrap().len();
            assert!(length <= STDERR_TAIL_BYTES as u64, "{length}");
            assert_eq!(pool.last_stderr_line().as_deref(), Some("the end"));
        });
    }
}

//! The workers of one trial: started, told, heard, and ended whatever happens.

use super::{Context, problem};
use crate::error::TrialError;
use device::report::Line;
use device::spec::Spec;
use lab::{Interrupt, LabError};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing deep happens on a thread that reads lines, and there may be a thousand of them.
const STACK_BYTES: usize = 256 << 10;
/// How often it is looked whether the run is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Of what workers said on standard error, the end.
const LAST_WORDS_BYTES: usize = 4096;
const LAST_WORDS_CHARS_MAX: usize = 300;
/// When workers have written so much on standard error, all but the end is thrown away: drivers may
/// write for weeks.
const ERRORS_BYTES_MAX: u64 = 1 << 20;
/// From the end of a worker's input until it is killed. It may have to remove what it made: a token
/// of SoftHSM2.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// From when it is killed until nobody waits for it any more: it may hang in a driver.
const KILLED_LIMIT: Duration = Duration::from_secs(5);
/// How often it is looked whether a process has ended: nothing tells of it without reaping it.
const LOOK_FOR_END: Duration = Duration::from_millis(5);

/// What a worker said, or that it is gone.
#[derive(Debug)]
pub(super) enum Heard {
    Line(Line),
    /// It ended without saying so: how.
    Died(String),
}

struct Worker {
    child: Child,
    told: Option<ChildStdin>,
    /// It said that it was done, or why it cannot do it: what follows is its orderly end.
    is_done: bool,
    /// It was waited for: its number may be another process's by now.
    is_reaped: bool,
}

/// The workers of one trial, by number in the order in which they were started.
pub(super) struct Crew<'a> {
    context: &'a Context<'a>,
    workers: Vec<Worker>,
    says: Sender<(usize, Option<Line>)>,
    heard: Receiver<(usize, Option<Line>)>,
    /// Standard error of all of them.
    errors: File,
    /// Their process group, where they have one in common: that of the first.
    group: Option<Pid>,
    is_one_group: bool,
}

impl<'a> Crew<'a> {
    /// None so far. Those of one group can [begin](Self::go) at once, and none of them may be
    /// started after another has ended.
    pub(super) fn new(context: &'a Context<'a>, is_one_group: bool) -> Result<Self, TrialError> {
        let (says, heard) = channel();
        // Whoever writes appends, so that it can be cut while they do.
        let errors = tempfile::Builder::new().append(true).tempfile();
        let errors = errors
            .map_err(|error| problem(format!("cannot make a temporary file: {error}")))?
            .into_file();
        Ok(Self {
            context,
            workers: Vec::new(),
            says,
            heard,
            errors,
            group: None,
            is_one_group,
        })
    }

    /// Starts one more worker and tells it what to do; gives its number.
    pub(super) fn start(&mut self, spec: &Spec) -> Result<usize, TrialError> {
        let [program, arguments @ ..] = self.context.worker else {
            return Err(problem("no program is named that works on devices"));
        };
        let refused = |error| {
            problem(format!(
                "cannot start {}: {error}; see whether the machine has processes and descriptors left (`ulimit -u -n`)",
                program.to_string_lossy()
            ))
        };
        self.reap_ended();
        let errors = self.errors.try_clone().map_err(refused)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            // Ctrl-C is for whoever asks the workers to stop, not for them.
            .process_group(self.group.map_or(0, Pid::as_raw))
            .spawn()
            .map_err(refused)?;
        let (told, says) = (child.stdin.take(), child.stdout.take());
        if self.is_one_group && self.group.is_none() {
            self.group = i32::try_from(child.id()).ok().map(Pid::from_raw);
        }
        let number = self.workers.len();
        self.workers.push(Worker {
            child,
            told,
            is_done: false,
            is_reaped: false,
        });
        let mut line = serde_json::to_string(spec).expect("a spec can be written as JSON");
        line.push('\n');
        self.write(number, &line);
        if let Some(says) = says {
            // One that nobody can hear is of no use.
            self.listen(number, says).map_err(|error| {
                self.kill(number);
                refused(error)
            })?;
        }
        Ok(number)
    }

    fn listen(&self, number: usize, says: impl Read + Send + 'static) -> std::io::Result<()> {
        let heard = self.says.clone();
        let listen = move || {
            for line in BufReader::new(says).split(b'\n').map_while(Result::ok) {
                // Drivers print what they like; it is no line of ours.
                let Ok(line) = serde_json::from_slice(&line) else {
                    continue;
                };
                if heard.send((number, Some(line))).is_err() {
                    return;
                }
            }
            // Nobody listens any more when the trial is over.
            let _ = heard.send((number, None));
        };
        thread::Builder::new()
            .name(format!("worker {number}"))
            .stack_size(STACK_BYTES)
            .spawn(listen)
            .map(drop)
    }

    /// Has all workers begin. Those of a group hear of it while they are stopped: else the first
    /// hundreds would leave this process no core to tell the others.
    pub(super) fn go(&mut self) {
        let group = self.group.filter(|_| self.workers.len() > 1);
        let signal = |signal| {
            if let Some(group) = group {
                // Where nobody is left to be stopped, nobody begins either, and that is heard.
                let _ = killpg(group, signal);
            }
        };
        signal(Signal::SIGSTOP);
        for worker in 0..self.workers.len() {
            self.order(worker, "go");
        }
        signal(Signal::SIGCONT);
    }

    /// Gives an order: `go` or `stop`. A worker that is gone does not hear it, and says so by being
    /// gone.
    pub(super) fn order(&mut self, worker: usize, order: &str) {
        self.write(worker, &format!("{order}\n"));
    }

    fn write(&mut self, worker: usize, text: &str) {
        if let Some(told) = &mut self.workers[worker].told
            && told.write_all(text.as_bytes()).is_err()
        {
            self.workers[worker].told = None;
        }
    }

    /// The next thing that any worker says, if it comes within that time.
    ///
    /// # Errors
    /// When the run is to stop.
    pub(super) fn hear(&mut self, within: Duration) -> Result<Option<(usize, Heard)>, TrialError> {
        let until = Instant::now() + within;
        loop {
            self.context.interrupt.check().map_err(TrialError::Lab)?;
            let left = until.saturating_duration_since(Instant::now());
            if let Some(heard) = self.hear_briefly(left.min(LOOK)) {
                return Ok(Some(heard));
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// The same, whether the run is to stop or not.
    pub(super) fn hear_briefly(&mut self, within: Duration) -> Option<(usize, Heard)> {
        let until = Instant::now() + within;
        self.cut_errors();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok((number, Some(line))) => {
                    let is_last = matches!(
                        line,
                        Line::End | Line::Failed(_) | Line::PinRefused(_) | Line::NotOffered(_)
                    );
                    self.workers[number].is_done |= is_last;
                    return Some((number, Heard::Line(line)));
                }
                Ok((number, None)) if self.workers[number].is_done => {
                    self.workers[number].told = None;
                }
                Ok((number, None)) => {
                    let how = self.last_words(number);
                    self.kill(number);
                    return Some((number, Heard::Died(how)));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Ends a worker that does not answer, with all that it started. Of workers of one group it
    /// ends that one only: the others go with the crew.
    pub(super) fn kill(&mut self, worker: usize) {
        let is_one_group = self.is_one_group;
        let worker = &mut self.workers[worker];
        worker.is_done = true;
        worker.told = None;
        if worker.is_reaped {
            return;
        }
        // It may have ended by itself.
        let _ = match is_one_group {
            true => worker.child.kill(),
            false => killpg(worker.pid(), Signal::SIGKILL).map_err(Into::into),
        };
        self.reap_ended();
    }

    /// Waits for those that have ended, as each would keep its number; not for those of one group,
    /// whose group would be lost.
    fn reap_ended(&mut self) {
        if self.is_one_group {
            return;
        }
        for worker in self.workers.iter_mut().filter(|it| !it.is_reaped) {
            if worker.told.is_none() && worker.how_it_ended().is_some() {
                // What it started may not have ended.
                let _ = killpg(worker.pid(), Signal::SIGKILL);
                worker.is_reaped = matches!(worker.child.try_wait(), Ok(Some(_)));
            }
        }
    }

    /// How a worker died, with what was said on standard error last.
    fn last_words(&self, number: usize) -> String {
        // Its output is closed; it is given a moment to be gone.
        let worker = &self.workers[number];
        let until = Instant::now() + Duration::from_secs(1);
        let how = loop {
            match worker.how_it_ended() {
                Some(how) => break how,
                None if Instant::now() < until => thread::sleep(LOOK_FOR_END),
                None => break "closed its output".to_owned(),
            }
        };
        match self.end_of_errors() {
            Some(words) => format!("its process {how}; last on standard error: {words}"),
            None => format!("its process {how}"),
        }
    }

    /// Throws away what nobody will read of what was said on standard error.
    fn cut_errors(&mut self) {
        let length = self.errors.metadata().map_or(0, |found| found.len());
        if length > ERRORS_BYTES_MAX {
            let end = self.last_errors(length).unwrap_or_default();
            // Where it cannot be cut it grows on.
            let _ = self
                .errors
                .set_len(0)
                .and_then(|()| self.errors.write_all(&end));
        }
    }

    fn last_errors(&self, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; LAST_WORDS_BYTES];
        let from = length.saturating_sub(LAST_WORDS_BYTES as u64);
        let read = self.errors.read_at(&mut bytes, from).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    fn end_of_errors(&self) -> Option<String> {
        let length = self.errors.metadata().ok()?.len();
        let bytes = self.last_errors(length)?;
        let text = String::from_utf8_lossy(&bytes);
        let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(last.trim().chars().take(LAST_WORDS_CHARS_MAX).collect())
    }

    /// Kills those that have not ended, with all that any of them started.
    fn kill_all(&self) {
        let kill = |group| {
            // Mostly nobody is left.
            let _ = killpg(group, Signal::SIGKILL);
        };
        if let Some(group) = self.group.filter(|_| self.is_one_group) {
            return kill(group);
        }
        let left = self.workers.iter().filter(|worker| !worker.is_reaped);
        left.for_each(|worker| kill(worker.pid()));
    }
}

impl Worker {
    /// Also of its group, where it has one of its own.
    fn pid(&self) -> Pid {
        // The kernel numbers processes by such integers.
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// `None`: it runs. It is not waited for, so that until then no other process gets its number.
    fn how_it_ended(&self) -> Option<String> {
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

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.told = None;
        }
        let runs = |worker: &Worker| !worker.is_reaped && worker.how_it_ended().is_none();
        let until = Instant::now() + LEAVE_LIMIT;
        while self.workers.iter().any(runs) && Instant::now() < until {
            thread::sleep(LOOK_FOR_END);
        }
        self.kill_all();
        let until = Instant::now() + KILLED_LIMIT;
        while self.workers.iter().any(runs) && Instant::now() < until {
            thread::sleep(LOOK_FOR_END);
        }
        for worker in self.workers.iter_mut().filter(|it| !it.is_reaped) {
            // One that hangs in a driver is left to whoever reaps orphans.
            let _ = worker.child.try_wait();
        }
    }
}

/// Lets a process have as many descriptors as it may: a thousand workers have three thousand pipes.
pub(super) fn allow_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where it is refused, starting a worker says so.
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
    use campaign::plan::{DeviceKind, DeviceTest, Kat};
    use std::cell::RefCell;
    use std::ffi::OsString;
    use std::fs;

    fn with_shell(script: &str, test: impl FnOnce(&mut Crew<'_>)) {
        let interrupt = Interrupt::new();
        let worker = ["sh", "-c", script].map(OsString::from);
        let context = Context {
            worker: &worker,
            silence: None,
            interrupt: &interrupt,
            refused: RefCell::default(),
        };
        test(&mut Crew::new(&context, false).unwrap());
    }

    fn start(crew: &mut Crew<'_>) -> usize {
        let spec = Spec {
            device: DeviceKind::Engine { kernel: None },
            test: DeviceTest::Kat(Kat {
                algorithms: Vec::new(),
            }),
            seed: 1,
        };
        crew.start(&spec).unwrap()
    }

    fn died(crew: &mut Crew<'_>) -> String {
        match crew.hear(Duration::from_secs(60)).unwrap() {
            Some((_, Heard::Died(how))) => how,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a process is gone, or nothing of it but its number.
    fn is_gone(pid: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") {
                return true;
            }
            thread::sleep(LOOK_FOR_END);
        }
        false
    }

    #[test]
    fn workers_that_died_leave_neither_descriptors_nor_processes() {
        with_shell("read spec; exit 3", |crew| {
            for _ in 0..20 {
                start(crew);
                assert!(died(crew).contains("exit code 3"));
            }
            crew.reap_ended();
            let clean = |worker: &Worker| worker.told.is_none() && worker.is_reaped;
            assert!(crew.workers.iter().all(clean));
        });
    }

    #[test]
    fn what_a_worker_started_ends_with_it() {
        // Nobody tells the sleeper of the end of any input.
        let script = "sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >&2; echo; wait";
        let mut sleepers = Vec::new();
        with_shell(script, |crew| {
            for _ in 0..2 {
                let worker = start(crew);
                let told = || crew.end_of_errors().filter(|pid| !sleepers.contains(pid));
                let pid = loop {
                    match told() {
                        Some(pid) => break pid,
                        None => thread::sleep(LOOK_FOR_END),
                    }
                };
                sleepers.push(pid.clone());
                if worker == 0 {
                    crew.kill(worker);
                    assert!(is_gone(&pid));
                }
            }
        });
        assert!(sleepers.iter().all(|pid| is_gone(pid)));
    }

    #[test]
    fn those_that_are_through_may_clean_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("left");
        let path = file.display();
        let script = format!("touch {path}; read spec; echo x >&2; read end; sleep 0.2; rm {path}");
        with_shell(&script, |crew| {
            start(crew);
            while crew.end_of_errors().is_none() {
                thread::sleep(LOOK_FOR_END);
            }
            assert!(file.exists());
        });
        assert!(!file.exists());
    }

    #[test]
    fn what_drivers_write_is_cut_and_its_end_is_kept() {
        let script = "read spec; yes noise | head -c 3000000 >&2; echo the end >&2; exit 1";
        with_shell(script, |crew| {
            start(crew);
            assert!(died(crew).ends_with("the end"));
            assert!(crew.hear_briefly(Duration::ZERO).is_none());
            let length = crew.errors.metadata().unwrap().len();
            assert!(length <= LAST_WORDS_BYTES as u64, "{length}");
            assert_eq!(crew.end_of_errors().as_deref(), Some("the end"));
        });
    }
}

//! The workers of one trial: started, told, heard, and ended whatever happens.

use super::{Context, problem};
use crate::error::TrialError;
use device::report::Line;
use device::spec::Spec;
use lab::{Interrupt, LabError};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
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
    /// None so far. Those of one group can [begin](Self::go) at once, and none of them may be started after another has ended.
    pub(super) fn new(context: &'a Context<'a>, is_one_group: bool) -> Result<Self, TrialError> {
        let (says, heard) = channel();
        let errors = tempfile::tempfile()
            .map_err(|error| problem(format!("cannot make a temporary file: {error}")))?;
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
        });
        let mut line = serde_json::to_string(spec).expect("a spec can be written as JSON");
        line.push('\n');
        self.write(number, &line);
        if let Some(says) = says {
            self.listen(number, says).map_err(refused)?;
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

    /// Has all workers begin. Those of a group hear of it while they are stopped: else the first hundreds would leave this
    /// process no core to tell the others.
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

    /// Gives an order: `go` or `stop`. A worker that is gone does not hear it, and says so by being gone.
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
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok((number, Some(line))) => {
                    let is_last = matches!(line, Line::End | Line::Failed(_) | Line::NotOffered(_));
                    self.workers[number].is_done |= is_last;
                    return Some((number, Heard::Line(line)));
                }
                Ok((number, None)) if self.workers[number].is_done => {}
                Ok((number, None)) => {
                    let how = self.last_words(number);
                    return Some((number, Heard::Died(how)));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Ends a worker that does not answer.
    pub(super) fn kill(&mut self, worker: usize) {
        let worker = &mut self.workers[worker];
        worker.is_done = true;
        worker.told = None;
        // It may have ended by itself.
        let _ = worker.child.kill();
    }

    /// How a worker died, with what was said on standard error last.
    fn last_words(&mut self, number: usize) -> String {
        // Its output is closed; it is given a moment to be gone.
        let child = &mut self.workers[number].child;
        let until = Instant::now() + Duration::from_secs(1);
        let how = loop {
            match child.try_wait() {
                Ok(Some(status)) => break in_words(status),
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                _ => break "closed its output".to_owned(),
            }
        };
        match self.end_of_errors() {
            Some(words) => format!("its process {how}; last on standard error: {words}"),
            None => format!("its process {how}"),
        }
    }

    fn end_of_errors(&self) -> Option<String> {
        let length = self.errors.metadata().ok()?.len();
        let mut bytes = vec![0; LAST_WORDS_BYTES];
        // The position of the file is that of the workers, which write on.
        let from = length.saturating_sub(LAST_WORDS_BYTES as u64);
        let read = self.errors.read_at(&mut bytes, from).ok()?;
        let text = String::from_utf8_lossy(&bytes[..read]);
        let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(last.trim().chars().take(LAST_WORDS_CHARS_MAX).collect())
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.told = None;
            // Whatever it did is of no use any more; mostly it has ended.
            let _ = worker.child.kill();
        }
        for worker in &mut self.workers {
            let _ = worker.child.wait();
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (_, Some(signal)) => format!("died of signal {signal}"),
        (Some(code), None) => format!("ended with exit code {code}"),
        (None, None) => "ended".to_owned(),
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

//! One started program: forking, waiting, signalling and reaping.

use super::pump::{self, Output, Pipes};
use crate::procfs::ProcessStat;
use crate::sync::{Deadline, lock, wait};
use crate::{procfs, programs};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpid, getppid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use testbed::protocol::{CpuTime, Ended, Program, Ready, THIS_PROGRAM, THIS_PROGRAM_NAME};

/// Polling interval for a listening socket, which causes no event.
const LISTENING_INTERVAL: Duration = Duration::from_millis(2);

/// Interval of resuming a program that is to end.
const RESUME_INTERVAL: Duration = Duration::from_millis(100);

/// A process that still exists this long after SIGKILL hangs in the kernel.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A program of this station, running or ended.
pub(super) struct Process {
    pub(super) pid: Pid,
    name: String,
    started: Instant,
    state: Mutex<State>,
    /// Paired with `state`: notified when the process has been reaped.
    reaped: Condvar,
    output: Mutex<Output>,
    /// Paired with `output`: notified when there is more of it.
    printed: Condvar,
    /// Wakes the pump when the process has been reaped.
    ended_event: EventFd,
}

#[derive(Default)]
struct State {
    /// Excludes the program's output.
    exit: Option<Ended>,
    /// Whether to SIGKILL the rest of its process group when it ends.
    end_group: bool,
}

impl Process {
    /// Forks and executes. The calling thread must outlive the process: the kernel kills the
    /// process when that thread ends, and thus also when the station dies.
    pub(super) fn spawn(program: &Program, cores: &[usize]) -> Result<Arc<Self>, String> {
        let name = program
            .argv
            .first()
            .ok_or("a program needs at least its name")?;
        let name = if name == THIS_PROGRAM {
            THIS_PROGRAM_NAME
        } else {
            name
        };
        // Before the fork: the port is certainly another program's.
        refuse_taken(&program.ready, name)?;
        let mut child = command(program, cores)?
            .spawn()
            .map_err(|error| refusal(name, &error))?;
        let pid = Pid::from_raw(child.id().cast_signed());
        let pipes = Pipes {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        };
        match Self::attend(pid, name, pipes, program.stdin.clone()) {
            Ok(process) => Ok(process),
            Err(error) => {
                end_unattended(&mut child);
                Err(format!("cannot attend to `{name}`: {error}"))
            }
        }
    }

    fn attend(pid: Pid, name: &str, pipes: Pipes, stdin: String) -> io::Result<Arc<Self>> {
        let process = Arc::new(Self {
            pid,
            name: name.to_owned(),
            started: Instant::now(),
            state: Mutex::default(),
            output: Mutex::default(),
            reaped: Condvar::new(),
            printed: Condvar::new(),
            ended_event: EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?,
        });
        let pumped = Arc::clone(&process);
        std::thread::Builder::new()
            .name("pump".into())
            .spawn(move || {
                let Self {
                    ended_event,
                    output,
                    printed,
                    ..
                } = &*pumped;
                // After an error the output up to that point is kept.
                let _ = pump::pump(pipes, stdin.as_bytes(), ended_event, output, printed);
            })?;
        Ok(process)
    }

    /// Waits until the program is ready and returns its output so far; kills it at the time limit.
    pub(super) fn await_ready(&self, ready: &Ready, limit: Duration) -> Result<String, String> {
        let deadline = Deadline::after(limit);
        let (is_ready, waits_for) = match ready {
            Ready::Started => (true, String::new()),
            Ready::Listening(port) => (
                self.await_socket(|| procfs::listens(*port), deadline),
                format!("to listen on TCP port {port}"),
            ),
            Ready::Bound(port) => (
                self.await_socket(|| procfs::is_bound(*port), deadline),
                format!("to bind UDP port {port}"),
            ),
            Ready::Line(prefix) => (
                self.await_line(prefix, deadline).is_some(),
                format!("to print a line that begins with `{prefix}`"),
            ),
        };
        if is_ready {
            return Ok(lock(&self.output).stdout.text());
        }
        // Before the kill, after which every program has ended.
        let timed_out = lock(&self.state).exit.is_none();
        let ended = self.kill_and_wait()?;
        let how = if timed_out {
            format!("was not ready within {} ms", limit.as_millis())
        } else {
            format!("ended ({}) before it was ready", ended.how())
        };
        Err(format!(
            "`{}` {how}; waited for it {waits_for}{}",
            self.name,
            ended.last_words()
        ))
    }

    /// Waits for the program's socket; returns whether it exists and the program still runs.
    fn await_socket(&self, is_there: impl Fn() -> bool, deadline: Deadline) -> bool {
        let mut state = lock(&self.state);
        // The wait releases the lock, so that the reaper can report the end of the program.
        while state.exit.is_none() && !deadline.is_over() && !is_there() {
            state = wait(&self.reaped, state, deadline.at_most(LISTENING_INTERVAL));
        }
        state.exit.is_none() && is_there()
    }

    /// Waits for a line that begins with `prefix`, the program's end, or the deadline.
    pub(super) fn await_line(&self, prefix: &str, deadline: Deadline) -> Option<String> {
        let found = |output: &Output| output.stdout.line(prefix);
        // The end of the program completes its output, and so ends this wait.
        let is_over = |output: &Output| output.complete || found(output).is_some();
        found(&self.await_output(deadline, is_over))
    }

    /// Waits for the program's end; kills it after `limit`.
    pub(super) fn wait(&self, limit: Duration) -> Result<Ended, String> {
        match self.await_end(Deadline::after(limit)) {
            Some(ended) => Ok(ended),
            None => Ok(Ended {
                timed_out: true,
                ..self.kill_and_wait()?
            }),
        }
    }

    /// Sends SIGTERM, resumes the program if it is stopped, and sends SIGKILL after `grace`.
    pub(super) fn stop(&self, grace: Duration) -> Result<Ended, String> {
        let deadline = Deadline::after(grace);
        self.signal(Signal::SIGTERM);
        loop {
            // A stopped program gets SIGTERM only when it is resumed; again, because the program
            // that stops it may end later.
            self.signal(Signal::SIGCONT);
            if let Some(ended) = self.await_end(deadline.at_most(RESUME_INTERVAL)) {
                return Ok(ended);
            }
            if deadline.is_over() {
                return self.wait(Duration::ZERO);
            }
        }
    }

    fn kill_and_wait(&self) -> Result<Ended, String> {
        self.signal(Signal::SIGKILL);
        self.await_end(Deadline::after(KILL_LIMIT)).ok_or_else(|| {
            format!(
                "`{}` (process {}) hangs in the kernel and cannot be killed",
                self.name, self.pid
            )
        })
    }

    /// Returns how the program ended; `None` while it runs.
    pub(super) fn ended(&self) -> Option<Ended> {
        let exit = lock(&self.state).exit.clone()?;
        // The pump completes the output at the end of the program even after an error, so this wait
        // is short although it has no deadline.
        let output = self.await_output(Deadline::NEVER, |output| output.complete);
        Some(Ended {
            stdout: output.stdout.text(),
            stderr: output.stderr.text(),
            ..exit
        })
    }

    fn await_end(&self, deadline: Deadline) -> Option<Ended> {
        let mut state = lock(&self.state);
        while state.exit.is_none() && !deadline.is_over() {
            state = wait(&self.reaped, state, deadline);
        }
        // `ended` takes the lock again.
        drop(state);
        self.ended()
    }

    fn await_output(
        &self,
        deadline: Deadline,
        enough: impl Fn(&Output) -> bool,
    ) -> MutexGuard<'_, Output> {
        let mut output = lock(&self.output);
        while !enough(&output) && !deadline.is_over() {
            output = wait(&self.printed, output, deadline);
        }
        output
    }

    /// Whether `pid` is this process and not yet reaped.
    pub(super) fn is_running_as(&self, pid: Pid) -> bool {
        self.pid == pid && lock(&self.state).exit.is_none()
    }

    /// CPU time so far, including descendants; the total after the end.
    pub(super) fn cpu_time(&self) -> Option<CpuTime> {
        self.read(procfs::cpu_time, |exit| Some(exit.cpu))
    }

    /// Like [`cpu_time`](Self::cpu_time), without living descendants, so it searches no other
    /// processes.
    pub(super) fn own_cpu_time(&self) -> Option<CpuTime> {
        self.read(procfs::own_cpu_time, |exit| Some(exit.cpu))
    }

    /// Resident memory, including living descendants; `None` after the end.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        self.read(procfs::resident_bytes, |_| None)
    }

    /// The process's entry in `/proc`; `None` after the end.
    pub(super) fn stat(&self) -> Option<ProcessStat> {
        self.read(ProcessStat::read, |_| None)
    }

    /// Reads a value of the process by its number, or after its end by how it ended.
    fn read<T>(&self, running: fn(u32) -> Option<T>, ended: fn(&Ended) -> Option<T>) -> Option<T> {
        // The lock prevents reaping, so the number still belongs to this process.
        let state = lock(&self.state);
        match &state.exit {
            Some(exit) => ended(exit),
            None => running(self.pid.as_raw().cast_unsigned()),
        }
    }

    /// Signals the process and its group, and has the rest of the group killed at its end. The lock
    /// prevents reaping meanwhile, so no other process can have taken its number.
    pub(super) fn signal(&self, signal: Signal) {
        let mut state = lock(&self.state);
        if state.exit.is_none() {
            state.end_group = true;
            // It may have left its group. If both calls fail, nothing is left to signal.
            let _ = killpg(self.pid, signal).or_else(|_| kill(self.pid, signal));
        }
    }

    /// Reaps the process after the kernel has reported its end.
    pub(super) fn reap(&self) {
        let mut state = lock(&self.state);
        // Before reaping: until then no new process or group can get this number.
        if state.end_group {
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
        if let Some((status, cpu)) = wait4(self.pid) {
            state.exit = Some(Ended {
                code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
                signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
                cpu,
                wall_ns: u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
                ..Ended::default()
            });
            // If the event cannot be written, it was written before.
            let _ = self.ended_event.write(1);
            self.reaped.notify_all();
        }
    }
}

/// Fails if the port is taken: another program's listener would be mistaken for this program's.
fn refuse_taken(ready: &Ready, name: &str) -> Result<(), String> {
    let taken = match *ready {
        Ready::Listening(port) if procfs::listens(port) => format!("TCP port {port}"),
        Ready::Bound(port) if procfs::is_bound(port) => format!("UDP port {port}"),
        Ready::Listening(_) | Ready::Bound(_) | Ready::Started | Ready::Line(_) => return Ok(()),
    };
    Err(format!(
        "{taken}, on which `{name}` is to listen, is taken by another program already"
    ))
}

fn command(program: &Program, cores: &[usize]) -> Result<Command, String> {
    let mut allowed = CpuSet::new();
    for core in &program.cores {
        // By position among the CPUs of the station: a campaign knows no numbers of the kernel.
        let cpu = cores.get(usize::from(*core)).ok_or_else(|| {
            format!(
                "core {core} does not exist here: the station has {}, counted from 0",
                cores.len()
            )
        })?;
        allowed
            .set(*cpu)
            .map_err(|error| format!("core {core}: {error}"))?;
    }
    let pinned = !program.cores.is_empty();
    let station = getpid();
    let mut command = Command::new(&program.argv[0]);
    // Without this, `ps` shows `/proc/self/exe`.
    if program.argv[0] == THIS_PROGRAM {
        command.arg0(THIS_PROGRAM_NAME);
    }
    command
        .args(&program.argv[1..])
        .envs(&program.environment)
        // Programs read the output of these tools, so it must not be translated.
        .env("LC_ALL", "C")
        .env("PATH", programs::search_path())
        .stdin(if program.stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Signals reach the children of the program too, and Ctrl-C at the terminal reaches none of
        // them.
        .process_group(0);
    // SAFETY: between fork and exec only system calls are made: no allocation, no lock.
    unsafe {
        command.pre_exec(move || {
            set_pdeathsig(Signal::SIGKILL)?;
            // The station may have died before the line above.
            if getppid() != station {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            if pinned {
                sched_setaffinity(Pid::from_raw(0), &allowed)?;
            }
            Ok(())
        });
    }
    Ok(command)
}

fn refusal(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => programs::error(name),
        _ => format!("cannot start `{name}`: {error}"),
    }
}

/// Ends a child without a pump, for lack of a thread or descriptor.
fn end_unattended(child: &mut Child) {
    // The reaper may be quicker.
    let _ = child.kill();
    let _ = child.wait();
}

/// Reaps a child and reads its CPU time, including children that it waited for.
fn wait4(pid: Pid) -> Option<(i32, CpuTime)> {
    let mut status = 0;
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the types that wait4 writes.
    let reaped = unsafe { libc::wait4(pid.as_raw(), &raw mut status, 0, &raw mut usage) };
    let nanos = |time: libc::timeval| {
        (time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_usec.cast_unsigned()) * 1000
    };
    let cpu = CpuTime {
        user_ns: nanos(usage.ru_utime),
        system_ns: nanos(usage.ru_stime),
        ..CpuTime::default()
    };
    (reaped == pid.as_raw()).then_some((status, cpu))
}

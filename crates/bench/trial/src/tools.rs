//! The tools of one trial: started, waited for, and never left running.

use crate::error::TrialError;
use crate::iperf2;
use crate::iperf3::{Iperf3Error, Sessions};
use crate::ping;
use crate::transfer::END_LIMIT_NS;
use journal::record::Latency;
use plan::Tool;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};
use testbed::protocol::{Ended, Program};
use testbed::{Bench, Interrupt, LabError, NodeId};

/// Time for a program to be ready.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(5);
/// Time for a tool between SIGTERM and SIGKILL.
pub(crate) const STOP_GRACE: Duration = Duration::from_millis(300);
/// Characters of a tool's standard error that reasons quote.
const STDERR_CHARS: usize = 200;
/// Interval of checking for Ctrl-C.
pub(crate) const INTERRUPT_STEP: Duration = Duration::from_millis(20);
/// Interval of checking that programs run: a soak must not continue for hours without them.
pub(crate) const ALIVE_STEP: Duration = Duration::from_secs(1);

/// Programs of one trial on both stations. The ones that still run are stopped on drop.
pub(crate) struct Tools<'a> {
    bench: &'a dyn Bench,
    running: Vec<(NodeId, u64)>,
}

impl<'a> Tools<'a> {
    pub(crate) const fn new(bench: &'a dyn Bench) -> Self {
        Self {
            bench,
            running: Vec::new(),
        }
    }

    /// Starts a program and waits until it is ready.
    pub(crate) fn start(&mut self, id: NodeId, program: &Program) -> Result<u64, LabError> {
        let process = self.bench.node(id).start(program.clone(), READY_LIMIT)?;
        self.running.push((id, process));
        Ok(process)
    }

    /// Starts several programs in parallel and waits until all are ready.
    pub(crate) fn start_together(
        &mut self,
        programs: &[(NodeId, Program)],
    ) -> Result<Vec<(NodeId, u64)>, LabError> {
        if let [(id, program)] = programs {
            return Ok(vec![(*id, self.start(*id, program)?)]);
        }
        let nodes = programs.iter().map(|(id, _)| self.bench.node(*id));
        let starts: Vec<_> = nodes.zip(programs).collect();
        let started: Vec<_> = std::thread::scope(|scope| {
            let starting = starts.iter().map(|(node, (_, program))| {
                scope.spawn(|| node.start(program.clone(), READY_LIMIT))
            });
            let starting: Vec<_> = starting.collect();
            let ended = starting.into_iter().map(|thread| {
                let started = thread.join();
                started.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ended.collect()
        });
        // All started programs are recorded, so that they are stopped even if another failed.
        let started = programs.iter().zip(started).map(|((id, _), started)| {
            let process = started?;
            self.running.push((*id, process));
            Ok((*id, process))
        });
        // Collected before the first error is looked at: a lazy iterator would stop there and leave
        // the others unrecorded.
        let started: Vec<Result<_, LabError>> = started.collect();
        started.into_iter().collect()
    }

    /// Stops a program, or kills it after `grace`. Returns how it ended.
    pub(crate) fn stop(
        &mut self,
        id: NodeId,
        process: u64,
        grace: Duration,
    ) -> Result<Ended, LabError> {
        let ended = self.bench.node(id).stop(process, grace)?;
        self.running.retain(|&running| running != (id, process));
        Ok(ended)
    }

    /// Waits for a program to end; it is killed after `limit`.
    pub(crate) fn wait(
        &mut self,
        id: NodeId,
        process: u64,
        limit: Duration,
    ) -> Result<Ended, LabError> {
        let ended = self.bench.node(id).wait(process, limit)?;
        self.running.retain(|&running| running != (id, process));
        Ok(ended)
    }

    /// Takes over the running programs of another.
    pub(crate) fn take_over(&mut self, mut other: Self) {
        // `other` is dropped empty, so it stops none of them.
        self.running.append(&mut other.running);
    }

    /// The running programs, in the order started.
    pub(crate) fn running(&self) -> &[(NodeId, u64)] {
        &self.running
    }
}

impl Drop for Tools<'_> {
    fn drop(&mut self) {
        for (id, process) in self.running.drain(..) {
            // Fails if it has ended or its station is gone.
            let _ = self.bench.node(id).stop(process, STOP_GRACE);
        }
    }
}

/// Sleeps until `end` while `programs` run.
///
/// # Errors
/// On an interrupt, or when one of the programs ends.
pub(crate) fn sleep_until<'p>(
    bench: &dyn Bench,
    programs: impl Iterator<Item = &'p (NodeId, u64)> + Clone,
    end: Instant,
    interrupt: &Interrupt,
) -> Result<(), TrialError> {
    let mut checked = Instant::now();
    loop {
        interrupt.check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        // Not in every step: each check is a request to a station, which costs the trial CPU time.
        if checked.elapsed() >= ALIVE_STEP {
            expect_running(bench, programs.clone())?;
            checked = Instant::now();
        }
        std::thread::sleep(left.min(INTERRUPT_STEP));
    }
}

/// Waits until a program has ended, or until the deadline, while `others` run, which are checked
/// once in every `check_step`.
///
/// # Errors
/// On an interrupt, or when one of the others ends.
pub(crate) fn await_end<'p>(
    bench: &dyn Bench,
    (id, process): (NodeId, u64),
    deadline: Instant,
    (others, check_step): (impl Iterator<Item = &'p (NodeId, u64)> + Clone, Duration),
    interrupt: &Interrupt,
) -> Result<(), TrialError> {
    let mut checked = Instant::now();
    // Polled, since a waiting request to the station could not be interrupted, and would not notice
    // that the DUT dies.
    while Instant::now() < deadline && bench.node(id).status(process)?.is_none() {
        interrupt.check()?;
        std::thread::sleep(INTERRUPT_STEP);
        if checked.elapsed() >= check_step {
            expect_running(bench, others.clone())?;
            checked = Instant::now();
        }
    }
    Ok(())
}

/// Checks that programs run.
pub(crate) fn expect_running<'p>(
    bench: &dyn Bench,
    programs: impl Iterator<Item = &'p (NodeId, u64)>,
) -> Result<(), TrialError> {
    for &(id, process) in programs {
        if let Some(ended) = bench.node(id).status(process)? {
            let how = ended.how();
            let words = if ended.was_killed() {
                String::new()
            } else {
                ended.last_words()
            };
            return Err(TrialError::Tool {
                node: id.name(),
                problem: format!("ended before its time, {how}{words}"),
            });
        }
    }
    Ok(())
}

/// Returns the counts of a tool's process.
pub(crate) fn sessions(
    id: NodeId,
    ended: &Ended,
    tool: Tool,
    process: iperf2::Process,
) -> Result<Sessions, TrialError> {
    // A server that was killed may have printed its report: it is read below.
    if ended.timed_out && !process.is_server {
        let problem = format!(
            "{} did not end in time: the path carries nothing any more, or a queue on it, as of a tunnel in user space, \
             drains for longer than {} s; look at the device, or offer less (`rate:`)",
            tool.name(),
            END_LIMIT_NS / 1_000_000_000
        );
        return Err(tool_error(id, problem, ended));
    }
    if tool == Tool::Iperf2 {
        return iperf2::parse(&ended.stdout, process)
            .map_err(|error| tool_error(id, error.to_string(), ended));
    }
    Sessions::parse(&ended.stdout).map_err(|error| {
        let help = match &error {
            Iperf3Error::Reported(text) if text.contains("socket buffer size") => {
                "; raise net.core.rmem_max and wmem_max (`cipherbench doctor --apply`) or ask for a \
                 smaller window"
            }
            _ => "",
        };
        tool_error(id, format!("{error}{help}"), ended)
    })
}

/// Returns the round-trip times of `ping`, over a path that may damage packets itself.
pub(crate) fn latency(
    id: NodeId,
    ended: &Ended,
    path_damages: bool,
) -> Result<Latency, TrialError> {
    if ended.timed_out {
        return Err(tool_error(id, "ping did not end in time".to_owned(), ended));
    }
    ping::parse(&ended.stdout, path_damages, ended.wall_ns)
        .map_err(|error| tool_error(id, error.to_string(), ended))
}

/// Parses the line of JSON that a subcommand reports; the error describes the problem.
pub(crate) fn parse_report<T: DeserializeOwned>(
    name: &str,
    line: Option<&str>,
) -> Result<T, String> {
    match line.map(serde_json::from_str) {
        Some(Ok(report)) => Ok(report),
        Some(Err(error)) => Err(format!("the report of `{name}` cannot be read: {error}")),
        None => Err(format!("`{name}` did not report")),
    }
}

/// Returns the report of a subcommand that has ended.
pub(crate) fn report_of<T: DeserializeOwned>(
    name: &str,
    id: NodeId,
    ended: &Ended,
) -> Result<T, TrialError> {
    // Other lines are of the program's readiness.
    let line = ended.stdout.lines().find(|line| line.starts_with('{'));
    parse_report(name, line).map_err(|problem| tool_error(id, problem, ended))
}

/// Adds to a tool's error how its process ended.
pub(crate) fn tool_error(id: NodeId, mut problem: String, ended: &Ended) -> TrialError {
    if ended.timed_out {
        problem += "; it was killed after its time limit";
    } else if let Some(signal) = ended.signal {
        problem += &format!("; signal {signal} ended it");
    } else if let Some(code) = ended.code.filter(|&code| code != 0) {
        problem += &format!("; it exited with {code}");
    }
    let stderr: String = ended.stderr.trim().chars().take(STDERR_CHARS).collect();
    if !stderr.is_empty() {
        problem += &format!("; standard error: {stderr}");
    }
    TrialError::Tool {
        node: id.name(),
        problem,
    }
}

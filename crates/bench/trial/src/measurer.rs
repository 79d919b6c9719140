//! The interface to labs that make trials, and the steps that trials on all labs share.

use crate::capture::Captures;
use crate::checkpoint::Checkpoint;
use crate::clock::ClockWatch;
use crate::cores::{Machine, Machines};
use crate::error::TrialError;
use crate::event::EventSink;
use crate::{command, evidence};
use journal::record::{Cpu, LogicalCpu, Measured, Outcome, TakenBy, ToolParameters, TrialRecord};
use plan::{Capture, Cell, Direction};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use testbed::machine::Programs;
use testbed::protocol::{PROTOCOL_VERSION, Request, Response};
use testbed::{Bench, Interrupt, LabError, Links, Node, NodeId, RunningDut};

/// Programs that are named if they took much of the machine.
const NAMED: usize = 3;

/// A trial to make.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// What to measure.
    pub cell: &'a Cell,
    /// From 1.
    pub repeat: u32,
    /// Settings of the links.
    pub links: Links,
    /// Parameters of the tools: [`crate::parameters`] of the cell, or the tuned ones.
    pub parameters: ToolParameters,
    /// Its checkpoints from before the run broke off, in order.
    pub checkpoints: &'a [Checkpoint],
    /// The captures to make during the trial.
    pub capture: Option<&'a Capture>,
    /// The run's folder, for captures; `None`: they have no place.
    pub folder: Option<&'a Path>,
}

/// Makes the trials of a plan: one implementation for each kind of lab.
pub trait Measurer {
    /// Makes a trial; `events` receives the frame trials in it and its checkpoints.
    ///
    /// # Errors
    /// [`LabError::Interrupted`], or [`LabError::Node`] when the lab cannot measure any more; then
    /// there is no record. Any other failure is in the record.
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        events: EventSink<'_>,
        interrupt: &Interrupt,
    ) -> Result<TrialRecord, LabError>;
}

/// Makes a trial by `make`, which adds the commands that it runs, and returns the record.
///
/// # Errors
/// [`LabError::Interrupted`]: then there is no record.
pub fn record(
    trial: &Trial<'_>,
    make: impl FnOnce(&mut Vec<Vec<String>>) -> Result<Outcome, TrialError>,
) -> Result<TrialRecord, LabError> {
    let started_unix_ns = unix_ns();
    let clock = Instant::now();
    let watch = ClockWatch::begin();
    let mut commands = Vec::new();
    let before = Programs::read();
    let outcome = match make(&mut commands) {
        Ok(mut outcome) => {
            name_others(&mut outcome, &before);
            outcome
        }
        Err(error) if error.is_interrupt() => return Err(LabError::Interrupted),
        Err(error) => Outcome::Failed {
            reason: error.to_string(),
        },
    };
    Ok(TrialRecord {
        cell: trial.cell.id.clone(),
        repeat: trial.repeat,
        started_unix_ns,
        duration_ns: u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX),
        clock_step_ns: watch.end(),
        commands,
        outcome,
    })
}

/// Records who took much of this machine, if somebody did: only after the trial, which it would
/// disturb.
fn name_others(outcome: &mut Outcome, before: &Programs) {
    let (Outcome::Measured(measured) | Outcome::Invalid { measured, .. }) = outcome else {
        return;
    };
    let cpu = &measured.cpu;
    // Reading all of /proc takes time, so it is done only if the answer explains something. With
    // two machines, the time may be missing on the other one.
    let is_much = cpu.taken_percent() > Some(Cpu::TAKEN_PERCENT);
    if !is_much || cpu.machine_b.is_some() {
        return;
    }
    let found = Programs::read().since(before);
    let found = found.into_iter().take(NAMED).map(|program| TakenBy {
        name: program.name,
        process: program.pid,
        percent: program.percent,
    });
    measured.evidence.taken_by = found.collect();
}

/// Nanoseconds since the Unix epoch; 0 if the machine's clock is before it.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Has a station identify itself.
pub(crate) fn hello(station: &dyn Node) -> Result<Response, LabError> {
    station.call(Request::Hello {
        protocol: PROTOCOL_VERSION,
    })
}

/// Identifies the machine that a node is on.
pub(crate) fn boot_id(node: &dyn Node) -> Result<String, LabError> {
    match hello(node)? {
        Response::Hello { boot_id, .. } => Ok(boot_id),
        other => Err(node.unexpected(&other)),
    }
}

/// The CPUs that the stations may use. On one machine they share its CPUs, unless a lab assigns
/// them others.
pub(crate) fn machines(bench: &dyn Bench) -> Result<Machines, LabError> {
    let of = |id| {
        let station = bench.node(id);
        match hello(station)? {
            Response::Hello {
                cores,
                cpus,
                boot_id,
                ..
            } => Ok((boot_id, cpus, cores)),
            other => Err(station.unexpected(&other)),
        }
    };
    // Stations with the same boot and the same CPUs share them. If a lab gives each station other
    // CPUs of one machine, each set counts as a machine.
    let (a, b) = (of(NodeId::A)?, of(NodeId::B)?);
    let machine = |(_, cpus, cores): &(String, Vec<LogicalCpu>, u16)| match &cpus[..] {
        [] => Machine::from(*cores),
        cpus => Machine::of(cpus),
    };
    Ok(if a == b {
        Machines::One(machine(&a))
    } else {
        Machines::Two([machine(&a), machine(&b)])
    })
}

/// Starts the DUT, measures it by `measure`, stops it in any case, and returns the outcome.
/// `measure` returns its readings, and the reason if there is no figure.
pub(crate) fn with_dut(
    bench: &mut dyn Bench,
    trial: &Trial<'_>,
    direction: Direction,
    measure: impl FnOnce(&dyn Bench, &mut RunningDut) -> Result<(Measured, Option<String>), TrialError>,
) -> Result<Outcome, TrialError> {
    let mut dut = bench.start_dut(&trial.cell.dut, trial.links, direction)?;
    // The DUT is up already and still is at their end, so a capture has no handshake unless one
    // falls into the trial.
    let captures = Captures::begin(
        &*bench,
        (trial.cell, trial.repeat),
        trial.capture.zip(trial.folder),
        &dut,
    );
    let result = measure(&*bench, &mut dut);
    let recorded = captures.end(&*bench, &dut);
    let result = match result {
        Ok((mut measured, objection)) => {
            recorded.add_to(&mut measured);
            Ok((measured, objection))
        }
        Err(error) => Err(recorded.explain(of_gone(&*bench, error))),
    };
    // After any failure and after an interrupt too: nothing of the DUT may stay in the lab.
    let stopped = bench.stop_dut(dut);
    match (result, stopped) {
        (Err(error), _) if error.is_interrupt() => Err(error),
        (_, Err(LabError::Interrupted)) => Err(LabError::Interrupted.into()),
        (Ok((measured, objection)), Ok(())) => Ok(judge(measured, None, objection)),
        // The figures stay in the record of a DUT that died after them, but do not count.
        (Ok((measured, objection)), Err(death)) => {
            Ok(judge(measured, Some(death.to_string()), objection))
        }
        (Err(error), Ok(())) => Err(error),
        // The DUT's death made the tools fail; their error comes second.
        (Err(error), Err(death)) => Ok(Outcome::Failed {
            reason: format!("{death}; {error}"),
        }),
    }
}

/// Prefixes a failure with the end of the DUT, if it has ended.
fn of_gone(bench: &dyn Bench, error: TrialError) -> TrialError {
    if error.is_interrupt() {
        return error;
    }
    match bench.expect_dut() {
        Ok(()) => error,
        Err(LabError::Interrupted) => LabError::Interrupted.into(),
        Err(gone) => TrialError::frames(format!("{gone}\nwhat failed: {error}")),
    }
}

/// Returns the outcome: measured if the DUT lived, there is no objection and no check failed.
#[must_use]
pub fn judge(measured: Measured, death: Option<String>, objection: Option<String>) -> Outcome {
    let mut reasons: Vec<String> = death.into_iter().chain(objection).collect();
    reasons.extend(evidence::objections(&measured.evidence.checks));
    let measured = Box::new(measured);
    if reasons.is_empty() {
        Outcome::Measured(measured)
    } else {
        Outcome::Invalid { reasons, measured }
    }
}

impl<'a> Trial<'a> {
    /// The trial of a cell with the parameters of its campaign.
    #[must_use]
    pub fn of(cell: &'a Cell, repeat: u32, links: Links) -> Self {
        Self {
            cell,
            repeat,
            links,
            parameters: command::parameters(cell),
            checkpoints: &[],
            capture: None,
            folder: None,
        }
    }
}

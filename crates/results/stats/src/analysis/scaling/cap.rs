//! Silent caps: defaults that keep a device from using the whole machine.

use super::point::{ScalingAxis, ScalingPoint};
use super::shape::Shape;
use journal::Journal;
use journal::record::{Measured, Outcome};
use plan::Cell;
use schemars::JsonSchema;
use serde::Serialize;

/// Minimum number of idle cores for room for another thread.
const IDLE_CORES_MIN: f64 = 1.0;
/// Names of the facts that report a device's number of threads.
const THREAD_FACTS: [&str; 3] = ["lanes", "workers", "threads"];

/// The figure stops rising though cores are idle, and nothing but the device is known to be the
/// limit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SilentCap {
    /// The number past which the figure stops rising.
    pub from_n: u32,
    /// The largest measured number.
    pub at_n: u32,
    /// Idle cores at that number.
    pub idle_cores: f64,
    /// Cores that the device's processes kept busy there; 0 for a device in the kernel.
    pub dut_cores: f64,
}

impl SilentCap {
    pub(super) fn of(axis: ScalingAxis, points: &[ScalingPoint], shape: &Shape) -> Option<Self> {
        // Only if the repeats exclude a gain past it: a warning about a default needs a curve that
        // was shown to be flat.
        let from_n = shape.stop().filter(|_| axis.adds())?;
        let past = points.iter().filter(|point| point.n >= from_n);
        // Cores must be idle at the largest number: there the device could use them most.
        let last = past.clone().rfind(|point| point.figure.is_some())?;
        let idle_cores = last.idle_cores.filter(|idle| *idle >= IDLE_CORES_MIN)?;
        // For a device on other machines, idle cores here mean nothing.
        let dut_cores = last.dut_cores?;
        // A fall is not a cap, and with another limit nothing is known about the device.
        let explained =
            shape.falls_from.is_some() || past.clone().any(|point| point.limited_by.is_some());
        (!explained).then_some(Self {
            from_n,
            at_n: last.n,
            idle_cores,
            dut_cores,
        })
    }
}

/// A device that reports another number of threads than configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherWorkers {
    /// Id of the cell.
    pub(crate) cell: String,
    /// Name of the DUT.
    pub(crate) dut: String,
    /// Configured threads.
    pub(crate) asked: u32,
    /// The reported fact and its value: `gw1/lanes`, 4.
    pub(crate) fact: (String, u32),
}

/// Returns each such cell once. Invalid trials count, since this may be why they are invalid.
pub(crate) fn other_workers(journal: &Journal) -> Vec<OtherWorkers> {
    let trials = journal.latest_trials();
    let plan = &journal.header.plan;
    let of_cell = |cell: &Cell| {
        let asked = u32::from(cell.dut.adapter.encryptor()?.workers);
        let fact = (1..=plan.repeats).find_map(|repeat| {
            let trial = trials.get(&(cell.id.as_str(), repeat))?;
            other_count(evidence(&trial.outcome)?, asked)
        })?;
        Some(OtherWorkers {
            cell: cell.id.clone(),
            dut: cell.dut.name.clone(),
            asked,
            fact,
        })
    };
    plan.cells.iter().filter_map(of_cell).collect()
}

fn evidence(outcome: &Outcome) -> Option<&Measured> {
    match outcome {
        Outcome::Measured(measured) | Outcome::Invalid { measured, .. } => Some(measured),
        Outcome::Failed { .. } => None,
    }
}

fn other_count(measured: &Measured, asked: u32) -> Option<(String, u32)> {
    let facts = measured.evidence.dut_facts.iter();
    facts
        .filter_map(|(key, value)| {
            let (_, name) = key.rsplit_once('/')?;
            let reported: u32 = value.parse().ok()?;
            (THREAD_FACTS.contains(&name) && reported != asked).then(|| (key.clone(), reported))
        })
        .next()
}

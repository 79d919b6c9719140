//! Silent caps: a default that keeps a device from using the machine.

use super::point::{ScalingAxis, ScalingPoint};
use super::shape::Shape;
use super::words;
use campaign::plan::Cell;
use journal::Journal;
use journal::record::{Measured, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

/// Idle cores from which on there was room for one more thread.
const IDLE_CORES_MIN: f64 = 1.0;
/// Names of the facts in which devices report their number of threads.
const THREAD_FACTS: [&str; 3] = ["lanes", "workers", "threads"];

/// More brings nothing though cores are idle, and neither tester nor link is known to be the limit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SilentCap {
    /// The number from which on more brings nothing.
    pub from_n: u32,
    /// The largest number that was measured.
    pub at_n: u32,
    /// Cores that were idle there.
    pub idle_cores: f64,
    /// Cores that the device's processes kept busy there; 0 where it works in the kernel.
    pub dut_cores: f64,
}

impl SilentCap {
    pub(super) fn of(axis: ScalingAxis, points: &[ScalingPoint], shape: &Shape) -> Option<Self> {
        let from_n = shape.stop.filter(|_| axis.adds())?;
        let past = points.iter().filter(|point| point.n >= from_n);
        let last = past.clone().rfind(|point| point.figure.is_some())?;
        let idle_cores = last.idle_cores.filter(|idle| *idle >= IDLE_CORES_MIN)?;
        // Of a device on machines of its own, idle cores here say nothing.
        let dut_cores = last.dut_cores?;
        // A fall is no cap, and another limit says nothing about the device.
        let explained = shape.falls_from.is_some()
            || words::large_spread(points).is_some()
            || words::has_single(past.clone())
            || past
                .clone()
                .any(|point| point.limited_by.is_some() || point.crowded);
        (!explained).then_some(Self {
            from_n,
            at_n: last.n,
            idle_cores,
            dut_cores,
        })
    }
}

/// A device that says it has another number of threads than it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherWorkers {
    /// Id of the cell.
    pub(crate) cell: String,
    /// Name of the DUT.
    pub(crate) dut: String,
    /// Threads asked for.
    pub(crate) asked: u32,
    /// What it says, and where: `gw1/lanes`, 4.
    pub(crate) fact: (String, u32),
}

/// The cells whose device says so, each once; invalid trials count, since it may be what made them
/// so.
pub(crate) fn other_workers(journal: &Journal) -> Vec<OtherWorkers> {
    let trials = journal.latest_trials();
    let plan = &journal.header.plan;
    let of_cell = |cell: &Cell| {
        let asked = u32::from(cell.dut.adapter.encryptor()?.workers);
        let told = (1..=plan.repeats).find_map(|repeat| {
            let trial = trials.get(&(cell.id.as_str(), repeat))?;
            other_count(evidence(&trial.outcome)?, asked)
        })?;
        Some(OtherWorkers {
            cell: cell.id.clone(),
            dut: cell.dut.name.clone(),
            asked,
            fact: told,
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
            let told: u32 = value.parse().ok()?;
            (THREAD_FACTS.contains(&name) && told != asked).then(|| (key.clone(), told))
        })
        .next()
}

//! Proof that a figure is what it seems: pure checks over what was read beside it.
//!
//! Each check is a function from [`Observed`] to a [`Check`] whose detail holds the numbers, or to nothing
//! where it does not apply. One that fails makes the trial invalid. docs/methodology.md says what each
//! proves. To add one: write the function in the file of its kind, add it to `CHECKS`, describe it there.

mod asked;
mod bounds;
mod cipher;
mod frames;
mod gateway;
mod link;
mod tool;

pub(crate) use asked::{REPLACED_SAS, dut_as_asked};
pub use cipher::CipherSeen;
pub use frames::{FrameObserved, PathSeen, frame_checks};
pub(crate) use gateway::{counted_since, gateways_balance};

use crate::command::Commands;
use crate::transfer::Totals;
use campaign::plan::Cell;
use journal::record::{Check, CipherLink, CipherWatch, Cpu, InterfaceCounters, Latency, Transfer};
use lab::Links;
use std::collections::BTreeMap;

/// What was read in a trial, for the checks to look at.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// The cell measured.
    pub cell: &'a Cell,
    /// The links as they were asked for.
    pub links: Links,
    /// What ran on the stations.
    pub commands: &'a Commands,
    /// What the tools counted.
    pub load: Load<'a>,
    /// Names of the interfaces of the path.
    pub interfaces: Interfaces,
    /// Every interface of the path, as `node/interface`.
    pub link_ends: &'a [String],
    /// Counter differences over the trial, by `node/interface`.
    pub counters: &'a BTreeMap<String, InterfaceCounters>,
    /// Offloads in force, by `node/interface`.
    pub offloads: &'a BTreeMap<String, BTreeMap<String, String>>,
    /// The DUT's counters as differences over the trial, by `gateway/counter`.
    pub dut_counters: &'a BTreeMap<String, u64>,
    /// What the DUT said of itself, by `gateway/key`.
    pub dut_facts: &'a BTreeMap<String, String>,
    /// What was sampled on the cipher link.
    pub cipher_link: &'a CipherLink,
    /// What did not belong there, of all frames; `None` where nobody looked.
    pub watch: Option<&'a CipherWatch>,
    /// Longest time that the samples of the cipher link may have looked, together.
    pub sampling_ns: u64,
    /// From reading the counters before to reading them after.
    pub elapsed_ns: u64,
    /// CPU time by role.
    pub cpu: &'a Cpu,
    /// Datagrams that B's sockets dropped in the whole run.
    pub station_lost: u64,
    /// When each client ended, counted from the start of the first.
    pub client_ends_ns: &'a [u64],
}

/// What the tools counted.
#[derive(Debug, Clone)]
pub enum Load<'a> {
    /// A bulk transfer.
    Transfer {
        /// In the measured time.
        transfer: &'a Transfer,
        /// In the whole run.
        totals: Totals,
    },
    /// Echo requests.
    Echo {
        /// Counts and times.
        latency: &'a Latency,
        /// ICMP payload of each.
        payload_bytes: u16,
    },
}

/// Interfaces of the path, as `node/interface`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interfaces {
    /// Station A's.
    pub a: String,
    /// Those that send what comes from A's side, and from B's, to the other gateway; `None` where nobody looks
    /// between the gateways.
    pub cipher: Option<[String; 2]>,
    /// Station B's.
    pub b: String,
}

/// All checks, in the order of the path.
const CHECKS: [fn(&Observed<'_>) -> Option<Check>; 17] = [
    link::offloads_as_asked,
    tool::cores,
    tool::machine_was_ours,
    tool::processes_in_step,
    tool::tool_agrees_with_itself,
    tool::offered_as_intended,
    tool::station_kept_up,
    link::station_interfaces_agree,
    link::encryption_not_proven,
    link::clear_text_visible,
    link::cipher_link_encrypted,
    link::no_clear_text,
    link::foreign_frames_visible,
    link::no_foreign_frames,
    link::cipher_link_amount,
    link::dut_counters,
    link::dut_as_asked,
];

/// Makes every check that applies.
#[must_use]
pub fn checks(observed: &Observed<'_>) -> Vec<Check> {
    CHECKS.iter().filter_map(|check| check(observed)).collect()
}

/// Why a trial is invalid: the details of the checks that failed.
#[must_use]
pub fn objections(checks: &[Check]) -> Vec<String> {
    let failed = checks.iter().filter(|check| !check.passed);
    failed
        .map(|check| format!("{}: {}", check.name, check.detail))
        .collect()
}

fn check(name: &str, passed: bool, detail: String) -> Option<Check> {
    Some(Check {
        name: name.to_owned(),
        passed,
        detail,
    })
}

#[cfg(test)]
mod tests;

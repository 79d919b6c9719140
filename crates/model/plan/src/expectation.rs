//! Limits that the figures of a run must keep, and stored figures that limits refer to.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The limits of a campaign, and the repeats that were added to decide them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectations {
    /// In the order of the campaign.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Expectation>,
    /// Measuring time for further repeats of undecided cells; `None`: no cell gets any. The levels
    /// of all answers depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_decided_ns: Option<u64>,
    /// Repeats of the cells that have more than the plan's, by id. Not part of the header: the
    /// journal records each addition.
    #[serde(skip)]
    pub added: BTreeMap<String, u32>,
}

/// A limit of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// As written, in the language of gates.
    pub limit: String,
    /// The run that it refers to; `None` if it refers to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredRun>,
}

/// The figures of a stored run that a limit refers to, as they were when the campaign was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Its folder, as the campaign names it.
    pub folder: String,
    /// Its start, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Version and revision of its program.
    pub program: String,
    /// CPU and kernel of its machine.
    pub machine: String,
    /// One per cell, quantity and load.
    pub figures: Vec<StoredFigure>,
    /// Cells of the plan that it lacks, or that have no figure there, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub without: BTreeMap<String, String>,
}

/// A figure of a stored run, in thousandths of the quantity's unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFigure {
    /// Id of the cell.
    pub cell: String,
    /// Key of the quantity, with its unit.
    pub quantity: String,
    /// The load in per cent, of latency.
    pub load_percent: Option<u8>,
    /// Whether frames went there and back; `None` for other trials.
    pub round_trip: Option<bool>,
    /// The repeats.
    pub values: Vec<u64>,
    /// The upper bounds of searches; empty without a search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upper: Vec<u64>,
    /// Whether a search found no upper bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_open: bool,
}

impl Expectations {
    /// Whether there is no limit.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }
}

//! A search for throughput: its goals and loads.

mod profile;

pub use ::search::Goal as Criteria;
pub use profile::ProfileTimes;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// A search for throughput.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThroughputSearch {
    /// Source of the goals.
    pub profile: Profile,
    /// The goals, searched together.
    pub goals: Vec<Goal>,
    /// Highest load tried, in frames/s; `None`: the line rate, or the generator's maximum.
    pub max_load: Option<u64>,
    /// Lowest load tried, in frames/s.
    pub min_load: u64,
    /// Time to wait for late frames after the last frame is sent.
    pub drain_ns: u64,
    /// Longest time for the whole search.
    pub timeout_ns: u64,
}

/// Sets of goals with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Profile {
    /// Short trials; NDR and PDR in seconds.
    Fast,
    /// Zero loss in 60 s trials: unconditionally compliant with RFC 2544.
    Rfc2544,
    /// ETSI GS NFV-TST 009: binary search with loss verification.
    Tst009,
    /// None: the campaign spells the goals out.
    Custom,
}

impl Profile {
    /// Name in campaigns and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A search goal (RFC 9971) with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// `ndr`, `pdr` or another word for tables.
    pub name: String,
    /// The conditions that a load must meet.
    // In a journal the criteria are keys of the goal, next to its name.
    #[serde(flatten)]
    pub criteria: Criteria,
}

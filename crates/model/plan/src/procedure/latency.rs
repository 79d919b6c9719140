//! Latency at shares of the throughput.

use super::{Procedure, ProcedureKind, ProcedurePlan, search_time};
use crate::ThroughputSearch;
use crate::words::{long_time, time};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::IntoStaticStr;

/// Latency at shares of the throughput.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyTest {
    /// How the throughput is found: the first goal counts.
    pub search: ThroughputSearch,
    /// Loads in per cent of it; 0 is the search's lowest load.
    pub percents: Vec<u8>,
    /// Each trial's time.
    pub trial_ns: u64,
    /// Trials at each load, 1 or more; 20 by RFC 8219 §7.2.
    // Older journals have one trial at each load.
    #[serde(default = "crate::one", skip_serializing_if = "crate::is_one")]
    pub trials: u32,
    /// The timed path.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub path: LatencyPath,
}

/// The path over which latency is timed.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, IntoStaticStr, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LatencyPath {
    /// From A to B (RFC 1242 §3.8); round trip between two hosts if their clocks do not agree well
    /// enough.
    #[default]
    OneWay,
    /// Round trip: station B reflects each frame, and station A times it by its clock (RFC 2681,
    /// RFC 8762). The loads are shares of the round-trip throughput.
    RoundTrip,
}

impl LatencyPath {
    /// Both.
    pub const ALL: [Self; 2] = [Self::OneWay, Self::RoundTrip];

    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl ProcedurePlan for LatencyTest {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::Latency
    }

    fn search(&self) -> Option<&ThroughputSearch> {
        Some(&self.search)
    }

    fn without_loads(&self) -> Procedure {
        Procedure::Latency(Self {
            search: self.search.at_any_load(),
            ..self.clone()
        })
    }

    /// Search + loads × trials × duration.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, searches: u32) -> Duration {
        // A list of per cents, each once.
        let loads = self.percents.len() as u32;
        // One search for all loads, which are shares of its result.
        let trials = loads.saturating_mul(self.trials);
        search_time(&self.search, searches) + trial(self.trial_ns) * trials
    }

    fn in_words(&self) -> Option<String> {
        let percents = self.percents.iter().map(|percent| format!("{percent} %"));
        Some(format!(
            "then{} at {} of the throughput, {}{} each",
            match self.path {
                LatencyPath::OneWay => "",
                LatencyPath::RoundTrip => " round trips",
            },
            percents.collect::<Vec<_>>().join(", "),
            match self.trials {
                1 => String::new(),
                trials => format!("{trials} trials of "),
            },
            time(self.trial_ns)
        ))
    }

    fn settings(&self) -> Vec<String> {
        // The loads are rows of the table, so they are not among its settings.
        vec![format!("{} per load", long_time(self.trial_ns))]
    }
}

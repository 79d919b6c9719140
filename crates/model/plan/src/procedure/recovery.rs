//! Recovery from an overload.

use super::{Procedure, ProcedureKind, ProcedurePlan, search_time};
use crate::ThroughputSearch;
use crate::words::{long_time, time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Recovery from an overload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// How the throughput is found: the first goal counts.
    pub search: ThroughputSearch,
    /// Overload in per cent of it; 110 by RFC 2544.
    pub overload_percent: u16,
    /// Load afterwards in per cent of it; 50 by RFC 2544.
    pub relief_percent: u16,
    /// Time of the overload; 60 s by RFC 2544.
    pub overload_ns: u64,
    /// Time watched afterwards.
    pub relief_ns: u64,
}

impl ProcedurePlan for Recovery {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::Recovery
    }

    fn search(&self) -> Option<&ThroughputSearch> {
        Some(&self.search)
    }

    fn without_loads(&self) -> Procedure {
        Procedure::Recovery(Self {
            search: self.search.at_any_load(),
            ..self.clone()
        })
    }

    /// Search + overload + relief.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, searches: u32) -> Duration {
        // One trial: the relief follows the overload without a gap.
        search_time(&self.search, searches) + trial(self.overload_ns + self.relief_ns)
    }

    fn in_words(&self) -> Option<String> {
        Some(format!(
            "then {} % of the throughput for {}, and {} % watched for {}",
            self.overload_percent,
            time(self.overload_ns),
            self.relief_percent,
            time(self.relief_ns)
        ))
    }

    fn settings(&self) -> Vec<String> {
        vec![format!(
            "{} % of the throughput for {}, then {} %",
            self.overload_percent,
            long_time(self.overload_ns),
            self.relief_percent
        )]
    }
}

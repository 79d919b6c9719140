//! Bursts of frames at the highest load.

use super::{Procedure, ProcedureKind, ProcedurePlan};
use crate::words::{long_time, time};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::human::counted;

/// Bursts until the longest that passes is found: halvings from two seconds at line rate down to
/// one frame.
const BURST_HALVINGS: u32 = 20;

/// Longest burst without loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackToBack {
    /// Longest burst tried, as time at the highest load (RFC 9004 §5: 2 s).
    pub burst_ns_max: u64,
    /// Bursts of the found length that are tried; 50 by RFC 2544.
    pub bursts: u32,
    /// Time after each burst.
    pub drain_ns: u64,
}

impl ProcedurePlan for BackToBack {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::BackToBack
    }

    fn without_loads(&self) -> Procedure {
        // Bursts are sent at the highest load, which campaigns do not set for them.
        Procedure::BackToBack(self.clone())
    }

    fn needs_highest_load(&self) -> bool {
        true
    }

    fn drain(&self) -> Duration {
        Duration::from_nanos(self.drain_ns)
    }

    /// (20 + bursts) × burst, as if the longest passed.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, _searches: u32) -> Duration {
        let bursts = self.bursts.saturating_add(BURST_HALVINGS);
        // As if each were the longest; halvings are shorter.
        trial(self.burst_ns_max) * bursts
    }

    fn in_words(&self) -> Option<String> {
        Some(format!(
            "bursts of up to {} at the highest load, the longest without loss {}, drain {}",
            time(self.burst_ns_max),
            counted(self.bursts, "time"),
            time(self.drain_ns)
        ))
    }

    fn settings(&self) -> Vec<String> {
        vec![format!("bursts of up to {}", long_time(self.burst_ns_max))]
    }
}

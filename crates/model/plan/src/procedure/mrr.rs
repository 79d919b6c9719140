//! The maximum receive rate.

use super::{Procedure, ProcedureKind, ProcedurePlan};
use crate::words::{highest_load, long_time, time};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::human::counted;

/// Forwarding rate at the highest load, over several short trials (CSIT's MRR).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mrr {
    /// The offered load, in frames/s; `None`: the line rate, or the generator's maximum.
    pub max_load: Option<u64>,
    /// Trials; at least 1.
    pub trials: u32,
    /// Each trial's time.
    pub trial_ns: u64,
    /// Time to wait for late frames after the last frame is sent.
    pub drain_ns: u64,
}

impl ProcedurePlan for Mrr {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::Mrr
    }

    fn load(&self) -> Option<u64> {
        self.max_load
    }

    fn without_loads(&self) -> Procedure {
        Procedure::Mrr(Self {
            max_load: None,
            ..self.clone()
        })
    }

    fn held_ns(&self) -> Option<u64> {
        Some(self.trial_ns)
    }

    // Also if the campaign sets the load: the first trial then only warms the device up.
    fn needs_highest_load(&self) -> bool {
        true
    }

    fn drain(&self) -> Duration {
        Duration::from_nanos(self.drain_ns)
    }

    /// Trials × duration.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, _searches: u32) -> Duration {
        trial(self.trial_ns) * self.trials
    }

    fn in_words(&self) -> Option<String> {
        Some(format!(
            "{} at {}, {} each, drain {}",
            counted(self.trials, "trial"),
            highest_load(self.max_load),
            time(self.trial_ns),
            time(self.drain_ns)
        ))
    }

    fn settings(&self) -> Vec<String> {
        let trials = counted(self.trials, "trial");
        vec![format!("{trials} of {}", long_time(self.trial_ns))]
    }
}

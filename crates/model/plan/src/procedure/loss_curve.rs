//! Loss at falling loads.

use super::{Procedure, ProcedureKind, ProcedurePlan};
use crate::words::{highest_load, long_time, time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Loss at falling loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCurve {
    /// The load of 100 %, in frames/s; `None`: the line rate, or the generator's maximum.
    pub max_load: Option<u64>,
    /// Step in per cent of it, 1 to 50; the curve ends after two loads without loss.
    pub step_percent: u8,
    /// Each load's time.
    pub trial_ns: u64,
    /// Time to wait for late frames after the last frame is sent.
    pub drain_ns: u64,
}

impl ProcedurePlan for LossCurve {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::LossCurve
    }

    fn load(&self) -> Option<u64> {
        self.max_load
    }

    fn without_loads(&self) -> Procedure {
        Procedure::LossCurve(Self {
            max_load: None,
            ..self.clone()
        })
    }

    fn held_ns(&self) -> Option<u64> {
        Some(self.trial_ns)
    }

    fn needs_highest_load(&self) -> bool {
        true
    }

    fn drain(&self) -> Duration {
        Duration::from_nanos(self.drain_ns)
    }

    /// 100 % ÷ step × duration.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, _searches: u32) -> Duration {
        // All steps, although a curve ends earlier at a device that loses nothing.
        // A changed journal may have a step of zero.
        let loads = 100_u32.div_ceil(u32::from(self.step_percent.max(1)));
        trial(self.trial_ns) * loads
    }

    fn in_words(&self) -> Option<String> {
        Some(format!(
            "from {} down in steps of {} %, {} each, drain {}, until two without loss",
            highest_load(self.max_load),
            self.step_percent,
            time(self.trial_ns),
            time(self.drain_ns)
        ))
    }

    fn settings(&self) -> Vec<String> {
        vec![format!("{} per load", long_time(self.trial_ns))]
    }
}

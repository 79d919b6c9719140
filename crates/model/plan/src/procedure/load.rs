//! One load for one time.

use super::{Procedure, ProcedureKind, ProcedurePlan};
use crate::words::{long_time, time};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::FrameRate;

/// One load for one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Frames per second; `None`: as fast as the generator can.
    pub frames_per_s: Option<u64>,
    /// How long.
    pub duration_ns: u64,
}

impl ProcedurePlan for Load {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::Load
    }

    fn load(&self) -> Option<u64> {
        self.frames_per_s
    }

    fn without_loads(&self) -> Procedure {
        // Zero means any paced load. An unpaced one remains a different test.
        let frames_per_s = self.frames_per_s.map(|_| 0);
        Procedure::Load(Self {
            frames_per_s,
            ..self.clone()
        })
    }

    fn is_at_one_load(&self) -> bool {
        true
    }

    fn is_at_its_most(&self) -> bool {
        self.frames_per_s.is_none()
    }

    fn held_ns(&self) -> Option<u64> {
        Some(self.duration_ns)
    }

    /// Duration, as one trial.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, _searches: u32) -> Duration {
        trial(self.duration_ns)
    }

    fn in_words(&self) -> Option<String> {
        let rate = self.frames_per_s.map_or_else(
            || "as fast as the generator can".to_owned(),
            |rate| FrameRate::new(rate).to_string(),
        );
        Some(format!("{rate} for {}", time(self.duration_ns)))
    }

    fn settings(&self) -> Vec<String> {
        let unpaced = self.frames_per_s.is_none();
        let unpaced = unpaced.then(|| "as fast as the generator can".to_owned());
        let duration = long_time(self.duration_ns);
        unpaced.into_iter().chain([duration]).collect()
    }
}

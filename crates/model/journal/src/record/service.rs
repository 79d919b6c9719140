//! Steps of a service test.

use super::LatencyTrial;
use plan::ServiceStep;
use serde::{Deserialize, Serialize};

/// A step of a `service` procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTrial {
    /// The step; its load is that of the trial.
    pub step: ServiceStep,
    /// Index in [`FrameResult::trials`](super::FrameResult::trials).
    pub trial: usize,
    /// Delay and delay variation.
    pub latency: LatencyTrial,
}

//! Steps of a service test.

use super::LatencyTrial;
use plan::ServiceStep;
use serde::{Deserialize, Serialize};

/// A step of a `service` procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTrial {
    /// The step; the trial has its load.
    pub step: ServiceStep,
    /// Index in [`FrameResult::trials`](super::FrameResult::trials).
    pub trial: usize,
    /// Delay and delay variation.
    pub latency: LatencyTrial,
}

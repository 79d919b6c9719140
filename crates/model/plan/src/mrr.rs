//! The maximum receive rate.

use serde::{Deserialize, Serialize};

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

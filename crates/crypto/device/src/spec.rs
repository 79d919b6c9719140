//! The first line of a worker's standard input, as JSON.

use catalog::device::{DeviceKind, DeviceTest};
use serde::{Deserialize, Serialize};

/// One trial on one device, or one process's part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Spec {
    /// The device.
    pub device: DeviceKind,
    /// The test, with this process's share of it: a speed trial's concurrency is the number of
    /// threads in this process, for either kind of workers.
    pub test: DeviceTest,
    /// Processes that share a speed trial on the device, this one included: together they verify
    /// the needed number of results.
    #[serde(default = "one")]
    pub processes: u32,
    /// Seed of keys and inputs, which are the same in every process and run.
    pub seed: u64,
}

const fn one() -> u32 {
    1
}

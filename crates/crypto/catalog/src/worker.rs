//! The input and output of a worker process, which makes one trial on one device.
//!
//! Output: lines of JSON on standard output, the last one [`Line::End`].
//!
//! Input: on standard input first the [`Spec`] as a line of JSON, then, for speed and fatigue, a
//! line `go`. A line `stop`, or the end of standard input, ends a fatigue trial early: threads
//! finish their operation, and the result is reported as usual. It ends any other trial
//! immediately, without [`Line::End`].

use crate::device::{DeviceKind, DeviceTest, Facts, FatigueCounts, KatRow};
use serde::{Deserialize, Serialize};

/// More of a line than this is not read; the longest one has the latencies of a fatigue trial.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// One trial on one device, or one process's part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// A worker that ignored a setting would make another trial than it was asked for.
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

// A trial of other kinds has one process on each device.
const fn one() -> u32 {
    1
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// The first line: the device is open.
    Open(Facts),
    /// All threads have their sessions and jobs and wait for a line on standard input (speed,
    /// fatigue), so that processes begin together.
    Ready,
    /// Progress of the functional trial: an algorithm, or an algorithm and a case with the inputs
    /// tried so far. It shows that the worker is alive and, if it dies, where in the trial.
    Trying(String),
    /// One row of the functional trial.
    Kat(KatRow),
    /// The speed.
    Speed(Speed),
    /// Fatigue so far: at first after 10 ms, then each time that the trial has run twice as long,
    /// but at least every second; and once at the end, before the device is closed.
    Fatigue(Fatigue),
    /// The device or the spec cannot be used: why, and what to do. The last line.
    Failed(String),
    /// The device rejects the PIN, which must not be tried again: a token locks itself after a few
    /// wrong ones. The last line.
    PinRefused(String),
    /// The device does not offer the operation (speed) or any of them (fatigue). Not a failure. The
    /// last line.
    NotOffered(String),
    /// Done.
    End,
}

impl Line {
    /// Whether the worker ends after this line.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        // After these the end of the output is in order; before them it is the worker's death.
        matches!(
            self,
            Self::End | Self::Failed(_) | Self::PinRefused(_) | Self::NotOffered(_)
        )
    }
}

/// Speed of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Operations completed by all threads of the process.
    pub operations: u64,
    /// Their input in bytes.
    pub bytes: u64,
    /// Start time, in nanoseconds since the Unix epoch. It shows whether several processes measured
    /// at the same time.
    pub began_unix_ns: u64,
    /// Duration of the measurement, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the process in that duration (user and system), in nanoseconds.
    pub cpu_ns: u64,
    /// Operations in each slice.
    pub slices: Vec<u64>,
    /// Operations that failed.
    pub failed: u64,
    /// Results checked against the CPU, selected at random.
    pub checked: u64,
    /// Of those, results of the measured time. The others were computed right after it.
    pub checked_measured: u64,
    /// Wrong results among these.
    pub wrong: u64,
    /// Verdicts on invalid inputs, if the operation gives verdicts; not in any other count of
    /// results.
    #[serde(default)]
    pub invalid: u64,
    /// Of those, inputs that were accepted.
    #[serde(default)]
    pub accepted: u64,
    /// Latency of single operations in nanoseconds: 50th, 99th percentile and largest, of a sample.
    pub latency_ns: [u64; 3],
    /// Operations in that duration by the device's counter; `None` if it has none.
    pub device_operations: Option<u64>,
}

/// Fatigue so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Fatigue {
    /// Since the start, in nanoseconds.
    pub elapsed_ns: u64,
    /// Operations and restarts.
    #[serde(flatten)]
    pub counts: FatigueCounts,
    /// Rounds through the offered operations that every thread of this process has completed;
    /// `None` in output of versions that did not count them.
    #[serde(default)]
    pub rounds: Option<u64>,
    /// Times of the first failure after each (re)start, in nanoseconds since the start: the data of
    /// the survival curve. At most 10 000.
    pub failures_ns: Vec<u64>,
    /// Times at which the device was open again after a failure, in nanoseconds since the start; at
    /// most 10 000.
    pub restarts_ns: Vec<u64>,
    /// The first failures in words, at most 20 texts.
    pub reasons: Vec<String>,
    /// Most resident memory of the process so far, in bytes.
    pub resident_bytes_max: u64,
}

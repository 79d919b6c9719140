//! What a worker process says: lines of JSON on standard output, the last one [`Line::End`].
//!
//! What it is told: on standard input first the [`Spec`](crate::spec::Spec), then, for speed and
//! fatigue, a line `go`. A line `stop`, or the end of standard input, ends a fatigue trial early:
//! threads finish their operation, and what came of it is told as always. Any other trial it ends
//! at once, without [`Line::End`].

use operation::device::{Facts, KatRow};
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// First: the device is open.
    Open(Facts),
    /// All threads have their sessions and jobs, and wait for a line on standard input to begin
    /// (speed, fatigue): so that processes begin together.
    Ready,
    /// The functional trial comes to this now: an algorithm, or an algorithm and a case with the
    /// inputs tried so far. It tells whoever listens that the worker lives, and of what it died if
    /// it dies.
    Trying(String),
    /// One row of the functional trial.
    Kat(KatRow),
    /// The speed.
    Speed(Speed),
    /// Fatigue so far, about every second, and once at the end.
    Fatigue(Fatigue),
    /// The device or the spec cannot be used: what, and what to do. The last line.
    Failed(String),
    /// The device does not take the PIN, which nobody shall try again: a token locks itself after a
    /// few wrong ones. The last line.
    PinRefused(String),
    /// The device does not have the operation (speed; fatigue, when it has none of them). Not a
    /// failure. The last line.
    NotOffered(String),
    /// Done.
    End,
}

/// Speed of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Operations done by all threads of the process.
    pub operations: u64,
    /// Bytes of input of those.
    pub bytes: u64,
    /// When it began, in nanoseconds since the Unix epoch: whether several processes worked at the
    /// same time is judged by it.
    pub began_unix_ns: u64,
    /// Time measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the process in that time (user and system), in nanoseconds.
    pub cpu_ns: u64,
    /// Operations in each slice.
    pub slices: Vec<u64>,
    /// Operations that failed.
    pub failed: u64,
    /// Results checked after the measurement, against the CPU, and how many were wrong.
    pub checked: u64,
    /// Of those.
    pub wrong: u64,
    /// Latency of single operations in nanoseconds: 50th, 99th percentile and largest, of a sample.
    pub latency_ns: [u64; 3],
    /// What the device says that it did in that time; `None` where it does not count.
    pub device_operations: Option<u64>,
}

/// Fatigue so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fatigue {
    /// Since the start, in nanoseconds.
    pub elapsed_ns: u64,
    /// Operations done and right.
    pub right: u64,
    /// Operations with a wrong result.
    pub wrong: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Invalid inputs that were refused, as they should be.
    pub refused: u64,
    /// Invalid inputs that passed.
    pub passed_invalid: u64,
    /// Times the device was opened anew.
    pub restarts: u64,
    /// Rounds through those operations that it has which every thread has done, in this process;
    /// `None` where nobody counted.
    #[serde(default)]
    pub rounds: Option<u64>,
    /// Times, since the start, of the first failure after each (re)start, in nanoseconds: what the
    /// survival curve is made of. At most 10 000.
    pub failures_ns: Vec<u64>,
    /// Times, since the start, at which the device was open again after a failure, in nanoseconds;
    /// at most 10 000.
    pub restarts_ns: Vec<u64>,
    /// What went wrong first, at most 20 texts.
    pub reasons: Vec<String>,
    /// Most resident memory of the process so far, in bytes.
    pub resident_bytes_max: u64,
}

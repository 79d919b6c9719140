//! A capture of a trial: its file and its contents.

use plan::CapturePoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One capture of a trial. It ran during the trial and used the machine's CPU time: figures with
/// and without a capture are not comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    /// The capture point.
    #[schemars(with = "String")]
    pub at: CapturePoint,
    /// The interface, by `node/interface`.
    pub interface: String,
    /// The file, from the run's folder; `None` if absent.
    pub file: Option<String>,
    /// Table of the tunnel's keys for Wireshark, next to the file, from the run's folder; absent if
    /// not requested, or if no keys are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<String>,
    /// Why file or keys are missing; absent if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Counts of the captured frames; the default without frames.
    pub contents: CaptureContents,
}

/// Counts of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureContents {
    /// Frames in the file.
    pub frames: u64,
    /// Their lengths before they were cut, together; Ethernet headers included, FCS not.
    pub bytes: u64,
    /// Frames that crossed the interface while the capture took some and that it selected.
    pub selected: u64,
    /// Of those, frames that the kernel did not copy because its buffer was full.
    pub dropped: u64,
    /// One frame in this many was selected, at random; more than requested if the sample did not
    /// fit.
    pub one_in: u32,
    /// When the first frame in the file passed, and the last one, in nanoseconds since 1970; 0
    /// without frames.
    pub first_unix_ns: u64,
    /// See [`first_unix_ns`](Self::first_unix_ns).
    pub last_unix_ns: u64,
    /// CPU time of the program that captured.
    pub cpu_ns: u64,
    /// The protocols of the frames, each after the one that contains it.
    pub protocols: Vec<ProtocolCount>,
    /// Frames by their length, in rising buckets without empty ones.
    pub lengths: Vec<LengthCount>,
    /// The most frequent lengths, the first most frequent: at most five.
    pub commonest: Vec<LengthCount>,
}

/// Frames with a protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolCount {
    /// The protocols from the link on, by Wireshark's names: `eth:ip:udp`.
    pub path: String,
    /// Frames that have it.
    pub frames: u64,
    /// Their lengths together.
    pub bytes: u64,
}

/// Frames of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LengthCount {
    /// The length, or the largest of a bucket.
    pub upto_bytes: u32,
    /// Their number.
    pub frames: u64,
}

impl Captured {
    /// Whether every frame that it selected is in the file, or was left out on purpose.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.file.is_some() && self.contents.dropped == 0
    }
}

//! Parameters of the tools.

use schemars::JsonSchema;
use serde::Serialize;

/// Tool parameters; `null` if one does not apply or is the tool's choice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Parameters {
    /// The tool of a bulk transfer: `iperf3` or `iperf2`.
    pub tool: Option<String>,
    /// Parallel streams over all processes (`-P`).
    pub streams: Option<u16>,
    /// Socket buffer (`-w`).
    pub window_bytes: Option<u64>,
    /// UDP payload (`-l`), or ICMP payload of a ping.
    pub datagram_bytes: Option<u32>,
    /// Intended load (`-b`): payload bits per second.
    pub intended_payload_bps: Option<u64>,
    /// Whether they were searched for before the first trial.
    pub tuned: bool,
}

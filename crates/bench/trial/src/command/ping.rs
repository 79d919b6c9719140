//! The commands of ping.

use super::{CommandError, Commands, Cores, MARKER_BYTES, marker, pattern, program, seconds};
use crate::timing::Timing;
use journal::record::ToolParameters;
use plan::Dscp;
use std::net::Ipv4Addr;
use testbed::protocol::Ready;

/// Echo requests for the baseline round trip: count, interval in nanoseconds, payload in bytes.
const BASELINE: (u32, u64, u16) = (20, 10_000_000, 56);
/// The `struct timeval` that `ping` puts before its pattern.
const TIMESTAMP_BYTES: usize = 16;

/// Returns the command of a trial, with its count, interval, payload and class.
pub(super) fn commands(
    (count, interval_ns, payload_bytes, dscp): (u32, u64, u16, Option<Dscp>),
    target: Ipv4Addr,
    cores: &Cores,
) -> Result<Commands, CommandError> {
    if count == 0 {
        return Err(CommandError::Zero {
            what: "the number of echo requests",
        });
    }
    if interval_ns == 0 || interval_ns % 1_000_000 != 0 {
        return Err(CommandError::PingInterval { interval_ns });
    }
    if usize::from(payload_bytes) < TIMESTAMP_BYTES {
        return Err(CommandError::PingPayload { payload_bytes });
    }
    let argv = words((count, interval_ns, payload_bytes), dscp, target);
    Ok(Commands {
        cores: cores.clone(),
        preparations: Vec::new(),
        baseline: None,
        servers: Vec::new(),
        clients: vec![program(&argv, cores.a.clone(), Ready::Started)],
        parameters: ToolParameters::default(),
        timing: Timing::of_ping(count, interval_ns),
        marker: marker(TIMESTAMP_BYTES, usize::from(payload_bytes)),
    })
}

/// Returns the words of the command for the baseline round trip.
pub(super) fn baseline(target: Ipv4Addr) -> String {
    words(BASELINE, None, target)
}

fn words(
    (count, interval_ns, payload_bytes): (u32, u64, u16),
    dscp: Option<Dscp>,
    target: Ipv4Addr,
) -> String {
    let class = dscp.map_or_else(String::new, |dscp| format!(" -Q {}", dscp.tos()));
    let pattern: String = pattern(0, MARKER_BYTES)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        // `-W 1`: wait one second for late replies, not the ten that a lost last reply would cost.
        "ping -n -i {} -c {count} -s {payload_bytes} -p {pattern} -W 1{class} {target}",
        seconds(interval_ns),
    )
}

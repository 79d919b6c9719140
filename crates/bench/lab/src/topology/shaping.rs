//! Line rates, as input of `tc -batch`: a token bucket at each sending end.
//!
//! The bucket counts bytes on the wire (as RFC 2544 §C.1 does): FCS, preamble and gap are added to
//! the kernel's length, which begins with the Ethernet header, and a frame counts as at least 84
//! bytes. A super-packet counts as one frame: with offloads, TCP may exceed the line rate by 6 %.

use super::Map;
use testbed::{Links, NodeId};

/// The Ethernet header, part of the kernel's length.
const ETHERNET_BYTES: u64 = 14;

/// FCS, preamble with start delimiter, and inter-packet gap, in bytes.
const OVERHEAD_BYTES: u64 = 4 + 8 + 12;

/// The shortest frame, 64 bytes, with preamble and gap.
const WIRE_BYTES_MIN: u64 = 64 + 8 + 12;

/// Sizes of bucket and queue, as time at the line rate.
const BURST_NS: u64 = 1_000_000;
const QUEUE_NS: u64 = 10_000_000;

/// Minimum sizes of bucket and queue, in frames.
const BURST_FRAMES_MIN: u64 = 2;
const QUEUE_FRAMES_MIN: u64 = 8;

/// Most lengths in the kernel's table, one byte apart so that short frames are not rounded up. The
/// kernel extrapolates longer ones.
const LENGTHS_MAX: u64 = 1 << 14;

impl Map {
    /// Shapes a node's interfaces to the links' rate, or removes their shapers. Can be repeated.
    pub(crate) fn shape(&self, node: NodeId, links: Links) -> String {
        let mut batch = String::new();
        for (end, _, link) in self.ends(node) {
            let interface = end.interface;
            match links.rate_bps {
                Some(rate) => {
                    let bucket = bucket(link.mtu(links), rate);
                    batch += &format!("qdisc replace dev {interface} root {bucket}\n");
                }
                // `qdisc del` would fail without a shaper.
                None => batch += &format!("qdisc replace dev {interface} root noqueue\n"),
            }
        }
        batch
    }
}

/// The token bucket for a rate in bit/s on an interface with that IP MTU.
fn bucket(mtu: u16, rate_bps: u64) -> String {
    let frame = u64::from(mtu) + ETHERNET_BYTES + OVERHEAD_BYTES;
    let bytes_in = |ns: u64| {
        let bytes = u128::from(rate_bps) * u128::from(ns) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    // A bucket that is smaller than a frame would never let one pass.
    let burst = bytes_in(BURST_NS).max(BURST_FRAMES_MIN * frame);
    let queue = bytes_in(QUEUE_NS).max(QUEUE_FRAMES_MIN * frame);
    let limit = u32::try_from(queue).unwrap_or(u32::MAX);
    // With `mtu` one below `tsize`, tc makes each cell of the table one byte long.
    let lengths = (frame + 1).next_power_of_two().min(LENGTHS_MAX);
    format!(
        "stab overhead {OVERHEAD_BYTES} mpu {WIRE_BYTES_MIN} tsize {lengths} mtu {} \
         linklayer ethernet tbf rate {rate_bps}bit burst {burst} limit {limit}",
        lengths - 1
    )
}

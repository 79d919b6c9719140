//! The check of how many packets entered and left the path, each direction for itself, by the
//! kernels of the stations.

use super::failure::{count, nothing_seen, then_repeat_or};
use super::{ObservedPath, ToolObserved, check};
use journal::record::{Check, Explanation};

/// Packets that others may send in a trial: ICMP errors of the gateways.
const CONTROL_PACKETS: u64 = 64;
/// Two counts that are read one after the other may differ by one in this many.
const COUNTED_ONE_IN: u64 = 1000;

/// The packets of one direction.
struct Crossed {
    from: &'static str,
    to: &'static str,
    sent: u64,
    received: u64,
    /// The most packets that may have been received.
    most: u64,
}

/// Checks that no more came out of the path than went in: iperf3 reports no duplicates for TCP, and
/// counts them as reordering with UDP; and packets that others send to a station take its time.
/// Fewer packets are reported for each direction.
pub(super) fn packets_cross_once(observed: &ToolObserved<'_>) -> Option<Check> {
    let ways = [way(observed, "a", "b")?, way(observed, "b", "a")?];
    let words: Vec<String> = ways.iter().map(Crossed::words).collect();
    let mut detail = words.join("; ");
    for way in ways.iter().filter(|way| way.received > way.most) {
        detail += &format!("; at most {} could arrive at {}", way.most, way.to);
    }
    // Fewer are no failure: the path may lose packets, and the figure has that.
    let failed = ways.iter().find(|way| way.received > way.most);
    let failure = failed.map(Crossed::failure);
    let received = ways.iter().map(|way| way.received).max().unwrap_or(0);
    let empty = || nothing_seen(received, "packet crossed the path");
    check("packets-cross-once", failure.or_else(empty), detail)
}

/// `None` if the kernels' counters were not read.
fn way(observed: &ToolObserved<'_>, from: &'static str, to: &'static str) -> Option<Crossed> {
    let [sent, received] = observed.path.ip_packets(from, to);
    let (sent, received) = (sent?, received?);
    // Copies that the profile asks for are no fault of the device.
    let doubled = observed.path.impaired.map_or(0, |impaired| match from {
        "a" => impaired.a_to_b.duplicated,
        _ => impaired.b_to_a.duplicated,
    });
    let most = sent.saturating_mul(fragments_most(&observed.path))
        + doubled
        + CONTROL_PACKETS
        + sent / COUNTED_ONE_IN;
    Some(Crossed {
        from,
        to,
        sent,
        received,
        most,
    })
}

/// The most packets that one sent packet may become on the way: a device with a tunnel narrower
/// than the links cuts it.
pub(crate) fn fragments_most(path: &ObservedPath<'_>) -> u64 {
    let links = path.links;
    let profile = path.cell.dut.adapter.profile();
    match profile.clear_mtu(links.cipher_mtu) {
        Some(mtu) if mtu >= usize::from(links.mtu) => 1,
        _ => 2,
    }
}

impl Crossed {
    fn failure(&self) -> Explanation {
        let more = self.received.saturating_sub(self.sent);
        Explanation::new(
            format!(
                "station {} received {} more than station {} sent",
                self.to,
                count(more, self.sent, "IP packet"),
                self.from
            ),
            "something on the path duplicates packets, or others send to the station too",
            then_repeat_or(
                "stop other programs that use the lab's links",
                "look whether only this device does it: then it duplicates packets",
            ),
        )
    }

    fn words(&self) -> String {
        let Self {
            from,
            to,
            sent,
            received,
            ..
        } = self;
        format!(
            "the kernel of {from} sent {sent} IP packets, and {received} arrived at that of {to}"
        )
    }
}

//! Settings of the path that changed during a trial, and counters of its kernels.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings and queue counters that the kernels of the path reported over a trial.
///
/// Settings are read before and after: links with their MTU, state, queue disciplines and numbers
/// of queues, addresses, routes, routing rules, forwarding, IPsec policies, and offloads. Between
/// the two, the kernel reports every change (rtnetlink(7)), even if it is undone immediately.
/// Neighbours are omitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSettings {
    /// Changes in the order of the nodes, and of time on each. A node lists up to 64.
    pub changes: Vec<SettingChange>,
    /// Packets that queue disciplines dropped (or chose not to queue), by `node/interface`, as
    /// differences over the trial; without zeros.
    #[serde(default)]
    pub queue_drops: BTreeMap<String, u64>,
    /// Counters of the kernels' IP, ICMP, UDP and TCP, by `node/counter` with the names of
    /// `/proc/net/snmp` and `/proc/net/netstat`, and `LoopbackPackets` of the loopback interface,
    /// as differences over the trial; without zeros.
    #[serde(default)]
    pub stack: BTreeMap<String, u64>,
    /// Frames of ARP, IPv6 neighbour and group discovery that each node received on any interface
    /// over the trial, by node; empty in frame tests and in older journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub neighbour_frames: BTreeMap<String, u64>,
}

impl PathSettings {
    /// The [counter](Self::stack) of packets between programs of one node, which the other counters
    /// include as sent and as received.
    const LOOPBACK: &str = "LoopbackPackets";

    /// IP packets that a node's programs sent by ICMP, UDP and TCP, with fragments and the segments
    /// of super-packets counted one by one; `None` without a count.
    #[must_use]
    pub fn ip_packets_sent(&self, node: &str) -> Option<u64> {
        // `OutSegs` excludes retransmissions.
        let whole = ["OutSegs", "RetransSegs", "OutDatagrams", "OutMsgs"];
        let whole = self.sum(node, &whole);
        // A packet that was fragmented is not sent itself: its fragments are.
        let fragments = self.counted(node, "FragCreates");
        let unfragmented = whole.saturating_sub(self.counted(node, "FragOKs"));
        let packets = unfragmented.saturating_add(fragments);
        // Packets to itself are counted, but cross no link.
        let packets = packets.saturating_sub(self.counted(node, Self::LOOPBACK));
        (packets > 0).then_some(packets)
    }

    /// IPv4 packets that reached a node's IP, with the segments of super-packets counted one by
    /// one; `None` without a count.
    #[must_use]
    pub fn ip_packets_received(&self, node: &str) -> Option<u64> {
        // Each packet is in one of these, by its ECN field.
        let all = ["InNoECTPkts", "InECT0Pkts", "InECT1Pkts", "InCEPkts"];
        let packets = self.sum(node, &all);
        let packets = packets.saturating_sub(self.counted(node, Self::LOOPBACK));
        (packets > 0).then_some(packets)
    }

    /// The sum of [counters](Self::stack). Saturates: no rule of `possible` bounds them.
    fn sum(&self, node: &str, counters: &[&str]) -> u64 {
        let values = counters.iter().map(|name| self.counted(node, name));
        values.fold(0, u64::saturating_add)
    }

    /// One of the [counters](Self::stack); 0 if it did not grow.
    #[must_use]
    pub fn counted(&self, node: &str, counter: &str) -> u64 {
        let found = self.stack.get(&format!("{node}/{counter}"));
        // A kernel without a counter counts as one that never moved.
        found.copied().unwrap_or(0)
    }
}

/// How a lost tunnel is worded.
const LOST_TUNNEL: &str = "has no SA any more for ";

/// A setting that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// The node: `gw1`.
    pub node: String,
    /// Time of the kernel's report, from the first reading on; `None` if only the readings before
    /// and after differ.
    pub at_ns: Option<u64>,
    /// The change and the new value: `link w0: mtu 1000, was 1500`.
    pub what: String,
}

impl SettingChange {
    /// A tunnel between these networks that its node had at the start, without an SA at the end.
    #[must_use]
    pub fn lost_tunnel(node: &str, networks: &str) -> Self {
        Self {
            node: node.to_owned(),
            at_ns: None,
            what: format!("{LOST_TUNNEL}{networks}"),
        }
    }

    /// Whether it is as [`Self::lost_tunnel`] words it.
    #[must_use]
    pub fn is_lost_tunnel(&self) -> bool {
        self.what.starts_with(LOST_TUNNEL)
    }

    /// The report of a kernel that an interface's offloads changed, without their names.
    #[must_use]
    pub fn offloads(link: &str) -> String {
        format!("{link}: offloads")
    }

    /// Whether it is a report as [`Self::offloads`] words it.
    #[must_use]
    pub fn is_offloads(&self) -> bool {
        // Found by its text, which older journals have too.
        self.at_ns.is_some() && self.what.ends_with(": offloads")
    }
}

//! Checks of how many packets entered and left the path, each direction for itself, by the counters
//! of the stations' interfaces.

use super::{Load, ToolObserved, check};
use journal::record::{Check, InterfaceCounters};

/// Packets that others may send on a link in a trial: ARP, ND.
const CONTROL_PACKETS: u64 = 64;
/// Two counts that are read one after the other may differ by one in this many.
const COUNTED_ONE_IN: u64 = 1000;
/// The least segment that TCP's super-packets are cut into, and the headers that each then has
/// (Ethernet, IPv4, TCP with timestamps): what cutting adds to bytes.
const SEGMENT_BYTES_LEAST: u64 = 536;
const SEGMENT_HEADER_BYTES: u64 = 14 + 20 + 32;

/// What one direction carried, in packets where they are whole on both links, else in bytes.
struct Way {
    from: String,
    to: String,
    sent: u64,
    received: u64,
    unit: &'static str,
    /// The most that may have been received of what was sent.
    most: u64,
}

/// No more came out of the path than went in: duplicates are in no figure of iperf3's for TCP, and
/// pass for reordering with UDP. What is less is stated for each direction.
pub(super) fn packets_cross_once(observed: &ToolObserved<'_>) -> Option<Check> {
    let ways = ways(observed)?;
    let doubled: Vec<&Way> = ways.iter().filter(|way| way.received > way.most).collect();
    let words: Vec<String> = ways.iter().map(Way::words).collect();
    let mut detail = words.join("; ");
    for way in &doubled {
        detail += &format!(
            "; at most {} {} could arrive at {}: something on the path duplicates them",
            way.most, way.unit, way.to
        );
    }
    check("packets-cross-once", doubled.is_empty(), detail)
}

/// `None` where an interface has no counters.
fn ways(observed: &ToolObserved<'_>) -> Option<[Way; 2]> {
    let names = &observed.interfaces;
    let counters = |name: &str| observed.path.counters.get(name).copied();
    let (a, b) = (counters(&names.a)?, counters(&names.b)?);
    // With offloads TCP leaves in super-packets that a device may cut; other traffic is not joined
    // by the stations.
    let datagrams = observed.commands.parameters.datagram_bytes.is_some();
    let is_tcp = matches!(observed.load, Load::Transfer { .. }) && !datagrams;
    let is_cut = observed.path.links.offloads && is_tcp;
    let way = |from: &str, source: InterfaceCounters, to: &str, sink: InterfaceCounters| {
        let (from, to) = (from.to_owned(), to.to_owned());
        if is_cut {
            let sent = source.tx_bytes;
            let headers = sent.div_ceil(SEGMENT_BYTES_LEAST) * SEGMENT_HEADER_BYTES;
            return Way {
                from,
                to,
                sent,
                received: sink.rx_bytes,
                unit: "B",
                most: sent + headers + CONTROL_PACKETS * 1500 + sent / COUNTED_ONE_IN,
            };
        }
        let sent = source.tx_packets;
        let each = fragments_most(observed);
        Way {
            from,
            to,
            sent,
            received: sink.rx_packets + sink.rx_dropped,
            unit: "packets",
            most: sent.saturating_mul(each) + CONTROL_PACKETS + sent / COUNTED_ONE_IN,
        }
    };
    Some([way(&names.a, a, &names.b, b), way(&names.b, b, &names.a, a)])
}

/// The most packets that one sent packet may become on the way: a device whose tunnel is narrower
/// than the links cuts it.
fn fragments_most(observed: &ToolObserved<'_>) -> u64 {
    let links = observed.path.links;
    let profile = observed.path.cell.dut.adapter.profile();
    match profile.clear_mtu(links.cipher_mtu) {
        Some(mtu) if mtu >= usize::from(links.mtu) => 1,
        _ => 2,
    }
}

impl Way {
    fn words(&self) -> String {
        let Self {
            from,
            to,
            sent,
            received,
            unit,
            ..
        } = self;
        format!("{from} sent {sent} {unit}, and {received} arrived at {to}")
    }
}

//! Bounds the bytes that an interface must and may have carried for the tools' counts.
//!
//! The lower bound is the payload in the fullest packets that the MTU allows, each with its
//! smallest headers; the upper bound is the payload in emptier packets, each with its largest
//! headers. With offloads on, a virtual link counts a super-packet of 64 KB with one header, but
//! sealed packets were sealed one by one.
//!
//! The overhead of our encryptor is known to the byte. The overhead of other devices is bounded by
//! the form of their packets: the least has no padding, the most has all of it, and the gateways'
//! traffic to one another.

use super::{Load, ToolObserved};
use crate::transfer::Totals;
use plan::{Adapter, GatewayTraffic, Role};
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES, ipv4_packets};

/// Ethernet header; virtual links count no FCS.
const ETHERNET_HEADER_BYTES: u64 = 14;
/// TCP header with the timestamps option (RFC 7323).
const TCP_HEADER_BYTES: u64 = 32;
/// Without: a station's kernel may not use it.
const TCP_HEADER_BYTES_LEAST: u64 = 20;
/// Selective acknowledgements next to timestamps use the rest of the 40 bytes of options (RFC 2018
/// section 3).
const ACK_OPTIONS_BYTES: u64 = 28;
/// Maximum length of an IPv4 packet, and so of a super-packet (RFC 791 §3.1).
const SUPER_PACKET_BYTES: u64 = 65_535;
/// ICMP echo header (RFC 792).
const ICMP_HEADER_BYTES: u64 = 8;
/// Other traffic that may cross a link in a trial: each tool's control connection with its results,
/// ARP, pure acknowledgements of that connection.
const CONTROL_BYTES_PER_TOOL: u64 = 64 << 10;
/// As above when the only tool is `ping`, which has no control connection.
const CONTROL_BYTES_OF_PING: u64 = 4 << 10;
/// Bytes that a transaction may add to its payload, or to its object's payload if the client counts
/// only that: the response's header, packets without payload, and packets that open and close a
/// connection, TLS included.
const HTTP_BYTES_PER_TRANSACTION: u64 = 8 << 10;
/// One in this many bytes of HTTP may be sent again: no client reports it.
const HTTP_AGAIN_ONE_IN: u64 = 10;
/// A TCP stream is not all full segments: its packets may be half full on average, and no emptier.
const TCP_PACKETS_PER_FULL_ONE: u64 = 2;
/// AGGFRAG adds its header to a packet that is alone in its ESP packet (RFC 9347 §6.1).
const AGGREGATE_BYTES_MAX: u64 = 4;
/// Bytes per second that others' gateways may send to one another: keepalives, and now and then new
/// keys.
const TUNNEL_BYTES_PER_S: u64 = 1 << 10;
/// Bytes that one of our gateways may send while a tunnel agrees on keys: several times the size of
/// certificates and key shares of more than a kilobyte, for the peer and for a KME.
const HANDSHAKE_BYTES: u64 = 32 << 10;
/// The longest multiple that packets are padded to. This many consecutive lengths contain every
/// amount of padding.
const PAD_TO_BYTES_MAX: usize = 16;

/// Bytes that an interface may have carried, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

impl Bounds {
    pub(crate) const fn hold(self, bytes: u64) -> bool {
        self.least <= bytes && bytes <= self.most
    }
}

/// How payload is cut into packets on the path.
#[derive(Debug, Clone, Copy)]
struct Packets {
    /// Payload that one unit carries: a full segment, a datagram, an echo request.
    payload_bytes: u64,
    /// Headers of the unit's packets on the clear side, Ethernet included.
    header_bytes: u64,
    /// Packets of the unit: 1, or its fragments.
    count: u64,
    /// Payload of the fullest unit.
    payload_bytes_most: u64,
    /// IP headers and transport header of a unit, at least.
    ip_header_bytes_least: u64,
    /// Units there may be for each that the payload fills.
    slack: u64,
}

impl Packets {
    /// As packets of the longest that crosses the path in one piece.
    fn of(observed: &ToolObserved<'_>, mtu: u16) -> Self {
        // An overlay puts its headers in front of each packet of the tools.
        let around = observed.path.overlay().added_bytes();
        let (mtu, around) = (mtu.saturating_sub(around), u64::from(around));
        let ip = IPV4_HEADER_BYTES as u64;
        let fragmented = |payload_bytes: u64, header_bytes: u64| {
            // A datagram longer than the MTU travels in fragments, each with an IP header. The
            // transport header is in the first one only.
            let count = ipv4_packets((payload_bytes + header_bytes) as usize, mtu.into()) as u64;
            let ip_header_bytes = header_bytes + count * (ip + around);
            Self {
                payload_bytes: payload_bytes.max(1),
                header_bytes: ip_header_bytes + count * ETHERNET_HEADER_BYTES,
                count,
                payload_bytes_most: payload_bytes.max(1),
                ip_header_bytes_least: ip_header_bytes,
                slack: 1,
            }
        };
        match (&observed.load, observed.commands.parameters.datagram_bytes) {
            (Load::Echo { payload_bytes, .. }, _) => {
                fragmented(u64::from(*payload_bytes), ICMP_HEADER_BYTES)
            }
            (Load::Transfer { .. } | Load::Video(_), Some(bytes)) => {
                fragmented(u64::from(bytes), UDP_HEADER_BYTES as u64)
            }
            (Load::Transfer { .. } | Load::Video(_), None) | (Load::Http(_), _) => Self {
                // Segments with timestamps are shorter, so they give the largest number of packets,
                // and segments without them the smallest.
                payload_bytes: u64::from(mtu).saturating_sub(ip + TCP_HEADER_BYTES).max(1),
                header_bytes: ETHERNET_HEADER_BYTES + around + ip + TCP_HEADER_BYTES,
                count: 1,
                payload_bytes_most: u64::from(mtu)
                    .saturating_sub(ip + TCP_HEADER_BYTES_LEAST)
                    .max(1),
                ip_header_bytes_least: around + ip + TCP_HEADER_BYTES_LEAST,
                slack: TCP_PACKETS_PER_FULL_ONE,
            },
        }
    }

    /// The least bytes of IP packets for `payload_bytes`.
    fn ip_least(self, payload_bytes: u64) -> u64 {
        payload_bytes.saturating_add(
            payload_bytes
                .div_ceil(self.payload_bytes_most)
                .saturating_mul(self.ip_header_bytes_least),
        )
    }

    /// The fewest packets, fragments counted, for `payload_bytes`.
    fn packets_least(self, payload_bytes: u64) -> u64 {
        payload_bytes
            .div_ceil(self.payload_bytes_most)
            .saturating_mul(self.count)
    }

    /// The packet length, if all packets have the same.
    const fn packet_bytes(self) -> Option<u64> {
        // TCP cuts segments as it likes, and a last fragment is shorter.
        if self.slack == 1 && self.count == 1 {
            Some(self.payload_bytes + self.ip_header_bytes_least)
        } else {
            None
        }
    }

    /// The most bytes on a link for acknowledgements of the TCP that went the other way: one for
    /// each of its segments, but usually for every second one (RFC 9293 section 3.8.6.3).
    fn acknowledgements_most(self, beside: Option<Totals>, extra_bytes: u64) -> u64 {
        let Some(totals) = beside.filter(|_| self.slack > 1) else {
            return 0;
        };
        let carried = totals.sent_bytes.saturating_add(totals.uncounted_bytes);
        let segments = carried
            .div_ceil(self.payload_bytes)
            .saturating_mul(self.slack)
            .saturating_add(totals.retransmits);
        segments.saturating_mul(self.header_bytes + ACK_OPTIONS_BYTES + extra_bytes)
    }

    /// The most bytes on a link for `payload_bytes`, `extra_bytes` being added to each packet.
    fn most(self, payload_bytes: u64, extra_bytes: u64) -> u64 {
        let units = payload_bytes
            .div_ceil(self.payload_bytes)
            .saturating_mul(self.slack);
        payload_bytes
            .saturating_add(units.saturating_mul(self.header_bytes + self.count * extra_bytes))
    }
}

/// The largest IP packet that crosses the whole path in one piece: as far as is known, and at most.
fn path_mtus(observed: &ToolObserved<'_>) -> (u16, u16) {
    let links = observed.path.links;
    let adapter = &observed.path.cell.dut.adapter;
    let known = adapter.profile().clear_mtu(links.cipher_mtu).unwrap_or(0);
    // Other devices may fragment sealed packets.
    let most = match adapter.encryptor() {
        Some(_) => known,
        None => links.cipher_mtu.into(),
    };
    let with_links = |mtu| links.mtu.min(u16::try_from(mtu).unwrap_or(u16::MAX));
    (with_links(known), with_links(most))
}

/// The most that a DUT's encapsulation adds to a packet.
fn encapsulation_bytes(adapter: &Adapter) -> u64 {
    let profile = adapter.profile();
    let added = |inner: usize| (profile.cipher_packet_bytes(inner) - inner) as u64;
    // Padding depends on the length.
    let most = (1000..1000 + PAD_TO_BYTES_MAX).map(added).max();
    let aggregate = if profile.aggregates {
        AGGREGATE_BYTES_MAX
    } else {
        0
    };
    most.unwrap_or(0) + aggregate
}

/// The payload of the tools, and the traffic that comes with that payload.
struct Payload {
    sent: u64,
    uncounted: u64,
    received: u64,
    again: u64,
    control: u64,
}

impl Payload {
    fn of(observed: &ToolObserved<'_>, packets: Packets) -> Self {
        match &observed.load {
            Load::Transfer { totals, .. } => Self {
                sent: totals.sent_bytes,
                uncounted: totals.uncounted_bytes,
                received: totals.received_bytes,
                again: totals.retransmits.saturating_mul(packets.payload_bytes),
                control: CONTROL_BYTES_PER_TOOL * (observed.commands.clients.len() as u64).max(1),
            },
            Load::Echo {
                latency,
                payload_bytes,
            } => Self {
                sent: latency.sent * u64::from(*payload_bytes),
                uncounted: 0,
                received: latency.received * u64::from(*payload_bytes),
                again: 0,
                control: CONTROL_BYTES_OF_PING,
            },
            Load::Video(video) => Self {
                sent: video.sent_bytes(),
                uncounted: 0,
                received: video.received_bytes(),
                again: match observed.commands.parameters.datagram_bytes {
                    Some(_) => 0,
                    None => video.received_bytes() / HTTP_AGAIN_ONE_IN,
                },
                control: CONTROL_BYTES_PER_TOOL * (video.streams.len() as u64 + 1),
            },
            Load::Http(http) => Self {
                sent: http.received_bytes,
                uncounted: 0,
                received: http.received_bytes,
                again: http.received_bytes / HTTP_AGAIN_ONE_IN,
                control: http
                    .attempted
                    .saturating_mul(HTTP_BYTES_PER_TRANSACTION)
                    .saturating_add(CONTROL_BYTES_PER_TOOL),
            },
        }
    }
}

/// The position of an interface on the payload's path, which selects its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The sender's interface: all that was sent left there.
    Source,
    /// The sealing gateway's interface to the cipher link.
    Cipher,
    /// The receiver's interface.
    Sink,
}

/// Bounds for what went the way of the load at a place of the path.
pub(super) fn bounds(observed: &ToolObserved<'_>, place: Place) -> Bounds {
    // The upper bound uses the packets that are certain to pass, the lower one the longest that
    // may.
    let (mtu, mtu_most) = path_mtus(observed);
    let (packets, fullest) = (Packets::of(observed, mtu), Packets::of(observed, mtu_most));
    let payload = Payload::of(observed, packets);
    let udp = observed.commands.parameters.datagram_bytes.is_some();
    let extra = match place {
        Place::Cipher => encapsulation_bytes(&observed.path.cell.dut.adapter),
        Place::Source | Place::Sink => 0,
    };
    let least = match place {
        // With TCP, some sent bytes may still have been in the socket buffers at the end.
        Place::Source if udp => payload.sent.saturating_sub(payload.uncounted),
        _ => payload.received,
    };
    // Copies of datagrams were made behind the sealing gateway.
    let least = match (place, observed.commands.parameters.datagram_bytes) {
        (Place::Cipher, Some(bytes)) => {
            least.saturating_sub(observed.copies_most().saturating_mul(bytes.into()))
        }
        _ => least,
    };
    let least = least_bytes(observed, place, fullest, least);
    let copied = match (place, observed.impaired()) {
        (Place::Sink, Some(counts)) => {
            let frame_bytes = u64::from(mtu_most) + ETHERNET_HEADER_BYTES;
            counts.duplicated.saturating_mul(frame_bytes)
        }
        _ => 0,
    };
    // All that may have been sent, received or not: loss behind this place does not lower its
    // count.
    let carried = payload.sent.saturating_add(payload.uncounted);
    let most = packets
        .most(carried.saturating_add(payload.again), extra)
        .saturating_add(packets.acknowledgements_most(observed.beside, extra));
    let tunnel = match place {
        Place::Cipher => gateway_bytes(&observed.path.cell.dut.adapter, observed.path.elapsed_ns),
        Place::Source | Place::Sink => 0,
    };
    Bounds {
        least,
        most: most
            .saturating_add(payload.control)
            .saturating_add(tunnel)
            .saturating_add(copied),
    }
}

/// The most bytes that a DUT's gateways send to one another in a time.
pub(crate) fn gateway_bytes(adapter: &Adapter, elapsed_ns: u64) -> u64 {
    let seconds = elapsed_ns.div_ceil(1_000_000_000);
    let profile = adapter.profile();
    let pinged = seconds.saturating_mul(TUNNEL_BYTES_PER_S);
    match profile.gateway_traffic {
        GatewayTraffic::None => 0,
        GatewayTraffic::Keepalives => pinged,
        GatewayTraffic::Rekeys(every_ns) => {
            // Per tunnel: one that was under way, and the ones that came due.
            let handshakes = 1 + elapsed_ns.div_ceil(every_ns.max(1));
            handshakes
                .saturating_mul(HANDSHAKE_BYTES)
                .saturating_add(pinged)
                .saturating_mul(profile.tunnels.into())
        }
    }
}

/// The least bytes at a place for `payload_bytes`.
fn least_bytes(
    observed: &ToolObserved<'_>,
    place: Place,
    packets: Packets,
    payload_bytes: u64,
) -> u64 {
    let adapter = &observed.path.cell.dut.adapter;
    let profile = adapter.profile();
    let ip_bytes = packets.ip_least(payload_bytes);
    let count = packets.packets_least(payload_bytes);
    let merged = observed.path.links.offloads;
    let is_tunnel = profile.role == Role::Tunnel;
    if place == Place::Cipher && is_tunnel {
        // Of packets that share an ESP packet only the packets are sure.
        if profile.aggregates {
            return ip_bytes;
        }
        // Other gateways may cut packets before they seal them.
        let packet_bytes = adapter.encryptor().and(packets.packet_bytes());
        let packet_bytes = packet_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let added = profile.added_bytes_least(packet_bytes) as u64;
        // One set of outer headers goes with a whole train of packets (`UDP_SEGMENT`).
        let outer_bytes = if merged {
            0
        } else {
            ETHERNET_HEADER_BYTES + profile.outer_bytes as u64
        };
        return ip_bytes.saturating_add(count.saturating_mul(added + outer_bytes));
    }
    // The stations cut UDP themselves, but an encryptor may join opened packets.
    let tcp = packets.slack > 1;
    if merged && (tcp || (place == Place::Sink && is_tunnel)) {
        let header_bytes = ETHERNET_HEADER_BYTES + packets.ip_header_bytes_least;
        let super_packets = payload_bytes.div_ceil(SUPER_PACKET_BYTES);
        return payload_bytes.saturating_add(super_packets.saturating_mul(header_bytes));
    }
    ip_bytes.saturating_add(count.saturating_mul(ETHERNET_HEADER_BYTES))
}

/// The least bytes of IP packets with the received payload: both ends of a tunnel must have carried
/// them.
pub(super) fn received_ip_bytes(observed: &ToolObserved<'_>) -> u64 {
    let (_, mtu_most) = path_mtus(observed);
    let packets = Packets::of(observed, mtu_most);
    let received = Payload::of(observed, packets).received;
    let copied = observed.copies_most().saturating_mul(packets.payload_bytes);
    packets.ip_least(received.saturating_sub(copied))
}

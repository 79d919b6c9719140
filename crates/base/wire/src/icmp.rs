//! Path MTU errors to a sender: ICMP "fragmentation needed" (RFC 792, RFC 1191 §4) and ICMPv6
//! "packet too big" (RFC 4443 §3.2).
//!
//! This module decides which packets must not be answered (RFC 1812 §4.3.2.7, RFC 4443 §2.4 (e));
//! the caller limits the rate (RFC 1812 §4.3.2.8, RFC 4443 §2.4 (f)).

use crate::checksum::{self, dword, word};
use crate::headers::{IpView, be16, be32, put16, put32};
use crate::overhead::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A buffer size for any message of this module: IPv6's minimum MTU (RFC 4443 §3.2).
pub const MESSAGE_BYTES_MAX: usize = IPV6_MTU_MIN;
/// The smallest MTU that an IPv6 link may have (RFC 8200 §5).
const IPV6_MTU_MIN: usize = 1280;
/// The longest error over IPv4 (RFC 1812 §4.3.2.3).
const IPV4_MESSAGE_BYTES_MAX: usize = 576;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const ICMP_HEADER_BYTES: usize = 8;
const HOP_LIMIT: u8 = 64;
/// DSCP CS6, that of network control (RFC 1812 §4.3.2.5).
const TOS: u8 = 0xc0;
const DONT_FRAGMENT: u16 = 0x4000;
const OFFSET: u16 = 0x1fff;

const DESTINATION_UNREACHABLE: u8 = 3;
const FRAGMENTATION_NEEDED: u8 = 4;
const PACKET_TOO_BIG: u8 = 2;

/// Builds the message for `packet`, which is longer than `mtu`, the largest that could have passed;
/// writes it to `out` as a whole IP packet from `source`, the tunnel's own address, and returns its
/// length.
///
/// Quotes as much of `packet` as fits the message. It may be a super-packet with an incomplete
/// checksum.
///
/// Returns `None`, so that no message is sent, when
/// - `packet` is no whole IP packet, or its IPv4 header checksum is wrong,
/// - it is IPv4 that may be fragmented, or a fragment other than the first,
/// - it is an ICMP error or redirect itself, or ICMP whose type cannot be found,
/// - its source is not that of a single host (unspecified, loopback, multicast, broadcast,
///   reserved),
/// - its destination is IPv4 multicast or broadcast. Packets to an IPv6 group are answered: RFC
///   4443 §2.4 (e.3) requires that, for paths to groups have an MTU too,
/// - `mtu` is below 1280 for IPv6, which senders ignore (RFC 8201 §4),
/// - `source` is of the other family, or `out` is too short ([`MESSAGE_BYTES_MAX`] is enough).
#[must_use]
pub fn too_big(packet: &[u8], mtu: u16, source: IpAddr, out: &mut [u8]) -> Option<usize> {
    let view = IpView::parse(packet)?;
    // Padding of the link is no part of the quote.
    let packet = &packet[..view.total_bytes];
    match source {
        IpAddr::V4(source) if view.version == 4 => {
            let target = answerable_v4(packet, &view)?;
            Some(put_v4(packet, mtu, source, target, out)?.len())
        }
        IpAddr::V6(source) if view.version == 6 => {
            let target = answerable_v6(packet)?;
            if usize::from(mtu) < IPV6_MTU_MIN {
                return None;
            }
            Some(put_v6(packet, mtu, source, target, out)?.len())
        }
        _ => None,
    }
}

/// The packet's source, if an error may be sent to it.
fn answerable_v4(packet: &[u8], view: &IpView) -> Option<Ipv4Addr> {
    let fragment = be16(packet, 6);
    // Without DF the packet is fragmented, and needs no answer. Of fragments only the first may be
    // answered (RFC 1812 §4.3.2.7).
    if fragment & DONT_FRAGMENT == 0
        || fragment & OFFSET != 0
        || !view.header_checksum_is_valid(packet)
        || view.protocol == ICMP && is_icmp_error(*packet.get(view.header_bytes)?)
    {
        return None;
    }
    let source = Ipv4Addr::from(be32(packet, 12));
    let target = Ipv4Addr::from(be32(packet, 16));
    // Networks 0 and 127, and class E with the broadcast as its last address (RFC 1812 §5.3.7).
    let is_host = !matches!(source.octets()[0], 0 | 127 | 224..);
    (is_host && !target.is_multicast() && !target.is_broadcast()).then_some(source)
}

/// Errors of RFC 792 and the redirect: 3, 4, 5, 11 and 12.
const fn is_icmp_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// The packet's source, if an error may be sent to it.
fn answerable_v6(packet: &[u8]) -> Option<Ipv6Addr> {
    let source = Ipv6Addr::from(*packet[8..].first_chunk::<16>()?);
    // A source that is no single node (RFC 4443 §2.4 (e.6)).
    if source.is_unspecified() || source.is_loopback() || source.is_multicast() {
        return None;
    }
    let (protocol, at) = upper_layer(packet)?;
    if protocol == ICMPV6 {
        // Below 128 are errors (RFC 4443 §2.1); 137 is the redirect.
        let kind = *packet.get(at)?;
        if kind < 128 || kind == 137 {
            return None;
        }
    }
    Some(source)
}

/// The header behind the known extension headers, and its offset (RFC 8200 §4). `None` when they
/// are truncated, too many, or belong to a fragment other than the first.
fn upper_layer(packet: &[u8]) -> Option<(u8, usize)> {
    /// More than any sender needs; each kind may occur once or twice at most (RFC 8200 §4.1).
    const EXTENSIONS_MAX: usize = 8;
    let (mut protocol, mut at) = (packet[6], IPV6_HEADER_BYTES);
    for _ in 0..EXTENSIONS_MAX {
        let bytes = match protocol {
            // Hop-by-hop options, routing, destination options.
            // Their length field counts units of 8 bytes behind the first 8 (RFC 8200 §4.3).
            0 | 43 | 60 => 8 + 8 * usize::from(*packet.get(at + 1)?),
            // Fragment.
            44 => {
                // Above two reserved bits and M.
                let offset = be16(packet.get(at..at + 8)?, 2) >> 3;
                if offset != 0 {
                    return None;
                }
                8
            }
            _ => return Some((protocol, at)),
        };
        protocol = packet[at];
        at += bytes;
    }
    None
}

fn put_v4<'a>(
    packet: &[u8],
    mtu: u16,
    source: Ipv4Addr,
    target: Ipv4Addr,
    out: &'a mut [u8],
) -> Option<&'a [u8]> {
    const HEADERS: usize = IPV4_HEADER_BYTES + ICMP_HEADER_BYTES;
    // By the transport header in the quote the sender finds the connection.
    let quote = &packet[..packet.len().min(IPV4_MESSAGE_BYTES_MAX - HEADERS)];
    let out = out.get_mut(..HEADERS + quote.len())?;
    out[..HEADERS].fill(0);
    out[..2].copy_from_slice(&[0x45, TOS]);
    let total = out.len() as u16;
    put16(out, 2, total);
    // An atomic packet, so that its identification may be 0 (RFC 6864 §4.1).
    put16(out, 6, DONT_FRAGMENT);
    out[8..10].copy_from_slice(&[HOP_LIMIT, ICMP]);
    out[12..16].copy_from_slice(&source.octets());
    out[16..20].copy_from_slice(&target.octets());
    let sum = checksum::portable(&out[..IPV4_HEADER_BYTES], 0);
    out[10..12].copy_from_slice(&checksum::finish(sum));

    let icmp = &mut out[IPV4_HEADER_BYTES..];
    icmp[..2].copy_from_slice(&[DESTINATION_UNREACHABLE, FRAGMENTATION_NEEDED]);
    // In the low half of the field that RFC 792 leaves unused (RFC 1191 §4).
    put16(icmp, 6, mtu);
    icmp[ICMP_HEADER_BYTES..].copy_from_slice(quote);
    let sum = checksum::portable(icmp, 0);
    icmp[2..4].copy_from_slice(&checksum::finish(sum));
    Some(out)
}

fn put_v6<'a>(
    packet: &[u8],
    mtu: u16,
    source: Ipv6Addr,
    target: Ipv6Addr,
    out: &'a mut [u8],
) -> Option<&'a [u8]> {
    const HEADERS: usize = IPV6_HEADER_BYTES + ICMP_HEADER_BYTES;
    let quote = &packet[..packet.len().min(IPV6_MTU_MIN - HEADERS)];
    let out = out.get_mut(..HEADERS + quote.len())?;
    out[..HEADERS].fill(0);
    // No flow label: the message belongs to no flow.
    put32(out, 0, 6 << 28 | u32::from(TOS) << 20);
    let length = out.len() - IPV6_HEADER_BYTES;
    put16(out, 4, length as u16);
    out[6..8].copy_from_slice(&[ICMPV6, HOP_LIMIT]);
    out[8..24].copy_from_slice(&source.octets());
    out[24..40].copy_from_slice(&target.octets());

    // Unlike ICMP, ICMPv6 includes a pseudo-header in its checksum (RFC 4443 §2.3).
    let pseudo = checksum::portable(&out[8..40], dword(length as u32) + word(u16::from(ICMPV6)));
    let icmp = &mut out[IPV6_HEADER_BYTES..];
    icmp[0] = PACKET_TOO_BIG;
    put32(icmp, 4, u32::from(mtu));
    icmp[ICMP_HEADER_BYTES..].copy_from_slice(quote);
    let sum = checksum::portable(icmp, pseudo);
    icmp[2..4].copy_from_slice(&checksum::finish(sum));
    Some(out)
}

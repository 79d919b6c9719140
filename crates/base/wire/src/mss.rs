//! Lowering of the maximum segment size in TCP handshakes (RFC 9293 §3.7.1, RFC 6691), so that
//! segments fit a tunnel even where path MTU discovery fails.

use crate::checksum;
use crate::headers::{IpView, TCP, be16, put16};
use crate::overhead::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES};

const TCP_HEADER_BYTES: usize = 20;
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;
const SYN: u8 = 0x02;

/// Option kinds (RFC 9293 §3.2) and the length of the MSS option.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const MSS_BYTES: usize = 4;

/// The largest segment, in bytes, in a tunnel with this inner MTU. Options of TCP and IP do not
/// count (RFC 6691 §2).
#[must_use]
pub fn mss_for(inner_mtu: usize, version: u8) -> u16 {
    let ip = if version == 4 {
        IPV4_HEADER_BYTES
    } else {
        IPV6_HEADER_BYTES
    };
    let mss = inner_mtu.saturating_sub(ip + TCP_HEADER_BYTES);
    u16::try_from(mss).unwrap_or(u16::MAX)
}

/// Lowers the MSS in a SYN or SYN/ACK to `mss_max`, and returns whether it did; `view` is
/// [`IpView::parse`] of `packet`. Never raises it, never adds the option, changes nothing else.
///
/// Must be called when the TCP checksum is complete
/// ([`complete_checksum`](crate::segment::complete_checksum)): it is updated by the difference, so
/// that a wrong one remains wrong. An incomplete checksum (`NEEDS_CSUM`) would become wrong.
#[inline]
pub fn clamp(packet: &mut [u8], view: &IpView, mss_max: u16) -> bool {
    let at = view.header_bytes;
    // One byte at a fixed offset is enough for nearly every packet; the rest is checked on the slow
    // path.
    if view.protocol != TCP
        || packet
            .get(at + FLAGS_AT)
            .is_none_or(|flags| flags & SYN == 0)
    {
        return false;
    }
    clamp_syn(packet, view, mss_max)
}

/// The slow path, which few packets take.
#[cold]
fn clamp_syn(packet: &mut [u8], view: &IpView, mss_max: u16) -> bool {
    // Behind IPv6 extension headers no SYN is found: the first next header is not TCP.
    if view.is_ipv4_fragment(packet) {
        return false;
    }
    let Some(header_bytes) = view.transport_header_bytes(packet) else {
        return false;
    };
    let tcp = &mut packet[view.header_bytes..][..header_bytes];
    let Some(at) = mss_at(tcp) else {
        return false;
    };
    let announced = be16(tcp, at);
    if announced <= mss_max {
        return false;
    }
    put16(tcp, at, mss_max);
    // Single no-operations may shift the option to an odd offset.
    let (old, new) = if at.is_multiple_of(2) {
        (announced, mss_max)
    } else {
        (announced.swap_bytes(), mss_max.swap_bytes())
    };
    let sum = checksum::update([tcp[CHECKSUM_AT], tcp[CHECKSUM_AT + 1]], old, new);
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum);
    true
}

/// Offset of the MSS option's value in a TCP header.
fn mss_at(tcp: &[u8]) -> Option<usize> {
    let mut at = TCP_HEADER_BYTES;
    loop {
        match *tcp.get(at)? {
            END => return None,
            NO_OPERATION => at += 1,
            kind => {
                let length = usize::from(*tcp.get(at + 1)?);
                // Kind and length themselves are 2 bytes; with less the loop would not advance.
                if length < 2 || at + length > tcp.len() {
                    return None;
                }
                if kind == MSS {
                    return (length == MSS_BYTES).then_some(at + 2);
                }
                at += length;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::portable;
    use etherparse::{PacketBuilder, TcpHeader, TcpOptionElement, TcpOptions, TcpSlice};
    use proptest::prelude::*;

    fn packet(ipv6: bool, flags: u8, options: &[u8]) -> Vec<u8> {
        let mut tcp = TcpHeader::new(40_000, 443, 12_345, 64_000);
        tcp.syn = flags & SYN != 0;
        tcp.ack = flags & 0x10 != 0;
        tcp.fin = flags & 0x01 != 0;
        tcp.options = TcpOptions::try_from_slice(options).unwrap();
        let mut packet = Vec::new();
        let result = if ipv6 {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
                .tcp_header(tcp)
                .write(&mut packet, b"")
        } else {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                .tcp_header(tcp)
                .write(&mut packet, b"")
        };
        result.unwrap();
        packet
    }

    fn clamped(packet: &[u8], mss_max: u16) -> Option<Vec<u8>> {
        let view = IpView::parse(packet).unwrap();
        let mut clamped = packet.to_vec();
        let changed = clamp(&mut clamped, &view, mss_max);
        assert_eq!(changed, clamped != packet);
        changed.then_some(clamped)
    }

    fn announced(packet: &[u8]) -> Option<u16> {
        let view = IpView::parse(packet).unwrap();
        let tcp = TcpSlice::from_slice(&packet[view.header_bytes..]).unwrap();
        tcp.options_iterator().find_map(|option| match option {
            Ok(TcpOptionElement::MaximumSegmentSize(mss)) => Some(mss),
            _ => None,
        })
    }

    proptest! {
        #[test]
        fn lowers_a_large_mss_and_keeps_the_checksum_valid(
            ipv6: bool,
            acknowledges: bool,
            mss: u16,
            mss_max: u16,
            no_operations in 0usize..4,
        ) {
            let mut options = vec![NO_OPERATION; no_operations];
            options.extend([4, 2, 2, 4]);
            options.extend(mss.to_be_bytes());
            options.extend([3, 3, 7]);
            let flags = if acknowledges { SYN | 0x10 } else { SYN };
            let packet = packet(ipv6, flags, &options);
            prop_assert_eq!(announced(&packet), Some(mss));
            let after = clamped(&packet, mss_max);
            prop_assert_eq!(after.is_some(), mss > mss_max);
            let after = after.unwrap_or(packet);
            prop_assert_eq!(announced(&after), Some(mss.min(mss_max)));
            let view = IpView::parse(&after).unwrap();
            prop_assert!(view.transport_checksum_is_valid(&after, portable));
        }

        #[test]
        fn survives_any_options_and_changes_four_bytes_at_most(
            ipv6: bool,
            options in prop::collection::vec(0u8..12, 0..=40),
            mss_max: u16,
            cut in 0usize..80,
        ) {
            let mut packet = packet(ipv6, SYN, &options);
            let length = packet.len().saturating_sub(cut).max(if ipv6 { 40 } else { 20 });
            packet.truncate(length);
            if ipv6 {
                put16(&mut packet, 4, (length - 40) as u16);
            } else {
                put16(&mut packet, 2, length as u16);
            }
            if let Some(after) = clamped(&packet, mss_max) {
                let changed = packet.iter().zip(&after).filter(|(a, b)| a != b).count();
                prop_assert!(changed <= 4);
            }
        }

        #[test]
        fn never_panics_on_garbage(
            mut bytes in prop::collection::vec(any::<u8>(), 0..120),
            mss_max: u16,
        ) {
            if let Some(view) = IpView::parse(&bytes) {
                clamp(&mut bytes, &view, mss_max);
            }
        }
    }

    #[test]
    fn only_a_syn_is_touched() {
        let options = [2, 4, 0xff, 0xff];
        assert!(clamped(&packet(false, SYN, &options), 1400).is_some());
        for flags in [0x10, 0x01, 0] {
            assert_eq!(clamped(&packet(false, flags, &options), 1400), None);
        }
        let mut fragment = packet(false, SYN, &options);
        fragment[6] |= 0x20;
        assert_eq!(clamped(&fragment, 1400), None);
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = packet(false, SYN, &[2, 4, 0xff, 0xff]);
        packet[36] ^= 0x10;
        let after = clamped(&packet, 1400).unwrap();
        let view = IpView::parse(&after).unwrap();
        assert!(!view.transport_checksum_is_valid(&after, portable));
    }

    #[test]
    fn an_mss_is_found_behind_ipv4_options() {
        let plain = packet(false, SYN, &[2, 4, 0xff, 0xff]);
        let mut packet = [&plain[..20], &[1, 1, 1, 0], &plain[20..]].concat();
        packet[0] = 0x46;
        let length = packet.len() as u16;
        put16(&mut packet, 2, length);
        let after = clamped(&packet, 1400).unwrap();
        assert_eq!(announced(&after), Some(1400));
    }

    #[test]
    fn an_ethernet_mtu_makes_1460_and_1440() {
        assert_eq!((mss_for(1500, 4), mss_for(1500, 6)), (1460, 1440));
        assert_eq!((mss_for(39, 4), mss_for(100_000, 6)), (0, u16::MAX));
    }
}

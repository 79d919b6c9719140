//! A tunnel's changes to inner packets and messages about them: ECN, MSS, ICMP, the flow's hash.

use crate::packets;
use arbitrary::{Result, Unstructured};
use std::net::IpAddr;
use std::ops::Range;
use wire::checksum;
use wire::ecn::{DscpModel, decapsulate, outer_tos, tos};
use wire::headers::IpView;
use wire::icmp::{MESSAGE_BYTES_MAX, too_big};

/// A whole packet and its view.
fn packet(u: &mut Unstructured<'_>) -> Result<Option<(Vec<u8>, IpView)>> {
    let mut packet = packets::ip_packet(u)?;
    let Some(view) = IpView::parse(&packet) else {
        return Ok(None);
    };
    packet.truncate(view.total_bytes);
    Ok(Some((packet, view)))
}

/// The places of source and target address.
fn addresses(view: &IpView) -> (Range<usize>, Range<usize>) {
    if view.version == 4 {
        (12..16, 16..20)
    } else {
        (8..24, 24..40)
    }
}

/// Only the field and the IPv4 checksum change, and a valid checksum remains valid.
pub(crate) fn ecn(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let Ok(Some((before, view))) = packet(&mut u) else {
        return;
    };
    let outside: u8 = u.arbitrary().unwrap_or(0);
    for model in [DscpModel::Pipe, DscpModel::Uniform] {
        let mut after = before.clone();
        let result = decapsulate(&mut after, outside, model);
        if tos(&before) & 3 == 0 && outside & 3 == 3 {
            assert!(result.is_err());
            assert_eq!(after, before);
            continue;
        }
        let outcome = result.expect("only CE over Not-ECT is dropped");
        assert_eq!(outcome.marked, (tos(&before) ^ tos(&after)) & 3 != 0);
        let dscp = if model == DscpModel::Pipe {
            tos(&before)
        } else {
            outside
        };
        assert_eq!(tos(&after) & !3, dscp & !3);
        assert_eq!(
            view.header_checksum_is_valid(&after),
            view.header_checksum_is_valid(&before)
        );
        let mut masked = after.clone();
        masked[..2].copy_from_slice(&before[..2]);
        if view.version == 4 {
            masked[10..12].copy_from_slice(&before[10..12]);
        }
        assert_eq!(masked, before);
        assert_eq!(outer_tos(&after, DscpModel::Uniform), tos(&after));
    }
}

/// At most two fields change; the checksum remains as valid or invalid as it was; a second call
/// changes nothing.
pub(crate) fn mss(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let Ok(Some((before, view))) = packet(&mut u) else {
        return;
    };
    let mss_max = u.arbitrary().unwrap_or(1400);
    let mut after = before.clone();
    let changed = wire::mss::clamp(&mut after, &view, mss_max);
    assert_eq!(changed, after != before);
    let is_valid = |packet: &[u8]| view.transport_checksum_is_valid(packet, checksum::portable);
    assert_eq!(is_valid(&after), is_valid(&before));
    let bytes = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    assert!(bytes <= 4, "{bytes} bytes changed");
    assert!(
        !wire::mss::clamp(&mut after, &view, mss_max),
        "clamped twice"
    );
}

/// Messages are whole, quote the packet, are addressed to its source, and are never answered
/// themselves.
pub(crate) fn icmp(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let Ok(Some((packet, view))) = packet(&mut u) else {
        return;
    };
    let own = if view.version == 4 {
        IpAddr::from([10, 9, 9, 9])
    } else {
        IpAddr::from([9; 16])
    };
    let mtu = u.arbitrary().unwrap_or(1400);
    let mut out = [0; MESSAGE_BYTES_MAX];
    let Some(length) = too_big(&packet, mtu, own, &mut out) else {
        return;
    };
    let message = &out[..length];
    let answer = IpView::parse(message).expect("a whole packet");
    assert_eq!((answer.version, answer.total_bytes), (view.version, length));
    assert!(answer.header_checksum_is_valid(message));
    let (source, target) = addresses(&view);
    assert_eq!(message[target], packet[source]);
    // 548 bytes fit the 576 of an error over IPv4 (RFC 1812 §4.3.2.3); over IPv6 there is room for
    // more.
    let quote = &message[answer.header_bytes + 8..];
    assert!(packet.starts_with(quote) && quote.len() >= packet.len().min(548));
    // Only ICMPv6 has a pseudo-header in its checksum.
    let pseudo = if view.version == 4 {
        0
    } else {
        answer.pseudo_sum(message) + checksum::word((length - 40) as u16)
    };
    assert!(checksum::is_valid(checksum::portable(
        &message[answer.header_bytes..],
        pseudo
    )));
    let mut again = [0; MESSAGE_BYTES_MAX];
    assert_eq!(too_big(message, mtu, own, &mut again), None);
}

/// Both directions of a flow have the same hash; arbitrary bytes have one too.
pub(crate) fn flow(data: &[u8]) {
    let _ = port::flow_hash(data);
    let Ok(Some((packet, view))) = packet(&mut Unstructured::new(data)) else {
        return;
    };
    let mut back = packet.clone();
    let (source, target) = addresses(&view);
    back[source.clone()].copy_from_slice(&packet[target.clone()]);
    back[target].copy_from_slice(&packet[source]);
    let at = view.header_bytes;
    if let Some(ports) = packet[..view.total_bytes].get(at..at + 4) {
        back[at..at + 4].copy_from_slice(&[ports[2], ports[3], ports[0], ports[1]]);
    }
    assert_eq!(port::flow_hash(&back), port::flow_hash(&packet));
}

//! Harmless super-packets, to test whether the kernel accepts their kind.

use wire::checksum;
use wire::overlay::VXLAN_PORT;
use wire::vnet::{Gso, NEEDS_CSUM, Outer, VnetHeader};

/// A super-packet of two one-byte segments that every kernel drops on arrival.
pub(crate) fn super_packet(gso: Gso) -> (VnetHeader, Vec<u8>) {
    let (protocol, transport_bytes, csum_offset) = if gso == Gso::UdpL4 {
        (17, 8, 6)
    } else {
        (6, 20, 16)
    };
    let total = 20 + transport_bytes + 2;
    let mut packet = vec![0; total];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    packet[8] = 1;
    packet[9] = protocol;
    packet[16..20].fill(0xff);
    let sum = checksum::finish(checksum::portable(&packet[..20], 0));
    packet[10..12].copy_from_slice(&sum);
    let transport = &mut packet[20..];
    // The discard port, from itself.
    transport[..4].copy_from_slice(&[0, 9, 0, 9]);
    if gso == Gso::UdpL4 {
        transport[4..6].copy_from_slice(&10u16.to_be_bytes());
    } else {
        transport[12..14].copy_from_slice(&[0x50, 0x10]);
    }
    let vnet = VnetHeader {
        flags: NEEDS_CSUM,
        gso,
        outer: Outer::None,
        hdr_len: (20 + transport_bytes) as u16,
        gso_size: 1,
        csum_start: 20,
        csum_offset,
    };
    (vnet, packet)
}

/// A TCP super-packet of two one-byte segments in VXLAN, which every kernel drops on arrival too.
pub(crate) fn tunnel_super_packet() -> (VnetHeader, Vec<u8>) {
    let (vnet, inner) = super_packet(Gso::Tcp4);
    let udp_bytes = 8 + 8 + 14 + inner.len();
    let total = 20 + udp_bytes;
    let mut packet = vec![0; total - inner.len()];
    // As the inner one, but for the length and the protocol.
    packet[..20].copy_from_slice(&inner[..20]);
    packet[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    packet[9] = 17;
    packet[10..12].fill(0);
    let sum = checksum::finish(checksum::portable(&packet[..20], 0));
    packet[10..12].copy_from_slice(&sum);
    packet[20..22].copy_from_slice(&VXLAN_PORT.to_be_bytes());
    packet[22..24].copy_from_slice(&VXLAN_PORT.to_be_bytes());
    packet[24..26].copy_from_slice(&(udp_bytes as u16).to_be_bytes());
    packet[28] = 0x08;
    packet[48..50].copy_from_slice(&[0x08, 0]);
    let in_front = packet.len() as u16;
    packet.extend(inner);
    let vnet = VnetHeader {
        outer: Outer::V4,
        hdr_len: in_front + vnet.hdr_len,
        csum_start: in_front + vnet.csum_start,
        ..vnet
    };
    (vnet, packet)
}

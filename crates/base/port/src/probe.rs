//! Harmless super-packets, to test whether the kernel accepts their kind.

use wire::checksum;
use wire::vnet::{Gso, NEEDS_CSUM, VnetHeader};

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
        hdr_len: (20 + transport_bytes) as u16,
        gso_size: 1,
        csum_start: 20,
        csum_offset,
    };
    (vnet, packet)
}

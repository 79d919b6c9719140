//! Nearly valid packets from a fuzzer's bytes.

use arbitrary::{Result, Unstructured};
use wire::checksum;
use wire::headers::{IpView, TCP, UDP, put16};
use wire::oracle::{Fields, Tunnel};
use wire::overlay::{GENEVE_PORT, OLD_VXLAN_PORT, VXLAN_PORT};

/// TCP and UDP packets of a few hosts, so that packets share flows.
pub(crate) fn fields(u: &mut Unstructured<'_>, payload_max: usize) -> Result<Fields> {
    let payload_bytes = u.int_in_range(0..=payload_max)?;
    let seed: u8 = u.arbitrary()?;
    // Long payloads need not be drawn byte by byte.
    let payload = (0..payload_bytes)
        .map(|at| seed.wrapping_mul(at as u8))
        .collect();
    let mut options = Vec::new();
    // 40 bytes at most, as the data offset allows; the longest option here has 4.
    while options.len() < 36 && u.ratio(1, 2)? {
        match u.int_in_range(0..=3)? {
            0 => options.push(1),
            1 => options.extend([2, 4, u.arbitrary()?, u.arbitrary()?]),
            2 => options.extend([3, 3, 7]),
            _ => options.push(u.arbitrary()?),
        }
    }
    // The data offset counts words of 4 bytes.
    options.resize(options.len().next_multiple_of(4), 0);
    Ok(Fields {
        ipv6: u.arbitrary()?,
        tcp: u.arbitrary()?,
        unchecked: u.ratio(1, 4)?,
        host: u.int_in_range(1..=3)?,
        port: u.int_in_range(40_000..=40_002)?,
        tos: u.arbitrary()?,
        ttl: u.arbitrary()?,
        id: u.arbitrary()?,
        sequence: u.arbitrary()?,
        acknowledgement: u.arbitrary()?,
        flags: u.arbitrary()?,
        window: u.arbitrary()?,
        options,
        payload,
    })
}

/// An overlay network, for one packet of four.
pub(crate) fn tunnel(u: &mut Unstructured<'_>) -> Result<Option<Tunnel>> {
    if !u.ratio(1, 4)? {
        return Ok(None);
    }
    Ok(Some(Tunnel {
        ipv6: u.arbitrary()?,
        port: *u.choose(&[VXLAN_PORT, OLD_VXLAN_PORT, GENEVE_PORT])?,
        source: u.int_in_range(50_000..=50_001)?,
        options: *u.choose(&[0, 1, 63])?,
        tag: u.arbitrary()?,
        checked: u.ratio(1, 4)?,
        tos: u.arbitrary()?,
        ttl: u.arbitrary()?,
        id: u.arbitrary()?,
        network: u.int_in_range(1..=2)?,
    }))
}

/// An IP packet with any part possibly wrong except the length, without which no parser accepts it.
pub(crate) fn ip_packet(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut packet = if u.ratio(3, 4)? {
        fields(u, 1600)?.packet()
    } else {
        random_ip(u)?
    };
    let changes = u.int_in_range(0..=4)?;
    for _ in 0..changes {
        let at = u.choose_index(packet.len())?;
        packet[at] ^= u.arbitrary::<u8>()?;
    }
    if u.ratio(7, 8)? {
        set_length(&mut packet);
    }
    if u.arbitrary()? {
        make_header_checksum_right(&mut packet);
    }
    Ok(packet)
}

/// Random bytes with the first byte and length of an IP packet.
fn random_ip(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let ipv6: bool = u.arbitrary()?;
    let bytes = u.int_in_range(if ipv6 { 40 } else { 20 }..=200)?;
    let mut packet = u.bytes(bytes.min(u.len()))?.to_vec();
    packet.resize(bytes, 0);
    packet[0] = if ipv6 { 0x60 | packet[0] & 15 } else { 0x45 };
    set_length(&mut packet);
    Ok(packet)
}

fn set_length(packet: &mut [u8]) {
    let bytes = packet.len();
    match packet[0] >> 4 {
        4 if bytes >= 20 => put16(packet, 2, bytes as u16),
        6 if bytes >= 40 => put16(packet, 4, (bytes - 40) as u16),
        _ => {}
    }
}

/// Recomputes an IPv4 header's checksum.
pub(crate) fn make_header_checksum_right(packet: &mut [u8]) {
    let Some(view) = IpView::parse(packet).filter(|view| view.version == 4) else {
        return;
    };
    packet[10..12].fill(0);
    let sum = checksum::portable(&packet[..view.header_bytes], 0);
    packet[10..12].copy_from_slice(&checksum::finish(sum));
}

/// Recomputes the checksums of a TCP or UDP packet, including the IPv4 header's.
pub(crate) fn make_checksums_right(packet: &mut [u8]) {
    make_header_checksum_right(packet);
    let Some(view) = IpView::parse(packet) else {
        return;
    };
    let (start, end) = (view.header_bytes, view.total_bytes);
    let field = start + if view.protocol == TCP { 16 } else { 6 };
    if !matches!(view.protocol, TCP | UDP) || end < field + 2 {
        return;
    }
    packet[field..field + 2].fill(0);
    let pseudo = view.pseudo_sum(packet) + checksum::word((end - start) as u16);
    let sum = checksum::finish(checksum::portable(&packet[start..end], pseudo));
    packet[field..field + 2].copy_from_slice(&sum);
}

/// A link header for packets of this version, with up to two VLAN tags.
pub(crate) fn link_header(u: &mut Unstructured<'_>, ipv6: bool) -> Result<Vec<u8>> {
    let mut link = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, u.int_in_range(2..=3)?];
    for _ in 0..u.int_in_range(0..=2)? {
        link.extend(if u.arbitrary()? {
            [0x81, 0]
        } else {
            [0x88, 0xa8]
        });
        link.extend([0, u.int_in_range(1..=2)?]);
    }
    link.extend(if ipv6 { [0x86, 0xdd] } else { [8, 0] });
    Ok(link)
}

//! Coalescing: every packet comes out, in the order of its flow.

use crate::packets;
use crate::segment::cut;
use arbitrary::{Result, Unstructured};
use std::collections::BTreeMap;
use wire::checksum;
use wire::coalesce::{Coalescer, Joinable};
use wire::ethernet::EthernetView;
use wire::headers::IpView;
use wire::oracle::Tunnel;
use wire::overlay::Inner;
use wire::vnet::{Gso, Outer, VnetHeader};

/// Maximum number of packets per run.
const PACKETS_MAX: usize = 300;

pub(crate) fn body(data: &[u8]) {
    let mut u = Unstructured::new(data);
    if let Ok((frames, joinable, link)) = input(&mut u) {
        check(&frames, joinable, link);
    }
}

/// Packets, or frames when the last is true, of a few flows, some of them damaged.
fn input(u: &mut Unstructured<'_>) -> Result<(Vec<Vec<u8>>, Joinable, bool)> {
    let joinable = Joinable {
        tcp: u.ratio(7, 8)?,
        udp: u.ratio(7, 8)?,
        tunnel: u.ratio(7, 8)?,
    };
    let link: bool = u.arbitrary()?;
    let mut queues: Vec<Vec<Vec<u8>>> = Vec::new();
    for _ in 0..u.int_in_range(1..=12)? {
        queues.push(flow(u, link)?);
    }
    let mut frames = Vec::new();
    while !queues.is_empty() && frames.len() < PACKETS_MAX {
        // On exhausted input, this takes from the first.
        let at = u.choose_index(queues.len()).unwrap_or(0);
        let mut frame = queues[at].remove(0);
        if queues[at].is_empty() {
            queues.swap_remove(at);
        }
        let view = EthernetView::parse(&frame).filter(|_| link);
        damage(u, &mut frame, view.map_or(0, |view| view.header_bytes))?;
        if !link && IpView::parse(&frame).is_none() {
            continue;
        }
        if EthernetView::parse(&frame).is_some() {
            frames.push(frame);
        }
    }
    Ok((frames, joinable, link))
}

/// The packets of one flow: the segments of a super-packet, or one packet of any form.
fn flow(u: &mut Unstructured<'_>, link: bool) -> Result<Vec<Vec<u8>>> {
    let (packets, ipv6) = if u.ratio(1, 8)? {
        (vec![packets::ip_packet(u)?], u.arbitrary()?)
    } else {
        let mut fields = packets::fields(u, 3000)?;
        if u.ratio(7, 8)? {
            // ACK and perhaps PSH, since segments with other flags do not join.
            fields.flags = 0x10 | fields.flags & 8;
        }
        let segment_bytes = u.int_in_range(60..=1500)?;
        match packets::tunnel(u)? {
            Some(tunnel) => (inside(u, &tunnel, &fields.cut(segment_bytes))?, tunnel.ipv6),
            None => (fields.cut(segment_bytes), fields.ipv6),
        }
    };
    let link = if link {
        packets::link_header(u, ipv6)?
    } else {
        Vec::new()
    };
    let frame = |packet: Vec<u8>| [&link[..], &packet].concat();
    let mut frames: Vec<_> = packets.into_iter().map(frame).collect();
    if frames.is_empty() {
        // The oracle makes no segment of an empty payload.
        frames.push([&link[..], &packets::ip_packet(u)?].concat());
    }
    Ok(frames)
}

/// Packets in a tunnel, some of them with a changed bit and valid inner checksums.
fn inside(u: &mut Unstructured<'_>, tunnel: &Tunnel, inner: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    for (packet, index) in inner.iter().zip(0..) {
        let mut packet = packet.clone();
        if u.ratio(1, 8).unwrap_or(false) {
            // Not the version, by which the packet is put into a frame.
            let at = u.int_in_range(1..=packet.len().min(80) - 1)?;
            packet[at] ^= 1 << u.int_in_range(0..=7)?;
            packets::make_checksums_right(&mut packet);
        }
        packets.push(tunnel.wrap_packet(&packet, index));
    }
    Ok(packets)
}

/// Changes some packets: a byte, the length, or a header field with a valid checksum.
fn damage(u: &mut Unstructured<'_>, frame: &mut Vec<u8>, link_bytes: usize) -> Result<()> {
    if !u.ratio(1, 4).unwrap_or(false) {
        return Ok(());
    }
    match u.int_in_range(0..=5)? {
        0 => {
            let at = u.choose_index(frame.len())?;
            frame[at] ^= u.arbitrary::<u8>()?;
        }
        1 => frame.extend(u.bytes(6)?),
        2 => frame.truncate(u.int_in_range(14..=frame.len())?),
        _ => {
            let packet = &mut frame[link_bytes..];
            let at = u.choose_index(packet.len().min(80))?;
            packet[at] ^= 1 << u.int_in_range(0..=7)?;
            packets::make_checksums_right(packet);
        }
    }
    Ok(())
}

fn check(frames: &[Vec<u8>], joinable: Joinable, link: bool) {
    let mut out: Vec<Vec<u8>> = Vec::new();
    let mut sink = |vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]], segments: usize| {
        assert_eq!(segments, payload.len());
        let whole = [headers, &payload.concat()].concat();
        if vnet.gso == Gso::None {
            assert_eq!((*vnet, segments), (VnetHeader::PLAIN, 1));
            out.push(whole);
            return;
        }
        let link_bytes = if link {
            EthernetView::parse(&whole).expect("a frame").header_bytes
        } else {
            0
        };
        let ip = IpView::parse(&whole[link_bytes..]).expect("a whole packet");
        assert_eq!(link_bytes + ip.total_bytes, whole.len());
        let inner = match vnet.outer {
            Outer::None => None,
            _ => Inner::find(&whole[link_bytes..], &ip),
        };
        let transport_at =
            inner.map_or(ip.header_bytes, |inner| inner.at + inner.view.header_bytes);
        assert_eq!(usize::from(vnet.csum_start), link_bytes + transport_at);
        assert!(ip.header_checksum_is_valid(&whole[link_bytes..]));
        let allowed = if vnet.outer != Outer::None {
            joinable.tunnel && joinable.tcp
        } else if ip.protocol == wire::headers::TCP {
            joinable.tcp
        } else {
            joinable.udp
        };
        assert!(allowed, "a super-packet that the port does not take");
        let parts = cut(vnet, &whole, link_bytes).expect("a super-packet of ours can be cut");
        assert_eq!(parts.len(), segments);
        out.extend(parts);
    };
    let mut coalescer = Coalescer::new(joinable, checksum::portable);
    for frame in frames {
        if link {
            let view = EthernetView::parse(frame).expect("checked before");
            coalescer.push_frame(frame, &view, &mut sink);
        } else {
            let view = IpView::parse(frame).expect("checked before");
            coalescer.push(frame, view, &mut sink);
        }
    }
    coalescer.flush(&mut sink);
    let trimmed = |frame: &Vec<u8>| match IpView::parse(frame) {
        // Bytes behind a packet without link header do not belong to it.
        Some(view) if !link => frame[..view.total_bytes].to_vec(),
        _ => frame.clone(),
    };
    let sent = by_flow(frames.iter().map(trimmed), link);
    assert_eq!(by_flow(out.into_iter(), link), sent);
}

/// The packets of each flow in order, without the fields that a segmenter may renumber.
fn by_flow(frames: impl Iterator<Item = Vec<u8>>, link: bool) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for mut frame in frames {
        let at = if link {
            EthernetView::parse(&frame).map_or(0, |view| view.header_bytes)
        } else {
            0
        };
        let mut key = Vec::new();
        if let Some(view) = IpView::parse(&frame[at..]) {
            let ip = &mut frame[at..];
            key.extend([view.version, view.protocol]);
            let addresses = if view.version == 4 { 12..20 } else { 8..40 };
            key.extend(&ip[addresses]);
            if !view.opaque && view.total_bytes >= view.header_bytes + 4 {
                key.extend(&ip[view.header_bytes..view.header_bytes + 4]);
            }
            // Datagrams without a checksum have one once they joined.
            let at = view.header_bytes + 6;
            let unchecked = view.has_no_checksum(ip);
            if view.protocol == wire::headers::UDP
                && view.version == 4
                && !view.opaque
                && (unchecked || view.transport_checksum_is_valid(ip, checksum::portable))
            {
                ip[at..at + 2].fill(0);
            }
            // The same of an inner packet, which a segmenter renumbers too.
            if let Some(inner) = Inner::find(ip, &view) {
                let inner = &mut ip[inner.at..];
                if inner[0] >> 4 == 4 && inner[6] & 0x40 != 0 {
                    inner[4..6].fill(0);
                    inner[10..12].fill(0);
                }
            }
            // Identifications of packets that may not be fragmented have no meaning (RFC 6864
            // §4.1).
            if view.version == 4 && ip[6] & 0x40 != 0 && view.header_checksum_is_valid(ip) {
                ip[4..6].fill(0);
                ip[10..12].fill(0);
            }
        }
        flows.entry(key).or_default().push(frame);
    }
    flows
}

//! `virtio_net_hdr` and segmentation of super-packets, against the slow oracle.

use crate::packets;
use arbitrary::{Result, Unstructured};
use wire::checksum;
use wire::headers::{IpView, UDP};
use wire::oracle::{Fields, Tunnel};
use wire::overlay::Inner;
use wire::segment::{Malformed, Segmenter, complete_checksum};
use wire::vnet::{Gso, NEEDS_CSUM, VNET_HEADER_BYTES, VnetHeader};

pub(crate) fn body(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // An exhausted input ends the run.
    let _ = if u.arbitrary().unwrap_or(false) {
        valid(&mut u)
    } else {
        arbitrary(&mut u)
    };
}

/// A super-packet of the kernel's form is segmented as by the oracle.
fn valid(u: &mut Unstructured<'_>) -> Result<()> {
    let mut fields = packets::fields(u, 4000)?;
    // The virtio header requests checksums, which all segments then have.
    fields.unchecked = false;
    // A super-packet without payload is refused.
    fields.payload.push(1);
    let link = if u.arbitrary()? {
        packets::link_header(u, fields.ipv6)?
    } else {
        Vec::new()
    };
    // A hundred segments suffice: thousands test nothing more.
    let least = fields.payload.len().div_ceil(100) as u16;
    let segment_bytes = u.int_in_range(least..=3000)?;
    let tunnel = packets::tunnel(u)?.filter(|tunnel| tunnel.ipv6 == fields.ipv6);
    let vnet = VnetHeader {
        flags: NEEDS_CSUM,
        gso: match (fields.tcp, fields.ipv6) {
            (true, false) => Gso::Tcp4,
            (true, true) => Gso::Tcp6,
            (false, _) => Gso::UdpL4,
        },
        gso_size: segment_bytes,
        ..VnetHeader::PLAIN
    };
    if let Some(tunnel) = tunnel {
        return in_tunnel(&tunnel, &fields, &link, vnet);
    }
    let vnet = VnetHeader::parse(&vnet.to_bytes()).expect("it is one of ours");
    let frame = [&link[..], &fields.packet()].concat();
    let cut = cut(&vnet, &frame, link.len()).expect("the oracle's super-packet is right");
    let expected: Vec<Vec<u8>> = fields
        .cut(usize::from(segment_bytes))
        .into_iter()
        .map(|packet| [&link[..], &packet].concat())
        .collect();
    assert_eq!(cut, expected);
    Ok(())
}

/// The same in a tunnel, whose packets have the inner ones' version.
fn in_tunnel(tunnel: &Tunnel, fields: &Fields, link: &[u8], vnet: VnetHeader) -> Result<()> {
    let packet = tunnel.wrap(fields, 0);
    let outer = IpView::parse(&packet).expect("a whole packet");
    let inner = Inner::find(&packet, &outer).expect("it has one");
    let vnet = VnetHeader {
        csum_start: (link.len() + inner.at + inner.view.header_bytes) as u16,
        ..vnet
    };
    let cut = cut(&vnet, &[link, &packet].concat(), link.len()).expect("the oracle's");
    let segments = tunnel.cut(fields, usize::from(vnet.gso_size)).into_iter();
    let expected: Vec<Vec<u8>> = segments.map(|packet| [link, &packet].concat()).collect();
    assert_eq!(cut, expected);
    Ok(())
}

/// For any header and packet: rejected, or segmented into whole packets.
fn arbitrary(u: &mut Unstructured<'_>) -> Result<()> {
    let header: [u8; VNET_HEADER_BYTES] = u.arbitrary()?;
    let Some(vnet) = VnetHeader::parse(&header) else {
        return Ok(());
    };
    assert_eq!(VnetHeader::parse(&vnet.to_bytes()), Some(vnet));
    let link_bytes = *u.choose(&[0, 14, 18, 22, 23])?;
    let packet = if u.arbitrary()? {
        packets::ip_packet(u)?
    } else {
        u.peek_bytes(u.len()).unwrap_or(&[]).to_vec()
    };
    let frame = [&vec![0xaa; link_bytes][..], &packet].concat();
    let _ = complete_checksum(&vnet, &mut frame.clone(), checksum::portable);
    for segment in cut(&vnet, &frame, link_bytes).unwrap_or_default() {
        let ip = IpView::parse(&segment[link_bytes..]).expect("a whole packet");
        assert_eq!(link_bytes + ip.total_bytes, segment.len());
        assert!(ip.header_checksum_is_valid(&segment[link_bytes..]));
        let segment = &segment[link_bytes..];
        // In a tunnel the inner packet's checksum is completed, and the outer one stays none.
        let is_tunnel = usize::from(vnet.csum_start) > link_bytes + ip.header_bytes + 8;
        let is_none = ip.protocol == UDP && segment[ip.header_bytes + 6..][..2] == [0, 0];
        let unchecked =
            is_tunnel && is_none || ip.has_no_checksum(segment) && vnet.flags & NEEDS_CSUM == 0;
        assert!(unchecked || ip.transport_checksum_is_valid(segment, checksum::portable));
    }
    Ok(())
}

/// Segments as the data path does, each segment used and overwritten before the next is built.
pub(crate) fn cut(
    vnet: &VnetHeader,
    frame: &[u8],
    link_bytes: usize,
) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut segmenter = Segmenter::with_link(vnet, frame, link_bytes)?;
    let mut buffer = frame.to_vec();
    let remaining = segmenter.remaining();
    let mut segments = Vec::new();
    while let Some(range) = segmenter.next(&mut buffer, checksum::portable) {
        segments.push(buffer[range.clone()].to_vec());
        // As a cipher does in place: later segments must not need these bytes.
        buffer[range].fill(0xee);
    }
    assert_eq!(segments.len(), remaining);
    Ok(segments)
}

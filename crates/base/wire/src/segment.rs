//! Segmentation of super-packets (TSO, USO) into wire packets, in place.
//!
//! A super-packet is one header and up to 64 KB of payload. The payload of segment *i* stays in
//! place: its headers are written directly in front of it, over the tail of segment *i − 1*, which
//! the caller has sealed by then. So no payload byte is copied, and every wire packet is contiguous
//! while the caller holds it:
//!
//! ```text
//! |hdr|payload 0|payload 1|payload 2|      segment 1:  |hdr|payloa[hdr|payload 1]payload 2|
//! ```
//!
//! Checksums: the part common to all segments is summed once; each segment adds its own fields and
//! payload. Segments of a UDP super-packet without a checksum, complete or to be completed, have
//! none either; only IPv4 permits it.
//!
//! A link header in front of the packet (a frame of a packet socket) is repeated on each segment.
//!
//! So are the headers of a UDP tunnel (VXLAN, Geneve) around an inner packet: the virtio header's
//! checksum offset shows the inner one. The outer packet then gets its lengths, identification and
//! checksums anew.
//!
//! It does not fragment, and rejects super-packets with IP options or IPv6 extension headers.

use crate::checksum::{self, Sum, dword, word};
use crate::ethernet;
use crate::headers::{IpView, TCP, UDP, be16, be32, put_ipv4_length, put16, put32};
use crate::overhead::UDP_HEADER_BYTES;
use crate::overlay::{Inner, OUTER_BYTES_MAX};
use crate::vnet::{Gso, NEEDS_CSUM, VnetHeader};
use std::ops::Range;

/// The longest link header, a tunnel's headers, IPv4 without options or IPv6, and the longest TCP
/// header.
const HEADERS_MAX: usize = ethernet::HEADER_BYTES_MAX + OUTER_BYTES_MAX + 40 + 60;

const TCP_FLAGS_AT: usize = 13;
const TCP_CHECKSUM_AT: usize = 16;
const UDP_CHECKSUM_AT: usize = 6;
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// The packet contradicts its virtio header, or is of an unsupported form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The segmentation of one super-packet.
#[derive(Debug)]
pub struct Segmenter {
    /// Link, IP and transport header of every segment, and their length.
    headers: [u8; HEADERS_MAX],
    header_bytes: usize,
    /// Everything in front of the IP header, a tunnel's headers included.
    link_bytes: usize,
    outer: Option<OuterPacket>,
    /// Offset of the transport header from that of the IP header.
    transport_at: usize,
    version: u8,
    tcp: bool,
    /// The segments have a checksum.
    checksummed: bool,
    segment_bytes: usize,
    /// Offset of the next payload byte, and of the payload's end.
    next: usize,
    end: usize,
    /// Sums over the fields common to all segments.
    ip_sum: u64,
    transport_sum: u64,
    identification: u16,
    sequence: u32,
    flags: u8,
    first: bool,
}

impl Segmenter {
    /// Prepares the segmentation of `packet` by its virtio header.
    ///
    /// # Errors
    /// [`Malformed`] when `vnet` is not that of a super-packet, or contradicts the packet.
    #[inline]
    pub fn new(vnet: &VnetHeader, packet: &[u8]) -> Result<Self, Malformed> {
        Self::with_link(vnet, packet, 0)
    }

    /// Prepares the segmentation of the IP packet behind the first `link_bytes` of `frame`
    /// ([`EthernetView::header_bytes`](ethernet::EthernetView::header_bytes)). Each segment begins
    /// with those bytes.
    ///
    /// # Errors
    /// As [`new`](Self::new), and when `link_bytes` are more than [`ethernet::HEADER_BYTES_MAX`] or
    /// `frame` has.
    pub fn with_link(
        vnet: &VnetHeader,
        frame: &[u8],
        link_bytes: usize,
    ) -> Result<Self, Malformed> {
        if link_bytes > ethernet::HEADER_BYTES_MAX {
            return Err(Malformed);
        }
        let packet = frame.get(link_bytes..).ok_or(Malformed)?;
        let ip = IpView::parse(packet).ok_or(Malformed)?;
        if let Some(inner) = inner_of(vnet, packet, &ip, link_bytes) {
            let outer = OuterPacket::new(packet, &ip, link_bytes);
            return Self::of(vnet, frame, link_bytes + inner.at, inner.view, Some(outer));
        }
        Self::of(vnet, frame, link_bytes, ip, None)
    }

    /// The segmentation of the packet `ip` at `link_bytes`.
    #[inline]
    fn of(
        vnet: &VnetHeader,
        frame: &[u8],
        link_bytes: usize,
        ip: IpView,
        outer: Option<OuterPacket>,
    ) -> Result<Self, Malformed> {
        let packet = &frame[link_bytes..];
        let fits = match vnet.gso {
            Gso::None => false,
            Gso::Tcp4 => ip.version == 4 && ip.protocol == TCP,
            Gso::Tcp6 => ip.version == 6 && ip.protocol == TCP,
            Gso::UdpL4 => ip.protocol == UDP,
        };
        // From the packet itself: `hdr_len` is only a hint (Virtual I/O Device 1.2 §5.1.6.2).
        let transport = ip.transport_header_bytes(packet).ok_or(Malformed)?;
        let header_bytes = link_bytes + ip.header_bytes + transport;
        let end = link_bytes + ip.total_bytes;
        let segment_bytes = usize::from(vnet.gso_size);
        // A super-packet without payload has no segment.
        let is_whole = header_bytes < end && header_bytes <= HEADERS_MAX;
        if !fits || ip.opaque || segment_bytes == 0 || !is_whole {
            return Err(Malformed);
        }
        let mut headers = [0; HEADERS_MAX];
        headers[..header_bytes].copy_from_slice(&frame[..header_bytes]);
        let mut segmenter = Self {
            header_bytes,
            link_bytes,
            outer,
            transport_at: ip.header_bytes,
            version: ip.version,
            tcp: ip.protocol == TCP,
            checksummed: vnet.flags & NEEDS_CSUM != 0 || !ip.has_no_checksum(packet),
            segment_bytes,
            next: header_bytes,
            end,
            ip_sum: 0,
            transport_sum: ip.pseudo_sum(packet),
            identification: be16(packet, 4),
            sequence: 0,
            flags: 0,
            first: true,
            headers,
        };
        segmenter.sum_constant_parts();
        Ok(segmenter)
    }

    /// Removes the variable fields from the header template, and sums the rest.
    fn sum_constant_parts(&mut self) {
        let at = self.transport_at;
        let headers = &mut self.headers[self.link_bytes..self.header_bytes];
        if self.version == 4 {
            // Total length, identification, checksum.
            for field in [2, 4, 10] {
                put16(headers, field, 0);
            }
            self.ip_sum = checksum::portable(&headers[..20], 0);
        }
        if self.tcp {
            // Each segment has another sequence number and checksum, and the flags differ at the
            // ends.
            self.sequence = be32(headers, at + 4);
            self.flags = headers[at + TCP_FLAGS_AT];
            put32(headers, at + 4, 0);
            headers[at + TCP_FLAGS_AT] = 0;
            put16(headers, at + TCP_CHECKSUM_AT, 0);
        } else {
            put16(headers, at + 4, 0);
            put16(headers, at + UDP_CHECKSUM_AT, 0);
        }
        self.transport_sum = checksum::portable(&headers[at..], self.transport_sum);
    }

    /// Number of remaining segments.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        (self.end - self.next).div_ceil(self.segment_bytes)
    }

    /// Builds the next wire packet in `packet`, the buffer given to [`new`](Self::new) or
    /// [`with_link`](Self::with_link), and returns its range, link header included.
    ///
    /// The bytes before that range are invalid. The caller may change bytes inside and behind the
    /// range, but must restore those behind it before the next call.
    #[inline]
    pub fn next(&mut self, packet: &mut [u8], sum: Sum) -> Option<Range<usize>> {
        if self.next == self.end {
            return None;
        }
        let payload = self.next..self.end.min(self.next + self.segment_bytes);
        // The headers overwrite the end of the segment before; the first ones fall on the original
        // headers.
        let range = payload.start - self.header_bytes..payload.end;
        let payload_sum = if self.checksummed {
            sum(&packet[payload.clone()], self.transport_sum)
        } else {
            0
        };
        let is_last = payload.end == self.end;

        let headers = &mut packet[range.start..payload.start];
        headers.copy_from_slice(&self.headers[..self.header_bytes]);
        // Offsets from here on start at the IP header.
        let headers = &mut headers[self.link_bytes..];
        let total = range.len() - self.link_bytes;
        self.put_ip(headers, total);
        if self.tcp {
            self.put_tcp(headers, total, payload_sum, is_last);
        } else {
            self.put_udp(headers, total, payload_sum);
        }
        if let Some(outer) = &mut self.outer {
            outer.put(&mut packet[range.clone()], sum);
        }
        self.next = payload.end;
        self.first = false;
        Some(range)
    }

    #[inline]
    fn put_ip(&mut self, headers: &mut [u8], total: usize) {
        if self.version == 4 {
            let (length, id) = (total as u16, self.identification);
            put16(headers, 2, length);
            put16(headers, 4, id);
            let sum = checksum::finish(self.ip_sum + word(length) + word(id));
            headers[10..12].copy_from_slice(&sum);
            // Consecutive, as the kernel numbers segments.
            self.identification = id.wrapping_add(1);
        } else {
            put16(headers, 4, (total - self.transport_at) as u16);
        }
    }

    /// As in the kernel: FIN and PSH on the last segment only, CWR on the first only (RFC 3168
    /// §6.1.2).
    #[inline]
    fn put_tcp(&mut self, headers: &mut [u8], total: usize, payload_sum: u64, is_last: bool) {
        let at = self.transport_at;
        let mut flags = self.flags;
        if !is_last {
            flags &= !FIN_PSH;
        }
        if !self.first {
            flags &= !CWR;
        }
        put32(headers, at + 4, self.sequence);
        headers[at + TCP_FLAGS_AT] = flags;
        let length = (total - at) as u16;
        // The flags are the low byte of their word.
        let sum = payload_sum + word(length) + dword(self.sequence) + word(u16::from(flags));
        headers[at + TCP_CHECKSUM_AT..][..2].copy_from_slice(&checksum::finish(sum));
        // By the payload of this segment.
        self.sequence = self.sequence.wrapping_add((total - headers.len()) as u32);
    }

    #[inline]
    fn put_udp(&self, headers: &mut [u8], total: usize, payload_sum: u64) {
        let at = self.transport_at;
        let length = (total - at) as u16;
        put16(headers, at + 4, length);
        if !self.checksummed {
            // The template has zero.
            return;
        }
        // The length counts twice: in the header and in the pseudo-header.
        put_udp_checksum(headers, at, payload_sum + 2 * word(length));
    }
}

/// Writes the checksum of the UDP header at `at`.
#[inline]
fn put_udp_checksum(headers: &mut [u8], at: usize, sum: u64) {
    let value = checksum::finish(sum);
    // Zero would mean "no checksum" (RFC 768).
    let value = if value == [0, 0] { [0xff, 0xff] } else { value };
    headers[at + UDP_CHECKSUM_AT..][..2].copy_from_slice(&value);
}

/// The inner packet of a super-packet in a UDP tunnel: its checksum starts behind the outer
/// headers.
#[inline]
fn inner_of(vnet: &VnetHeader, packet: &[u8], ip: &IpView, link_bytes: usize) -> Option<Inner> {
    let start = usize::from(vnet.csum_start).checked_sub(link_bytes)?;
    let is_tunnel = ip.protocol == UDP && !ip.opaque && start > ip.header_bytes + UDP_HEADER_BYTES;
    if !is_tunnel || vnet.flags & NEEDS_CSUM == 0 {
        return None;
    }
    let protocol = if vnet.gso == Gso::UdpL4 { UDP } else { TCP };
    Inner::before(packet, ip, start, protocol)
}

/// The outer packet of each segment in a UDP tunnel.
#[derive(Debug)]
struct OuterPacket {
    /// Offset of its IP header.
    at: usize,
    view: IpView,
    /// It has a UDP checksum.
    checksummed: bool,
    identification: u16,
}

impl OuterPacket {
    fn new(packet: &[u8], view: &IpView, at: usize) -> Self {
        // Zero is no checksum over IPv6 too, for tunnels (RFC 6935).
        Self {
            at,
            view: *view,
            checksummed: be16(packet, view.header_bytes + UDP_CHECKSUM_AT) != 0,
            identification: be16(packet, 4),
        }
    }

    /// Completes the outer headers of a segment, which is whole otherwise.
    #[inline]
    fn put(&mut self, segment: &mut [u8], sum: Sum) {
        let packet = &mut segment[self.at..];
        let at = self.view.header_bytes;
        let length = (packet.len() - at) as u16;
        put16(packet, at + 4, length);
        if self.view.version == 4 {
            put16(packet, 4, self.identification);
            put_ipv4_length(packet, packet.len());
            // Consecutive, as the kernel numbers segments.
            self.identification = self.identification.wrapping_add(1);
        } else {
            put16(packet, 4, length);
        }
        if self.checksummed {
            put16(packet, at + UDP_CHECKSUM_AT, 0);
            let start = self.view.pseudo_sum(packet) + word(length);
            put_udp_checksum(packet, at, sum(&packet[at..], start));
        }
    }
}

/// Completes the checksum of a single packet with [`NEEDS_CSUM`] in its virtio header. `packet`
/// begins at the origin of the virtio header's offsets: at its link header, if it has one.
///
/// # Errors
/// [`Malformed`] when the header points outside the packet.
#[inline]
pub fn complete_checksum(vnet: &VnetHeader, packet: &mut [u8], sum: Sum) -> Result<(), Malformed> {
    if vnet.flags & NEEDS_CSUM == 0 {
        return Ok(());
    }
    let start = usize::from(vnet.csum_start);
    let field = start + usize::from(vnet.csum_offset);
    if field + 2 > packet.len() {
        return Err(Malformed);
    }
    // The field itself holds the sum of the pseudo-header, and is summed with the rest.
    let mut value = checksum::finish(sum(&packet[start..], 0));
    // The offset alone shows the protocol: the checksum of TCP is at 16. Zero would mean "no
    // checksum" (RFC 768).
    if value == [0, 0] && usize::from(vnet.csum_offset) == UDP_CHECKSUM_AT {
        value = [0xff, 0xff];
    }
    packet[field..field + 2].copy_from_slice(&value);
    Ok(())
}

//! Joining wire packets of one flow into super-packets: the inverse of [`segment`](crate::segment).
//!
//! Packets stay where they were opened; a super-packet is a list of slices, ready for one vectored
//! write. A packet joins its flow's run when it differs only in fields that a segmenter changes,
//! and when its checksums are valid: joining creates new ones, which must not hide a corrupted
//! packet.
//!
//! UDP datagrams without a checksum, which IPv4 permits (RFC 768), join among themselves: no
//! checksum of theirs could show a corruption. Linux accepts a super-packet only with a checksum to
//! complete, so they have one if it segments them.
//!
//! TCP packets in overlay datagrams without a checksum (VXLAN and Geneve over IPv4) join as inner
//! packets, if all bytes around them are equal: the outer headers then differ in nothing but their
//! identification and lengths, which a segmenter writes anew.
//!
//! Ethernet frames join as well, when their link headers are equal too.
//!
//! Flows do not wait for one another, but packets of one flow keep their order. No packet is held
//! beyond [`Coalescer::flush`], which the caller calls at the end of each batch.

use crate::checksum::{self, Sum, word};
use crate::ethernet::{self, EthernetView};
use crate::headers::{IpView, TCP, UDP, be16, be32, put_ipv4_length, put16};
use crate::overhead::UDP_HEADER_BYTES;
use crate::overlay::{Inner, OUTER_BYTES_MAX};
use crate::vnet::{Gso, NEEDS_CSUM, Outer, VnetHeader};
use arrayvec::ArrayVec;

/// Runs open in parallel; a further flow closes one, in turn.
const RUNS_MAX: usize = 8;
/// Segments in one super-packet. 64 KB of 512-byte segments; the write's vector stays on the stack.
pub const SEGMENTS_MAX: usize = 128;
/// Limit of an IP packet's length field. A frame is kept within it too, including its link header:
/// the kernel would segment a longer one in software.
const PACKET_BYTES_MAX: usize = 65_535;
const HEADERS_MAX: usize = ethernet::HEADER_BYTES_MAX + OUTER_BYTES_MAX + 40 + 60;

const DONT_FRAGMENT: u8 = 0x40;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// The kinds of super-packets that the port accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joinable {
    /// TCP (TSO).
    pub tcp: bool,
    /// UDP (USO).
    pub udp: bool,
    /// TCP in a UDP tunnel over IPv4.
    pub tunnel: bool,
}

impl Joinable {
    /// No super-packets.
    pub const NONE: Self = Self {
        tcp: false,
        udp: false,
        tunnel: false,
    };
}

/// The destination of packets: a virtio header, the packet's headers with its link header in front,
/// and its payload in pieces, together with the number of wire packets in it.
pub trait Sink {
    /// Accepts one packet or super-packet.
    fn emit(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]], segments: usize);
}

impl<F: FnMut(&VnetHeader, &[u8], &[&[u8]], usize)> Sink for F {
    fn emit(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]], segments: usize) {
        self(vnet, headers, payload, segments);
    }
}

/// One flow's packets so far; empty when `payload` is.
struct Run<'a> {
    /// The whole first packet; its headers are the template of the super-packet.
    first: Segment<'a>,
    /// Payload of the first packet, and therefore of all but the last.
    segment_bytes: usize,
    payload_bytes: usize,
    next_sequence: u32,
    /// A packet had PSH, which the super-packet must have too.
    push: bool,
    /// A shorter packet or PSH ended the run.
    closed: bool,
    payload: ArrayVec<&'a [u8], SEGMENTS_MAX>,
}

/// A packet that may join.
#[derive(Clone, Copy)]
struct Segment<'a> {
    packet: Packet<'a>,
    view: IpView,
    /// IP and transport header.
    header_bytes: usize,
    /// The packet around it, and the offset of that one's IP header.
    outer: Option<(usize, IpView)>,
}

impl<'a> Segment<'a> {
    #[inline]
    fn payload(&self) -> &'a [u8] {
        &self.packet.ip()[self.header_bytes..]
    }

    /// The outermost IP packet, and its layout.
    #[inline]
    fn outermost(&self) -> (&'a [u8], &IpView) {
        match &self.outer {
            Some((at, view)) => (&self.packet.frame[*at..], view),
            None => (self.packet.ip(), &self.view),
        }
    }
}

/// An IP packet and all bytes in front of it: its link header, often empty, and a tunnel's headers.
#[derive(Clone, Copy)]
struct Packet<'a> {
    frame: &'a [u8],
    link_bytes: usize,
}

impl<'a> Packet<'a> {
    #[inline]
    fn link(&self) -> &'a [u8] {
        &self.frame[..self.link_bytes]
    }

    #[inline]
    fn ip(&self) -> &'a [u8] {
        &self.frame[self.link_bytes..]
    }
}

/// Joins the packets of one batch.
pub struct Coalescer<'a> {
    joinable: Joinable,
    sum: Sum,
    runs: ArrayVec<Run<'a>, RUNS_MAX>,
    /// The run to emit next when all are in use.
    next_out: usize,
}

impl<'a> Coalescer<'a> {
    /// An empty coalescer for a port that accepts `joinable` super-packets.
    #[must_use]
    pub fn new(joinable: Joinable, sum: Sum) -> Self {
        Self {
            joinable,
            sum,
            runs: ArrayVec::new(),
            next_out: 0,
        }
    }

    /// Adds one packet, with `view` from [`IpView::parse`]; bytes behind its length are ignored.
    #[inline]
    pub fn push(&mut self, packet: &'a [u8], view: IpView, sink: &mut impl Sink) {
        let packet = Packet {
            frame: &packet[..view.total_bytes],
            link_bytes: 0,
        };
        self.push_ip(packet, view, true, sink);
    }

    /// Adds one Ethernet frame, with `view` from [`EthernetView::parse`].
    ///
    /// A frame that continues behind its IP packet does not join: the rest may be more than
    /// padding.
    #[inline]
    pub fn push_frame(&mut self, frame: &'a [u8], view: &EthernetView, sink: &mut impl Sink) {
        let link_bytes = view.header_bytes;
        match view.ip {
            Some(ip) => {
                let is_whole = frame.len() == link_bytes + ip.total_bytes;
                self.push_ip(Packet { frame, link_bytes }, ip, is_whole, sink);
            }
            None => self.pass(frame, sink),
        }
    }

    /// Adds one packet that never joins; it does not overtake the packets held.
    pub fn pass(&mut self, packet: &[u8], sink: &mut impl Sink) {
        self.flush(sink);
        emit_single(packet, sink);
    }

    #[inline]
    fn push_ip(&mut self, packet: Packet<'a>, view: IpView, is_whole: bool, sink: &mut impl Sink) {
        let ip = packet.ip();
        let Some(header_bytes) = self.transport(ip, &view) else {
            // Its flow is unknown: it may belong to any, so all runs are emitted first.
            return self.pass(packet.frame, sink);
        };
        let run = self.runs.iter().position(|run| run.is_flow_of(ip, &view));
        let segment = if is_whole {
            self.segment(packet, view, header_bytes)
        } else {
            None
        };
        // It does not join, and must not overtake the packets of its flow.
        let Some(segment) = segment else {
            if let Some(run) = run {
                self.runs[run].flush(sink);
            }
            return emit_single(packet.frame, sink);
        };
        match run {
            Some(at) if self.runs[at].takes(&segment) => self.runs[at].append(&segment),
            Some(at) => {
                self.runs[at].flush(sink);
                self.runs[at].begin(segment);
            }
            None => self.free_run(sink).begin(segment),
        }
    }

    /// The packet as one that may join, or the one inside it.
    #[inline]
    fn segment(
        &self,
        packet: Packet<'a>,
        view: IpView,
        header_bytes: usize,
    ) -> Option<Segment<'a>> {
        if let Some(inner) = self.inner_segment(packet, view) {
            return Some(inner);
        }
        let joins = self.may_join(packet.ip(), &view, header_bytes);
        joins.then_some(Segment {
            packet,
            view,
            header_bytes,
            outer: None,
        })
    }

    /// The TCP packet in an overlay's datagram without a checksum.
    #[inline]
    fn inner_segment(&self, packet: Packet<'a>, view: IpView) -> Option<Segment<'a>> {
        let ip = packet.ip();
        if !self.joinable.tunnel || !view.has_no_checksum(ip) {
            return None;
        }
        let inner = Inner::find(ip, &view).filter(|inner| inner.view.protocol == TCP)?;
        let outer_is_whole = usize::from(be16(ip, view.header_bytes + 4)) + view.header_bytes
            == view.total_bytes
            && view.header_checksum_is_valid(ip);
        let within = Packet {
            frame: packet.frame,
            link_bytes: packet.link_bytes + inner.at,
        };
        let header_bytes = self.transport(within.ip(), &inner.view)?;
        let joins = outer_is_whole && self.may_join(within.ip(), &inner.view, header_bytes);
        joins.then_some(Segment {
            packet: within,
            view: inner.view,
            header_bytes,
            outer: Some((packet.link_bytes, view)),
        })
    }

    /// Emits all packets held.
    #[inline]
    pub fn flush(&mut self, sink: &mut impl Sink) {
        for run in &mut self.runs {
            run.flush(sink);
        }
    }

    /// Length of all headers when the packet is plain TCP or UDP.
    #[inline]
    fn transport(&self, packet: &[u8], view: &IpView) -> Option<usize> {
        if view.opaque {
            return None;
        }
        Some(view.header_bytes + view.transport_header_bytes(packet)?)
    }

    #[inline]
    fn may_join(&self, packet: &[u8], view: &IpView, header_bytes: usize) -> bool {
        let at = view.header_bytes;
        // With another TCP flag (SYN, FIN, RST, URG, ECE, CWR) a segment passes alone: the flag is
        // of this segment only. Bytes behind a UDP datagram, as UDP options are, would become
        // payload.
        let kind = match view.protocol {
            TCP => self.joinable.tcp && packet[at + 13] & !PSH == ACK,
            UDP => self.joinable.udp && usize::from(be16(packet, at + 4)) == packet.len() - at,
            _ => false,
        };
        // A segment without payload, as a pure ACK, adds nothing that a super-packet could carry.
        kind && packet.len() > header_bytes
            && view.header_checksum_is_valid(packet)
            && (view.has_no_checksum(packet) || view.transport_checksum_is_valid(packet, self.sum))
    }

    #[inline]
    fn free_run(&mut self, sink: &mut impl Sink) -> &mut Run<'a> {
        let at = if let Some(free) = self.runs.iter().position(|run| run.payload.is_empty()) {
            free
        } else if self.runs.is_full() {
            // In turn, which needs no record of ages.
            let out = self.next_out;
            self.next_out = (out + 1) % RUNS_MAX;
            self.runs[out].flush(sink);
            out
        } else {
            self.runs.push(Run::EMPTY);
            self.runs.len() - 1
        };
        &mut self.runs[at]
    }
}

impl<'a> Run<'a> {
    const EMPTY: Self = Self {
        first: Segment {
            packet: Packet {
                frame: &[],
                link_bytes: 0,
            },
            view: IpView {
                version: 4,
                header_bytes: 0,
                total_bytes: 0,
                protocol: 0,
                opaque: true,
            },
            header_bytes: 0,
            outer: None,
        },
        segment_bytes: 0,
        payload_bytes: 0,
        next_sequence: 0,
        push: false,
        closed: false,
        payload: ArrayVec::new_const(),
    };

    /// Same addresses, protocol and ports, those of the outermost packet.
    #[inline]
    fn is_flow_of(&self, packet: &[u8], view: &IpView) -> bool {
        if self.payload.is_empty() {
            return false;
        }
        let (first, own) = self.first.outermost();
        if (own.version, own.protocol) != (view.version, view.protocol) {
            return false;
        }
        // The ports are directly behind the addresses: opaque packets, with options, have left
        // before.
        let (from, ports) = if view.version == 4 { (12, 20) } else { (8, 40) };
        first[from..ports] == packet[from..ports]
            && first[ports..ports + 4] == packet[ports..ports + 4]
    }

    #[inline]
    fn begin(&mut self, segment: Segment<'a>) {
        self.first = segment;
        self.segment_bytes = segment.payload().len();
        self.payload_bytes = 0;
        self.closed = false;
        self.push = false;
        self.add(&segment);
    }

    /// Whether the packet differs only in fields that a segmenter changes, and there is room.
    #[inline]
    fn takes(&self, segment: &Segment<'_>) -> bool {
        // The kernel cuts at equal lengths, so only the last segment may be shorter, and none
        // longer.
        let first = &self.first;
        let payload = segment.payload().len();
        let headers = segment.packet.link_bytes + segment.header_bytes;
        !self.closed
            && segment.header_bytes == first.header_bytes
            && payload <= self.segment_bytes
            && !self.payload.is_full()
            && headers + self.payload_bytes + payload <= PACKET_BYTES_MAX
            && self.same_link(segment)
            && self.same_ip_fields(first.packet.ip(), segment.packet.ip(), first.view.version)
            && self.same_transport_fields(segment.packet.ip())
    }

    /// Equal bytes in front of the packet, and in a tunnel an outer packet that a segmenter makes
    /// again.
    #[inline]
    fn same_link(&self, segment: &Segment<'_>) -> bool {
        let (a, b) = (self.first.packet.link(), segment.packet.link());
        match (&self.first.outer, &segment.outer) {
            (None, None) => a == b,
            (Some((at, view)), Some((other_at, other))) => {
                // Ports are the flow's; the length follows, and the checksum is none.
                let behind = at + view.header_bytes + UDP_HEADER_BYTES;
                at == other_at
                    && view.header_bytes == other.header_bytes
                    && a.len() == b.len()
                    && a[..*at] == b[..*at]
                    && self.same_ip_fields(&a[*at..], &b[*at..], view.version)
                    && a[behind..] == b[behind..]
            }
            _ => false,
        }
    }

    /// DSCP, ECN, TTL and the don't-fragment bit, or the flow label.
    ///
    /// A segmenter renumbers IPv4 packets. That does not matter where the bit is set (RFC 6864
    /// §4.1); elsewhere the numbers must be those that it will assign.
    #[inline]
    fn same_ip_fields(&self, first: &[u8], packet: &[u8], version: u8) -> bool {
        if version == 4 {
            let next_id = be16(first, 4).wrapping_add(self.payload.len() as u16);
            first[1] == packet[1]
                && first[6..9] == packet[6..9]
                && (packet[6] & DONT_FRAGMENT != 0 || be16(packet, 4) == next_id)
        } else {
            first[..4] == packet[..4] && first[7] == packet[7]
        }
    }

    /// For UDP: both with or both without a checksum. For TCP in a tunnel the flow is compared too,
    /// since it is not the outer one.
    #[inline]
    fn same_transport_fields(&self, packet: &[u8]) -> bool {
        let first = &self.first;
        if first.view.protocol == UDP {
            first.view.has_no_checksum(first.packet.ip()) == first.view.has_no_checksum(packet)
        } else {
            self.same_tcp_fields(packet)
        }
    }

    /// The same flow, the expected sequence number; the same acknowledgement, window, urgent
    /// pointer and options.
    #[inline]
    fn same_tcp_fields(&self, packet: &[u8]) -> bool {
        let view = &self.first.view;
        let at = view.header_bytes;
        let addresses = if view.version == 4 { 12 } else { 8 };
        let first = self.first.packet.ip();
        let (a, b) = (
            &first[at..self.first.header_bytes],
            &packet[at..self.first.header_bytes],
        );
        be32(b, 4) == self.next_sequence
            // With the ports behind them.
            && first[addresses..at + 4] == packet[addresses..at + 4]
            && a[8..12] == b[8..12]
            // Data offset and AE, the flag in a different byte from the others (RFC 9768 §3.1).
            && a[12] == b[12]
            && a[14..16] == b[14..16]
            && a[18..] == b[18..]
    }

    #[inline]
    fn append(&mut self, segment: &Segment<'a>) {
        // A shorter segment is the last one of its super-packet.
        self.closed = segment.payload().len() < self.segment_bytes;
        self.add(segment);
    }

    #[inline]
    fn add(&mut self, segment: &Segment<'a>) {
        let payload = segment.payload();
        self.payload.push(payload);
        self.payload_bytes += payload.len();
        if segment.view.protocol == TCP {
            let packet = segment.packet.ip();
            let at = segment.view.header_bytes;
            self.next_sequence = be32(packet, at + 4).wrapping_add(payload.len() as u32);
            // The sender has nothing more for now. A segmenter sets the flag on the last segment
            // alone.
            if packet[at + 13] & PSH != 0 {
                self.push = true;
                self.closed = true;
            }
        }
    }

    #[inline]
    fn flush(&mut self, sink: &mut impl Sink) {
        match self.payload.len() {
            0 => return,
            // Unchanged, with the checksums that were verified.
            1 => emit_single(self.first.packet.frame, sink),
            segments => {
                let (vnet, headers) = self.joined_headers();
                let headers = &headers[..usize::from(vnet.hdr_len)];
                sink.emit(&vnet, headers, &self.payload, segments);
            }
        }
        self.payload.clear();
    }

    /// The first packet's headers with the super-packet's lengths, and with the pseudo-header's sum
    /// where the kernel completes the checksum.
    fn joined_headers(&self) -> (VnetHeader, [u8; HEADERS_MAX]) {
        let view = &self.first.view;
        let at = view.header_bytes;
        let total = self.first.header_bytes + self.payload_bytes;
        let length = (total - at) as u16;
        let link_bytes = self.first.packet.link_bytes;
        let mut whole = [0; HEADERS_MAX];
        let whole_bytes = link_bytes + self.first.header_bytes;
        whole[..whole_bytes].copy_from_slice(&self.first.packet.frame[..whole_bytes]);
        // Offsets from here on start at the IP header.
        let headers = &mut whole[link_bytes..whole_bytes];
        let pseudo = view.pseudo_sum(headers) + word(length);
        // Not complemented: the kernel or the device adds the rest, and complements then.
        let pseudo = checksum::fold(pseudo).to_ne_bytes();
        if view.version == 4 {
            put_ipv4_length(headers, total);
        } else {
            put16(headers, 4, (total - 40) as u16);
        }
        let tcp = view.protocol == TCP;
        let csum_offset = if tcp { 16 } else { 6 };
        if tcp {
            headers[at + 13] |= if self.push { PSH } else { 0 };
        } else {
            put16(headers, at + 4, length);
        }
        headers[at + csum_offset..][..2].copy_from_slice(&pseudo);
        let gso = match (tcp, view.version) {
            (true, 4) => Gso::Tcp4,
            (true, _) => Gso::Tcp6,
            (false, _) => Gso::UdpL4,
        };
        let outer = self.put_outer_lengths(&mut whole[..whole_bytes]);
        let vnet = VnetHeader {
            flags: NEEDS_CSUM,
            gso,
            outer,
            hdr_len: whole_bytes as u16,
            gso_size: self.segment_bytes as u16,
            csum_start: (link_bytes + at) as u16,
            csum_offset: csum_offset as u16,
        };
        (vnet, whole)
    }

    /// Writes the super-packet's lengths into the headers of the packet around it.
    fn put_outer_lengths(&self, headers: &mut [u8]) -> Outer {
        let Some((at, view)) = self.first.outer else {
            return Outer::None;
        };
        let total = headers.len() - at + self.payload_bytes;
        let outer = &mut headers[at..];
        // Over IPv4 alone: over IPv6 a datagram without a checksum is not recognised as one.
        put_ipv4_length(outer, total);
        put16(
            outer,
            view.header_bytes + 4,
            (total - view.header_bytes) as u16,
        );
        Outer::V4
    }
}

#[inline]
fn emit_single(packet: &[u8], sink: &mut impl Sink) {
    sink.emit(&VnetHeader::PLAIN, &[], &[packet], 1);
}

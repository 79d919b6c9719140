//! The slow, obvious way to build packets: every header from its fields, every checksum by
//! definition. Tests of this crate and the fuzz targets compare the fast way with it.

use crate::aggfrag::{Aggregator, HEADER_BYTES};

/// The fields of one TCP or UDP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// Whether it is IPv6; otherwise IPv4.
    pub ipv6: bool,
    /// Whether it is TCP; otherwise UDP.
    pub tcp: bool,
    /// Whether the UDP checksum is zero ("none"), legal over IPv4 alone; TCP always has one.
    pub unchecked: bool,
    /// The last byte of the sender's address.
    pub host: u8,
    /// The sender's port.
    pub port: u16,
    /// Traffic class.
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Identification, of IPv4 alone.
    pub id: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// TCP flags.
    pub flags: u8,
    /// Receive window.
    pub window: u16,
    /// TCP options; a multiple of four bytes.
    pub options: Vec<u8>,
    /// Payload of the transport.
    pub payload: Vec<u8>,
}

fn rfc1071(parts: &[&[u8]]) -> [u8; 2] {
    let bytes: Vec<u8> = parts.concat();
    // As in RFC 1071 §4.1: words in network order, carries at the end.
    let mut sum: u64 = 0;
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

impl Fields {
    /// A TCP segment over IPv4 with so many bytes of payload, whose sequence numbers wrap.
    #[must_use]
    pub fn sample(payload: usize) -> Self {
        Self {
            ipv6: false,
            tcp: true,
            unchecked: false,
            host: 2,
            port: 40_000,
            tos: 0,
            ttl: 64,
            id: 7,
            sequence: u32::MAX - 100,
            acknowledgement: 9,
            flags: 0x10,
            window: 500,
            options: vec![1; 12],
            payload: vec![0x5a; payload],
        }
    }

    /// The whole packet, from its IP header on.
    #[must_use]
    pub fn packet(&self) -> Vec<u8> {
        self.packet_to(5201)
    }

    /// The whole packet to this port.
    #[must_use]
    pub fn packet_to(&self, target_port: u16) -> Vec<u8> {
        let transport = self.transport(target_port);
        let (source, target) = self.addresses();
        let mut ip = Vec::new();
        if self.ipv6 {
            ip.extend([0x60 | self.tos >> 4, self.tos << 4, 0, 0]);
            ip.extend((transport.len() as u16).to_be_bytes());
            ip.extend([self.protocol(), self.ttl]);
            ip.extend(source);
            ip.extend(target);
        } else {
            ip.extend([0x45, self.tos]);
            ip.extend((20 + transport.len() as u16).to_be_bytes());
            ip.extend(self.id.to_be_bytes());
            // DF, which the coalescer expects of packets with any identification.
            ip.extend([0x40, 0, self.ttl, self.protocol(), 0, 0]);
            ip.extend(source);
            ip.extend(target);
            let sum = rfc1071(&[&ip]);
            ip[10..12].copy_from_slice(&sum);
        }
        ip.extend(transport);
        ip
    }

    fn protocol(&self) -> u8 {
        if self.tcp { 6 } else { 17 }
    }

    fn addresses(&self) -> (Vec<u8>, Vec<u8>) {
        if self.ipv6 {
            let mut address = vec![0x20, 0x01, 0x0d, 0xb8];
            address.resize(16, self.host);
            // Any second address will do, as long as it differs and follows from the fields.
            (address.clone(), address.into_iter().rev().collect())
        } else {
            (vec![10, 1, 0, self.host], vec![10, 2, 0, 2])
        }
    }

    fn transport(&self, target_port: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(target_port.to_be_bytes());
        if self.tcp {
            bytes.extend(self.sequence.to_be_bytes());
            bytes.extend(self.acknowledgement.to_be_bytes());
            bytes.extend([(((20 + self.options.len()) / 4) << 4) as u8, self.flags]);
            bytes.extend(self.window.to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(&self.options);
        } else {
            bytes.extend((8 + self.payload.len() as u16).to_be_bytes());
            bytes.extend([0, 0]);
        }
        bytes.extend(&self.payload);
        let (source, target) = self.addresses();
        // The pseudo-header of IPv4 has a length of 16 bits; zeros in front of it add nothing.
        let length = (bytes.len() as u32).to_be_bytes();
        let mut sum = rfc1071(&[
            &source,
            &target,
            &length,
            &[0, 0, 0, self.protocol()],
            &bytes,
        ]);
        // Zero means "no checksum" (RFC 768).
        if !self.tcp && self.unchecked {
            return bytes;
        }
        if !self.tcp && sum == [0, 0] {
            sum = [0xff, 0xff];
        }
        let at = if self.tcp { 16 } else { 6 };
        bytes[at..at + 2].copy_from_slice(&sum);
        bytes
    }

    /// The segments of a super-packet, by definition.
    #[must_use]
    pub fn cut(&self, segment_bytes: usize) -> Vec<Vec<u8>> {
        self.parts(segment_bytes).iter().map(Self::packet).collect()
    }

    fn parts(&self, segment_bytes: usize) -> Vec<Self> {
        let count = self.payload.chunks(segment_bytes).len();
        let mut parts = Vec::new();
        for (index, payload) in self.payload.chunks(segment_bytes).enumerate() {
            let mut flags = self.flags;
            // As the kernel does: FIN and PSH on the last segment alone, CWR on the first alone.
            if index + 1 < count {
                flags &= !0x09;
            }
            if index > 0 {
                flags &= !0x80;
            }
            parts.push(Self {
                id: self.id.wrapping_add(index as u16),
                sequence: self.sequence.wrapping_add((index * segment_bytes) as u32),
                flags,
                payload: payload.to_vec(),
                ..self.clone()
            });
        }
        parts
    }
}

/// An overlay network's headers in front of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Whether the outer packet is IPv6; otherwise IPv4.
    pub ipv6: bool,
    /// UDP port of the receiver: VXLAN's or Geneve's.
    pub port: u16,
    /// UDP port of the sender.
    pub source: u16,
    /// Words of options, of Geneve alone.
    pub options: u8,
    /// Whether the inner frame has a VLAN tag.
    pub tag: bool,
    /// Whether the outer packet has a UDP checksum.
    pub checked: bool,
    /// Traffic class of the outer packet.
    pub tos: u8,
    /// TTL of the outer packet.
    pub ttl: u8,
    /// Identification of the outer packet, of IPv4 alone.
    pub id: u16,
    /// Network identifier.
    pub network: u8,
}

impl Tunnel {
    /// VXLAN over IPv4 without a checksum.
    #[must_use]
    pub fn sample() -> Self {
        Self {
            ipv6: false,
            port: crate::overlay::VXLAN_PORT,
            source: 50_000,
            options: 0,
            tag: false,
            checked: false,
            tos: 0,
            ttl: 64,
            id: 3,
            network: 51,
        }
    }

    /// The outer packet number `index` around an inner one.
    #[must_use]
    pub fn wrap(&self, inner: &Fields, index: u16) -> Vec<u8> {
        self.wrap_packet(&inner.packet(), index)
    }

    /// The outer packet number `index` around an IP packet.
    #[must_use]
    pub fn wrap_packet(&self, inner: &[u8], index: u16) -> Vec<u8> {
        let mut datagram = Vec::new();
        if self.port == crate::overlay::GENEVE_PORT {
            datagram.extend([self.options, 0, 0x65, 0x58, 0, 0, self.network, 0]);
            datagram.extend(vec![0x5c; usize::from(self.options) * 4]);
        } else {
            datagram.extend([8, 0, 0, 0, 0, 0, self.network, 0]);
        }
        datagram.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        if self.tag {
            datagram.extend([0x81, 0, 0, 7]);
        }
        datagram.extend(if inner[0] >> 4 == 6 {
            [0x86, 0xdd]
        } else {
            [8, 0]
        });
        datagram.extend(inner);
        let outer = Fields {
            ipv6: self.ipv6,
            tcp: false,
            unchecked: !self.checked,
            host: 9,
            port: self.source,
            tos: self.tos,
            ttl: self.ttl,
            id: self.id.wrapping_add(index),
            sequence: 0,
            acknowledgement: 0,
            flags: 0,
            window: 0,
            options: Vec::new(),
            payload: datagram,
        };
        outer.packet_to(self.port)
    }

    /// The segments of a super-packet, each in the tunnel, by definition.
    #[must_use]
    pub fn cut(&self, inner: &Fields, segment_bytes: usize) -> Vec<Vec<u8>> {
        let parts = inner.parts(segment_bytes);
        (0..)
            .zip(&parts)
            .map(|(index, part)| self.wrap(part, index))
            .collect()
    }
}

/// The AGGFRAG payloads that [`Aggregator`] makes of packets. A packet that fits none as a whole is
/// divided; one that only does not fit the rest of a payload is divided if the next of `divides` is
/// true.
#[must_use]
pub fn pack(packets: &[Vec<u8>], room: usize, divides: &[bool]) -> Vec<Vec<u8>> {
    let mut buffer = vec![0xee; room];
    let mut payloads = Vec::new();
    let mut aggregator = Aggregator::begin(room);
    for (packet, divide) in packets.iter().zip(divides.iter().cycle()) {
        if aggregator.push(&mut buffer, packet) {
            continue;
        }
        let fits_none = HEADER_BYTES + packet.len() > room;
        if aggregator.left() == 0 || !(fits_none || *divide) {
            let bytes = aggregator.finish(&mut buffer);
            payloads.push(buffer[..bytes].to_vec());
            aggregator = Aggregator::begin(room);
        }
        let mut rest = &packet[..];
        loop {
            rest = &rest[aggregator.push_part(&mut buffer, rest)..];
            if rest.is_empty() {
                break;
            }
            let bytes = aggregator.finish(&mut buffer);
            payloads.push(buffer[..bytes].to_vec());
            aggregator = Aggregator::resume(room, rest.len() as u16);
        }
    }
    let bytes = aggregator.finish(&mut buffer);
    payloads.push(buffer[..bytes].to_vec());
    payloads
}

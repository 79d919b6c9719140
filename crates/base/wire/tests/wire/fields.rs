//! The slow, obvious way to build packets: every header from its fields, every checksum by
//! definition.

/// The fields of one TCP or UDP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) ipv6: bool,
    pub(crate) tcp: bool,
    pub(crate) host: u8,
    pub(crate) port: u16,
    pub(crate) tos: u8,
    pub(crate) ttl: u8,
    pub(crate) id: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

fn rfc1071(parts: &[&[u8]]) -> [u8; 2] {
    let bytes: Vec<u8> = parts.concat();
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
    pub(crate) fn packet(&self) -> Vec<u8> {
        let transport = self.transport();
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
            (address.clone(), address.into_iter().rev().collect())
        } else {
            (vec![10, 1, 0, self.host], vec![10, 2, 0, 2])
        }
    }

    fn transport(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(5201u16.to_be_bytes());
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
        let length = (bytes.len() as u32).to_be_bytes();
        let mut sum = rfc1071(&[
            &source,
            &target,
            &length,
            &[0, 0, 0, self.protocol()],
            &bytes,
        ]);
        if !self.tcp && sum == [0, 0] {
            sum = [0xff, 0xff];
        }
        let at = if self.tcp { 16 } else { 6 };
        bytes[at..at + 2].copy_from_slice(&sum);
        bytes
    }

    /// The segments of a super-packet, by definition.
    pub(crate) fn cut(&self, segment_bytes: usize) -> Vec<Vec<u8>> {
        let count = self.payload.chunks(segment_bytes).len();
        let mut packets = Vec::new();
        for (index, payload) in self.payload.chunks(segment_bytes).enumerate() {
            let mut flags = self.flags;
            if index + 1 < count {
                flags &= !0x09;
            }
            if index > 0 {
                flags &= !0x80;
            }
            let segment = Self {
                id: self.id.wrapping_add(index as u16),
                sequence: self.sequence.wrapping_add((index * segment_bytes) as u32),
                flags,
                payload: payload.to_vec(),
                ..self.clone()
            };
            packets.push(segment.packet());
        }
        packets
    }
}

//! `struct virtio_net_hdr`, the 10 bytes in front of each packet on a port with offloads
//! (Virtual I/O Device 1.2 §5.1.6; Linux `include/uapi/linux/virtio_net.h`).

/// Length of the header in bytes.
pub const VNET_HEADER_BYTES: usize = 10;
/// Length of the header of a port with super-packets in UDP tunnels:
/// `struct virtio_net_hdr_v1_hash_tunnel`, since Linux 6.17.
pub const VNET_TUNNEL_HEADER_BYTES: usize = 24;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum at `csum_start + csum_offset` contains only the
/// pseudo-header's sum.
pub const NEEDS_CSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_ECN`: a flag beside the kind of super-packet.
const GSO_ECN: u8 = 0x80;
/// `VIRTIO_NET_HDR_GSO_UDP_TUNNEL_IPV4` and `_IPV6`, likewise.
const GSO_TUNNEL_V4: u8 = 0x20;
const GSO_TUNNEL_V6: u8 = 0x40;

/// The kind of super-packet that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gso {
    /// None: a single packet.
    None,
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP, cut at `gso_size` of payload (`VIRTIO_NET_HDR_GSO_UDP_L4`).
    UdpL4,
}

impl Gso {
    const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Tcp4 => 1,
            Self::Tcp6 => 4,
            Self::UdpL4 => 5,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        // 3 is UFO, which cuts a datagram into IP fragments.
        match code {
            0 => Some(Self::None),
            1 => Some(Self::Tcp4),
            4 => Some(Self::Tcp6),
            5 => Some(Self::UdpL4),
            _ => None,
        }
    }
}

/// The outer packet of a super-packet whose segments are in a UDP tunnel each (VXLAN, Geneve).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outer {
    /// No tunnel.
    None,
    /// UDP over IPv4.
    V4,
    /// UDP over IPv6.
    V6,
}

impl Outer {
    const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::V4 => GSO_TUNNEL_V4,
            Self::V6 => GSO_TUNNEL_V6,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code & (GSO_TUNNEL_V4 | GSO_TUNNEL_V6) {
            0 => Some(Self::None),
            GSO_TUNNEL_V4 => Some(Self::V4),
            GSO_TUNNEL_V6 => Some(Self::V6),
            _ => None,
        }
    }
}

/// The header's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VnetHeader {
    /// [`NEEDS_CSUM`] or 0.
    pub flags: u8,
    /// Kind of super-packet.
    pub gso: Gso,
    /// The tunnel around each segment; `gso` is then the kind of the inner packet. Packet sockets
    /// deliver such super-packets without this mark.
    pub outer: Outer,
    /// Length of all headers of the super-packet; a hint only when read.
    pub hdr_len: u16,
    /// Payload of each segment but the last, in bytes.
    pub gso_size: u16,
    /// Offset at which the checksum's coverage starts, from the first byte of the packet.
    pub csum_start: u16,
    /// Offset of the checksum field, from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// A single packet whose checksums are complete.
    pub const PLAIN: Self = Self {
        flags: 0,
        gso: Gso::None,
        outer: Outer::None,
        hdr_len: 0,
        gso_size: 0,
        csum_start: 0,
        csum_offset: 0,
    };

    /// Reads the header; fields are in native byte order, as on TUN and packet sockets.
    ///
    /// `None` for a kind of super-packet that ports never enable (UFO), or a tunnel over both IP
    /// versions.
    #[must_use]
    pub fn parse(bytes: &[u8; VNET_HEADER_BYTES]) -> Option<Self> {
        let field = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Some(Self {
            flags: bytes[0],
            // The flag repeats CWR, which the segmenter finds in the TCP header.
            gso: Gso::from_code(bytes[1] & !(GSO_ECN | GSO_TUNNEL_V4 | GSO_TUNNEL_V6))?,
            outer: Outer::from_code(bytes[1])?,
            hdr_len: field(2),
            gso_size: field(4),
            csum_start: field(6),
            csum_offset: field(8),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; VNET_HEADER_BYTES] {
        let mut bytes = [0; VNET_HEADER_BYTES];
        bytes[0] = self.flags;
        bytes[1] = self.gso.code() | self.outer.code();
        for (at, field) in [
            (2, self.hdr_len),
            (4, self.gso_size),
            (6, self.csum_start),
            (8, self.csum_offset),
        ] {
            bytes[at..at + 2].copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }

    /// The header of a port with super-packets in UDP tunnels. `shift` is added to the offset of
    /// the outer UDP header.
    ///
    /// The inner IP header has no options, and the outer one has no options or extension headers.
    #[must_use]
    pub fn to_tunnel_bytes(self, shift: u16) -> [u8; VNET_TUNNEL_HEADER_BYTES] {
        let mut bytes = [0; VNET_TUNNEL_HEADER_BYTES];
        bytes[..VNET_HEADER_BYTES].copy_from_slice(&self.to_bytes());
        let outer_bytes: u16 = match self.outer {
            Outer::None => return bytes,
            Outer::V4 => 20,
            Outer::V6 => 40,
        };
        let inner_bytes = if self.gso == Gso::Tcp6 { 40 } else { 20 };
        let inner_at = self.csum_start.saturating_sub(inner_bytes);
        // Behind the number of buffers and the hash, which have no meaning here. Little-endian,
        // unlike the fields in front (Virtual I/O Device 1.4 §5.1.6).
        bytes[20..22].copy_from_slice(&(outer_bytes + shift).to_le_bytes());
        bytes[22..].copy_from_slice(&inner_at.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_writes() {
        let outers = [Outer::None, Outer::V4, Outer::V6];
        let gsos = [Gso::None, Gso::Tcp4, Gso::Tcp6, Gso::UdpL4];
        for (gso, outer) in gsos
            .into_iter()
            .flat_map(|gso| outers.map(|outer| (gso, outer)))
        {
            let header = VnetHeader {
                flags: NEEDS_CSUM,
                gso,
                outer,
                hdr_len: 54,
                gso_size: 1400,
                csum_start: 34,
                csum_offset: 16,
            };
            assert_eq!(VnetHeader::parse(&header.to_bytes()), Some(header));
        }
    }

    #[test]
    fn ignores_the_ecn_flag_and_refuses_unknown_kinds() {
        let mut bytes = VnetHeader {
            gso: Gso::Tcp4,
            ..VnetHeader::PLAIN
        }
        .to_bytes();
        bytes[1] |= GSO_ECN;
        assert_eq!(VnetHeader::parse(&bytes).unwrap().gso, Gso::Tcp4);
        for unknown in [3, 1 | GSO_TUNNEL_V4 | GSO_TUNNEL_V6] {
            bytes[1] = unknown;
            assert_eq!(VnetHeader::parse(&bytes), None);
        }
    }

    #[test]
    fn a_tunnel_header_has_the_offsets_of_the_outer_udp_and_the_inner_ip_header() {
        let header = VnetHeader {
            flags: NEEDS_CSUM,
            gso: Gso::Tcp6,
            outer: Outer::V4,
            hdr_len: 122,
            gso_size: 1300,
            csum_start: 90,
            csum_offset: 16,
        };
        let bytes = header.to_tunnel_bytes(0);
        assert_eq!(bytes[..10], header.to_bytes());
        assert_eq!(bytes[10..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 50, 0]);
        assert_eq!(header.to_tunnel_bytes(14)[20], 34);
        assert_eq!(VnetHeader::PLAIN.to_tunnel_bytes(14), [0; 24]);
    }
}

//! Tunnels that are the kernel's own and set by hand: what they are told, and what they make of packets.

use super::tunnels::{Carrier, Form};
use serde::{Deserialize, Serialize};
use wire::Suite;
use wire::l2tp;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// Ethernet header of a frame that is carried whole.
const ETHERNET_HEADER_BYTES: usize = 14;
/// IEEE 802.1Q.
const VLAN_TAG_BYTES: usize = 4;

/// IPsec by the kernel's XFRM with static keys, made anew for each start: bare ESP, which needs no program
/// that would hold a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xfrm {
    /// ESP suite.
    pub suite: Suite,
}

impl Xfrm {
    /// What carries its packets.
    #[must_use]
    pub const fn carrier(&self) -> Carrier {
        Carrier {
            form: Form::Esp,
            suite: self.suite,
            udp: false,
        }
    }
}

/// The kernel's L2TPv3 Ethernet pseudowire (RFC 3931, RFC 4719), set by hand: nothing is encrypted. The
/// gateways bridge, so the stations are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct L2tpv3 {
    /// What stands between L2TP and IP.
    pub encapsulation: L2tpEncapsulation,
}

/// What L2TPv3 is carried in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum L2tpEncapsulation {
    /// UDP, port 1701 (RFC 3931 §4.1.2).
    Udp,
    /// IP, protocol 115 (RFC 3931 §4.1.1).
    Ip,
}

impl L2tpEncapsulation {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Udp, Self::Ip];

    /// As campaigns have it, and `ip l2tp`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Ip => "ip",
        }
    }
}

impl L2tpv3 {
    /// Cookies are as long as they can be, in bytes: such cost the most, and our own has the same.
    pub const COOKIE_BYTES: usize = 8;

    /// Why nobody should protect anything with it.
    pub const INSECURE: &'static str = "L2TPv3 without ESP does not encrypt";

    /// What stands between IP on the cipher link and a station's IP packet, in bytes: without and with a
    /// VLAN tag.
    #[must_use]
    pub const fn added_bytes(self) -> (usize, usize) {
        let session = l2tp::SESSION_BYTES + Self::COOKIE_BYTES;
        let outer = match self.encapsulation {
            L2tpEncapsulation::Udp => UDP_HEADER_BYTES + l2tp::FLAGS_BYTES,
            L2tpEncapsulation::Ip => 0,
        };
        let least = outer + session + ETHERNET_HEADER_BYTES;
        (least, least + VLAN_TAG_BYTES)
    }

    /// The longest that an IP packet of `packet_bytes` from a station gets on the cipher link.
    #[must_use]
    pub const fn cipher_packet_bytes(self, packet_bytes: usize) -> usize {
        IPV4_HEADER_BYTES + self.added_bytes().1 + packet_bytes
    }

    /// The longest IP packet of a station that a cipher link of that MTU carries whole, whatever the frame
    /// around it has.
    #[must_use]
    pub fn clear_mtu(self, cipher_mtu: u16) -> Option<usize> {
        usize::from(cipher_mtu).checked_sub(self.cipher_packet_bytes(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over IP: 20 of IPv4, 4 of session, 8 of cookie, 14 of Ethernet and 4 of a tag; over UDP 8 and 4 more.
    #[test]
    fn a_pseudowire_adds_what_the_rfcs_make_of_it() {
        let [udp, ip] = L2tpEncapsulation::ALL.map(|encapsulation| L2tpv3 { encapsulation });
        assert_eq!(ip.cipher_packet_bytes(1500), 1550);
        assert_eq!(udp.cipher_packet_bytes(1500), 1562);
        assert_eq!(udp.clear_mtu(1500), Some(1438));
        assert_eq!(ip.clear_mtu(1500), Some(1450));
        assert_eq!(udp.clear_mtu(60), None);
        assert_eq!((ip.added_bytes(), udp.added_bytes()), ((26, 30), (38, 42)));
    }
}

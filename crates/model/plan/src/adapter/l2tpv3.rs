//! L2TPv3 by the kernel.

use super::profile::{Ability, DutProfile, NO_INTERFACES, Role, VLAN_TAG_BYTES, insecure_in_words};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use wire::l2tp;
use wire::mix::ETHERNET_HEADER_BYTES;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// Why it does not protect.
pub(super) const INSECURE: &str = "L2TPv3 without ESP does not encrypt";

/// The kernel's L2TPv3 Ethernet pseudowire (RFC 3931, RFC 4719), set by hand: nothing is encrypted.
/// The gateways bridge, so the stations are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct L2tpv3 {
    /// What carries L2TP.
    pub encapsulation: L2tpEncapsulation,
}

/// Carrier of L2TPv3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum L2tpEncapsulation {
    /// UDP, port 1701 (RFC 3931 §4.1.2).
    Udp,
    /// IP, protocol 115 (RFC 3931 §4.1.1).
    Ip,
}

impl L2tpEncapsulation {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Udp, Self::Ip];

    /// Name in campaigns and for `ip l2tp`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl L2tpv3 {
    /// Length of cookies, the longest possible: it costs the most, and Cipherbench's encryptor also
    /// uses it.
    pub const COOKIE_BYTES: usize = 8;

    /// Bytes between IP on the cipher link and a station's IP packet: without and with a VLAN tag.
    #[must_use]
    pub const fn added_bytes(self) -> (usize, usize) {
        let session = l2tp::SESSION_BYTES + Self::COOKIE_BYTES;
        let outer = match self.encapsulation {
            // In UDP a word of flags and version precedes the session (RFC 3931 §4.1.2.1).
            L2tpEncapsulation::Udp => UDP_HEADER_BYTES + l2tp::FLAGS_BYTES,
            L2tpEncapsulation::Ip => 0,
        };
        let least = outer + session + ETHERNET_HEADER_BYTES;
        (least, least + VLAN_TAG_BYTES)
    }

    pub(super) fn profile(self) -> DutProfile {
        let outer = match self.encapsulation {
            L2tpEncapsulation::Udp => "UDP",
            L2tpEncapsulation::Ip => "IP",
        };
        let insecure = insecure_in_words(Some(INSECURE));
        let settings = format!("Ethernet in L2TPv3 in {outer} by the kernel{insecure}");
        DutProfile {
            // Not `DutProfile::tunnel`, which needs a carrier: nothing is sealed here.
            frame_bytes: self.added_bytes(),
            outer_bytes: IPV4_HEADER_BYTES,
            carried_in: Some("L2TPv3".to_owned()),
            insecure: Some(INSECURE),
            is_readable: true,
            gateway_cores: 1,
            abilities: vec![Ability::Cut],
            needs_kernel: Some(NO_INTERFACES.to_owned()),
            ..DutProfile::clear(Role::Tunnel, settings)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over IP: 20 of IPv4, 4 of session, 8 of cookie, 14 of Ethernet and 4 of a tag; over UDP 8
    /// and 4 more.
    #[test]
    fn a_pseudowire_adds_what_the_rfcs_make_of_it() {
        let [udp, ip] = L2tpEncapsulation::ALL.map(|encapsulation| L2tpv3 { encapsulation });
        let (added, udp, ip) = (
            (ip.added_bytes(), udp.added_bytes()),
            udp.profile(),
            ip.profile(),
        );
        assert_eq!(ip.cipher_packet_bytes(1500), 1550);
        assert_eq!(udp.cipher_packet_bytes(1500), 1562);
        assert_eq!(udp.clear_mtu(1500), Some(1438));
        assert_eq!(ip.clear_mtu(1500), Some(1450));
        assert_eq!(udp.clear_mtu(60), None);
        assert_eq!(added, ((26, 30), (38, 42)));
    }
}

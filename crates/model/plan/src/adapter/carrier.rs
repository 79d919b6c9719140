//! How sealed packets look between the gateways, and how long they get.

use serde::{Deserialize, Serialize};
use wire::Suite;
use wire::overhead::{
    MACSEC_BYTES, MACSEC_SCI_BYTES, OPENVPN_BYTES, OPENVPN_PEER_BYTES, Outer, WIREGUARD_BYTES,
    WIREGUARD_PAD_TO_BYTES, inner_mtu, outer_bytes,
};

/// Encapsulation and suite of a DUT that encrypts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carrier {
    /// Form of the packets between the gateways.
    pub form: Form,
    /// Suite that seals them.
    pub suite: Suite,
    /// Whether they are in UDP; of the forms, ESP alone may be bare.
    pub udp: bool,
}

/// How sealed packets look between the gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// ESP (RFC 4303), in UDP (RFC 3948) or bare.
    Esp,
    /// WireGuard's transport data messages, in UDP.
    WireGuard,
    /// OpenVPN's data channel, in UDP.
    OpenVpn,
    /// MACsec (IEEE 802.1AE): Ethernet frames with a sealed payload.
    MacSec,
}

impl Form {
    /// Name in messages and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Esp => "ESP",
            Self::WireGuard => "WireGuard",
            Self::OpenVpn => "OpenVPN",
            Self::MacSec => "MACsec",
        }
    }
}

/// Required form of frames between the gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkForm {
    /// The form of a [`Carrier`].
    Sealed(Form),
    /// GRE (RFC 2784, RFC 2890), with IP packets or Ethernet frames inside: nothing is encrypted.
    Gre,
    /// L2TPv3 (RFC 3931), in UDP or bare: nothing is encrypted.
    L2tpv3,
    /// Any frames that show none of the stations' data.
    Opaque,
}

impl LinkForm {
    /// Name in messages, also as an attribute: `12 GRE frames`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sealed(form) => form.name(),
            Self::Gre => "GRE",
            Self::L2tpv3 => "L2TPv3",
            Self::Opaque => "opaque",
        }
    }

    /// Whether these frames hide their payload.
    #[must_use]
    pub const fn encrypts(self) -> bool {
        match self {
            // Of opaque frames the maker claims it; evidence shows that no data of the stations is
            // readable.
            Self::Sealed(_) | Self::Opaque => true,
            Self::Gre | Self::L2tpv3 => false,
        }
    }
}

/// No suite or program pads to more.
const PAD_TO_BYTES_MAX: usize = 16;

impl Carrier {
    /// Form and suite in words: `ESP (aes-256-gcm)`.
    #[must_use]
    pub fn in_words(self) -> String {
        format!("{} ({})", self.form.name(), self.suite)
    }

    /// Headers in front of the sealed packet.
    #[must_use]
    pub const fn outer(self) -> Outer {
        Outer {
            // The lab addresses the gateways by IPv4 alone.
            ipv6: false,
            udp: self.udp,
        }
    }

    /// Length of those headers; MACsec has none.
    #[must_use]
    pub const fn outer_header_bytes(self) -> usize {
        match self.form {
            Form::MacSec => 0,
            _ => self.outer().header_bytes(),
        }
    }

    /// The longest that an IP packet of `packet_bytes` gets on the cipher link.
    #[must_use]
    pub const fn cipher_packet_bytes(self, packet_bytes: usize) -> usize {
        let outer = self.outer_header_bytes();
        match self.form {
            Form::Esp => outer_bytes(self.suite, self.outer(), packet_bytes),
            Form::WireGuard => {
                // The longest: padding also ends at the MTU of the tunnel, which is not known
                // here.
                let padded = packet_bytes.next_multiple_of(WIREGUARD_PAD_TO_BYTES);
                outer + WIREGUARD_BYTES + padded
            }
            // The ciphers of the next two are AEADs, which need no padding.
            Form::OpenVpn => outer + OPENVPN_BYTES + packet_bytes,
            Form::MacSec => MACSEC_BYTES + packet_bytes,
        }
    }

    /// Least bytes that it adds to a packet after the outer headers. The padding of ESP is exact if
    /// the packet's length is known.
    #[must_use]
    pub(super) fn added_bytes_least(self, packet_bytes: Option<usize>) -> usize {
        let outer = self.outer_header_bytes();
        let added = |inner: usize| self.cipher_packet_bytes(inner) - inner - outer;
        match (self.form, packet_bytes) {
            // Padding of ESP follows from the length; WireGuard's depends on the MTU as well.
            (Form::Esp, Some(bytes)) => added(bytes),
            // The shortest header that the form permits: a box may send it.
            (Form::OpenVpn, _) => added(0) - OPENVPN_PEER_BYTES,
            (Form::MacSec, _) => added(0) - MACSEC_SCI_BYTES,
            // Padding repeats with the length, so these lengths include one without any.
            _ => (0..PAD_TO_BYTES_MAX).map(added).min().unwrap_or(0),
        }
    }

    /// The longest IP packet that a cipher link of that MTU carries whole.
    #[must_use]
    pub fn clear_mtu(self, cipher_mtu: u16) -> Option<usize> {
        let cipher_mtu = usize::from(cipher_mtu);
        let outer = self.outer_header_bytes();
        match self.form {
            Form::Esp => inner_mtu(self.suite, self.outer(), cipher_mtu),
            Form::WireGuard => {
                let room = cipher_mtu.checked_sub(outer + WIREGUARD_BYTES)?;
                // A longer packet would be padded to more than the room.
                Some(room - room % WIREGUARD_PAD_TO_BYTES)
            }
            Form::OpenVpn => cipher_mtu.checked_sub(outer + OPENVPN_BYTES),
            Form::MacSec => cipher_mtu.checked_sub(MACSEC_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clear_mtu_is_the_longest_that_fits() {
        for (form, udp) in [
            (Form::Esp, true),
            (Form::Esp, false),
            (Form::WireGuard, true),
            (Form::OpenVpn, true),
            (Form::MacSec, false),
        ] {
            let carrier = Carrier {
                form,
                suite: Suite::ChaCha20Poly1305,
                udp,
            };
            for cipher_mtu in 200..1600 {
                let clear = carrier.clear_mtu(cipher_mtu).unwrap();
                assert!(
                    carrier.cipher_packet_bytes(clear) <= usize::from(cipher_mtu),
                    "{form:?}"
                );
                assert!(
                    carrier.cipher_packet_bytes(clear + 1) > usize::from(cipher_mtu),
                    "{form:?}"
                );
            }
        }
    }
}

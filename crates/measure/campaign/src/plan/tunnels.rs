//! What other people's tunnels are told as devices under test, and what they make of packets.

use serde::{Deserialize, Serialize};
use wire::Suite;
use wire::overhead::{Outer, inner_mtu, outer_bytes};

/// A WireGuard tunnel between the gateways, its keys made anew for each start. ChaCha20-Poly1305 is the only suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireGuard {
    /// Which of them.
    pub program: WireGuardProgram,
}

/// Programs that speak WireGuard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireGuardProgram {
    /// The kernel's.
    Kernel,
    /// The one in Go, `wireguard-go`.
    Go,
    /// The first one in Rust, `boringtun-cli`, with one thread, which is its fastest with few cores.
    Boringtun,
    /// Its successor, `gotatun`.
    Gotatun,
}

impl WireGuardProgram {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::Go, Self::Boringtun, Self::Gotatun];

    /// As campaigns have it: the kind of DUT.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "wireguard",
            Self::Go => "wireguard-go",
            Self::Boringtun => "boringtun",
            Self::Gotatun => "gotatun",
        }
    }
}

/// IPsec by strongSwan: IKEv2 between two `charon`, secrets made anew for each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrongSwan {
    /// What seals and opens.
    pub data_path: DataPath,
    /// ESP suite.
    pub suite: Suite,
    /// How the gateways know one another.
    pub auth: IkeAuth,
    /// Whether a pre-shared key is mixed in against quantum computers (RFC 8784).
    pub ppk: bool,
    /// Whether ML-KEM-768 is added to the key exchange (RFC 9370), for which strongSwan 6 is needed.
    pub ml_kem: bool,
    /// Tunnels, each with SAs of its own under one IKE SA; 1 to [`TUNNELS_MAX`](Self::TUNNELS_MAX).
    #[serde(default = "one")]
    pub tunnels: u16,
}

const fn one() -> u16 {
    1
}

/// What seals and opens for strongSwan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataPath {
    /// The kernel's XFRM: bare ESP.
    Kernel,
    /// `kernel-libipsec`, in the daemon: for kernels without ESP. Its ESP is in UDP always.
    Libipsec,
}

impl DataPath {
    /// As campaigns have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Libipsec => "libipsec",
        }
    }
}

/// How IKEv2 peers know one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IkeAuth {
    /// A pre-shared key.
    Psk,
    /// Certificates of an authority of their own, ECDSA P-256.
    Certificates,
}

impl IkeAuth {
    /// As campaigns have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Psk => "psk",
            Self::Certificates => "certificates",
        }
    }
}

/// OpenVPN over UDP between two points, TLS with certificates that know one another's fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenVpn {
    /// Its data channel's cipher: one of the AEADs.
    pub suite: Suite,
}

/// What carries the packets of a DUT that encrypts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carrier {
    /// How they look between the gateways.
    pub form: Form,
    /// What seals them.
    pub suite: Suite,
    /// Whether they are in UDP; of the forms, ESP alone may be bare.
    pub udp: bool,
}

/// How sealed packets look between the gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// ESP (RFC 4303), in UDP (RFC 3948) or bare.
    Esp,
    /// WireGuard's transport data messages, in UDP.
    #[serde(rename = "wireguard")]
    WireGuard,
    /// OpenVPN's data channel, in UDP.
    #[serde(rename = "openvpn")]
    OpenVpn,
}

impl Form {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Esp => "ESP",
            Self::WireGuard => "WireGuard",
            Self::OpenVpn => "OpenVPN",
        }
    }
}

/// Type, receiver and counter in front, tag behind (WireGuard whitepaper §5.4.6).
const WIREGUARD_BYTES: usize = 16 + 16;
/// What WireGuard pads packets to, though never beyond the tunnel's MTU.
const WIREGUARD_PAD_TO_BYTES: usize = 16;
/// Opcode with peer id and packet id in front, and a tag (OpenVPN's `P_DATA_V2` with an AEAD).
const OPENVPN_BYTES: usize = 4 + 4 + 16;

impl Carrier {
    /// What stands in front of the sealed packet.
    #[must_use]
    pub const fn outer(self) -> Outer {
        Outer {
            ipv6: false,
            udp: self.udp,
        }
    }

    /// The longest that an IP packet of `packet_bytes` gets on the cipher link.
    #[must_use]
    pub const fn cipher_packet_bytes(self, packet_bytes: usize) -> usize {
        let outer = self.outer().header_bytes();
        match self.form {
            Form::Esp => outer_bytes(self.suite, self.outer(), packet_bytes),
            Form::WireGuard => {
                let padded = packet_bytes.next_multiple_of(WIREGUARD_PAD_TO_BYTES);
                outer + WIREGUARD_BYTES + padded
            }
            Form::OpenVpn => outer + OPENVPN_BYTES + packet_bytes,
        }
    }

    /// The longest IP packet that a cipher link of that MTU carries whole.
    #[must_use]
    pub fn clear_mtu(self, cipher_mtu: u16) -> Option<usize> {
        let cipher_mtu = usize::from(cipher_mtu);
        let outer = self.outer().header_bytes();
        match self.form {
            Form::Esp => inner_mtu(self.suite, self.outer(), cipher_mtu),
            Form::WireGuard => {
                let room = cipher_mtu.checked_sub(outer + WIREGUARD_BYTES)?;
                Some(room - room % WIREGUARD_PAD_TO_BYTES)
            }
            Form::OpenVpn => cipher_mtu.checked_sub(outer + OPENVPN_BYTES),
        }
    }
}

impl WireGuard {
    /// What carries its packets.
    #[must_use]
    pub const fn carrier(&self) -> Carrier {
        Carrier {
            form: Form::WireGuard,
            suite: Suite::ChaCha20Poly1305,
            udp: true,
        }
    }
}

impl StrongSwan {
    /// The longest packets that `kernel-libipsec` takes: its TUN buffer is no longer, whatever its MTU says.
    pub const LIBIPSEC_PACKET_BYTES_MAX: u16 = 1400;

    /// The most tunnels between two gateways.
    pub const TUNNELS_MAX: u16 = 1000;

    /// What carries its packets.
    #[must_use]
    pub const fn carrier(&self) -> Carrier {
        Carrier {
            form: Form::Esp,
            suite: self.suite,
            udp: matches!(self.data_path, DataPath::Libipsec),
        }
    }
}

impl OpenVpn {
    /// What carries its packets.
    #[must_use]
    pub const fn carrier(&self) -> Carrier {
        Carrier {
            form: Form::OpenVpn,
            suite: self.suite,
            udp: true,
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

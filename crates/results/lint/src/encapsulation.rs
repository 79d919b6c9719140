//! The overhead of tunnels, for the limit of a link behind them.

use std::mem::discriminant;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES};
use wire::Suite;
use wire::overhead::{
    GRE_HEADER_BYTES, IPV4_HEADER_BYTES, MACSEC_BYTES, MACSEC_SCI_BYTES, OPENVPN_BYTES,
    OPENVPN_PEER_BYTES, Outer, UDP_HEADER_BYTES, WIREGUARD_BYTES, outer_bytes,
};

/// The values that the key accepts, for messages.
pub(crate) const KNOWN: &str = "WireGuard, OpenVPN, MACsec, GRE, IPIP, `ESP` or `ESP in UDP`, also with a suite: \
                                `ESP aes-256-gcm`";
/// No suite pads to more.
const PAD_TO_BYTES_MAX: usize = 16;

/// An encapsulation as a report states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encapsulation {
    /// Its name as in the file.
    pub text: String,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Esp { udp: bool, suite: Option<Suite> },
    WireGuard,
    OpenVpn,
    MacSec,
    Gre,
    IpInIp,
}

impl Encapsulation {
    /// Reads the name of an encapsulation; `None` if unknown.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let form = match words.as_slice() {
            ["wireguard"] => Form::WireGuard,
            ["openvpn"] => Form::OpenVpn,
            ["macsec"] => Form::MacSec,
            ["gre"] => Form::Gre,
            ["ipip"] => Form::IpInIp,
            ["esp" | "ipsec", rest @ ..] => {
                let (udp, rest) = match rest {
                    ["in", "udp", rest @ ..] => (true, rest),
                    rest => (false, rest),
                };
                let suite = match rest {
                    [] => None,
                    [name] => Some(Suite::from_name(name)?),
                    _ => return None,
                };
                Form::Esp { udp, suite }
            }
            _ => return None,
        };
        Some(Self {
            text: text.trim().to_owned(),
            form,
        })
    }

    /// Returns the minimum overhead per IP packet over IPv4, in bytes. Without a length, the
    /// minimum is over all lengths.
    #[must_use]
    pub fn added_bytes_least(&self, packet_bytes: Option<usize>) -> usize {
        let outer = |udp| Outer { ipv6: false, udp };
        match self.form {
            Form::Esp { udp, suite } => {
                // Padding repeats with the block: the lengths of one block cover all cases.
                let lengths = match packet_bytes {
                    Some(bytes) => bytes..=bytes,
                    None => 0..=PAD_TO_BYTES_MAX - 1,
                };
                let added = |suite: Suite| {
                    let lengths = lengths.clone();
                    lengths
                        .map(|inner| outer_bytes(suite, outer(udp), inner) - inner)
                        .min()
                };
                let suites = Suite::ALL.into_iter().filter(|one| match suite {
                    Some(stated) => *one == stated,
                    // Without a suite only suites that encrypt count. A suite for integrity alone
                    // adds less and would raise the ceiling.
                    None => one.encrypts(),
                });
                suites.filter_map(added).min().unwrap_or(0)
            }
            // Padding ends at the tunnel's MTU, so a full packet may have none.
            Form::WireGuard => outer(true).header_bytes() + WIREGUARD_BYTES,
            Form::OpenVpn => outer(true).header_bytes() + OPENVPN_BYTES - OPENVPN_PEER_BYTES,
            Form::MacSec => MACSEC_BYTES - MACSEC_SCI_BYTES,
            Form::Gre => IPV4_HEADER_BYTES + GRE_HEADER_BYTES,
            Form::IpInIp => IPV4_HEADER_BYTES,
        }
    }

    /// Whether both are the same protocol, with any suites.
    pub(crate) fn is_kind_of(&self, other: &Self) -> bool {
        discriminant(&self.form) == discriminant(&other.form)
    }

    /// Returns the minimum overhead per frame of this size in bytes, FCS included.
    #[must_use]
    pub(crate) fn added_to_frame(&self, frame: f64) -> f64 {
        let packet = frame - (HEADER_BYTES + FCS_BYTES) as f64;
        // The mean of a mix is no length of a packet, so it gets the least padding of all lengths.
        let is_length = packet >= 0.0 && packet.fract().abs() < f64::EPSILON;
        let exact = is_length.then_some(packet as usize);
        self.added_bytes_least(exact) as f64
    }
}

/// Headers of IPv4 with UDP, without options.
pub(crate) const UDP_HEADERS_BYTES: f64 = (IPV4_HEADER_BYTES + UDP_HEADER_BYTES) as f64;

/// First words of the names that rows and columns have for the link without a tunnel.
const WITHOUT: [&str; 10] = [
    "bare",
    "baseline",
    "clear",
    "cleartext",
    "direct",
    "no",
    "none",
    "plain",
    "unencrypted",
    "without",
];

/// Words for what a device does with clear traffic, in data sheets that list its tunnels too.
const CLEAR: [&str; 12] = [
    "firewall",
    "firewalling",
    "forwarding",
    "ids",
    "inspection",
    "ips",
    "nat",
    "ngfw",
    "router",
    "routing",
    "switching",
    "threat",
];

/// Whether a row or column is of the link without a tunnel: `direct`, `no encryption`, `firewall
/// throughput`.
pub(crate) fn is_without_tunnel(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = || {
        let words = name.split(|is: char| !is.is_alphanumeric());
        words.filter(|word| !word.is_empty())
    };
    let is_stated = words().next().is_some_and(|first| WITHOUT.contains(&first));
    is_stated || words().any(|word| CLEAR.contains(&word)) && !names_tunnel(&name)
}

/// Whether a name is of the link without a tunnel and of nothing else. Stricter than
/// [`is_without_tunnel`]: a baseline may be an older version, and `plain OpenVPN` a tunnel.
pub(crate) fn is_bare_link(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = name.split(|is: char| !is.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] => false,
        [word] => BARE.contains(word),
        [first, rest @ ..] => {
            let is_bare = BARE.contains(first) && rest.iter().all(|it| PATH.contains(it));
            let is_without =
                ["no", "without"].contains(first) && rest.iter().all(|it| PROTECTION.contains(it));
            is_bare || is_without
        }
    }
}

/// Words for a path without a tunnel …
const BARE: [&str; 7] = [
    "bare",
    "clear",
    "cleartext",
    "direct",
    "plain",
    "plaintext",
    "unencrypted",
];
/// … that may precede these …
const PATH: [&str; 6] = ["connection", "ip", "line", "link", "path", "traffic"];
/// … and what it is without.
const PROTECTION: [&str; 7] = [
    "a",
    "device",
    "encryption",
    "encryptor",
    "ipsec",
    "tunnel",
    "vpn",
];

/// Whether a name is of any tunnel: `IPsec VPN throughput`.
pub(crate) fn names_tunnel(name: &str) -> bool {
    let lower = name.to_lowercase();
    let mut words = lower.split(|is: char| !is.is_alphanumeric());
    named_in(name).is_some() || words.any(|word| ["vpn", "tunnel", "tunnels"].contains(&word))
}

/// Names of tunnels in tables that state no encapsulation, and the encapsulation to propose.
const TUNNELS: [(&str, &str); 5] = [
    ("wireguard", "WireGuard"),
    ("ipsec", "ESP"),
    ("openvpn", "OpenVPN"),
    ("macsec", "MACsec"),
    ("strongswan", "ESP"),
];

/// Returns the encapsulation of a tunnel that a heading names.
pub(crate) fn named_in(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let found = TUNNELS.iter().find(|(name, _)| text.contains(name));
    let found = found.map(|(_, encapsulation)| *encapsulation);
    let mut words = text.split(|is: char| !is.is_alphanumeric());
    // A word: `response` names no tunnel.
    found.or_else(|| words.any(|word| word == "esp").then_some("ESP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_link_has_names_of_its_own() {
        for name in ["plain", "Direct link", "no encryption", "without a VPN"] {
            assert!(is_bare_link(name), "{name}");
        }
        for name in ["plain OpenVPN", "baseline", "no NAT", "direct I/O", ""] {
            assert!(!is_bare_link(name), "{name}");
        }
    }

    #[test]
    fn the_least_added_bytes_are_those_of_the_formats() {
        let added = |text: &str, packet| {
            Encapsulation::parse(text).map(|it| it.added_bytes_least(Some(packet)))
        };
        // Outer IPv4 and UDP, 16 bytes in front, 16 behind.
        assert_eq!(added("WireGuard", 1420), Some(60));
        // Outer IPv4, 8 + 8, 1404 for 1400 + 2, 16.
        assert_eq!(added("ESP aes-256-gcm", 1400), Some(56));
        assert_eq!(added("ESP in UDP aes-256-gcm", 1400), Some(64));
        assert_eq!(added("GRE", 1400), Some(24));
        assert_eq!(added("MACsec", 1400), Some(24));
        // Without a suite: the smallest of any that encrypts.
        let any = added("ESP", 1400).unwrap();
        assert!((20 + 8 + 2..=56).contains(&any), "{any}");
        assert_eq!(added("ESP rot13", 1400), None);
        assert_eq!(added("tunnel", 1400), None);
    }
}

//! The keys to open the sealed packets of a DUT with keys from the lab.

use keying::{ObserverKeys, Side};
use plan::Encryptor;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use wire::l2tp::IpSession;

/// Keys of the built-in encryptor's tunnels, and the properties of its packets. The keys are wiped
/// when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct TunnelKeys {
    /// The keys of both gateways, in all epochs.
    pub keys: Arc<ObserverKeys>,
    /// Suite, lanes, tunnels and payload.
    pub encryptor: Encryptor,
    /// Outer addresses of gw1 and gw2, or of the station that replaces a gateway, at gw1's end of
    /// the cipher link; and, with a NAT between, also the addresses at gw2's end. gw1 is side a.
    pub gateways: Vec<[Ipv4Addr; 2]>,
    /// UDP port of lane 0.
    pub port: u16,
    /// Sessions that gw1 and gw2 send in, for a pseudowire payload.
    pub sessions: [IpSession; 2],
    /// Networks of the stations behind gw1 and behind gw2, including their test networks.
    pub networks: [Vec<Network>; 2],
}

impl TunnelKeys {
    /// Whether a packet that `sender` sealed is from that side's station to the other one.
    #[must_use]
    pub fn is_between_stations(&self, sender: Side, [source, target]: [IpAddr; 2]) -> bool {
        let [a, b] = &self.networks;
        let (own, other) = match sender {
            Side::A => (a, b),
            Side::B => (b, a),
        };
        let is_in = |networks: &[Network], address| networks.iter().any(|it| it.contains(address));
        is_in(own, source) && is_in(other, target)
    }
}

/// An IP network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

impl Network {
    /// Parses an address with a prefix length: `10.1.0.0/24`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix_bits) = text.split_once('/')?;
        let (address, prefix_bits) = (address.parse().ok()?, prefix_bits.parse().ok()?);
        let (_, bits) = number(address);
        (prefix_bits <= bits).then_some(Self {
            address,
            prefix_bits,
        })
    }

    /// Whether the network contains the address.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let ((own, bits), (other, other_bits)) = (number(self.address), number(address));
        let differs = (own ^ other).checked_shr(bits - self.prefix_bits);
        bits == other_bits && differs.unwrap_or(0) == 0
    }
}

/// Returns an address as a number, and its length in bits.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u32::from(address).into(), u32::BITS),
        IpAddr::V6(address) => (address.into(), u128::BITS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_of_its_prefix() {
        for (network, inside, outside) in [
            ("10.1.0.0/24", "10.1.0.255", "10.1.1.0"),
            ("198.18.0.0/16", "198.18.255.1", "198.19.0.1"),
            ("192.0.2.7/32", "192.0.2.7", "192.0.2.6"),
            ("2001:2:0:12::/64", "2001:2:0:12:ff::1", "2001:2:0:13::1"),
            ("0.0.0.0/0", "203.0.113.1", "::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            let network = Network::parse(network).unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{outside}");
        }
        for text in ["10.1.0.0", "10.1.0.0/33", "10.1/16", "::/129", "10.1.0.0/x"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
    }
}

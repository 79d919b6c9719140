//! The keys to open the sealed packets of a DUT with keys from the lab.

use journal::record::OpenedPackets;
use keying::{ObserverKeys, Side};
use plan::{Encryptor, Mode};
use std::net::{IpAddr, Ipv4Addr};
use testbed::TunnelKeys;
use traffic::{Payload, Tunnels, Witness};
use wire::Suite;
use wire::l2tp::IpSession;
use zeroize::Zeroizing;

/// The built-in encryptor's tunnels with static keys, and the properties of their packets. The keys
/// are wiped on drop.
#[derive(Debug)]
pub struct StaticTunnels {
    /// The keys of both gateways, in all epochs.
    pub keys: ObserverKeys,
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

impl StaticTunnels {
    /// Whether a packet that `sender` sealed is from that side's station to the other one.
    fn is_between_stations(&self, sender: Side, [source, target]: [IpAddr; 2]) -> bool {
        let [a, b] = &self.networks;
        let (own, other) = match sender {
            Side::A => (a, b),
            Side::B => (b, a),
        };
        let is_in = |networks: &[Network], address| networks.iter().any(|it| it.contains(address));
        is_in(own, source) && is_in(other, target)
    }

    /// The side that sends packets with these outer addresses.
    fn sender(&self, outer: [IpAddr; 2]) -> Option<Side> {
        self.gateways.iter().find_map(|&ends| {
            let [gw1, gw2] = ends.map(IpAddr::from);
            let sides = [([gw1, gw2], Side::A), ([gw2, gw1], Side::B)];
            // A NAT changes one of the addresses, so that each end of the link is compared.
            let mut sides = sides.into_iter().filter(|(ends, _)| *ends == outer);
            sides.next().map(|(_, side)| side)
        })
    }

    fn format(&self) -> Tunnels {
        let encryptor = &self.encryptor;
        let gateways = self.gateways.iter();
        let gateways = gateways.map(|ends| ends.map(IpAddr::from));
        Tunnels {
            suite: encryptor.suite,
            gateways: gateways.collect(),
            port: self.port,
            lanes: encryptor.workers,
            tunnels: encryptor.tunnels,
            payload: match encryptor.mode {
                Mode::L3 => Payload::Ip {
                    aggregates: encryptor.aggregate,
                },
                Mode::L2 => Payload::Ethernet,
                Mode::L2tpv3 | Mode::L2tpv3Clear => Payload::Pseudowire(self.sessions),
            },
        }
    }
}

impl TunnelKeys for StaticTunnels {
    fn suite(&self) -> Suite {
        self.encryptor.suite
    }

    fn keymat(&self, outer: [IpAddr; 2], spi: u32) -> Option<Zeroizing<Vec<u8>>> {
        let sender = self.sender(outer)?;
        // Inbound at the receiver: a packet is sealed and opened with the same keys.
        let keys = self.keys.inbound(self.suite(), sender, spi)?;
        Some(keys.keymat)
    }

    fn open(&self, packets: &[Vec<u8>]) -> Result<OpenedPackets, String> {
        let mut result = OpenedPackets {
            packets: packets.len() as u64,
            ..OpenedPackets::default()
        };
        if packets.is_empty() {
            return Ok(result);
        }
        // Built here and not kept, because only samples of a few packets are opened.
        let witness = Witness::new(&self.keys, self.format()).map_err(|error| error.to_string())?;
        for packet in packets {
            match witness.open(packet) {
                Ok(content) => {
                    result.opened += 1;
                    // A sealed packet may contain several.
                    let mut packets = content.packets.into_iter();
                    let is_theirs = |ends| self.is_between_stations(content.sender, ends);
                    result.between_stations += u64::from(packets.any(is_theirs));
                }
                Err(refusal) => *result.refused.entry(refusal.name().to_owned()).or_default() += 1,
            }
        }
        Ok(result)
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
        // For `::/0` the shift takes all bits and yields `None`: every address is inside.
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

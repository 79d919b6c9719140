//! Addresses and ports of the peers.

use crate::error::PeersError;
use crate::sockets::Sockets;
use crate::spec::{Sources, Spec};
use ike::session::Path;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Descriptors needed in addition to the sockets.
const OTHER_DESCRIPTORS: u64 = 64;

/// Addresses and ports of the peers, with open sockets.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    first: IpAddr,
    /// The port of first messages, or the first of many.
    port: u16,
    /// Peers of one address, each with another port.
    ports: u32,
    remote: SocketAddr,
    /// The peers' port that IKE shares with ESP; 0 if each peer has one port for everything.
    pub(crate) nat_port: u16,
}

/// The address `count` places after another; `None` after the last of the family.
pub(crate) fn after(first: IpAddr, count: u32) -> Option<IpAddr> {
    Some(match first {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits().checked_add(count)?).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits().checked_add(count.into())?).into(),
    })
}

impl Places {
    /// Opens the sockets that the spec needs.
    pub(crate) fn open(spec: &Spec) -> Result<(Self, Sockets), PeersError> {
        let (first, addresses, ports) = match spec.sources {
            Sources::Addresses { first, count, .. } => (first, count, 1),
            Sources::Ports {
                address,
                addresses,
                count,
                ..
            } => (address, addresses, u32::from(count)),
        };
        let pairs = u64::from(addresses) * u64::from(ports);
        if pairs < u64::from(spec.peers) || spec.peers == 0 {
            let peers = spec.peers;
            return Err(PeersError::Sources { peers, pairs });
        }
        if first.is_ipv4() != spec.gateway.is_ipv4() {
            return Err(PeersError::Value(format!(
                "the peers' first address, {first}, and the gateway, {}, are of two families",
                spec.gateway
            )));
        }
        // Only those in use: the rest may not exist.
        let last = after(first, spec.peers.div_ceil(ports) - 1).ok_or_else(|| {
            PeersError::Value(format!("{addresses} addresses from {first} do not exist"))
        })?;
        for address in [first, last] {
            // A datagram of another source would be refused by the kernel, again and again.
            let address = SocketAddr::new(address, 0);
            UdpSocket::bind(address).map_err(|source| PeersError::Address { address, source })?;
        }
        let numbers = match spec.sources {
            Sources::Addresses { port, nat_port, .. } => vec![port, nat_port],
            Sources::Ports { first, count, .. } => {
                let wanted = u32::from(count).min(spec.peers);
                let last = u32::from(first) + wanted - 1;
                if first == 0 || last > u16::MAX.into() {
                    return Err(PeersError::Value(format!(
                        "ports {first} to {last} do not exist"
                    )));
                }
                // A peer with this port would change to another one behind a NAT.
                if (u32::from(first)..=last).contains(&spec.port.into()) {
                    return Err(PeersError::Value(format!(
                        "ports {first} to {last} contain the gateway's port {}; use others",
                        spec.port
                    )));
                }
                (first..=last as u16).collect()
            }
        };
        raise_descriptors(numbers.len() as u64)?;
        let any = match first {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let sockets = Sockets::open(any, &numbers)?;
        let bound = sockets.ports();
        let nat_port = match spec.sources {
            Sources::Addresses { .. } => bound[1],
            Sources::Ports { .. } => 0,
        };
        let places = Self {
            first,
            port: bound[0],
            ports,
            remote: SocketAddr::new(spec.gateway, spec.port),
            nat_port,
        };
        Ok((places, sockets))
    }

    /// The path of a peer's first messages.
    pub(crate) fn path(&self, peer: u32) -> Path {
        let address = after(self.first, peer / self.ports).unwrap_or(self.first);
        let port = self.port + (peer % self.ports) as u16;
        Path {
            local: SocketAddr::new(address, port),
            remote: self.remote,
        }
    }
}

fn raise_descriptors(ports: u64) -> Result<(), PeersError> {
    let failed = PeersError::system("raise the limit of file descriptors");
    let limits = getrlimit(Resource::RLIMIT_NOFILE);
    let (soft, limit) = limits.map_err(|errno| failed(errno.into()))?;
    let needed = ports + OTHER_DESCRIPTORS;
    if soft >= needed {
        return Ok(());
    }
    if limit < needed {
        return Err(PeersError::Descriptors {
            ports,
            needed,
            limit,
        });
    }
    let failed = PeersError::system("raise the limit of file descriptors");
    setrlimit(Resource::RLIMIT_NOFILE, limit, limit).map_err(|errno| failed(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_counted_across_octets_and_end_with_the_family() {
        let at = |first: &str, count| after(first.parse().unwrap(), count).map(|it| it.to_string());
        assert_eq!(at("10.0.0.255", 1).as_deref(), Some("10.0.1.0"));
        assert_eq!(at("2001:db8::ffff", 1).as_deref(), Some("2001:db8::1:0"));
        assert_eq!(at("255.255.255.255", 1), None);
    }
}

//! Opens the ports: per lane one UDP socket for all peers, and one TUN queue for all tunnels.

use super::error::ServiceError;
use crate::config::{Config, MTU_MIN, Peer, Remotes, Tunnel};
use crate::tunnel;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use port::{LinkOffloads, LinkPort, Tun, TunOffloads, TunSettings, UdpLane};
use std::io;
use std::net::{IpAddr, SocketAddr};
use wire::aggfrag;
use wire::overhead::{self, Outer};

/// Raises the limit of descriptors to the maximum: each key file keeps one open.
pub(super) fn allow_descriptors() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A descriptor beyond the limit is refused when it is opened.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Binds each lane's socket.
pub(super) fn open_lanes(config: &Config, remotes: &Remotes) -> Result<Vec<UdpLane>, ServiceError> {
    (0..config.workers)
        .map(|lane| open_lane(config, remotes, lane))
        .collect()
}

fn open_lane(config: &Config, remotes: &Remotes, lane: u16) -> Result<UdpLane, ServiceError> {
    // `Config` has checked that the last lane's port does not wrap.
    let at = |port: u16| port + lane;
    let local = SocketAddr::new(config.local, at(config.port));
    let peers: Vec<_> = remotes
        .addresses
        .iter()
        .map(|remote| SocketAddr::new(remote.ip(), at(remote.port())))
        .collect();
    UdpLane::open(local, &peers, config.offloads.udp).map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another process has this port; stop it or choose another `port`"
            }
            io::ErrorKind::AddrNotAvailable => "`local` must be an address of this host",
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 need root, and a broadcast address is not a valid peer"
            }
            _ => "`remote` must be reachable: see `ip route get`",
        };
        let peers = match &peers[..] {
            [only] => only.to_string(),
            _ => format!("{} peers", peers.len()),
        };
        ServiceError::Lane {
            lane,
            local,
            peers,
            error,
            help,
        }
    })
}

/// Returns the MTU of the route to each peer: the length of the longest outer IP packet in bytes.
pub(super) fn path_mtus(remotes: &Remotes, lanes: &[UdpLane]) -> Result<Vec<usize>, ServiceError> {
    let mtus = (0..).zip(&remotes.addresses).map(|(number, remote)| {
        let remote = remote.ip();
        // Lanes differ in their ports, not in their routes.
        let mtu = lanes[0].path_mtu(number);
        let mtu = mtu.map_err(|error| ServiceError::NoRoute { remote, error })?;
        // The limit of IP packets; an interface (loopback) may report more.
        Ok(mtu.min(usize::from(u16::MAX)))
    });
    let mtus: Vec<_> = mtus.collect::<Result<_, ServiceError>>()?;
    let of_peer = remotes.of_peer.iter();
    Ok(of_peer.map(|number| mtus[usize::from(*number)]).collect())
}

/// MTUs in [`Mode::L3`](crate::config::Mode::L3).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InnerMtus {
    /// MTU of the interface.
    pub(super) interface: u16,
    /// MTU of each tunnel: not larger than the interface's.
    pub(super) tunnels: Vec<u16>,
    /// Length of the longest ESP payload of each tunnel.
    pub(super) payloads: Vec<u16>,
}

/// Returns the interface's MTU as configured, or the smallest that the peers' paths allow. A
/// configured MTU may exceed some paths, and their senders are informed, but not all of them.
///
/// With aggregation the smallest leaves room for AGGFRAG's header, so that no packet is divided.
/// Payloads fit the path, and are no longer than the interface's longest packet requires: the MTU
/// may be configured for a later link.
pub(super) fn inner_mtus(
    config: &Config,
    tunnel: &Tunnel,
    path_mtus: &[usize],
) -> Result<InnerMtus, ServiceError> {
    let outer = Outer {
        ipv6: config.local.is_ipv6(),
        udp: true,
    };
    let fits =
        |path_mtu: usize| overhead::inner_mtu(config.suite, outer, path_mtu).unwrap_or(0) as u16;
    let paths: Vec<Path<'_>> = config
        .peers
        .iter()
        .zip(path_mtus)
        .map(|(peer, path_mtu)| Path {
            peer,
            path_mtu: *path_mtu,
            inner: fits(*path_mtu),
        })
        .collect();
    // A configured MTU must fit at least one path; the default one fits all.
    let widest = paths.iter().max_by_key(|path| path.inner);
    let narrowest = paths.iter().min_by_key(|path| path.inner);
    let (Some(widest), Some(narrowest)) = (widest, narrowest) else {
        unreachable!("a configuration has a peer");
    };
    let header = if config.aggregate {
        aggfrag::HEADER_BYTES as u16
    } else {
        0
    };
    if narrowest.inner < MTU_MIN + header {
        return Err(narrowest.too_narrow(MTU_MIN + header));
    }
    let interface = tunnel.mtu.unwrap_or(narrowest.inner - header);
    if interface > widest.inner {
        return Err(widest.too_narrow(interface));
    }
    let longest = interface.saturating_add(header);
    Ok(InnerMtus {
        interface,
        tunnels: paths.iter().map(|path| path.inner.min(interface)).collect(),
        payloads: paths.iter().map(|path| path.inner.min(longest)).collect(),
    })
}

/// The path to a peer.
struct Path<'c> {
    peer: &'c Peer,
    path_mtu: usize,
    /// Length of the longest inner packet that it carries.
    inner: u16,
}

impl Path<'_> {
    fn too_narrow(&self, mtu: u16) -> ServiceError {
        let help = if self.inner >= MTU_MIN {
            format!(
                "write `mtu: {} B` or `mtu: auto`, or raise the MTU of the link",
                self.inner
            )
        } else {
            "raise the MTU of the link".to_owned()
        };
        ServiceError::PathMtu {
            mtu,
            remote: self.peer.remote.ip(),
            path_mtu: self.path_mtu,
            help,
        }
    }
}

/// A TUN interface that is up, and its features.
pub(super) struct OpenTun {
    /// One queue per lane.
    pub(super) queues: Vec<Tun>,
    pub(super) offloads: TunOffloads,
    /// Whether both directions of a flow use the same lane.
    pub(super) steered: bool,
}

/// Creates the interface with its address and the routes of all tunnels.
pub(super) fn open_tun(
    config: &Config,
    tunnel: &Tunnel,
    mtus: &InnerMtus,
) -> Result<OpenTun, ServiceError> {
    let settings = TunSettings {
        name: &tunnel.name,
        queues: usize::from(config.workers),
    };
    let mut queues = Tun::create(&settings)?;
    // One queue needs no steering.
    let steered = match &queues[..] {
        [several, _, ..] => several.steer_flows().is_ok(),
        _ => true,
    };
    tunnel::set_up(tunnel, &config.peers, &mtus.tunnels, mtus.interface)?;
    let wanted = config.offloads.tun;
    let granted = queues
        .iter_mut()
        .map(|queue| queue.enable_offloads(wanted))
        .last();
    Ok(OpenTun {
        queues,
        offloads: granted.unwrap_or(wanted),
        steered,
    })
}

/// Opens a host interface for its frames. Datagrams that exceed the path's MTU are then fragmented.
pub(super) fn open_link(
    config: &Config,
    interface: &str,
    lanes: &mut [UdpLane],
) -> Result<Vec<LinkPort>, ServiceError> {
    // Before the interface is opened, which ends its traffic with the host.
    refuse_own_interface(config, interface)?;
    for lane in lanes {
        lane.set_fragment(true).map_err(ServiceError::Resources)?;
    }
    let wanted = LinkOffloads {
        tso: config.offloads.tun.tso,
        uso: config.offloads.tun.uso,
    };
    Ok(LinkPort::open(
        interface,
        usize::from(config.workers),
        wanted,
    )?)
}

/// The host no longer receives from the interface, so `local` must not be its address.
fn refuse_own_interface(config: &Config, interface: &str) -> Result<(), ServiceError> {
    let addresses = nix::ifaddrs::getifaddrs()
        .map_err(|error| ServiceError::Resources(io::Error::from(error)))?;
    let mut own = addresses
        .filter(|entry| entry.interface_name == interface)
        .filter_map(|entry| entry.address);
    let local = own.any(|address| match config.local {
        IpAddr::V4(local) => address
            .as_sockaddr_in()
            .is_some_and(|own| own.ip() == local),
        IpAddr::V6(local) => address
            .as_sockaddr_in6()
            .is_some_and(|own| own.ip() == local),
    });
    if local {
        return Err(ServiceError::OwnInterface {
            interface: interface.to_owned(),
            local: config.local,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;

    #[test]
    fn tunnels_to_one_address_share_a_peer_and_a_path() {
        let peer = |remote: &str, network: u8| {
            format!(
                "- {{ remote: {remote}, keys: {{ static: k{network}.key }}, routes: [10.{network}.0.0/24] }}\n"
            )
        };
        let peers = [
            peer("127.0.0.3", 1),
            peer("127.0.0.2", 2),
            peer("127.0.0.3", 3),
        ];
        let text = format!("local: 127.0.0.1\nport: 14531\npeers:\n{}", peers.concat());
        let config = Config::from_text("gw1.yaml", &text).unwrap();
        let remotes = config.remotes();
        let addresses = remotes.addresses.iter().map(ToString::to_string);
        let expected = ["127.0.0.3:14531", "127.0.0.2:14531"];
        assert!(addresses.eq(expected), "{remotes:?}");
        assert_eq!(remotes.of_peer, [0, 1, 0]);
        let lanes = open_lanes(&config, &remotes).unwrap();
        assert_eq!(path_mtus(&remotes, &lanes).unwrap(), [65_535; 3]);
    }

    fn mtus(tunnel_mtu: &str, path_mtus: &[usize]) -> Result<InnerMtus, ServiceError> {
        mtus_with("off", tunnel_mtu, path_mtus)
    }

    fn mtus_with(
        aggregate: &str,
        tunnel_mtu: &str,
        path_mtus: &[usize],
    ) -> Result<InnerMtus, ServiceError> {
        let text = format!(
            "local: 192.0.2.1\n\
             aggregate: {aggregate}\n\
             tunnel: {{ mtu: {tunnel_mtu} }}\n\
             peers:\n\
             - {{ remote: 192.0.2.2, keys: {{ static: a.key }}, routes: [10.2.0.0/24] }}\n\
             - {{ remote: 192.0.2.3, keys: {{ static: b.key }}, routes: [10.3.0.0/24] }}\n"
        );
        let config = Config::from_text("gw1.yaml", &text).unwrap();
        let Mode::L3(tunnel) = &config.mode else {
            panic!("{:?}", config.mode)
        };
        inner_mtus(&config, tunnel, path_mtus)
    }

    #[test]
    fn the_interface_gets_the_smallest_mtu_of_all_paths_unless_configured() {
        let found = mtus("auto", &[1500, 1400]).unwrap();
        assert_eq!(
            (found.interface, &found.tunnels[..]),
            (1338, &[1338, 1338][..])
        );
        // Larger than one path's MTU; senders on that path are informed.
        let found = mtus("1438 B", &[1500, 1400]).unwrap();
        assert_eq!(
            (found.interface, &found.tunnels[..]),
            (1438, &[1438, 1338][..])
        );
    }

    #[test]
    fn packets_of_the_automatic_mtu_fit_an_aggregate_as_a_whole() {
        for (mtu, interface, tunnels, payloads) in [
            ("auto", 1334, [1334, 1334], [1338, 1338]),
            // These are divided.
            ("1438 B", 1438, [1438, 1338], [1438, 1338]),
            ("1000 B", 1000, [1000, 1000], [1004, 1004]),
        ] {
            let found = mtus_with("on", mtu, &[1500, 1400]).unwrap();
            let expected = InnerMtus {
                interface,
                tunnels: tunnels.to_vec(),
                payloads: payloads.to_vec(),
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_mtu_that_no_path_allows_is_refused_with_the_largest() {
        let message = mtus("1439 B", &[1500, 1400]).unwrap_err().to_string();
        assert!(
            message.contains("the route to 192.0.2.2, which takes 1500 B"),
            "{message}"
        );
        assert!(message.contains("write `mtu: 1438 B`"), "{message}");
        let message = mtus("auto", &[1500, 600]).unwrap_err().to_string();
        assert!(
            message.contains("the route to 192.0.2.3, which takes 600 B"),
            "{message}"
        );
    }
}

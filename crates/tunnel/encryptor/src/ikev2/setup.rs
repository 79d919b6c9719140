//! IKE's setup, read before privileges are dropped.

use super::certificates;
use super::children::{Change, Children};
use super::error::SetupError;
use super::names::shown;
use super::order::Order;
use super::peer::{Peer, Wanted};
use super::thread::{self, Sockets, Thread};
use crate::config::{Config, Ike, Peer as Configured};
use crate::ike_suite::child_cipher;
use crate::lane::Marked;
use crate::policy::Selectors;
use crate::privileges::InForce;
use crate::renewal::{self, Renewer};
use crate::shared_keys::SharedKeys;
use crate::status::Status;
use guard::Writers;
use ike::crypto::{Cipher, Secret};
use ike::message::AddressRange;
use ike::session::{
    Authentication, ChildSpis, ChildSuite, IkeSuite, Lifetimes, Path, Ppk, PpkPolicy,
    Retransmission, Settings, Transport,
};
use keying::message::Cause;
use keying::{ChildSas, KeyError, Keys, LANES_MAX, PpkFile};
use port::UdpLane;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::Suite;
use yaml::Prefix;

/// Content of a datagram: fits the smallest MTU of IPv6 with the headers and the marker.
const DATAGRAM: usize = 1200;
/// Child SAs that a peer may create; one is in use, and two while keys change.
const CHILDREN_MAX: usize = 4;
/// A peer that does not answer for 16 s in all is gone.
const RETRANSMISSION: Retransmission = Retransmission {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(4),
    repetitions: 5,
};

/// Sockets, secrets and keys of all tunnels with IKE.
pub(crate) struct IkeSetup {
    sockets: Sockets,
    marked: Marked,
    orders: Arc<UnixDatagram>,
    tunnels: Vec<Tunnel>,
    suite: Suite,
}

struct Tunnel {
    place: u16,
    id: u16,
    name: String,
    settings: Settings,
    ike: Ike,
    path: Path,
    keys: SharedKeys,
}

impl IkeSetup {
    /// Reads the secrets, and binds IKE's port; `None` if no tunnel has IKE.
    pub(crate) fn open(
        config: &Config,
        writers: &Writers,
        lanes: &[UdpLane],
    ) -> Result<Option<Self>, SetupError> {
        let mut tunnels = Vec::new();
        for (place, peer, ike) in config.ikes() {
            let at = |ip, port| SocketAddr::new(ip, port);
            tunnels.push(Tunnel {
                place,
                id: peer.id,
                name: shown(&ike.peer),
                settings: settings(config, peer, ike, writers)?,
                ike: ike.clone(),
                path: Path {
                    local: at(config.local, config.ike_port),
                    remote: at(peer.remote.ip(), config.ike_port),
                },
                keys: Arc::new(Mutex::new(Keys::from(ChildSas::new()))),
            });
        }
        // A tunnel with IKE has one lane.
        let Some(lane) = lanes.first().filter(|_| !tunnels.is_empty()) else {
            return Ok(None);
        };
        let address = SocketAddr::new(config.local, config.ike_port);
        let bound = || {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let first = bound().map_err(|error| SetupError::Port { address, error })?;
        let resources = SetupError::Resources;
        let (written, read) = UnixDatagram::pair().map_err(resources)?;
        for end in [&written, &read] {
            end.set_nonblocking(true).map_err(resources)?;
        }
        let orders = Arc::new(written);
        Ok(Some(Self {
            sockets: Sockets {
                first,
                shared: lane.second_handle().map_err(resources)?,
                read,
                // Then only this peer's datagrams arrive at the lane's port.
                only_peer: config.remotes().addresses.len() == 1,
                local: SocketAddr::new(config.local, config.port),
            },
            marked: Marked::new(Arc::clone(&orders)),
            orders,
            tunnels,
            suite: config.suite,
        }))
    }

    /// The lanes' end of the socket for messages of IKE.
    pub(crate) fn marked(&self) -> Marked {
        self.marked.clone()
    }

    /// The keys of each tunnel, still empty, with the place of its peer.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (u16, SharedKeys)> + '_ {
        let tunnels = self.tunnels.iter();
        tunnels.map(|tunnel| (tunnel.place, Arc::clone(&tunnel.keys)))
    }

    /// Starts the thread; all lanes must exist. The second result requests new keys.
    pub(crate) fn start(
        self,
        renewer: &Renewer,
        status: &Arc<Status>,
        in_force: InForce,
    ) -> Result<(Thread, renewal::Control), SetupError> {
        let named = self.tunnels.iter().map(|it| (it.id, it.name.clone()));
        status.ike().set_tunnels(named);
        let places: Vec<u16> = self.tunnels.iter().map(|it| it.place).collect();
        let mut peers = Vec::new();
        for (number, tunnel) in self.tunnels.into_iter().enumerate() {
            let (switchboard, place) = (renewer.switchboard(), tunnel.place);
            let inform = move |change| match change {
                Change::Switched => switchboard.switched(place),
                Change::Retired => switchboard.retired(place),
                Change::Expired => switchboard.expired(place),
            };
            let children = Children::new(tunnel.keys, self.suite, inform);
            let wanted = Wanted {
                number,
                role: tunnel.ike.role,
                path: tunnel.path,
            };
            let peer = Peer::new(wanted, tunnel.settings, children, Arc::clone(status));
            peers.push(peer.ok_or(KeyError::NoRandomness)?);
        }
        let thread = thread::start(peers, self.sockets, Arc::clone(&self.orders), in_force);
        let thread = thread.map_err(SetupError::Resources)?;
        let orders = self.orders;
        let ask = move |place: Option<u16>, cause| {
            let rekey = match cause {
                // Forged packets must not cost exchanges of keys.
                Cause::Desync => Order::Probe,
                _ => Order::Rekey,
            };
            let numbers = (0..).zip(&places);
            for (number, _) in numbers.filter(|(_, at)| place.is_none_or(|it| it == **at)) {
                rekey.send(number, &orders);
            }
        };
        Ok((thread, Box::new(ask)))
    }
}

fn settings(
    config: &Config,
    peer: &Configured,
    ike: &Ike,
    writers: &Writers,
) -> Result<Settings, SetupError> {
    let secret = |file| -> Result<Secret, SetupError> {
        let file = PpkFile::load_for(file, writers)?;
        Ok(Secret::new(file.key().to_vec()))
    };
    let mut ppks = Vec::new();
    for ppk in &ike.ppks {
        ppks.push(Ppk {
            identity: ppk.id.clone().into_bytes(),
            key: secret(&ppk.file)?,
        });
    }
    let authentication = match (&ike.psk, &config.identity) {
        (Some(psk), _) => Authentication::SharedKey(secret(psk)?),
        (None, Some(files)) => {
            Authentication::Certificates(certificates::load(ike, files, writers)?)
        }
        (None, None) => unreachable!("the configuration was checked"),
    };
    let is_required = ike.ppks.iter().any(|ppk| !ppk.optional);
    let cipher = child_cipher(config.suite).expect("the configuration was checked");
    let (local, remote) = ranges(&peer.selectors);
    // The peer finds the tunnel by these bits, and the lane by them.
    let slot = u32::from(peer.id * config.workers);
    let first = random_u32().ok_or(KeyError::NoRandomness)?;
    Ok(Settings {
        identity: ike.identity.clone(),
        peer_identity: Some(ike.peer.clone()),
        authentication,
        ike: ike.proposals.clone(),
        child: child_suites(cipher, &ike.proposals),
        local,
        remote,
        children_max: CHILDREN_MAX,
        childless: false,
        initial_contact: true,
        ppks,
        ppk_policy: if is_required {
            PpkPolicy::Required
        } else {
            PpkPolicy::Optional
        },
        datagram: Some(DATAGRAM),
        lifetimes: Lifetimes {
            ike: Some(ike.ike_every),
            child: Some(ike.every),
        },
        retransmission: RETRANSMISSION,
        idle: ike.idle,
        transport: Transport {
            port: config.ike_port,
            nat_port: config.port,
            peer_nat_port: peer.remote.port(),
            always_in_udp: true,
            child_spis: Some(ChildSpis::new(LANES_MAX.trailing_zeros(), slot, first)),
        },
    })
}

fn random_u32() -> Option<u32> {
    let mut bytes = [0; 4];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// The suite with the key exchanges of the proposals: new keys are protected like the first.
fn child_suites(cipher: Cipher, proposals: &[IkeSuite]) -> Vec<ChildSuite> {
    let mut suites: Vec<ChildSuite> = Vec::new();
    // 64 bits are preferred: with 32, keys must change after 2^32 packets.
    for esn in [true, false] {
        for proposal in proposals {
            let suite = ChildSuite {
                cipher,
                esn,
                exchange: Some(proposal.exchange),
                additional: proposal.additional,
            };
            if !suites.contains(&suite) {
                suites.push(suite);
            }
        }
    }
    suites
}

/// Traffic selectors on this side, and behind the peer.
fn ranges(selectors: &Selectors) -> (Vec<AddressRange>, Vec<AddressRange>) {
    let range = |prefix: &Prefix, ports: &std::ops::RangeInclusive<u16>| AddressRange {
        protocol: selectors.protocol.unwrap_or(0),
        ports: (*ports.start(), *ports.end()),
        first: prefix.address(),
        last: prefix.last(),
    };
    let everything = [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    let any = everything.into_iter().filter(|address| {
        let mut remote = selectors.remote.iter();
        remote.any(|prefix| prefix.address().is_ipv4() == address.is_ipv4())
    });
    let any = any.filter_map(|address| Prefix::new(address, 0));
    let local: Vec<Prefix> = if selectors.local.is_empty() {
        any.collect()
    } else {
        selectors.local.clone()
    };
    let local = local.iter().map(|it| range(it, &selectors.local_ports));
    let remote = selectors.remote.iter();
    let remote = remote.map(|it| range(it, &selectors.remote_ports));
    (local.collect(), remote.collect())
}

//! Tunnels with negotiated keys: the control channel's setup, read before privileges are dropped,
//! and its effects on lanes.

use super::error::ServiceError;
use crate::config::{Config, Encapsulation, Handshake, Mode, Peer, Qkd};
use crate::privileges::Network;
use crate::renewal::{self, Renewer, Switchboard};
use crate::shared_keys::{SharedKeys, lock};
use crate::status::{Status, Tunnel};
use control::{CertificateEvent, Control, Identity};
use guard::Writers;
use keying::chain::EpochSecret;
use keying::rollover::{Allowance, Event, Ppk, Role, Settings};
use keying::{KeyRing, Keys, PpkFile, Side};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An attempt takes some round trips, and the time of two calls to each KME.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(10);
/// The first pause after a failed attempt: short, since a restarting peer is back soon.
const RETRY_MIN: Duration = Duration::from_millis(100);
/// The longest pause: a peer that was away for long is found soon, too.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// Interval of pings to a peer.
const PING_EVERY: Duration = Duration::from_secs(5);
/// Limit of each call to the KME; less than half of an attempt.
const KME_TIMEOUT: Duration = Duration::from_secs(4);

/// The state that is read before privileges are dropped.
pub(super) struct Negotiation {
    setup: control::Setup,
    listener: TcpListener,
    /// The ring of each tunnel, in the control channel's order.
    rings: Vec<Ring>,
    status: Arc<Status>,
    network: Network,
}

/// A tunnel's keys, empty until negotiated.
struct Ring {
    /// Place of its peer in the configuration.
    place: u16,
    keys: SharedKeys,
}

impl Negotiation {
    /// Reads certificates and PPKs, finds the KME, and binds the control port; `None` if all keys
    /// are static.
    pub(super) fn open(config: &Config, writers: &Writers) -> Result<Option<Self>, ServiceError> {
        // IKE uses the same files without it.
        let has_handshakes = config.handshakes().next().is_some();
        let Some(files) = config.identity.as_ref().filter(|_| has_handshakes) else {
            return Ok(None);
        };
        let identity = Identity::load_for(&files.certificate, &files.key, &files.ca, writers)?;
        let kme = config.qkd.as_ref();
        let kme = kme.map(|qkd| open_kme(qkd, writers)).transpose()?;
        let mut network = Network::default();
        let addresses = kme.iter().flat_map(|kme| kme.addresses());
        // Resolved here once: later the process may not read the files that name resolution needs.
        network.connect.extend(addresses.map(SocketAddr::port));
        let (mut tunnels, mut rings, mut negotiated) = (Vec::new(), Vec::new(), Vec::new());
        for (place, peer, handshake) in config.handshakes() {
            let settings = settings(config, peer, handshake, identity.name(), writers)?;
            let side = match settings.role {
                Role::Connector => {
                    network.connect.insert(handshake.control_port);
                    Side::A
                }
                Role::Listener => Side::B,
            };
            tunnels.push(control::Tunnel {
                settings,
                local: config.local,
                remote: SocketAddr::new(peer.remote.ip(), handshake.control_port),
                peer_sae: handshake.sae.clone(),
            });
            let keys = Keys::from(KeyRing::new(side));
            rings.push(Ring {
                place,
                keys: Arc::new(Mutex::new(keys)),
            });
            negotiated.push(Tunnel::new(
                place,
                peer.id,
                handshake.peer.clone(),
                handshake.policy,
            ));
        }
        let address = SocketAddr::new(config.local, config.control_port);
        let listener =
            control::bind(address).map_err(|error| ServiceError::ControlPort { address, error })?;
        let setup = control::Setup {
            identity,
            qkd: kme,
            tunnels,
        };
        Ok(Some(Self {
            setup,
            listener,
            rings,
            status: Arc::new(Status::new(negotiated)),
            network,
        }))
    }

    /// The network access that the control channel needs once it runs.
    pub(super) const fn network(&self) -> &Network {
        &self.network
    }

    /// The status of the negotiated keys.
    pub(super) fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status)
    }

    /// The keys of each tunnel, still empty, with the place of its peer.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u16, SharedKeys)> + '_ {
        let rings = self.rings.iter();
        rings.map(|ring| (ring.place, Arc::clone(&ring.keys)))
    }

    /// Starts the control channel; all lanes must exist. The second result requests new keys.
    pub(super) fn start(
        self,
        renewer: &Renewer,
    ) -> Result<(Control, renewal::Control), ServiceError> {
        let places: Vec<_> = self.rings.iter().map(|ring| ring.place).collect();
        let installer = Installer {
            rings: self.rings,
            lanes: renewer.switchboard(),
            status: self.status,
        };
        let control =
            control::start(self.setup, self.listener, installer).map_err(ServiceError::Control)?;
        let handle = control.handle();
        let ask = move |place: Option<u16>, cause| match place {
            None => handle.rekey(None, cause),
            Some(place) => {
                // Sorted, since `handshakes` yields the peers in their order. A peer with other
                // keys is not found.
                if let Ok(number) = places.binary_search(&place) {
                    handle.rekey(Some(number), cause);
                }
            }
        };
        Ok((control, Box::new(ask)))
    }
}

fn open_kme(qkd: &Qkd, writers: &Writers) -> Result<qkd::Kme, ServiceError> {
    let setup = qkd::Setup {
        url: qkd.kme.clone(),
        sae: qkd.sae.clone(),
        certificate: qkd.files.certificate.clone(),
        key: qkd.files.key.clone(),
        ca: qkd.files.ca.clone(),
        timeout: KME_TIMEOUT,
    };
    Ok(qkd::Kme::new_for(&setup, writers)?)
}

fn settings(
    config: &Config,
    peer: &Peer,
    handshake: &Handshake,
    own_name: &str,
    writers: &Writers,
) -> Result<Settings, ServiceError> {
    let ppks = handshake.ppks.iter().map(|ppk| {
        let file = PpkFile::load_for(&ppk.file, writers)?;
        Ok(Ppk {
            id: ppk.id.clone(),
            key: Arc::clone(file.key()),
            required: !ppk.optional,
        })
    });
    // Both sides compare the same two addresses, so exactly one of them connects.
    let role = if config.local < peer.remote.ip() {
        Role::Connector
    } else {
        Role::Listener
    };
    Ok(Settings {
        role,
        own_name: own_name.to_owned(),
        peer_name: handshake.peer.clone(),
        tunnel: peer.id,
        lanes: config.workers,
        suite: config.suite,
        payload: payload(config).to_owned(),
        policy: handshake.policy,
        ppks: ppks.collect::<Result<_, ServiceError>>()?,
        every: handshake.every,
        hard: handshake.hard,
        grace: handshake.grace,
        attempt_limit: ATTEMPT_LIMIT,
        retry_min: RETRY_MIN,
        retry_max: RETRY_MAX,
        provoked: Allowance::OF_TUNNEL,
        ping_every: PING_EVERY,
    })
}

/// The payload, which must be equal on both sides.
const fn payload(config: &Config) -> &'static str {
    match &config.mode {
        Mode::L3(_) if config.aggregate => "l3 aggregate",
        Mode::L3(_) => "l3",
        Mode::L2 { .. } => "l2",
        Mode::L2tpv3 { pseudowire, .. } => match pseudowire.encapsulation {
            Encapsulation::Esp => "l2tpv3",
            Encapsulation::Udp => "l2tpv3 udp",
        },
    }
}

/// Applies the control channel's events to the data plane. Waits only for new SAs to be in the
/// lanes' mailboxes, so that `Done` shows that this side can seal.
struct Installer {
    rings: Vec<Ring>,
    lanes: Switchboard,
    status: Arc<Status>,
}

impl Installer {
    fn change(&self, tunnel: usize, change: impl FnOnce(&mut KeyRing)) {
        if let Some(ring) = lock(&self.rings[tunnel].keys).as_ring() {
            change(ring);
        }
    }
}

impl control::Lanes for Installer {
    fn install_inbound(&mut self, tunnel: usize, secret: &Arc<EpochSecret>) {
        // Lanes find the secret when a packet of that epoch arrives.
        self.change(tunnel, |ring| ring.install_inbound(Arc::clone(secret)));
    }

    fn switch_outbound(&mut self, tunnel: usize, secret: &Arc<EpochSecret>) {
        self.change(tunnel, |ring| ring.switch_outbound(Arc::clone(secret)));
        // After the ring has the epoch, because the renewer takes the keys from there.
        self.lanes.switched(self.rings[tunnel].place);
    }

    fn retire_inbound(&mut self, tunnel: usize, epoch: u32) {
        self.change(tunnel, |ring| ring.retire_inbound(epoch));
        self.lanes.retired(self.rings[tunnel].place);
    }

    fn expire_outbound(&mut self, tunnel: usize, epoch: u32) {
        self.change(tunnel, |ring| ring.expire_outbound(epoch));
        self.lanes.expired(self.rings[tunnel].place);
    }

    fn certificate(&mut self, event: &CertificateEvent) {
        self.status.certificate(event);
    }

    fn event(&mut self, tunnel: usize, event: &Event) {
        self.status.event(tunnel, event);
    }

    fn count_refused(&mut self) {
        self.status.count_refused();
    }

    fn refused(&mut self, from: SocketAddr, reason: &str) {
        self.status.refused(from, reason);
    }
}

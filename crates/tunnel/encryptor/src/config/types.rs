//! The configuration as types.

use crate::policy::Selectors;
use dispatch::Choice;
use esp::WindowSize;
use ike::message::Identity;
use ike::session::IkeSuite;
use keying::chain::Policy;
use port::{TunOffloads, UdpOffloads};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use wire::Suite;
use yaml::Prefix;

/// The validated configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The file that it was read from, if any. Its owner may also have written the files that it
    /// names.
    pub file: Option<PathBuf>,
    /// Local address on the cipher side.
    pub local: IpAddr,
    /// Local UDP port of lane 0; lane *i* uses `port + i`.
    pub port: u16,
    /// The peers: at least one, and exactly one in the layer-2 modes. A peer's place in this list
    /// is its tunnel's index in the process.
    pub peers: Vec<Peer>,
    /// The interface of the clear side, and the kind of its packets.
    pub mode: Mode,
    /// ESP suite.
    pub suite: Suite,
    /// Whether the user has accepted operation without protection.
    pub insecure: bool,
    /// Number of lanes, with one thread each; equal on both sides.
    pub workers: u16,
    /// Crypto engines, and which packets each processes.
    pub engine: Choice,
    /// Size of the anti-replay window, per tunnel and lane.
    pub replay_window: WindowSize,
    /// Whether small packets share ESP packets (AGGFRAG, RFC 9347); only in [`Mode::L3`].
    pub aggregate: bool,
    /// Whether an idle worker polls instead of sleeping.
    pub busy_poll: bool,
    /// CPUs that the workers are pinned to in turn; empty: not pinned.
    pub pin: Vec<usize>,
    /// Clamping of the MSS of forwarded TCP connections.
    pub mss_clamp: MssClamp,
    /// DSCP of the outer headers.
    pub dscp: Dscp,
    /// Whether ECN is copied from the inner to the outer header and back (RFC 6040).
    pub ecn: bool,
    /// Whether packets may pass in clear while the service does not run: no
    /// [barrier](crate::barrier) is installed.
    pub fail_open: bool,
    /// Whether privileges are dropped once all ports are open.
    pub privileges: Privileges,
    /// Name of the user as which the service runs once they are; `None`: the user who started it.
    pub user: Option<String>,
    /// Address of the Prometheus endpoint.
    pub metrics: Option<SocketAddr>,
    /// Offloads to use if they work.
    pub offloads: Offloads,
    /// This gateway's certificate and key; present if any peer negotiates keys by our handshake, or
    /// by IKE with certificates.
    pub identity: Option<IdentityFiles>,
    /// Local TCP port of the control channel; used only if keys are negotiated.
    pub control_port: u16,
    /// Local UDP port of first messages of IKE, and the peers'; used only with IKE.
    pub ike_port: u16,
    /// Source of QKD keys; present if any peer's policy uses them.
    pub qkd: Option<Qkd>,
    /// Fault that SIGUSR2 injects into negotiated keys, for tests.
    pub fault: Option<Fault>,
}

/// The remote end of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Tunnel number, equal on both sides: the low 12 bits of lane *i*'s SPIs are
    /// `id * workers + i`.
    pub id: u16,
    /// Address and UDP port of the peer's lane 0; its lane *i* uses that port + *i*.
    pub remote: SocketAddr,
    /// Source of its keys; `None` only for [`Encapsulation::Udp`].
    pub keys: Option<KeySource>,
    /// Traffic selectors of the tunnel; they match nothing in the layer-2 modes, which have one
    /// tunnel.
    pub selectors: Selectors,
}

/// Source of a tunnel's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A key file.
    Static(PathBuf),
    /// Negotiation with the peer by this project's handshake.
    Handshake(Box<Handshake>),
    /// Negotiation with the peer by IKEv2.
    Ike(Box<Ike>),
}

/// Configuration of IKEv2 with a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ike {
    /// This side's identity.
    pub identity: Identity,
    /// The peer's identity; another is refused.
    pub peer: Identity,
    /// File of the shared key; without it both sides have certificates, this one
    /// [`Config::identity`].
    pub psk: Option<PathBuf>,
    /// Files of revocation lists for the peer's certificate.
    pub crls: Vec<PathBuf>,
    /// Suites of the IKE SA, by preference. New keys of child SAs have the same key exchanges.
    pub proposals: Vec<IkeSuite>,
    /// Post-quantum pre-shared keys (RFC 8784); the initiator uses the first.
    pub ppks: Vec<Ppk>,
    /// Which side begins.
    pub role: IkeRole,
    /// Time until a child SA is replaced.
    pub every: Duration,
    /// Time until the IKE SA is replaced.
    pub ike_every: Duration,
    /// Volume that makes new keys due.
    pub lifetime: Lifetime,
    /// Silence after which the peer is asked whether it lives.
    pub idle: Duration,
}

/// Which side begins IKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IkeRole {
    /// The one with the lower address; the other if nothing arrives for a while.
    Auto,
    /// This one.
    Initiate,
    /// The peer.
    Respond,
}

impl IkeRole {
    pub(super) const NAMES: [(&str, Self); 3] = [
        ("auto", Self::Auto),
        ("initiate", Self::Initiate),
        ("respond", Self::Respond),
    ];
}

/// Configuration of the key negotiation with a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// Name in the peer's certificate.
    pub peer: String,
    /// TCP port of the peer's control channel.
    pub control_port: u16,
    /// Key sources that the keys must combine.
    pub policy: Policy,
    /// Pre-shared keys that are mixed in: at most [`LINKS_MAX`](keying::message::LINKS_MAX), with
    /// distinct ids.
    pub ppks: Vec<Ppk>,
    /// The peer's SAE id; present if the policy uses QKD.
    pub sae: Option<String>,
    /// Duration of an epoch.
    pub every: Duration,
    /// Hard lifetime of an epoch, also ended by the certificates; `None`: until a new one.
    pub hard: Option<Duration>,
    /// Volume that an epoch may seal.
    pub lifetime: Lifetime,
    /// How long packets of the previous epoch are accepted after both sides have switched.
    pub grace: Duration,
}

/// Volume that all lanes together may seal in one epoch. Each lane requests the next epoch when it
/// has sealed its share. `None`: only the cipher's limit applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Bytes of inner packets, with ESP's padding and trailers.
    pub bytes: Option<u64>,
    /// Packets.
    pub packets: Option<u64>,
}

/// A pre-shared key (RFC 8784).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ppk {
    /// Identifier, equal on both sides.
    pub id: String,
    /// File that holds the key.
    pub file: PathBuf,
    /// Whether keys may be negotiated without it if the peer lacks it.
    pub optional: bool,
}

/// A certificate, its private key and the authority of the other side, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFiles {
    /// Certificate of this side.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificate of the authority that signed the other side's certificate.
    pub ca: PathBuf,
}

/// A key management entity, and this side's identity towards it (ETSI GS QKD 014).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qkd {
    /// URL.
    pub kme: String,
    /// SAE id of this side.
    pub sae: String,
    /// Certificate for the KME, key, and authority of the KME's certificate.
    pub files: IdentityFiles,
}

/// The interface of the clear side, and the kind of its packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// A TUN interface: IP packets.
    L3(Tunnel),
    /// A host interface: its Ethernet frames, one per ESP packet.
    L2 {
        /// Its name.
        interface: String,
    },
    /// A host interface: its Ethernet frames in an L2TPv3 pseudowire (RFC 3931, RFC 4719).
    L2tpv3 {
        /// Its name.
        interface: String,
        /// The session.
        pseudowire: Pseudowire,
    },
}

impl Mode {
    pub(super) fn is_keyless(&self) -> bool {
        matches!(self, Self::L2tpv3 { pseudowire, .. } if pseudowire.encapsulation == Encapsulation::Udp)
    }
}

/// The interface on the clear side in [`Mode::L3`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Its name.
    pub name: String,
    /// Its IP MTU in bytes; `None`: as large as the routes to all peers allow.
    pub mtu: Option<u16>,
    /// Packets that may wait to be sealed.
    pub queue_length: u32,
    /// Address to assign, if any.
    pub address: Option<InterfaceAddress>,
}

/// A static L2TPv3 session (RFC 3931 §4.1). Each side's identifier and cookie are the ones that it
/// expects in received packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pseudowire {
    /// Session ID of this side, in received packets; not 0.
    pub session: u32,
    /// The peer's session ID, in sent packets; not 0.
    pub peer_session: u32,
    /// Cookie of this side: 0, 4 or 8 bytes.
    pub cookie: Vec<u8>,
    /// The peer's cookie: 0, 4 or 8 bytes.
    pub peer_cookie: Vec<u8>,
    /// Its encapsulation.
    pub encapsulation: Encapsulation,
}

/// Encapsulation of a pseudowire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// ESP.
    Esp,
    /// UDP alone: nothing is encrypted or authenticated (RFC 3931 §4.1.2).
    Udp,
}

/// An interface address with its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// The network that it is in.
    pub network: Prefix,
}

impl std::fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.network.length())
    }
}

/// Clamping of the maximum segment size in forwarded SYNs (RFC 9293 §3.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MssClamp {
    /// Lowered to fit the tunnel's MTU.
    Auto,
    /// Unchanged.
    Off,
    /// Lowered to this many bytes.
    At(u16),
}

/// DSCP of the outer headers (RFC 2474).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dscp {
    /// The inner packet's (RFC 4301 §5.1.2.1).
    Copy,
    /// This value for every packet: 0 … 63.
    Fixed(u8),
}

/// Whether privileges are dropped once all ports are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// Drop all that the kernel can take away.
    Drop,
    /// Keep all, for debuggers and profilers.
    Keep,
}

/// Offloads that may be used; each is still tested before use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offloads {
    /// Super-packets on the clear side.
    pub tun: TunOffloads,
    /// Trains on the cipher side.
    pub udp: UdpOffloads,
}

impl Offloads {
    /// Every offload that works.
    pub const ALL: Self = Self {
        tun: TunOffloads::ALL,
        udp: UdpOffloads {
            gso: true,
            gro: true,
        },
    };
}

/// A fault to inject into the keys that tunnels open with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The keys differ from the peer's.
    WrongKeys,
    /// The keys of the epoch that the peer sends in are missing, as after a missed rollover.
    MissedRollover,
}

/// The distinct addresses that lanes send to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remotes {
    /// Distinct addresses, with the port of lane 0.
    pub addresses: Vec<SocketAddr>,
    /// Each peer's index in `addresses`.
    pub of_peer: Vec<u16>,
}

impl Config {
    /// Returns the peers' distinct addresses: tunnels to the same gateway share an address, so
    /// their datagrams share trains.
    pub(crate) fn remotes(&self) -> Remotes {
        let mut numbers = BTreeMap::new();
        let mut addresses = Vec::new();
        let of_peer = self.peers.iter().map(|peer| {
            *numbers.entry(peer.remote).or_insert_with(|| {
                addresses.push(peer.remote);
                addresses.len() as u16 - 1
            })
        });
        Remotes {
            of_peer: of_peer.collect(),
            addresses,
        }
    }

    /// Returns the peers that negotiate keys, with their indices in `peers`.
    pub fn handshakes(&self) -> impl Iterator<Item = (u16, &Peer, &Handshake)> {
        (0..)
            .zip(&self.peers)
            .filter_map(|(place, peer)| match &peer.keys {
                Some(KeySource::Handshake(handshake)) => Some((place, peer, &**handshake)),
                _ => None,
            })
    }

    /// Returns the peers with IKE, with their indices in `peers`.
    pub fn ikes(&self) -> impl Iterator<Item = (u16, &Peer, &Ike)> {
        (0..)
            .zip(&self.peers)
            .filter_map(|(place, peer)| match &peer.keys {
                Some(KeySource::Ike(ike)) => Some((place, peer, &**ike)),
                _ => None,
            })
    }

    /// Whether nothing is encrypted and there are no keys: [`Encapsulation::Udp`].
    #[must_use]
    pub fn is_keyless(&self) -> bool {
        self.mode.is_keyless()
    }
}

/// The value of `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    L3,
    L2,
    L2tpv3,
}

impl Kind {
    pub(super) const NAMES: [(&str, Self); 3] =
        [("l3", Self::L3), ("l2", Self::L2), ("l2tpv3", Self::L2tpv3)];
}

impl Encapsulation {
    pub(super) const NAMES: [(&str, Self); 2] = [("esp", Self::Esp), ("udp", Self::Udp)];
}

impl Privileges {
    pub(super) const NAMES: [(&str, Self); 2] = [("drop", Self::Drop), ("keep", Self::Keep)];
}

impl Fault {
    pub(super) const NAMES: [(&str, Self); 2] = [
        ("wrong-keys", Self::WrongKeys),
        ("missed-rollover", Self::MissedRollover),
    ];
}

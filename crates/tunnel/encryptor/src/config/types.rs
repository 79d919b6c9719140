//! The configuration as types.

use crate::policy::Selectors;
use dispatch::Choice;
use esp::WindowSize;
use keying::chain::Policy;
use port::{TunOffloads, UdpOffloads};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use wire::Suite;
use yaml::Prefix;

/// Everything that the encryptor is told, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Own address on the cipher side.
    pub local: IpAddr,
    /// UDP port of lane 0 here; lane *i* has `port + i`.
    pub port: u16,
    /// Who is at the other ends: at least one, and one in the modes of layer 2. A peer's place in this list is its
    /// tunnel's number in the process.
    pub peers: Vec<Peer>,
    /// What stands on the clear side.
    pub mode: Mode,
    /// ESP suite.
    pub suite: Suite,
    /// Whether the user has said that no protection is meant.
    pub insecure: bool,
    /// Lanes, each a thread; both sides must have the same number.
    pub workers: u16,
    /// Crypto engines, and which packets each gets.
    pub engine: Choice,
    /// Sequence numbers that may arrive late, per tunnel and lane.
    pub replay_window: WindowSize,
    /// Whether small packets share ESP packets (AGGFRAG, RFC 9347); only in [`Mode::L3`].
    pub aggregate: bool,
    /// Whether a worker that has nothing to do looks again instead of sleeping.
    pub busy_poll: bool,
    /// CPUs for the workers, in turn; empty: wherever the kernel puts them.
    pub pin: Vec<usize>,
    /// What is done to the MSS of TCP connections that pass.
    pub mss_clamp: MssClamp,
    /// DSCP of the outer headers.
    pub dscp: Dscp,
    /// Whether ECN goes from the inner to the outer header and back (RFC 6040).
    pub ecn: bool,
    /// Whether privileges are given up once all ports are open.
    pub privileges: Privileges,
    /// Where counters are served to Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Offloads to use where they work.
    pub offloads: Offloads,
    /// Who this gateway is to peers with which it negotiates keys; there if there are such.
    pub identity: Option<IdentityFiles>,
    /// TCP port of the control channel here; nothing listens there unless keys are negotiated.
    pub control_port: u16,
    /// Where QKD keys come from; there if some peer's policy has them.
    pub qkd: Option<Qkd>,
    /// What SIGUSR2 does to negotiated keys: for tests.
    pub fault: Option<Fault>,
}

/// One end of a tunnel: the other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Number of the tunnel, the same on both sides: lane *i* has the SPIs whose low 12 bits are
    /// `id * workers + i`.
    pub id: u16,
    /// Its address, and its UDP port of lane 0; its lane *i* has that port + *i*.
    pub remote: SocketAddr,
    /// Where its keys come from; `None` only for [`Encapsulation::Udp`].
    pub keys: Option<KeySource>,
    /// What goes through the tunnel; matches nothing in the modes of layer 2, which need no choice.
    pub selectors: Selectors,
}

/// Where the keys of a tunnel come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A key file.
    Static(PathBuf),
    /// The peer and this side agree on them.
    Handshake(Box<Handshake>),
}

/// How keys are agreed on with a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// Name in the peer's certificate.
    pub peer: String,
    /// TCP port of the peer's control channel.
    pub control_port: u16,
    /// What keys must come from.
    pub policy: Policy,
    /// Pre-shared keys that are mixed in: at most [`LINKS_MAX`](keying::message::LINKS_MAX), no id twice.
    pub ppks: Vec<Ppk>,
    /// The peer's id as an SAE; there if the policy has QKD.
    pub sae: Option<String>,
    /// How long an epoch lasts.
    pub every: Duration,
    /// How much is sealed in an epoch.
    pub lifetime: Lifetime,
    /// How long packets of the last epoch are taken after both sides have left it.
    pub grace: Duration,
}

/// How much is sealed in one epoch, in all lanes together and at most: each lane asks for the next when it has sealed its
/// share. `None`: as much as the cipher allows.
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
    /// The same on both sides.
    pub id: String,
    /// Where it is.
    pub file: PathBuf,
    /// Whether keys without it are good enough, if the peer has it not.
    pub optional: bool,
}

/// A certificate with what belongs to it, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFiles {
    /// Own certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificate of the authority that signed the other side's.
    pub ca: PathBuf,
}

/// A key management entity, and who this side is to it (ETSI GS QKD 014).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qkd {
    /// URL.
    pub kme: String,
    /// Own id as an SAE.
    pub sae: String,
    /// Certificate for the KME, key, and authority of the KME's certificate.
    pub files: IdentityFiles,
}

/// What stands on the clear side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// A TUN interface: IP packets.
    L3(Tunnel),
    /// An interface of the host's: its Ethernet frames, one in each ESP packet.
    L2 {
        /// Its name.
        interface: String,
    },
    /// An interface of the host's: its Ethernet frames in an L2TPv3 pseudowire (RFC 3931, RFC 4719).
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
    /// Its own address, if it is to have one.
    pub address: Option<InterfaceAddress>,
}

/// A static L2TPv3 session (RFC 3931 §4.1). An identifier or cookie is what its owner expects to receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pseudowire {
    /// Own session ID: in what is received. Not 0.
    pub session: u32,
    /// The peer's session ID: in what is sent. Not 0.
    pub peer_session: u32,
    /// Own cookie: 0, 4 or 8 bytes.
    pub cookie: Vec<u8>,
    /// The peer's cookie: 0, 4 or 8 bytes.
    pub peer_cookie: Vec<u8>,
    /// What it travels in.
    pub encapsulation: Encapsulation,
}

/// What a pseudowire travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// ESP.
    Esp,
    /// UDP alone: nothing is encrypted or authenticated (RFC 3931 §4.1.2).
    Udp,
}

/// An interface's address with the length of its network.
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

/// What is done to the maximum segment size in the SYNs that pass (RFC 9293 §3.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MssClamp {
    /// Lowered to what the tunnel's MTU takes.
    Auto,
    /// Left alone.
    Off,
    /// Lowered to so many bytes.
    At(u16),
}

/// DSCP of the outer headers (RFC 2474).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dscp {
    /// The inner packet's (RFC 4301 §5.1.2.1).
    Copy,
    /// This one, whatever the inner packet has: 0 … 63.
    Fixed(u8),
}

/// Whether privileges are given up once all ports are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// All that the kernel can take away.
    Drop,
    /// Nothing is: for debuggers and profilers.
    Keep,
}

/// Offloads that may be used; each is still proven before use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offloads {
    /// Super-packets on the clear side.
    pub tun: TunOffloads,
    /// Trains on the cipher side.
    pub udp: UdpOffloads,
}

impl Offloads {
    /// All that work.
    pub const ALL: Self = Self {
        tun: TunOffloads {
            tso: true,
            uso: true,
        },
        udp: UdpOffloads {
            gso: true,
            gro: true,
        },
    };
}

/// What a fault that is injected does to the keys that tunnels open with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// They are others than the peer's.
    WrongKeys,
    /// Those of the epoch that the peer sends in are gone, as if the last rollover had been missed.
    MissedRollover,
}

/// The addresses that lanes send to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remotes {
    /// Each once, of the first lane.
    pub addresses: Vec<SocketAddr>,
    /// Each peer's place in `addresses`.
    pub of_peer: Vec<u16>,
}

impl Config {
    /// Where the peers are, each address once: many tunnels may lead to one gateway, whose datagrams then share trains.
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

    /// Peers with which keys are negotiated, with their places in `peers`.
    pub fn handshakes(&self) -> impl Iterator<Item = (u16, &Peer, &Handshake)> {
        (0..)
            .zip(&self.peers)
            .filter_map(|(place, peer)| match &peer.keys {
                Some(KeySource::Handshake(handshake)) => Some((place, peer, &**handshake)),
                _ => None,
            })
    }

    /// Whether nothing is encrypted, so that there are no keys: [`Encapsulation::Udp`].
    #[must_use]
    pub fn is_keyless(&self) -> bool {
        self.mode.is_keyless()
    }
}

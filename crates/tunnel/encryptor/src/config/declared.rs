//! The keys of the file, in the order of `docs/encryptor.md`.

use super::types::{Encapsulation, Fault, IkeRole, Kind, Privileges};
use esp::WindowSize;
use keying::chain::Policy;
use std::time::Duration;
use wire::Suite;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Value};

/// Every IPv4 host takes packets of this length (RFC 791).
pub(crate) const MTU_MIN: u16 = 576;
const MTU_MAX: u16 = 65_535;
/// Linux keeps 16 bytes, the last a zero.
pub(super) const INTERFACE_NAME_BYTES_MAX: usize = 15;
/// The highest CPU number that Linux can be built for.
pub(super) const CPU_MAX: usize = 8191;
/// The bounds of a handshake's times and of an epoch's length.
const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const HARD_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const GRACE_MIN: Duration = Duration::from_millis(10);
const GRACE_MAX: Duration = Duration::from_secs(60);
/// Below this a rollover would cost more than the traffic that it protects.
const BYTES_MIN: u64 = 1_000_000;
const BYTES_MAX: u64 = 1 << 62;
const PACKETS_MIN: u64 = 1_000;

const PORT: Value = Value::Integer(1, u16::MAX as u64);
const PREFIXES: Value = Value::OneOrMany(&Value::Prefix);
/// One port, or the first and the last.
const PORTS: Value = Value::Notation("^[0-9]+ *(- *[0-9]+)?$");
/// 4 or 8 bytes in hexadecimal.
const COOKIE: Value = Value::Or(
    "none",
    &Value::Notation("^([0-9A-Fa-f]{8}|[0-9A-Fa-f]{16})$"),
);
const SUITE: Value = Value::Name(|| Suite::ALL.iter().map(|suite| suite.name()).collect());
const POLICY: Value = Value::Name(|| Policy::ALL.iter().map(|policy| policy.name()).collect());

/// Keys at the top of the file.
#[rustfmt::skip]
pub const FILE: &[Key] = &[
    Key::new("local", Value::Ip, Required,
        "This side's address on the cipher side; must be one of this host's."),
    // ESP in UDP (RFC 3948 §2).
    Key::new("port", PORT, Default("4500"),
        "UDP port of lane 0; lane *i* has `port + i`. Also the default for the peers' ports."),
    Key::new("remote", Value::Ip, Depends("required"),
        "The peer's address, of the same family. This and the next key are the short form for [one \
         peer](#many-peers)."),
    Key::new("keys", Value::Map(KEYS), Depends("required"),
        "Key file of this side, relative to this file; or keys that are negotiated by [our \
         handshake](#keys-that-the-hosts-agree-on) or by [IKEv2](#keys-by-ikev2).")
        .words("`{ static: PATH }`, `{ handshake: … }` or `{ ike: … }`").apart(),
    Key::new("identity", Value::Map(IDENTITY), Depends("with `handshake`, and with `ike` without `psk`"),
        "This gateway's certificate, [below](#keys-that-the-hosts-agree-on).").apart(),
    Key::new("control_port", PORT, Depends("same as `port`"),
        "TCP port of the control channel, here and at the peers."),
    Key::new("ike_port", PORT, Default("500"),
        "UDP port of the first messages of IKE, here and at the peers. The others share `port` \
         with ESP (RFC 3948 §2)."),
    Key::new("qkd", Value::Map(QKD), Depends("with a policy that has QKD"),
        "The source of QKD keys, [below](#keys-that-the-hosts-agree-on).").apart(),
    Key::new("faults", Value::Name(|| Value::names(&Fault::NAMES)), Depends("none"),
        "Effect of SIGUSR2 on the keys that open packets: [for \
         tests](#when-the-two-sides-have-other-keys), and only with `insecure: true`."),
    Key::new("peers", Value::List(&Value::Map(PEER)), Depends("none"),
        "A list of peers; replaces `remote`, `keys` and `tunnel.routes`.")
        .excludes(&["remote", "keys"]).apart(),
    Key::new("mode", Value::Name(|| Value::names(&Kind::NAMES)), Default("l3"),
        "The payload: IP packets of a TUN interface, or [Ethernet frames](#ethernet-frames) of an \
         interface."),
    Key::new("interface", Value::Text, Depends("with `l2` and `l2tpv3`"),
        "The interface on the clear side. It must be up.").words("name"),
    Key::new("l2tpv3", Value::Map(L2TPV3), Depends("with `l2tpv3`"),
        "The pseudowire, [below](#ethernet-frames).").apart(),
    Key::new("suite", SUITE, Default("aes-256-gcm"),
        "The same on both sides.").words("a name, [below](#suites)"),
    Key::new("legacy", Value::Switch, Default("off"), "Allows suites with DES, triple DES or MD5."),
    Key::new("insecure", Value::Switch, Default("off"),
        "Allows operation without encryption: suites with `null`, the engine `null`, L2TPv3 in UDP \
         alone; and `faults`."),
    // The most lanes in one encryptor.
    Key::new("workers", Value::Integer(1, 256), Default("1"),
        "Lanes: each a thread with separate keys, socket and TUN queue. The same on both sides."),
    Key::new("pin", Value::OneOrMany(&Value::Integer(0, CPU_MAX as u64)), Depends("none"),
        "Worker *i* runs on CPU *i* of the list; the list repeats when it is shorter than the \
         number of workers.").words("CPU or list of CPUs"),
    Key::new("busy_poll", Value::Switch, Default("off"),
        "An idle worker polls instead of sleeping: this uses a whole CPU, and saves each packet \
         the wake-up time."),
    Key::new("engine", choice::VALUE, Default("auto"),
        "Crypto engine; `cipherbench --version` lists the names. `auto` gives each batch to the \
         engine that finishes first by its [measured curves](speed.md#cost-curves). `null` neither \
         encrypts nor authenticates: a control for measurements, accepted only with `insecure: \
         true`.").words("`auto`, a name, or [a map](speed.md#choice)"),
    Key::new("replay_window",
        Value::Integer(WindowSize::MIN.packets() as u64, WindowSize::MAX.packets() as u64),
        Default("8192"),
        "Size of the anti-replay window in packets, per tunnel and lane.")
        .words("power of two, 1024 … 1048576"),
    Key::new("aggregate", Value::Switch, Default("off"),
        "Small packets share ESP packets (AGGFRAG, RFC 9347). No packet waits longer than [the \
         rest of its batch](#how-long-a-packet-waits-with-aggregate), and a single one leaves \
         immediately. Only with `mode: l3`; the same on both sides."),
    // Every IPv4 host takes segments of 536 bytes (RFC 9293 §3.7.1).
    Key::new("mss_clamp",
        Value::Or("auto", &Value::Or("off", &Value::Integer(536, u16::MAX as u64))),
        Default("auto"),
        "Lowers the MSS in passing SYNs to what fits the tunnel's MTU, or to this number of bytes. \
         Only with `mode: l3`."),
    // A DSCP has six bits (RFC 2474 §3).
    Key::new("dscp", Value::Or("copy", &Value::Integer(0, 63)), Default("0"),
        "DSCP of the outer headers: this value, or the inner packet's. [Which to \
         choose](security.md#what-the-outer-header-reveals). Only with `mode: l3`.")
        .words("0 … 63 or `copy`"),
    Key::new("ecn", Value::Switch, Default("on"),
        "Copies ECN from the inner to the outer header and back (RFC 6040). Only with `mode: l3`."),
    Key::new("fail_open", Value::Switch, Default("off"),
        "Lets packets for the networks behind the peers leave in clear [when it does not \
         run](#when-it-does-not-run)."),
    Key::new("privileges", Value::Name(|| Value::names(&Privileges::NAMES)), Default("drop"),
        "`keep` is for debuggers and profilers."),
    Key::new("user", Value::Text, Depends("the user who starts it"),
        "[User](#as-its-own-user) to run as once its ports are open. Only with `privileges: drop`, \
         and started as root.").words("name"),
    Key::new("tunnel", Value::Map(TUNNEL), Depends("with `l3`"),
        "The TUN interface, and the networks behind the peer."),
    Key::new("metrics", Value::SocketAddress, Depends("none"),
        "Serves the counters at `/metrics` for Prometheus. Use an address that only your \
         monitoring reaches."),
    Key::new("offloads", Value::Map(OFFLOADS), Depends("all on"),
        "An enabled offload is tested by a real write at start, and disabled if that fails.")
        .words("map of `tso`, `uso`, `tunnel`, `gso`, `gro`, each on or off").apart(),
];

/// Keys of `tunnel`.
#[rustfmt::skip]
pub(super) const TUNNEL: &[Key] = &[
    Key::new("name", Value::Identifier(INTERFACE_NAME_BYTES_MAX), Default("cb0"),
        "Name of the interface."),
    Key::new("mtu",
        Value::Or("auto", &Value::Size(MTU_MIN as u64, MTU_MAX as u64)), Default("auto"),
        "IP MTU of the interface. `auto` is the largest MTU with ESP packets that fit the routes \
         to all peers: 1438 B over IPv4 on an Ethernet, and with `aggregate` 4 B less for its \
         header. An MTU that is too large for every peer is refused at start; if it is too large \
         for some, senders receive ICMP errors.").words("size from 576 B, or `auto`"),
    // The kernel's default of 500 loses small packets at the rates that one lane carries.
    Key::new("queue_length", Value::Integer(1, 1_000_000), Default("5000"),
        "Packets that may wait to be sealed."),
    Key::new("address", Value::Prefix, Depends("none"),
        "The interface's address. In the short form its network also counts as a network behind \
         the peer.").words("address/length"),
    Key::new("routes", PREFIXES, Depends("required"),
        "Networks behind the peer: routed into the tunnel, and the only source addresses accepted \
         from it (RFC 4301 §5.2). None may contain `remote`.").words("prefix or list of prefixes"),
];

/// Keys of `offloads`.
#[rustfmt::skip]
pub(super) const OFFLOADS: &[Key] = &[
    Key::new("tso", Value::Switch, Default("on"), "TCP super-packets of the interface."),
    Key::new("uso", Value::Switch, Default("on"), "UDP super-packets of the interface."),
    Key::new("tunnel", Value::Switch, Default("on"),
        "TCP super-packets of the interface in VXLAN and Geneve without an outer UDP checksum, with \
         `tso` and Linux 6.17."),
    Key::new("gso", Value::Switch, Default("on"), "Trains of sent datagrams (UDP_SEGMENT)."),
    Key::new("gro", Value::Switch, Default("on"), "Trains of received datagrams (UDP_GRO)."),
];

/// Keys of a peer.
#[rustfmt::skip]
pub(super) const PEER: &[Key] = &[
    Key::new("id", Value::Integer(0, u16::MAX as u64), Depends("place in the list, from 0"),
        "Number of the tunnel: the same on both sides and unique in the file.").words("number"),
    Key::new("remote", Value::Ip, Required, "The peer's address. Several tunnels may share one."),
    Key::new("port", PORT, Depends("`port` above"), "The peer's UDP port of lane 0."),
    Key::new("keys", Value::Map(KEYS), Depends("required"),
        "Peers with static and with negotiated keys may be mixed. Several tunnels to one gateway \
         may share a key file; each derives separate keys from it.").words("as above").apart(),
    Key::new("routes", PREFIXES, Depends("required"),
        "Networks behind the peer, as `tunnel.routes`. At most 16384 in the file.")
        .words("prefix or list"),
    Key::new("local", PREFIXES, Depends("any"),
        "Networks on this side. Networks inside a network in `routes` must be listed here \
         ([why](#when-it-does-not-run)).").words("prefix or list"),
    Key::new("protocol",
        Value::Any(&[Value::Integer(0, u8::MAX as u64), Value::Name(|| vec!["tcp", "udp", "icmp", "any"])]),
        Default("any"),
        "IP protocol. `icmp` is ICMPv6 for IPv6 routes.")
        .words("`tcp`, `udp`, `icmp`, 0 … 255, `any`"),
    Key::new("local_ports", PORTS, Depends("any"),
        "Only for TCP, UDP and other protocols that have ports.").words("`5201` or `5201-5299`"),
    Key::new("remote_ports", PORTS, Depends("any"),
        "The same at the peer.").words("`5201` or `5201-5299`"),
];

/// Keys of `l2tpv3`.
#[rustfmt::skip]
pub(super) const L2TPV3: &[Key] = &[
    // Session 0 is for control messages (RFC 3931 §4.1).
    Key::new("session", Value::Integer(1, u32::MAX as u64), Required,
        "This side's session ID: the peer sends it."),
    Key::new("peer_session", Value::Integer(1, u32::MAX as u64), Required,
        "The peer's session ID: this side sends it."),
    Key::new("cookie", COOKIE, Default("none"),
        "This side's cookie: the peer sends it.").words("8 or 16 hexadecimal digits, `none`"),
    Key::new("peer_cookie", COOKIE, Default("none"),
        "The peer's cookie: this side sends it.").words("the same"),
    Key::new("encapsulation", Value::Name(|| Value::names(&Encapsulation::NAMES)), Default("esp"),
        "`udp` neither encrypts nor authenticates: accepted only with `insecure: true`, and \
         without `keys`, `suite`, `legacy`, `engine` and `replay_window`."),
];

/// Keys of `keys`: one of them.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    Key::new("static", Value::Path, Depends("none"),
        "Key file of this side, relative to this file.").excludes(&["handshake", "ike"]),
    Key::new("handshake", Value::Map(HANDSHAKE), Depends("none"), "Keys that the hosts negotiate.")
        .excludes(&["ike"]),
    Key::new("ike", Value::Map(IKE), Depends("none"), "Keys by IKEv2."),
];

/// Keys of `keys.ike`.
#[rustfmt::skip]
pub(super) const IKE: &[Key] = &[
    Key::new("identity", Value::Text, Required,
        "This side's identity: a domain name, `user@domain` or an address. The peer's \
         configuration names the same."),
    Key::new("peer", Value::Text, Required,
        "The peer's identity, likewise. A peer that proves another one is refused \
         (AUTHENTICATION_FAILED)."),
    Key::new("psk", Value::Path, Depends("`identity` of the file"),
        "File with the key that authenticates both sides, in the format of `cipherbench keys ppk`, \
         mode 600: 32 bytes or more, since an attacker who waits can guess a short one \
         (RFC 7296 §2.15). Without it both sides have [certificates](#certificates-of-ike)."),
    Key::new("crl", Value::OneOrMany(&Value::Path), Depends("none"),
        "Revocation lists (PEM) of the authorities of the peer's certificate. With any, each \
         authority must have one that is up to date.").words("path or list"),
    Key::new("proposals", Value::OneOrMany(&Value::Text), Default(BEST_PROPOSAL),
        "Algorithms of the IKE SA, by preference, in strongSwan's notation: cipher, integrity \
         unless the cipher is an AEAD, pseudo-random function, key exchange, and additional key \
         exchanges (RFC 9370) as `ke1_mlkem768`. New keys have the same exchanges. Nothing else is \
         accepted: without ML-KEM in all entries, an attacker can choose an entry without it.")
        .words("proposal or list"),
    Key::new("ppk", Value::List(&Value::Map(PPK)), Depends("none"),
        "Post-quantum pre-shared keys (RFC 8784). The side that begins names the first. Unless all \
         are optional, a peer without one is refused (AUTHENTICATION_FAILED).")
        .words("list, at most 8"),
    Key::new("role", Value::Name(|| Value::names(&IkeRole::NAMES)), Default("auto"),
        "Which side begins. `auto`: the one with the lower address; the other too, when nothing \
         arrived for 2 s."),
    Key::new("every", Value::Time(EVERY_MIN, EVERY_MAX), Default("1 h"),
        "Time until a child SA gets new keys, less up to a tenth. The new SA is in use on both \
         sides before the old one is deleted."),
    Key::new("ike_every", Value::Time(EVERY_MIN, EVERY_MAX), Default("8 h"),
        "The same for the IKE SA."),
    Key::new("bytes", Value::Size(BYTES_MIN, BYTES_MAX), Depends("as the cipher allows"),
        "Bytes after which this side requests new keys, with ESP's padding and trailers.")
        .words("size from 1 MB"),
    Key::new("packets", Value::Integer(PACKETS_MIN, u64::MAX), Depends("as the cipher allows"),
        "The same for packets.").words("number from 1000"),
    Key::new("idle", Value::Time(EVERY_MIN, EVERY_MAX), Default("10 s"),
        "A peer that sent no message of IKE for this time is asked whether it lives. Without an \
         answer for 16 s its SAs end, and packets are dropped until there are new ones."),
];

/// AES-256-GCM, and keys that an attacker with a quantum computer cannot compute either.
pub(super) const BEST_PROPOSAL: &str = "aes256gcm16-prfsha384-x25519-ke1_mlkem768";

/// Keys of `identity`.
#[rustfmt::skip]
pub(super) const IDENTITY: &[Key] = &[
    Key::new("certificate", Value::Path, Required,
        "Certificate of this gateway, PEM. Peers configure its only name under `peer`."),
    Key::new("key", Value::Path, Required,
        "Its private key, PEM, readable by its owner only (mode 600)."),
    Key::new("ca", Value::Path, Required,
        "Certificate of the authority that signed the peers', PEM."),
];

/// Keys of `keys.handshake`.
#[rustfmt::skip]
pub(super) const HANDSHAKE: &[Key] = &[
    Key::new("peer", Value::Text, Required, "Name in the peer's certificate.").words("name"),
    Key::new("policy", POLICY, Default("pqc"),
        "Required sources of keys; the same on both sides. `pqc`: the handshake. `qkd`: QKD keys, \
         while the handshake authenticates only. `both`: both. `either`: the handshake, and QKD \
         keys while the KMEs have some. If a required source is missing there are no keys: nothing \
         weaker replaces it."),
    Key::new("ppk", Value::List(&Value::Map(PPK)), Depends("none"),
        "Pre-shared keys that are mixed in.").words("list, at most 8"),
    Key::new("sae", Value::Text, Depends("with QKD"), "The peer's SAE id at its KME."),
    Key::new("every", Value::Time(EVERY_MIN, EVERY_MAX), Default("1 h"),
        "Duration of an epoch. The side with the earlier expiry requests the next."),
    Key::new("hard", Value::Time(EVERY_MIN, HARD_MAX), Depends("none"),
        "Hard lifetime of an epoch (RFC 4301 §4.4.2.1): after it all packets are dropped \
         (`keys_expired`, `sa_expired`) until there are new keys. It ends earlier if either side's \
         certificate from the negotiation expires. Without it, keys stay in use while no new ones \
         can be negotiated.").words("more than `every`, to 8760 h"),
    Key::new("bytes", Value::Size(BYTES_MIN, BYTES_MAX), Depends("as the cipher allows"),
        "Bytes that this side seals in an epoch, with ESP's padding and trailers. Each of *w* \
         lanes requests the next epoch when it has sealed 1/*w* of this: so all lanes together \
         never seal more before the request, and unequal flows cause it sooner.")
        .words("size from 1 MB"),
    Key::new("packets", Value::Integer(PACKETS_MIN, u64::MAX), Depends("as the cipher allows"),
        "The same for packets.").words("number from 1000"),
    Key::new("grace", Value::Time(GRACE_MIN, GRACE_MAX), Default("5 s"),
        "Time for which packets of the last epoch are still accepted after both sides have left \
         it. At most 64 × `every`."),
];

/// Keys of a PPK.
#[rustfmt::skip]
pub(super) const PPK: &[Key] = &[
    Key::new("id", Value::Text, Required, "Name of the PPK, the same on both sides."),
    Key::new("file", Value::Path, Required, "File of `cipherbench keys ppk`, mode 600."),
    Key::new("optional", Value::Switch, Default("off"),
        "Accepts keys without this PPK while the peer does not have it, if the PPKs that only the \
         peer has are optional there, too."),
];

/// Keys of `qkd`.
#[rustfmt::skip]
pub(super) const QKD: &[Key] = &[
    Key::new("kme", Value::Notation("^https://."), Required,
        "This side's KME, `https`. A host name is resolved once, at start.").words("URL"),
    Key::new("sae", Value::Text, Required, "This side's SAE id."),
    Key::new("certificate", Value::Path, Required, "The SAE's certificate for the KME."),
    Key::new("key", Value::Path, Required, "Its private key."),
    Key::new("ca", Value::Path, Required, "The authority of the KME's certificate."),
];

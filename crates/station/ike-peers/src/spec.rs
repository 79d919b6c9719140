//! The generator's part in a trial, as JSON.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Replaced by a peer's number in its identity and its shared key.
pub(crate) const NUMBER: &str = "{n}";

/// Initiators of one gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The gateway's address.
    pub gateway: IpAddr,
    /// Its port of first messages.
    #[serde(default = "Spec::port")]
    pub port: u16,
    /// Its port that IKE shares with ESP.
    #[serde(default = "Spec::nat_port")]
    pub nat_port: u16,
    /// Number of peers.
    pub peers: u32,
    /// Their addresses.
    pub sources: Sources,
    /// Identity of each peer: an address, `user@domain` or a domain name; `{n}` is its number.
    pub identity: String,
    /// The gateway's identity; `None` accepts any that its authentication proves.
    pub gateway_identity: Option<String>,
    /// How both ends prove their identities.
    pub authentication: Authentication,
    /// The suite, such as `aes256gcm16-prfsha384-x25519-ke1_mlkem768`. Child SAs have the same
    /// cipher and, when they are rekeyed, the same key exchanges.
    pub proposal: String,
    /// A post-quantum pre-shared key (RFC 8784).
    #[serde(default)]
    pub ppk: Option<Ppk>,
    /// Packets of the tunnels.
    pub selectors: Selectors,
    /// Timers and options of each peer.
    #[serde(default)]
    pub behaviour: Behaviour,
    /// The load.
    pub load: Load,
    /// Rate of deletes of IKE SAs at the end, per second. `None` leaves them to the gateway.
    #[serde(default)]
    pub delete_per_s: Option<u32>,
}

impl Spec {
    const fn port() -> u16 {
        500
    }

    const fn nat_port() -> u16 {
        4500
    }
}

/// Addresses and ports of the peers: every peer has another pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sources {
    /// An address per peer, on IKE's two ports.
    Addresses {
        /// The first.
        first: IpAddr,
        /// Number of addresses from there.
        count: u32,
        /// The peers' port of first messages; 0 chooses a free one.
        port: u16,
        /// The peers' port that IKE shares with ESP; 0 chooses a free one.
        nat_port: u16,
    },
    /// A port per peer, on few addresses, as behind a NAT.
    Ports {
        /// The first address.
        address: IpAddr,
        /// Number of addresses from there.
        addresses: u32,
        /// The first port.
        first: u16,
        /// Number of ports from there.
        count: u16,
    },
}

/// How both ends prove their identities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Authentication {
    /// A shared key; with `{n}` in it each peer has another.
    SharedKey(Hidden),
    /// Certificates, issued to the peers before the load begins; ECDSA on P-256.
    Certificates {
        /// The authority that issues them.
        authority: Pem,
        /// Certificates of the gateway's authorities, PEM.
        trusted: String,
    },
}

/// A certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pem {
    /// The certificate, PEM.
    pub certificate: String,
    /// Its private key, PEM.
    pub key: Hidden,
}

/// A post-quantum pre-shared key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ppk {
    /// Its name.
    pub identity: String,
    /// The key, as text.
    pub key: Hidden,
    /// A gateway without it is refused.
    pub required: bool,
}

/// Packets of the tunnels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selectors {
    /// The address behind the first peer; those behind the others follow.
    pub local: IpAddr,
    /// The first address behind the gateway.
    pub remote_first: IpAddr,
    /// The last.
    pub remote_last: IpAddr,
}

/// Timers and options of each peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// Time until a request is repeated for the first time, in nanoseconds; it doubles with each.
    pub repeat_first_ns: u64,
    /// The longest time between two.
    pub repeat_longest_ns: u64,
    /// Repetitions until the gateway counts as dead.
    pub repetitions: u32,
    /// After this time without a message a peer checks that the gateway lives.
    pub idle_ns: u64,
    /// Longer messages are fragmented (RFC 7383): bytes of a UDP datagram's content.
    pub datagram_bytes: Option<u32>,
    /// Peers claim a NAT, so that both ends change to the port that is shared with ESP.
    pub always_in_udp: bool,
    /// Set-ups end with the IKE SA, without child SA, if the gateway supports that (RFC 6023).
    pub childless: bool,
    /// Set-ups that take longer count as failed, counted from the last intended one.
    pub patience_ns: u64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            repeat_first_ns: 500_000_000,
            repeat_longest_ns: 16_000_000_000,
            repetitions: 7,
            idle_ns: 30_000_000_000,
            datagram_bytes: Some(1200),
            always_in_udp: false,
            childless: false,
            patience_ns: 90_000_000_000,
        }
    }
}

/// The course of set-ups, deletes and rekeyings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Load {
    /// Every peer is set up once, at this rate.
    Setup {
        /// Set-ups per second.
        per_s: u32,
    },
    /// Every peer is set up at this rate, then all stay up.
    Concurrent {
        /// Set-ups per second.
        per_s: u32,
        /// How long all stay up, in nanoseconds.
        hold_ns: u64,
    },
    /// All peers are set up at the same time.
    Storm {
        /// Before the storm they are set up at this rate, and stay up until the storm is
        /// triggered. They then forget their SAs, as after a restart of the gateway.
        after_per_s: Option<u32>,
    },
    /// Peers are set up at a rate, and deleted some time later, for a long time.
    Churn {
        /// Set-ups per second.
        per_s: u32,
        /// Set-ups begin for this time, in nanoseconds.
        duration_ns: u64,
        /// Time from a set-up to its delete, in nanoseconds.
        lifetime_ns: u64,
    },
    /// First requests alone, which leave half-open IKE SAs.
    HalfOpen {
        /// Requests per second.
        per_s: u32,
        /// How long, in nanoseconds.
        duration_ns: u64,
    },
    /// Every peer is set up, then replaces its SAs within a window.
    Rekey {
        /// Set-ups per second.
        per_s: u32,
        /// The window, in nanoseconds.
        window_ns: u64,
        /// The SAs.
        what: Rekeyed,
    },
}

/// SAs that peers replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rekeyed {
    /// IKE SAs.
    Ike,
    /// Child SAs.
    Child,
}

/// A secret text, which is not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

//! Configuration of an IKE SA.

use super::Authentication;
use crate::crypto::{Cipher, KeMethodKind, Prf, Secret};
use crate::message::{AddressRange, Identity, IdentityType};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Most additional key exchanges of a suite.
pub const ADDITIONAL_MAX: usize = 3;

/// Algorithms of an IKE SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IkeSuite {
    /// Protection of messages.
    pub cipher: Cipher,
    /// Pseudo-random function.
    pub prf: Prf,
    /// Key exchange.
    pub exchange: KeMethodKind,
    /// Additional key exchanges (RFC 9370), the first ones first.
    pub additional: [Option<KeMethodKind>; ADDITIONAL_MAX],
}

/// Algorithms of a child SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChildSuite {
    /// Protection of packets.
    pub cipher: Cipher,
    /// Extended sequence numbers.
    pub esn: bool,
    /// Key exchange of CREATE_CHILD_SA. The first child SA has none besides that of its IKE SA.
    pub exchange: Option<KeMethodKind>,
    /// Additional key exchanges of CREATE_CHILD_SA (RFC 9370).
    pub additional: [Option<KeMethodKind>; ADDITIONAL_MAX],
}

impl ChildSuite {
    /// The suite in IKE_AUTH, which has no key exchange.
    pub(super) const fn without_exchange(self) -> Self {
        Self {
            exchange: None,
            additional: [None; ADDITIONAL_MAX],
            ..self
        }
    }
}

/// Configuration of one end of an IKE SA.
#[derive(Clone)]
pub struct Settings {
    /// This end's identity.
    pub identity: Identity,
    /// The peer's identity; another is refused. `None`: any that the authentication proves.
    pub peer_identity: Option<Identity>,
    /// How both ends prove their identities.
    pub authentication: Authentication,
    /// Suites of the IKE SA, by preference.
    pub ike: Vec<IkeSuite>,
    /// Suites of child SAs, by preference.
    pub child: Vec<ChildSuite>,
    /// Packets behind this end.
    pub local: Vec<AddressRange>,
    /// Packets behind the peer.
    pub remote: Vec<AddressRange>,
    /// Most child SAs that the peer may create.
    pub children_max: usize,
    /// IKE_AUTH creates no child SA, if the peer supports that (RFC 6023).
    pub childless: bool,
    /// This is the only IKE SA with the peer: it shall forget others (RFC 7296 section 2.4).
    pub initial_contact: bool,
    /// Post-quantum pre-shared keys (RFC 8784). The initiator uses the first.
    pub ppks: Vec<Ppk>,
    /// When a PPK is required.
    pub ppk_policy: PpkPolicy,
    /// Longer messages are fragmented (RFC 7383): bytes of a UDP datagram's content. `None`:
    /// never.
    pub datagram: Option<usize>,
    /// Times until SAs are replaced.
    pub lifetimes: Lifetimes,
    /// Repetition of requests.
    pub retransmission: Retransmission,
    /// A peer that sent nothing for this time is asked whether it lives.
    pub idle: Duration,
    /// Ports, encapsulation and SPIs.
    pub transport: Transport,
}

/// Ports, encapsulation and SPIs.
#[derive(Debug, Clone)]
pub struct Transport {
    /// The port of first requests, from which both ends change if there is a NAT.
    pub port: u16,
    /// The port of this end that IKE shares with ESP (RFC 3948).
    pub nat_port: u16,
    /// The peer's.
    pub peer_nat_port: u16,
    /// Claims that this end is behind a NAT: then ESP is encapsulated in UDP with any peer that
    /// knows NATs.
    pub always_in_udp: bool,
    /// SPIs of child SAs to this end; `None`: at random.
    pub child_spis: Option<ChildSpis>,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            port: 500,
            nat_port: 4500,
            peer_nat_port: 4500,
            always_in_udp: false,
            child_spis: None,
        }
    }
}

/// SPIs that have the same low bits, by which the receiver finds the tunnel. All sessions with the
/// same one, and its clones, count together, so that no SPI returns soon.
#[derive(Debug, Clone)]
pub struct ChildSpis {
    low_bits: u32,
    low: u32,
    next: Arc<AtomicU32>,
}

impl ChildSpis {
    /// SPIs with `low` in their `low_bits` low bits. The others are counted from a random number.
    ///
    /// # Panics
    /// When there are less than 8 or more than 24 low bits, or `low` does not fit.
    #[must_use]
    pub fn new(low_bits: u32, low: u32, first: u32) -> Self {
        assert!((8..=24).contains(&low_bits) && low >> low_bits == 0);
        Self {
            low_bits,
            low,
            next: Arc::new(AtomicU32::new(first)),
        }
    }

    pub(super) fn take(&self) -> u32 {
        loop {
            let high = self.next.fetch_add(1, Ordering::Relaxed) << self.low_bits;
            // With 8 low bits at least, 0 stands for all reserved ones (RFC 4303 section 2.1).
            if high != 0 {
                return high | self.low;
            }
        }
    }
}

/// A post-quantum pre-shared key.
#[derive(Clone)]
pub struct Ppk {
    /// Its name.
    pub identity: Vec<u8>,
    /// The key.
    pub key: Secret,
}

/// Whether an IKE SA needs a PPK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PpkPolicy {
    /// One that both ends have is used; without one the IKE SA is created too.
    Optional,
    /// Without one the peer is refused.
    Required,
}

/// Times until this end replaces SAs. Up to a tenth is taken off at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lifetimes {
    /// Of the IKE SA.
    pub ike: Option<Duration>,
    /// Of child SAs.
    pub child: Option<Duration>,
}

/// Repetition of a request without response (RFC 7296 section 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    /// Time until the first repetition; it doubles with each.
    pub first: Duration,
    /// The longest time between two.
    pub longest: Duration,
    /// Repetitions until the peer counts as dead.
    pub repetitions: u32,
}

impl Retransmission {
    /// About a minute in all.
    pub const DEFAULT: Self = Self {
        first: Duration::from_millis(500),
        longest: Duration::from_secs(16),
        repetitions: 7,
    };

    /// Time after a transmission, which `repetitions` preceded.
    pub(super) fn after(self, repetitions: u32) -> Duration {
        let factor = 1u32.checked_shl(repetitions).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

/// Addresses of a datagram, as this end sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// This end's address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl Identity {
    /// The identity that people write so: an address, `user@domain` or a domain name.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let named = |kind| Self {
            kind,
            data: text.as_bytes().to_vec(),
        };
        match text.parse() {
            Ok(address) => Self::address(address),
            Err(_) if text.contains('@') => named(IdentityType::RFC822_ADDR),
            Err(_) => named(IdentityType::FQDN),
        }
    }

    /// A domain name.
    #[must_use]
    pub fn fqdn(name: &str) -> Self {
        Self {
            kind: IdentityType::FQDN,
            data: name.as_bytes().to_vec(),
        }
    }

    /// An IP address.
    #[must_use]
    pub fn address(address: IpAddr) -> Self {
        let (kind, data) = match address {
            IpAddr::V4(address) => (IdentityType::IPV4_ADDR, address.octets().to_vec()),
            IpAddr::V6(address) => (IdentityType::IPV6_ADDR, address.octets().to_vec()),
        };
        Self { kind, data }
    }

    /// The content of its payload, as AUTH covers it.
    pub(super) fn body(&self) -> Vec<u8> {
        [&[self.kind.0, 0, 0, 0], self.data.as_slice()].concat()
    }
}

//! Settings of Cipherbench's encryptor as a device under test.

use crate::adapter::l2tpv3;
use crate::adapter::profile::VLAN_TAG_BYTES;
use crate::keys::KeySource;
use catalog::Choice;
use serde::{Deserialize, Serialize, Serializer};
use strum::{IntoStaticStr, VariantArray};
use wire::Suite;
use wire::l2tp;
use wire::mix::ETHERNET_HEADER_BYTES;
use wire::overhead::IPV4_HEADER_BYTES;

/// Shortest and longest L2TPv3 header: the session alone, and every optional field plus the IPv4
/// header that L2TPv3 needs inside ESP (RFC 3931 §4.1).
const L2TPV3_BYTES: (usize, usize) = (4, IPV4_HEADER_BYTES + l2tp::HEADER_BYTES_MAX);

/// One process per gateway, and its configuration. A field that an older journal lacks has the
/// value that was in force then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encryptor {
    /// ESP suite; unused if [`mode`](Self::mode) has no ESP.
    pub suite: Suite,
    /// Worker threads (lanes) per gateway; at least 1.
    pub workers: u16,
    /// Engine that seals and opens.
    #[serde(serialize_with = "engine")]
    pub engine: Choice,
    /// Tunnels (peers), each with separate networks; at least 1.
    // Older journals have one tunnel.
    #[serde(default = "crate::one")]
    pub tunnels: u16,
    /// Payload and encapsulation.
    #[serde(default)]
    pub mode: Mode,
    /// Many small packets in one ESP packet (AGGFRAG, RFC 9347).
    #[serde(default)]
    pub aggregate: bool,
    /// Workers poll for packets instead of waiting for them.
    #[serde(default)]
    pub busy_poll: bool,
    /// Source of its keys.
    #[serde(default)]
    pub keys: KeySource,
    /// Lifetime of agreed keys, in nanoseconds; `None` for static keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rekey_every_ns: Option<u64>,
    /// Fault that can be injected into gw2's keys: set by trials that inject it, `None` in all
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Desync>,
}

/// Payload and encapsulation of an encryptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Mode {
    /// IP packets in ESP: a router to its neighbours.
    #[default]
    L3,
    /// Ethernet frames in ESP: a bump in the wire.
    L2,
    /// Ethernet frames in L2TPv3 (RFC 3931), and that in ESP.
    L2tpv3,
    /// Ethernet frames in L2TPv3 alone: nothing is encrypted.
    L2tpv3Clear,
}

impl Mode {
    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the gateways bridge: the stations are neighbours then.
    #[must_use]
    pub const fn bridges(self) -> bool {
        !matches!(self, Self::L3)
    }

    /// Minimum and maximum bytes between an IP packet of a station and the ESP or UDP header: the
    /// maximum has room for a VLAN tag.
    #[must_use]
    pub const fn frame_bytes(self) -> (usize, usize) {
        let (least, most) = match self {
            Self::L3 => return (0, 0),
            // The Ethernet header is added below: the frame is carried whole.
            Self::L2 => (0, 0),
            Self::L2tpv3 | Self::L2tpv3Clear => L2TPV3_BYTES,
        };
        (
            ETHERNET_HEADER_BYTES + least,
            ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES + most,
        )
    }

    /// Whether it uses ESP.
    #[must_use]
    pub const fn has_esp(self) -> bool {
        !matches!(self, Self::L2tpv3Clear)
    }
}

impl Encryptor {
    /// Most tunnels times workers: keys have room for that many SAs a direction.
    pub const SAS_MAX: u32 = 4096;

    /// One tunnel of IP packets by one worker, with automatic choice of the engine and static keys.
    #[must_use]
    pub fn new(suite: Suite) -> Self {
        Self {
            suite,
            workers: 1,
            engine: Choice::Auto,
            tunnels: 1,
            mode: Mode::L3,
            aggregate: false,
            busy_poll: false,
            keys: KeySource::Static,
            rekey_every_ns: None,
            fault: None,
        }
    }

    /// The same with this key source and the default lifetime.
    #[must_use]
    pub fn with_keys(self, keys: KeySource) -> Self {
        // An hour fits.
        let every_ns = KeySource::REKEY_EVERY.as_nanos() as u64;
        Self {
            keys,
            // Static keys have no periodic epochs.
            rekey_every_ns: keys.is_agreed().then_some(every_ns),
            ..self
        }
    }

    /// Whether its engine is the control that neither encrypts nor authenticates.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.engine.is_null()
    }

    /// Why it must not protect data; `None` if it may.
    #[must_use]
    pub fn insecure(&self) -> Option<&'static str> {
        // The strongest reason first: without ESP neither engine nor suite matters.
        if !self.mode.has_esp() {
            Some(l2tpv3::INSECURE)
        } else if self.is_null() {
            Some("the engine neither encrypts nor authenticates")
        } else {
            self.suite.insecure()
        }
    }

    /// Whether its packets can be read on the cipher link.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        !self.mode.has_esp() || self.is_null() || !self.suite.encrypts()
    }
}

/// Serializes a name without the quotes that YAML needs for the control; anything else as in the
/// configuration.
fn engine<S: Serializer>(choice: &Choice, serializer: S) -> Result<S::Ok, S::Error> {
    match choice {
        Choice::Named(name) => serializer.serialize_str(name),
        choice => serializer.collect_str(choice),
    }
}

/// How keys get out of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Desync {
    /// gw2 holds other keys for the epoch in force than gw1 seals with.
    WrongKeys,
    /// gw1 seals with the keys of a next epoch that gw2 does not know.
    MissedRollover,
}

impl Desync {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::WrongKeys, Self::MissedRollover];

    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

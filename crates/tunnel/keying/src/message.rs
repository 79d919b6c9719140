//! Messages of the control channel: one JSON object per message, preceded by its length in four
//! bytes, big-endian (`control` does the framing).
//!
//! Nothing in a message is secret. Everything from a peer is checked, and an invalid message is
//! rejected as a whole. This module checks form: sizes, ranges of numbers, no control characters in
//! text that may be displayed. [`rollover`](crate::rollover) checks the meaning and the order of
//! messages.

use crate::chain::Policy;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

mod check;

pub use crate::chain::Confirmation;
pub use check::{Garbled, for_people};
use check::{foreign_version, garbled};

/// Version of the protocol, sent in [`Offer`].
pub const VERSION: u16 = 2;
/// Maximum length of a message in bytes, without its length prefix.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of PPKs and of QKD keys, each, per epoch.
pub const LINKS_MAX: usize = 8;
/// Maximum number of epochs with keys on one side; a side with more drops the oldest.
pub const LIVE_MAX: usize = 64;

/// The keys and requirements of one side. It is in each side's first message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// [`VERSION`].
    pub version: u16,
    /// The tunnel's number.
    pub tunnel: u16,
    /// Name of the ESP suite, at most 64 bytes.
    pub suite: String,
    /// Number of lanes.
    pub lanes: u16,
    /// Payload of the tunnel: `l3`, `l2` or `l2tpv3`, followed by modifiers of the format
    /// (`l3 aggregate`). At most 64 bytes.
    pub payload: String,
    /// The required key sources.
    pub policy: Policy,
    /// Its PPKs, sorted by the bytes of their IDs, without duplicates. At most [`LINKS_MAX`].
    pub ppks: Vec<OfferedPpk>,
    /// Its latest epoch since it started, in serial-number order; 0 if none.
    pub last_epoch: u32,
    /// Epochs that it still has keys of; a new epoch must differ from them. At most [`LIVE_MAX`].
    pub live: Vec<u32>,
    /// The epoch that it sends in, if any; its peer keeps the keys of that epoch.
    pub sends_in: Option<u32>,
}

/// A PPK's ID, and whether its owner requires it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedPpk {
    /// ID: see [`is_id`](crate::chain::is_id).
    pub id: String,
    /// Whether there are no keys without it.
    pub required: bool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[strum(serialize_all = "snake_case")]
pub enum Message {
    /// Connector's first message.
    Open {
        /// The connector's offer.
        offer: Offer,
        /// Why a new epoch is wanted.
        cause: Cause,
    },
    /// Listener: its offer, and the epoch that both will use.
    Accept {
        /// The listener's offer.
        offer: Offer,
        /// The new epoch.
        epoch: u32,
    },
    /// Connector: the QKD keys to mix in, in this order; none if the policy uses none, or `either`
    /// has none.
    Keys {
        /// Distinct UUIDs, at most [`LINKS_MAX`].
        qkd: Vec<String>,
    },
    /// Connector, instead of `Keys`: both sides still have the keys of the epoch that both seal
    /// with, so no new epoch follows. This connection becomes the established channel.
    Keep {
        /// [`EpochSecret::possession`](crate::chain::EpochSecret::possession) of side a.
        confirmation: Confirmation,
        /// Messages that side a has sent over the epoch's established channels. Fewer than side b
        /// has received: side a was restored from a snapshot, and repeats nonces.
        said: u64,
    },
    /// Listener: it has the same keys.
    Kept {
        /// Possession of side b.
        confirmation: Confirmation,
        /// As in `Keep`.
        said: u64,
    },
    /// Listener: it cannot get those QKD keys. With `either` the connector repeats `Keys` without
    /// any.
    KeysMissing {
        /// The reason, for display. Truncated to 512 bytes.
        reason: String,
    },
    /// Listener: it opens packets of the epoch, and proves that it has the keys.
    Ready {
        /// [`EpochSecret::confirmation`](crate::chain::EpochSecret::confirmation) of side b, hex.
        confirmation: Confirmation,
    },
    /// Connector: from now on it opens packets of the epoch, and seals with its keys.
    Switched {
        /// Confirmation of side a.
        confirmation: Confirmation,
    },
    /// Listener: it seals with the epoch from now on. The new epoch is established.
    Done,
    /// Listener, over an established channel: requests a new epoch.
    Rekey {
        /// Why a new epoch is wanted.
        cause: Cause,
    },
    /// Either side, over an established channel: a liveness check.
    Ping {
        /// Returned in the `Pong`.
        number: u64,
    },
    /// The response to a `Ping`.
    Pong {
        /// Number of the `Ping`.
        number: u64,
    },
    /// Either side, before it closes the channel: why there will be no keys.
    Refuse {
        /// The violated rule.
        why: Refusal,
        /// The reason, for display. Truncated to 512 bytes.
        detail: String,
    },
}

/// Why a new epoch is wanted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Cause {
    /// There is no epoch yet, or the peer was unreachable.
    Start,
    /// The epoch's time limit has been reached.
    Time,
    /// The epoch's limit of sealed bytes has been reached.
    Bytes,
    /// The epoch's limit of sealed packets has been reached.
    Packets,
    /// The user requested it.
    Demand,
    /// Packets of the peer cannot be opened.
    Desync,
    /// The last attempt failed.
    Retry,
}

impl Cause {
    /// All causes.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its name in messages and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether anyone on the path can provoke it, with no more than resets, delays and forged
    /// packets. [`budget`](crate::rollover::Budget) bounds these.
    #[must_use]
    pub const fn is_provoked(self) -> bool {
        match self {
            Self::Start | Self::Desync | Self::Retry => true,
            Self::Time | Self::Bytes | Self::Packets | Self::Demand => false,
        }
    }
}

/// Why one side refuses to agree on keys with the other.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// Different versions of the protocol.
    Version,
    /// No tunnel of that number between the two gateways.
    Tunnel,
    /// Different suites.
    Suite,
    /// Different numbers of lanes.
    Lanes,
    /// Different payloads.
    Payload,
    /// Different policies.
    Policy,
    /// One side requires a PPK that the other lacks.
    Ppk,
    /// QKD keys that the policy requires are unavailable.
    Qkd,
    /// The two sides derived different keys.
    KeysDiffer,
    /// A message is invalid, too long, or out of order.
    Protocol,
    /// The other side was too slow.
    Timeout,
    /// A newer attempt has taken this one's place.
    Superseded,
    /// New keys were needed too often of late, for reasons that a network can provoke.
    TooOften,
}

impl Refusal {
    /// All refusals.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its name in messages and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Message {
    /// The name of its kind.
    pub(crate) fn name(&self) -> &'static str {
        self.into()
    }

    /// Encodes the message. Display texts are [truncated](for_people); nothing else is changed.
    ///
    /// # Panics
    /// If a list or a name is longer than [`decode`](Self::decode) accepts: the peer would reject
    /// it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut message = self.clone();
        if let Self::KeysMissing { reason: text } | Self::Refuse { detail: text, .. } = &mut message
        {
            *text = for_people(text).into_owned();
        }
        // A mistake of this side, found here and not by the peer.
        if let Err(garbled) = message.check() {
            panic!("a message that every peer would reject: {garbled}");
        }
        let bytes = serde_json::to_vec(&message).expect("numbers, texts and lists are JSON");
        assert!(
            bytes.len() <= MESSAGE_BYTES_MAX,
            "bounded parts make a bounded message"
        );
        bytes
    }

    /// Decodes a message from all of `bytes`.
    ///
    /// # Errors
    /// [`Garbled`]: if it is longer than [`MESSAGE_BYTES_MAX`], not a message, or has a part that
    /// exceeds its bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        // Before the parser allocates anything.
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(garbled(format_args!(
                "a message has {} bytes, at most {MESSAGE_BYTES_MAX} are accepted",
                bytes.len()
            )));
        }
        let message: Self =
            serde_json::from_slice(bytes).map_err(|error| match foreign_version(bytes) {
                Some(version) => garbled(format_args!(
                    "the peer speaks version {version} of the protocol, this side version {VERSION}"
                )),
                None => garbled(format_args!("this is no message: {error}")),
            })?;
        // The parser checks types only, not sizes and ranges.
        message.check()?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests;

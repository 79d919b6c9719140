//! What two gateways say to each other over the control channel: JSON, one object a message, behind its length in four
//! bytes, big-endian (`control` frames them).
//!
//! Nothing in a message is secret. Nothing is taken from a peer that is not checked: a message is refused whole.
//! What is checked here is form: sizes, numbers in their ranges, no control characters in what people may be shown. What a
//! message means, and whether it is its turn, is the matter of [`rollover`](crate::rollover).

use crate::chain::{CHAIN_BYTES, Policy};
use crate::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

mod check;

pub use check::{Garbled, for_people};
use check::{foreign_version, garbled};

/// Of the protocol, in [`Offer`].
pub const VERSION: u16 = 1;
/// The longest message, in bytes, without its length.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// PPKs and QKD keys that one epoch may mix, each.
pub const LINKS_MAX: usize = 8;
/// Epochs that one side may have keys of: who has more gives up the oldest.
pub const LIVE_MAX: usize = 64;

/// What one side has, and wants; each side says it once, first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// [`VERSION`].
    pub version: u16,
    /// The tunnel's number.
    pub tunnel: u16,
    /// Name of the ESP suite. At most 64 bytes.
    pub suite: String,
    /// Lanes.
    pub lanes: u16,
    /// What it carries: `l3`, `l2`, `l2tpv3`, with what changes the format behind it (`l3 aggregate`). At
    /// most 64 bytes.
    pub payload: String,
    /// What keys must come from.
    pub policy: Policy,
    /// The PPKs that it has, sorted by their ids' bytes, none twice; each with whether it may be left out. At most
    /// [`LINKS_MAX`].
    pub ppks: Vec<OfferedPpk>,
    /// The latest epoch that it took part in since it started, as numbers go round; 0: none.
    pub last_epoch: u32,
    /// Epochs of which it still has keys: a new one is none of them. At most [`LIVE_MAX`].
    pub live: Vec<u32>,
    /// The epoch that it sends in, if any: its peer keeps the keys of that one.
    pub sends_in: Option<u32>,
}

/// A PPK's id, and what its owner thinks of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedPpk {
    /// Id: see [`is_id`](crate::chain::is_id).
    pub id: String,
    /// No keys without it.
    pub required: bool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// Connector, first.
    Open {
        /// Its own.
        offer: Offer,
        /// Why it wants a new epoch.
        cause: Cause,
    },
    /// Listener: its own offer, and the epoch that both will use.
    Accept {
        /// Its own.
        offer: Offer,
        /// The new epoch.
        epoch: u32,
    },
    /// Connector: the QKD keys to be mixed in, in this order; none where the policy needs none, or `either` has none.
    Keys {
        /// UUIDs, none twice. At most [`LINKS_MAX`].
        qkd: Vec<String>,
    },
    /// Listener: it cannot get those QKD keys. With `either` the connector says `Keys` again, with none.
    KeysMissing {
        /// Why, for people. Cut after 512 bytes.
        reason: String,
    },
    /// Listener: it opens packets of the epoch, and has these keys.
    Ready {
        /// [`EpochSecret::confirmation`](crate::chain::EpochSecret::confirmation) of side b, hex.
        confirmation: Confirmation,
    },
    /// Connector: it opens packets of the epoch, and seals with it from now on.
    Switched {
        /// Of side a.
        confirmation: Confirmation,
    },
    /// Listener: it seals with the epoch from now on. The new epoch is established.
    Done,
    /// Over an established channel, listener: please make a new epoch.
    Rekey {
        /// Why.
        cause: Cause,
    },
    /// Over an established channel, either: I am here.
    Ping {
        /// Comes back.
        number: u64,
    },
    /// The answer.
    Pong {
        /// Of the ping.
        number: u64,
    },
    /// Either, and then it closes: why there will be no keys on this channel.
    Refuse {
        /// Which rule.
        why: Refusal,
        /// For people. Cut after 512 bytes.
        detail: String,
    },
}

/// Proof of having the same keys; hexadecimal in a message.
#[derive(Clone, PartialEq, Eq)]
pub struct Confirmation(pub [u8; CHAIN_BYTES]);

/// Why there is to be a new epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// There is none yet, or the peer was away.
    Start,
    /// The time is over.
    Time,
    /// So many bytes were sealed.
    Bytes,
    /// So many packets were sealed.
    Packets,
    /// Somebody asked for it.
    Demand,
    /// Packets of the peer cannot be opened.
    Desync,
    /// The last attempt failed.
    Retry,
}

/// Why one side will have no keys with the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Another version of the protocol.
    Version,
    /// There is no such tunnel between these two.
    Tunnel,
    /// Another suite.
    Suite,
    /// Another number of lanes.
    Lanes,
    /// Another payload.
    Payload,
    /// Another policy.
    Policy,
    /// A PPK that one side requires and the other has not.
    Ppk,
    /// QKD keys that the policy requires cannot be had.
    Qkd,
    /// Both have keys, and not the same.
    KeysDiffer,
    /// A message that cannot be read, is too long, or comes out of turn.
    Protocol,
    /// The other side was too slow.
    Timeout,
    /// A newer attempt has taken this one's place.
    Superseded,
}

impl Message {
    /// The message's bytes. Texts for people are [cut to fit](for_people), all else is as it is.
    ///
    /// # Panics
    /// When a list or a name is longer than [`decode`](Self::decode) takes: the peer would refuse it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut message = self.clone();
        if let Self::KeysMissing { reason: text } | Self::Refuse { detail: text, .. } = &mut message
        {
            *text = for_people(text).into_owned();
        }
        if let Err(garbled) = message.check() {
            panic!("a message that no peer would take: {garbled}");
        }
        let bytes = serde_json::to_vec(&message).expect("numbers, texts and lists are JSON");
        assert!(
            bytes.len() <= MESSAGE_BYTES_MAX,
            "bounded parts, bounded message"
        );
        bytes
    }

    /// The message that these bytes are, all of them.
    ///
    /// # Errors
    /// [`Garbled`]: when they are longer than [`MESSAGE_BYTES_MAX`], no message, or one of which a part is beyond its
    /// bounds.
    pub fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(garbled(format_args!(
                "a message has {} bytes, at most {MESSAGE_BYTES_MAX} are taken",
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
        message.check()?;
        Ok(message)
    }
}

impl Serialize for Confirmation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut digits = String::new();
        hex::push(&mut digits, &self.0);
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for Confirmation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let mut bytes = [0; CHAIN_BYTES];
        hex::read(&digits, &mut bytes)
            .ok_or_else(|| de::Error::custom("a confirmation has 96 hexadecimal digits"))?;
        Ok(Self(bytes))
    }
}

/// It is no secret once it was shown, but nobody needs to see it.
impl fmt::Debug for Confirmation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confirmation(..)")
    }
}

#[cfg(test)]
mod tests;

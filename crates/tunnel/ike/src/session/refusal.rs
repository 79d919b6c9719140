//! Reasons to ignore a datagram. Each has a name, by which callers count.

use crate::crypto::{ExchangeError, OpenError};
use crate::message::{KeMethod, Malformed, PayloadType};

/// Why a datagram was ignored. None of these changes an IKE SA.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The codec refuses it.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// No IKE SA has its SPIs.
    #[error("no IKE SA has these SPIs (RFC 7296 section 2.6)")]
    UnknownSpi,
    /// It should be encrypted.
    #[error("the message is not encrypted (RFC 7296 section 3.14)")]
    NotEncrypted,
    /// It was not sealed by the IKE SA's keys.
    #[error("{0}")]
    Sealing(#[from] OpenError),
    /// A response to a request that is answered, or was never sent.
    #[error("a response to no request (RFC 7296 section 2.2)")]
    UnexpectedResponse,
    /// A request that is too old or too new.
    #[error("a message ID outside of the window (RFC 7296 section 2.3)")]
    MessageId,
    /// A fragment that does not fit to those that came before.
    #[error("a fragment that does not fit to the others (RFC 7383 section 2.6)")]
    Fragment,
    /// More fragments or bytes than are kept.
    #[error("a message of more fragments than are kept (RFC 7383 section 2.6)")]
    FragmentsTooMany,
    /// A first request that has the SPI of an IKE SA.
    #[error("a first request to a known IKE SA (RFC 7296 section 2.1)")]
    KnownSpi,
    /// A first response after the first.
    #[error("a first response that is late (RFC 7296 section 2.1)")]
    LateFirst,
    /// A first message that is no response to the first request.
    #[error("no response to the first request (RFC 7296 section 2.2)")]
    NotFirst,
    /// A critical payload that is unknown, without authentication.
    #[error("the critical payload {0} is unknown (RFC 7296 section 2.5)")]
    Critical(PayloadType),
    /// A first message without the three payloads.
    #[error("SA, KE and nonce must occur once each (RFC 7296 section 1.2)")]
    Incomplete,
    /// A first request that would take too much memory until authentication.
    #[error(
        "a first request of {0} bytes (RFC 7296 section 2; the limit is this implementation's)"
    )]
    FirstTooLong(usize),
    /// The responder's SPI is missing.
    #[error("the responder's SPI is 0 (RFC 7296 section 3.1)")]
    ZeroSpi,
    /// A chosen proposal that was not offered.
    #[error("the peer chose a proposal that was not offered (RFC 7296 section 2.7)")]
    UnofferedProposal,
    /// A wanted key exchange that was not offered.
    #[error("the peer wants {0}, which was not offered (RFC 7296 section 2.7)")]
    UnofferedMethod(KeMethod),
    /// A public value of another method than the proposal's.
    #[error("a key exchange {0} does not fit the proposal (RFC 7296 section 1.2)")]
    OtherMethod(KeMethod),
    /// An invalid public value.
    #[error("{0}")]
    Exchange(#[from] ExchangeError),
    /// More cookies and other key exchanges than an initiator follows.
    #[error("too many cookies and key exchanges were asked for (RFC 7296 section 2.6)")]
    Restarts,
    /// The responder has too many IKE SAs without authentication.
    #[error("too many IKE SAs are half-open (RFC 7296 section 2.6)")]
    HalfOpen,
    /// The responder has too many of them with this address.
    #[error("too many IKE SAs of this address are half-open (RFC 7296 section 2.6)")]
    HalfOpenOfAddress,
}

impl Refusal {
    /// Its name, for a counter.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::UnknownSpi => "unknown_spi",
            Self::NotEncrypted => "not_encrypted",
            Self::Sealing(_) => "integrity",
            Self::UnexpectedResponse => "unexpected_response",
            Self::MessageId => "message_id",
            Self::Fragment => "fragment",
            Self::FragmentsTooMany => "fragments_too_many",
            Self::KnownSpi => "known_spi",
            Self::LateFirst => "late_first",
            Self::NotFirst => "not_first",
            Self::Critical(_) => "critical",
            Self::Incomplete => "incomplete",
            Self::FirstTooLong(_) => "first_too_long",
            Self::ZeroSpi => "zero_spi",
            Self::UnofferedProposal => "unoffered_proposal",
            Self::UnofferedMethod(_) => "unoffered_method",
            Self::OtherMethod(_) => "other_method",
            Self::Exchange(_) => "public_value",
            Self::Restarts => "restarts",
            Self::HalfOpen => "half_open",
            Self::HalfOpenOfAddress => "half_open_of_address",
        }
    }
}

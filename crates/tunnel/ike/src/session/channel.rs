//! One IKE SA's encrypted messages: windows of one request, repetition with back-off, repeated
//! responses and fragments (RFC 7296 sections 2.1 to 2.4, RFC 7383).

use super::fragments::{Bounds, Fragments, parts};
use super::{Keyed, Purpose, Random, Refusal, Retransmission, Role};
use crate::crypto::{Secret, open, seal};
use crate::message::{Exchange, Header, Message, Payload, PayloadType, TooLong, emit_payloads};
use std::time::Duration;

/// A request of this end without response.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) purpose: Purpose,
    pub(super) exchange: Exchange,
    pub(super) message_id: u32,
    pub(super) datagrams: Vec<Vec<u8>>,
    pub(super) repetitions: u32,
    pub(super) next_at: Duration,
}

/// Whether an IKE SA takes requests for child SAs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Live,
    /// Another IKE SA replaces it. The peer deletes it; if it does not, this end does.
    Replaced(Duration),
    /// This end deletes it, once its window permits.
    Leaving,
    /// This end's delete is sent.
    Deleting,
}

/// One IKE SA.
#[derive(Clone)]
pub(super) struct Channel {
    /// This end's role, which a rekeying may change.
    pub(super) role: Role,
    pub(super) initiator_spi: u64,
    pub(super) responder_spi: u64,
    pub(super) keyed: Option<Keyed>,
    pub(super) pending: Option<Pending>,
    pub(super) next_request: u32,
    pub(super) next_expected: u32,
    pub(super) standing: Standing,
    pub(super) last_response: Option<Vec<Vec<u8>>>,
    /// Keys of the last request, if it changed them.
    pub(super) former: Option<Box<Keyed>>,
    sealed: u64,
    /// Of a request, and of a response.
    fragments: [Fragments; 2],
}

/// A message of the peer.
pub(super) enum Received {
    Request(Inner),
    Response(Purpose, Inner),
    /// A request whose response was lost.
    Repeated,
    /// A fragment of a message that is incomplete.
    Partial,
}

/// A decrypted message.
#[derive(Clone)]
pub(super) struct Inner {
    pub(super) header: Header,
    pub(super) first: PayloadType,
    pub(super) bytes: Secret,
}

/// Reasons that end an IKE SA at the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsendable {
    #[error("the IKE SA has no keys yet")]
    NoKeys,
    #[error("the message IDs of the IKE SA are used up (RFC 7296 section 2.2)")]
    MessageIds,
    #[error("{0}")]
    TooLong(#[from] TooLong),
}

impl Channel {
    pub(super) fn new(role: Role, initiator_spi: u64, responder_spi: u64) -> Self {
        Self {
            role,
            initiator_spi,
            responder_spi,
            keyed: None,
            pending: None,
            next_request: 0,
            next_expected: 0,
            standing: Standing::Live,
            last_response: None,
            former: None,
            sealed: 0,
            fragments: Default::default(),
        }
    }

    /// This end's SPI, which names the IKE SA.
    pub(super) const fn local_spi(&self) -> u64 {
        match self.role {
            Role::Initiator => self.initiator_spi,
            Role::Responder => self.responder_spi,
        }
    }

    /// Whether a message with this header is of this IKE SA. The responder's SPI is unknown until
    /// its first response.
    pub(super) fn owns(&self, header: &Header) -> bool {
        // A repeated first request does not have the responder's SPI yet.
        let is_first = header.exchange == Exchange::IKE_SA_INIT && header.responder_spi == 0;
        let is_unknown = is_first || self.responder_spi == 0;
        header.initiator_spi == self.initiator_spi
            && (header.responder_spi == self.responder_spi || is_unknown)
            && header.from_initiator == (self.role == Role::Responder)
    }

    /// Opens a message and applies the windows.
    pub(super) fn receive(
        &mut self,
        header: Header,
        datagram: &[u8],
        bounds: Bounds,
    ) -> Result<Received, Refusal> {
        let message = Message::parse(datagram)?;
        let is_repeated =
            !header.is_response && header.message_id.checked_add(1) == Some(self.next_expected);
        let former = self.former.as_deref().filter(|_| is_repeated);
        let keyed = former.or(self.keyed.as_ref());
        let keyed = keyed.ok_or(Refusal::NotEncrypted)?;
        let body_bytes = match message.payloads.as_slice() {
            [Payload::Encrypted { body, .. } | Payload::Fragment { body, .. }] => body.len(),
            _ => return Err(Refusal::NotEncrypted),
        };
        let keys = keyed.direction(self.role == Role::Responder);
        let bytes = open(keyed.suite.cipher, keys, datagram, body_bytes)?;
        let is_awaited = if header.is_response {
            let pending = self.pending.as_ref();
            pending.is_some_and(|it| {
                it.message_id == header.message_id && it.exchange == header.exchange
            })
        } else {
            header.message_id == self.next_expected
        };
        if !is_awaited {
            return Self::unawaited(header, &message, is_repeated);
        }
        let (first, bytes) = match message.payloads[0] {
            Payload::Fragment {
                first,
                number,
                total,
                ..
            } => {
                let fragments = &mut self.fragments[usize::from(header.is_response)];
                let place = (number, total);
                match fragments.add(header.message_id, place, first, bytes, bounds)? {
                    Some(whole) => whole,
                    None => return Ok(Received::Partial),
                }
            }
            Payload::Encrypted { first, .. } => (first, bytes),
            _ => return Err(Refusal::NotEncrypted),
        };
        let inner = Inner {
            header,
            first,
            bytes,
        };
        if header.is_response {
            let pending = self.pending.take().ok_or(Refusal::UnexpectedResponse)?;
            return Ok(Received::Response(pending.purpose, inner));
        }
        self.next_expected = self
            .next_expected
            .checked_add(1)
            .ok_or(Refusal::MessageId)?;
        self.former = None;
        Ok(Received::Request(inner))
    }

    fn unawaited(
        header: Header,
        message: &Message,
        is_repeated: bool,
    ) -> Result<Received, Refusal> {
        if header.is_response {
            return Err(Refusal::UnexpectedResponse);
        }
        if !is_repeated {
            return Err(Refusal::MessageId);
        }
        // One response for all fragments of a repeated request (RFC 7383 section 2.6.1).
        match message.payloads[0] {
            Payload::Fragment { number, .. } if number != 1 => Ok(Received::Partial),
            _ => Ok(Received::Repeated),
        }
    }

    /// Seals a request, which is pending from now on.
    pub(super) fn request(
        &mut self,
        exchange: Exchange,
        payloads: &[Payload],
        purpose: Purpose,
        how: &mut Sealing<'_>,
    ) -> Result<Inner, Unsendable> {
        let message_id = self.next_request;
        self.next_request = message_id.checked_add(1).ok_or(Unsendable::MessageIds)?;
        let (inner, datagrams) = self.seal(exchange, message_id, false, payloads, how)?;
        self.await_response(
            how.now,
            how.retransmission,
            exchange,
            message_id,
            datagrams,
            purpose,
        );
        Ok(inner)
    }

    pub(super) fn await_response(
        &mut self,
        now: Duration,
        retransmission: Retransmission,
        exchange: Exchange,
        message_id: u32,
        datagrams: Vec<Vec<u8>>,
        purpose: Purpose,
    ) {
        self.pending = Some(Pending {
            purpose,
            exchange,
            message_id,
            datagrams,
            repetitions: 0,
            next_at: now + retransmission.after(0),
        });
    }

    /// Seals the response to the request that was received last. The same bytes answer its
    /// repetitions: neither nonces nor keys are used twice.
    pub(super) fn respond(
        &mut self,
        exchange: Exchange,
        payloads: &[Payload],
        how: &mut Sealing<'_>,
    ) -> Result<Inner, Unsendable> {
        let message_id = self.next_expected.saturating_sub(1);
        let (inner, datagrams) = self.seal(exchange, message_id, true, payloads, how)?;
        self.last_response = Some(datagrams);
        Ok(inner)
    }

    fn seal(
        &mut self,
        exchange: Exchange,
        message_id: u32,
        is_response: bool,
        payloads: &[Payload],
        how: &mut Sealing<'_>,
    ) -> Result<(Inner, Vec<Vec<u8>>), Unsendable> {
        let mut bytes = Secret::default();
        let first = emit_payloads(payloads, &mut bytes)?;
        let header = Header {
            initiator_spi: self.initiator_spi,
            responder_spi: self.responder_spi,
            exchange,
            from_initiator: self.role == Role::Initiator,
            is_response,
            message_id,
        };
        let keyed = self.keyed.as_ref().ok_or(Unsendable::NoKeys)?;
        let cipher = keyed.suite.cipher;
        let keys = keyed.direction(self.role == Role::Initiator);
        let parts = match how.limit {
            Some(limit) => parts(cipher, &bytes, limit),
            None => vec![bytes.as_slice()],
        };
        let total = u16::try_from(parts.len()).map_err(|_| TooLong {
            what: "number of fragments",
            actual: parts.len(),
            limit: u16::MAX.into(),
        })?;
        let mut datagrams = Vec::with_capacity(parts.len());
        for (number, part) in (1..=total).zip(parts) {
            self.sealed += 1;
            let iv = if cipher.iv_bytes() == 8 {
                // Unique: the keys of a direction belong to this IKE SA alone.
                Secret::new(self.sealed.to_be_bytes().to_vec())
            } else {
                how.random.bytes(cipher.iv_bytes())
            };
            let first = if number == 1 {
                first
            } else {
                PayloadType::NONE
            };
            let fragment = (total > 1).then_some((number, total));
            datagrams.push(seal(cipher, keys, header, (first, part), fragment, &iv)?);
        }
        let inner = Inner {
            header,
            first,
            bytes,
        };
        Ok((inner, datagrams))
    }
}

/// How a message is sealed and repeated.
pub(super) struct Sealing<'a> {
    pub(super) now: Duration,
    pub(super) random: &'a mut Random,
    pub(super) retransmission: Retransmission,
    /// The longest datagram, if the peer accepts fragments.
    pub(super) limit: Option<usize>,
}

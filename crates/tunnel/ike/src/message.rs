//! The codec of IKEv2 messages: RFC 7296 section 3, with the fragments of RFC 7383.
//!
//! Parsing is strict. A message that violates a rule of the specification is refused with a
//! [`Malformed`], which names the place, the rule and its section. Reserved fields are ignored, as
//! the specification demands; values that IANA may assign later are kept. The numbers of payloads,
//! proposals, transforms and attributes are bounded, so a datagram of 64 KiB takes a bounded time
//! and memory.
//!
//! Encrypted payloads are opaque here: [`Payload::Encrypted`] has the bytes from IV to ICV, and
//! [`parse_payloads`] parses the decrypted ones.
//!
//! Emission appends to a buffer: all reserved fields and the critical bits of known payloads are 0.

mod configuration;
mod cursor;
mod emit;
mod error;
mod ids;
mod notify;
mod payload;
mod proposal;
mod registry;
mod selector;
#[cfg(test)]
mod tests;
mod transform;

pub use configuration::{Attribute, Configuration};
pub use error::{Fault, Malformed, TooLong};
pub use ids::{
    AttributeType, AuthMethod, CertificateEncoding, ConfigurationType, Exchange, IdentityType,
    PayloadType, Protocol, SignatureHash,
};
pub use notify::{ChildSpi, Notify, NotifyType};
pub use payload::{Delete, Identity, PAYLOADS_MAX, Payload, emit_payloads, parse_payloads};
pub use proposal::{PROPOSALS_MAX, Proposal, TRANSFORMS_MAX};
pub use registry::Assigned;
pub use selector::{AddressRange, Selector};
pub use transform::{
    AttributeValue, Encryption, IntegrityId, KEY_LENGTH, KeMethod, PrfId, SequenceNumbers,
    Transform, TransformAttribute, TransformType,
};

use cursor::Cursor;
use emit::Emitter;

/// Size of the header.
pub const HEADER_BYTES: usize = 28;
/// Offset of the header's length field.
pub const LENGTH_AT: usize = 24;

const VERSION: u8 = 0x20;
const FLAG_INITIATOR: u8 = 0x08;
const FLAG_RESPONSE: u8 = 0x20;

/// The header of a message (RFC 7296 section 3.1), without the fields that the payloads determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// SPI of the IKE SA's initiator.
    pub initiator_spi: u64,
    /// SPI of the IKE SA's responder; 0 in the first request.
    pub responder_spi: u64,
    /// The exchange.
    pub exchange: Exchange,
    /// Whether the sender is the initiator of the IKE SA.
    pub from_initiator: bool,
    /// Whether this is a response.
    pub is_response: bool,
    /// Number of the exchange among those of the same requester.
    pub message_id: u32,
}

impl Header {
    /// The header of a message of any content. A datagram can thus be assigned to an IKE SA before
    /// its payloads are parsed.
    ///
    /// # Errors
    /// When the message is shorter than its header, has another length than the header states, or
    /// another major version.
    pub fn peek(bytes: &[u8]) -> Result<Self, Malformed> {
        header(&mut Cursor::new(bytes, None), bytes.len()).map(|(header, _)| header)
    }
}

/// The header, and the type of the first payload.
fn header(cursor: &mut Cursor<'_>, actual: usize) -> Result<(Header, PayloadType), Malformed> {
    let initiator_spi = cursor.u64()?;
    let responder_spi = cursor.u64()?;
    let first = PayloadType(cursor.u8()?);
    let version = cursor.u8()?;
    cursor.check(version >> 4 == VERSION >> 4, Fault::Version(version >> 4))?;
    let exchange = Exchange(cursor.u8()?);
    let flags = cursor.u8()?;
    let message_id = cursor.u32()?;
    let stated = cursor.u32()?;
    let stated = usize::try_from(stated).unwrap_or(usize::MAX);
    cursor.check(stated == actual, Fault::Length { stated, actual })?;
    let header = Header {
        initiator_spi,
        responder_spi,
        exchange,
        from_initiator: flags & FLAG_INITIATOR != 0,
        is_response: flags & FLAG_RESPONSE != 0,
        message_id,
    };
    Ok((header, first))
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The header.
    pub header: Header,
    /// The payloads, in order.
    pub payloads: Vec<Payload>,
}

impl Message {
    /// The message in a datagram, without the marker of port 4500.
    ///
    /// # Errors
    /// When the bytes violate a rule of the specification, or a limit of this implementation.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(bytes, None);
        let (header, first) = header(&mut cursor, bytes.len())?;
        let payloads = payload::parse_chain(first, &mut cursor, true)?;
        Ok(Self { header, payloads })
    }

    /// Appends the message to `out`.
    ///
    /// # Errors
    /// When a length exceeds its field; `out` then has its former content.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let start = out.len();
        let emitted = self.append(start, &mut Emitter::new(out));
        if emitted.is_err() {
            out.truncate(start);
        }
        emitted
    }

    fn append(&self, start: usize, out: &mut Emitter<'_>) -> Result<(), TooLong> {
        let header = &self.header;
        out.u64(header.initiator_spi);
        out.u64(header.responder_spi);
        let first_at = out.len();
        out.u8(PayloadType::NONE.0);
        out.u8(VERSION);
        out.u8(header.exchange.0);
        let initiator = if header.from_initiator {
            FLAG_INITIATOR
        } else {
            0
        };
        let response = if header.is_response { FLAG_RESPONSE } else { 0 };
        out.u8(initiator | response);
        out.u32(header.message_id);
        let length_at = out.len();
        out.u32(0);
        payload::emit_chain(&self.payloads, first_at, out)?;
        let length = out.len() - start;
        let Ok(length) = u32::try_from(length) else {
            return Err(TooLong {
                what: "length of a message",
                actual: length,
                limit: u32::MAX as usize,
            });
        };
        out.set_u32(length_at, length);
        Ok(())
    }

    /// The first payload that is unknown and critical: the request must be refused with
    /// UNSUPPORTED_CRITICAL_PAYLOAD (RFC 7296 section 2.5).
    #[must_use]
    pub fn unsupported(&self) -> Option<PayloadType> {
        payload::unsupported(&self.payloads)
    }
}

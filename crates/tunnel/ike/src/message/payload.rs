//! Payloads and their chain.

use super::configuration::{self, Configuration};
use super::cursor::Cursor;
use super::emit::{Emitter, TooLong};
use super::notify::{ChildSpi, Notify, NotifyType};
use super::proposal::{self, Proposal};
use super::selector::{self, Selector};
use super::{
    AuthMethod, CertificateEncoding, Fault, IdentityType, KeMethod, Malformed, PayloadType,
    Protocol,
};

/// Most payloads of one message.
pub const PAYLOADS_MAX: usize = 128;
const CRITICAL: u8 = 0x80;
const NONCE_BYTES: std::ops::RangeInclusive<usize> = 16..=256;
/// Authorities in certificate requests are SHA-1 hashes of public keys.
const AUTHORITY_BYTES: usize = 20;

/// A payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Proposals, or the chosen one.
    Sa(Vec<Proposal>),
    /// Public value of a key exchange.
    KeyExchange {
        /// The method.
        method: KeMethod,
        /// The value.
        data: Vec<u8>,
    },
    /// Identity of the initiator.
    InitiatorId(Identity),
    /// Identity of the responder.
    ResponderId(Identity),
    /// Certificate.
    Certificate {
        /// The encoding.
        encoding: CertificateEncoding,
        /// The certificate.
        data: Vec<u8>,
    },
    /// Accepted authorities.
    CertificateRequest {
        /// The encoding.
        encoding: CertificateEncoding,
        /// For X.509, the SHA-1 hashes of authorities' public keys.
        authorities: Vec<u8>,
    },
    /// Authentication.
    Auth {
        /// The method.
        method: AuthMethod,
        /// The code or signature.
        data: Vec<u8>,
    },
    /// Nonce.
    Nonce(Vec<u8>),
    /// Notification.
    Notify(Notify),
    /// Deleted SAs.
    Delete(Delete),
    /// Vendor's identification.
    VendorId(Vec<u8>),
    /// Traffic selectors of the initiator.
    InitiatorSelectors(Vec<Selector>),
    /// Traffic selectors of the responder.
    ResponderSelectors(Vec<Selector>),
    /// Encrypted payloads.
    Encrypted {
        /// The type of the first inner payload.
        first: PayloadType,
        /// IV, ciphertext and ICV.
        body: Vec<u8>,
    },
    /// A fragment of encrypted payloads.
    Fragment {
        /// The type of the first inner payload in fragment 1, otherwise none.
        first: PayloadType,
        /// Its number, from 1.
        number: u16,
        /// The number of fragments.
        total: u16,
        /// IV, ciphertext and ICV.
        body: Vec<u8>,
    },
    /// Configuration.
    Configuration(Configuration),
    /// A message of EAP, which this implementation does not interpret.
    Eap(Vec<u8>),
    /// A payload of another specification.
    Unknown {
        /// The type.
        kind: PayloadType,
        /// Whether a receiver that does not know it must refuse the message.
        critical: bool,
        /// The content.
        body: Vec<u8>,
    },
}

/// An identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The type.
    pub kind: IdentityType,
    /// The value: text, an address or DER.
    pub data: Vec<u8>,
}

/// Text with its type; other values as hexadecimal digits.
impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.kind, std::str::from_utf8(&self.data)) {
            (IdentityType::FQDN | IdentityType::RFC822_ADDR, Ok(text)) => {
                write!(f, "{} {text:?}", self.kind)
            }
            _ => {
                write!(f, "{} ", self.kind)?;
                self.data
                    .iter()
                    .try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// SAs that the sender has deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delete {
    /// The IKE SA of the message, with all child SAs.
    Ike,
    /// Child SAs, by the SPIs of the sender's inbound SAs.
    Child {
        /// AH or ESP.
        protocol: Protocol,
        /// The SPIs.
        spis: Vec<u32>,
    },
}

impl Payload {
    /// The type.
    #[must_use]
    pub const fn kind(&self) -> PayloadType {
        match self {
            Self::Sa(_) => PayloadType::SA,
            Self::KeyExchange { .. } => PayloadType::KE,
            Self::InitiatorId(_) => PayloadType::ID_I,
            Self::ResponderId(_) => PayloadType::ID_R,
            Self::Certificate { .. } => PayloadType::CERT,
            Self::CertificateRequest { .. } => PayloadType::CERTREQ,
            Self::Auth { .. } => PayloadType::AUTH,
            Self::Nonce(_) => PayloadType::NONCE,
            Self::Notify(_) => PayloadType::NOTIFY,
            Self::Delete(_) => PayloadType::DELETE,
            Self::VendorId(_) => PayloadType::VENDOR_ID,
            Self::InitiatorSelectors(_) => PayloadType::TS_I,
            Self::ResponderSelectors(_) => PayloadType::TS_R,
            Self::Encrypted { .. } => PayloadType::SK,
            Self::Fragment { .. } => PayloadType::SKF,
            Self::Configuration(_) => PayloadType::CP,
            Self::Eap(_) => PayloadType::EAP,
            Self::Unknown { kind, .. } => *kind,
        }
    }
}

/// The payloads inside a decrypted payload, of which `first` is the type of the first one.
///
/// # Errors
/// When the bytes violate a rule of the specification, or a limit of this implementation.
pub fn parse_payloads(first: PayloadType, bytes: &[u8]) -> Result<Vec<Payload>, Malformed> {
    parse_chain(first, &mut Cursor::new(bytes, None), false)
}

/// Appends payloads to `out`, for encryption; returns the type of the first one.
///
/// # Errors
/// When a length exceeds its field; `out` then has its former content.
pub fn emit_payloads(payloads: &[Payload], out: &mut Vec<u8>) -> Result<PayloadType, TooLong> {
    let start = out.len();
    // Takes the type of the first payload, which a header would otherwise have.
    out.push(0);
    let emitted = emit_chain(payloads, start, &mut Emitter::new(out));
    if let Err(error) = emitted {
        out.truncate(start);
        return Err(error);
    }
    Ok(PayloadType(out.remove(start)))
}

pub(super) fn unsupported(payloads: &[Payload]) -> Option<PayloadType> {
    payloads.iter().find_map(|payload| match payload {
        Payload::Unknown {
            kind,
            critical: true,
            ..
        } => Some(*kind),
        _ => None,
    })
}

pub(super) fn parse_chain(
    first: PayloadType,
    cursor: &mut Cursor<'_>,
    is_outer: bool,
) -> Result<Vec<Payload>, Malformed> {
    let mut payloads = Vec::new();
    let mut kind = first;
    while kind != PayloadType::NONE {
        let mut place = cursor.clone().of(kind);
        place.check(
            payloads.len() < PAYLOADS_MAX,
            Fault::TooMany {
                what: "payloads",
                limit: PAYLOADS_MAX,
            },
        )?;
        let next = PayloadType(place.u8()?);
        let critical = place.u8()? & CRITICAL != 0;
        let length = usize::from(place.u16()?);
        let Some(body_bytes) = length.checked_sub(4) else {
            return Err(place.fail(Fault::Short(length)));
        };
        let mut body = place.inner(body_bytes)?;
        let is_encrypted = matches!(kind, PayloadType::SK | PayloadType::SKF);
        body.check(is_outer || !is_encrypted, Fault::Nested)?;
        payloads.push(parse(kind, critical, next, &mut body)?);
        body.end()?;
        cursor.take(length)?;
        if is_encrypted {
            // Its next payload is the first of the inner ones.
            cursor.check(cursor.is_empty(), Fault::NotLast)?;
            break;
        }
        kind = next;
    }
    cursor.end()?;
    Ok(payloads)
}

/// The critical bit of a known payload is ignored (RFC 7296 section 2.5).
fn parse(
    kind: PayloadType,
    critical: bool,
    next: PayloadType,
    body: &mut Cursor<'_>,
) -> Result<Payload, Malformed> {
    Ok(match kind {
        PayloadType::SA => Payload::Sa(proposal::parse(body)?),
        PayloadType::KE => {
            let method = KeMethod(body.u16()?);
            let _reserved = body.u16()?;
            let data = filled(body, "public value")?;
            Payload::KeyExchange { method, data }
        }
        PayloadType::ID_I => Payload::InitiatorId(identity(body)?),
        PayloadType::ID_R => Payload::ResponderId(identity(body)?),
        PayloadType::CERT => {
            let encoding = CertificateEncoding(body.u8()?);
            let data = filled(body, "certificate")?;
            Payload::Certificate { encoding, data }
        }
        PayloadType::CERTREQ => {
            let encoding = CertificateEncoding(body.u8()?);
            let authorities = body.rest().to_vec();
            body.check(
                encoding != CertificateEncoding::X509_SIGNATURE
                    || authorities.len().is_multiple_of(AUTHORITY_BYTES),
                Fault::Size {
                    what: "list of authorities' hashes",
                    actual: authorities.len(),
                },
            )?;
            Payload::CertificateRequest {
                encoding,
                authorities,
            }
        }
        PayloadType::AUTH => {
            let method = AuthMethod(body.u8()?);
            let _reserved = body.take(3)?;
            let data = filled(body, "authentication data")?;
            Payload::Auth { method, data }
        }
        PayloadType::NONCE => {
            let nonce = body.rest().to_vec();
            body.check(
                NONCE_BYTES.contains(&nonce.len()),
                Fault::Size {
                    what: "nonce",
                    actual: nonce.len(),
                },
            )?;
            Payload::Nonce(nonce)
        }
        PayloadType::NOTIFY => Payload::Notify(notify(body)?),
        PayloadType::DELETE => Payload::Delete(delete(body)?),
        PayloadType::VENDOR_ID => Payload::VendorId(body.rest().to_vec()),
        PayloadType::TS_I => Payload::InitiatorSelectors(selector::parse(body)?),
        PayloadType::TS_R => Payload::ResponderSelectors(selector::parse(body)?),
        PayloadType::SK => Payload::Encrypted {
            first: next,
            body: body.rest().to_vec(),
        },
        PayloadType::SKF => fragment(next, body)?,
        PayloadType::CP => Payload::Configuration(configuration::parse(body)?),
        PayloadType::EAP => Payload::Eap(body.rest().to_vec()),
        _ => Payload::Unknown {
            kind,
            critical,
            body: body.rest().to_vec(),
        },
    })
}

/// The rest, which must not be empty.
fn filled(body: &mut Cursor<'_>, what: &'static str) -> Result<Vec<u8>, Malformed> {
    body.check(!body.is_empty(), Fault::Size { what, actual: 0 })?;
    Ok(body.rest().to_vec())
}

fn identity(body: &mut Cursor<'_>) -> Result<Identity, Malformed> {
    let kind = IdentityType(body.u8()?);
    let _reserved = body.take(3)?;
    let data = body.rest();
    let fits = match kind {
        IdentityType::IPV4_ADDR => data.len() == 4,
        IdentityType::IPV6_ADDR => data.len() == 16,
        IdentityType::NULL => data.is_empty(),
        _ => !data.is_empty(),
    };
    body.check(
        fits,
        Fault::Size {
            what: "identity",
            actual: data.len(),
        },
    )?;
    // Without terminators; they would also end a name in logs and comparisons.
    if matches!(kind, IdentityType::FQDN | IdentityType::RFC822_ADDR)
        && let Some(control) = data.iter().find(|byte| byte.is_ascii_control())
    {
        return Err(body.fail(Fault::Control(*control)));
    }
    let data = data.to_vec();
    Ok(Identity { kind, data })
}

fn notify(body: &mut Cursor<'_>) -> Result<Notify, Malformed> {
    let protocol = Protocol(body.u8()?);
    let spi_bytes = usize::from(body.u8()?);
    let kind = NotifyType(body.u16()?);
    // Without an SPI the protocol is ignored.
    let sa = match (spi_bytes, protocol) {
        (0, _) => None,
        (4, Protocol::AH | Protocol::ESP) => Some(ChildSpi {
            protocol,
            spi: body.u32()?,
        }),
        _ => {
            return Err(body.fail(Fault::Size {
                what: "SPI",
                actual: spi_bytes,
            }));
        }
    };
    let data = body.rest().to_vec();
    body.check(
        kind.data_bytes().contains(&data.len()),
        Fault::Size {
            what: "notification's data",
            actual: data.len(),
        },
    )?;
    Ok(Notify { kind, sa, data })
}

fn delete(body: &mut Cursor<'_>) -> Result<Delete, Malformed> {
    let protocol = Protocol(body.u8()?);
    let spi_bytes = usize::from(body.u8()?);
    let count = usize::from(body.u16()?);
    let size = Fault::Size {
        what: "SPI",
        actual: spi_bytes,
    };
    match protocol {
        Protocol::IKE => {
            body.check(spi_bytes == 0, size)?;
            let value = Fault::Value {
                what: "number of SPIs",
                value: count as u32,
            };
            body.check(count == 0, value)?;
            Ok(Delete::Ike)
        }
        Protocol::AH | Protocol::ESP => {
            body.check(spi_bytes == 4, size)?;
            let mut list = body.inner(count * 4)?;
            let mut spis = Vec::with_capacity(count);
            while !list.is_empty() {
                spis.push(list.u32()?);
            }
            Ok(Delete::Child { protocol, spis })
        }
        Protocol(value) => Err(body.fail(Fault::Value {
            what: "protocol",
            value: value.into(),
        })),
    }
}

fn fragment(next: PayloadType, body: &mut Cursor<'_>) -> Result<Payload, Malformed> {
    let number = body.u16()?;
    let total = body.u16()?;
    body.check(
        number >= 1 && number <= total,
        Fault::Value {
            what: "fragment's number",
            value: number.into(),
        },
    )?;
    // Only the first fragment has the type of the first payload.
    body.check(
        number == 1 || next == PayloadType::NONE,
        Fault::Value {
            what: "next payload of a later fragment",
            value: next.0.into(),
        },
    )?;
    Ok(Payload::Fragment {
        first: next,
        number,
        total,
        body: body.rest().to_vec(),
    })
}

/// Appends a chain; the type of its first payload goes to `first_at`.
pub(super) fn emit_chain(
    payloads: &[Payload],
    first_at: usize,
    out: &mut Emitter<'_>,
) -> Result<(), TooLong> {
    let mut next_at = first_at;
    for payload in payloads {
        out.set(next_at, payload.kind().0);
        next_at = out.len();
        let (next, critical) = match payload {
            Payload::Encrypted { first, .. } | Payload::Fragment { first, .. } => (*first, false),
            Payload::Unknown { critical, .. } => (PayloadType::NONE, *critical),
            _ => (PayloadType::NONE, false),
        };
        out.u8(next.0);
        out.u8(if critical { CRITICAL } else { 0 });
        out.with_length(2, |out| emit_body(payload, out))?;
    }
    Ok(())
}

fn emit_body(payload: &Payload, out: &mut Emitter<'_>) -> Result<(), TooLong> {
    match payload {
        Payload::Sa(proposals) => return proposal::emit(proposals, out),
        Payload::KeyExchange { method, data } => {
            out.u16(method.0);
            out.u16(0);
            out.bytes(data);
        }
        Payload::InitiatorId(identity) | Payload::ResponderId(identity) => {
            out.u8(identity.kind.0);
            out.zeros(3);
            out.bytes(&identity.data);
        }
        Payload::Certificate { encoding, data } => {
            out.u8(encoding.0);
            out.bytes(data);
        }
        Payload::CertificateRequest {
            encoding,
            authorities,
        } => {
            out.u8(encoding.0);
            out.bytes(authorities);
        }
        Payload::Auth { method, data } => {
            out.u8(method.0);
            out.zeros(3);
            out.bytes(data);
        }
        Payload::Notify(notify) => {
            let protocol = notify.sa.map_or(0, |sa| sa.protocol.0);
            out.u8(protocol);
            out.u8(if notify.sa.is_some() { 4 } else { 0 });
            out.u16(notify.kind.0);
            if let Some(sa) = notify.sa {
                out.u32(sa.spi);
            }
            out.bytes(&notify.data);
        }
        Payload::Delete(Delete::Ike) => out.bytes(&[Protocol::IKE.0, 0, 0, 0]),
        Payload::Delete(Delete::Child { protocol, spis }) => {
            out.u8(protocol.0);
            out.u8(4);
            let Ok(count) = u16::try_from(spis.len()) else {
                return Err(TooLong {
                    what: "number of SPIs",
                    actual: spis.len(),
                    limit: u16::MAX.into(),
                });
            };
            out.u16(count);
            for spi in spis {
                out.u32(*spi);
            }
        }
        Payload::InitiatorSelectors(selectors) | Payload::ResponderSelectors(selectors) => {
            return selector::emit(selectors, out);
        }
        Payload::Fragment {
            number,
            total,
            body,
            ..
        } => {
            out.u16(*number);
            out.u16(*total);
            out.bytes(body);
        }
        Payload::Configuration(configuration) => return configuration::emit(configuration, out),
        Payload::Nonce(body)
        | Payload::VendorId(body)
        | Payload::Encrypted { body, .. }
        | Payload::Eap(body)
        | Payload::Unknown { body, .. } => out.bytes(body),
    }
    Ok(())
}

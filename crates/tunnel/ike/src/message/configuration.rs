//! Configuration payloads.

use super::cursor::Cursor;
use super::emit::{Emitter, TooLong};
use super::{AttributeType, ConfigurationType, Fault, Malformed};

/// Most attributes of one payload.
const ATTRIBUTES_MAX: usize = 128;

/// A configuration payload (RFC 7296 section 3.15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Request, reply, set or acknowledgement.
    pub kind: ConfigurationType,
    /// The attributes, in order.
    pub attributes: Vec<Attribute>,
}

/// An attribute. An empty value in a request asks for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The type, below 32768.
    pub kind: AttributeType,
    /// The value.
    pub value: Vec<u8>,
}

/// Whether a value of this many bytes is possible.
fn fits(kind: AttributeType, bytes: usize) -> bool {
    match kind {
        AttributeType::INTERNAL_IP4_ADDRESS
        | AttributeType::INTERNAL_IP4_NETMASK
        | AttributeType::INTERNAL_IP4_DNS
        | AttributeType::INTERNAL_IP4_NBNS
        | AttributeType::INTERNAL_IP4_DHCP => matches!(bytes, 0 | 4),
        AttributeType::INTERNAL_IP4_SUBNET => matches!(bytes, 0 | 8),
        AttributeType::INTERNAL_IP6_ADDRESS | AttributeType::INTERNAL_IP6_SUBNET => {
            matches!(bytes, 0 | 17)
        }
        AttributeType::INTERNAL_IP6_DNS | AttributeType::INTERNAL_IP6_DHCP => {
            matches!(bytes, 0 | 16)
        }
        AttributeType::SUPPORTED_ATTRIBUTES => bytes.is_multiple_of(2),
        _ => true,
    }
}

pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Configuration, Malformed> {
    let kind = ConfigurationType(cursor.u8()?);
    let _reserved = cursor.take(3)?;
    let mut attributes = Vec::new();
    while !cursor.is_empty() {
        cursor.check(
            attributes.len() < ATTRIBUTES_MAX,
            Fault::TooMany {
                what: "attributes",
                limit: ATTRIBUTES_MAX,
            },
        )?;
        // The highest bit is reserved.
        let kind = AttributeType(cursor.u16()? & 0x7fff);
        let length = usize::from(cursor.u16()?);
        let value = cursor.take(length)?.to_vec();
        cursor.check(
            fits(kind, length),
            Fault::Size {
                what: "attribute's value",
                actual: length,
            },
        )?;
        attributes.push(Attribute { kind, value });
    }
    Ok(Configuration { kind, attributes })
}

pub(super) fn emit(configuration: &Configuration, out: &mut Emitter<'_>) -> Result<(), TooLong> {
    out.u8(configuration.kind.0);
    out.zeros(3);
    for attribute in &configuration.attributes {
        out.u16(attribute.kind.0);
        out.sized(&attribute.value)?;
    }
    Ok(())
}

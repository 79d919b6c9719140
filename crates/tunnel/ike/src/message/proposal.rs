//! SA payloads: proposals of transforms.

use super::cursor::Cursor;
use super::emit::{Emitter, TooLong};
use super::transform::{AttributeValue, KEY_LENGTH, Transform, TransformAttribute};
use super::{Fault, Malformed, Protocol, TransformType};

/// Most proposals of one payload.
pub const PROPOSALS_MAX: usize = 32;
/// Most transforms of one proposal.
pub const TRANSFORMS_MAX: usize = 128;
/// Most attributes of one transform.
const ATTRIBUTES_MAX: usize = 8;

const LAST: u8 = 0;
const MORE_PROPOSALS: u8 = 2;
const MORE_TRANSFORMS: u8 = 3;
/// The attribute's value has two bytes and no length.
const SHORT: u16 = 0x8000;

/// One proposal: a protocol with its algorithms.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proposal {
    /// Its number; the answer repeats it.
    pub number: u8,
    /// The protocol.
    pub protocol: Protocol,
    /// The SPI of the sender's inbound SA: empty, 4 bytes (AH, ESP) or 8 bytes (IKE).
    pub spi: Vec<u8>,
    /// The algorithms.
    pub transforms: Vec<Transform>,
}

impl Proposal {
    /// The transforms of a type.
    pub fn of(&self, kind: TransformType) -> impl Iterator<Item = &Transform> {
        self.transforms.iter().filter(move |it| it.kind == kind)
    }
}

pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Vec<Proposal>, Malformed> {
    let mut proposals: Vec<Proposal> = Vec::new();
    loop {
        cursor.check(
            proposals.len() < PROPOSALS_MAX,
            Fault::TooMany {
                what: "proposals",
                limit: PROPOSALS_MAX,
            },
        )?;
        let (more, mut inner) = substructure(cursor, MORE_PROPOSALS)?;
        let number = inner.u8()?;
        let follows = proposals
            .last()
            .is_none_or(|it| it.number.checked_add(1) == Some(number));
        // A single one may be the answer to any; a list counts from 1.
        let begins = proposals.len() != 1 || proposals[0].number == 1;
        inner.check(
            number != 0 && follows && begins,
            Fault::Value {
                what: "proposal's number",
                value: number.into(),
            },
        )?;
        proposals.push(proposal(number, &mut inner)?);
        if !more {
            break;
        }
    }
    Ok(proposals)
}

fn proposal(number: u8, cursor: &mut Cursor<'_>) -> Result<Proposal, Malformed> {
    let protocol = Protocol(cursor.u8()?);
    let spi_bytes = usize::from(cursor.u8()?);
    let fits = match protocol {
        Protocol::IKE => matches!(spi_bytes, 0 | 8),
        Protocol::AH | Protocol::ESP => spi_bytes == 4,
        _ => true,
    };
    cursor.check(
        fits,
        Fault::Size {
            what: "SPI",
            actual: spi_bytes,
        },
    )?;
    let count = usize::from(cursor.u8()?);
    let spi = cursor.take(spi_bytes)?.to_vec();
    cursor.check(
        count <= TRANSFORMS_MAX,
        Fault::TooMany {
            what: "transforms",
            limit: TRANSFORMS_MAX,
        },
    )?;
    let mut transforms = Vec::new();
    for at in 1..=count {
        let (more, mut inner) = substructure(cursor, MORE_TRANSFORMS)?;
        inner.check(
            more == (at < count),
            Fault::Value {
                what: "mark of the last transform",
                value: u32::from(more),
            },
        )?;
        transforms.push(transform(&mut inner)?);
    }
    cursor.end()?;
    Ok(Proposal {
        number,
        protocol,
        spi,
        transforms,
    })
}

/// The body of a proposal or transform, and whether another follows.
fn substructure<'a>(cursor: &mut Cursor<'a>, more: u8) -> Result<(bool, Cursor<'a>), Malformed> {
    let mark = cursor.u8()?;
    cursor.check(
        mark == LAST || mark == more,
        Fault::Value {
            what: "mark of the last substructure",
            value: mark.into(),
        },
    )?;
    let _reserved = cursor.u8()?;
    let length = usize::from(cursor.u16()?);
    let Some(body) = length.checked_sub(4) else {
        return Err(cursor.fail(Fault::Short(length)));
    };
    Ok((mark == more, cursor.inner(body)?))
}

fn transform(cursor: &mut Cursor<'_>) -> Result<Transform, Malformed> {
    let kind = TransformType(cursor.u8()?);
    let _reserved = cursor.u8()?;
    let id = cursor.u16()?;
    let mut attributes: Vec<TransformAttribute> = Vec::new();
    while !cursor.is_empty() {
        cursor.check(
            attributes.len() < ATTRIBUTES_MAX,
            Fault::TooMany {
                what: "attributes",
                limit: ATTRIBUTES_MAX,
            },
        )?;
        let attribute = attribute(cursor)?;
        let is_known = attributes.iter().any(|it| it.kind == attribute.kind);
        cursor.check(!is_known, Fault::Twice(attribute.kind))?;
        attributes.push(attribute);
    }
    Ok(Transform {
        kind,
        id,
        attributes,
    })
}

fn attribute(cursor: &mut Cursor<'_>) -> Result<TransformAttribute, Malformed> {
    let kind = cursor.u16()?;
    if kind & SHORT != 0 {
        let value = AttributeValue::Short(cursor.u16()?);
        let kind = kind & !SHORT;
        return Ok(TransformAttribute { kind, value });
    }
    let length = usize::from(cursor.u16()?);
    let value = cursor.take(length)?.to_vec();
    cursor.check(
        kind != KEY_LENGTH,
        Fault::Size {
            what: "key length, which must be a short attribute,",
            actual: length,
        },
    )?;
    Ok(TransformAttribute {
        kind,
        value: AttributeValue::Long(value),
    })
}

pub(super) fn emit(proposals: &[Proposal], out: &mut Emitter<'_>) -> Result<(), TooLong> {
    for (at, proposal) in proposals.iter().enumerate() {
        let is_last = at + 1 == proposals.len();
        out.u8(if is_last { LAST } else { MORE_PROPOSALS });
        out.u8(0);
        out.with_length(2, |out| {
            out.u8(proposal.number);
            out.u8(proposal.protocol.0);
            out.count(proposal.spi.len(), "size of an SPI")?;
            out.count(proposal.transforms.len(), "number of transforms")?;
            out.bytes(&proposal.spi);
            for (at, transform) in proposal.transforms.iter().enumerate() {
                let is_last = at + 1 == proposal.transforms.len();
                out.u8(if is_last { LAST } else { MORE_TRANSFORMS });
                out.u8(0);
                out.with_length(2, |out| emit_transform(transform, out))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn emit_transform(transform: &Transform, out: &mut Emitter<'_>) -> Result<(), TooLong> {
    out.u8(transform.kind.0);
    out.u8(0);
    out.u16(transform.id);
    for attribute in &transform.attributes {
        match &attribute.value {
            AttributeValue::Short(value) => {
                out.u16(attribute.kind | SHORT);
                out.u16(*value);
            }
            AttributeValue::Long(value) => {
                out.u16(attribute.kind);
                out.sized(value)?;
            }
        }
    }
    Ok(())
}

//! Messages that the codec accepts.

use crate::message::{
    AddressRange, Attribute, AttributeType, AttributeValue, AuthMethod, CertificateEncoding,
    ChildSpi, Configuration, ConfigurationType, Delete, Exchange, Header, Identity, IdentityType,
    KEY_LENGTH, KeMethod, Message, Notify, NotifyType, Payload, PayloadType, Proposal, Protocol,
    Selector, Transform, TransformAttribute, TransformType,
};
use arbitrary::{Result, Unstructured};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Any message.
///
/// # Errors
/// When the input is exhausted.
pub fn message(u: &mut Unstructured<'_>) -> Result<Message> {
    let header = Header {
        initiator_spi: u.arbitrary()?,
        responder_spi: u.arbitrary()?,
        exchange: Exchange(u.arbitrary()?),
        from_initiator: u.arbitrary()?,
        is_response: u.arbitrary()?,
        message_id: u.arbitrary()?,
    };
    let mut payloads = payloads(u)?;
    match u.int_in_range(0..=2)? {
        0 => {}
        1 => payloads.push(Payload::Encrypted {
            first: PayloadType(u.arbitrary()?),
            body: bytes(u, 0, 80)?,
        }),
        _ => {
            let total = u.int_in_range(1..=u16::MAX)?;
            let number = u.int_in_range(1..=total)?;
            let first = if number == 1 { u.arbitrary()? } else { 0 };
            payloads.push(Payload::Fragment {
                first: PayloadType(first),
                number,
                total,
                body: bytes(u, 0, 80)?,
            });
        }
    }
    Ok(Message { header, payloads })
}

/// Any payloads that can be inside an encrypted one.
///
/// # Errors
/// When the input is exhausted.
pub fn payloads(u: &mut Unstructured<'_>) -> Result<Vec<Payload>> {
    (0..u.int_in_range(0..=6)?).map(|_| payload(u)).collect()
}

fn bytes(u: &mut Unstructured<'_>, min: usize, max: usize) -> Result<Vec<u8>> {
    let count = u.int_in_range(min..=max)?;
    let mut bytes = vec![0; count];
    u.fill_buffer(&mut bytes)?;
    Ok(bytes)
}

fn payload(u: &mut Unstructured<'_>) -> Result<Payload> {
    Ok(match u.int_in_range(0..=16)? {
        0 => Payload::Sa(proposals(u)?),
        1 => Payload::KeyExchange {
            method: KeMethod(u.arbitrary()?),
            data: bytes(u, 1, 300)?,
        },
        2 => Payload::InitiatorId(identity(u)?),
        3 => Payload::ResponderId(identity(u)?),
        4 => Payload::Certificate {
            encoding: CertificateEncoding(u.arbitrary()?),
            data: bytes(u, 1, 90)?,
        },
        5 => {
            let hashes = 20 * u.int_in_range(0..=3)?;
            Payload::CertificateRequest {
                encoding: CertificateEncoding::X509_SIGNATURE,
                authorities: bytes(u, hashes, hashes)?,
            }
        }
        6 => Payload::Auth {
            method: AuthMethod(u.arbitrary()?),
            data: bytes(u, 1, 90)?,
        },
        7 => Payload::Nonce(bytes(u, 16, 256)?),
        8 => Payload::Notify(notify(u)?),
        9 => Payload::Delete(delete(u)?),
        10 => Payload::VendorId(bytes(u, 0, 40)?),
        11 => Payload::InitiatorSelectors(selectors(u)?),
        12 => Payload::ResponderSelectors(selectors(u)?),
        13 => Payload::Configuration(configuration(u)?),
        14 => Payload::Eap(bytes(u, 0, 40)?),
        _ => Payload::Unknown {
            kind: PayloadType(*u.choose(&[1, 32, 49, 52, 54, 127, 128, 255])?),
            critical: u.arbitrary()?,
            body: bytes(u, 0, 40)?,
        },
    })
}

fn identity(u: &mut Unstructured<'_>) -> Result<Identity> {
    let kind = *u.choose(&[
        IdentityType::IPV4_ADDR,
        IdentityType::FQDN,
        IdentityType::IPV6_ADDR,
        IdentityType::KEY_ID,
        IdentityType::NULL,
        IdentityType::DER_ASN1_DN,
    ])?;
    let data = match kind {
        IdentityType::IPV4_ADDR => bytes(u, 4, 4)?,
        IdentityType::IPV6_ADDR => bytes(u, 16, 16)?,
        IdentityType::NULL => Vec::new(),
        IdentityType::FQDN => {
            let name = bytes(u, 1, 40)?;
            name.iter().map(|byte| b'a' + byte % 26).collect()
        }
        _ => bytes(u, 1, 40)?,
    };
    Ok(Identity { kind, data })
}

fn notify(u: &mut Unstructured<'_>) -> Result<Notify> {
    let kind = match u.choose_index(NotifyType::ASSIGNED.len() + 1)? {
        at if at < NotifyType::ASSIGNED.len() => NotifyType(NotifyType::ASSIGNED[at].number),
        _ => NotifyType(u.int_in_range(40_000..=u16::MAX)?),
    };
    let sizes = kind.data_bytes();
    let data = bytes(u, *sizes.start(), (*sizes.end()).min(60))?;
    let sa = if u.arbitrary()? {
        Some(ChildSpi {
            protocol: *u.choose(&[Protocol::AH, Protocol::ESP])?,
            spi: u.arbitrary()?,
        })
    } else {
        None
    };
    Ok(Notify { kind, sa, data })
}

fn delete(u: &mut Unstructured<'_>) -> Result<Delete> {
    if u.arbitrary()? {
        return Ok(Delete::Ike);
    }
    let spis = (0..u.int_in_range(0..=9)?).map(|_| u.arbitrary());
    Ok(Delete::Child {
        spis: spis.collect::<Result<_>>()?,
        protocol: *u.choose(&[Protocol::AH, Protocol::ESP])?,
    })
}

fn proposals(u: &mut Unstructured<'_>) -> Result<Vec<Proposal>> {
    let count: u8 = u.int_in_range(1..=4)?;
    let first = if count == 1 {
        u.int_in_range(1..=255)?
    } else {
        1
    };
    let mut proposals = Vec::new();
    for at in 0..count {
        let protocol = Protocol(u.int_in_range(1..=4)?);
        let spi_bytes = match protocol {
            Protocol::IKE => *u.choose(&[0, 8])?,
            Protocol::AH | Protocol::ESP => 4,
            _ => u.int_in_range(0..=9)?,
        };
        let transforms = (0..u.int_in_range(0..=9)?).map(|_| transform(u));
        let transforms = transforms.collect::<Result<_>>()?;
        proposals.push(Proposal {
            number: first + at,
            protocol,
            spi: bytes(u, spi_bytes, spi_bytes)?,
            transforms,
        });
    }
    Ok(proposals)
}

fn transform(u: &mut Unstructured<'_>) -> Result<Transform> {
    let mut attributes = Vec::new();
    if u.arbitrary()? {
        attributes.push(TransformAttribute {
            kind: KEY_LENGTH,
            value: AttributeValue::Short(u.arbitrary()?),
        });
    }
    if u.ratio(1, 4)? {
        attributes.push(TransformAttribute {
            kind: u.int_in_range(15..=0x7fff)?,
            value: AttributeValue::Long(bytes(u, 0, 20)?),
        });
    }
    Ok(Transform {
        kind: TransformType(u.arbitrary()?),
        id: u.arbitrary()?,
        attributes,
    })
}

fn selectors(u: &mut Unstructured<'_>) -> Result<Vec<Selector>> {
    (0..u.int_in_range(1..=4)?).map(|_| selector(u)).collect()
}

fn selector(u: &mut Unstructured<'_>) -> Result<Selector> {
    let protocol = u.arbitrary()?;
    let address = |u: &mut Unstructured<'_>, is_ipv4| -> Result<IpAddr> {
        Ok(if is_ipv4 {
            IpAddr::V4(Ipv4Addr::from_bits(u.arbitrary()?))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(u.arbitrary()?))
        })
    };
    if u.ratio(1, 8)? {
        return Ok(Selector::Unknown {
            kind: u.int_in_range(9..=255)?,
            protocol,
            body: bytes(u, 0, 40)?,
        });
    }
    let is_ipv4 = u.arbitrary()?;
    let (one, another) = (address(u, is_ipv4)?, address(u, is_ipv4)?);
    let (low, high): (u16, u16) = u.arbitrary()?;
    let ports = match u.int_in_range(0..=2)? {
        0 => AddressRange::OPAQUE,
        1 => AddressRange::ANY_PORT,
        _ => (low.min(high), low.max(high)),
    };
    Ok(Selector::Range(AddressRange {
        protocol,
        ports,
        first: one.min(another),
        last: one.max(another),
    }))
}

fn configuration(u: &mut Unstructured<'_>) -> Result<Configuration> {
    let kind = ConfigurationType(u.arbitrary()?);
    let mut attributes = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let (kind, size) =
            *u.choose(&[(1, 4), (2, 0), (3, 4), (8, 17), (10, 16), (13, 8), (7, 9)])?;
        attributes.push(Attribute {
            kind: AttributeType(kind),
            value: bytes(u, size, size)?,
        });
    }
    Ok(Configuration { kind, attributes })
}

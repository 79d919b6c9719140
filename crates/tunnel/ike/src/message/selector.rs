//! Traffic selectors.

use super::cursor::Cursor;
use super::emit::{Emitter, TooLong};
use super::{Fault, Malformed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

const IPV4_ADDR_RANGE: u8 = 7;
const IPV6_ADDR_RANGE: u8 = 8;

/// A traffic selector (RFC 7296 section 3.13.1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Packets by addresses, protocol and ports.
    Range(AddressRange),
    /// A type of another specification, such as the security labels of RFC 9478.
    Unknown {
        /// The type.
        kind: u8,
        /// The protocol, or the second byte of another form.
        protocol: u8,
        /// The bytes after the length.
        body: Vec<u8>,
    },
}

/// A range of addresses with protocol and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// IP protocol; 0 is any.
    pub protocol: u8,
    /// First and last port. For ICMP the type and code; [`AddressRange::OPAQUE`] are ports that
    /// cannot be seen.
    pub ports: (u16, u16),
    /// The first address.
    pub first: IpAddr,
    /// The last address, of the same family.
    pub last: IpAddr,
}

impl AddressRange {
    /// Any port.
    pub const ANY_PORT: (u16, u16) = (0, u16::MAX);
    /// Ports that cannot be seen (RFC 4301 section 4.4.1.1).
    pub const OPAQUE: (u16, u16) = (u16::MAX, 0);

    /// Any protocol and port of a range of addresses.
    ///
    /// # Panics
    /// When the addresses are of two families, or in the wrong order.
    #[must_use]
    pub fn any(addresses: RangeInclusive<IpAddr>) -> Self {
        let (first, last) = addresses.into_inner();
        assert!(first.is_ipv4() == last.is_ipv4() && first <= last);
        Self {
            protocol: 0,
            ports: Self::ANY_PORT,
            first,
            last,
        }
    }

    /// Both ranges' packets, if there are any: the responder narrows by this (RFC 7296 section
    /// 2.9).
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        if self.first.is_ipv4() != other.first.is_ipv4() {
            return None;
        }
        let protocol = match (self.protocol, other.protocol) {
            (one, 0) => one,
            (0, one) => one,
            (one, another) if one == another => one,
            _ => return None,
        };
        let ports = match (self.ports, other.ports) {
            (one, Self::ANY_PORT) => one,
            (Self::ANY_PORT, one) => one,
            (Self::OPAQUE, Self::OPAQUE) => Self::OPAQUE,
            (Self::OPAQUE, _) | (_, Self::OPAQUE) => return None,
            (one, another) => (one.0.max(another.0), one.1.min(another.1)),
        };
        let narrowed = Self {
            protocol,
            ports,
            first: self.first.max(other.first),
            last: self.last.min(other.last),
        };
        let has_ports = ports == Self::OPAQUE || ports.0 <= ports.1;
        (narrowed.first <= narrowed.last && has_ports).then_some(narrowed)
    }
}

pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Vec<Selector>, Malformed> {
    let count = cursor.u8()?;
    let _reserved = cursor.take(3)?;
    cursor.check(
        count > 0,
        Fault::Value {
            what: "number of selectors",
            value: 0,
        },
    )?;
    // At least four bytes each: the payload bounds the list.
    let mut selectors = Vec::new();
    for _ in 0..count {
        selectors.push(selector(cursor)?);
    }
    cursor.end()?;
    Ok(selectors)
}

fn selector(cursor: &mut Cursor<'_>) -> Result<Selector, Malformed> {
    let kind = cursor.u8()?;
    let protocol = cursor.u8()?;
    let length = usize::from(cursor.u16()?);
    let Some(body) = length.checked_sub(4) else {
        return Err(cursor.fail(Fault::Short(length)));
    };
    let mut inner = cursor.inner(body)?;
    if !matches!(kind, IPV4_ADDR_RANGE | IPV6_ADDR_RANGE) {
        let body = inner.rest().to_vec();
        return Ok(Selector::Unknown {
            kind,
            protocol,
            body,
        });
    }
    let ports = (inner.u16()?, inner.u16()?);
    let [first, last] = if kind == IPV4_ADDR_RANGE {
        [inner.array::<4>()?, inner.array()?].map(|it| IpAddr::V4(Ipv4Addr::from(it)))
    } else {
        [inner.array::<16>()?, inner.array()?].map(|it| IpAddr::V6(Ipv6Addr::from(it)))
    };
    inner.end()?;
    inner.check(first <= last, Fault::Range("addresses"))?;
    inner.check(
        ports.0 <= ports.1 || ports == AddressRange::OPAQUE,
        Fault::Range("ports"),
    )?;
    Ok(Selector::Range(AddressRange {
        protocol,
        ports,
        first,
        last,
    }))
}

pub(super) fn emit(selectors: &[Selector], out: &mut Emitter<'_>) -> Result<(), TooLong> {
    out.count(selectors.len(), "number of selectors")?;
    out.zeros(3);
    for selector in selectors {
        match selector {
            Selector::Range(range) => {
                let is_ipv4 = range.first.is_ipv4();
                out.u8(if is_ipv4 {
                    IPV4_ADDR_RANGE
                } else {
                    IPV6_ADDR_RANGE
                });
                out.u8(range.protocol);
                out.with_length(2, |out| {
                    out.u16(range.ports.0);
                    out.u16(range.ports.1);
                    for address in [range.first, range.last] {
                        match address {
                            IpAddr::V4(address) => out.bytes(&address.octets()),
                            IpAddr::V6(address) => out.bytes(&address.octets()),
                        }
                    }
                    Ok(())
                })?;
            }
            Selector::Unknown {
                kind,
                protocol,
                body,
            } => {
                out.u8(*kind);
                out.u8(*protocol);
                out.with_length(2, |out| {
                    out.bytes(body);
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

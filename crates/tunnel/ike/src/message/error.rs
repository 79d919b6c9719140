//! Mistakes of a message.

use super::PayloadType;

/// A mistake of a received message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("IKE message, byte {at}{}: {fault} ({})", in_payload(*.payload), self.source_text())]
pub struct Malformed {
    /// Offset in the message, or in the decrypted payloads, at which it was noticed: at the begin
    /// or the end of the field.
    pub at: usize,
    /// The payload; `None` is the header.
    pub payload: Option<PayloadType>,
    /// The mistake.
    pub fault: Fault,
}

fn in_payload(payload: Option<PayloadType>) -> String {
    payload.map_or_else(
        || " of the header".to_owned(),
        |kind| format!(" in a payload {kind}"),
    )
}

impl Malformed {
    /// The specification of the violated rule.
    fn source_text(&self) -> &'static str {
        if let Some(source) = self.fault.specification() {
            return source;
        }
        let assigned = self.payload.and_then(PayloadType::assigned);
        assigned.map_or("RFC 7296 section 3.1", |it| it.source)
    }
}

/// The violated rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A field exceeds its container.
    #[error("{needed} bytes are needed, {left} are left")]
    Truncated {
        /// Bytes of the field.
        needed: usize,
        /// Bytes left.
        left: usize,
    },
    /// Bytes follow the last field.
    #[error("{0} bytes follow the last field")]
    Trailing(usize),
    /// The header's length differs from the datagram's.
    #[error("the header states a length of {stated} bytes, the datagram has {actual}")]
    Length {
        /// In the header.
        stated: usize,
        /// Received.
        actual: usize,
    },
    /// Another major version.
    #[error("the major version is {0}, not 2")]
    Version(u8),
    /// A length that does not include its header.
    #[error("a length of {0} bytes is shorter than the header that it includes")]
    Short(usize),
    /// Too many payloads, proposals or the like.
    #[error("more than {limit} {what}")]
    TooMany {
        /// The counted things.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A field has a wrong size.
    #[error("the {what} has {actual} bytes")]
    Size {
        /// The field.
        what: &'static str,
        /// Its size.
        actual: usize,
    },
    /// A field has a value that the specification excludes.
    #[error("the {what} is {value}")]
    Value {
        /// The field.
        what: &'static str,
        /// The value.
        value: u32,
    },
    /// A payload follows one that must be the last.
    #[error("a payload follows the encrypted one, which must be the last")]
    NotLast,
    /// An encrypted payload inside another.
    #[error("an encrypted payload is inside an encrypted payload")]
    Nested,
    /// An attribute occurs twice.
    #[error("the attribute {0} occurs twice")]
    Twice(u16),
    /// A range that ends before its start.
    #[error("a range of {0} ends before its start")]
    Range(&'static str),
    /// A name with control characters.
    #[error("a name contains the control character {0:#04x}")]
    Control(u8),
}

impl Fault {
    /// The specification, if it is another than the payload's.
    fn specification(self) -> Option<&'static str> {
        Some(match self {
            Self::Version(_) => "RFC 7296 section 2.5",
            Self::NotLast | Self::Nested => "RFC 7296 section 3.14",
            Self::TooMany { .. } => "RFC 7296 section 2.21.3; the limit is this implementation's",
            Self::Twice(_) => "RFC 7296 section 3.3.5",
            _ => return None,
        })
    }
}

/// A message cannot be emitted: a length exceeds its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {what} of {actual} exceeds {limit}, the limit of its field (RFC 7296 section 3)")]
pub struct TooLong {
    /// The field.
    pub what: &'static str,
    /// The value.
    pub actual: usize,
    /// The limit.
    pub limit: usize,
}

//! Fragments of encrypted messages (RFC 7383): the parts of one message in each direction.

use super::Refusal;
use crate::crypto::{Cipher, Secret};
use crate::message::{HEADER_BYTES, PayloadType};

/// Header of the payload, number and total.
const FRAGMENT_HEADER_BYTES: usize = 8;

/// What an IKE SA keeps of a message that is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) fragments: u16,
    pub(super) bytes: usize,
}

impl Bounds {
    /// Before authentication: two post-quantum public values and a chain of certificates.
    pub(super) const STRANGER: Self = Self {
        fragments: 32,
        bytes: 24 << 10,
    };
    pub(super) const PEER: Self = Self {
        fragments: 128,
        bytes: 64 << 10,
    };
}

/// The fragments of one message. They are authenticated before they come here.
#[derive(Clone, Default)]
pub(super) struct Fragments {
    message_id: u32,
    first: Option<PayloadType>,
    parts: Vec<Option<Secret>>,
}

impl Fragments {
    /// Adds a part; returns the message when it is complete.
    pub(super) fn add(
        &mut self,
        message_id: u32,
        (number, total): (u16, u16),
        first: PayloadType,
        part: Secret,
        bounds: Bounds,
    ) -> Result<Option<(PayloadType, Secret)>, Refusal> {
        if total > bounds.fragments {
            return Err(Refusal::FragmentsTooMany);
        }
        let known = self.parts.len();
        let total = usize::from(total);
        // The sender may repeat a message in more and smaller fragments (RFC 7383 section 2.5.2).
        if self.message_id != message_id || total > known {
            *self = Self {
                message_id,
                first: None,
                parts: vec![None; total],
            };
        } else if total < known {
            return Err(Refusal::Fragment);
        }
        let kept: usize = self.parts.iter().flatten().map(|it| it.len()).sum();
        if kept + part.len() > bounds.bytes {
            *self = Self::default();
            return Err(Refusal::FragmentsTooMany);
        }
        if number == 1 {
            self.first = Some(first);
        }
        let place = &mut self.parts[usize::from(number) - 1];
        if place.is_none() {
            *place = Some(part);
        }
        if self.parts.iter().any(Option::is_none) {
            return Ok(None);
        }
        let Self { first, parts, .. } = std::mem::take(self);
        // With its full capacity: growth would leave copies that are not wiped.
        let bytes = parts.iter().flatten().map(|it| it.len()).sum();
        let mut whole = Secret::new(Vec::with_capacity(bytes));
        for part in parts.iter().flatten() {
            whole.extend_from_slice(part);
        }
        Ok(first.map(|first| (first, whole)))
    }
}

/// The parts of a message of `inner` bytes in datagrams of at most `limit` bytes; one part means
/// that the message needs no fragments.
pub(super) fn parts(cipher: Cipher, inner: &[u8], limit: usize) -> Vec<&[u8]> {
    let ahead = HEADER_BYTES + FRAGMENT_HEADER_BYTES;
    // The payload's header has 4 bytes less without the numbers.
    if ahead - 4 + cipher.sealed_bytes(inner.len()) <= limit {
        return vec![inner];
    }
    let fits = |bytes: &usize| ahead + cipher.sealed_bytes(*bytes) <= limit;
    let most = (1..limit).rev().find(fits).unwrap_or(1);
    inner.chunks(most).collect()
}

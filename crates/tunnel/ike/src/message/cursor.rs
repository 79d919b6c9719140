//! A cursor over received bytes, which knows its place for error reports.

use super::{Fault, Malformed, PayloadType};

#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the message.
    at: usize,
    payload: Option<PayloadType>,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8], payload: Option<PayloadType>) -> Self {
        Self {
            rest: bytes,
            at: 0,
            payload,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) const fn fail(&self, fault: Fault) -> Malformed {
        Malformed {
            at: self.at,
            payload: self.payload,
            fault,
        }
    }

    /// The fault, unless `holds`.
    pub(super) fn check(&self, holds: bool, fault: Fault) -> Result<(), Malformed> {
        if holds { Ok(()) } else { Err(self.fail(fault)) }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.fail(Fault::Truncated {
                needed: count,
                left: self.rest.len(),
            }));
        };
        self.rest = rest;
        self.at += count;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("N bytes were taken"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// All bytes that are left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = std::mem::take(&mut self.rest);
        self.at += rest.len();
        rest
    }

    /// A cursor over the next bytes, for a structure inside this one.
    pub(super) fn inner(&mut self, count: usize) -> Result<Self, Malformed> {
        let at = self.at;
        let rest = self.take(count)?;
        Ok(Self {
            rest,
            at,
            payload: self.payload,
        })
    }

    /// The same place, within a payload.
    pub(super) const fn of(mut self, payload: PayloadType) -> Self {
        self.payload = Some(payload);
        self
    }

    /// The end: no bytes are left.
    pub(super) fn end(&self) -> Result<(), Malformed> {
        self.check(self.rest.is_empty(), Fault::Trailing(self.rest.len()))
    }
}

//! Unpredictable numbers without I/O: a pseudo-random function of the caller's seed.

use crate::crypto::{Prf, Secret};
use std::time::Duration;

/// A generator of nonces, SPIs and IVs.
#[derive(Clone)]
pub(super) struct Random {
    seed: Secret,
    used: u64,
}

impl Random {
    pub(super) fn new(seed: Secret) -> Self {
        Self { seed, used: 0 }
    }

    /// Numbers so far.
    #[cfg(test)]
    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn bytes(&mut self, count: usize) -> Secret {
        self.used += 1;
        Prf::HmacSha256.plus(&self.seed, &[&self.used.to_be_bytes()], count)
    }

    /// An SPI of an IKE SA; 0 means none.
    pub(super) fn ike_spi(&mut self) -> u64 {
        loop {
            let bytes = self.bytes(8);
            let spi = u64::from_be_bytes(*bytes.first_chunk().expect("8 bytes"));
            if spi != 0 {
                return spi;
            }
        }
    }

    /// An SPI of a child SA; those below 256 are reserved (RFC 4303 section 2.1).
    pub(super) fn child_spi(&mut self) -> u32 {
        loop {
            let bytes = self.bytes(4);
            let spi = u32::from_be_bytes(*bytes.first_chunk().expect("4 bytes"));
            if spi > 255 {
                return spi;
            }
        }
    }

    /// A time below the limit.
    pub(super) fn below(&mut self, limit: Duration) -> Duration {
        let bytes = self.bytes(2);
        let part = u16::from_be_bytes(*bytes.first_chunk().expect("2 bytes"));
        limit * u32::from(part) / (u32::from(u16::MAX) + 1)
    }
}

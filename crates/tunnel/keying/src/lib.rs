//! Where security associations get their keys from.
//!
//! There are two sources, and [`Keys`] is either:
//!
//! - [`StaticKeys`]: a secret in a file, for labs and tests.
//! - [`KeyRing`]: epochs that two gateways agree on. A [`Rollover`](rollover::Rollover) says with the peer when there is a new one
//!   and what goes into it; [`chain`] mixes the handshake's secret, pre-shared keys ([`PpkFile`]) and QKD keys to
//!   its secret. [`message`] is what is said. TLS and the KME are elsewhere: all of this is without I/O and clock.
//!
//! `docs/security.md` has the derivations, and what each source does not give.
//!
//! All of this is the slow path: static keys may block on the disk, and workers share keys behind a mutex. It knows no
//! packets; an SA is told by suite, direction, epoch and lane.

#![forbid(unsafe_code)]

pub mod chain;
mod derive;
mod error;
mod files;
mod hex;
mod keys;
pub mod message;
mod ppk;
mod ring;
pub mod rollover;
mod static_keys;
mod text;

pub use derive::SaKeys;
pub use error::KeyError;
pub use files::{FileTexts, create_pair, pair_texts};
pub use keys::Keys;
pub use ppk::{PpkFile, create_ppk, ppk_text};
pub use ring::KeyRing;
pub use static_keys::{KeyFile, StaticKeys};

/// Bits of an SPI that tell the lane; the 20 above them tell the epoch.
const LANE_BITS: u32 = 12;
/// Lanes that an epoch has room for.
pub const LANES_MAX: u16 = 1 << LANE_BITS;
/// The last epoch; the first is 1. SPIs below 256 are reserved (RFC 4303 §2.1), so there is no epoch 0.
pub const EPOCH_MAX: u32 = (1 << (u32::BITS - LANE_BITS)) - 1;

/// One end of a tunnel: with static keys as the key file says, otherwise a is the one that connects. For keys the
/// ends differ only in the direction in which they send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Sends from a to b.
    A,
    /// Sends from b to a.
    B,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// As the key file has it: `a` or `b`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// The direction in which this end sends, as derivations have it.
    pub(crate) const fn direction(self) -> &'static [u8] {
        match self {
            Self::A => b"a-to-b",
            Self::B => b"b-to-a",
        }
    }
}

/// The SPI of a lane in an epoch.
#[must_use]
pub const fn spi_of(epoch: u32, lane: u16) -> u32 {
    assert!(
        epoch <= EPOCH_MAX && lane < LANES_MAX,
        "epoch and lane have room in an SPI"
    );
    epoch << LANE_BITS | lane as u32
}

/// The epoch that an SPI tells; 0 is none.
#[must_use]
pub const fn epoch_of(spi: u32) -> u32 {
    spi >> LANE_BITS
}

/// The lane that an SPI tells.
#[must_use]
pub const fn lane_of(spi: u32) -> u16 {
    (spi & (LANES_MAX as u32 - 1)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_spi_tells_epoch_and_lane() {
        for epoch in [1, 2, 0x1234, EPOCH_MAX] {
            for lane in [0, 1, 255, LANES_MAX - 1] {
                let spi = spi_of(epoch, lane);
                assert_eq!((epoch_of(spi), lane_of(spi)), (epoch, lane));
                assert!(spi >= 256, "reserved");
            }
        }
        assert_eq!(spi_of(EPOCH_MAX, LANES_MAX - 1), u32::MAX);
    }

    #[test]
    #[should_panic(expected = "room in an SPI")]
    fn a_lane_beyond_the_last_has_no_spi() {
        let _ = spi_of(1, LANES_MAX);
    }
}

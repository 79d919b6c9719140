//! Key sources of security associations.
//!
//! There are three sources; [`Keys`] is one of them:
//!
//! - [`StaticKeys`]: a secret in a file, for labs and tests.
//! - [`KeyRing`]: epochs that two gateways agree on. A [`Rollover`](rollover::Rollover) negotiates
//!   with the peer when a new epoch starts and which keys it mixes; [`chain`] derives its secret
//!   from the handshake's secret, pre-shared keys ([`PpkFile`]) and QKD keys; [`message`] defines
//!   the protocol's messages. TLS and the KME client are in other crates: negotiated keys involve
//!   no I/O and no clock.
//! - [`ChildSas`]: SAs that IKE negotiated, each with keys of its own.
//!
//! [`ObserverKeys`] open the packets of both ends of a tunnel with static keys, for a test bench.
//!
//! `docs/security.md` specifies the derivations, and the guarantees that each source does not give.
//!
//! This crate is the slow path: static keys may block on the disk, and workers share keys behind a
//! mutex. It handles no packets; suite, direction, epoch and lane identify an SA.

#![forbid(unsafe_code)]

pub mod chain;
mod child_sas;
mod derive;
mod error;
mod files;
mod hex;
mod keys;
mod locked;
pub mod message;
mod observer;
mod ppk;
mod ring;
pub mod rollover;
mod static_keys;
mod text;

pub use child_sas::ChildSas;
pub use derive::SaKeys;
pub use error::KeyError;
pub use files::{FileTexts, create_pair, metadata_of_file, pair_texts};
pub use keys::Keys;
pub use observer::ObserverKeys;
pub use ppk::{PpkFile, create_ppk, ppk_text};
pub use ring::KeyRing;
pub use static_keys::{KeyFile, StaticKeys};

/// Number of low bits of an SPI that contain the lane; the upper 20 contain the epoch.
const LANE_BITS: u32 = 12;
/// Maximum number of lanes.
pub const LANES_MAX: u16 = 1 << LANE_BITS;
/// The last epoch; the first is 1. SPIs below 256 are reserved (RFC 4303 §2.1), so there is no
/// epoch 0.
pub const EPOCH_MAX: u32 = (1 << (u32::BITS - LANE_BITS)) - 1;

/// One end of a tunnel. The key file defines it for static keys; otherwise side a is the connector.
/// For keys the ends differ only in their direction of sending.
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

    /// Its name in the key file: `a` or `b`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    /// This end's direction of sending, as an input to derivations.
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
        "epoch and lane fit in an SPI"
    );
    epoch << LANE_BITS | lane as u32
}

/// The epoch in an SPI; 0 means none.
#[must_use]
pub const fn epoch_of(spi: u32) -> u32 {
    spi >> LANE_BITS
}

/// The lane in an SPI.
#[must_use]
pub const fn lane_of(spi: u32) -> u16 {
    (spi & (LANES_MAX as u32 - 1)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_spi_contains_epoch_and_lane() {
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
    #[should_panic(expected = "fit in an SPI")]
    fn a_lane_beyond_the_last_has_no_spi() {
        let _ = spi_of(1, LANES_MAX);
    }
}

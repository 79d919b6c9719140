//! Frame sizes of test traffic: one size, or a mix of several (RFC 6985).

use serde::{Deserialize, Serialize};
use std::fmt;

/// Frame check sequence, which counts to a frame's size (RFC 2544 §9) but is never in a buffer.
pub const FCS_BYTES: u16 = 4;
/// Ethernet header without tags.
pub const ETHERNET_HEADER_BYTES: usize = 14;
/// Smallest Ethernet frame, FCS included.
pub const FRAME_BYTES_MIN: u16 = 64;
/// Largest frame that is made, FCS included.
pub const FRAME_BYTES_MAX: u16 = 9216;
/// Preamble, start delimiter and the gap between frames: what a frame takes on the line beside
/// itself (IEEE 802.3 §4.4.2).
pub const LINE_GAP_BYTES: u16 = 20;

/// Frames of one size in a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Share {
    /// Size in bytes, FCS included.
    pub frame_bytes: u16,
    /// How many of them there are for the others' `weight`; at least 1.
    pub weight: u32,
}

/// Sizes that frames of one traffic have, and in what numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrameMix {
    /// A known name (`imix`, `imix1` …), the size itself (`64`), or `mix`.
    pub name: String,
    /// The sizes; at least one, none twice.
    pub shares: Vec<Share>,
}

impl FrameMix {
    /// Frames of one size.
    #[must_use]
    pub fn fixed(frame_bytes: u16) -> Self {
        Self {
            name: frame_bytes.to_string(),
            shares: vec![Share {
                frame_bytes,
                weight: 1,
            }],
        }
    }

    /// The mixes that have a name: those of the source reports, and the usual one.
    ///
    /// `imix0`, `imix1`, `imix2` are those of the router vendor, `baikal` the 7:4:1 mix of the GOST
    /// report, `imix` the genome of RFC 6985's example as testers ship it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let shares: &[(u32, u16)] = match name {
            "imix" => &[(7, 64), (4, 594), (1, 1518)],
            "imix0" => &[
                (45, 64),
                (20, 128),
                (5, 256),
                (3, 512),
                (2, 1024),
                (1, 1280),
                (24, 1364),
            ],
            "imix1" => &[(7, 64), (4, 570), (1, 1418)],
            "baikal" => &[(7, 66), (4, 518), (1, 1450)],
            "imix2" => &[(58, 90), (2, 92), (24, 594), (16, 1418)],
            _ => return None,
        };
        let share = |&(weight, frame_bytes): &(u32, u16)| Share {
            frame_bytes,
            weight,
        };
        Some(Self {
            name: name.to_owned(),
            shares: shares.iter().map(share).collect(),
        })
    }

    /// Frames in one round of the mix.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.shares
            .iter()
            .map(|share| u64::from(share.weight))
            .sum()
    }

    /// Bytes in one round of the mix, FCS included.
    #[must_use]
    pub fn round_bytes(&self) -> u64 {
        let bytes = |share: &Share| u64::from(share.weight) * u64::from(share.frame_bytes);
        self.shares.iter().map(bytes).sum()
    }

    /// Mean size in bytes, FCS included.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        self.round_bytes() as f64 / self.weight().max(1) as f64
    }

    /// The largest size, FCS included.
    #[must_use]
    pub fn largest_bytes(&self) -> u16 {
        let sizes = self.shares.iter().map(|share| share.frame_bytes);
        sizes.max().unwrap_or(0)
    }

    /// The smallest size, FCS included.
    #[must_use]
    pub fn smallest_bytes(&self) -> u16 {
        let sizes = self.shares.iter().map(|share| share.frame_bytes);
        sizes.min().unwrap_or(0)
    }

    /// Bit/s on the line (L1, preamble and gap included) of so many frames per second.
    #[must_use]
    pub fn line_bps(&self, frames_per_s: f64) -> f64 {
        (self.mean_bytes() + f64::from(LINE_GAP_BYTES)) * 8.0 * frames_per_s
    }
}

/// The genome as reports print it: `7×64, 4×594, 1×1518`; of one size, the size.
impl fmt::Display for FrameMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.shares.as_slice() {
            return write!(f, "{}", only.frame_bytes);
        }
        for (index, share) in self.shares.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}×{}", share.weight, share.frame_bytes)?;
        }
        Ok(())
    }
}

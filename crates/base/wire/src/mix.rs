//! Frame sizes of test traffic: one size, or a mix of several (RFC 6985).

use serde::{Deserialize, Serialize};
use std::fmt;

/// Frame check sequence, which counts in a frame's size (RFC 2544 §9) but is never in a buffer.
pub const FCS_BYTES: u16 = 4;
/// Ethernet header without tags.
pub const ETHERNET_HEADER_BYTES: usize = 14;
/// Smallest Ethernet frame, FCS included.
pub const FRAME_BYTES_MIN: u16 = 64;
/// Largest frame generated, FCS included.
pub const FRAME_BYTES_MAX: u16 = 9216;
/// Preamble, start delimiter and the gap between frames: the space on the line that a frame takes
/// in addition to its own bytes (IEEE 802.3 §4.4.2).
pub const LINE_GAP_BYTES: u16 = 20;

/// Frames of one size in a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Share {
    /// Size in bytes, FCS included.
    pub frame_bytes: u16,
    /// Number of frames of this size relative to the other weights; at least 1.
    pub weight: u32,
}

/// What test frames look like, addresses aside: set by a plan, read by generator and analyser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFrames {
    /// Sizes on the clear side. The i-th frame's size comes from the mix in a fixed, even order.
    pub mix: FrameMix,
    /// Flows (distinct addresses or ports), spread over the tunnels; 1 to 65535, at most 32768 per
    /// tunnel.
    pub flows: u32,
    /// Tunnels that the flows are spread over, round-robin; at least 1.
    pub tunnels: u32,
    /// Ports and payloads.
    #[serde(default, skip_serializing_if = "Contents::is_fixed")]
    pub contents: Contents,
}

/// UDP ports and payloads of test frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Source ports in sequence, one target port, the same pseudo-random payload in each frame.
    #[default]
    Fixed,
    /// Pseudo-random ports for each flow and a pseudo-random payload for each frame (RFC 4814).
    Random,
}

impl Contents {
    /// Name in campaigns.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Random => "random",
        }
    }

    const fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed)
    }
}

/// The frame sizes of a traffic and their proportions.
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

    /// The named mixes: those of the source reports, and the usual one.
    ///
    /// `imix0`, `imix1`, `imix2` are the router vendor's, `baikal` the 7:4:1 mix of the GOST
    /// report, `imix` the genome of RFC 6985's example as testers implement it.
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

    /// Bit/s on the line (L1, preamble and gap included) at this number of frames per second.
    #[must_use]
    pub fn line_bps(&self, frames_per_s: f64) -> f64 {
        (self.mean_bytes() + f64::from(LINE_GAP_BYTES)) * 8.0 * frames_per_s
    }
}

/// The order of the sizes of a mix.
///
/// The quota method (Balinski and Young, 1975): of the sizes behind their share, the one whose next
/// frame is due first. So after any number of frames each size has been used within less than one
/// frame of its share, and after each round exactly as often as its weight. A plain smooth weighted
/// round-robin may drift further off within a round.
#[derive(Debug, Clone)]
pub struct MixOrder {
    weights: Box<[i64]>,
    /// The deficit of each size from its share, in frames times [`round`](Self::round).
    behind: Box<[i64]>,
    /// Frames in one round.
    round: i64,
}

impl MixOrder {
    /// The order of `mix`, from its start.
    #[must_use]
    pub fn new(mix: &FrameMix) -> Self {
        let weights: Box<[i64]> = mix.shares.iter().map(|s| i64::from(s.weight)).collect();
        Self {
            behind: vec![0; weights.len()].into(),
            round: weights.iter().sum(),
            weights,
        }
    }

    /// Index in [`FrameMix::shares`] of the next frame's size.
    #[inline]
    #[must_use]
    pub fn advance(&mut self) -> usize {
        if self.weights.len() <= 1 {
            return 0;
        }
        let mut first = None;
        for (index, (behind, weight)) in self.behind.iter_mut().zip(&self.weights).enumerate() {
            *behind += weight;
            // Time to its deadline is `wait / weight` frames.
            // Compared by cross-multiplication, since a division would round. With weights of 32
            // bits the products exceed 64.
            let wait = i128::from(self.round - *behind);
            let sooner = |(_, least, of): (usize, i128, i64)| {
                wait * i128::from(of) < least * i128::from(*weight)
            };
            if *behind > 0 && first.is_none_or(sooner) {
                first = Some((index, wait, *weight));
            }
        }
        // They sum to zero before the weights are added, so at least one is behind.
        let chosen = first.map_or(0, |(index, ..)| index);
        // This takes back the sum of all weights that were added, so they sum to zero again.
        self.behind[chosen] -= self.round;
        chosen
    }
}

/// The genome as reports print it: `7×64, 4×594, 1×1518`; the size alone if there is only one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_mix() -> impl Strategy<Value = FrameMix> {
        let weight = prop_oneof![1u32..20, 1u32..2000];
        prop::collection::vec(weight, 1..9).prop_map(|weights| FrameMix {
            name: "mix".to_owned(),
            shares: (64..)
                .zip(weights)
                .map(|(frame_bytes, weight)| Share {
                    frame_bytes,
                    weight,
                })
                .collect(),
        })
    }

    #[test]
    fn the_usual_mix_is_interleaved_evenly() {
        let mut order = MixOrder::new(&FrameMix::named("imix").unwrap());
        let sizes: Vec<_> = (0..24).map(|_| order.advance()).collect();
        let round = [0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 2];
        assert_eq!(sizes, [round, round].concat());
    }

    #[test]
    fn one_size_needs_no_order() {
        let mut order = MixOrder::new(&FrameMix::fixed(64));
        assert!((0..100).all(|_| order.advance() == 0));
    }

    #[test]
    fn weights_up_to_the_largest_do_not_overflow() {
        let share = |frame_bytes| Share {
            frame_bytes,
            weight: u32::MAX,
        };
        let mut order = MixOrder::new(&FrameMix {
            name: "mix".to_owned(),
            shares: (64..96).map(share).collect(),
        });
        let round: Vec<_> = (0..64).map(|_| order.advance()).collect();
        assert_eq!(round, (0..32).chain(0..32).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn every_prefix_is_within_one_frame_of_the_shares(mix in any_mix()) {
            let mut order = MixOrder::new(&mix);
            let round = mix.weight();
            let mut counts = vec![0u64; mix.shares.len()];
            for frames in 1..=2 * round {
                counts[order.advance()] += 1;
                for (count, share) in counts.iter().zip(&mix.shares) {
                    let due = frames * u64::from(share.weight);
                    prop_assert!((count * round).abs_diff(due) < round);
                    if frames % round == 0 {
                        prop_assert_eq!(count * round, due);
                    }
                }
            }
        }
    }
}

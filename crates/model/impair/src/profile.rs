//! What a path does to frames.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// An Ethernet frame of 1500 B with FCS, preamble and gap.
const LONG_FRAME_BYTES: u64 = 1500 + 14 + 4 + 20;

/// A named impairment of both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Its name in the campaign; `none` for the profile that does nothing.
    pub name: String,
    /// Seed of all random decisions.
    pub seed: u64,
    /// From station A's side to B's.
    pub a_to_b: Impairment,
    /// From station B's side to A's.
    pub b_to_a: Impairment,
}

/// A direction of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From station A's side to B's.
    AToB,
    /// From station B's side to A's.
    BToA,
}

impl Profile {
    /// Name of the profile that does nothing.
    pub const NONE: &'static str = "none";

    /// The profile that does nothing.
    #[must_use]
    pub fn none() -> Self {
        Self {
            name: Self::NONE.to_owned(),
            seed: 0,
            a_to_b: Impairment::default(),
            b_to_a: Impairment::default(),
        }
    }

    /// The impairment of a direction.
    #[must_use]
    pub const fn of(&self, direction: Direction) -> &Impairment {
        match direction {
            Direction::AToB => &self.a_to_b,
            Direction::BToA => &self.b_to_a,
        }
    }

    /// What its delays add to a round trip, in nanoseconds, without jitter and queues.
    #[must_use]
    pub const fn round_trip_ns(&self) -> u64 {
        self.a_to_b.delay_ns.saturating_add(self.b_to_a.delay_ns)
    }

    /// What its full queues add to a round trip of long frames, in nanoseconds.
    #[must_use]
    pub fn full_queues_ns(&self) -> u64 {
        let full_ns = |way: &Impairment| way.rate.map_or(0, |rate| rate.full_queue_ns());
        full_ns(&self.a_to_b).saturating_add(full_ns(&self.b_to_a))
    }

    /// Whether packets get lost in any direction: by its loss, or damaged, so that the receiver
    /// drops them.
    #[must_use]
    pub const fn loses(&self) -> bool {
        self.a_to_b.loss.is_some() || self.b_to_a.loss.is_some() || self.corrupts()
    }

    /// Whether it flips bits in any direction.
    #[must_use]
    pub const fn corrupts(&self) -> bool {
        self.a_to_b.corrupt_ppm > 0 || self.b_to_a.corrupt_ppm > 0
    }

    /// Whether some frames are sent twice.
    #[must_use]
    pub const fn duplicates(&self) -> bool {
        self.a_to_b.duplicate_ppm > 0 || self.b_to_a.duplicate_ppm > 0
    }

    /// The same profile with the seed of a repeat, from 1: all devices of one repeat meet the same
    /// sequence of fates, and each repeat another one.
    #[must_use]
    pub fn for_repeat(&self, repeat: u32) -> Self {
        Self {
            // Seeds that people choose are small: repeats of one are not those of another.
            seed: self.seed.wrapping_add(u64::from(repeat) << 32),
            ..self.clone()
        }
    }
}

/// What happens to frames of one direction. The default does nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impairment {
    /// Constant delay in nanoseconds.
    #[serde(default)]
    pub delay_ns: u64,
    /// Variation of the delay.
    #[serde(default)]
    pub jitter: Option<Jitter>,
    /// Frames that vanish.
    #[serde(default)]
    pub loss: Option<Loss>,
    /// Frames that later ones overtake.
    #[serde(default)]
    pub reorder: Option<Reorder>,
    /// Frames that arrive twice, in parts per million.
    #[serde(default)]
    pub duplicate_ppm: u32,
    /// Frames with a flipped bit, in parts per million.
    #[serde(default)]
    pub corrupt_ppm: u32,
    /// The narrowest link.
    #[serde(default)]
    pub rate: Option<Rate>,
}

/// Variation of the delay. Frames keep their order: a frame waits for the one before it, and leaves
/// behind it at the rate, if there is one, as by tc-netem(8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    /// Its scale in nanoseconds, by the distribution.
    pub time_ns: u64,
    /// Its distribution.
    pub distribution: Distribution,
}

/// Distribution of the jitter. No frame is sooner than its delay allows, which is never negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Distribution {
    /// Around the delay, with the time as standard deviation.
    #[default]
    Normal,
    /// From the time below the delay to the time above it.
    Uniform,
    /// Added to the delay, with the time as mean.
    Exponential,
    /// Added to the delay, with the time as mean and a heavy tail: Lomax with shape 3.
    Pareto,
}

/// Which frames vanish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Each with this probability, in parts per million.
    Random {
        /// The probability.
        ppm: u32,
    },
    /// In bursts: two states, of which the bad one loses every frame (Gilbert 1960, with the bad
    /// state's loss of Elliott 1963).
    Bursts {
        /// Probability, before each frame, of a change from the good state to the bad one, in parts
        /// per million (`p`).
        to_bad_ppm: u32,
        /// Of a change back (`r`).
        to_good_ppm: u32,
        /// Loss in the bad state in parts per million (`1 - h`).
        bad_ppm: u32,
        /// Loss in the good state in parts per million (`1 - k`).
        good_ppm: u32,
    },
}

impl Loss {
    /// The share of frames lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let share = |ppm: u32| f64::from(ppm) / 1e6;
        match *self {
            Self::Random { ppm } => share(ppm),
            Self::Bursts {
                to_bad_ppm,
                to_good_ppm,
                bad_ppm,
                good_ppm,
            } => {
                let (p, r) = (share(to_bad_ppm), share(to_good_ppm));
                // The stationary share of the bad state, which is never entered with `p` = 0.
                let bad = if p > 0.0 { p / (p + r) } else { 0.0 };
                bad * share(bad_ppm) + (1.0 - bad) * share(good_ppm)
            }
        }
    }
}

/// Frames that are held back, so that later ones overtake them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reorder {
    /// Their share in parts per million.
    pub ppm: u32,
    /// How long they are held back, in nanoseconds.
    pub by_ns: u64,
}

/// A link with a rate and the queue in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// In bit/s at L1: FCS, preamble and gap counted.
    pub bps: u64,
    /// What may wait; a frame beyond it is lost.
    pub queue: Queue,
}

impl Rate {
    /// How long the last of a full queue of long frames waits, in nanoseconds.
    fn full_queue_ns(self) -> u64 {
        let bytes = match self.queue {
            Queue::TimeNs(ns) => return ns,
            Queue::Bytes(bytes) => bytes,
            // Long frames take the most time.
            Queue::Packets(packets) => u64::from(packets) * LONG_FRAME_BYTES,
        };
        let ns = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.bps.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// Length of a queue, the frame in transmission included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// Bytes at L1.
    Bytes(u64),
    /// Frames.
    Packets(u32),
    /// Nanoseconds that a frame may wait before its transmission.
    TimeNs(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_and_full_queues_add_up_over_a_round_trip() {
        let way = |delay_ns, queue| Impairment {
            delay_ns,
            rate: Some(Rate {
                bps: 12_304_000,
                queue,
            }),
            ..Impairment::default()
        };
        let profile = Profile {
            a_to_b: way(10, Queue::Packets(100)),
            b_to_a: way(20, Queue::TimeNs(7)),
            ..Profile::none()
        };
        assert_eq!(profile.round_trip_ns(), 30);
        // 100 frames of 1538 B at L1, 1 ms each.
        assert_eq!(profile.full_queues_ns(), 100_000_000 + 7);
        assert_eq!(Profile::none().full_queues_ns(), 0);
    }
}

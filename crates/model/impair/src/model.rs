//! The fate of each frame.

use crate::profile::{Direction, Distribution, Impairment, Jitter, Loss, Profile, Queue, Rate};
use crate::random::Random;
use std::collections::VecDeque;

/// What a frame takes on the wire besides its bytes at a port: FCS, preamble and gap (IEEE 802.3).
const WIRE_BYTES: u64 = 4 + 8 + 12;
const SECOND_NS: u64 = 1_000_000_000;
/// Shape of the heavy tail.
const PARETO_SHAPE: f64 = 3.0;

/// No bit before this byte is flipped: Ethernet, IPv4, UDP, and the headers of ESP and WireGuard. A
/// frame with a damaged header is dropped by the next device, which is loss.
pub const SPARED_BYTES: usize = 62;

/// What happens to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It vanishes.
    LostByModel,
    /// The queue is full.
    LostByQueue,
    /// It leaves.
    Delivered(Delivery),
}

/// How a frame leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// When, by the caller's clock; not before the frame's own time.
    pub at_ns: u64,
    /// Whether a copy follows at once.
    pub is_doubled: bool,
    /// Whether it is held back, so that later frames may overtake it.
    pub is_held_back: bool,
    /// The bit to flip, counted from the frame's first byte.
    pub flip: Option<usize>,
}

/// Decides the fates of one direction's frames.
#[derive(Debug)]
pub struct Model {
    impairment: Impairment,
    loss: Random,
    jitter: Random,
    reorder: Random,
    duplicate: Random,
    corrupt: Random,
    is_bad: bool,
    link: Option<Link>,
    /// When the last frame leaves that was not held back.
    last_ns: u64,
}

impl Model {
    /// The model of one direction, before its first frame.
    #[must_use]
    pub fn new(profile: &Profile, direction: Direction) -> Self {
        let impairment = profile.of(direction).clone();
        let first_stream: u64 = match direction {
            Direction::AToB => 0,
            // Room for further causes: a new one must not change the numbers of the others.
            Direction::BToA => 16,
        };
        let random = |cause| Random::new(profile.seed, first_stream + cause);
        Self {
            loss: random(1),
            jitter: random(2),
            reorder: random(3),
            duplicate: random(4),
            corrupt: random(5),
            is_bad: false,
            link: impairment.rate.map(Link::new),
            last_ns: 0,
            impairment,
        }
    }

    /// Returns the fate of the next frame, of this length without FCS, which arrives at `now_ns`:
    /// not before the previous one.
    #[inline]
    pub fn next(&mut self, frame_bytes: usize, now_ns: u64) -> Fate {
        // A lost frame takes no room on the link: it is lost before it.
        if self.loses() {
            return Fate::LostByModel;
        }
        let wire_bytes = frame_bytes as u64 + WIRE_BYTES;
        let (left_ns, wire_ns) = match &mut self.link {
            None => (now_ns, 0),
            Some(link) => match link.carry(wire_bytes, now_ns) {
                Some(left_ns) => (left_ns, link.wire_ns(wire_bytes)),
                None => return Fate::LostByQueue,
            },
        };
        let delay_ns = match self.impairment.jitter {
            None => self.impairment.delay_ns,
            Some(jitter) => self.varied(jitter),
        };
        // Frames that wait for a late one do not leave faster than the link carries them either.
        let in_order_ns = left_ns
            .saturating_add(delay_ns)
            .max(self.last_ns.saturating_add(wire_ns));
        let held_back_ns = match self.impairment.reorder {
            Some(reorder) if self.reorder.happens(reorder.ppm) => Some(reorder.by_ns),
            _ => None,
        };
        if held_back_ns.is_none() {
            self.last_ns = in_order_ns;
        }
        let is_doubled = self.duplicate.happens(self.impairment.duplicate_ppm);
        let flips = self.corrupt.happens(self.impairment.corrupt_ppm);
        Fate::Delivered(Delivery {
            at_ns: in_order_ns.saturating_add(held_back_ns.unwrap_or(0)),
            is_doubled,
            is_held_back: held_back_ns.is_some(),
            flip: flips.then(|| self.bit(frame_bytes)),
        })
    }

    fn loses(&mut self) -> bool {
        match self.impairment.loss {
            None => false,
            Some(Loss::Random { ppm }) => self.loss.happens(ppm),
            Some(Loss::Bursts {
                to_bad_ppm,
                to_good_ppm,
                bad_ppm,
                good_ppm,
            }) => {
                let changes = if self.is_bad { to_good_ppm } else { to_bad_ppm };
                // The state changes first, so the frame sees the new one.
                self.is_bad ^= self.loss.happens(changes);
                let lost = if self.is_bad { bad_ppm } else { good_ppm };
                self.loss.happens(lost)
            }
        }
    }

    /// The delay with its jitter, at least 0.
    fn varied(
        &mut self,
        Jitter {
            time_ns,
            distribution,
        }: Jitter,
    ) -> u64 {
        let (random, scale) = (&mut self.jitter, time_ns as f64);
        let varied = match distribution {
            Distribution::Normal => scale * random.normal(),
            Distribution::Uniform => scale * (2.0 * random.unit() - 1.0),
            Distribution::Exponential => -scale * random.unit().ln(),
            Distribution::Pareto => {
                // Inverse of the Lomax distribution. Its mean is its scale / (shape - 1), hence the
                // factor.
                let excess = random.unit().powf(-1.0 / PARETO_SHAPE) - 1.0;
                scale * (PARETO_SHAPE - 1.0) * excess
            }
        };
        // A conversion to an integer saturates, and so is never negative.
        (self.impairment.delay_ns as f64 + varied) as u64
    }

    fn bit(&mut self, frame_bytes: usize) -> usize {
        let first = SPARED_BYTES.min(frame_bytes.saturating_sub(1));
        let bits = (frame_bytes - first).max(1) as u64 * 8;
        first * 8 + self.corrupt.below(bits) as usize
    }
}

/// A link with a rate.
#[derive(Debug)]
struct Link {
    rate: Rate,
    /// When it has sent everything that it accepted.
    free_ns: u64,
    /// Part of a nanosecond beyond `free_ns`, in units of 1 / `bps`.
    fraction: u64,
    /// When each waiting frame leaves; only where the queue counts frames.
    leaving: VecDeque<u64>,
}

impl Link {
    fn new(rate: Rate) -> Self {
        // Room for all of them from the start: no frame allocates.
        let frames = match rate.queue {
            Queue::Packets(frames) => frames as usize,
            Queue::Bytes(_) | Queue::TimeNs(_) => 0,
        };
        Self {
            rate,
            free_ns: 0,
            fraction: 0,
            leaving: VecDeque::with_capacity(frames),
        }
    }

    /// How long a frame takes on the wire.
    const fn wire_ns(&self, wire_bytes: u64) -> u64 {
        wire_bytes * 8 * SECOND_NS / self.rate.bps
    }

    /// Accepts a frame, and returns when its last bit has left; `None` if it does not fit.
    fn carry(&mut self, wire_bytes: u64, now_ns: u64) -> Option<u64> {
        let wait_ns = self.free_ns.saturating_sub(now_ns);
        let fits = match self.rate.queue {
            Queue::TimeNs(limit_ns) => wait_ns <= limit_ns,
            // The waiting bytes follow from their time on the link, so no list of lengths is kept.
            Queue::Bytes(limit) => {
                let bits = u128::from(wait_ns) * u128::from(self.rate.bps) / u128::from(SECOND_NS);
                bits.div_ceil(8) + u128::from(wire_bytes) <= u128::from(limit)
            }
            Queue::Packets(limit) => {
                // Frames that have left make room.
                while self.leaving.front().is_some_and(|&leaves| leaves <= now_ns) {
                    self.leaving.pop_front();
                }
                self.leaving.len() < limit as usize
            }
        };
        if !fits {
            return None;
        }
        // An idle link starts with the frame; the rest of a nanosecond is of the past.
        if wait_ns == 0 {
            (self.free_ns, self.fraction) = (now_ns, 0);
        }
        // At most 64 KB, so the product fits.
        let units = wire_bytes * 8 * SECOND_NS + self.fraction;
        self.free_ns = self.free_ns.saturating_add(units / self.rate.bps);
        self.fraction = units % self.rate.bps;
        if let Queue::Packets(_) = self.rate.queue {
            self.leaving.push_back(self.free_ns);
        }
        Some(self.free_ns)
    }
}

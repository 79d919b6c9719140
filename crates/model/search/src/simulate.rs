//! Simulated devices of known capacity, to try searches on.
//!
//! A [`Device`] answers trials as a device under test would, from a seed: the same seed and the
//! same trials give the same counts. The correct bounds for a goal follow from its [`Behaviour`].

use crate::{Counts, DELAY_SLICES, DelaySlice, DelayTrend, Reserve, Searcher, Step, Trial};

/// The behaviour of a simulated device. Rates are in frames/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Behaviour {
    /// Carries this rate and not a frame more.
    Hard {
        /// Its capacity.
        capacity: u64,
    },
    /// As [`Behaviour::Hard`], but each frame of an overload costs further frames.
    Collapsing {
        /// Its capacity.
        capacity: u64,
        /// Further frames lost for each frame of overload, in parts per million.
        cost_ppm: u32,
    },
    /// As [`Behaviour::Hard`], and near the capacity a trial may lose a little, with a probability
    /// that rises towards the capacity.
    Noisy {
        /// Its capacity.
        capacity: u64,
        /// Width of the band below the capacity that has loss, as a share of the capacity in parts
        /// per million.
        band_ppm: u32,
    },
    /// Each trial has one of two capacities.
    TwoBands {
        /// In the bad band.
        low: u64,
        /// In the good band.
        high: u64,
        /// Share of trials in the bad band, in parts per million.
        low_ppm: u32,
    },
    /// As [`Behaviour::Hard`] behind a queue: a trial loses nothing until the queue is full, and
    /// frames queued at its end are still delivered, after any time.
    Queue {
        /// Its capacity.
        capacity: u64,
        /// Frames that the queue holds.
        frames: u64,
    },
    /// As [`Behaviour::Hard`] after its tokens are used up: a token bucket, full at first, which
    /// fills at the capacity while less is sent. It delays no frame, and loses frames without a
    /// token.
    Bucket {
        /// Its capacity.
        capacity: u64,
        /// Frames that it saves at most.
        frames: u64,
    },
    /// A capacity that changes at a constant rate over the time of trials.
    Drifting {
        /// At the beginning.
        capacity: u64,
        /// Change in frames/s each second; negative when it falls.
        per_second: i64,
    },
    /// As [`Behaviour::Hard`], and each frame is lost with the same probability at any load.
    Lossy {
        /// Its capacity.
        capacity: u64,
        /// Probability per frame, in parts per million.
        loss_ppm: u32,
    },
    /// The device carries everything; the tester cannot send more than this.
    TesterLimited {
        /// Highest rate of the tester.
        rate: u64,
    },
}

/// A simulated device.
#[derive(Debug, Clone)]
pub struct Device {
    behaviour: Behaviour,
    random: u64,
    /// Total time of the trials so far.
    clock_ns: u64,
    /// Tokens missing from a full bucket, in frames.
    spent: u64,
    /// The reserve that the last trial shows.
    reserve: Option<Reserve>,
}

impl Device {
    /// A device with a seed for its random behaviour.
    #[must_use]
    pub const fn new(behaviour: Behaviour, seed: u64) -> Self {
        Self {
            behaviour,
            random: seed,
            clock_ns: 0,
            spent: 0,
            reserve: None,
        }
    }

    /// The reserve that the last trial shows.
    #[must_use]
    pub const fn reserve(&self) -> Option<Reserve> {
        self.reserve
    }

    /// Passes time without load.
    pub fn rest(&mut self, time_ns: u64) {
        if let Behaviour::Bucket { capacity, .. } = self.behaviour {
            self.spent = self.spent.saturating_sub(frames(capacity, time_ns));
        }
    }

    /// Makes a trial, with the counts that a search records: frames that only a growing queue
    /// carried are not forwarded.
    pub fn measure(&mut self, trial: Trial) -> Counts {
        let (counts, delay) = self.observe(trial);
        counts.sustained(delay, self.reserve, trial.duration_ns)
    }

    /// Makes a trial: every frame that arrives at last, and the trend of delay if the device has a
    /// queue.
    pub fn observe(&mut self, trial: Trial) -> (Counts, Option<DelayTrend>) {
        let intended = frames(trial.load, trial.duration_ns);
        let carried = |capacity| frames(capacity, trial.duration_ns).min(intended);
        let forwarded = match self.behaviour {
            Behaviour::Hard { capacity } | Behaviour::TesterLimited { rate: capacity } => {
                carried(capacity)
            }
            Behaviour::Collapsing { capacity, cost_ppm } => {
                let too_many = intended - carried(capacity);
                carried(capacity).saturating_sub(too_many * u64::from(cost_ppm) / 1_000_000)
            }
            Behaviour::Noisy { capacity, band_ppm } => {
                let chance = nearness(trial.load, capacity, band_ppm);
                let lost = if self.chance(chance) {
                    1 + intended / 100_000
                } else {
                    0
                };
                carried(capacity).saturating_sub(lost)
            }
            Behaviour::TwoBands { low, high, low_ppm } => {
                carried(if self.chance(f64::from(low_ppm) / 1e6) {
                    low
                } else {
                    high
                })
            }
            Behaviour::Queue {
                capacity,
                frames: queue,
                // The queue is delivered after the load, however long that takes.
            } => (frames(capacity, trial.duration_ns) + queue).min(intended),
            Behaviour::Bucket {
                capacity,
                frames: saved,
            } => self.through_bucket(trial, capacity, saved),
            Behaviour::Drifting {
                capacity,
                per_second,
            } => {
                // In milliseconds, which are divided below: whole seconds would make the drift
                // jump.
                let seconds = i128::from(self.clock_ns / 1_000_000);
                let drift = i128::from(per_second) * seconds / 1_000;
                carried(u64::try_from(i128::from(capacity) + drift).unwrap_or(0))
            }
            Behaviour::Lossy { capacity, loss_ppm } => {
                let arrived = intended - self.binomial(intended, f64::from(loss_ppm) / 1e6);
                carried(capacity).min(arrived)
            }
        };
        self.clock_ns += trial.duration_ns;
        let counts = Counts {
            intended,
            forwarded,
        };
        (counts, self.delay(trial))
    }

    /// Frames of a trial that a token bucket lets through.
    fn through_bucket(&mut self, trial: Trial, capacity: u64, saved: u64) -> u64 {
        let intended = frames(trial.load, trial.duration_ns);
        let count = DELAY_SLICES as u64;
        let upto = |whole: u64, slice: u64| {
            let part = u128::from(whole) * u128::from(slice) / u128::from(count);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let carried = frames(capacity, trial.duration_ns);
        let slices: [DelaySlice; DELAY_SLICES] = std::array::from_fn(|slice| {
            let part = |whole| upto(whole, slice as u64 + 1) - upto(whole, slice as u64);
            let (offered, refilled) = (part(intended), part(carried));
            let passed = offered.min(refilled + saved.saturating_sub(self.spent));
            // Tokens beyond a full bucket are lost.
            self.spent = (self.spent + passed).saturating_sub(refilled);
            DelaySlice {
                frames: passed,
                mean_ns: 0,
            }
        });
        self.reserve = Reserve::of(&slices, intended, trial.duration_ns, 0);
        slices.iter().map(|slice| slice.frames).sum()
    }

    fn delay(&self, trial: Trial) -> Option<DelayTrend> {
        let Behaviour::Queue {
            capacity,
            frames: queue,
        } = self.behaviour
        else {
            return None;
        };
        let slices: [DelaySlice; DELAY_SLICES] = std::array::from_fn(|slice| {
            // The delay of the frame in the middle of the slice approximates the mean.
            let passed = (2 * slice as u64 + 1) * trial.duration_ns / (2 * DELAY_SLICES as u64);
            let waiting = frames(trial.load.saturating_sub(capacity), passed).min(queue);
            let delay_ns = u128::from(waiting) * 1_000_000_000 / u128::from(capacity.max(1));
            DelaySlice {
                frames: frames(trial.load, trial.duration_ns) / DELAY_SLICES as u64,
                mean_ns: i64::try_from(delay_ns).unwrap_or(i64::MAX),
            }
        });
        DelayTrend::of(&slices)
    }

    fn chance(&mut self, chance: f64) -> bool {
        self.uniform() < chance
    }

    /// A binomial sample for a small probability: drawn as Poisson, or as normal if the mean is
    /// large.
    fn binomial(&mut self, frames: u64, chance: f64) -> u64 {
        let mean = frames as f64 * chance;
        let drawn = if mean < 30.0 {
            // Knuth: uniform numbers are multiplied until the product is below e^-mean.
            let (limit, mut product, mut count) = ((-mean).exp(), self.uniform(), 0_u32);
            while product > limit {
                product *= self.uniform();
                count += 1;
            }
            f64::from(count)
        } else {
            // The sum of twelve uniform numbers less six is near enough to normal.
            let normal: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
            (mean + normal * mean.sqrt()).round().max(0.0)
        };
        (drawn as u64).min(frames)
    }

    /// From 0 to under 1 (SplitMix64).
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        // 53 bits, as an `f64` has.
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Runs a search against a device until it ends; each trial takes its duration and `overhead_ns`,
/// while the device rests.
pub fn run(search: &mut dyn Searcher, device: &mut Device, overhead_ns: u64) {
    while let Step::Measure(trial) = search.next() {
        let counts = device.measure(trial);
        device.rest(overhead_ns);
        if let Some(reserve) = device.reserve() {
            // Before the trial itself, as the trait requires.
            search.learn(trial, reserve);
        }
        search.record(trial, counts, trial.duration_ns + overhead_ns);
    }
}

/// Number of frames at a rate in a time.
fn frames(rate: u64, duration_ns: u64) -> u64 {
    let frames = u128::from(rate) * u128::from(duration_ns) / 1_000_000_000;
    u64::try_from(frames).unwrap_or(u64::MAX)
}

/// 0 below the band, rising to 1 at the capacity.
fn nearness(load: u64, capacity: u64, band_ppm: u32) -> f64 {
    let band = capacity as f64 * f64::from(band_ppm) / 1e6;
    let below = capacity as f64 - load as f64;
    (1.0 - below / band).clamp(0.0, 1.0)
}

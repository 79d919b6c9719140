//! Mean one-way delay over equal parts of a trial, which shows a queue that grows.
//!
//! A part is a range of the schedule's frames, not of a clock: clocks may step, and a frame's place
//! in a steady schedule is its time.

/// Parts of a trial: the searches compare thirds, with five parts each.
pub const DELAY_SLICES: usize = 15;

/// Sums of a receiver, all allocated before the first frame arrives.
#[derive(Debug, Clone)]
pub(crate) struct Delays {
    /// Frames of the schedule; at least 1.
    expected: u64,
    sums: [Sum; DELAY_SLICES],
    /// The slice of the last frame, and the frames that belong to it: frames mostly arrive in
    /// order, and then no frame costs a division.
    current: usize,
    from: u64,
    length: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    frames: u64,
    /// Sum of the delays in nanoseconds; a delay is negative if the clocks disagree.
    delay_ns: i128,
}

impl Delays {
    /// `None` when the schedule has no frame.
    pub(crate) fn new(expected: u64) -> Option<Self> {
        (expected > 0).then(|| Self {
            expected,
            sums: [Sum::default(); DELAY_SLICES],
            current: 0,
            from: 0,
            length: 0,
        })
    }

    /// Counts a frame by its number in the schedule.
    #[inline]
    pub(crate) fn count(&mut self, number: u64, delay_ns: i64) {
        // One comparison for both ends, as an earlier frame wraps around.
        if number.wrapping_sub(self.from) >= self.length {
            self.seek(number);
        }
        let sum = &mut self.sums[self.current];
        sum.frames += 1;
        sum.delay_ns += i128::from(delay_ns);
    }

    /// Makes the slice of a frame the current one. Frames beyond the schedule count in the last.
    #[cold]
    fn seek(&mut self, number: u64) {
        let (slices, expected) = (DELAY_SLICES as u128, u128::from(self.expected));
        let slice = (u128::from(number) * slices / expected).min(slices - 1);
        // Both are at most the number of frames in the schedule.
        let first = |slice: u128| (slice * expected).div_ceil(slices) as u64;
        self.current = slice as usize;
        self.from = first(slice);
        // The last one takes what is beyond the schedule too.
        self.length = if slice + 1 == slices {
            u64::MAX - self.from
        } else {
            first(slice + 1) - self.from
        };
    }

    /// Adds the counts of another receiver of the same trial.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            sum.frames += more.frames;
            sum.delay_ns += more.delay_ns;
        }
    }

    /// Frames of each slice and their mean delay in nanoseconds.
    pub(crate) fn means(&self) -> Vec<(u64, i64)> {
        let mean = |sum: &Sum| {
            let mean = sum.delay_ns / i128::from(sum.frames.max(1));
            // A mean is within the range of its values, which are 64 bits.
            (sum.frames, i64::try_from(mean).unwrap_or(i64::MAX))
        };
        self.sums.iter().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_schedule_without_frames_has_no_slices() {
        assert!(Delays::new(0).is_none());
    }

    proptest! {
        /// Independent of the order of arrival and of the distribution over two receivers.
        #[test]
        fn every_frame_is_in_the_slice_of_its_place(
            expected in prop_oneof![1_u64..40, 1_u64..1 << 40],
            frames in prop::collection::vec((any::<u64>(), -1000_i64..1000, any::<bool>()), 0..80),
        ) {
            let (mut one, mut other) = (Delays::new(expected).unwrap(), Delays::new(expected).unwrap());
            let mut slow = [(0_u64, 0_i64); DELAY_SLICES];
            for (number, delay_ns, is_one) in frames {
                let number = number % expected;
                let receiver = if is_one { &mut one } else { &mut other };
                receiver.count(number, delay_ns);
                let slice = u128::from(number) * 15 / u128::from(expected);
                slow[slice as usize].0 += 1;
                slow[slice as usize].1 += delay_ns;
            }
            one.merge(&other);
            let slow = slow.map(|(frames, sum)| (frames, sum / (frames.max(1) as i64)));
            prop_assert_eq!(one.means(), slow.to_vec());
        }
    }
}

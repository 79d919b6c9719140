//! Departure times of frames: open loop, in bursts, without drift.
//!
//! The k-th burst is due at `start + k × burst / rate`, computed in whole numbers with the
//! remainder carried on. A late frame leaves as soon as possible and keeps its intended time: a
//! slow port never slows the schedule. If the rate is to be kept, the generator instead delays the
//! rest of the schedule ([`Schedule::delay`]).
//!
//! Pure: it reads no clock.

use crate::SECOND_NS;
use crate::spec::Send;

/// One thread's share of the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Number of the thread, from 0.
    pub index: u32,
    /// Number of threads.
    pub of: u32,
}

impl Part {
    /// All flows on one thread.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// How many of `flows` belong to this part: flows numbered [`index`](Self::index) modulo
    /// [`of`](Self::of).
    #[must_use]
    pub const fn flows(self, flows: u32) -> u32 {
        // If the flows cannot be divided evenly, the first threads have one more.
        (flows + self.of - 1 - self.index) / self.of
    }

    /// How many of the first `frames` frames of a trial belong to this part. Flows take turns:
    /// frame n belongs to flow n modulo `flows`.
    #[must_use]
    pub fn frames(self, frames: u64, flows: u32) -> u64 {
        let flows_u64 = u64::from(flows);
        // Whole rounds of all flows, then the first `rest` flows of one more round. A remainder is
        // less than the divisor, so it fits.
        let rest = (frames % flows_u64) as u32;
        frames / flows_u64 * u64::from(self.flows(flows)) + u64::from(self.flows(rest))
    }
}

/// A steady load over all flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Frames per second.
    pub frames_per_s: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Interval over which frames are gathered and sent together, at its start: up to this much
    /// earlier than with even spacing.
    pub burst_ns: u64,
    /// Due time of the first burst.
    pub start_ns: u64,
    /// Frames sent before it, so that the flows' order continues.
    pub first_frame: u64,
}

impl Load {
    /// Total number of frames: exactly `frames_per_s × duration`, rounded down.
    #[must_use]
    pub fn frames(&self) -> u64 {
        // At 14.9 M frames/s, the line rate of 10 Gbit/s, the product exceeds 64 bits after 21
        // minutes.
        let frames = u128::from(self.frames_per_s) * u128::from(self.duration_ns);
        u64::try_from(frames / u128::from(SECOND_NS)).unwrap_or(u64::MAX)
    }
}

/// The remaining frames and their due times.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Frames left in all.
    left: u64,
    /// Frames in a burst.
    burst: u64,
    /// Frames left in the current burst.
    burst_left: u64,
    /// Due time of the current burst: this plus `numerator / denominator` nanoseconds.
    due_ns: u64,
    numerator: u64,
    denominator: u64,
    /// Distance between bursts, in the same form.
    step_ns: u64,
    step_numerator: u64,
}

impl Schedule {
    /// The schedule of one part of `load`.
    ///
    /// Each flow has the same rate, and all parts together have exactly `frames_per_s × duration`
    /// frames, rounded down.
    #[must_use]
    pub fn new(load: &Load, flows: u32, part: Part) -> Self {
        let Load {
            frames_per_s,
            duration_ns,
            burst_ns,
            start_ns,
            first_frame,
        } = *load;
        let last = first_frame.saturating_add(load.frames());
        // A difference of two totals: the flow whose turn is next may be any, and parts rounded by
        // themselves would not add up to all frames.
        let left = part.frames(last, flows) - part.frames(first_frame, flows);

        // The rate is `rate / unit` frames per nanosecond.
        let rate = u128::from(frames_per_s) * u128::from(part.flows(flows));
        let unit = u128::from(flows) * u128::from(SECOND_NS);
        // No burst is longer than the trial.
        let burst_ns = u128::from(burst_ns.min(duration_ns));
        // Rounded to whole frames, and a single one at low rates. The rate is kept all the same,
        // since the distance of bursts follows from their length.
        let burst = ((2 * rate * burst_ns + unit) / (2 * unit)).max(1);
        let (step_ns, step_numerator) = match rate {
            // There are no frames then, so that no due time is asked for.
            0 => (0, 0),
            _ => (burst * unit / rate, burst * unit % rate),
        };
        // No rate of a real link comes near 64 bits, and no step is then longer than a trial.
        let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        Self {
            left,
            burst: whole(burst),
            burst_left: whole(burst),
            due_ns: start_ns,
            numerator: 0,
            denominator: whole(rate).max(1),
            step_ns: whole(step_ns),
            step_numerator: whole(step_numerator),
        }
    }

    /// Delays the whole schedule.
    pub const fn delay(&mut self, by_ns: u64) {
        self.due_ns = self.due_ns.saturating_add(by_ns);
    }

    /// Number of frames left.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Due time of the next frame; `None` after the last one.
    #[inline]
    #[must_use]
    pub const fn next_ns(&self) -> Option<u64> {
        if self.left == 0 {
            None
        } else {
            Some(self.due_ns)
        }
    }

    /// Number of frames due at `now_ns`, at most `limit`.
    #[inline]
    #[must_use]
    pub fn due(&self, now_ns: u64, limit: usize) -> usize {
        let limit = self.left.min(limit as u64);
        // A copy: the caller takes only the frames that its port accepts.
        let mut ahead = *self;
        let mut frames = 0;
        while frames < limit && ahead.due_ns <= now_ns {
            frames += ahead.burst_left;
            ahead.next_burst();
        }
        frames.min(limit) as usize
    }

    /// Removes the next frame and returns its due time.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let due_ns = self.due_ns;
        self.left -= 1;
        self.burst_left -= 1;
        if self.burst_left == 0 {
            self.next_burst();
        }
        due_ns
    }

    /// Removes the rest of the current burst; returns its due time and number of frames.
    pub fn take_burst(&mut self) -> Option<(u64, u64)> {
        let due_ns = self.next_ns()?;
        let frames = self.burst_left.min(self.left);
        self.left -= frames;
        self.next_burst();
        Some((due_ns, frames))
    }

    #[inline]
    fn next_burst(&mut self) {
        // The remainder is carried on, so that rounding never adds up over a trial of days.
        self.burst_left = self.burst;
        self.due_ns = self.due_ns.saturating_add(self.step_ns);
        // Both are below the denominator; their sum exceeds 64 bits only for a rate above 63 bits.
        self.numerator += self.step_numerator;
        if self.numerator >= self.denominator {
            self.numerator -= self.denominator;
            self.due_ns += 1;
        }
    }
}

/// Frames that a paced `send` of one part, on the given number of threads from `start_ns` on,
/// intends in each bin of this width: the first bin's number, on the grid of
/// [`Received::first_bin`](crate::Received::first_bin), and the counts from there to the
/// last bin with a frame. Empty when it intends none.
#[must_use]
pub fn intended_by_bin(send: &Send, threads: u16, start_ns: u64, width_ns: u64) -> (u64, Vec<u64>) {
    let flows = send.frames.flows.max(1);
    let load = Load {
        frames_per_s: send.frames_per_s.unwrap_or(0),
        duration_ns: send.duration_ns,
        burst_ns: send.burst_ns,
        start_ns,
        first_frame: 0,
    };
    let width_ns = width_ns.max(1);
    let first = start_ns / width_ns;
    let mut counts = Vec::new();
    // Exactly as the sender's threads do: each rounds its bursts by its share of the flows.
    let of = u32::from(threads.max(1));
    for index in 0..of {
        let mut schedule = Schedule::new(&load, flows, Part { index, of });
        while let Some((due_ns, frames)) = schedule.take_burst() {
            let bin = (due_ns / width_ns - first) as usize;
            if bin >= counts.len() {
                counts.resize(bin + 1, 0);
            }
            counts[bin] += frames;
        }
    }
    (first, counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_load() -> impl Strategy<Value = Load> {
        let rate = prop_oneof![
            1u64..50,
            1u64..20_000_000,
            Just(14_880_952),
            Just(1_000_000)
        ];
        (rate, 1u64..3_000_000_000, 0u64..2_000_000, 0u64..1 << 47).prop_map(
            |(frames_per_s, duration_ns, burst_ns, start_ns)| Load {
                frames_per_s,
                duration_ns,
                burst_ns,
                start_ns,
                first_frame: 0,
            },
        )
    }

    fn any_parts() -> impl Strategy<Value = (u32, u32)> {
        (1u32..2000, 1u32..9).prop_map(|(flows, threads)| (flows, threads.min(flows)))
    }

    /// Length and time of the k-th burst, by definition.
    fn burst_of(load: &Load, flows: u32, part: Part, k: u64) -> (u64, u64) {
        let unit = u128::from(flows) * 1_000_000_000;
        let rate = u128::from(load.frames_per_s) * u128::from(part.flows(flows));
        let held = u128::from(load.burst_ns.min(load.duration_ns));
        let burst = ((rate * held + unit / 2) / unit).max(1);
        let time_ns = u128::from(load.start_ns) + u128::from(k) * burst * unit / rate;
        (burst as u64, time_ns as u64)
    }

    #[test]
    fn line_rate_of_gigabit_is_met_to_the_frame() {
        let load = Load {
            frames_per_s: 1_488_095,
            duration_ns: 60_000_000_000,
            burst_ns: 0,
            start_ns: 7,
            first_frame: 0,
        };
        let mut schedule = Schedule::new(&load, 1, Part::WHOLE);
        assert_eq!(schedule.left(), 89_285_700);
        let mut last = 0;
        for _ in 0..1_488_095 {
            last = schedule.take();
        }
        assert_eq!(last, 7 + 1_488_094 * 1_000_000_000 / 1_488_095);
        assert_eq!(schedule.next_ns(), Some(7 + 1_000_000_000));
    }

    #[test]
    fn a_rate_of_zero_has_no_frames() {
        let load = Load {
            frames_per_s: 0,
            duration_ns: 1_000_000_000,
            burst_ns: 5,
            start_ns: 0,
            first_frame: 0,
        };
        let schedule = Schedule::new(&load, 4, Part { index: 1, of: 2 });
        assert_eq!((schedule.left(), schedule.next_ns()), (0, None));
        assert_eq!(schedule.due(u64::MAX, 64), 0);
    }

    proptest! {
        #[test]
        fn bursts_come_when_the_formula_says(load in any_load(), (flows, of) in any_parts()) {
            for index in 0..of {
                let part = Part { index, of };
                let mut schedule = Schedule::new(&load, flows, part);
                for k in 0..200 {
                    let (burst, time_ns) = burst_of(&load, flows, part, k);
                    for _ in 0..burst.min(500).min(schedule.left()) {
                        prop_assert_eq!(schedule.take(), time_ns);
                    }
                    if burst > 500 || schedule.left() == 0 {
                        break;
                    }
                }
            }
        }

        #[test]
        fn parts_have_all_frames_between_them_and_end_in_time(
            mut load in any_load(),
            (flows, of) in any_parts(),
            first_frame in 0u64..10_000_000,
        ) {
            load.first_frame = first_frame;
            let parts = (0..of).map(|index| Part { index, of });
            let left = parts.clone().map(|part| Schedule::new(&load, flows, part).left());
            let intended = u128::from(load.frames_per_s) * u128::from(load.duration_ns)
                / 1_000_000_000;
            prop_assert_eq!(u128::from(left.sum::<u64>()), intended);
            for part in parts {
                let frames = Schedule::new(&load, flows, part).left();
                let (burst, _) = burst_of(&load, flows, part, 0);
                let (_, last_ns) = burst_of(&load, flows, part, frames.saturating_sub(1) / burst);
                // Flows take turns: a part may be ahead of its share by one frame of each flow.
                let ahead = u128::from(flows) * 1_000_000_000 / u128::from(load.frames_per_s);
                let end_ns = u128::from(load.start_ns + load.duration_ns) + ahead;
                prop_assert!(frames == 0 || u128::from(last_ns) <= end_ns);
            }
        }

        #[test]
        fn parts_take_the_frames_of_their_own_flows(
            frames in 0u64..3000,
            (flows, of) in (1u32..40, 1u32..9).prop_map(|(flows, of)| (flows, of.min(flows))),
        ) {
            for index in 0..of {
                let own = (0..frames)
                    .filter(|frame| frame % u64::from(flows) % u64::from(of) == u64::from(index));
                let part = Part { index, of };
                prop_assert_eq!(part.frames(frames, flows), own.count() as u64);
            }
        }

        #[test]
        fn bursts_hold_the_frames_that_are_due_together(load in any_load(), taken in 0u64..100) {
            let mut schedule = Schedule::new(&load, 3, Part { index: 1, of: 2 });
            for _ in 0..taken.min(schedule.left()) {
                schedule.take();
            }
            let mut slow = schedule;
            for _ in 0..20 {
                let Some((due_ns, frames)) = schedule.take_burst() else {
                    prop_assert_eq!(slow.next_ns(), None);
                    break;
                };
                for _ in 0..frames.min(500) {
                    prop_assert_eq!(slow.take(), due_ns);
                }
                if frames > 500 {
                    break;
                }
                prop_assert_eq!(slow.next_ns(), schedule.next_ns());
            }
        }

        #[test]
        fn due_counts_what_has_come_due(
            load in any_load(),
            taken in 0u64..300,
            wait in 0u64..10_000_000,
            limit in 1usize..100,
        ) {
            let mut schedule = Schedule::new(&load, 1, Part::WHOLE);
            for _ in 0..taken.min(schedule.left()) {
                schedule.take();
            }
            let now_ns = schedule.next_ns().unwrap_or(load.start_ns) + wait;
            let due = schedule.due(now_ns, limit);
            let mut slow = 0;
            while slow < limit && schedule.next_ns().is_some_and(|next_ns| next_ns <= now_ns) {
                schedule.take();
                slow += 1;
            }
            prop_assert_eq!(due, slow);
        }
    }
}

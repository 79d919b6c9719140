//! Growth of one-way delay within a trial: whether a load was carried, or queued.
//!
//! A device of capacity C behind a queue loses nothing of a load L above it until the queue is
//! full: the queue grows by L - C frames a second, and the delay of the frames by (L / C - 1) of
//! the time that passes. So the growth of delay, relative to the time, is the excess share of the
//! load, however deep the queue is, and a load that is carried does not make delay grow.
//!
//! The trial is cut into [`DELAY_SLICES`] equal parts by the frames' places in the schedule, and
//! each part has the mean delay of its frames. The trend is robust:
//!
//! - *Growth* is the smaller of the growth from the first third to the second and from the second
//!   to the last, where a third is represented by the median of its slices. A single event (a queue
//!   that fills at the start and stays full, a stall of the tester or the device for less than a
//!   sixth of the trial, a step of a clock) makes delay grow at most once, and is no growth.
//! - *Rise* is the delay of the last slice less the delay of the first two thirds: the frames that
//!   were still in the path when the load ended, less the frames that the delay before explains, as
//!   far as delay rose within the last third. It detects a device that throttles in mid-trial,
//!   which growth does not. Its threshold is higher, since a stall at the end raises it as well.
//!
//! Only differences count, so the clocks of sender and receiver need not agree; a drift between
//! them of 100 ppm is a hundredth of the threshold.

use serde::{Deserialize, Serialize};

use crate::PPM;

/// Equal parts of a trial's time, each recorded with its mean delay: five for each third, so that
/// two of them may be spoilt without effect on the median.
pub const DELAY_SLICES: usize = 15;
/// Slices with frames that a trend takes at least: two for each third.
const SLICES_MIN: usize = 6;
/// Growth up to this share of a trial's duration is taken for noise. It bounds the error of a
/// bound: a load at most this much above the capacity passes for carried.
pub const GROWTH_PPM_MAX: u32 = 10_000;
/// Growth up to this is taken for noise in any trial: schedulers of busy machines shift frames by
/// this time. Trials under 200 ms therefore see only larger excesses.
pub const GROWTH_NS_MAX: u64 = 2_000_000;
/// Rise at the end up to this share of a trial's duration is taken for noise.
pub const RISE_PPM_MAX: u32 = 30_000;
/// Rise at the end up to this is taken for noise in any trial.
pub const RISE_NS_MAX: u64 = 5_000_000;

/// The frames of one slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DelaySlice {
    /// Frames received.
    pub frames: u64,
    /// Their mean delay from the intended send time, in nanoseconds; may be negative if two clocks
    /// disagree.
    pub mean_ns: i64,
}

/// The trend of one-way delay over a trial, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayTrend {
    /// Delay at the start: the median of the first third's slices.
    pub start_ns: i64,
    /// Growth that lasted for the whole trial, extrapolated to its whole duration; negative when
    /// delay fell.
    pub growth_ns: i64,
    /// Rise of the last slice over the first two thirds, as far as delay rose within the last
    /// third; negative when it fell.
    pub rise_ns: i64,
}

impl DelayTrend {
    /// The trend of a trial's slices, in the order of time. `None` when fewer than six have frames:
    /// most of the trial was lost, or it had hardly any frame.
    #[must_use]
    pub fn of(slices: &[DelaySlice]) -> Option<Self> {
        let has_frames = |slice: &DelaySlice| slice.frames > 0;
        let first = slices.iter().position(has_frames)?;
        let last = slices.iter().rposition(has_frames)?;
        // Slices without frames at the ends have no delay, and are no part of the thirds.
        let seen = &slices[first..=last];
        if seen.iter().filter(|slice| has_frames(slice)).count() < SLICES_MIN {
            return None;
        }
        let third = |number: usize| {
            let (from, to) = (number * seen.len() / 3, (number + 1) * seen.len() / 3);
            Some(Third {
                middle: (from + to) as f64 / 2.0,
                delay_ns: median(&seen[from..to])?,
            })
        };
        let (start, middle, end) = (third(0)?, third(1)?, third(2)?);
        // The smaller one: a single jump of delay is growth in one half only.
        let per_slice = start.growth(middle).min(middle.growth(end));
        let last = seen.last()?.mean_ns;
        // The higher one: delay that was high before has not risen.
        let before = start.delay_ns.max(middle.delay_ns);
        let last_third = seen[2 * seen.len() / 3..].iter();
        let least = last_third.filter(|slice| has_frames(slice));
        let least = least.map(|slice| slice.mean_ns).min()?;
        Some(Self {
            start_ns: start.delay_ns,
            growth_ns: (per_slice * slices.len() as f64).round() as i64,
            // Steady growth over the whole trial shows a third of itself within the last third.
            rise_ns: (last.saturating_sub(before)).min(3 * last.saturating_sub(least)),
        })
    }

    /// Share of the frames, in parts per million, that only a growing queue carried in a trial of
    /// this duration; 0 when the growth may be noise. A device of capacity C carries C / L of a
    /// load L in the load's time, and the queue holds the rest.
    #[must_use]
    pub fn queued_ppm(self, duration_ns: u64) -> u32 {
        let beyond = |ns: i64, share_ppm: u32, ns_max: u64| {
            let share = u128::from(duration_ns) * u128::from(share_ppm) / u128::from(PPM);
            // Delay that fell is no queue.
            let ns = u64::try_from(ns).unwrap_or(0);
            if u128::from(ns) > share.max(u128::from(ns_max)) {
                ns
            } else {
                0
            }
        };
        let growth = beyond(self.growth_ns, GROWTH_PPM_MAX, GROWTH_NS_MAX);
        let rise = beyond(self.rise_ns, RISE_PPM_MAX, RISE_NS_MAX);
        let excess = u128::from(growth.max(rise));
        match excess {
            0 => 0,
            // Less than a million, since the excess is in the divisor.
            _ => (excess * u128::from(PPM) / (excess + u128::from(duration_ns))) as u32,
        }
    }

    /// Returns the trend with more growth or rise, of two directions of one trial.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        let key = |trend: &Self| (trend.growth_ns.max(trend.rise_ns), trend.growth_ns);
        if key(&self) < key(&other) {
            other
        } else {
            self
        }
    }
}

/// A third of a trial.
#[derive(Debug, Clone, Copy)]
struct Third {
    /// Its middle, in slices.
    middle: f64,
    delay_ns: i64,
}

impl Third {
    /// Growth of delay up to a later third, per slice.
    fn growth(self, later: Self) -> f64 {
        let grown = later.delay_ns.saturating_sub(self.delay_ns);
        grown as f64 / (later.middle - self.middle)
    }
}

/// The median delay of the slices with frames: of an even number, the lower middle one, since delay
/// is only ever raised by chance.
fn median(slices: &[DelaySlice]) -> Option<i64> {
    let mut delays = [0; DELAY_SLICES];
    let mut count = 0;
    let filled = slices.iter().filter(|slice| slice.frames > 0);
    for (place, slice) in delays.iter_mut().zip(filled) {
        *place = slice.mean_ns;
        count += 1;
    }
    let delays = &mut delays[..count];
    delays.sort_unstable();
    delays.get(count.checked_sub(1)? / 2).copied()
}

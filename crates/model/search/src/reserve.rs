//! A device's reserve, which lets it exceed its sustained rate for a time: tokens that a shaper
//! saved under lower loads, or room in a queue.
//!
//! A token bucket of depth B lets a load L above its rate C pass without loss and without delay
//! until the tokens are used up, which takes B / (L - C). A trial that ends before shows nothing. A
//! longer trial shows both: first every frame passes, then frames pass at C, and the excess over C
//! that passed before is B. So one trial with loss decides about trials without loss: a trial that
//! the reserve can have carried proves nothing about the rate.
//!
//! A trial shows a reserve only if it has this form: slices without loss, one slice as the reserve
//! ends, and then slices at one rate to the end. A device that is slow for a part of a trial has
//! another form.

use serde::{Deserialize, Serialize};

use crate::{Counts, DelaySlice, DelayTrend, PPM, Trial};

/// Minimum number of slices at one rate after a reserve's end: fewer show no rate.
const STEADY_MIN: usize = 3;
/// Share of a slice's frames that may be lost before the reserve ends.
const STRAY_PPM: u64 = 1_000;
/// Tolerated difference between the rates of both halves of the steady part.
const UNSTEADY_PPM: u64 = 10_000;
/// Frames tolerated in addition, since frames are whole.
const UNSTEADY_FRAMES: u64 = 2;
/// A reserve may be noise below this share of the frames that the rate carries in the trial's time.
const RESERVE_PPM_MIN: u64 = 5_000;
/// Minimum share of the reserve that no queue explains: growth of delay shows a load that only a
/// queue carries.
const SAVED_PERCENT_MIN: u128 = 10;
/// A load up to this share above the sustained rate is not distinguished from it, as in
/// [`GROWTH_PPM_MAX`](crate::GROWTH_PPM_MAX).
const ABOVE_PPM_MAX: u128 = crate::GROWTH_PPM_MAX as u128;
/// Largest reserve in another trial, relative to the measured one: the trial that shows the reserve
/// may not have started with a full one.
const FULL_PERCENT: u128 = 125;

/// The frames of one trial that a device accepted beyond its sustained rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// Rate that the device held once the reserve was used up, in frames/s.
    pub rate: u64,
    /// Frames that it accepted beyond that rate before.
    pub frames: u64,
    /// Of those, frames that no queue explains, since delay did not grow accordingly.
    pub saved: u64,
}

impl Reserve {
    /// The reserve that a trial's slices show, in the order of time; `None` without one. `intended`
    /// frames were sent evenly in `duration_ns`; `least_ns` is the smallest delay of any of them.
    #[must_use]
    pub fn of(
        slices: &[DelaySlice],
        intended: u64,
        duration_ns: u64,
        least_ns: i64,
    ) -> Option<Self> {
        let count = slices.len() as u64;
        let upto = |slice: usize| {
            let frames = u128::from(intended) * slice as u128 / u128::from(count.max(1));
            u64::try_from(frames).unwrap_or(u64::MAX)
        };
        let expected = |from: usize, to: usize| upto(to) - upto(from);
        let received = |from: usize, to: usize| -> u64 {
            slices[from..to].iter().map(|slice| slice.frames).sum()
        };
        let is_whole = |slice: usize| {
            let expected = expected(slice, slice + 1);
            let lost = expected.saturating_sub(slices[slice].frames);
            u128::from(lost) * u128::from(PPM) <= u128::from(expected) * u128::from(STRAY_PPM)
        };
        let whole = (0..slices.len())
            .take_while(|slice| is_whole(*slice))
            .count();
        // The slice in which the reserve ends belongs to neither part.
        let (steady, end) = (whole + 1, slices.len());
        if end < steady + STEADY_MIN {
            return None;
        }
        let middle = usize::midpoint(steady, end);
        let halves = [(steady, middle), (middle, end)].map(|(from, to)| {
            (
                u128::from(received(from, to)),
                u128::from(expected(from, to)),
            )
        });
        let [(one, of_one), (other, of_other)] = halves;
        // Both rates relative to the load, over a common denominator.
        let apart = (one * of_other).abs_diff(other * of_one);
        let slack = one.max(other) * u128::from(UNSTEADY_PPM) / u128::from(PPM);
        if apart > (slack + u128::from(UNSTEADY_FRAMES)) * of_one.max(of_other) {
            return None;
        }
        let (held, of) = (one + other, of_one + of_other);
        // A device that carries nothing any more has failed.
        if held == 0 || held >= of || duration_ns == 0 {
            return None;
        }
        // At the steady rate, over the whole time.
        let carried = u128::from(intended) * held / of;
        let frames = u128::from(received(0, end)).checked_sub(carried)?;
        let rate = carried * 1_000_000_000 / u128::from(duration_ns);
        let afterwards: i128 = slices[steady..]
            .iter()
            .map(|slice| i128::from(slice.frames) * i128::from(slice.mean_ns))
            .sum();
        // The mean over the frames, and not over the slices.
        let mean_ns = afterwards / i128::try_from(held.max(1)).ok()?;
        let waited_ns = u128::try_from(mean_ns - i128::from(least_ns)).unwrap_or(0);
        // A queue of n frames delays each by n at the rate; what the delay explains was not saved.
        let saved = frames.saturating_sub(rate * waited_ns / 1_000_000_000);
        let is_noise = frames * u128::from(PPM) < carried * u128::from(RESERVE_PPM_MIN);
        if is_noise || saved * 100 < frames * SAVED_PERCENT_MIN {
            return None;
        }
        Some(Self {
            rate: u64::try_from(rate).ok()?,
            frames: u64::try_from(frames).ok()?,
            saved: u64::try_from(saved).ok()?,
        })
    }

    /// Frames that the device carries in a time without its reserve.
    #[must_use]
    pub(crate) fn carried(self, duration_ns: u64) -> u64 {
        let carried = u128::from(self.rate) * u128::from(duration_ns) / 1_000_000_000;
        u64::try_from(carried).unwrap_or(u64::MAX)
    }

    /// Whether the reserve can have carried a load above the rate for a trial's time, with a loss
    /// ratio up to this one.
    fn can_have_carried(self, trial: Trial, loss_ratio_ppm: u32) -> bool {
        let (load, rate) = (u128::from(trial.load), u128::from(self.rate));
        let ppm = u128::from(PPM);
        // In frames/s, times a million.
        let kept = load * (ppm - u128::from(loss_ratio_ppm));
        if kept <= rate * (ppm + ABOVE_PPM_MAX) {
            return false;
        }
        // Frames beyond the sustained rate and the allowed loss.
        let beyond = (kept / ppm).saturating_sub(rate) * u128::from(trial.duration_ns);
        beyond / 1_000_000_000 * 100 <= u128::from(self.frames) * FULL_PERCENT
    }
}

/// The reserves of a device that a search has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reserves {
    known: Vec<(Trial, Reserve)>,
    /// Trials without loss.
    carried: Vec<Trial>,
}

impl Reserves {
    /// Adds the reserve that a trial shows.
    pub(crate) fn learn(&mut self, trial: Trial, reserve: Reserve) {
        self.known.push((trial, reserve));
    }

    /// Adds a trial. If it has no loss, and at least the load and duration of a trial that shows a
    /// reserve, the loss of that trial had another cause.
    pub(crate) fn record(&mut self, trial: Trial, counts: Counts) {
        // Without any loss, even if a goal tolerates some.
        if !counts.is_high_loss(0) {
            self.carried.push(trial);
        }
    }

    /// Returns a trial's counts, limited to the frames that the sustained rate carries if a reserve
    /// can have carried the excess.
    pub(crate) fn judge(&self, trial: Trial, counts: Counts, loss_ratio_ppm: u32) -> Counts {
        if counts.is_high_loss(loss_ratio_ppm) {
            return counts;
        }
        let stands = |from: &Trial| {
            let refutes = |carried: &&Trial| {
                from.load <= carried.load && from.duration_ns <= carried.duration_ns
            };
            self.carried.iter().find(refutes).is_none()
        };
        let explaining = self.known.iter().filter(|(from, reserve)| {
            reserve.can_have_carried(trial, loss_ratio_ppm) && stands(from)
        });
        // Of several reserves the strictest counts.
        let least = explaining.map(|(_, reserve)| reserve.carried(trial.duration_ns));
        least.min().map_or(counts, |carried| Counts {
            forwarded: counts.forwarded.min(carried),
            ..counts
        })
    }
}

impl Counts {
    /// These counts less the frames that only a growing queue carried, or only a reserve that the
    /// trial used up, which count as not forwarded: neither a queue that is still filled when the
    /// load ends, nor capacity saved before it, carries that load. Frames that were also lost do
    /// not count twice.
    #[must_use]
    pub fn sustained(
        self,
        delay: Option<DelayTrend>,
        reserve: Option<Reserve>,
        duration_ns: u64,
    ) -> Self {
        let held = reserve.map_or(u64::MAX, |reserve| reserve.carried(duration_ns));
        let queued = delay.map_or(0, |delay| delay.queued_ppm(duration_ns));
        let in_time = u128::from(self.intended) * u128::from(PPM - queued) / u128::from(PPM);
        // Not more than were intended, so the cast is lossless.
        let in_time = in_time as u64;
        Self {
            // Not added up: a frame that was queued may also have been carried by the reserve.
            forwarded: match queued {
                0 => self.forwarded.min(held),
                _ => self.forwarded.min(held).min(in_time),
            },
            ..self
        }
    }
}

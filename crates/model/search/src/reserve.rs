//! What a device takes in beyond the rate that it holds: tokens that a shaper saved while less was
//! sent, or room in a queue.
//!
//! A token bucket of depth B lets a load L above its rate C pass without loss and without delay
//! until the tokens are used up, which takes B / (L - C). A trial that ends before shows nothing.
//! But a trial that lasts longer shows both: first every frame passes, then frames pass at C, and
//! what passed beyond C before is B. So one trial with loss says what those without loss are worth:
//! one that the reserve can have carried proves nothing about the rate.
//!
//! Only a trial of that form is taken for one: slices without loss, one in which the reserve ends,
//! and then slices at one rate to the end. A device that is slow for a part of a trial has another
//! form.

use serde::{Deserialize, Serialize};

use crate::{Counts, DelaySlice, DelayTrend, PPM, Trial};

/// Slices at one rate that a reserve's end takes: fewer show no rate.
const STEADY_MIN: usize = 3;
/// Share of a slice's frames that may be lost before the reserve ends.
const STRAY_PPM: u64 = 1_000;
/// Share by which the rates of both halves of the steady part may differ.
const UNSTEADY_PPM: u64 = 10_000;
/// Frames by which the halves may differ besides, since frames are whole.
const UNSTEADY_FRAMES: u64 = 2;
/// A reserve of a smaller share of what the rate carries in the trial's time may be noise.
const RESERVE_PPM_MIN: u64 = 5_000;
/// Share of the reserve that a queue must not explain: growth of delay shows a load that only a
/// queue carries.
const SAVED_PERCENT_MIN: u128 = 10;
/// A load this share above the rate held is not told from it, as in
/// [`GROWTH_PPM_MAX`](crate::GROWTH_PPM_MAX).
const ABOVE_PPM_MAX: u128 = crate::GROWTH_PPM_MAX as u128;
/// Share of a reserve that it may have had at most in another trial: the one that shows it may not
/// have found it full.
const FULL_PERCENT: u128 = 125;

/// What a device took in beyond the rate that it held afterwards, in one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// Rate that the device held once the reserve was used up, in frames/s.
    pub rate: u64,
    /// Frames that it took in beyond that rate before.
    pub frames: u64,
    /// Of those, frames that no queue explains: delay was not that much longer afterwards.
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
        let carried = u128::from(intended) * held / of;
        let frames = u128::from(received(0, end)).checked_sub(carried)?;
        let rate = carried * 1_000_000_000 / u128::from(duration_ns);
        let afterwards: i128 = slices[steady..]
            .iter()
            .map(|slice| i128::from(slice.frames) * i128::from(slice.mean_ns))
            .sum();
        let mean_ns = afterwards / i128::try_from(held.max(1)).ok()?;
        let waited_ns = u128::try_from(mean_ns - i128::from(least_ns)).unwrap_or(0);
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
        let kept = load * (ppm - u128::from(loss_ratio_ppm));
        if kept <= rate * (ppm + ABOVE_PPM_MAX) {
            return false;
        }
        // What the rate does not carry, and may not be lost either, in frames.
        let beyond = (kept / ppm).saturating_sub(rate) * u128::from(trial.duration_ns);
        beyond / 1_000_000_000 * 100 <= u128::from(self.frames) * FULL_PERCENT
    }
}

/// What a search knows of the reserves of a device.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reserves {
    known: Vec<(Trial, Reserve)>,
    /// Trials without loss.
    carried: Vec<Trial>,
}

impl Reserves {
    /// Adds what a trial shows.
    pub(crate) fn learn(&mut self, trial: Trial, reserve: Reserve) {
        self.known.push((trial, reserve));
    }

    /// Adds a trial. One without loss, of no less load and no less time than the one that shows a
    /// reserve, says that the loss had another cause.
    pub(crate) fn record(&mut self, trial: Trial, counts: Counts) {
        if !counts.is_high_loss(0) {
            self.carried.push(trial);
        }
    }

    /// These counts of a trial, or those of the rate that the device holds where its reserve can
    /// have carried what it does not.
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
        let least = explaining.map(|(_, reserve)| reserve.carried(trial.duration_ns));
        least.min().map_or(counts, |carried| Counts {
            forwarded: counts.forwarded.min(carried),
            ..counts
        })
    }
}

impl Counts {
    /// These counts less the frames that only a growing queue carried, or only a reserve that the
    /// trial used up, which count as not forwarded: what is in a queue when the load ends was not
    /// carried at that load, and what was saved before it neither. Frames that were lost besides do
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
            forwarded: match queued {
                0 => self.forwarded.min(held),
                _ => self.forwarded.min(held).min(in_time),
            },
            ..self
        }
    }
}

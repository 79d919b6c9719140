//! Estimates over repeats, and the ratios that they are made of.

use crate::figures::estimate::Estimate;

const NANOS_PER_SECOND: f64 = 1e9;

/// An estimate of `value` over those repeats; `None` if a repeat has no value.
pub(crate) fn estimate<T>(
    repeats: &[(u32, T)],
    value: impl Fn(&T) -> Option<f64>,
) -> Option<Estimate> {
    Estimate::of_all(
        repeats
            .iter()
            .map(|(repeat, found)| (*repeat, value(found))),
    )
}

/// Sums of counts. A changed journal may have counts whose sum no integer holds: then it is the
/// largest one, as a sum that wraps around would look like a figure.
pub(crate) trait Total: Iterator<Item = u64> + Sized {
    /// The sum of all.
    fn total(self) -> u64 {
        self.fold(0, u64::saturating_add)
    }
}

impl<I: Iterator<Item = u64>> Total for I {}

pub(crate) fn per_second(count: u64, duration_ns: u64) -> Option<f64> {
    (duration_ns > 0).then(|| count as f64 * NANOS_PER_SECOND / duration_ns as f64)
}

pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

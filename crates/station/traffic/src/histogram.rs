//! Histograms of times in nanoseconds.

use hdrhistogram::Histogram;
use traffic_spec::SECOND_NS;

/// Range of times resolved: from 1 ns to 100 s, to three significant digits.
const TIME_NS_MAX: u64 = 100 * SECOND_NS;
const DIGITS: u8 = 3;

/// An empty histogram.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, TIME_NS_MAX, DIGITS)
        .expect("the bounds and the digits are within what the histogram takes")
}

/// The recorded buckets of a histogram: highest value and count, rising.
pub(crate) fn buckets(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let bucket = |value| histogram.highest_equivalent(value);
    let recorded = histogram.iter_recorded();
    recorded
        .map(|step| (bucket(step.value_iterated_to()), step.count_at_value()))
        .collect()
}

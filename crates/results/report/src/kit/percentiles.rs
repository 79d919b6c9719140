//! The columns of distributions of times (minimum, percentiles, maximum), the same in every table.

use super::table::Cell;
use stats::{LoadLatency, Pooled};

/// Titles of the columns.
pub(crate) const TITLES: [&str; 6] = ["Min", "p50", "p90", "p99", "p99.9", "Max"];

/// Title of the column with mean and spread of the repeats' medians, next to the pooled
/// distribution. Its median differs from theirs if the repeats differ.
pub(crate) const BY_REPEAT: &str = "p50 by repeat";

/// The cells of one-way latency, all repeats pooled.
pub(crate) fn of_load(found: Option<&LoadLatency>) -> [Cell; TITLES.len()] {
    [
        Cell::time(found.map(|found| found.min_ns)),
        Cell::time(found.map(|found| found.p50_ns)),
        Cell::time(found.and_then(|found| found.p90_ns)),
        Cell::time(found.and_then(|found| found.p99_ns)),
        Cell::time(found.and_then(|found| found.p99_9_ns)),
        Cell::time(found.map(|found| found.max_ns)),
    ]
}

/// The cells of round-trip times, all repeats pooled.
pub(crate) fn of_round_trips(found: &Pooled) -> [Cell; TITLES.len()] {
    [
        Cell::time(Some(found.min_ns)),
        Cell::time(Some(found.p50_ns)),
        Cell::time(found.p90_ns),
        Cell::time(found.p99_ns),
        Cell::time(found.p99_9_ns),
        Cell::time(Some(found.max_ns)),
    ]
}

//! Values as cell ids and texts have them.

use std::fmt::Display;
use std::time::Duration;

/// `on` or `off`.
#[must_use]
pub fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A time without the blank, and without characters that separate the parts of an id.
#[must_use]
pub fn compact_time(time: Duration) -> String {
    compact(&units::time::print(time)).replace('µ', "u")
}

/// A rate or size in the same form.
#[must_use]
pub fn compact(value: &impl Display) -> String {
    value
        .to_string()
        .replace(' ', "")
        .replace("bit/s", "bps")
        .replace("frames/s", "fps")
}

/// Times of a campaign are below a day, so they fit.
#[must_use]
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

//! Words that several texts share, and values as cell ids have them.

use std::fmt::Display;
use std::time::Duration;

/// `on` or `off`.
pub(crate) fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A time without the blank, and without characters that separate the parts of an id.
pub(crate) fn compact_time(time: Duration) -> String {
    compact(&units::time::print(time)).replace('µ', "u")
}

/// A rate or size, likewise.
pub(crate) fn compact(value: &impl Display) -> String {
    value
        .to_string()
        .replace(' ', "")
        .replace("bit/s", "bps")
        .replace("frames/s", "fps")
}

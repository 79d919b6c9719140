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
    // Ids are typed in shells, and are parts of URLs and names of files.
    compact(&units::time::print(time)).replace('µ', "u")
}

/// A rate or size in the same form.
#[must_use]
pub fn compact(value: &impl Display) -> String {
    value
        .to_string()
        .replace(' ', "")
        // A slash would end this part of the id.
        .replace("bit/s", "bps")
        .replace("frames/s", "fps")
}

/// Times of a campaign are below a day, so they fit.
#[must_use]
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A time of a plan, exact.
pub(crate) fn time(ns: u64) -> String {
    units::time::print(Duration::from_nanos(ns))
}

/// A time next to figures: minutes and hours from two of them on.
pub(crate) fn long_time(ns: u64) -> String {
    // Rounded, unlike a time of the plan: the figures next to it are rounded too.
    units::human::duration_ns(ns as f64)
}

/// The highest load of a procedure, in frames/s.
pub(crate) fn highest_load(max_load: Option<u64>) -> String {
    max_load.map_or_else(
        || "the line rate or what the generator reaches".to_owned(),
        |load| units::FrameRate::new(load).to_string(),
    )
}

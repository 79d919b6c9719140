//! A history for a page of a browser.

use super::text::{LISTED, NOTHING_ELSE, difference_in_words, too_short};
use super::{Course, History, Series};
use maud::{Markup, html};
use std::fmt::Write;

/// Width and height of a course, in pixels.
const COURSE: (f64, f64) = (240.0, 48.0);
/// Distance of its points from the border, in pixels.
const MARGIN: f64 = 4.0;

/// Returns the history as HTML without a frame, in the order of [`super::history_text`]. Figures
/// are text; each course is drawn too.
#[must_use]
pub fn history_html(history: &History) -> String {
    let steady: Vec<&Series> = history.of(Course::Steady).collect();
    let short = history.of(Course::TooShort).count() as u64;
    let page = html! {
        p.answer { (history.answer()) }
        @for (state, title) in LISTED {
            @let all: Vec<&Series> = history.of(state).collect();
            @if !all.is_empty() {
                section {
                    h2 { (title) ": " (all.len()) }
                    @for series in all { (listed(history, series)) }
                }
            }
        }
        @if !steady.is_empty() {
            section {
                h2 { "Without a change: " (steady.len()) }
                @for series in steady {
                    h3 { (series.title()) }
                    (drawn(series))
                }
            }
        }
        @if short > 0 { p.note { (too_short(short)) } }
        p.note { (history.method()) }
    };
    page.into_string()
}

fn listed(history: &History, series: &Series) -> Markup {
    html! {
        h3 { (series.title()) }
        (drawn(series))
        @for turn in &series.turns {
            p { (series.turn_in_words(history, turn)) }
            ul.what {
                @for difference in &turn.differences { li { (difference_in_words(difference)) } }
                @if turn.differences.is_empty() { li { (NOTHING_ELSE) } }
                @if let Some(command) = &turn.bisect { li { "To find the commit: " code { (command) } } }
            }
        }
        @if let Some(words) = series.unusual_in_words() { p { (words) } }
    }
}

/// The course as a line above 0, so that its height does not exaggerate a change, and the first and
/// the last value in words.
fn drawn(series: &Series) -> Markup {
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let high = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let (width, height) = COURSE;
    let steps = values.len().saturating_sub(1).max(1) as f64;
    let place = |at: usize, value: f64| {
        let x = MARGIN + at as f64 / steps * (width - 2.0 * MARGIN);
        let y = height - MARGIN - value / high * (height - 2.0 * MARGIN);
        [x, y].map(|place| format!("{place:.1}"))
    };
    let mut line = String::new();
    for (at, &value) in values.iter().enumerate() {
        let [x, y] = place(at, value);
        let _ = write!(line, "{x},{y} ");
    }
    let print = |value: Option<&f64>| value.map(|value| series.quantity.print(*value));
    let words = print(values.first()).zip(print(values.last()));
    html! {
        p {
            svg width=(width) height=(height) role="img" aria-label="the figure over the runs" {
                polyline points=(line.trim_end()) fill="none" stroke="currentColor" stroke-width="1.5" {}
                @for turn in &series.turns {
                    @let [x, y] = place(turn.shift.at, values[turn.shift.at]);
                    circle cx=(x) cy=(y) r="3" fill="currentColor" {}
                }
            }
            @if let Some((first, last)) = words {
                " " (first) " in the first and " (last) " in the last of " (values.len()) " runs"
            }
        }
    }
}

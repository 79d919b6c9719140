//! Charts as inline SVG.
//!
//! Colours and fonts are classes of `chart/style.css`, so a chart follows light, dark and print
//! mode. Colour never carries meaning alone: devices also have marks and hatching ([`marks`]).
//! Every chart has a title and a description for screen readers; every figure has a title with its
//! device, setting, unit and interval, and is also in a table next to the chart. No label covers
//! another label or a line ([`svg`]).
//!
//! To add a chart, write a module with a function that draws a `Run` through [`Svg`] to `Markup`,
//! and call it in a section.

mod area;
pub(crate) mod bars;
pub(crate) mod course;
pub(crate) mod curves;
mod font;
pub(crate) mod grid;
mod label;
pub(crate) mod marks;
pub(crate) mod percentiles;
pub(crate) mod rows;
pub(crate) mod scale;
mod svg;
pub(crate) mod time;

pub(crate) use area::Area;
pub(crate) use font::Font;
pub(crate) use label::{Anchor, Spot};
pub(crate) use svg::{Key, Svg, WIDTH};

use super::format::Scale;
use crate::order::largest;
use stats::{CellResult, Estimate, Status};

/// The style sheet of all charts.
pub(crate) const STYLE: &str = include_str!("chart/style.css");
/// Height of the legend's line, between the top of a chart and its plot.
pub(crate) const LEGEND_HEIGHT: f64 = 30.0;
/// Beginning of the mark of an insecure device.
const INSECURE: &str = " (insecure";
/// Minimum width of a bar with room for its value.
pub(crate) const BAR_MIN: f64 = 13.0;

/// The plot of a chart of this height, within margins: top (below the legend), right, bottom, left.
pub(crate) const fn plot(height: f64, [top, right, bottom, left]: [f64; 4]) -> Area {
    let y = LEGEND_HEIGHT + top;
    Area::new(left, y, WIDTH - left - right, height - y - bottom)
}

/// The width of each of several bands of a plot, side by side. Bands are no wider than their names
/// and their contents need: a narrow screen shows the left part of a chart first, and there should
/// be figures.
pub(crate) fn band_width(plot: Area, names: &[String], contents: f64) -> f64 {
    const GAP: f64 = 16.0;
    let most = contents.max(widest("label strong", names.iter())) + GAP;
    (plot.width / names.len().max(1) as f64).min(most)
}

/// Adds devices to the legend by their styles; long names are cut.
pub(crate) fn legend_of_devices(svg: &mut Svg, entries: impl Iterator<Item = (usize, String)>) {
    let entry =
        |(style, name): (usize, String)| (Key::Style(style), shortened_name("label", &name, 260.0));
    svg.legend(entries.map(entry));
}

/// The tooltip of a figure: device, setting, figure with unit, and the 95 % interval of its mean.
pub(crate) fn hover(dut: &str, setting: &str, scale: &Scale, found: &Estimate) -> String {
    format!("{dut}, {setting}: {}", with_interval(scale, found))
}

/// A figure with its unit and the 95 % interval of its mean.
pub(crate) fn with_interval(scale: &Scale, found: &Estimate) -> String {
    let interval = found.interval_95.ends().map(|(low, high)| {
        format!(
            "; 95 % interval {}–{}",
            scale.number(low),
            scale.value(high)
        )
    });
    format!("{}{}", scale.estimate(found), interval.unwrap_or_default())
}

/// Why a cell has no bar; `otherwise` if it was measured.
pub(crate) fn absence(cell: &CellResult, otherwise: &'static str) -> &'static str {
    match cell.status {
        Status::Invalid => "invalid",
        Status::Failed => "failed",
        Status::NotRun => "not run",
        Status::Measured | Status::Partly => otherwise,
    }
}

/// The width of the widest of some texts of a class.
pub(crate) fn widest(class: &str, texts: impl Iterator<Item: AsRef<str>>) -> f64 {
    let font = Font::of(class);
    largest(texts.map(|text| font.width(text.as_ref())))
}

/// Formats a coordinate. A tenth of a unit is finer than any screen shows.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        // A value just below 0 is rounded to `-0.0`.
        Some("-0") => "0".into(),
        Some(whole) => whole.into(),
        None => text,
    }
}

/// A text cut to a width in the font of a class, with an ellipsis if anything was cut.
pub(crate) fn shortened(class: &str, text: &str, width: f64) -> String {
    let font = Font::of(class);
    if font.width(text) <= width {
        return text.to_owned();
    }
    // The font is proportional, so the number of characters that fit is not known in advance. `pop`
    // removes whole characters, never a part of one.
    let mut cut = text.to_owned();
    while cut.pop().is_some() {
        let shown = format!("{}…", cut.trim_end());
        if font.width(&shown) <= width {
            return shown;
        }
    }
    // Not even one character fits; the text is in the tooltip.
    "…".into()
}

/// A device's name cut to a width. The mark in brackets at its end is cut only if it takes more
/// than half of the room; for an insecure device `(insecure)` always stays.
pub(crate) fn shortened_name(class: &str, name: &str, width: f64) -> String {
    // Only brackets at the end are a mark; others are part of the name.
    let mark = name.rfind(" (").filter(|_| name.ends_with(')'));
    let (name, mark) = name.split_at(mark.unwrap_or(name.len()));
    let whole = format!("{name}{mark}");
    if Font::of(class).width(&whole) <= width {
        return whole;
    }
    // The remark after `insecure` may be cut, but the word is a warning that must remain.
    let mark = if mark.starts_with(INSECURE) {
        " (insecure)"
    } else {
        mark
    };
    match width - Font::of(class).width(mark) {
        rest if rest >= width / 2.0 || mark.starts_with(INSECURE) => {
            // The rest may be negative here; `shortened` then leaves only the ellipsis.
            format!("{}{mark}", shortened(class, name, rest))
        }
        _ => shortened(class, &whole, width),
    }
}

fn escaped(text: &str) -> String {
    // All attributes are in double quotes, so single quotes need no escape.
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!(
            [1.0, 1.26, -0.01, 960.0].map(number),
            ["1", "1.3", "0", "960"]
        );
    }

    fn width(text: &str) -> f64 {
        Font::of("label").width(text) + 0.1
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("label", "short", 100.0), "short");
        let name = "a name that is too long";
        assert_eq!(shortened("label", name, width("a na…")), "a na…");
        assert_eq!(shortened("label", name, 1.0), "…");
    }

    #[test]
    fn long_names_keep_their_mark() {
        let cut = |name, text: &str| shortened_name("label", name, width(text));
        let name = "cipherbench 3des-cbc-hmac-sha1 (insecure)";
        for text in ["cipherbench 3d… (insecure)", name] {
            assert_eq!(cut(name, text), text);
        }
        // A mark that takes most of the room is cut together with the name.
        assert_eq!(cut("a (long mark)", "a (lo…"), "a (lo…");
        let name = "a long name (insecure)";
        assert_eq!(cut(name, "a l… (insecure)"), "a l… (insecure)");
        assert_eq!(cut("no mark at all", "no m…"), "no m…");
        let name = "null engine (insecure; control: no encryption)";
        let text = "null engine (insecure)";
        assert_eq!(
            (cut(name, name).as_str(), cut(name, text).as_str()),
            (name, text)
        );
    }

    #[test]
    fn a_pointer_shows_device_setting_figure_unit_and_interval() {
        let samples = (1..).zip([7e9, 7.1e9, 7.2e9]);
        let samples = samples.map(|(repeat, value)| stats::Sample { repeat, value });
        let found = Estimate::of(samples.collect()).unwrap();
        let scale = Scale::si(found.mean, "bit/s");
        assert_eq!(
            hover("ours", "MTU 1500 B", &scale, &found),
            "ours, MTU 1500 B: 7.10 ± 0.10 Gbit/s (1 %); 95 % interval 6.86–7.35 Gbit/s"
        );
    }
}

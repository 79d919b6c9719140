//! Charts as inline SVG.
//!
//! Colours and fonts are classes of the page's style sheet, so that a chart follows light, dark and
//! print. Every chart has a title and a description for those who cannot see it, and its figures
//! stand in a table beside it.
//!
//! To add one: a module with a function from a `Run` to `Markup` by way of [`Svg`], and its place
//! in `html`.

pub(crate) mod cpu;
pub(crate) mod datagrams;
pub(crate) mod device;
pub(crate) mod frames;
pub(crate) mod latency;
pub(crate) mod ranking;
mod scale;
pub(crate) mod scaling;
pub(crate) mod suites;
pub(crate) mod throughput;
pub(crate) mod timeline;

use maud::{Markup, PreEscaped};
use scale::Linear;
use std::fmt::Write;

/// Width of every chart in its own units; the page scales it.
pub(crate) const WIDTH: f64 = 960.0;
/// Size of text, in the same units.
const FONT: f64 = 12.0;
/// From the top of a chart to its plot: the legend's line.
const LEGEND_HEIGHT: f64 = 30.0;

/// A drawing that grows element by element. All text is escaped.
pub(crate) struct Svg {
    id: String,
    height: f64,
    body: String,
}

/// Which point of a text its position is.
#[derive(Debug, Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// `id` must be unique in the page.
    fn new(id: impl Into<String>, height: f64) -> Self {
        Self {
            id: id.into(),
            height,
            body: String::new(),
        }
    }

    /// The finished drawing, with what a screen reader says of it.
    fn finish(self, title: &str, description: &str) -> Markup {
        let Self { id, height, body } = self;
        let (title, description) = (escaped(title), escaped(description));
        PreEscaped(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\"><title id=\"{id}-title\">{title}</title>\
             <desc id=\"{id}-desc\">{description}</desc>{body}</svg>",
            number(WIDTH),
            number(height),
        ))
    }

    fn element(&mut self, name: &str, class: &str, attributes: &[(&str, &str)], tooltip: &str) {
        let mut text = format!("<{name} class=\"{class}\"");
        for (key, value) in attributes {
            // Writing to a string cannot fail.
            let _ = write!(text, " {key}=\"{}\"", escaped(value));
        }
        match tooltip {
            "" => text.push_str("/>"),
            _ => text.push_str(&format!("><title>{}</title></{name}>", escaped(tooltip))),
        }
        self.body.push_str(&text);
    }

    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let values = [x1, y1, x2, y2].map(number);
        let attributes: Vec<_> = ["x1", "y1", "x2", "y2"]
            .into_iter()
            .zip(values.iter().map(String::as_str))
            .collect();
        self.element("line", class, &attributes, "");
    }

    fn rect(&mut self, class: &str, area: Area, tooltip: &str) {
        let values = [area.x, area.y, area.width.max(0.0), area.height.max(0.0)].map(number);
        let attributes: Vec<_> = ["x", "y", "width", "height"]
            .into_iter()
            .zip(values.iter().map(String::as_str))
            .collect();
        self.element("rect", class, &attributes, tooltip);
    }

    fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64, tooltip: &str) {
        let values = [x, y, radius].map(number);
        let attributes: Vec<_> = ["cx", "cy", "r"]
            .into_iter()
            .zip(values.iter().map(String::as_str))
            .collect();
        self.element("circle", class, &attributes, tooltip);
    }

    /// A line through points.
    fn polyline(&mut self, class: &str, points: &[(f64, f64)], tooltip: &str) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{},{}", number(*x), number(*y)))
            .collect();
        self.element("polyline", class, &[("points", &points.join(" "))], tooltip);
    }

    fn text(&mut self, class: &str, position: (f64, f64), anchor: Anchor, text: &str) {
        self.turned_text(class, position, anchor, text, 0);
    }

    /// Text turned by that many degrees about its position.
    fn turned_text(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        anchor: Anchor,
        text: &str,
        degrees: i32,
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y) = (number(x), number(y));
        let turn = match degrees {
            0 => String::new(),
            _ => format!(" transform=\"rotate({degrees} {x} {y})\""),
        };
        let text = escaped(text);
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}{turn}>{text}</text>"
        );
    }

    /// Swatches and names in one line from the left; returns where it ends.
    fn legend(&mut self, entries: &[(String, &str)]) -> f64 {
        let mut x = 0.0;
        for (class, name) in entries {
            self.rect(
                class,
                Area {
                    x,
                    y: 4.0,
                    width: 14.0,
                    height: 11.0,
                },
                "",
            );
            self.text("label", (x + 20.0, 14.0), Anchor::Start, name);
            x += 20.0 + text_width(name) + 22.0;
        }
        x
    }

    /// The farthest repeat's distance, above and below a standing bar's end; nothing where there is
    /// none.
    fn whisker(&mut self, (x, y): (f64, f64), reach: f64, cap: f64) {
        if reach >= 0.05 {
            self.line("whisker", (x, y - reach), (x, y + reach));
            self.line("whisker", (x - cap, y - reach), (x + cap, y - reach));
            self.line("whisker", (x - cap, y + reach), (x + cap, y + reach));
        }
    }

    /// The same, left and right of a lying bar's end.
    fn side_whisker(&mut self, (x, y): (f64, f64), reach: f64) {
        if reach >= 0.05 {
            self.line("whisker", (x - reach, y), (x + reach, y));
            self.line("whisker", (x - reach, y - 4.0), (x - reach, y + 4.0));
            self.line("whisker", (x + reach, y - 4.0), (x + reach, y + 4.0));
        }
    }

    /// Horizontal grid with its numbers at the left, and the unit above them.
    fn y_axis(&mut self, plot: Area, axis: &Linear, unit: &str) {
        for (value, label) in axis.ticks() {
            let y = plot.bottom() - plot.height * axis.share(value);
            let class = if value > 0.0 { "grid" } else { "axis" };
            self.line(class, (plot.x, y), (plot.right(), y));
            self.text("tick", (plot.x - 7.0, y + 4.0), Anchor::End, &label);
        }
        self.text("tick", (plot.x - 7.0, plot.y - 10.0), Anchor::End, unit);
    }

    /// Vertical grid with its numbers below.
    fn x_axis(&mut self, plot: Area, axis: &Linear) {
        for (value, label) in axis.ticks() {
            let x = plot.x + plot.width * axis.share(value);
            let class = if value > 0.0 { "grid" } else { "axis" };
            self.line(class, (x, plot.y), (x, plot.bottom()));
            self.text("tick", (x, plot.bottom() + 16.0), Anchor::Middle, &label);
        }
    }
}

/// A rectangle; y grows downwards.
#[derive(Debug, Clone, Copy)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn right(self) -> f64 {
        self.x + self.width
    }

    fn bottom(self) -> f64 {
        self.y + self.height
    }
}

/// A coordinate: a tenth of a unit is finer than any screen shows.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".into(),
        Some(whole) => whole.into(),
        None => text,
    }
}

/// About how wide a text is; system fonts differ, so nothing may depend on it but spacing.
fn text_width(text: &str) -> f64 {
    0.56 * FONT * text.chars().count() as f64
}

/// A text cut to a width, with an ellipsis where something is missing.
fn shortened(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let room = (width / (0.56 * FONT)) as usize;
    text.chars()
        .take(room.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// A device's name cut to a width. Cuts the mark in brackets at its end only where it takes most of
/// the room, and never one that says that the device is insecure.
fn shortened_name(name: &str, width: f64) -> String {
    let mark = name.rfind(" (").filter(|_| name.ends_with(')'));
    let (name, mark) = name.split_at(mark.unwrap_or(name.len()));
    match width - text_width(mark) {
        rest if rest >= width / 2.0 || mark.contains("insecure") => {
            format!("{}{mark}", shortened(name, rest))
        }
        _ => shortened(&format!("{name}{mark}"), width),
    }
}

fn escaped(text: &str) -> String {
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
    fn a_drawing_is_well_formed_whatever_its_texts_are() {
        let evil = "</text><script>\"&'";
        let mut svg = Svg::new("x", 10.0);
        svg.text("label", (1.0, 2.0), Anchor::End, evil);
        svg.rect(
            "bar",
            Area {
                x: 0.0,
                y: 0.0,
                width: 1.0,
                height: -1.0,
            },
            evil,
        );
        svg.legend(&[("bar".into(), evil)]);
        let text = svg.finish(evil, evil).into_string();
        let read = roxmltree::Document::parse(&text).unwrap();
        let texts = read
            .descendants()
            .filter(|node| node.text() == Some(evil))
            .count();
        assert!(texts >= 4 && !text.contains("<script"), "{text}");
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(
            [1.0, 1.26, -0.01, 960.0].map(number),
            ["1", "1.3", "0", "960"]
        );
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("short", 100.0), "short");
        assert_eq!(shortened("a name that is too long", 40.0), "a na…");
    }

    #[test]
    fn long_names_keep_their_mark() {
        let name = "cipherbench 3des-cbc-hmac-sha1 (insecure)";
        let room = text_width("cipherbench 3d… (insecure)") + 1.0;
        assert_eq!(shortened_name(name, room), "cipherbench 3d… (insecure)");
        assert_eq!(shortened_name(name, text_width(name)), name);
        // A mark that takes most of the room is cut with the name.
        assert_eq!(
            shortened_name("a (long mark)", text_width("a (lo…") + 1.0),
            "a (lo…"
        );
        assert_eq!(
            shortened_name(
                "a long name (insecure)",
                text_width("a l… (insecure)") + 1.0
            ),
            "a l… (insecure)"
        );
        assert_eq!(
            shortened_name("no mark at all", text_width("no m…") + 1.0),
            "no m…"
        );
    }
}

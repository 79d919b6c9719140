//! Charts as inline SVG.
//!
//! Colours and fonts are classes of the page's style sheet, so that a chart follows light, dark and
//! print. Every chart has a title and a description for screen readers, and its figures are in a
//! table beside it.
//!
//! To add one: a module with a function from a `Run` to `Markup` by way of [`Svg`], and its place
//! in `html`.

pub(crate) mod cpu;
mod curves;
pub(crate) mod datagrams;
pub(crate) mod device;
pub(crate) mod frames;
pub(crate) mod latency;
pub(crate) mod ranking;
mod rows;
mod scale;
pub(crate) mod scaling;
pub(crate) mod suites;
pub(crate) mod throughput;
mod time;
pub(crate) mod timeline;

use maud::{Markup, PreEscaped};
use scale::{Linear, Log, short_time};
use stats::{CellResult, Status};
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

/// Alignment of a text to its position.
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

    /// The finished drawing, with title and description for screen readers.
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

    fn element(&mut self, name: &str, class: &str, attributes: &[(&str, String)], tooltip: &str) {
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
        let places = [("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)];
        let places = places.map(|(key, value)| (key, number(value)));
        self.element("line", class, &places, "");
    }

    fn rect(&mut self, class: &str, area: Area, tooltip: &str) {
        self.element("rect", class, &area.attributes(), tooltip);
    }

    fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64, tooltip: &str) {
        let places = [("cx", x), ("cy", y), ("r", radius)];
        let places = places.map(|(key, value)| (key, number(value)));
        self.element("circle", class, &places, tooltip);
    }

    /// A line through points.
    fn polyline(&mut self, class: &str, points: &[(f64, f64)], tooltip: &str) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{},{}", number(*x), number(*y)))
            .collect();
        self.element("polyline", class, &[("points", points.join(" "))], tooltip);
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
    fn legend(
        &mut self,
        entries: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    ) -> f64 {
        let mut x = 0.0;
        for (class, name) in entries {
            let name = name.as_ref();
            self.rect(class.as_ref(), Area::new(x, 4.0, 14.0, 11.0), "");
            self.text("label", (x + 20.0, 14.0), Anchor::Start, name);
            x += 20.0 + text_width(name) + 22.0;
        }
        x
    }

    /// A legend of devices by their places in the palette; long names are cut.
    fn legend_of_colors(&mut self, entries: impl Iterator<Item = (usize, String)>) {
        let entry = |(color, name): (usize, String)| {
            let name = shortened_name(&name, 260.0);
            (format!("fill-{color}"), name)
        };
        self.legend(entries.map(entry));
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

    /// The same, from the left to the right of a lying bar's end.
    fn side_whisker(&mut self, low: f64, high: f64, y: f64) {
        if high - low >= 0.1 {
            self.line("whisker", (low, y), (high, y));
            for end in [low, high] {
                self.line("whisker", (end, y - 4.0), (end, y + 4.0));
            }
        }
    }

    /// The value above a standing bar: turned where the bar is narrower than the first width, and
    /// left to the table below the second.
    fn bar_value(&mut self, class: &str, bar: Area, above: f64, widths: [f64; 2], value: &str) {
        if bar.width >= widths[0] {
            self.text(class, (bar.middle(), above), Anchor::Middle, value);
        } else if bar.width >= widths[1] {
            let position = (bar.middle() + 4.0, above);
            self.turned_text(class, position, Anchor::Start, value, -90);
        }
    }

    /// Horizontal grid with its numbers at the left, and the unit above them.
    fn y_axis(&mut self, plot: Area, axis: &Linear, unit: &str) {
        for (value, label) in axis.ticks() {
            let class = if value > 0.0 { "grid" } else { "axis" };
            self.y_tick(class, plot, plot.y_at(axis.share(value)), &label);
        }
        self.text("tick", (plot.x - 7.0, plot.y - 10.0), Anchor::End, unit);
    }

    /// The same for times in nanoseconds on a logarithmic axis.
    fn y_times(&mut self, plot: Area, axis: &Log) {
        for value in axis.ticks() {
            let y = plot.y_at(axis.share(value));
            self.y_tick("grid", plot, y, &short_time(value));
        }
    }

    fn y_tick(&mut self, class: &str, plot: Area, y: f64, label: &str) {
        self.line(class, (plot.x, y), (plot.right(), y));
        self.text("tick", (plot.x - 7.0, y + 4.0), Anchor::End, label);
    }

    /// Vertical grid with its numbers below.
    fn x_axis(&mut self, plot: Area, axis: &Linear) {
        for (value, label) in axis.ticks() {
            let x = plot.x_at(axis.share(value));
            let class = if value > 0.0 { "grid" } else { "axis" };
            self.line(class, (x, plot.y), (x, plot.bottom()));
            self.text("tick", (x, plot.bottom() + 16.0), Anchor::Middle, &label);
        }
    }

    /// Title of the axis below a plot.
    fn x_title(&mut self, plot: Area, below: f64, title: &str) {
        let position = (plot.middle(), plot.bottom() + below);
        self.text("tick", position, Anchor::Middle, title);
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
    const fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// The plot of a chart of that height: what margins at the top (below the legend), right,
    /// bottom and left leave.
    const fn plot(height: f64, [top, right, bottom, left]: [f64; 4]) -> Self {
        let y = LEGEND_HEIGHT + top;
        Self::new(left, y, WIDTH - left - right, height - y - bottom)
    }

    /// The part of that width and height whose top is `y`.
    const fn bar(self, y: f64, width: f64, height: f64) -> Self {
        Self::new(self.x, y, width, height)
    }

    fn right(self) -> f64 {
        self.x + self.width
    }

    fn bottom(self) -> f64 {
        self.y + self.height
    }

    fn middle(self) -> f64 {
        self.x + self.width / 2.0
    }

    /// From 0 at the left to 1 at the right.
    fn x_at(self, share: f64) -> f64 {
        self.x + self.width * share
    }

    /// From 0 at the bottom to 1 at the top.
    fn y_at(self, share: f64) -> f64 {
        self.bottom() - self.height * share
    }

    fn attributes(self) -> [(&'static str, String); 4] {
        let (width, height) = (self.width.max(0.0), self.height.max(0.0));
        let values = [
            ("x", self.x),
            ("y", self.y),
            ("width", width),
            ("height", height),
        ];
        values.map(|(key, value)| (key, number(value)))
    }
}

/// Why a cell has no bar; `otherwise` where it was measured.
fn absence(cell: &CellResult, otherwise: &'static str) -> &'static str {
    match cell.status {
        Status::Invalid => "invalid",
        Status::Failed => "failed",
        Status::NotRun => "not run",
        Status::Measured | Status::Partly => otherwise,
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
/// the room, and never the mark of an insecure device.
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
        svg.rect("bar", Area::new(0.0, 0.0, 1.0, -1.0), evil);
        svg.legend([("bar", evil)]);
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

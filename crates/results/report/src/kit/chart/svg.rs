//! A drawing that grows element by element; its labels never cover anything.
//!
//! Texts without a fixed place are drawn last. Each takes the first of its candidate places that
//! covers no other text and no line. A text without a free place is left out; its figure remains in
//! the tooltip and in the table next to the chart.

use super::area::{Area, Segment};
use super::font::Font;
use super::label::{Anchor, Label, STEP, STEPS, Spot, ways};
use super::marks::{is_hatched, outline};
use super::scale::{Axis, Log, short_time};
use super::{BAR_MIN, escaped, number, shortened};
use maud::{Markup, PreEscaped};
use std::fmt::Write;

/// Width of every chart in user units; the page scales it.
pub(crate) const WIDTH: f64 = 960.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 18.0;
/// Distance between the legend and the drawing, and below the drawing.
const MARGIN: f64 = 7.0;
/// Distance between a label and a line.
const CLEARANCE: f64 = 1.5;
/// Lines that labels may cross, since a label's halo interrupts them.
const GROUND: [&str; 2] = ["grid", "axis"];
/// Shapes drawn under labels.
const UNDER: [&str; 4] = ["area", "lost-area", "role", "ground"];

pub(crate) struct Svg {
    id: String,
    pub(crate) body: String,
    legend: Vec<(Key, String)>,
    waiting: Vec<Label>,
    /// Areas that labels must not cover.
    taken: Vec<Area>,
    lines: Vec<Segment>,
    /// Bounding box of everything drawn.
    extent: Option<Area>,
    has_hatching: bool,
    has_stripes: bool,
}

/// The symbol before a name in the legend.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    /// A device's colour and mark.
    Style(usize),
    /// A filled rectangle of a class.
    Swatch(&'static str),
    /// A line of a class.
    Line(&'static str),
    /// Stripes, for losses.
    Stripes,
}

impl Svg {
    /// Creates an empty drawing; `id` must be unique in the page.
    pub(crate) fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            body: String::new(),
            legend: Vec::new(),
            waiting: Vec::new(),
            taken: Vec::new(),
            lines: Vec::new(),
            extent: None,
            has_hatching: false,
            has_stripes: false,
        }
    }

    /// Finishes the drawing, with title and description for screen readers.
    pub(crate) fn finish(mut self, title: &str, description: &str) -> Markup {
        // Labels are placed last, so that they avoid all lines and figures, not only earlier ones.
        for label in std::mem::take(&mut self.waiting) {
            self.place(&label);
        }
        let drawn = self
            .extent
            .map_or((0.0, 0.0), |area| (area.y, area.bottom()));
        // Labels may be above the plot, so the top of the drawing is known only after their
        // placement.
        let top = self.draw_legend(drawn.0);
        let height = drawn.1 + MARGIN - top;
        let patterns = self.patterns();
        let Self { id, body, .. } = self;
        let (title, description) = (escaped(title), escaped(description));
        PreEscaped(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {} {} {}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\"><title id=\"{id}-title\">{title}</title>\
             <desc id=\"{id}-desc\">{description}</desc>{patterns}{body}</svg>",
            number(top),
            number(WIDTH),
            number(height),
        ))
    }

    fn patterns(&self) -> String {
        // All charts are in one page, so each id contains the one of its chart.
        let pattern = |name: &str, size: u32, content: &str| {
            // In units of the drawing: in units of its shape, stripes would be wider on longer
            // bars.
            format!(
                "<pattern id=\"{}-{name}\" width=\"{size}\" height=\"{size}\" \
                 patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">{content}\
                 </pattern>",
                self.id
            )
        };
        let mut found = String::new();
        if self.has_stripes {
            let content = "<rect class=\"lost-ground\" width=\"6\" height=\"6\"/><line \
                           class=\"lost-stripe\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/>";
            found.push_str(&pattern("lost", 6, content));
        }
        if self.has_hatching {
            let content = "<line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"5\"/>";
            found.push_str(&pattern("hatch", 5, content));
        }
        if found.is_empty() {
            found
        } else {
            format!("<defs>{found}</defs>")
        }
    }

    fn element(&mut self, name: &str, class: &str, attributes: &[(&str, String)], tooltip: &str) {
        let mut text = format!("<{name} class=\"{class}\"");
        for (key, value) in attributes {
            // Writing to a string cannot fail.
            let _ = write!(text, " {key}=\"{}\"", escaped(value));
        }
        // Browsers show the title of an element as its tooltip.
        match tooltip {
            "" => text.push_str("/>"),
            _ => text.push_str(&format!("><title>{}</title></{name}>", escaped(tooltip))),
        }
        self.body.push_str(&text);
    }

    fn extend(&mut self, area: Area) {
        self.extent = Some(self.extent.map_or(area, |extent| extent.with(area)));
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let places = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
        let places = places.map(|(key, value)| (key, number(value)));
        self.element("line", class, &places, "");
        self.extend(around([from, to]));
        if !GROUND.contains(&class) {
            self.lines.push([from, to]);
        }
    }

    pub(crate) fn rect(&mut self, class: &str, area: Area, tooltip: &str) {
        self.element("rect", class, &attributes(area), tooltip);
        self.extend(area);
        if !class.split(' ').any(|class| UNDER.contains(&class)) {
            self.taken.push(area);
        }
    }

    /// A part of a figure in a device's colour, hatched if its style is.
    pub(crate) fn bar(&mut self, style: usize, area: Area, tooltip: &str) {
        self.rect(&format!("fill-{style}"), area, tooltip);
        if is_hatched(style) {
            self.has_hatching = true;
            // The pattern covers the fill, so a pointer finds only its tooltip.
            self.patterned("hatch", area, tooltip);
        }
    }

    /// Stripes for losses: they differ from the solid colours of any palette and of print.
    pub(crate) fn stripes(&mut self, area: Area, tooltip: &str) {
        self.has_stripes = true;
        self.patterned("lost", area, tooltip);
        self.extend(area);
        self.taken.push(area);
    }

    fn patterned(&mut self, pattern: &str, area: Area, tooltip: &str) {
        let fill = ("fill", format!("url(#{}-{pattern})", self.id));
        let attributes: Vec<_> = attributes(area).into_iter().chain([fill]).collect();
        self.element("rect", "pattern", &attributes, tooltip);
    }

    /// The mark of a style; `class` is `fill` or, for an outline, `ring stroke`.
    pub(crate) fn mark(
        &mut self,
        class: &str,
        style: usize,
        position: (f64, f64),
        radius: f64,
        tooltip: &str,
    ) {
        let data = ("d", outline(style, position, radius));
        self.element("path", &format!("{class}-{style}"), &[data], tooltip);
        let (x, y) = position;
        let area = Area::new(x - radius, y - radius, 2.0 * radius, 2.0 * radius);
        self.extend(area);
        self.taken.push(area);
    }

    /// A line through points, or a filled area for a class of [`UNDER`].
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)], tooltip: &str) {
        let places: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{},{}", number(*x), number(*y)))
            .collect();
        self.element("polyline", class, &[("points", places.join(" "))], tooltip);
        // The view box follows from the extent, and a line may be the highest part of a chart.
        points.iter().for_each(|at| self.extend(around([*at, *at])));
        if !class.split(' ').any(|class| UNDER.contains(&class)) {
            let segments = points.windows(2).map(|pair| [pair[0], pair[1]]);
            self.lines.extend(segments);
        }
    }

    /// Draws a text at a fixed place, moved into the chart if it would leave it.
    pub(crate) fn text(&mut self, class: &str, position: (f64, f64), anchor: Anchor, text: &str) {
        let area = Spot::at(position, anchor).area(class, text);
        let inward = (-area.x).max(0.0) + (WIDTH - area.right()).min(0.0);
        let position = (position.0 + inward, position.1);
        self.draw_text(class, Spot::at(position, anchor), text);
    }

    pub(crate) fn draw_text(&mut self, class: &str, spot: Spot, text: &str) {
        let anchor = match spot.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y) = (number(spot.position.0), number(spot.position.1));
        let turn = if spot.is_turned {
            format!(" transform=\"rotate(-90 {x} {y})\"")
        } else {
            String::new()
        };
        let area = spot.area(class, text);
        self.extend(area);
        self.taken.push(area);
        let text = escaped(text);
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}{turn}>{text}</text>"
        );
    }

    /// Adds a text at the first free of these places; it is left out if none is free.
    pub(crate) fn label(&mut self, class: &str, spots: Vec<Spot>, text: &str) {
        self.wait(&[(class, text)], spots, None);
    }

    fn wait(&mut self, lines: &[(&str, &str)], spots: Vec<Spot>, leader: Option<(f64, f64)>) {
        let owned = |(class, text): &(&str, &str)| ((*class).to_owned(), (*text).to_owned());
        self.waiting.push(Label {
            lines: lines.iter().map(owned).collect(),
            spots,
            leader,
        });
    }

    /// A name at the end of a line. Among other names it moves up or down and gets a leader.
    pub(crate) fn end_name(&mut self, class: &str, end: (f64, f64), x: f64, text: &str) {
        let spots = ways().map(|away| Spot::start((x, end.1 + 4.0 + away)));
        self.wait(&[(class, text)], spots.collect(), Some(end));
    }

    /// The value above a vertical bar, with a word below it. Both are turned if wider than the
    /// bars' pitch, and left to the table if the pitch is narrower than a line.
    pub(crate) fn bar_value(
        &mut self,
        (middle, above): (f64, f64),
        pitch: f64,
        value: &str,
        word: &str,
    ) {
        let widths = [Font::of("value").width(value), Font::of("tick").width(word)];
        let up = |turn: bool| {
            (0..STEPS).map(move |step| {
                let y = above - STEP * f64::from(step);
                // The baseline of turned text is right of its middle by a third of its height.
                if turn {
                    Spot::turned((middle + 4.0, y))
                } else {
                    Spot::middle((middle, y))
                }
            })
        };
        if widths[0].max(widths[1]) <= pitch - 2.0 {
            let lines = [("value", value), ("tick", word)];
            let used = if word.is_empty() { 1 } else { 2 };
            self.wait(&lines[..used], up(false).collect(), None);
        } else if pitch >= BAR_MIN {
            // Turned, two lines would need twice the width, so one line contains both texts.
            let text = format!("{value} {word}");
            self.wait(&[("value", text.trim_end())], up(true).collect(), None);
        }
    }

    /// Draws a label at its first free place.
    fn place(&mut self, label: &Label) {
        let free = label.spots.iter().find(|spot| {
            let (area, leader) = (label.area(**spot), label.leader(**spot));
            let clear = area.grown(CLEARANCE);
            // The drawing grows with its labels in height, but not in width.
            let inside = area.x >= 0.0 && area.right() <= WIDTH;
            let mut taken = self.taken.iter();
            // A leader may cross lines, but no text and no figure.
            let covers = taken.any(|taken| {
                taken.overlaps(area) || leader.is_some_and(|line| taken.is_crossed_by(line))
            });
            inside && !covers && !self.lines.iter().any(|line| clear.is_crossed_by(*line))
        });
        let Some(spot) = free else { return };
        if let Some([from, to]) = label.leader(*spot) {
            // This also adds the leader to the lines that later labels avoid.
            self.line("leader", from, to);
        }
        for (above, (class, text)) in label.lines.iter().rev().enumerate() {
            // Labels may cover the grid, which their halo interrupts.
            self.draw_text(&format!("{class} halo"), spot.above(above), text);
        }
    }

    /// Adds entries to the legend above the drawing.
    pub(crate) fn legend(&mut self, entries: impl IntoIterator<Item = (Key, impl Into<String>)>) {
        let entries = entries.into_iter().map(|(key, name)| (key, name.into()));
        self.legend.extend(entries);
    }

    /// Draws the legend above the drawing, in the lines it needs; returns its top.
    fn draw_legend(&mut self, drawn_top: f64) -> f64 {
        let entries = std::mem::take(&mut self.legend);
        let font = Font::of("label");
        let mut lines: Vec<Vec<(f64, Key, String)>> = Vec::new();
        // The first entry always begins a line.
        let mut x = f64::INFINITY;
        for (key, name) in entries {
            let before = key.width() + 6.0;
            // An entry wider than the chart would fit no line.
            let name = shortened("label", &name, WIDTH - before);
            let width = before + font.width(&name);
            if x + width > WIDTH {
                lines.push(Vec::new());
                x = 0.0;
            }
            if let Some(line) = lines.last_mut() {
                line.push((x, key, name));
            }
            x += width + 20.0;
        }
        // The lines are drawn upwards, beginning with the last, as their number moves only the top.
        let mut top = drawn_top - MARGIN;
        for line in lines.into_iter().rev() {
            top -= LEGEND_LINE;
            for (x, key, name) in line {
                self.draw_key(&key, x, top);
                let position = (x + key.width() + 6.0, top + 13.0);
                self.text("label", position, Anchor::Start, &name);
            }
        }
        top
    }

    fn draw_key(&mut self, key: &Key, x: f64, top: f64) {
        let swatch = Area::new(x, top + 3.0, 14.0, 11.0);
        match key {
            Key::Style(style) => {
                self.bar(*style, swatch, "");
                self.mark("fill", *style, (x + 22.0, top + 8.5), 4.5, "");
            }
            Key::Swatch(class) => self.rect(class, swatch, ""),
            Key::Line(class) => self.line(class, (x, top + 9.0), (x + 18.0, top + 9.0)),
            Key::Stripes => self.stripes(swatch, ""),
        }
    }

    /// From the largest to the smallest repeat, on a vertical bar; nothing if they are equal.
    pub(crate) fn whisker(&mut self, x: f64, [top, bottom]: [f64; 2], cap: f64) {
        // Coordinates have one decimal, so shorter whiskers would have no length.
        if bottom - top >= 0.1 {
            self.line("whisker", (x, top), (x, bottom));
            for end in [top, bottom] {
                self.line("whisker", (x - cap, end), (x + cap, end));
            }
        }
    }

    /// The same on a horizontal bar.
    pub(crate) fn side_whisker(&mut self, low: f64, high: f64, y: f64) {
        if high - low >= 0.1 {
            self.line("whisker", (low, y), (high, y));
            for end in [low, high] {
                self.line("whisker", (end, y - 4.0), (end, y + 4.0));
            }
        }
    }

    /// Horizontal grid with numbers at the left, and the unit above them.
    pub(crate) fn y_axis(&mut self, plot: Area, axis: &impl Axis, unit: &str) {
        for (value, label) in axis.ticks() {
            let share = axis.share(value);
            // The tick at the beginning of the axis, usually 0, is the axis itself.
            let class = if share > 0.0 { "grid" } else { "axis" };
            self.y_tick(class, plot, plot.y_at(share), &label);
        }
        if !unit.is_empty() {
            self.text("tick", (plot.x - 7.0, plot.y - 10.0), Anchor::End, unit);
        }
    }

    /// The same for times in nanoseconds on a logarithmic axis.
    pub(crate) fn y_times(&mut self, plot: Area, axis: &Log) {
        for value in axis.values() {
            let y = plot.y_at(axis.share(value));
            self.y_tick("grid", plot, y, &short_time(value));
        }
    }

    pub(crate) fn y_tick(&mut self, class: &str, plot: Area, y: f64, label: &str) {
        self.line(class, (plot.x, y), (plot.right(), y));
        self.text("tick", (plot.x - 7.0, y + 4.0), Anchor::End, label);
    }

    /// Vertical grid with numbers below; numbers that would cover another are left out.
    pub(crate) fn x_axis(&mut self, plot: Area, axis: &impl Axis) {
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in axis.ticks() {
            let share = axis.share(value);
            let x = plot.x_at(share);
            let class = if share > 0.0 { "grid" } else { "axis" };
            self.line(class, (x, plot.y), (x, plot.bottom()));
            let half = Font::of("tick").width(&label) / 2.0;
            if x - half >= free_from {
                self.text("tick", (x, plot.bottom() + 16.0), Anchor::Middle, &label);
                free_from = x + half + 5.0;
            }
        }
    }

    /// Title of the axis below a plot.
    pub(crate) fn x_title(&mut self, plot: Area, below: f64, title: &str) {
        let position = (plot.middle(), plot.bottom() + below);
        self.text("tick", position, Anchor::Middle, title);
    }
}

impl Key {
    const fn width(&self) -> f64 {
        match self {
            Self::Style(_) => 27.0,
            Self::Line(_) => 18.0,
            Self::Swatch(_) | Self::Stripes => 14.0,
        }
    }
}

fn around([(x1, y1), (x2, y2)]: Segment) -> Area {
    Area::new(x1.min(x2), y1.min(y2), (x1 - x2).abs(), (y1 - y2).abs())
}

fn attributes(area: Area) -> [(&'static str, String); 4] {
    // SVG does not allow negative sizes.
    let (width, height) = (area.width.max(0.0), area.height.max(0.0));
    let values = [
        ("x", area.x),
        ("y", area.y),
        ("width", width),
        ("height", height),
    ];
    values.map(|(key, value)| (key, number(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_well_formed_whatever_its_texts_are() {
        let evil = "</text><script>\"&'";
        let mut svg = Svg::new("x");
        svg.text("label", (1.0, 2.0), Anchor::End, evil);
        svg.rect("bar", Area::new(0.0, 0.0, 1.0, -1.0), evil);
        svg.bar(9, Area::new(0.0, 0.0, 1.0, 1.0), evil);
        svg.stripes(Area::new(0.0, 0.0, 1.0, 1.0), evil);
        svg.legend([(Key::Style(3), evil), (Key::Stripes, evil)]);
        let text = svg.finish(evil, evil).into_string();
        let read = roxmltree::Document::parse(&text).unwrap();
        let texts = read
            .descendants()
            .filter(|node| node.text() == Some(evil))
            .count();
        assert!(texts >= 8 && !text.contains("<script"), "{text}");
    }

    /// Labels of random widths at random points, among random lines: none covers another or a line.
    #[test]
    fn labels_cover_nothing_whatever_the_data() {
        // The generator of Knuth's MMIX: each run of the test draws the same charts.
        let mut seed = 11_u64;
        let mut random = move |below: f64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // The upper 53 bits, as many as the mantissa of a double has.
            (seed >> 11) as f64 / (1_u64 << 53) as f64 * below
        };
        let mut placed = 0;
        for _ in 0..60 {
            let mut svg = Svg::new("x");
            for _ in 0..8 {
                let line = [(); 2].map(|()| (random(WIDTH), random(300.0)));
                svg.line("curve", line[0], line[1]);
            }
            for bar in 0..10 {
                let area = Area::new(90.0 * f64::from(bar), 300.0, random(88.0), 40.0);
                svg.bar(1, area, "");
                svg.bar_value((area.middle(), area.y - 4.0), area.width, "12.3", "tester");
            }
            for index in 0..24 {
                let point = (random(WIDTH), random(300.0));
                let text = "x".repeat(1 + random(20.0) as usize);
                svg.mark("fill", index % 14, point, 4.0, "");
                match index % 3 {
                    0 => svg.label("value", Spot::around(point), &text),
                    1 => svg.label("value", Spot::rightward(point), &text),
                    _ => svg.end_name("label strong", point, point.0 + 9.0, &text),
                }
            }
            let (drawn, waiting) = (svg.taken.len(), std::mem::take(&mut svg.waiting));
            for label in &waiting {
                svg.place(label);
            }
            let labels = &svg.taken[drawn..];
            placed += labels.len();
            for (index, area) in labels.iter().enumerate() {
                let others = svg.taken.iter().enumerate();
                let mut others = others.filter(|(at, _)| *at != drawn + index);
                assert!(area.x >= 0.0 && area.right() <= WIDTH, "{area:?}");
                assert!(!others.any(|(_, other)| other.overlaps(*area)), "{area:?}");
            }
            for area in labels {
                // Leaders are drawn with their labels, so lines of later labels are included here.
                let crossed = svg.lines.iter().any(|line| area.is_crossed_by(*line));
                assert!(!crossed, "{area:?}");
            }
        }
        assert!(placed > 60 * 20, "{placed}");
    }

    #[test]
    fn a_long_legend_takes_several_lines_above_the_drawing() {
        let mut svg = Svg::new("x");
        svg.rect("ground", Area::new(0.0, 50.0, 10.0, 10.0), "");
        let name = "cipherbench chacha20-poly1305 w8 aws-lc";
        svg.legend((1..=12).map(|style| (Key::Style(style), name)));
        let text = svg.finish("title", "description").into_string();
        let read = roxmltree::Document::parse(&text).unwrap();
        let texts = read.descendants().filter(|node| node.has_tag_name("text"));
        let lines: Vec<f64> = texts
            .map(|node| node.attribute("y").unwrap().parse().unwrap())
            .collect();
        assert_eq!(lines.len(), 12);
        assert!(lines.iter().all(|y| *y < 50.0), "{lines:?}");
        let mut distinct = lines.clone();
        distinct.dedup();
        assert!(distinct.len() > 2, "{lines:?}");
    }
}

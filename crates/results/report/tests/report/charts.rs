//! What every chart keeps to, checked on its SVG: labels cover nothing, devices are distinguished
//! by more than colour, and a pointer that rests on a figure shows whose it is.

use crate::fixture;
use crate::frames::table;
use crate::html::parse;
use journal::Journal;
use roxmltree::{Document, Node};
use std::sync::LazyLock;

// The same widths as those by which labels are laid out.
#[path = "../../src/kit/chart/font.rs"]
mod font;

/// Coordinates are rounded to tenths.
const ROUNDING: f64 = 0.11;
const WIDTH: f64 = 960.0;

#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn overlaps(self, other: Self) -> bool {
        self.left + ROUNDING < other.right
            && other.left + ROUNDING < self.right
            && self.top + ROUNDING < other.bottom
            && other.top + ROUNDING < self.bottom
    }

    /// Whether a line passes through: some point of it lies inside.
    fn is_crossed_by(self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> bool {
        let bounds = Self {
            left: x1.min(x2) - 1.0,
            top: y1.min(y2) - 1.0,
            right: x1.max(x2) + 1.0,
            bottom: y1.max(y2) + 1.0,
        };
        if !self.overlaps(bounds) {
            return false;
        }
        let steps = (x2 - x1).abs().max((y2 - y1).abs()).ceil().max(1.0) as u32 * 2;
        (0..=steps).any(|step| {
            let share = f64::from(step) / f64::from(steps);
            let (x, y) = (x1 + share * (x2 - x1), y1 + share * (y2 - y1));
            x > self.left + ROUNDING
                && x < self.right - ROUNDING
                && y > self.top + ROUNDING
                && y < self.bottom - ROUNDING
        })
    }
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    let value = node
        .attribute(name)
        .unwrap_or_else(|| panic!("no {name}: {node:?}"));
    value.parse().unwrap()
}

fn class<'a>(node: Node<'a, '_>) -> &'a str {
    node.attribute("class").unwrap_or_default()
}

fn has_class(node: Node<'_, '_>, name: &str) -> bool {
    class(node).split(' ').any(|class| class == name)
}

fn area_of_text(node: Node<'_, '_>) -> Area {
    let font = font::Font::of(class(node));
    let width = font.width(node.text().unwrap_or_default());
    let (x, y) = (number(node, "x"), number(node, "y"));
    let before = match node.attribute("text-anchor") {
        None => 0.0,
        Some("middle") => width / 2.0,
        Some(_) => width,
    };
    // Capitals and digits; descenders are rare and short.
    let (ascent, descent) = (0.74 * font.size, 0.2 * font.size);
    match node.attribute("transform") {
        None => Area {
            left: x - before,
            top: y - ascent,
            right: x - before + width,
            bottom: y + descent,
        },
        Some(_) => Area {
            left: x - ascent,
            top: y - width + before,
            right: x + descent,
            bottom: y + before,
        },
    }
}

/// What a pointer that rests on a shape shows.
fn shown(node: Node<'_, '_>) -> Option<String> {
    let title = node.children().find(|child| child.has_tag_name("title"));
    title.and_then(|title| title.text()).map(str::to_owned)
}

/// Points of a polyline or a line.
fn points(node: Node<'_, '_>) -> Vec<(f64, f64)> {
    if node.has_tag_name("line") {
        let at = |x, y| (number(node, x), number(node, y));
        return vec![at("x1", "y1"), at("x2", "y2")];
    }
    let pairs = node.attribute("points").unwrap().split(' ');
    let pair = |pair: &str| {
        let (x, y) = pair.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    pairs.filter(|pair| !pair.is_empty()).map(pair).collect()
}

fn area_of_rect(node: Node<'_, '_>) -> Area {
    let (left, top) = (number(node, "x"), number(node, "y"));
    Area {
        left,
        top,
        right: left + number(node, "width"),
        bottom: top + number(node, "height"),
    }
}

/// Around a mark.
fn area_of_path(node: Node<'_, '_>) -> Area {
    let data = node.attribute("d").unwrap();
    let (corners, arc) = data.split_once('a').unwrap_or((data, ""));
    let numbers = |text: &str| -> Vec<f64> {
        let numbers = text.split(|c: char| !"-.0123456789".contains(c));
        numbers.filter_map(|number| number.parse().ok()).collect()
    };
    let corners = numbers(corners);
    let radius = numbers(arc).first().copied().unwrap_or(0.0);
    let of = |first: usize| corners.iter().skip(first).step_by(2).copied();
    Area {
        left: of(0).fold(f64::INFINITY, f64::min),
        top: of(1).fold(f64::INFINITY, f64::min) - radius,
        right: of(0).fold(f64::NEG_INFINITY, f64::max) + 2.0 * radius,
        bottom: of(1).fold(f64::NEG_INFINITY, f64::max) + radius,
    }
}

/// The charts of a report, each as XML.
fn charts(journal: &Journal) -> Vec<String> {
    let html = report::build(journal).html;
    let charts = html.split("<svg").skip(1);
    let whole = |chart: &str| format!("<svg{}</svg>", chart.split("</svg>").next().unwrap());
    charts.map(whole).collect()
}

/// The charts of a run, and the names of its devices.
struct Drawn {
    run: String,
    duts: Vec<String>,
    charts: Vec<String>,
}

/// Those of all made-up runs, and of random ones.
static DRAWN: LazyLock<Vec<Drawn>> = LazyLock::new(|| {
    let named = [
        ("quick", fixture::quick()),
        ("troubled", fixture::troubled()),
        ("in-progress", fixture::in_progress()),
        ("large", fixture::large()),
        ("scaling", fixture::scaling()),
        ("cards", fixture::cards()),
        ("hostile", fixture::hostile()),
        ("frames", fixture::frame_tests()),
        ("round-trips", fixture::round_trips()),
        ("hostile-frames", fixture::hostile_frames()),
        ("disturbed", fixture::disturbed()),
        ("soak", fixture::soak()),
        ("insecure", fixture::insecure()),
        ("peers", fixture::peers(5)),
        ("suites", fixture::suites(Some(10_000_000_000))),
        ("only-baseline", fixture::only(true)),
        ("dozen", fixture::dozen()),
        ("monitored", fixture::monitored()),
        ("monitored-frames", fixture::monitored_frames()),
    ];
    let named = named.map(|(name, journal)| (name.to_owned(), journal));
    let random = (1..=5).map(|seed| (format!("random {seed}"), fixture::random(seed)));
    let drawn = named.into_iter().chain(random).map(|(run, journal)| {
        let cells = journal.header.plan.cells.iter();
        Drawn {
            run,
            duts: cells.map(|cell| cell.dut.name.clone()).collect(),
            charts: charts(&journal),
        }
    });
    drawn.collect()
});

#[test]
fn labels_cover_neither_one_another_nor_lines_nor_figures() {
    let mut faults = Vec::new();
    let mut labels = 0;
    for Drawn { run, charts, .. } in DRAWN.iter() {
        for chart in charts {
            let document = Document::parse(chart).unwrap();
            labels += check(run, document.root_element(), &mut faults);
        }
    }
    assert!(labels > 5_000, "{labels}");
    let count = faults.len();
    faults.truncate(30);
    assert!(faults.is_empty(), "{count}:\n{}", faults.join("\n"));
}

/// Checks a chart; returns the number of its texts.
fn check(run: &str, svg: Node<'_, '_>, faults: &mut Vec<String>) -> usize {
    let title = svg.children().find(|node| node.has_tag_name("title"));
    let title = title.and_then(|node| node.text()).unwrap_or_default();
    let view: Vec<f64> = svg
        .attribute("viewBox")
        .unwrap()
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let drawn: Vec<Node<'_, '_>> = svg.children().filter(Node::is_element).collect();
    let texts: Vec<(Node<'_, '_>, Area)> = drawn
        .iter()
        .filter(|node| node.has_tag_name("text"))
        .map(|node| (*node, area_of_text(*node)))
        .collect();
    let mut fault = |node: Node<'_, '_>, what: String| {
        let text = node.text().unwrap_or_default();
        faults.push(format!("{run}, {title}: `{text}` {what}"));
    };
    for (index, (text, area)) in texts.iter().enumerate() {
        let inside = area.left >= -ROUNDING
            && area.right <= WIDTH + ROUNDING
            && area.top >= view[1] - ROUNDING
            && area.bottom <= view[1] + view[3] + ROUNDING;
        if !inside {
            fault(*text, format!("leaves the chart: {area:?}"));
        }
        for (other, other_area) in &texts[index + 1..] {
            if area.overlaps(*other_area) {
                fault(
                    *text,
                    format!("covers `{}`", other.text().unwrap_or_default()),
                );
            }
        }
        for node in &drawn {
            let is_ground = has_class(*node, "grid") || has_class(*node, "axis");
            let is_area = has_class(*node, "area") || has_class(*node, "lost-area");
            match node.tag_name().name() {
                // A halo interrupts the grid.
                "line" | "polyline" if is_area || (is_ground && has_class(*text, "halo")) => {}
                "line" | "polyline" => {
                    let points = points(*node);
                    let mut pairs = points.windows(2);
                    if pairs.any(|pair| area.is_crossed_by(pair[0], pair[1])) {
                        fault(*text, format!("is crossed by a {}", class(*node)));
                    }
                }
                // Only what is made to be read on a figure is on one.
                "rect" | "path" if !class(*text).starts_with("on-") => {
                    let figure = if node.has_tag_name("path") {
                        area_of_path(*node)
                    } else {
                        area_of_rect(*node)
                    };
                    if area.overlaps(figure) && !has_class(*node, "ground") {
                        fault(*text, format!("covers a {}", class(*node)));
                    }
                }
                _ => {}
            }
        }
    }
    texts.len()
}

/// A phone of 400 px shows the left part of a chart first: page.css scales charts to 52rem there.
#[test]
fn a_narrow_screen_shows_the_first_bar_of_every_chart() {
    // Less the margins of the page, in units of the chart.
    const SHOWN: f64 = (400.0 - 2.0 * 24.0) * WIDTH / (52.0 * 16.0);
    // As much of it as can be seen.
    const SEEN: f64 = 12.0;
    let mut faults = Vec::new();
    for Drawn { run, charts, .. } in DRAWN.iter() {
        for chart in charts {
            let document = Document::parse(chart).unwrap();
            let svg = document.root_element();
            // Bars: the place of a point on an axis of numbers is its value.
            let bars = svg
                .children()
                .filter(|node| shown(*node).is_some() && node.has_tag_name("rect"));
            let first = bars.map(|bar| number(bar, "x")).reduce(f64::min);
            if first.is_some_and(|first| first + SEEN > SHOWN) {
                let title = svg.children().find_map(|node| node.text());
                faults.push(format!("{run}, {}: {first:?}", title.unwrap_or_default()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_pointer_on_a_figure_shows_its_device_setting_and_unit() {
    for Drawn { run, duts, charts } in DRAWN.iter() {
        for chart in charts {
            let document = Document::parse(chart).unwrap();
            let svg = document.root_element();
            let title = svg
                .children()
                .find_map(|node| node.text())
                .unwrap_or_default();
            // Of batches of cards a bar is a class of devices.
            let is_batch = title.starts_with("Time without failure");
            let shapes = svg.descendants().filter(|node| {
                let is_figure = node.has_tag_name("rect") || node.has_tag_name("path");
                let has_color = class(*node).contains("fill-") || class(*node).contains("stroke-");
                is_figure && has_color && !has_class(*node, "area")
            });
            // The legend's keys are drawn last, and name their devices beside them.
            let (titled, keys): (Vec<_>, Vec<_>) = shapes.partition(|node| shown(*node).is_some());
            for node in &titled {
                let text = &shown(*node).unwrap();
                let (device, rest) = text.split_once(", ").unwrap_or((text, ""));
                // Of a series it is the part that all its devices' names begin with.
                let is_known = duts
                    .iter()
                    .any(|dut| device.starts_with(dut) || dut.starts_with(device));
                let has_figure = rest.contains(|c: char| c.is_ascii_digit());
                // Hostile names are printed as far as they are harmless.
                let is_known = is_known || run.starts_with("hostile");
                assert!(
                    is_batch || (is_known && has_figure),
                    "{run}, {title}: {text}"
                );
            }
            let names = svg
                .children()
                .filter(|node| node.has_tag_name("text"))
                .count();
            assert!(
                keys.len() <= 2 * names,
                "{run}, {title}: figures without a title"
            );
            let first_key = keys.first().map_or(usize::MAX, |node| node.range().start);
            let last_figure = titled.last().map_or(0, |node| node.range().start);
            assert!(
                last_figure < first_key,
                "{run}, {title}: a figure without a title"
            );
        }
    }
}

/// The legend of each chart of a dozen devices distinguishes them without colour.
#[test]
fn twelve_devices_differ_in_print_without_colour() {
    let journal = fixture::dozen();
    let mut legends = 0;
    for chart in charts(&journal) {
        let document = Document::parse(&chart).unwrap();
        let svg = document.root_element();
        let keys = svg.children().filter(|node| {
            let untitled = !node.children().any(|child| child.has_tag_name("title"));
            node.has_tag_name("path") && class(*node).starts_with("fill-") && untitled
        });
        let shape = |node: Node<'_, '_>| {
            // The outline relative to where it begins.
            let data = node.attribute("d").unwrap();
            let numbers = data.split(|c: char| !"-.0123456789".contains(c));
            let numbers: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
            let relative = numbers.iter().enumerate().map(|(index, value)| {
                let begin = numbers[index % 2];
                format!("{:.0} ", value - begin)
            });
            let arcs = if data.contains('a') { "arc" } else { "" };
            format!("{arcs}{}", relative.collect::<String>())
        };
        let shapes: Vec<String> = keys.map(shape).collect();
        if shapes.len() < 12 {
            continue;
        }
        legends += 1;
        let mut distinct = shapes.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), shapes.len(), "{shapes:?}");
    }
    assert!(legends >= 3, "{legends}");
}

/// The percentiles in a chart's words and those of the table beside it, of pooled repeats that
/// differ: their pooled median is not the mean of their medians.
#[test]
fn chart_and_table_give_the_same_percentiles() {
    use journal::record::{Figures, Outcome};
    let mut journal = fixture::quick();
    for trial in &mut journal.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else {
            continue;
        };
        if let Figures::Latency(latency) = &mut measured.figures {
            // The last repeat is slower by half.
            let slower = if trial.repeat == 3 { 3 } else { 2 };
            for time in &mut latency.round_trips_ns {
                *time = *time * slower / 2;
            }
        }
    }
    let (_, page) = parse(&journal);
    let table = table(&page, "Round-trip time by ping");
    let column = |title: &str| table[0].iter().position(|cell| cell == title).unwrap();
    let chart = charts(&journal)
        .into_iter()
        .find(|chart| chart.contains("Round-trip time by percentile"))
        .unwrap();
    for row in &table[1..] {
        for (title, name) in [
            ("p50", "p50"),
            ("p90", "p90"),
            ("p99", "p99"),
            ("Max", "max"),
        ] {
            let wanted = format!("{name} {}", row[column(title)]);
            assert!(
                chart.contains(&wanted),
                "{wanted} is not in the chart: {row:?}"
            );
        }
    }
    let by_repeat = column("p50 by repeat");
    assert_ne!(
        table[1][column("p50")],
        table[1][by_repeat].split(" ±").next().unwrap()
    );
}

/// Two boxes and a machine have their power in one panel.
#[test]
fn a_line_of_readings_shows_the_mean_of_its_own_device() {
    let all = charts(&fixture::monitored()).concat();
    for words in [
        "gw1: power 36.6 W on average",
        "gw2: power 40.6 W on average",
        "machine: power 140 W on average",
    ] {
        assert!(all.contains(words), "{words}");
    }
}

/// The chart of a run whose title begins so, and the positions of its lines of a class.
fn lines_of(journal: &Journal, title: &str, class_name: &str) -> Vec<[(f64, f64); 2]> {
    let all = charts(journal);
    let begins = format!("-title\">{title}");
    let chart = all.iter().find(|chart| chart.contains(&begins)).unwrap();
    let document = Document::parse(chart).unwrap();
    let lines = document.root_element().children();
    let lines = lines.filter(|node| node.has_tag_name("line") && has_class(*node, class_name));
    lines
        .map(|line| <[_; 2]>::try_from(points(line)).unwrap())
        .collect()
}

#[test]
fn a_number_without_a_figure_has_no_tick_beyond_the_axis() {
    let mut journal = fixture::scaling();
    for trial in &mut journal.trials {
        if trial.cell.ends_with("cipherbench-w20") {
            let reason = "out of memory".to_owned();
            trial.outcome = journal::record::Outcome::Failed { reason };
        }
    }
    let grid = lines_of(&journal, "Throughput by workers", "grid");
    let is_tick = |[from, to]: &[(f64, f64); 2]| (from.0 - to.0).abs() < ROUNDING;
    let (ticks, across): (Vec<_>, Vec<_>) = grid.into_iter().partition(is_tick);
    let end = across[0][1].0;
    assert_eq!(ticks.len(), 5, "1, 2, 4, 8 and 14 workers: {ticks:?}");
    assert!(ticks.iter().all(|[from, _]| from.0 <= end), "{ticks:?}");
}

#[test]
fn a_whisker_longer_than_its_bar_ends_at_the_axis() {
    use journal::record::{Figures, Outcome};
    let mut journal = fixture::quick();
    for trial in &mut journal.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else {
            continue;
        };
        // The mean of the repeats is a third of the last one, so twice as far from it as from 0.
        if let Figures::Transfer(transfer) = &mut measured.figures
            && transfer.datagrams.is_none()
            && trial.repeat < 3
        {
            transfer
                .intervals
                .iter_mut()
                .for_each(|one| one.bytes /= 50);
            transfer.received_bytes = transfer.intervals.iter().map(|one| one.bytes).sum();
            transfer.sent_bytes = transfer.received_bytes;
        }
    }
    let title = "TCP payload throughput by MTU";
    let axis = lines_of(&journal, title, "axis")[0][0].1;
    let whiskers = lines_of(&journal, title, "whisker");
    assert!(!whiskers.is_empty());
    for [from, to] in whiskers {
        assert!(from.1.max(to.1) <= axis + ROUNDING, "{from:?} {to:?}");
    }
}

//! A quantity of one cell over the runs of an archive: a mark for each run, the means between
//! changes, and the changes.

use super::label::{Anchor, Spot};
use super::scale::{Axis, Linear};
use super::svg::{Key, Svg};
use super::{Area, plot};
use crate::kit::format::Scale;
use maud::Markup;
use stats::Quantity;
use std::fmt::Write;

const HEIGHT: f64 = 300.0;
/// Top, right, bottom, left of the plot.
const MARGINS: [f64; 4] = [14.0, 14.0, 40.0, 64.0];
const TICKS: f64 = 5.0;
/// Share of the values' range left free above and below.
const FREE: f64 = 0.08;
/// With more runs, large marks would overlap.
const LARGE_MARKS_MAX: usize = 100;
const STYLE: usize = 1;

/// A quantity over runs, in their order.
#[derive(Debug, Clone)]
pub struct Course {
    /// Unique in the page.
    pub id: String,
    /// Title for screen readers.
    pub title: String,
    /// The quantity.
    pub quantity: Quantity,
    /// The runs.
    pub points: Vec<CoursePoint>,
    /// The changes of the quantity, in order.
    pub changes: Vec<CourseChange>,
}

/// A run.
#[derive(Debug, Clone)]
pub struct CoursePoint {
    /// The quantity in this run.
    pub value: f64,
    /// The smallest and the largest repeat, if known.
    pub spread: Option<(f64, f64)>,
    /// Its date, for the axis.
    pub date: String,
    /// The tooltip, which identifies the run.
    pub hover: String,
}

/// A change between two runs.
#[derive(Debug, Clone)]
pub struct CourseChange {
    /// Index of the first run after it; at least 1.
    pub at: usize,
    /// Mean of the runs before it, back to the change before.
    pub before: f64,
    /// Mean of the runs from it on, up to the next change.
    pub after: f64,
    /// Size of the change, in words.
    pub label: String,
}

/// Draws a course. Empty without a run.
#[must_use]
pub fn course(course: &Course) -> Markup {
    let mut svg = Svg::new(&*course.id);
    let values = || course.points.iter().map(|point| point.value);
    // Spreads are drawn as whiskers, so the axis must contain them, not only the values.
    let ends = |point: &CoursePoint| point.spread.unwrap_or((point.value, point.value));
    let low = values().chain(course.points.iter().map(|point| ends(point).0));
    let high = values().chain(course.points.iter().map(|point| ends(point).1));
    let low = low.fold(f64::INFINITY, f64::min);
    let high = high.fold(f64::NEG_INFINITY, f64::max);
    // Without a run, the folds return their infinite initial values.
    if !low.is_finite() || !high.is_finite() {
        return Markup::default();
    }
    // Without scatter, leave a tenth of the value on both sides.
    let free = if high > low {
        FREE * (high - low)
    } else {
        0.1 * high.abs()
    };
    // The axis does not begin at 0: marks, unlike bars, have no length to compare.
    let axis = Linear::between(low - free, high + free, TICKS, scale(course.quantity, high));
    let area = plot(HEIGHT, MARGINS);
    // Each run is in the middle of an equal slot, so that a change has a place between two runs.
    let x = |at: f64| area.x_at((at + 0.5) / course.points.len() as f64);
    let y = |value: f64| area.y_at(axis.share(value));
    svg.y_axis(area, &axis, axis.unit());
    dates(&mut svg, area, course);

    let line: Vec<(f64, f64)> = (0_u32..)
        .zip(values())
        .map(|(at, value)| (x(f64::from(at)), y(value)))
        .collect();
    // Below the marks, which have the tooltips.
    svg.polyline(&format!("trace stroke-{STYLE}"), &line, "");
    let radius = if line.len() > LARGE_MARKS_MAX {
        1.6
    } else {
        3.4
    };
    for (place, point) in line.iter().zip(&course.points) {
        let mut words = format!("{}: {}", point.hover, course.quantity.print(point.value));
        if let Some((low, high)) = point.spread.filter(|(low, high)| low < high) {
            let (low, high) = (course.quantity.print(low), course.quantity.print(high));
            let _ = write!(words, "; repeats from {low} to {high}");
        }
        // Drawn before the mark, so below it.
        if let Some((low, high)) = point.spread {
            svg.whisker(place.0, [y(high), y(low)], radius);
        }
        svg.mark("fill", STYLE, *place, radius, &words);
    }
    // Each change has a line between its runs, the means on both sides, and a label.
    for (nth, change) in course.changes.iter().enumerate() {
        // Half a slot before the first run after the change.
        let between = x(change.at as f64 - 0.5);
        svg.line("limit", (between, area.y), (between, area.bottom()));
        // A mean applies up to the neighbouring change, or to the end of the course. Between two
        // changes both draw the same line.
        let start = nth
            .checked_sub(1)
            .map_or(0, |before| course.changes[before].at);
        let end = course
            .changes
            .get(nth + 1)
            .map_or(course.points.len(), |next| next.at);
        for (from, to, mean) in [
            (start, change.at, change.before),
            (change.at, end, change.after),
        ] {
            // A fifth of a slot remains free at both ends, so that two means do not touch.
            let ends = (x(from as f64 - 0.3), x(to as f64 - 0.7));
            svg.line("upper", (ends.0, y(mean)), (ends.1, y(mean)));
        }
        // Changes of adjacent runs are closer than their labels are wide: these need several lines.
        let below = (0..6).map(|step| area.y + 12.0 + 14.0 * f64::from(step));
        let spots = below.flat_map(|y| {
            [
                Spot::start((between + 6.0, y)),
                Spot::end((between - 6.0, y)),
            ]
        });
        svg.label("label strong", spots.collect(), &change.label);
    }
    let mut entries = vec![(Key::Style(STYLE), "a run")];
    if course.points.iter().any(|point| point.spread.is_some()) {
        entries.push((
            Key::Line("whisker"),
            "from its smallest to its largest repeat",
        ));
    }
    if !course.changes.is_empty() {
        entries.push((Key::Line("upper"), "mean of the runs between changes"));
        entries.push((Key::Line("limit"), "change"));
    }
    svg.legend(entries);
    let words = format!(
        "{} runs, from {} to {}; {} changes.",
        course.points.len(),
        course.quantity.print(low),
        course.quantity.print(high),
        course.changes.len()
    );
    svg.finish(&course.title, &words)
}

/// Dates of the first and the last run, and the title of the axis.
fn dates(svg: &mut Svg, area: Area, course: &Course) {
    let below = area.bottom() + 16.0;
    let (Some(first), Some(last)) = (course.points.first(), course.points.last()) else {
        return;
    };
    svg.line(
        "axis",
        (area.x, area.bottom()),
        (area.right(), area.bottom()),
    );
    svg.text("tick", (area.x, below), Anchor::Start, &first.date);
    // A single run is its first and its last: print its date once.
    if course.points.len() > 1 {
        svg.text("tick", (area.right(), below), Anchor::End, &last.date);
    }
    svg.x_title(area, 32.0, "runs in the order in which they were archived");
}

fn scale(quantity: Quantity, highest: f64) -> Scale {
    match quantity {
        Quantity::PayloadThroughput | Quantity::ObjectThroughput => Scale::si(highest, "bit/s"),
        Quantity::PayloadBitsPerCpuSecond | Quantity::IpBitsPerCpuSecond => {
            Scale::si(highest, "bit/CPU-s")
        }
        Quantity::FrameRate => Scale::si(highest, "pps"),
        Quantity::Transactions | Quantity::SetUps | Quantity::Operations => {
            Scale::si(highest, "/s")
        }
        Quantity::Burst => Scale::si(highest, " frames"),
        Quantity::LatencyP50 | Quantity::LatencyP99 | Quantity::Recovery => Scale::time(highest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], changes: &[usize]) -> String {
        let point = |&value: &f64| CoursePoint {
            value,
            spread: (value > 1e3).then_some((0.9 * value, 1.2 * value)),
            date: "2026-11-28".to_owned(),
            hover: "<job>".to_owned(),
        };
        let change = |&at: &usize| CourseChange {
            at,
            before: values[at - 1],
            after: values[at],
            label: "0.500 times".to_owned(),
        };
        let drawn = course(&Course {
            id: "course".to_owned(),
            title: "a < b".to_owned(),
            quantity: Quantity::LatencyP99,
            points: values.iter().map(point).collect(),
            changes: changes.iter().map(change).collect(),
        });
        drawn.into_string()
    }

    #[test]
    fn each_run_has_its_mark_and_each_change_its_line() {
        let text = of(&[2e5, 2.1e5, 2e5, 1e5, 1.1e5, 1e5], &[3]);
        let read = roxmltree::Document::parse(&text).unwrap();
        let of_class = |class: &str| {
            let nodes = read.descendants();
            nodes
                .filter(|node| node.attribute("class") == Some(class))
                .count()
        };
        // One of each line is in the legend.
        assert_eq!((of_class("limit"), of_class("upper")), (2, 3));
        assert_eq!(of_class("fill-1"), 6 + 2);
        assert!(text.contains("&lt;job&gt;: 200 µs; repeats from 180 µs to 240 µs"));
        // The line and both ends of each.
        assert_eq!(of_class("whisker"), 3 * 6 + 1);
        assert!(
            text.contains("0.500 times") && !text.contains("NaN"),
            "{text}"
        );
    }

    #[test]
    fn one_run_or_equal_ones_are_drawn_and_none_is_not() {
        assert_eq!(of(&[], &[]), "");
        for values in [&[5.0][..], &[5.0, 5.0, 5.0], &[0.0, 0.0]] {
            let text = of(values, &[]);
            roxmltree::Document::parse(&text).unwrap();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}

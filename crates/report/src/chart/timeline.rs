//! Small multiples: throughput over the time of each trial, a panel per point, a line per repeat.

use super::scale::Linear;
use super::{Anchor, Area, LEGEND_HEIGHT, Svg, WIDTH};
use crate::format::Scale;
use crate::layout::{Point, Run, Set};
use journal::record::{Interval, Outcome};
use maud::Markup;

/// Panels in a row, at most.
const COLUMNS: usize = 4;
const PANEL_HEIGHT: f64 = 128.0;
/// Around a panel's plot: title above, seconds below, numbers left of the first.
const ABOVE: f64 = 26.0;
const BELOW: f64 = 30.0;
const LEFT: f64 = 46.0;
const GAP: f64 = 16.0;
/// Steps of one line; longer timelines are averaged down to this.
const MAX_STEPS: usize = 240;

/// One trial's timeline.
struct Line<'a> {
    color: usize,
    tooltip: String,
    steps: Vec<Step>,
    point: &'a str,
}

/// Payload bit/s between two moments in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    start_s: f64,
    end_s: f64,
    bps: f64,
}

/// The chart of a set; `None` when no trial has a timeline.
pub(crate) fn draw(run: &Run<'_>, set: &Set<'_>, id: &str) -> Option<Markup> {
    let names: Vec<String> = set.points.iter().map(|point| set.name_of(point)).collect();
    let lines: Vec<Line<'_>> = set
        .points
        .iter()
        .zip(&names)
        .flat_map(|(point, name)| lines(run, point, name))
        .collect();
    let steps = || lines.iter().flat_map(|line| &line.steps);
    let highest = steps().map(|step| step.bps).fold(0.0, f64::max);
    let end_s = steps().map(|step| step.end_s).fold(0.0, f64::max);
    if lines.is_empty() || end_s <= 0.0 {
        return None;
    }
    let rates = Linear::si(highest, 3.0, "bit/s");
    // One row where it fits; else a row per MTU where that fits.
    let columns = match names.len() {
        few if few <= COLUMNS => few,
        _ => set.cores().len().clamp(2, COLUMNS),
    };
    let rows = names.len().div_ceil(columns);
    let width = (WIDTH - LEFT - GAP * (columns - 1) as f64) / columns as f64;
    let times = Linear::new(end_s, (width / 45.0).min(6.0), Scale::plain());

    let mut svg = Svg::new(
        id,
        LEGEND_HEIGHT + rows as f64 * (ABOVE + PANEL_HEIGHT + BELOW),
    );
    let legend: Vec<(String, &str)> = set
        .duts
        .iter()
        .map(|dut| (format!("fill-{}", run.color(dut)), *dut))
        .collect();
    svg.legend(&legend);
    for (index, name) in names.iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let plot = Area {
            x: LEFT + column as f64 * (width + GAP),
            y: LEGEND_HEIGHT + ABOVE + row as f64 * (ABOVE + PANEL_HEIGHT + BELOW),
            width,
            height: PANEL_HEIGHT,
        };
        frame(&mut svg, plot, name, &rates, &times, column == 0);
        for line in lines.iter().filter(|line| line.point == *name) {
            trace(&mut svg, plot, line, &rates, &times);
        }
    }
    let description = format!(
        "{} panels with one line per repeat, from 0 to {} {}, over {end_s:.1} s.",
        names.len(),
        Scale::si(highest, "bit/s").number(highest),
        rates.unit()
    );
    let title = format!("{} payload throughput over time", set.protocol.name());
    Some(svg.finish(&title, &description))
}

fn frame(svg: &mut Svg, plot: Area, name: &str, rates: &Linear, times: &Linear, first: bool) {
    svg.text("label strong", (plot.x, plot.y - 10.0), Anchor::Start, name);
    if first {
        svg.text(
            "tick",
            (plot.x - 7.0, plot.y - 10.0),
            Anchor::End,
            rates.unit(),
        );
    }
    for (value, label) in rates.ticks() {
        let y = plot.bottom() - plot.height * rates.share(value);
        svg.line(
            if value > 0.0 { "grid" } else { "axis" },
            (plot.x, y),
            (plot.right(), y),
        );
        if first {
            svg.text("tick", (plot.x - 7.0, y + 4.0), Anchor::End, &label);
        }
    }
    let ticks = times.ticks();
    for (index, (value, label)) in ticks.iter().enumerate() {
        let x = plot.x + plot.width * times.share(*value);
        let last = index + 1 == ticks.len();
        let label = if last {
            format!("{label} s")
        } else {
            label.clone()
        };
        let anchor = match index {
            0 => Anchor::Start,
            _ if last => Anchor::End,
            _ => Anchor::Middle,
        };
        svg.line("axis", (x, plot.bottom()), (x, plot.bottom() + 4.0));
        svg.text("tick", (x, plot.bottom() + 17.0), anchor, &label);
    }
}

/// Steps, not slopes: an interval's rate is a mean over it.
fn trace(svg: &mut Svg, plot: Area, line: &Line<'_>, rates: &Linear, times: &Linear) {
    let points: Vec<(f64, f64)> = line
        .steps
        .iter()
        .flat_map(|step| {
            let y = plot.bottom() - plot.height * rates.share(step.bps);
            [step.start_s, step.end_s].map(|second| (plot.x + plot.width * times.share(second), y))
        })
        .collect();
    svg.polyline(
        &format!("trace stroke-{}", line.color),
        &points,
        &line.tooltip,
    );
}

/// The timelines of a point's measured trials.
fn lines<'n>(run: &Run<'_>, point: &Point<'_>, name: &'n str) -> Vec<Line<'n>> {
    let shown = point.cells.iter().filter(|cell| cell.bulk.is_some());
    shown
        .flat_map(|cell| {
            let color = run.color(&cell.dut);
            run.trials(cell).filter_map(move |trial| {
                let Outcome::Measured(measured) = &trial.outcome else {
                    return None;
                };
                let steps = steps(&measured.transfer.as_ref()?.intervals);
                let tooltip = format!("{}, repeat {}", cell.dut, trial.repeat);
                (!steps.is_empty()).then_some(Line {
                    color,
                    tooltip,
                    steps,
                    point: name,
                })
            })
        })
        .collect()
}

/// Rates of the intervals, averaged down where there are too many to draw.
fn steps(intervals: &[Interval]) -> Vec<Step> {
    let merge = intervals.len().div_ceil(MAX_STEPS).max(1);
    let merged = intervals.chunks(merge).filter_map(|chunk| {
        let (start_ns, end_ns) = (chunk.first()?.start_ns, chunk.last()?.end_ns);
        let bytes: u64 = chunk.iter().map(|interval| interval.bytes).sum();
        let duration_s = end_ns
            .checked_sub(start_ns)
            .filter(|duration| *duration > 0)? as f64
            / 1e9;
        Some(Step {
            start_s: start_ns as f64 / 1e9,
            end_s: end_ns as f64 / 1e9,
            bps: 8.0 * bytes as f64 / duration_s,
        })
    });
    merged.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_timelines_are_averaged_and_keep_their_bytes() {
        let intervals: Vec<Interval> = (0..1_000)
            .map(|index| Interval {
                start_ns: index * 1_000,
                end_ns: (index + 1) * 1_000,
                bytes: index,
            })
            .collect();
        let steps = steps(&intervals);
        assert!(steps.len() <= MAX_STEPS, "{}", steps.len());
        let bytes: f64 = steps
            .iter()
            .map(|step| step.bps * (step.end_s - step.start_s) / 8.0)
            .sum();
        assert!((bytes - 499_500.0).abs() < 1e-3, "{bytes}");
    }

    #[test]
    fn an_interval_without_length_is_left_out() {
        assert_eq!(
            steps(&[Interval {
                start_ns: 5,
                end_ns: 5,
                bytes: 9
            }]),
            []
        );
    }
}

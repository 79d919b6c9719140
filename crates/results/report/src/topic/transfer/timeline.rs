//! Small multiples: throughput over a trial's time, one panel per point, one line per repeat.

use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::time::{TimePlot, Times};
use crate::kit::chart::{Anchor, Area, Key, LEGEND_HEIGHT, Svg, WIDTH};
use crate::kit::format::Scale;
use crate::layout::evidence::measured;
use crate::layout::{Point, Run, Set};
use crate::order::largest;
use journal::record::Interval;
use maud::Markup;

/// Maximum panels in a row.
const COLUMNS: usize = 4;
const PANEL_HEIGHT: f64 = 128.0;
/// Space around a panel's plot: title above, seconds below, numbers at the left.
const ABOVE: f64 = 26.0;
const BELOW: f64 = 30.0;
const LEFT: f64 = 46.0;
/// Gap between panels that share their numbers.
const GAP: f64 = 16.0;
/// Maximum steps of a line; longer timelines are averaged.
const MAX_STEPS: usize = 240;

/// The lines of one point.
struct Panel {
    name: String,
    payload: Option<u32>,
    lines: Vec<Line>,
}

/// One trial's timeline.
struct Line {
    color: usize,
    tooltip: String,
    steps: Vec<Step>,
}

/// Payload bit rate between two times in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    start_s: f64,
    end_s: f64,
    bps: f64,
}

/// The chart of a set; `None` if no trial has a timeline.
pub(super) fn draw(run: &Run<'_>, set: &Set<'_>, id: &str) -> Option<Markup> {
    let panels: Vec<Panel> = set
        .points
        .iter()
        .map(|point| Panel::of(run, set, point))
        .collect();
    let steps = panels.iter().flat_map(Panel::steps);
    let end_s = largest(steps.map(|step| step.end_s));
    if end_s <= 0.0 {
        return None;
    }
    // Rates of different datagram sizes differ widely, so each size has a separate scale.
    let own_scales = set.payloads().len() > 1;
    let grid = Grid::new(set, panels.len(), own_scales);
    // A tick and its label need about 45 units of width.
    let times = &Times::seconds(end_s, (grid.width / 45.0).min(6.0));

    let mut svg = Svg::new(id);
    let duts = set.duts.iter();
    svg.legend(duts.map(|dut| (Key::Style(run.color(dut)), *dut)));
    for (index, panel) in panels.iter().enumerate() {
        // One scale for panels of one size, so that they can be compared.
        let alike = panels.iter().filter(|other| other.payload == panel.payload);
        let highest = largest(alike.flat_map(Panel::steps).map(|step| step.bps));
        let rates = Linear::si(highest, 3.0, "bit/s");
        let (plot, axis) = (grid.plot(index), &rates);
        // Panels of a row have their numbers in common if they have a common scale.
        let numbered = own_scales || index % grid.columns == 0;
        frame(&mut svg, plot, &panel.name, axis, times, numbered);
        let plot = TimePlot { plot, times, axis };
        for line in &panel.lines {
            let steps = line.steps.iter();
            let corners = plot.corners(steps.map(|step| (step.start_s, step.end_s, step.bps)));
            let class = format!("trace stroke-{}", line.color);
            svg.polyline(&class, &corners, &line.tooltip);
            // A mark at the end of each line, so that colour does not distinguish lines alone.
            if let Some(end) = corners.last() {
                svg.mark("fill", line.color, *end, 3.6, &line.tooltip);
            }
        }
    }
    let lines: usize = panels.iter().map(|panel| panel.lines.len()).sum();
    let description = format!(
        "{} panels with {lines} lines, one per repeat, over {end_s:.1} s: {}.",
        panels.len(),
        set.common
    );
    let title = format!("{} payload throughput over time", set.protocol.name());
    Some(svg.finish(&title, &description))
}

/// Positions of the panels.
struct Grid {
    columns: usize,
    width: f64,
    gap: f64,
}

impl Grid {
    fn new(set: &Set<'_>, panels: usize, own_scales: bool) -> Self {
        // One row if the panels fit; otherwise one row per MTU if that fits.
        let columns = match panels {
            few if few <= COLUMNS => few,
            _ => set.cores().len().clamp(2, COLUMNS),
        };
        let gap = if own_scales { GAP + LEFT } else { GAP };
        let width = (WIDTH - LEFT - gap * (columns - 1) as f64) / columns as f64;
        Self {
            columns,
            width,
            gap,
        }
    }

    fn plot(&self, index: usize) -> Area {
        let (row, column) = ((index / self.columns) as f64, (index % self.columns) as f64);
        let x = LEFT + column * (self.width + self.gap);
        let y = LEGEND_HEIGHT + ABOVE + row * (ABOVE + PANEL_HEIGHT + BELOW);
        Area::new(x, y, self.width, PANEL_HEIGHT)
    }
}

fn frame(svg: &mut Svg, plot: Area, name: &str, rates: &Linear, times: &Times, numbered: bool) {
    svg.text("label strong", (plot.x, plot.y - 10.0), Anchor::Start, name);
    if numbered {
        let position = (plot.x - 7.0, plot.y - 10.0);
        svg.text("tick", position, Anchor::End, rates.unit());
    }
    for (value, label) in rates.ticks() {
        let y = plot.y_at(rates.share(value));
        let class = if value > 0.0 { "grid" } else { "axis" };
        if numbered {
            svg.y_tick(class, plot, y, &label)
        } else {
            svg.line(class, (plot.x, y), (plot.right(), y))
        }
    }
    let ticks = times.ticks(plot, " s");
    for (index, (x, label)) in ticks.iter().enumerate() {
        // The first and the last label stay within the panel, as the next one has labels too.
        let anchor = match index {
            0 => Anchor::Start,
            _ if index + 1 == ticks.len() => Anchor::End,
            _ => Anchor::Middle,
        };
        svg.line("axis", (*x, plot.bottom()), (*x, plot.bottom() + 4.0));
        svg.text("tick", (*x, plot.bottom() + 17.0), anchor, label);
    }
}

impl Panel {
    /// The timelines of a point's measured trials.
    fn of(run: &Run<'_>, set: &Set<'_>, point: &Point<'_>) -> Self {
        let shown = point.cells.iter().filter(|cell| cell.bulk().is_some());
        let name = &set.name_of(point);
        let lines = shown.flat_map(|cell| {
            let color = run.color(&cell.dut);
            run.trials(cell).filter_map(move |trial| {
                let steps = steps(&measured(trial)?.transfer()?.intervals);
                let highest = steps.iter().map(|step| step.bps);
                let lowest = highest.clone().fold(f64::INFINITY, f64::min);
                let highest = highest.fold(0.0, f64::max);
                let scale = Scale::si(highest, "bit/s");
                let tooltip = format!(
                    "{}, {name}, repeat {}: {} to {}",
                    cell.dut,
                    trial.repeat,
                    scale.number(lowest),
                    scale.value(highest)
                );
                (!steps.is_empty()).then_some(Line {
                    color,
                    tooltip,
                    steps,
                })
            })
        });
        Self {
            name: name.clone(),
            payload: point.payload,
            lines: lines.collect(),
        }
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.lines.iter().flat_map(|line| &line.steps)
    }
}

/// Rates of the intervals, averaged if there are too many to draw.
fn steps(intervals: &[Interval]) -> Vec<Step> {
    let merge = intervals.len().div_ceil(MAX_STEPS).max(1);
    let merged = intervals.chunks(merge).filter_map(|chunk| {
        let (start_ns, end_ns) = (chunk.first()?.start_ns, chunk.last()?.end_ns);
        let bytes: u64 = chunk.iter().map(|interval| interval.bytes).sum();
        // An interval of a damaged journal may have no length, or end before its start.
        let duration_ns = end_ns
            .checked_sub(start_ns)
            .filter(|duration| *duration > 0)?;
        Some(Step {
            start_s: start_ns as f64 / 1e9,
            end_s: end_ns as f64 / 1e9,
            bps: 8e9 * bytes as f64 / duration_ns as f64,
        })
    });
    merged.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_timelines_are_averaged_and_keep_their_bytes() {
        let interval = |index: u64| Interval {
            start_ns: index * 1_000,
            end_ns: (index + 1) * 1_000,
            bytes: index,
        };
        let intervals: Vec<Interval> = (0..1_000).map(interval).collect();
        let steps = steps(&intervals);
        assert!(steps.len() <= MAX_STEPS, "{}", steps.len());
        let bytes = steps
            .iter()
            .map(|step| step.bps * (step.end_s - step.start_s) / 8.0);
        let bytes: f64 = bytes.sum();
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

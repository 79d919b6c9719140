//! Round-trip times by percentile.

use super::scale::Log;
use super::{Anchor, Area, Svg, shortened_name};
use crate::format::time_ns;
use crate::layout::{Point, Run, Set};
use maud::Markup;
use stats::CellResult;

const HEIGHT: f64 = 380.0;
/// Room for the names at the lines' ends.
const NAMES: f64 = 150.0;
const PLOT: Area = Area::plot(HEIGHT, [-12.0, NAMES, 46.0, 60.0]);
/// Percentiles on the axis, as the share that lies beyond them.
const TICKS: [(f64, &str); 6] = [
    (1.0, "0"),
    (0.5, "50"),
    (0.1, "90"),
    (0.01, "99"),
    (0.001, "99.9"),
    (0.0001, "99.99"),
];
/// Points of a line.
const STEPS: u32 = 320;
/// Names keep at least this distance.
const NAME_HEIGHT: f64 = 16.0;

/// The chart of one point; `None` when no cell has round trips.
pub(crate) fn draw(run: &Run<'_>, set: &Set<'_>, point: &Point<'_>, id: &str) -> Option<Markup> {
    let cells: Vec<(&CellResult, &[u64])> = point
        .cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.latency()?.round_trips_ns.as_slice())))
        .collect();
    let low = cells.iter().filter_map(|(_, times)| times.first()).min()?;
    let high = cells.iter().filter_map(|(_, times)| times.last()).max()?;
    let most = cells.iter().map(|(_, times)| times.len()).max()?;
    let axis = Log::new(*low as f64, *high as f64);
    let decades = (most as f64).log10().max(1.0);

    let mut svg = Svg::new(id, HEIGHT);
    frame(&mut svg, &axis, decades);
    let mut names = Vec::new();
    for (cell, times) in &cells {
        let color = run.color(&cell.dut);
        let end = curve(&mut svg, &axis, decades, times, color, &cell.dut);
        marks(&mut svg, &axis, decades, times, color);
        names.push((end, color, cell.dut.as_str()));
    }
    labels(&mut svg, names);
    let described: Vec<String> = cells
        .iter()
        .map(|(cell, times)| describe(cell, times))
        .collect();
    let description = format!(
        "{}, {}. {}.",
        set.name_of(point),
        set.common,
        described.join("; ")
    );
    Some(svg.finish("Round-trip time by percentile", &description))
}

fn describe(cell: &CellResult, times: &[u64]) -> String {
    let quantiles = [(0.5, "p50"), (0.1, "p90"), (0.01, "p99")];
    let parts =
        quantiles.map(|(beyond, name)| format!("{name} {}", time_ns(at(times, beyond) as f64)));
    format!("{}: {}", cell.dut, parts.join(", "))
}

fn frame(svg: &mut Svg, axis: &Log, decades: f64) {
    svg.y_times(PLOT, axis);
    for (beyond, label) in TICKS {
        let decade = -f64::log10(beyond);
        if decade <= decades + 0.05 {
            let x = place(decade, decades);
            svg.line("grid", (x, PLOT.y), (x, PLOT.bottom()));
            svg.text("tick", (x, PLOT.bottom() + 17.0), Anchor::Middle, label);
        }
    }
    svg.line(
        "axis",
        (PLOT.x, PLOT.bottom()),
        (PLOT.right(), PLOT.bottom()),
    );
    svg.x_title(
        PLOT,
        38.0,
        "percentile: per cent of replies that were no slower",
    );
}

/// Each nine takes the same width.
fn place(decade: f64, decades: f64) -> f64 {
    PLOT.x_at((decade / decades).clamp(0.0, 1.0))
}

/// The round trip that a share of `beyond` exceeds, by nearest rank.
fn at(sorted: &[u64], beyond: f64) -> u64 {
    let rank = ((1.0 - beyond) * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn height(axis: &Log, value_ns: u64) -> f64 {
    PLOT.y_at(axis.share(value_ns.max(1) as f64))
}

/// Draws the line of a cell; returns where it ends.
fn curve(
    svg: &mut Svg,
    axis: &Log,
    decades: f64,
    times: &[u64],
    color: usize,
    dut: &str,
) -> (f64, f64) {
    let own = (times.len() as f64).log10().max(1.0).min(decades);
    let points: Vec<(f64, f64)> = (0..=STEPS)
        .map(|step| {
            let decade = own * f64::from(step) / f64::from(STEPS);
            // The very end is the slowest reply of all.
            let beyond = if step == STEPS {
                0.0
            } else {
                10_f64.powf(-decade)
            };
            (place(decade, decades), height(axis, at(times, beyond)))
        })
        .collect();
    svg.polyline(&format!("curve stroke-{color}"), &points, dut);
    points[points.len() - 1]
}

/// Dots with values at the usual percentiles.
fn marks(svg: &mut Svg, axis: &Log, decades: f64, times: &[u64], color: usize) {
    for (beyond, name) in [(0.5, "p50"), (0.1, "p90"), (0.01, "p99")] {
        if (times.len() as f64) * beyond < 1.0 {
            continue;
        }
        let value = at(times, beyond);
        let (x, y) = (place(-f64::log10(beyond), decades), height(axis, value));
        let text = time_ns(value as f64);
        let (class, tooltip) = (format!("fill-{color}"), format!("{name}: {text}"));
        svg.dot(&class, (x, y), 4.0, &tooltip);
        svg.text("value", (x - 6.0, y - 9.0), Anchor::End, &text);
    }
}

/// The names at the lines' ends, none over another.
fn labels(svg: &mut Svg, mut names: Vec<((f64, f64), usize, &str)>) {
    names.sort_by(|((_, a), ..), ((_, b), ..)| a.total_cmp(b));
    let mut free = PLOT.y;
    for ((x, y), color, name) in names {
        let y = y.max(free);
        free = y + NAME_HEIGHT;
        let class = format!("label strong fill-{color}");
        let (position, name) = ((x + 9.0, y + 4.0), shortened_name(name, NAMES - 9.0));
        svg.text(&class, position, Anchor::Start, &name);
    }
}

//! Throughput by frame size: bars to the lower bound, a mark at the upper one, and above them what
//! the tester and the line could do.

use super::{band_name, devices, legend};
use crate::chart::scale::Linear;
use crate::chart::{Anchor, Area, Svg, absence, text_width};
use crate::format::Scale;
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use crate::tables::frames::{limit_mark, mean_rate};
use maud::Markup;
use stats::{CellResult, GoalResult};

const HEIGHT: f64 = 402.0;
const PLOT: Area = Area::plot(HEIGHT, [42.0, 0.0, 32.0, 56.0]);
const MAX_BAR: f64 = 58.0;
/// Narrower bars have their value turned.
const UPRIGHT_BAR: f64 = 50.0;
/// Narrower bars have their value in the table only.
const TURNED_BAR: f64 = 11.0;
/// Why there is no bar where trials were measured.
const UNBOUNDED: &str = "no lower bound";
/// A line rate this far above everything else is not drawn: it would press the bars flat.
const LINE_RATE_REACH: f64 = 1.25;

/// The chart of a set; `None` when no device has a figure.
pub(crate) fn draw(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let shown = devices(set);
    let shown = if shown.is_empty() {
        set.devices.clone()
    } else {
        shown
    };
    let cells = || set.points.iter().flat_map(|point| &point.cells);
    let highest = cells()
        .filter_map(|cell| goal(cell))
        .filter_map(top)
        .fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let line = |point: &FramePoint<'_>| {
        let rate = run.line_rate(point)? as f64;
        (rate <= LINE_RATE_REACH * highest).then_some(rate)
    };
    let lines = set.points.iter().filter_map(line).fold(highest, f64::max);
    let axis = Linear::si(1.12 * lines, 5.0, "pps");
    let mut svg = Svg::new(id, HEIGHT);
    legend(&mut svg, run, &shown);
    let has_rig = set.devices.iter().any(|device| device.calibration);
    marks(
        &mut svg,
        has_rig,
        set.points.iter().any(|point| line(point).is_some()),
    );
    svg.y_axis(PLOT, &axis, axis.unit());
    let width = PLOT.width / set.points.len() as f64;
    for (index, point) in set.points.iter().enumerate() {
        let x = PLOT.x + width * index as f64;
        let band = Area { x, width, ..PLOT };
        band_name(&mut svg, PLOT, band, &point.name());
        limits(&mut svg, &axis, set, point, band, line(point));
        bars(&mut svg, run, &axis, &shown, point, band);
    }
    let described: Vec<String> = set.rows().map(|(point, cell)| words(point, cell)).collect();
    let description = format!("{}. {}.", set.common, described.join("; "));
    Some(svg.finish("Throughput by frame size", &description))
}

fn goal(cell: &CellResult) -> Option<&GoalResult> {
    cell.frames()?.throughput.as_ref()?.goals.first()
}

/// The highest value that the axis must show.
fn top(goal: &GoalResult) -> Option<f64> {
    let lower = &goal.lower.as_ref()?.frames_per_s;
    let upper = goal
        .upper
        .as_ref()
        .map_or(0.0, |upper| upper.frames_per_s.mean);
    Some((lower.mean + lower.largest_distance).max(upper))
}

fn words(point: &FramePoint<'_>, cell: &CellResult) -> String {
    let figure = match goal(cell).and_then(|goal| goal.lower.as_ref()) {
        Some(lower) => mean_rate(&lower.frames_per_s),
        None => absence(cell, UNBOUNDED).to_owned(),
    };
    format!("{}, {}: {figure}", point.name(), cell.dut)
}

/// Legend of the lines that are drawn, below the devices' swatches.
fn marks(svg: &mut Svg, has_rig: bool, has_line: bool) {
    let mut x = 0.0;
    for (drawn, class, name) in [
        (has_rig, "ceiling", "the tester alone"),
        (has_line, "limit", "line rate"),
    ] {
        if drawn {
            svg.line(class, (x, 29.0), (x + 18.0, 29.0));
            svg.text("label", (x + 24.0, 33.0), Anchor::Start, name);
            x += 24.0 + text_width(name) + 22.0;
        }
    }
}

fn bars(
    svg: &mut Svg,
    run: &Run<'_>,
    axis: &Linear,
    devices: &[Device<'_>],
    point: &FramePoint<'_>,
    band: Area,
) {
    let width = (0.8 * band.width / devices.len() as f64).min(MAX_BAR);
    let start = band.x + (band.width - width * devices.len() as f64) / 2.0;
    for (index, device) in devices.iter().enumerate() {
        let Some(cell) = point.cell(*device) else {
            continue;
        };
        let x = start + width * index as f64;
        let bar = Area::new(x + 1.0, band.y, width - 2.0, band.height);
        match goal(cell).filter(|goal| goal.lower.is_some()) {
            Some(goal) => one(svg, run, axis, cell, goal, bar),
            None => {
                let position = (x + width / 2.0 + 4.0, band.bottom() - 8.0);
                let word = absence(cell, UNBOUNDED);
                svg.turned_text("reason", position, Anchor::Start, word, -90);
            }
        }
    }
}

fn one(
    svg: &mut Svg,
    run: &Run<'_>,
    axis: &Linear,
    cell: &CellResult,
    goal: &GoalResult,
    area: Area,
) {
    let Some(lower) = goal.lower.as_ref().map(|rates| &rates.frames_per_s) else {
        return;
    };
    let height = area.height * axis.share(lower.mean);
    let bar = area.bar(area.bottom() - height, area.width, height);
    let limit = cell.verdict().map_or("", |verdict| verdict.limit.name());
    let tooltip = format!("{}: {} {limit}", cell.id, mean_rate(lower));
    svg.rect(&format!("fill-{}", run.color(&cell.dut)), bar, &tooltip);
    let reach = area.height * axis.share(lower.largest_distance);
    let cap = (0.2 * bar.width).min(6.0);
    svg.whisker((bar.middle(), bar.y), reach, cap);
    let mut above = bar.y - reach;
    if let Some(upper) = &goal.upper {
        let y = area.y_at(axis.share(upper.frames_per_s.mean));
        svg.line("upper", (bar.x, y), (bar.right(), y));
        above = above.min(y);
    }
    let scale = Scale::si(lower.mean, "pps");
    let mark = limit_mark(cell);
    // Values of one chart may have different SI prefixes.
    let unit = scale.unit.trim_end_matches("pps");
    let value = format!("{}{unit}{mark}", scale.number(lower.mean));
    let widths = [UPRIGHT_BAR, TURNED_BAR];
    svg.bar_value("value halo", bar, above - 6.0, widths, &value);
}

/// Lines at the tester's throughput without a device, and at the line rate.
fn limits(
    svg: &mut Svg,
    axis: &Linear,
    set: &FrameSet<'_>,
    point: &FramePoint<'_>,
    band: Area,
    line: Option<f64>,
) {
    let place = |rate: f64| band.y_at(axis.share(rate));
    let ends = (band.x + 0.04 * band.width, band.right() - 0.04 * band.width);
    let rig = set.devices.iter().find(|device| device.calibration);
    let rig = rig.and_then(|device| goal(point.cell(*device)?)?.lower.as_ref());
    if let Some(rig) = rig {
        let y = place(rig.frames_per_s.mean);
        svg.line("ceiling", (ends.0, y), (ends.1, y));
    }
    if let Some(line) = line {
        let y = place(line);
        svg.line("limit", (ends.0, y), (ends.1, y));
    }
}

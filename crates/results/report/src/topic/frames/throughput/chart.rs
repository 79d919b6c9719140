//! Throughput by frame size: bars to the lower bound, a mark at the upper bound, and lines at the
//! limits of the tester and the link.

use crate::kit::chart::grid;
use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::{Area, BAR_MIN, Key, Spot, Svg, absence, band_width, hover, plot};
use crate::kit::format::Scale;
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use crate::order::largest;
use crate::topic::frames::chart::{band_name, devices, legend};
use crate::topic::frames::mean_rate;
use maud::Markup;
use stats::{CellResult, GoalResult, Limit};

const HEIGHT: f64 = 402.0;
const PLOT: Area = plot(HEIGHT, [42.0, 0.0, 32.0, 56.0]);
const MAX_BAR: f64 = 58.0;
/// Share of a size's width taken by its bars.
const BARS: f64 = 0.8;
/// Radius of the marks below the bars.
const MARK: f64 = 4.0;
/// Label for a missing bar although trials were measured.
const UNBOUNDED: &str = "no lower bound";
/// A line rate this far above everything else is not drawn: it would flatten the bars.
const LINE_RATE_REACH: f64 = 1.25;

/// The chart of a set; `None` if no device has a figure.
pub(super) fn draw<'r>(run: &Run<'_>, set: &'r FrameSet<'r>, id: &str) -> Option<Markup> {
    let shown = devices(set);
    // A run may consist of calibration alone.
    let shown = if shown.is_empty() {
        set.devices.clone()
    } else {
        shown
    };
    let cells = || set.points.iter().flat_map(|point| &point.cells);
    let highest = largest(cells().filter_map(|cell| top(goal(cell)?)));
    if highest <= 0.0 {
        return None;
    }
    let names: Vec<String> = set.points.iter().map(FramePoint::name).collect();
    let width = band_width(PLOT, &names, shown.len() as f64 * MAX_BAR / BARS);
    // Too many bars to be readable: a grid shows the same figures.
    if BARS * width / (shown.len() as f64) < BAR_MIN {
        return grid::of_frames(run, set, &shown, id, |cell| {
            Some(&goal(cell)?.lower.as_ref()?.frames_per_s)
        });
    }
    let line = |point: &FramePoint<'_>| {
        let rate = run.line_rate(point)? as f64;
        (rate <= LINE_RATE_REACH * highest).then_some(rate)
    };
    let lines = set.points.iter().filter_map(line).fold(highest, f64::max);
    // More than the highest figure, for the values above the bars.
    let axis = Linear::si(1.12 * lines, 5.0, "pps");
    let mut svg = Svg::new(id);
    legend(&mut svg, run, &shown);
    let has_rig = set.devices.iter().any(|device| device.calibration);
    marks(
        &mut svg,
        has_rig,
        set.points.iter().any(|point| line(point).is_some()),
    );
    svg.y_axis(PLOT, &axis, axis.unit());
    for (index, point) in set.points.iter().enumerate() {
        let x = PLOT.x + width * index as f64;
        let band = Area { x, width, ..PLOT };
        band_name(&mut svg, PLOT, band, &point.name());
        limits(&mut svg, &axis, set, point, band, line(point));
        let setting = format!("{}, {}", point.name(), set.common);
        bars(&mut svg, run, &axis, &shown, point, &setting, band);
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
    Some(lower.max.max(upper))
}

fn words(point: &FramePoint<'_>, cell: &CellResult) -> String {
    let figure = match goal(cell).and_then(|goal| goal.lower.as_ref()) {
        Some(lower) => mean_rate(&lower.frames_per_s),
        None => absence(cell, UNBOUNDED).to_owned(),
    };
    format!("{}, {}: {figure}", point.name(), cell.dut)
}

/// Adds the drawn lines to the legend.
fn marks(svg: &mut Svg, has_rig: bool, has_line: bool) {
    let lines = [
        (has_rig, "ceiling", "the tester alone"),
        (has_line, "limit", "line rate"),
    ];
    // A line that is not drawn is not named.
    let drawn = lines.into_iter().filter(|(drawn, ..)| *drawn);
    svg.legend(drawn.map(|(_, class, name)| (Key::Line(class), name)));
}

/// The limit of a figure, if that is not the device.
fn limit_word(cell: &CellResult) -> &'static str {
    match cell.verdict().map(|verdict| verdict.limit) {
        Some(Limit::TesterLimited) => "tester",
        Some(Limit::LinkLimited) => "link",
        Some(Limit::MachineLimited) => "machine",
        Some(Limit::Inconclusive) => "unsure",
        Some(Limit::DutLimited) | None => "",
    }
}

fn bars(
    svg: &mut Svg,
    run: &Run<'_>,
    axis: &Linear,
    devices: &[Device<'_>],
    point: &FramePoint<'_>,
    setting: &str,
    band: Area,
) {
    let width = (BARS * band.width / devices.len() as f64).min(MAX_BAR);
    let start = band.x + (band.width - width * devices.len() as f64) / 2.0;
    for (index, device) in devices.iter().enumerate() {
        let Some(cell) = point.cell(*device) else {
            continue;
        };
        let x = start + width * index as f64;
        let bar = Area::new(x + 1.0, band.y, width - 2.0, band.height);
        // Marks of narrower bars would overlap.
        if width >= 2.0 * MARK {
            let place = (x + width / 2.0, band.bottom() + 3.0 + MARK);
            let color = run.color(device.dut);
            svg.mark("fill", color, place, MARK, &tooltip(cell, setting));
        }
        match goal(cell).filter(|goal| goal.lower.is_some()) {
            Some(goal) => one(svg, run, axis, cell, goal, setting, bar),
            None => {
                let spot = Spot::turned((x + width / 2.0 + 4.0, band.bottom() - 8.0));
                svg.label("reason", vec![spot], absence(cell, UNBOUNDED));
            }
        }
    }
}

fn tooltip(cell: &CellResult, setting: &str) -> String {
    let lower = goal(cell).and_then(|goal| goal.lower.as_ref());
    let Some(lower) = lower.map(|rates| &rates.frames_per_s) else {
        return format!("{}, {setting}: {}", cell.dut, absence(cell, UNBOUNDED));
    };
    let figure = hover(&cell.dut, setting, &Scale::si(lower.mean, "pps"), lower);
    match cell.verdict() {
        Some(verdict) => format!("{figure}; {}", verdict.limit.name()),
        None => figure,
    }
}

fn one(
    svg: &mut Svg,
    run: &Run<'_>,
    axis: &Linear,
    cell: &CellResult,
    goal: &GoalResult,
    setting: &str,
    area: Area,
) {
    let Some(lower) = goal.lower.as_ref().map(|rates| &rates.frames_per_s) else {
        return;
    };
    let height = area.height * axis.share(lower.mean);
    let bar = area.bar(area.bottom() - height, area.width, height);
    svg.bar(run.color(&cell.dut), bar, &tooltip(cell, setting));
    let [low, high] = [lower.min, lower.max].map(|repeat| area.y_at(axis.share(repeat)));
    let cap = (0.2 * bar.width).min(6.0);
    svg.whisker(bar.middle(), [high, low], cap);
    let mut above = high;
    if let Some(upper) = &goal.upper {
        let y = area.y_at(axis.share(upper.frames_per_s.mean));
        svg.line("upper", (bar.x, y), (bar.right(), y));
        above = above.min(y);
    }
    let scale = Scale::si(lower.mean, "pps");
    // Values of one chart may have different SI prefixes.
    let unit = scale.unit.trim_end_matches("pps");
    let value = format!("{} {unit}", scale.number(lower.mean));
    let (place, pitch) = ((bar.middle(), above - 6.0), bar.width + 2.0);
    svg.bar_value(place, pitch, value.trim_end(), limit_word(cell));
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

//! Values of boxes and machines during a trial: one panel per unit, one line per device.

use crate::kit::chart::scale::Linear;
use crate::kit::chart::time::{TimePlot, Times};
use crate::kit::chart::{Anchor, Area, Key, LEGEND_HEIGHT, Svg, WIDTH};
use crate::kit::format::{Scale, si};
use crate::layout::Run;
use crate::layout::evidence::measured;
use crate::order::{grouped, largest, unique};
use journal::record::{Monitored, Series};
use maud::Markup;
use stats::CellResult;

const LEFT: f64 = 56.0;
const HEIGHT: f64 = 80.0;
/// Height above a panel, for its name.
const ABOVE: f64 = 26.0;
const BELOW: f64 = 30.0;
const MILLI: f64 = 1e3;
/// A gap longer than this many intervals breaks a line.
const BREAK: f64 = 1.5;

/// One device's line in a panel.
struct Line<'a> {
    dut: &'a str,
    device: &'a str,
    style: usize,
    series: &'a Series,
}

/// The chart of a cell's first measured repeat; `None` if nothing was read.
pub(super) fn draw(run: &Run<'_>, cell: &CellResult, id: &str) -> Option<Markup> {
    let mut trials = run.trials(cell).filter_map(measured);
    let read: &Monitored = trials.find_map(|trial| {
        let has_points = |series: &Series| !series.points.is_empty();
        let mut devices = trial.monitored.devices.iter();
        let any = devices.any(|device| device.series.iter().any(has_points));
        any.then_some(&trial.monitored)
    })?;
    // A device has one style in all panels.
    let names = unique(read.devices.iter().map(|device| &*device.name));
    let lines = read.devices.iter().flat_map(|device| {
        let place = names.iter().position(|name| *name == device.name);
        let style = place.unwrap_or(0) + 1;
        device.series.iter().map(move |series| Line {
            dut: &cell.dut,
            device: &device.name,
            style,
            series,
        })
    });
    let lines = lines.filter(|line| !line.series.points.is_empty());
    let panels = grouped(lines.map(|line| ((&*line.series.name, &*line.series.unit), line)));
    let all = || panels.iter().flat_map(|(_, lines)| lines);
    let ends = all().filter_map(|line| line.series.points.last().map(|last| (line, last)));
    // A point is a mean over the interval that begins at its time.
    let end_s = largest(ends.map(|(line, last)| seconds(last.at_ns + line.series.point_ns)));
    let times = Times::new(end_s, 10.0);

    let mut svg = Svg::new(id);
    let styles = names.iter().zip(1..);
    svg.legend(styles.map(|(name, style)| (Key::Style(style), *name)));
    for (index, ((name, unit), lines)) in panels.iter().enumerate() {
        let y = LEGEND_HEIGHT + index as f64 * (ABOVE + HEIGHT + BELOW) + ABOVE;
        let plot = Area::new(LEFT, y, WIDTH - LEFT - 8.0, HEIGHT);
        traffic(&mut svg, plot, read, &times, end_s);
        panel(&mut svg, plot, (name, unit), lines, &times);
        times.draw(&mut svg, plot, &format!(" {}", times.unit));
    }
    let words = panels.iter().map(|((name, unit), lines)| {
        let devices: Vec<_> = lines.iter().map(|line| line.device).collect();
        format!("{name} in {unit} of {}", devices.join(", "))
    });
    let words: Vec<_> = words.collect();
    let description = format!("{} over {end_s:.0} s.", words.join("; "));
    let title = format!("{}, read while traffic flowed", run.label(&cell.dut));
    Some(svg.finish(&title, &description))
}

/// Shades the time with traffic.
fn traffic(svg: &mut Svg, plot: Area, read: &Monitored, times: &Times, end_s: f64) {
    for window in &read.windows {
        let [from, to] = [window.start_ns, window.end_ns].map(|at_ns| {
            // Traffic may flow for longer than values are read.
            let at_s = seconds(at_ns).min(end_s);
            plot.x_at(times.share(at_s))
        });
        let area = Area::new(from, plot.y, to - from, plot.height);
        let words = match window.load {
            Some(0) => "traffic as fast as possible".to_owned(),
            Some(load) => {
                let rate = si(load as f64, "pps");
                format!("traffic of {rate}")
            }
            None => "traffic".to_owned(),
        };
        if area.width > 0.0 {
            svg.rect("ground traffic", area, &words);
        }
    }
}

fn panel(svg: &mut Svg, plot: Area, (name, unit): (&str, &str), lines: &[Line<'_>], times: &Times) {
    let points = || lines.iter().flat_map(|line| &line.series.points);
    let highest = points().map(|point| point.mean_milli).max().unwrap_or(0) as f64 / MILLI;
    let axis = &Linear::new(1.05 * highest, 3.0, Scale::plain());
    let title = format!("{name}, {unit}");
    svg.text(
        "label strong",
        (plot.x, plot.y - 10.0),
        Anchor::Start,
        &title,
    );
    svg.y_axis(plot, axis, "");
    let plot = TimePlot { plot, times, axis };
    for line in lines {
        let width_s = seconds(line.series.point_ns);
        // A longer distance means missed readings, which no line may bridge.
        let apart = |one: &Step, next: &Step| next.0 - one.0 <= BREAK * width_s;
        let steps = line.series.points.iter().map(|point| {
            let at_s = seconds(point.at_ns);
            (at_s, at_s + width_s, point.mean_milli as f64 / MILLI)
        });
        let steps: Vec<Step> = steps.collect();
        // Of this line alone: the devices of a panel share a unit, but not their values.
        let mean = steps.iter().map(|(.., value)| value).sum::<f64>() / steps.len() as f64;
        let words = Scale::of(unit).value(mean);
        let hover = format!("{}, {}: {name} {words} on average", line.dut, line.device);
        for run in steps.chunk_by(apart) {
            let corners = plot.corners(run.iter().copied());
            svg.polyline(&format!("trace stroke-{}", line.style), &corners, &hover);
            if let Some(end) = corners.last() {
                // A mark at the end of each line, so that colour does not distinguish devices
                // alone.
                svg.mark("fill", line.style, *end, 3.0, &hover);
            }
        }
    }
}

/// Start and end in seconds, and value.
type Step = (f64, f64, f64);

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

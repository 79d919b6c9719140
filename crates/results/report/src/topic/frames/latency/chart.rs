//! Latency by load: for each load and device, from the median to the slowest frame.

use crate::kit::chart::percentiles::{self, Curve};
use crate::kit::chart::scale::Log;
use crate::kit::chart::{Area, Spot, Svg, band_width, plot, with_interval};
use crate::kit::format::{Scale, time_ns};
use crate::order::sorted;
use crate::topic::frames::chart::{Mix, band_name, legend};
use maud::Markup;
use plan::LatencyPath;
use stats::{CellResult, Distribution, LoadLatency};

const HEIGHT: f64 = 390.0;
const PLOT: Area = plot(HEIGHT, [12.0, 0.0, 48.0, 60.0]);
/// Largest distance between devices of one load.
const MAX_STEP: f64 = 62.0;
const BAR: f64 = 14.0;
/// Share of a load's width taken by its devices.
const BARS: f64 = 0.8;

/// The cells of a mix with latencies over a path.
fn timed<'r>(mix: Mix<'r>, path: LatencyPath) -> Vec<(&'r CellResult, Vec<&'r LoadLatency>)> {
    mix.found(|cell| {
        let all = cell.frames()?.latency.iter();
        let timed: Vec<_> = all.filter(|load| load.path() == path).collect();
        (!timed.is_empty()).then_some(timed)
    })
}

/// The title of a path's charts.
const fn what(path: LatencyPath) -> &'static str {
    match path {
        LatencyPath::OneWay => "Latency",
        LatencyPath::RoundTrip => "Round-trip time",
    }
}

/// The chart of one mix; `None` if no cell has latencies over the path.
pub(super) fn draw(mix: Mix<'_>, path: LatencyPath, id: &str) -> Option<Markup> {
    let cells = timed(mix, path);
    let all = || cells.iter().flat_map(|(_, loads)| loads.iter());
    let low = all().map(|load| load.p50_ns).min()?;
    let high = all().map(|load| load.max_ns).max()?;
    // Room for the value below the mark of the lowest median.
    let axis = Log::new(0.75 * low as f64, high as f64);
    let shares: Vec<u8> = sorted(all().filter_map(|load| load.percent));
    let mut svg = Svg::new(id);
    legend(&mut svg, mix.run, &mix.set.devices);
    svg.y_times(PLOT, &axis);
    let names: Vec<String> = shares.iter().map(|share| share_name(*share)).collect();
    let width = band_width(PLOT, &names, cells.len() as f64 * MAX_STEP / BARS);
    for (index, share) in shares.iter().enumerate() {
        let x = PLOT.x + width * index as f64;
        let band = Area { x, width, ..PLOT };
        band_name(&mut svg, PLOT, band, &share_name(*share));
        // Some room between the loads keeps the devices of one together.
        let step = (BARS * width / cells.len() as f64).min(MAX_STEP);
        let start = x + (width - step * cells.len() as f64) / 2.0;
        for (index, (cell, loads)) in cells.iter().enumerate() {
            // Its place stays empty, so that a device has the same one in all bands.
            let Some(load) = loads.iter().find(|load| load.percent == Some(*share)) else {
                continue;
            };
            let middle = start + step * (index as f64 + 0.5);
            let color = mix.run.color(&cell.dut);
            let tooltip = tooltip(mix, cell, load);
            one(&mut svg, &axis, load, color, middle, &tooltip);
        }
    }
    let title = "load in per cent of each device's own throughput";
    svg.x_title(PLOT, 40.0, title);
    let words = cells.iter().map(|(cell, loads)| words(cell, loads));
    Some(mix.finish(svg, &format!("{} by load", what(path)), words))
}

pub(super) fn share_name(share: u8) -> String {
    match share {
        0 => "lowest load".into(),
        share => format!("{share} %"),
    }
}

fn place(axis: &Log, value_ns: f64) -> f64 {
    PLOT.y_at(axis.share(value_ns.max(1.0)))
}

/// Draws a bar from the median to p99, a mark at p99.9, and a line to the slowest frame.
fn one(svg: &mut Svg, axis: &Log, load: &LoadLatency, color: usize, x: f64, tooltip: &str) {
    let at = |value: u64| place(axis, value as f64);
    let (median, slowest) = (at(load.p50_ns), at(load.max_ns));
    let stem = format!("stem stroke-{color}");
    // The line comes first, as the bar covers a part of it.
    svg.line(&stem, (x, median), (x, slowest));
    svg.line(&stem, (x - 5.0, slowest), (x + 5.0, slowest));
    if let Some(p99) = load.p99_ns {
        let bar = Area::new(x - BAR / 2.0, at(p99), BAR, median - at(p99));
        svg.bar(color, bar, tooltip);
    }
    if let Some(p99_9) = load.p99_9_ns {
        let y = at(p99_9);
        svg.line(&stem, (x - 7.0, y), (x + 7.0, y));
    }
    svg.mark("ring stroke", color, (x, median), 4.5, tooltip);
    let value = time_ns(load.p50_ns as f64);
    let below = [17.0, 23.0].map(|below| Spot::middle((x, median + below)));
    svg.label("value", below.to_vec(), &value);
}

fn tooltip(mix: Mix<'_>, cell: &CellResult, load: &LoadLatency) -> String {
    let share = load.percent.map_or_else(String::new, share_name);
    let by_repeat = &load.p50_each_ns;
    format!(
        "{}, {}, {share}: {}; p50 by repeat: {}",
        cell.dut,
        mix.point.name(),
        quantiles(load),
        with_interval(&Scale::time(by_repeat.mean), by_repeat)
    )
}

/// The times of all devices by percentile, at the highest share of their throughput; `None` if no
/// cell has latencies by share.
pub(super) fn by_percentile(mix: Mix<'_>, path: LatencyPath, id: &str) -> Option<Markup> {
    let cells = timed(mix, path);
    let share = highest_share(mix, path)?;
    let curves = cells.iter().filter_map(|(cell, loads)| {
        let load = loads.iter().find(|load| load.percent == Some(share))?;
        let by_repeat = &load.p50_each_ns;
        Some(Curve {
            dut: &cell.dut,
            style: mix.run.color(&cell.dut),
            times: Distribution::of(load.histogram.iter().copied())?,
            by_repeat: with_interval(&Scale::time(by_repeat.mean), by_repeat),
        })
    });
    let curves: Vec<Curve<'_>> = curves.collect();
    let setting = format!("{}, {}", mix.point.name(), share_name(share));
    let svg = percentiles::draw(id, &setting, "frames", &curves)?;
    Some(mix.finish(
        svg,
        &format!("{} by percentile", what(path)),
        curves.iter().map(Curve::words),
    ))
}

/// The highest share of the throughput with a measured device of the mix.
pub(super) fn highest_share(mix: Mix<'_>, path: LatencyPath) -> Option<u8> {
    let found = timed(mix, path);
    let loads = found.iter().flat_map(|(_, loads)| loads.iter());
    loads.filter_map(|load| load.percent).max()
}

fn quantiles(load: &LoadLatency) -> String {
    let time = |value: u64| time_ns(value as f64);
    let p99 = load.p99_ns.map_or("–".into(), time);
    format!(
        "p50 {}, p99 {p99}, max {}",
        time(load.p50_ns),
        time(load.max_ns)
    )
}

fn words(cell: &CellResult, loads: &[&LoadLatency]) -> String {
    let loads: Vec<String> = loads
        .iter()
        .map(|load| {
            let share = load
                .percent
                .map_or_else(String::new, |share| format!("{share} %: "));
            format!("{share}{}", quantiles(load))
        })
        .collect();
    format!("{} at {}", cell.dut, loads.join("; at "))
}

//! Speed of devices over sizes, concurrency or queue depths: measured points with whiskers, and
//! marks for the overtaking of a CPU and the end of scaling.

use super::{scale, series_name};
use crate::kit::chart::curves::{Curves, Numbers, extent};
use crate::kit::chart::scale::{Log, Values};
use crate::kit::chart::{Area, Svg, hover, plot};
use crate::layout::Run;
use crate::topic::device::colors;
use maud::Markup;
use stats::{DeviceAxis, DeviceCurve, DeviceSeries, Estimate};

const HEIGHT: f64 = 380.0;
const PLOT: Area = plot(HEIGHT, [34.0, 24.0, 46.0, 62.0]);
/// Minimum number of figures for a curve.
const FIGURES_MIN: usize = 2;

/// The chart of a series; `None` if no device has two figures.
pub(super) fn draw(run: &Run<'_>, series: &DeviceSeries, id: &str) -> Option<Markup> {
    let enough = |curve: &&DeviceCurve| figures(curve).count() >= FIGURES_MIN;
    let drawn: Vec<&DeviceCurve> = series.curves.iter().filter(enough).collect();
    let (least, most, highest) = extent(drawn.iter().flat_map(|curve| figures(curve)))?;
    let means = drawn.iter().flat_map(|curve| figures(curve));
    // The means, as a whisker down to 0 must not affect the kind of axis.
    let lowest = means.map(|(_, found)| found.mean).fold(highest, f64::min);
    let mut chart = Curves {
        svg: Svg::new(id),
        plot: PLOT,
        // Leave some room at both ends.
        numbers: Numbers::Log(Log::between(least / 1.15, most * 1.15)),
        axis: Values::spanning((lowest, 1.1 * highest), 5.0, scale(series.unit, highest)),
    };
    let colors = colors(run, drawn.iter().map(|curve| &curve.dut));
    let devices = drawn.iter().zip(&colors);
    let numbers = series.curves.iter().flat_map(|curve| &curve.points);
    chart.frame(
        devices.map(|(curve, color)| (*color, run.label(&curve.dut))),
        numbers.map(|point| point.n),
        axis_name(series.axis),
    );
    for (curve, color) in drawn.iter().zip(&colors) {
        // A line between measured points, as no law is fitted to these curves.
        let places = figures(curve).map(|(n, found)| chart.place(n, found.mean));
        let places: Vec<(f64, f64)> = places.collect();
        let class = format!("fit stroke-{color}");
        chart.svg.polyline(&class, &places, &curve.dut);
        chart.points(*color, figures(curve), |n, found| {
            let scale = scale(series.unit, found.mean);
            let setting = format!("{} {n}", axis_name(series.axis));
            hover(&curve.dut, &setting, &scale, found)
        });
    }
    let marks = drawn.iter().zip(&colors).flat_map(|(curve, color)| {
        let marks = marks(series, curve).into_iter();
        marks.map(move |mark| (*color, mark))
    });
    // Crossings may be close together, so each mark has a line of text for its name.
    for (line, (color, (n, text))) in marks.enumerate() {
        chart.mark(n, line, color, 0.6, &text);
    }
    let described: Vec<String> = drawn.iter().map(|curve| words(series, curve)).collect();
    let description = format!("{}.", described.join("; "));
    let title = format!("Speed: {}", series_name(series));
    Some(chart.svg.finish(&title, &description))
}

const fn axis_name(axis: DeviceAxis) -> &'static str {
    match axis {
        DeviceAxis::Bytes => "bytes of input",
        DeviceAxis::AtOnce => "at once",
        DeviceAxis::Depth => "depth of the queue",
    }
}

fn figures(curve: &DeviceCurve) -> impl Iterator<Item = (f64, &Estimate)> {
    let points = curve.points.iter();
    points.filter_map(|point| Some((f64::from(point.n), point.figure.as_ref()?)))
}

fn words(series: &DeviceSeries, curve: &DeviceCurve) -> String {
    let scale = scale(series.unit, curve.peak.unwrap_or(0.0));
    let values: Vec<String> = figures(curve)
        .map(|(n, found)| format!("{n}: {}", scale.value(found.mean)))
        .collect();
    format!("{}: {}; {}", curve.dut, values.join(", "), curve.verdict)
}

/// Marks at the crossing with a CPU's curve and at saturation.
fn marks(series: &DeviceSeries, curve: &DeviceCurve) -> Vec<(f64, String)> {
    let comparisons = series.comparisons.iter();
    let own = comparisons.filter(|found| found.dut == curve.dut);
    let crossed = own.filter_map(|found| {
        let at = found.crossover.crosses_at?;
        let text = format!("{} meets {} at about {at:.0}", found.dut, found.cpu);
        Some((at, text))
    });
    let saturated = curve
        .saturates_at_n
        // If the first point already saturates, there is nothing to mark.
        .filter(|n| curve.points.first().is_some_and(|first| first.n != *n))
        .map(|n| (f64::from(n), format!("{}: stops scaling at {n}", curve.dut)));
    crossed.chain(saturated).collect()
}

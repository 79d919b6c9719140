//! Scaling: measured points with whiskers, linear scaling, the fitted law, and where scaling stops.

use super::{law_name, scale};
use crate::kit::chart::curves::{Curves, Numbers, distinct_colors, extent};
use crate::kit::chart::scale::{Linear, Log, Values};
use crate::kit::chart::{Area, Svg, hover, plot};
use crate::kit::format::Scale;
use crate::layout::Run;
use maud::Markup;
use stats::{Estimate, Fit, Law, Scaling, ScalingUnit};

const HEIGHT: f64 = 380.0;
const PLOT: Area = plot(HEIGHT, [34.0, 24.0, 46.0, 56.0]);
/// Minimum span of numbers for a logarithmic axis.
const LOG_SPAN: f64 = 24.0;
/// Points of a drawn curve.
const SAMPLES: u32 = 96;
/// Minimum number of figures for a curve.
const FIGURES_MIN: usize = 3;

/// The chart of several devices' series of one measurement; `None` if no series has three figures.
pub(super) fn draw(run: &Run<'_>, all: &[&Scaling], id: &str) -> Option<Markup> {
    let enough = |series: &&Scaling| figures(series).count() >= FIGURES_MIN;
    let drawn: Vec<&Scaling> = all.iter().copied().filter(enough).collect();
    let first = drawn.first()?;
    let (least, most, highest) = extent(drawn.iter().flat_map(|series| figures(series)))?;
    let unit = match first.unit {
        ScalingUnit::PayloadBps => "bit/s",
        ScalingUnit::FramesPerS => "pps",
    };
    let mut chart = Curves {
        svg: Svg::new(id),
        plot: PLOT,
        numbers: if most / least > LOG_SPAN {
            Numbers::Log(Log::new(least, most))
        } else {
            // Leave room of half a number at both ends.
            Numbers::Linear(least - 0.5, most + 0.5)
        },
        // Leave room for the beginning of the line of linear scaling.
        axis: Values::Linear(Linear::new(1.25 * highest, 5.0, Scale::si(highest, unit))),
    };
    let colors = distinct_colors(drawn.iter().map(|series| {
        let cell = series
            .points
            .first()
            .and_then(|point| run.cell(&point.cell));
        cell.map_or(0, |cell| run.color(&cell.dut))
    }));
    let devices = drawn.iter().zip(&colors);
    let numbers = drawn.iter().flat_map(|series| &series.points);
    chart.frame(
        devices.map(|(series, color)| (*color, series.dut.clone())),
        numbers.map(|point| point.n),
        first.axis.name(),
    );
    for (index, (series, color)) in drawn.iter().zip(colors).enumerate() {
        draw_series(&mut chart, series, index, color);
    }
    let described: Vec<String> = drawn.iter().map(|series| words(series)).collect();
    let description = format!("{}. {}.", first.series, described.join("; "));
    let title = format!("Throughput by {}", first.axis.name());
    Some(chart.svg.finish(&title, &description))
}

fn figures(series: &Scaling) -> impl Iterator<Item = (f64, &Estimate)> {
    let points = series.points.iter();
    points.filter_map(|point| Some((f64::from(point.n), point.figure.as_ref()?)))
}

/// The law to draw: the USL if it describes the points, else another law that does.
fn drawn_fit(series: &Scaling) -> Option<&Fit> {
    let describing = || series.fits.iter().filter(|fit| fit.describes);
    describing()
        .find(|fit| fit.law == Law::Usl)
        .or_else(|| describing().next())
}

fn words(series: &Scaling) -> String {
    let scale = scale(series);
    let values: Vec<String> = figures(series)
        .map(|(n, found)| format!("{n}: {}", scale.value(found.mean)))
        .collect();
    format!("{}: {}; {}", series.dut, values.join(", "), series.verdict)
}

fn draw_series(chart: &mut Curves, series: &Scaling, index: usize, color: usize) {
    let Some((base_n, base)) = figures(series).next() else {
        return;
    };
    let span = (base_n, figures(series).last().map_or(base_n, |(n, _)| n));
    let ideal = |n: f64| {
        if series.axis.adds() {
            base.mean * n / base_n
        } else {
            base.mean
        }
    };
    let class = format!("ideal stroke-{color}");
    curve(chart, &class, span, ideal, "one for one");
    if let Some(fit) = drawn_fit(series) {
        let class = format!("fit stroke-{color}");
        curve(chart, &class, span, |n| fit.at(n), law_name(fit.law));
    }
    let stop = match (series.axis.adds(), series.stop_n, series.falls_from_n) {
        (true, Some(stop), _) => Some((stop, format!("stops scaling at {stop}"))),
        (false, _, Some(falls)) => Some((falls, format!("falls from {falls} on"))),
        _ => None,
    };
    if let Some((n, text)) = stop {
        chart.mark(n.into(), index, color, 0.7, &text);
    }
    let scale = scale(series);
    // Points are drawn last, above the curves.
    chart.points(color, figures(series), |n, found| {
        let setting = format!("{} {n}", series.axis.name());
        hover(&series.dut, &setting, &scale, found)
    });
}

/// Draws a curve between two numbers, clipped to the plot.
fn curve(
    chart: &mut Curves,
    class: &str,
    (least, most): (f64, f64),
    value: impl Fn(f64) -> f64,
    tooltip: &str,
) {
    // Equal distances on the axis, so that a curve is equally smooth everywhere.
    let n = |sample: u32| {
        let share = f64::from(sample) / f64::from(SAMPLES);
        match chart.numbers {
            Numbers::Linear(..) => least + share * (most - least),
            Numbers::Log(_) => least * (most / least).powf(share),
        }
    };
    let samples = (0..=SAMPLES).map(|sample| chart.place(n(sample), value(n(sample))));
    // Linear scaling soon leaves the plot, and from there on nothing of it is visible.
    let points: Vec<(f64, f64)> = samples.take_while(|(_, y)| *y >= PLOT.y).collect();
    chart.svg.polyline(class, &points, tooltip);
}

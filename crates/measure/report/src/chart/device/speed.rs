//! Speed of devices over sizes, how many at once or depths: measured points with whiskers, and
//! marks where a device overtakes the CPU and where more at once bring nothing.

use super::{colors, legend};
use crate::chart::scale::{Linear, Log};
use crate::chart::{Anchor, Area, LEGEND_HEIGHT, Svg, WIDTH, text_width};
use crate::layout::Run;
use crate::tables::device::{scale, series_name};
use maud::Markup;
use stats::{DeviceAxis, DeviceCurve, DeviceSeries, Estimate};

const HEIGHT: f64 = 380.0;
const PLOT: Area = Area {
    x: 62.0,
    y: LEGEND_HEIGHT + 34.0,
    width: WIDTH - 62.0 - 24.0,
    height: HEIGHT - LEGEND_HEIGHT - 34.0 - 46.0,
};
/// Height of a line that names a mark.
const MARK_HEIGHT: f64 = 15.0;
/// Fewer figures make no curve.
const FIGURES_MIN: usize = 2;

struct Chart {
    svg: Svg,
    numbers: Log,
    axis: Linear,
}

fn figures(curve: &DeviceCurve) -> impl Iterator<Item = (f64, &Estimate)> {
    let points = curve.points.iter();
    points.filter_map(|point| Some((f64::from(point.n), point.figure.as_ref()?)))
}

/// The chart of a series; `None` when no device has two figures.
pub(crate) fn draw(run: &Run<'_>, series: &DeviceSeries, id: &str) -> Option<Markup> {
    let drawn: Vec<&DeviceCurve> = series
        .curves
        .iter()
        .filter(|curve| figures(curve).count() >= FIGURES_MIN)
        .collect();
    let every = || drawn.iter().flat_map(|curve| figures(curve));
    let highest = every()
        .map(|(_, found)| found.mean + found.largest_distance)
        .reduce(f64::max)?;
    let least = every().map(|(n, _)| n).fold(f64::INFINITY, f64::min);
    let most = every().map(|(n, _)| n).fold(0.0, f64::max);
    let mut chart = Chart {
        svg: Svg::new(id, HEIGHT),
        // A little air at both ends.
        numbers: Log::between(least / 1.15, most * 1.15),
        axis: Linear::new(1.1 * highest, 5.0, scale(series.unit, highest)),
    };
    let duts: Vec<&str> = drawn.iter().map(|curve| curve.dut.as_str()).collect();
    let colors = colors(run, &duts);
    chart.frame(run, series, &duts, &colors);
    for (curve, color) in drawn.iter().zip(&colors) {
        chart.curve(series, curve, *color);
    }
    let mut line = 0;
    for (curve, color) in drawn.iter().zip(&colors) {
        line = chart.marks(series, curve, *color, line);
    }
    let told: Vec<String> = drawn.iter().map(|curve| words(series, curve)).collect();
    let description = format!("{}.", told.join("; "));
    let title = format!("Speed: {}", series_name(series));
    Some(chart.svg.finish(&title, &description))
}

fn words(series: &DeviceSeries, curve: &DeviceCurve) -> String {
    let scale = scale(series.unit, curve.peak.unwrap_or(0.0));
    let values: Vec<String> = figures(curve)
        .map(|(n, found)| format!("{n}: {}", scale.value(found.mean)))
        .collect();
    format!("{}: {}; {}", curve.dut, values.join(", "), curve.verdict)
}

impl Chart {
    fn frame(&mut self, run: &Run<'_>, series: &DeviceSeries, duts: &[&str], colors: &[usize]) {
        let names = legend(run, duts, colors);
        let entries: Vec<(String, &str)> = names
            .iter()
            .map(|(class, name)| (class.clone(), name.as_str()))
            .collect();
        self.svg.legend(&entries);
        self.svg.y_axis(PLOT, &self.axis, self.axis.unit());
        let mut numbers: Vec<u32> = series
            .curves
            .iter()
            .flat_map(|curve| curve.points.iter().map(|point| point.n))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut free_from = f64::NEG_INFINITY;
        for n in numbers {
            let (x, label) = (self.x(f64::from(n)), n.to_string());
            let half = text_width(&label) / 2.0 + 3.0;
            self.svg
                .line("grid", (x, PLOT.bottom()), (x, PLOT.bottom() + 4.0));
            if x - half >= free_from {
                let position = (x, PLOT.bottom() + 17.0);
                self.svg.text("tick", position, Anchor::Middle, &label);
                free_from = x + half;
            }
        }
        let axis = match series.axis {
            DeviceAxis::Bytes => "bytes of input",
            DeviceAxis::AtOnce => "at once",
            DeviceAxis::Depth => "depth of the queue",
        };
        let position = (PLOT.x + PLOT.width / 2.0, PLOT.bottom() + 38.0);
        self.svg.text("tick", position, Anchor::Middle, axis);
    }

    fn x(&self, n: f64) -> f64 {
        PLOT.x + PLOT.width * self.numbers.share(n)
    }

    fn place(&self, n: f64, value: f64) -> (f64, f64) {
        let y = PLOT.bottom() - PLOT.height * self.axis.share(value);
        (self.x(n), y)
    }

    fn curve(&mut self, series: &DeviceSeries, curve: &DeviceCurve, color: usize) {
        let places: Vec<(f64, f64)> = figures(curve)
            .map(|(n, found)| self.place(n, found.mean))
            .collect();
        self.svg
            .polyline(&format!("fit stroke-{color}"), &places, &curve.dut);
        for (n, found) in figures(curve) {
            let place = self.place(n, found.mean);
            let reach = PLOT.height * self.axis.share(found.largest_distance);
            self.svg.whisker(place, reach, 5.0);
            let scale = scale(series.unit, found.mean);
            let tooltip = format!("{}, {n}: {}", curve.dut, scale.estimate(found));
            self.svg.dot(&format!("fill-{color}"), place, 4.5, &tooltip);
        }
    }

    /// Where a curve crosses that of a CPU, and where it saturates; each name on a line of its own
    /// from `line` on. Returns the next free line.
    fn marks(
        &mut self,
        series: &DeviceSeries,
        curve: &DeviceCurve,
        color: usize,
        line: usize,
    ) -> usize {
        let own = series
            .comparisons
            .iter()
            .filter(|found| found.dut == curve.dut);
        let crossed = own.filter_map(|found| {
            let at = found.crossover.crosses_at?;
            Some((
                at,
                format!("{} meets {} at about {at:.0}", found.dut, found.cpu),
            ))
        });
        let saturated = curve
            .saturates_at_n
            // Where one alone is as good as many, there is nothing to mark.
            .filter(|n| curve.points.first().is_some_and(|first| first.n != *n))
            .map(|n| (f64::from(n), format!("{}: no gain past {n}", curve.dut)));
        let marks: Vec<(f64, String)> = crossed.chain(saturated).collect();
        let next = line + marks.len();
        for (place, (n, text)) in marks.into_iter().enumerate() {
            let x = self.x(n);
            let y = PLOT.y + MARK_HEIGHT * ((line + place) as f64 + 0.8);
            let class = format!("stop stroke-{color}");
            self.svg.line(&class, (x, PLOT.y), (x, PLOT.bottom()));
            let (x, anchor) = match x > PLOT.x + 0.6 * PLOT.width {
                true => (x - 6.0, Anchor::End),
                false => (x + 6.0, Anchor::Start),
            };
            self.svg.text("label strong halo", (x, y), anchor, &text);
        }
        next
    }
}

//! What more of something brings: measured points with whiskers, the line of one for one, the law
//! that fits, and a mark where it stops.

use super::scale::{Linear, Log};
use super::{Anchor, Area, LEGEND_HEIGHT, Svg, WIDTH, shortened_name};
use crate::format::Scale;
use crate::layout::{PALETTE_COLORS, Run};
use crate::tables::scaling::{law_name, scale};
use maud::Markup;
use stats::{Estimate, Fit, Law, Scaling, ScalingUnit};

const HEIGHT: f64 = 380.0;
const PLOT: Area = Area {
    x: 56.0,
    y: LEGEND_HEIGHT + 34.0,
    width: WIDTH - 56.0 - 24.0,
    height: HEIGHT - LEGEND_HEIGHT - 34.0 - 46.0,
};
/// From this span of numbers on the axis is logarithmic.
const LOG_SPAN: f64 = 24.0;
/// Points of a drawn curve.
const SAMPLES: u32 = 96;
/// Fewer figures make no curve.
const FIGURES_MIN: usize = 3;
/// Height of the line that names where a series stops.
const MARK_HEIGHT: f64 = 15.0;

/// The axis of numbers.
enum Numbers {
    Linear(f64, f64),
    Log(Log),
}

impl Numbers {
    fn of(least: f64, most: f64) -> Self {
        match most / least > LOG_SPAN {
            true => Self::Log(Log::new(least, most)),
            // Half a number of air at both ends.
            false => Self::Linear(least - 0.5, most + 0.5),
        }
    }

    fn x(&self, n: f64) -> f64 {
        let share = match self {
            Self::Linear(low, high) => (n - low) / (high - low),
            Self::Log(axis) => axis.share(n),
        };
        PLOT.x + PLOT.width * share
    }
}

struct Chart {
    svg: Svg,
    numbers: Numbers,
    axis: Linear,
}

/// The chart of the series of several devices that are one measurement; `None` when none has three
/// figures.
pub(crate) fn draw(run: &Run<'_>, all: &[&Scaling], id: &str) -> Option<Markup> {
    let drawn: Vec<&Scaling> = all
        .iter()
        .copied()
        .filter(|series| figures(series).count() >= FIGURES_MIN)
        .collect();
    let first = drawn.first()?;
    let every = || drawn.iter().flat_map(|series| figures(series));
    let highest = every()
        .map(|(_, found)| found.mean + found.largest_distance)
        .fold(0.0, f64::max);
    let least = every().map(|(n, _)| n).fold(f64::INFINITY, f64::min);
    let most = every().map(|(n, _)| n).fold(0.0, f64::max);
    let unit = match first.unit {
        ScalingUnit::PayloadBps => "bit/s",
        ScalingUnit::FramesPerS => "pps",
    };
    let mut chart = Chart {
        svg: Svg::new(id, HEIGHT),
        numbers: Numbers::of(least, most),
        // Room for the beginning of the line of one for one.
        axis: Linear::new(1.25 * highest, 5.0, Scale::si(highest, unit)),
    };
    let colors = colors(run, &drawn);
    chart.frame(&drawn, &colors);
    for (index, (series, color)) in drawn.iter().zip(colors).enumerate() {
        chart.series(series, index, color);
    }
    let told: Vec<String> = drawn.iter().map(|series| words(series)).collect();
    let description = format!("{}. {}.", first.series, told.join("; "));
    let title = format!("Throughput by {}", first.axis.name());
    Some(chart.svg.finish(&title, &description))
}

fn figures(series: &Scaling) -> impl Iterator<Item = (f64, &Estimate)> {
    let points = series.points.iter();
    points.filter_map(|point| Some((f64::from(point.n), point.figure.as_ref()?)))
}

/// The devices' places in the palette; where two have the same, the later one takes the next that
/// is free.
fn colors(run: &Run<'_>, drawn: &[&Scaling]) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    for series in drawn {
        let first = series
            .points
            .first()
            .and_then(|point| run.cell(&point.cell));
        let own = first.map_or(0, |cell| run.color(&cell.dut));
        let free = |color: &usize| !taken.contains(color);
        let others = 1..PALETTE_COLORS;
        let color = [own].into_iter().chain(others).find(free).unwrap_or(own);
        taken.push(color);
    }
    taken
}

/// The law to draw: the one with most parameters, where it describes the points, else the other
/// that does.
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

impl Chart {
    fn frame(&mut self, drawn: &[&Scaling], colors: &[usize]) {
        let names: Vec<(String, String)> = drawn
            .iter()
            .zip(colors)
            .map(|(series, color)| {
                let name = shortened_name(&series.dut, 260.0);
                (format!("fill-{color}"), name)
            })
            .collect();
        let entries: Vec<(String, &str)> = names
            .iter()
            .map(|(class, name)| (class.clone(), name.as_str()))
            .collect();
        self.svg.legend(&entries);
        self.svg.y_axis(PLOT, &self.axis, self.axis.unit());
        let mut numbers: Vec<u32> = drawn
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.n))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut free_from = f64::NEG_INFINITY;
        for n in numbers {
            let (x, label) = (self.numbers.x(f64::from(n)), n.to_string());
            let half = super::text_width(&label) / 2.0 + 3.0;
            self.svg
                .line("grid", (x, PLOT.bottom()), (x, PLOT.bottom() + 4.0));
            if x - half >= free_from {
                let position = (x, PLOT.bottom() + 17.0);
                self.svg.text("tick", position, Anchor::Middle, &label);
                free_from = x + half;
            }
        }
        let middle = PLOT.x + PLOT.width / 2.0;
        let position = (middle, PLOT.bottom() + 38.0);
        let axis = drawn.first().map_or("", |first| first.axis.name());
        self.svg.text("tick", position, Anchor::Middle, axis);
    }

    fn place(&self, n: f64, value: f64) -> (f64, f64) {
        let y = PLOT.bottom() - PLOT.height * self.axis.share(value);
        (self.numbers.x(n), y)
    }

    fn series(&mut self, series: &Scaling, index: usize, color: usize) {
        let Some((base_n, base)) = figures(series).next() else {
            return;
        };
        let span = (base_n, figures(series).last().map_or(base_n, |(n, _)| n));
        let ideal = |n: f64| match series.axis.adds() {
            true => base.mean * n / base_n,
            false => base.mean,
        };
        self.curve(&format!("ideal stroke-{color}"), span, ideal, "one for one");
        if let Some(fit) = drawn_fit(series) {
            let class = format!("fit stroke-{color}");
            self.curve(&class, span, |n| fit.at(n), law_name(fit.law));
        }
        self.mark(series, index, color);
        let scale = scale(series);
        for (n, found) in figures(series) {
            let place = self.place(n, found.mean);
            let reach = PLOT.height * self.axis.share(found.largest_distance);
            self.svg.whisker(place, reach, 5.0);
            let tooltip = format!("{}, {n}: {}", series.dut, scale.estimate(found));
            self.svg.dot(&format!("fill-{color}"), place, 4.5, &tooltip);
        }
    }

    /// A curve between two numbers, as far as it lies within the plot.
    fn curve(
        &mut self,
        class: &str,
        (least, most): (f64, f64),
        value: impl Fn(f64) -> f64,
        tooltip: &str,
    ) {
        let n = |sample: u32| {
            let share = f64::from(sample) / f64::from(SAMPLES);
            match self.numbers {
                Numbers::Linear(..) => least + share * (most - least),
                Numbers::Log(_) => least * (most / least).powf(share),
            }
        };
        let samples = (0..=SAMPLES).map(|sample| self.place(n(sample), value(n(sample))));
        let points: Vec<(f64, f64)> = samples.take_while(|(_, y)| *y >= PLOT.y).collect();
        self.svg.polyline(class, &points, tooltip);
    }

    /// Where the series stops: a line, and its name at the top, below those of others.
    fn mark(&mut self, series: &Scaling, index: usize, color: usize) {
        let (n, text) = match (series.axis.adds(), series.stop_n, series.falls_from_n) {
            (true, Some(stop), _) => (stop, format!("no gain past {stop}")),
            (false, _, Some(falls)) => (falls, format!("falls from {falls} on")),
            _ => return,
        };
        let x = self.numbers.x(f64::from(n));
        let y = PLOT.y + MARK_HEIGHT * (index as f64 + 0.8);
        let class = format!("stop stroke-{color}");
        self.svg.line(&class, (x, PLOT.y), (x, PLOT.bottom()));
        let (x, anchor) = match x > PLOT.x + 0.7 * PLOT.width {
            true => (x - 6.0, Anchor::End),
            false => (x + 6.0, Anchor::Start),
        };
        self.svg.text("label strong halo", (x, y), anchor, &text);
    }
}

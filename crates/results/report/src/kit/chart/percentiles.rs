//! Times by percentile, on an axis that gives each nine the same width.

use super::scale::Log;
use super::{Anchor, Area, Spot, Svg, plot, shortened_name};
use crate::kit::format::time_ns;
use stats::Distribution;

const HEIGHT: f64 = 390.0;
/// Room for the longest times, and for the names at the ends of the lines.
const LONGEST: f64 = 64.0;
const NAMES: f64 = 160.0;
const PLOT: Area = plot(HEIGHT, [-12.0, NAMES + LONGEST, 46.0, 60.0]);

/// Marked percentiles: names, and the shares above them per 10⁹.
const MARKED: [(&str, u64); 6] = [
    ("50", 500_000_000),
    ("90", 100_000_000),
    ("99", 10_000_000),
    ("99.9", 1_000_000),
    ("99.99", 100_000),
    ("99.999", 10_000),
];

/// The axis shows a percentile if at least this many times exceed it.
const BEYOND_MIN: f64 = 10.0;
/// Maximum nines on the axis.
const NINES_MAX: f64 = 5.0;
/// Points of a curve.
const STEPS: u32 = 320;

/// A device's times.
pub(crate) struct Curve<'a> {
    pub(crate) dut: &'a str,
    pub(crate) style: usize,
    pub(crate) times: Distribution,
    /// Tooltip with the median of each repeat.
    pub(crate) by_repeat: String,
}

impl Curve<'_> {
    /// Number of nines that enough times exceed.
    fn nines(&self) -> f64 {
        (self.times.n() as f64 / BEYOND_MIN)
            .log10()
            // At least the median, at log10(2) nines.
            .clamp(f64::log10(2.0), NINES_MAX)
    }

    /// The percentiles that enough times exceed; always the median.
    fn marked(&self) -> impl Iterator<Item = (&'static str, u64)> {
        // Rounding must not drop a percentile that exactly enough times exceed.
        let nines = self.nines() + 1e-9;
        MARKED
            .into_iter()
            .filter(move |(_, beyond_ppb)| nines_of(*beyond_ppb) <= nines)
    }

    /// The description: `ours: p50 72.1 µs, p90 …, max …`.
    pub(crate) fn words(&self) -> String {
        let mut parts: Vec<String> = self
            .marked()
            .map(|(name, beyond_ppb)| format!("p{name} {}", time_text(self.times.at(beyond_ppb))))
            .collect();
        parts.push(format!("max {}", time_text(self.times.at(0))));
        format!("{}: {}", self.dut, parts.join(", "))
    }
}

/// The axes of a chart.
struct Axes {
    times: Log,
    nines: f64,
}

/// Draws the curves of one setting; `of` names the timed events (`replies`). `None` without curves.
pub(crate) fn draw(id: &str, setting: &str, of: &str, curves: &[Curve<'_>]) -> Option<Svg> {
    let least = curves
        .iter()
        // All times are beyond the shortest one.
        .map(|curve| curve.times.at(1_000_000_000))
        .min()?;
    let most = curves.iter().map(|curve| curve.times.at(0)).max()?;
    let axes = Axes {
        times: Log::new(least as f64, most as f64),
        nines: curves.iter().map(Curve::nines).fold(1.0, f64::max),
    };
    let mut svg = Svg::new(id);
    axes.draw(&mut svg, of);
    for curve in curves {
        axes.curve(&mut svg, curve, setting, of);
        axes.labels(&mut svg, curve);
    }
    Some(svg)
}

fn nines_of(beyond_ppb: u64) -> f64 {
    -(beyond_ppb as f64 / 1e9).log10()
}

fn time_text(time_ns_: u64) -> String {
    time_ns(time_ns_ as f64)
}

impl Axes {
    fn x(&self, nines: f64) -> f64 {
        PLOT.x_at((nines / self.nines).clamp(0.0, 1.0))
    }

    fn y(&self, time_ns: u64) -> f64 {
        // Zero has no logarithm.
        PLOT.y_at(self.times.share(time_ns.max(1) as f64))
    }

    fn place(&self, curve: &Curve<'_>, beyond_ppb: u64) -> (f64, f64) {
        let x = self.x(nines_of(beyond_ppb));
        (x, self.y(curve.times.at(beyond_ppb)))
    }

    /// The position of the longest time.
    fn end(&self, curve: &Curve<'_>) -> (f64, f64) {
        (PLOT.right() + LONGEST, self.y(curve.times.at(0)))
    }

    fn draw(&self, svg: &mut Svg, of: &str) {
        // The grid of times includes the room for the longest times.
        let whole = Area {
            width: PLOT.width + LONGEST,
            ..PLOT
        };
        svg.y_times(whole, &self.times);
        let (top, bottom) = (PLOT.y, PLOT.bottom());
        let on_axis = MARKED
            .into_iter()
            .map(|(name, beyond_ppb)| (name, nines_of(beyond_ppb)));
        // The axis begins at the fastest time, percentile 0.
        for (name, nines) in [("0", 0.0)].into_iter().chain(on_axis) {
            if nines <= self.nines + 1e-9 {
                let x = self.x(nines);
                svg.line("grid", (x, top), (x, bottom));
                svg.text("tick", (x, bottom + 17.0), Anchor::Middle, name);
            }
        }
        let x = whole.right();
        svg.line("grid", (x, top), (x, bottom));
        svg.text("tick", (x, bottom + 17.0), Anchor::Middle, "max");
        svg.line("axis", (PLOT.x, bottom), (x, bottom));
        let title = format!("percentile: per cent of {of} that were no slower");
        svg.x_title(PLOT, 38.0, &title);
    }

    /// Draws marks, and a line that is dotted once too few times exceed it.
    fn curve(&self, svg: &mut Svg, curve: &Curve<'_>, setting: &str, of: &str) {
        let (style, own) = (curve.style, curve.nines());
        let points: Vec<(f64, f64)> = (0..=STEPS)
            .map(|step| {
                let nines = own * f64::from(step) / f64::from(STEPS);
                let beyond_ppb = 1e9 * 10_f64.powf(-nines);
                (
                    self.x(nines),
                    self.y(curve.times.at(beyond_ppb.round() as u64)),
                )
            })
            .collect();
        let n = curve.times.n();
        let name = format!("{}, {setting}", curve.dut);
        let tooltip = format!("{name}: {n} {of}");
        svg.polyline(&format!("curve stroke-{style}"), &points, &tooltip);
        // The curve has `STEPS` + 1 points, so there is a last one.
        let (last, end) = (points[points.len() - 1], self.end(curve));
        svg.polyline(&format!("tail stroke-{style}"), &[last, end], &tooltip);
        for (percentile, beyond_ppb) in curve.marked() {
            let value = time_text(curve.times.at(beyond_ppb));
            let by_repeat = if beyond_ppb == MARKED[0].1 {
                format!("; by repeat: {}", curve.by_repeat)
            } else {
                String::new()
            };
            let tooltip = format!("{name}: p{percentile} {value}, all {n} {of} pooled{by_repeat}");
            svg.mark("fill", style, self.place(curve, beyond_ppb), 4.5, &tooltip);
        }
        let longest = time_text(curve.times.at(0));
        let tooltip = format!("{name}: max {longest}, the slowest of {n} {of}");
        // An outline: a single time, not a percentile that others exceed.
        svg.mark("ring stroke", style, end, 4.0, &tooltip);
    }

    /// Places the name at the end of the line, and values at the marks.
    fn labels(&self, svg: &mut Svg, curve: &Curve<'_>) {
        let name = shortened_name("label strong", curve.dut, NAMES - 14.0);
        let class = format!("label strong fill-{}", curve.style);
        let end = self.end(curve);
        svg.end_name(&class, end, end.0 + 14.0, &name);
        let class = format!("value fill-{}", curve.style);
        for (_, beyond_ppb) in curve.marked() {
            let value = time_text(curve.times.at(beyond_ppb));
            // Only close by: if curves coincide, a value must not seem to belong to another curve.
            let spots = Spot::near(self.place(curve, beyond_ppb), 0.0);
            svg.label(&class, spots.to_vec(), &value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(n: u64) -> Curve<'static> {
        Curve {
            dut: "ours",
            style: 1,
            times: Distribution::of((1..=n).map(|time| (time * 1000, 1))).unwrap(),
            by_repeat: String::new(),
        }
    }

    #[test]
    fn a_percentile_is_shown_where_ten_times_lie_beyond_it() {
        for (n, last) in [
            (1, "50"),
            (99, "50"),
            (100, "90"),
            (999, "90"),
            (1000, "99"),
            (1_500, "99"),
            (1_000_000, "99.999"),
        ] {
            assert_eq!(curve(n).marked().last().unwrap().0, last, "{n}");
        }
        let words = curve(1_000_000).words();
        assert!(words.contains("p99.999 1.00 s, max 1.00 s"), "{words}");
    }
}

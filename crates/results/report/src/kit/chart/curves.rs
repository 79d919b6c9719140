//! Curves over a number (cores, sizes, depths): measured points with whiskers, and marks.

use super::scale::{Axis, Log, Values};
use super::{Anchor, Area, Font, Spot, Svg, legend_of_devices};
use crate::layout::DEVICE_STYLES;
use crate::order::sorted;
use stats::Estimate;

/// Height of the line that names a mark.
const MARK_HEIGHT: f64 = 15.0;

/// The axis of numbers.
pub(crate) enum Numbers {
    Linear(f64, f64),
    Log(Log),
}

pub(crate) struct Curves {
    pub(crate) svg: Svg,
    pub(crate) plot: Area,
    pub(crate) numbers: Numbers,
    pub(crate) axis: Values,
}

impl Curves {
    /// Legend and axes; `numbers` are the planned ones.
    pub(crate) fn frame(
        &mut self,
        devices: impl Iterator<Item = (usize, String)>,
        numbers: impl Iterator<Item = u32>,
        title: &str,
    ) {
        legend_of_devices(&mut self.svg, devices);
        self.svg.y_axis(self.plot, &self.axis, self.axis.unit());
        let bottom = self.plot.bottom();
        let mut free_from = f64::NEG_INFINITY;
        for n in sorted(numbers) {
            let (x, label) = (self.x(f64::from(n)), n.to_string());
            // The axis spans the numbers with a figure; a number beyond them that was planned, but
            // gave none, has no place on it. Ends of the axis are exact up to rounding.
            if x < self.plot.x - 0.1 || x > self.plot.right() + 0.1 {
                continue;
            }
            let half = Font::of("tick").width(&label) / 2.0 + 3.0;
            self.svg.line("grid", (x, bottom), (x, bottom + 4.0));
            // A number keeps only its tick if its label would touch the one before it.
            if x - half >= free_from {
                let position = (x, bottom + 17.0);
                self.svg.text("tick", position, Anchor::Middle, &label);
                free_from = x + half;
            }
        }
        self.svg.x_title(self.plot, 38.0, title);
    }

    fn x(&self, n: f64) -> f64 {
        self.plot.x_at(match &self.numbers {
            Numbers::Linear(low, high) => (n - low) / (high - low),
            Numbers::Log(axis) => axis.share(n),
        })
    }

    pub(crate) fn place(&self, n: f64, value: f64) -> (f64, f64) {
        (self.x(n), self.plot.y_at(self.axis.share(value)))
    }

    /// Measured figures, with their smallest and largest repeats.
    pub(crate) fn points<'e>(
        &mut self,
        color: usize,
        figures: impl Iterator<Item = (f64, &'e Estimate)>,
        tooltip: impl Fn(f64, &Estimate) -> String,
    ) {
        for (n, found) in figures {
            let place = self.place(n, found.mean);
            let end = |value: f64| self.place(n, value).1;
            // A whisker down to 0 or below ends at the axis, whatever its kind: `Values::share`
            // bounds it.
            let ends = [found.max, found.min].map(end);
            self.svg.whisker(place.0, ends, 5.0);
            let tooltip = tooltip(n, found);
            // Above its whisker, which would otherwise cross the mark.
            self.svg.mark("fill", color, place, 4.5, &tooltip);
        }
    }

    /// Draws a vertical line at a number, with its name on a line of text below the top. The name
    /// is left of the line if that is beyond the share `turn` of the plot's width.
    pub(crate) fn mark(&mut self, n: f64, line: usize, color: usize, turn: f64, text: &str) {
        let (plot, x) = (self.plot, self.x(n));
        let y = plot.y + MARK_HEIGHT * (line as f64 + 0.8);
        let class = format!("stop stroke-{color}");
        self.svg.line(&class, (x, plot.y), (x, plot.bottom()));
        let rows = (0..8).map(|row| y + MARK_HEIGHT * f64::from(row));
        let (left, right) = (|y| Spot::end((x - 6.0, y)), |y| Spot::start((x + 6.0, y)));
        // Try both sides of the line before the next row, so that the label stays near the given
        // one.
        let spots = rows.flat_map(|y| {
            if x > plot.x_at(turn) {
                [left(y), right(y)]
            } else {
                [right(y), left(y)]
            }
        });
        self.svg.label("label strong", spots.collect(), text);
    }
}

/// The smallest and the largest number, and the highest end of a whisker; `None` without figures.
pub(crate) fn extent<'e>(
    figures: impl Iterator<Item = (f64, &'e Estimate)>,
) -> Option<(f64, f64, f64)> {
    figures
        .map(|(n, found)| (n, n, found.max))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1), a.2.max(b.2)))
}

/// Makes devices' styles distinct: the later of two equal styles becomes the next free one.
pub(crate) fn distinct_colors(own: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    for own in own {
        let free = |color: &usize| !taken.contains(color);
        let others = 1..=DEVICE_STYLES;
        // With more devices than styles, the later ones cannot be distinct.
        let color = [own].into_iter().chain(others).find(free).unwrap_or(own);
        taken.push(color);
    }
    taken
}

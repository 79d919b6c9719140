//! Plots over time: their axis, and values that hold for an interval.

use super::scale::{Axis, Linear};
use super::{Anchor, Area, Font, Svg, WIDTH};
use crate::kit::format::Scale;

/// A time axis from 0.
pub(crate) struct Times {
    axis: Linear,
    unit_s: f64,
    pub(crate) unit: &'static str,
}

impl Times {
    /// In seconds, minutes or hours, depending on the end.
    pub(crate) fn new(end_s: f64, ticks: f64) -> Self {
        // Below these limits, round numbers of the larger unit would be too few ticks.
        let (unit_s, unit) = match end_s {
            short if short < 300.0 => (1.0, "s"),
            minutes if minutes < 3.0 * 3600.0 => (60.0, "min"),
            _ => (3600.0, "h"),
        };
        Self {
            axis: Linear::ending_at(end_s / unit_s, ticks, Scale::plain()),
            unit_s,
            unit,
        }
    }

    pub(crate) fn seconds(end_s: f64, ticks: f64) -> Self {
        Self {
            axis: Linear::ending_at(end_s, ticks, Scale::plain()),
            unit_s: 1.0,
            unit: "s",
        }
    }

    /// Maps a time to a share, from 0 at the beginning of the axis to 1 at its end.
    pub(crate) fn share(&self, second: f64) -> f64 {
        self.axis.share(second / self.unit_s)
    }

    /// Positions and labels of the ticks below a plot, the last label with `unit`.
    pub(crate) fn ticks(&self, plot: Area, unit: &str) -> Vec<(f64, String)> {
        let mut ticks = self.axis.ticks();
        for (value, _) in &mut ticks {
            *value = plot.x_at(self.axis.share(*value));
        }
        if let Some((_, label)) = ticks.last_mut() {
            label.push_str(unit);
        }
        ticks
    }

    /// Draws ticks below a plot; the last label ends with `unit`, and no label leaves the chart.
    pub(crate) fn draw(&self, svg: &mut Svg, plot: Area, unit: &str) {
        for (x, label) in self.ticks(plot, unit) {
            svg.line("axis", (x, plot.bottom()), (x, plot.bottom() + 4.0));
            let (x, anchor) = if x + Font::of("tick").width(&label) / 2.0 > WIDTH {
                (WIDTH, Anchor::End)
            } else {
                (x, Anchor::Middle)
            };
            svg.text("tick", (x, plot.bottom() + 17.0), anchor, &label);
        }
    }
}

/// A plot of values over time. Each value holds from one time to another.
#[derive(Clone, Copy)]
pub(crate) struct TimePlot<'t> {
    pub(crate) plot: Area,
    pub(crate) times: &'t Times,
    pub(crate) axis: &'t Linear,
}

impl TimePlot<'_> {
    /// Corners of the line through values: steps, as each value is a mean over its time.
    pub(crate) fn corners(&self, values: impl Iterator<Item = (f64, f64, f64)>) -> Vec<(f64, f64)> {
        let corners = values.flat_map(|(start_s, end_s, value)| {
            let y = self.plot.y_at(self.axis.share(value));
            [start_s, end_s].map(|at| (self.plot.x_at(self.times.share(at)), y))
        });
        corners.collect()
    }

    /// Draws the received rate as an area in the device's colour, with the lost rate on top.
    pub(crate) fn received_and_lost(
        &self,
        svg: &mut Svg,
        (dut, color): (&str, usize),
        received: impl Iterator<Item = (f64, f64, f64)>,
        intended: Option<impl Iterator<Item = (f64, f64, f64)>>,
    ) {
        let received = self.corners(received);
        let floor = |end: Option<&(f64, f64)>| end.map(|(x, _)| (*x, self.plot.bottom()));
        let mut area = received.clone();
        // The area is closed along the floor, from the last time back to the first.
        area.extend(floor(received.last()));
        area.extend(floor(received.first()));
        svg.polyline(&format!("area fill-{color}"), &area, dut);
        if let Some(intended) = intended {
            let mut lost = self.corners(intended);
            // Back along the received rate, so that the area is the difference of both.
            lost.extend(received.iter().rev());
            svg.polyline("lost-area", &lost, "lost");
        }
        // Drawn last, or the areas would cover half of its width.
        svg.polyline(&format!("trace stroke-{color}"), &received, "");
    }
}

//! Parts of the charts of frame tests.

use crate::kit::chart::{Anchor, Area, Font, Svg, legend_of_devices, shortened};
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use maud::Markup;
use stats::CellResult;

/// One mix of a set, the subject of most charts.
#[derive(Clone, Copy)]
pub(super) struct Mix<'r> {
    pub(crate) run: &'r Run<'r>,
    pub(crate) set: &'r FrameSet<'r>,
    pub(crate) point: &'r FramePoint<'r>,
}

impl<'r> Mix<'r> {
    /// The devices' cells with something to draw, in the set's order, calibration last.
    pub(crate) fn found<T>(
        self,
        of: impl Fn(&'r CellResult) -> Option<T>,
    ) -> Vec<(&'r CellResult, T)> {
        let devices = self.set.devices.iter();
        let cells = devices.filter_map(|device| self.point.cell(*device));
        cells.filter_map(|cell| Some((cell, of(cell)?))).collect()
    }

    /// Cells of the devices, without calibration.
    pub(crate) fn cells(self) -> impl Iterator<Item = &'r CellResult> {
        let devices = devices(self.set).into_iter();
        devices.filter_map(move |device| self.point.cell(device))
    }

    /// Finishes the chart, with the devices' descriptions.
    pub(crate) fn finish(
        self,
        svg: Svg,
        title: &str,
        words: impl Iterator<Item = String>,
    ) -> Markup {
        let (name, words) = (self.point.name(), words.collect::<Vec<_>>().join("; "));
        let description = format!("{name}, {}. {words}.", self.set.common);
        svg.finish(title, &description)
    }
}

/// Adds the devices to the legend, the tester's calibration last.
pub(super) fn legend(svg: &mut Svg, run: &Run<'_>, devices: &[Device<'_>]) {
    let devices = devices.iter();
    let entries = devices.map(|device| (run.color(device.dut), device.label(run)));
    legend_of_devices(svg, entries);
}

/// A point of a curve.
pub(super) struct Dot {
    pub(crate) position: (f64, f64),
    /// No frame was lost: drawn as an outline, to distinguish no loss from hardly any.
    pub(crate) lossless: bool,
    pub(crate) tooltip: String,
}

/// Draws a device's figures along a numeric axis, joined by a line in the order of the axis.
pub(super) fn curve(svg: &mut Svg, run: &Run<'_>, cell: &CellResult, mut dots: Vec<Dot>) {
    let color = run.color(&cell.dut);
    dots.sort_by(|a, b| a.position.0.total_cmp(&b.position.0));
    let points: Vec<(f64, f64)> = dots.iter().map(|dot| dot.position).collect();
    svg.polyline(&format!("curve stroke-{color}"), &points, &cell.dut);
    for dot in dots {
        // A filled mark at 0 would look the same for no loss and for hardly any.
        let class = if dot.lossless { "ring stroke" } else { "fill" };
        svg.mark(class, color, dot.position, 4.0, &dot.tooltip);
    }
}

/// Devices, without calibration.
pub(super) fn devices<'a>(set: &FrameSet<'a>) -> Vec<Device<'a>> {
    let all = set.devices.iter().copied();
    all.filter(|device| !device.calibration).collect()
}

/// Draws a band's name below the plot, and a rule before it.
pub(super) fn band_name(svg: &mut Svg, plot: Area, band: Area, name: &str) {
    let class = "label strong";
    // Frame sizes of four digits are never cut, even in a narrow band.
    let least = Font::of(class).width("1518 B");
    let label = shortened(class, name, (band.width - 6.0).max(least));
    let position = (band.middle(), plot.bottom() + 24.0);
    svg.text(class, position, Anchor::Middle, &label);
    if band.x > plot.x {
        svg.line("grid", (band.x, plot.y), (band.x, plot.bottom() + 28.0));
    }
}

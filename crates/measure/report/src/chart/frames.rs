//! Charts of frame tests.

pub(crate) mod disturbed;
pub(crate) mod hostile;
pub(crate) mod latency;
pub(crate) mod loss;
pub(crate) mod outages;
pub(crate) mod soak;
pub(crate) mod throughput;

use super::{Anchor, Area, Svg, shortened, shortened_name, text_width};
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use maud::Markup;
use stats::CellResult;

/// Swatches of the devices, the rig's own last.
fn legend(svg: &mut Svg, run: &Run<'_>, devices: &[Device<'_>]) {
    let labels: Vec<(String, String)> = devices
        .iter()
        .map(|device| {
            let label = shortened_name(&device.label(run), 260.0);
            (format!("fill-{}", run.color(device.dut)), label)
        })
        .collect();
    let entries: Vec<(String, &str)> = labels
        .iter()
        .map(|(class, label)| (class.clone(), label.as_str()))
        .collect();
    svg.legend(&entries);
}

/// Each device of the set with a cell in which there is something to draw, in the set's order.
fn found<'a, T>(
    set: &FrameSet<'a>,
    point: &FramePoint<'a>,
    of: impl Fn(&'a CellResult) -> Option<T>,
) -> Vec<(&'a CellResult, T)> {
    let cells = set.devices.iter().filter_map(|device| point.cell(*device));
    cells.filter_map(|cell| Some((cell, of(cell)?))).collect()
}

/// The finished chart of one mix, told in the words of each device.
fn finish(
    svg: Svg,
    title: &str,
    (set, point): (&FrameSet<'_>, &FramePoint<'_>),
    words: impl Iterator<Item = String>,
) -> Markup {
    let words: Vec<String> = words.collect();
    let description = format!("{}, {}. {}.", point.name(), set.common, words.join("; "));
    svg.finish(title, &description)
}

/// A point of a curve.
struct Dot {
    position: (f64, f64),
    /// No frame was lost: a ring, to be told from hardly any.
    lossless: bool,
    tooltip: String,
}

/// A device's figures, joined by a line.
fn curve(svg: &mut Svg, run: &Run<'_>, cell: &CellResult, dots: &[Dot]) {
    let color = run.color(&cell.dut);
    let points: Vec<(f64, f64)> = dots.iter().map(|dot| dot.position).collect();
    svg.polyline(&format!("curve stroke-{color}"), &points, &cell.dut);
    for dot in dots {
        let (class, radius) = match dot.lossless {
            true => ("ring stroke", 4.0),
            false => ("fill", 3.5),
        };
        svg.dot(
            &format!("{class}-{color}"),
            dot.position,
            radius,
            &dot.tooltip,
        );
    }
}

/// Devices but the rig.
fn devices<'a>(set: &FrameSet<'a>) -> Vec<Device<'a>> {
    let all = set.devices.iter().copied();
    all.filter(|device| !device.calibration).collect()
}

/// A band's name below the plot, and a rule before it.
fn band_name(svg: &mut Svg, plot: Area, band: Area, name: &str) {
    let middle = band.x + band.width / 2.0;
    let label = shortened(name, band.width.max(text_width("1518 B")));
    svg.text(
        "label strong",
        (middle, plot.bottom() + 20.0),
        Anchor::Middle,
        &label,
    );
    if band.x > plot.x {
        svg.line("grid", (band.x, plot.y), (band.x, plot.bottom() + 24.0));
    }
}

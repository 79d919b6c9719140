//! Charts of frame tests.

pub(crate) mod disturbed;
pub(crate) mod hostile;
pub(crate) mod latency;
pub(crate) mod loss;
pub(crate) mod outages;
pub(crate) mod throughput;

use super::{Anchor, Area, Svg, shortened, shortened_name, text_width};
use crate::layout::Run;
use crate::layout::frames::{Device, FrameSet};

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

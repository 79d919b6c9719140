//! Survival curves: the share of devices that works for longer, with its interval, and ticks at the
//! ends of observation without failure.

use crate::kit::chart::scale::Linear;
use crate::kit::chart::time::Times;
use crate::kit::chart::{Anchor, Area, Svg, legend_of_devices, plot};
use crate::kit::format::{Scale, percent};
use crate::layout::Run;
use crate::layout::device::{DeviceKind, fatigue};
use crate::topic::device::colors;
use maud::Markup;
use stats::{CellResult, FatigueResult, Survival};
use units::human::duration_ns;

const HEIGHT: f64 = 330.0;
const PLOT: Area = plot(HEIGHT, [26.0, 24.0, 34.0, 56.0]);

/// The curves of all fatigue trials until the first failure; `None` without any.
pub(super) fn draw(run: &Run<'_>, id: &str) -> Option<Markup> {
    let drawn: Vec<(&CellResult, &FatigueResult)> = run
        .device_cells(DeviceKind::Fatigue)
        .filter_map(|(cell, _)| Some((cell, fatigue(cell)?)))
        .collect();
    let longest = drawn.iter().map(|(_, found)| found.survival.longest_ns);
    // An axis without a length cannot be drawn.
    let longest = longest.max().filter(|longest| *longest > 0)? as f64;
    let times = Times::new(longest / 1e9, 8.0);
    let shares = Linear::new(100.0, 5.0, Scale::plain());
    let mut svg = Svg::new(id);
    let colors = colors(run, drawn.iter().map(|(cell, _)| &cell.dut));
    let devices = drawn.iter().zip(&colors);
    let entries = devices.map(|((cell, _), color)| (*color, run.label(&cell.dut)));
    legend_of_devices(&mut svg, entries);
    svg.y_axis(PLOT, &shares, "%");
    // The unit is in the title of the axis.
    times.draw(&mut svg, PLOT, "");
    let position = (PLOT.right(), PLOT.bottom() + 31.0);
    let name = format!("{} under load", times.unit);
    svg.text("tick", position, Anchor::End, &name);
    let place = |ns: u64, share: f64| {
        let x = PLOT.x_at(times.share(ns as f64 / 1e9));
        (x, PLOT.y_at(share))
    };
    for ((cell, found), color) in drawn.iter().zip(&colors) {
        one(&mut svg, cell, found, *color, place);
    }
    let described: Vec<String> = drawn
        .iter()
        .map(|(cell, found)| words(&cell.dut, &found.survival))
        .collect();
    let description = format!("{}.", described.join("; "));
    Some(svg.finish("Share of devices that work for longer", &description))
}

fn one(
    svg: &mut Svg,
    cell: &CellResult,
    found: &FatigueResult,
    color: usize,
    place: impl Fn(u64, f64) -> (f64, f64),
) {
    let curve = &found.survival;
    // An interval applies from its step to the next one, or to the end of the observation.
    let ends = curve.steps.iter().skip(1).map(|step| step.at_ns);
    for (step, end) in curve.steps.iter().zip(ends.chain([curve.longest_ns])) {
        if let (Some(low), Some(high)) = (step.low, step.high) {
            let (left, top) = place(step.at_ns, high);
            let (right, bottom) = place(end, low);
            let area = Area::new(left, top, right - left, bottom - top);
            svg.rect(&format!("area fill-{color}"), area, "");
        }
    }
    let mut corners = vec![place(0, 1.0)];
    let mut share = 1.0;
    // The estimate changes only at failures, so the curve has steps.
    for step in &curve.steps {
        corners.extend([place(step.at_ns, share), place(step.at_ns, step.survives)]);
        share = step.survives;
    }
    corners.push(place(curve.longest_ns, share));
    let tooltip = words(&cell.dut, curve);
    svg.polyline(&format!("curve stroke-{color}"), &corners, &tooltip);
    for device in found.devices.iter().filter(|device| !device.has_failed) {
        let share = curve.at(device.without_failure_ns).unwrap_or(share);
        let (x, y) = place(device.without_failure_ns, share);
        svg.line("mark", (x, y - 5.0), (x, y + 5.0));
    }
}

fn words(dut: &str, curve: &Survival) -> String {
    let end = curve.steps.last().map_or(1.0, |step| step.survives);
    format!(
        "{dut}: {} of {} failed, {} work for longer than {}",
        curve.failures,
        curve.lives,
        percent(100.0 * end),
        duration_ns(curve.longest_ns as f64)
    )
}

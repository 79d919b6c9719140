//! Survival curves: the share of devices that works for longer, with its interval, and ticks at the
//! ends of observation without failure. And a batch of devices by time without failure: one bar per
//! class, failed devices in red.

use super::{batch_name, class_name};
use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::time::Times;
use crate::kit::chart::{Anchor, Area, Key, Spot, Svg, legend_of_devices, plot, shortened};
use crate::kit::format::{Scale, counted, percent};
use crate::layout::Run;
use crate::layout::device::{DeviceKind, fatigue};
use crate::topic::device::colors;
use maud::Markup;
use stats::{CellResult, FatigueBatch, FatigueResult, Survival};
use units::human::duration_ns;

const HEIGHT: f64 = 330.0;
const PLOT: Area = plot(HEIGHT, [26.0, 24.0, 34.0, 56.0]);

/// The curves of all fatigue trials until the first failure; `None` without any.
pub(super) fn survival(run: &Run<'_>, id: &str) -> Option<Markup> {
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
    // All devices work at the beginning.
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

const BATCH_HEIGHT: f64 = 260.0;
const BATCH: Area = plot(BATCH_HEIGHT, [26.0, 8.0, 26.0, 46.0]);
/// Maximum width of a bar.
const BAR_MAX: f64 = 90.0;

/// The chart of a batch; `None` for a single device, which has no distribution.
pub(super) fn batch(run: &Run<'_>, found: &FatigueBatch, id: &str) -> Option<Markup> {
    if found.survival.lives < 2 {
        return None;
    }
    let most = found.classes.iter().map(|class| class.devices).max()?;
    // A tenth more than needed, for the values above the bars.
    let axis = Linear::new(1.1 * f64::from(most), 4.0, Scale::plain());
    let mut svg = Svg::new(id);
    svg.legend([
        (Key::Swatch("fill-1"), "no failure until the end"),
        (Key::Swatch("lost-area"), "failed"),
    ]);
    svg.y_axis(BATCH, &axis, "devices");
    let pitch = BATCH.width / found.classes.len().max(1) as f64;
    let width = (0.7 * pitch).min(BAR_MAX);
    let mut described = Vec::new();
    for (place, class) in found.classes.iter().enumerate() {
        let middle = BATCH.x + pitch * (place as f64 + 0.5);
        let height = |devices: u32| BATCH.height * axis.share(f64::from(devices));
        let name = class_name(class);
        let words = format!(
            "{name}: {} ({}), {} of them failed",
            counted(class.devices, "device"),
            percent(100.0 * class.ratio),
            class.failed
        );
        // Sound devices are at the bottom, so that their number can be read at the axis.
        let sound = class.devices - class.failed;
        let mut bottom = BATCH.bottom();
        for (style, devices) in [("fill-1", sound), ("lost-area", class.failed)] {
            if devices > 0 {
                bottom -= height(devices);
                let bar = Area::new(middle - width / 2.0, bottom, width, height(devices));
                svg.rect(style, bar, &words);
            }
        }
        if class.devices > 0 {
            let text = percent(100.0 * class.ratio);
            svg.label("value", vec![Spot::middle((middle, bottom - 5.0))], &text);
        }
        let label = shortened("tick", &name, pitch - 4.0);
        let position = (middle, BATCH.bottom() + 17.0);
        svg.text("tick", position, Anchor::Middle, &label);
        described.push(words);
    }
    let title = format!("Time without failure: {}", batch_name(run, found));
    Some(svg.finish(&title, &format!("{}.", described.join("; "))))
}

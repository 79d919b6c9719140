//! A batch of devices by time without failure: one bar per class, failed devices in red.

use super::{batch_name, class_name};
use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::{Anchor, Area, Key, Spot, Svg, plot, shortened};
use crate::kit::format::{Scale, counted, percent};
use crate::layout::Run;
use maud::Markup;
use stats::FatigueBatch;

const HEIGHT: f64 = 260.0;
const PLOT: Area = plot(HEIGHT, [26.0, 8.0, 26.0, 46.0]);
/// Maximum width of a bar.
const BAR_MAX: f64 = 90.0;

/// The chart of a batch; `None` for a single device, which has no distribution.
pub(super) fn draw(run: &Run<'_>, found: &FatigueBatch, id: &str) -> Option<Markup> {
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
    svg.y_axis(PLOT, &axis, "devices");
    let pitch = PLOT.width / found.classes.len().max(1) as f64;
    let width = (0.7 * pitch).min(BAR_MAX);
    let mut described = Vec::new();
    for (place, class) in found.classes.iter().enumerate() {
        let middle = PLOT.x + pitch * (place as f64 + 0.5);
        let height = |devices: u32| PLOT.height * axis.share(f64::from(devices));
        let name = class_name(class);
        let words = format!(
            "{name}: {} ({}), {} of them failed",
            counted(class.devices, "device"),
            percent(100.0 * class.ratio),
            class.failed
        );
        let sound = class.devices - class.failed;
        let mut bottom = PLOT.bottom();
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
        let position = (middle, PLOT.bottom() + 17.0);
        svg.text("tick", position, Anchor::Middle, &label);
        described.push(words);
    }
    let title = format!("Time without failure: {}", batch_name(run, found));
    Some(svg.finish(&title, &format!("{}.", described.join("; "))))
}

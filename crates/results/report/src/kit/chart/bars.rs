//! Horizontal bars, one per cell, for kinds of trials with a single figure.

use super::scale::{Axis, Linear};
use super::{Anchor, Area, Key, Spot, Svg, WIDTH, absence, shortened, shortened_name, widest};
use crate::kit::format::Scale;
use crate::layout::Run;
use crate::order::largest;
use maud::Markup;
use stats::{CellResult, Estimate};

const ROW: f64 = 25.0;
const BAR: f64 = 17.0;
/// Height of a setting's line above its bars, and the gap above it.
const SETTING: f64 = 18.0;
const GAP: f64 = 8.0;
/// Limits of the column of names.
const NAMES: [f64; 2] = [60.0, 240.0];
/// The column of values at the right.
const VALUES: f64 = 250.0;
/// Maximum number of bars; tables show more.
const BARS_MAX: usize = 60;

/// A cell's bar.
pub(crate) struct Bar<'r> {
    /// The setting; if settings differ, each has a line above its bars.
    pub(crate) setting: String,
    /// Name of the device.
    pub(crate) name: String,
    pub(crate) cell: &'r CellResult,
    pub(crate) figure: Option<Lying>,
}

/// The figure of a bar.
pub(crate) struct Lying {
    pub(crate) value: f64,
    /// The smallest and the largest repeat.
    pub(crate) repeats: [f64; 2],
    /// The offered load, if a part of it can be lost.
    pub(crate) offered: Option<f64>,
    /// The figure in words, to the right of the bar.
    pub(crate) text: String,
}

impl Lying {
    /// A figure without a lost part.
    pub(crate) fn of(found: &Estimate, text: String) -> Self {
        Self {
            value: found.mean,
            repeats: [found.min, found.max],
            offered: None,
            text,
        }
    }
}

/// Draws the chart; `None` without a figure, or with more bars than are readable. Its words are the
/// title for screen readers, the name of the axis without the unit, and the name of the striped
/// part; `scale` returns the unit for the largest value.
pub(crate) fn draw(
    run: &Run<'_>,
    id: &str,
    (title, quantity, lost): (&str, &str, &str),
    bars: &[Bar<'_>],
    scale: impl Fn(f64) -> Scale,
) -> Option<Markup> {
    let figures = || bars.iter().filter_map(|bar| bar.figure.as_ref());
    figures().next()?;
    // The table next to the chart has all of them.
    if bars.len() > BARS_MAX {
        return None;
    }
    // Whiskers and lost parts extend beyond the bars, and the axis must contain them.
    let ends = figures().map(|found| found.repeats[1].max(found.offered.unwrap_or(0.0)));
    let most = largest(ends);
    let names = widest("label", bars.iter().map(|bar| &bar.name));
    // Narrow names leave more room for bars, which matters on a narrow screen.
    let names = names.clamp(NAMES[0], NAMES[1]) + 14.0;
    let axis = Linear::new(most, 5.0, scale(most));
    let shows_settings = bars.iter().any(|bar| bar.setting != bars[0].setting);
    // The plot's grid spans all rows, so its height is needed before the first row is drawn.
    // Bars of a setting are adjacent: each change adds a line.
    let breaks = 1 + bars
        .windows(2)
        .filter(|pair| pair[0].setting != pair[1].setting)
        .count();
    let heads = if shows_settings {
        breaks as f64 * SETTING + (breaks - 1) as f64 * GAP
    } else {
        0.0
    };
    let height = ROW * bars.len() as f64 + heads;
    let plot = Area::new(names, 0.0, WIDTH - names - VALUES, height);
    let mut svg = Svg::new(id);
    if figures().any(|found| found.offered.is_some()) {
        svg.legend([(Key::Stripes, lost)]);
    }
    svg.x_axis(plot, &axis);
    svg.x_title(
        plot,
        34.0,
        // Counts have no unit, so no comma may follow their quantity.
        format!("{quantity}, {}", axis.unit()).trim_end_matches(", "),
    );
    let mut y = 0.0;
    let mut above: Option<&str> = None;
    for bar in bars {
        // A setting is named once, above the first of its bars.
        if shows_settings && above != Some(&bar.setting) {
            y += if above.is_some() { GAP } else { 0.0 };
            let label = shortened("label strong", &bar.setting, WIDTH);
            svg.text("label strong", (0.0, y + 12.0), Anchor::Start, &label);
            y += SETTING;
        }
        above = Some(&bar.setting);
        one(&mut svg, run, (bar, quantity), &axis, plot, y);
        y += ROW;
    }
    let words: Vec<String> = bars.iter().map(Bar::words).collect();
    Some(svg.finish(title, &format!("{}.", words.join("; "))))
}

impl Bar<'_> {
    fn words(&self) -> String {
        let text = match &self.figure {
            Some(found) => &found.text,
            None => absence(self.cell, "no figure"),
        };
        match self.setting.as_str() {
            "" => format!("{}: {text}", self.name),
            setting => format!("{setting}, {}: {text}", self.name),
        }
    }
}

fn one(
    svg: &mut Svg,
    run: &Run<'_>,
    (bar, quantity): (&Bar<'_>, &str),
    axis: &Linear,
    plot: Area,
    y: f64,
) {
    let name = shortened_name("label", &bar.name, plot.x - 10.0);
    svg.text("label", (plot.x - 8.0, y + 17.0), Anchor::End, &name);
    let Some(found) = &bar.figure else {
        let spot = Spot::start((plot.x + 6.0, y + 17.0));
        svg.label("reason", vec![spot], absence(bar.cell, "no figure"));
        return;
    };
    let width = |value: f64| plot.width * axis.share(value);
    let top = y + (ROW - BAR) / 2.0;
    // Without a setting, the tooltip names the quantity: it must never be a bare number.
    let setting = match bar.setting.as_str() {
        "" => quantity,
        setting => setting,
    };
    let tooltip = format!("{}, {setting}: {}", bar.cell.dut, found.text);
    let area = plot.bar(top, width(found.value), BAR);
    svg.bar(run.color(&bar.cell.dut), area, &tooltip);
    let mut end = area.right();
    if let Some(offered) = found.offered.filter(|offered| *offered > found.value) {
        let lost = Area::new(end, top, width(offered) - area.width, BAR);
        // `number` would round narrower stripes to a width of 0.
        if lost.width > 0.05 {
            svg.stripes(lost, &tooltip);
        }
        end = lost.right();
    }
    let [low, high] = found.repeats.map(|repeat| plot.x + width(repeat));
    let middle = top + BAR / 2.0;
    svg.side_whisker(low, high, middle);
    // The text begins after the lost part or the whisker, the longer of the two.
    let after = end.max(high) + 8.0;
    svg.label("value", Spot::rightward((after, middle + 4.5)), &found.text);
}

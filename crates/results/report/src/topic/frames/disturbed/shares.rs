//! The forwarded part of a load, by the share of hostile packets added to it.

use super::hostile::percent_name;
use super::kept_percent;
use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::{Anchor, Area, Spot, Svg, plot, with_interval};
use crate::kit::format::{Scale, counted};
use crate::topic::frames::chart::{Dot, Mix, curve, legend};
use maud::Markup;
use stats::{CellResult, DisturbanceResult};

const HEIGHT: f64 = 350.0;
const PLOT: Area = plot(HEIGHT, [30.0, 24.0, 48.0, 56.0]);

/// A share of hostile packets, and the result for the load.
struct Share {
    percent: u16,
    /// Forwarded frames, in per cent of the frames sent.
    forwarded: f64,
    lossless: bool,
    came_through: u64,
    /// The figure in words, with its interval.
    figure: String,
}

/// The chart of one mix; `None` if no device was attacked.
pub(super) fn draw(mix: Mix<'_>, id: &str) -> Option<Markup> {
    let curves = mix.found(|cell| dots(cell.frames()?.disturbance()?));
    let all = || curves.iter().flat_map(|(_, dots)| dots);
    let most = all().map(|dot| dot.percent).max()?;
    let x_axis = Linear::new(f64::from(most), 8.0, Scale::plain());
    // The axis shows losses: on one from 0, a loss of 1 % would not be visible.
    let lost = all().map(|dot| 100.0 - dot.forwarded).fold(1.0, f64::max);
    let y_axis = Linear::new(lost, 5.0, Scale::plain());
    let mut svg = Svg::new(id);
    legend(&mut svg, mix.run, &mix.set.devices);
    forwarded_axis(&mut svg, &y_axis);
    svg.x_axis(PLOT, &x_axis);
    let what = "hostile packets, in per cent of the load";
    svg.x_title(PLOT, 38.0, what);
    for (cell, shares) in &curves {
        draw_shares(&mut svg, mix, cell, shares, (&x_axis, &y_axis));
    }
    let words = curves.iter().map(|(cell, shares)| words(&cell.dut, shares));
    let title = "Load forwarded by share of hostile packets";
    Some(mix.finish(svg, title, words))
}

/// The points of a device, the control first, if present.
fn dots(found: &DisturbanceResult) -> Option<Vec<Share>> {
    let hostile = found.hostile()?;
    let scale = |divisor, unit: &str| Scale {
        divisor,
        unit: unit.into(),
    };
    let (ppm, percent) = (scale(1.0, "ppm"), scale(0.01, "%"));
    let quiet = found.quiet.as_ref().map(|quiet| Share {
        percent: 0,
        forwarded: 100.0 - quiet.load.lost_ppm.mean / 1e4,
        lossless: quiet.load.account.lost == 0,
        came_through: 0,
        figure: format!("lost: {}", with_interval(&ppm, &quiet.load.lost_ppm)),
    });
    let shares = hostile.shares.iter().map(|share| Share {
        percent: share.percent,
        forwarded: 100.0 * share.forwarded_ratio.mean,
        lossless: share.disturbed.load.account.lost == 0,
        came_through: share.delivered,
        figure: format!(
            "forwarded: {}",
            with_interval(&percent, &share.forwarded_ratio)
        ),
    });
    Some(quiet.into_iter().chain(shares).collect())
}

/// From 100 % at the top down to the least forwarded share.
fn forwarded_axis(svg: &mut Svg, lost: &Linear) {
    for (value, label) in lost.ticks() {
        let y = height(lost, value);
        // The label has as many decimals as the step of the axis needs.
        let decimals = label.split('.').nth(1).map_or(0, str::len);
        let label = format!("{:.decimals$}", 100.0 - value);
        svg.y_tick("grid", PLOT, y, &label);
    }
    let position = (PLOT.x - 7.0, PLOT.y - 12.0);
    svg.text("tick", position, Anchor::End, "% of it");
}

fn height(lost: &Linear, percent: f64) -> f64 {
    PLOT.y + PLOT.height * lost.share(percent)
}

fn draw_shares(
    svg: &mut Svg,
    mix: Mix<'_>,
    cell: &CellResult,
    shares: &[Share],
    (x_axis, y_axis): (&Linear, &Linear),
) {
    let name = mix.point.name();
    let dot = |share: &Share| Dot {
        position: (
            PLOT.x_at(x_axis.share(f64::from(share.percent))),
            height(y_axis, 100.0 - share.forwarded),
        ),
        lossless: share.lossless,
        tooltip: format!(
            "{}, {name}, beside {} of hostile packets: {} of the load; {}",
            cell.dut,
            percent_name(share.percent),
            kept_percent(share.forwarded),
            share.figure
        ),
    };
    let dots: Vec<Dot> = shares.iter().map(dot).collect();
    let places: Vec<(f64, f64)> = dots.iter().map(|dot| dot.position).collect();
    curve(svg, mix.run, cell, dots);
    // Crosses are drawn above the marks.
    for (share, (x, y)) in shares.iter().zip(places) {
        if share.came_through > 0 {
            svg.line("breach", (x - 7.0, y - 7.0), (x + 7.0, y + 7.0));
            svg.line("breach", (x - 7.0, y + 7.0), (x + 7.0, y - 7.0));
            let text = format!("{} came through", share.came_through);
            svg.label("reason", Spot::around((x, y)), &text);
        }
    }
}

fn words(dut: &str, dots: &[Share]) -> String {
    let worst = dots.iter().map(|dot| dot.forwarded).fold(100.0, f64::min);
    // `at least 100.00 %` would deny a small loss.
    let worst = if worst < 100.0 {
        worst.min(99.99)
    } else {
        worst
    };
    let came: u64 = dots.iter().map(|dot| dot.came_through).sum();
    let came = match came {
        0 => String::new(),
        frames => format!(", {} came through", counted(frames, "hostile packet")),
    };
    format!("{dut}: at least {worst:.2} % forwarded{came}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_loss_is_not_rounded_to_none() {
        let share = |forwarded: f64| Share {
            percent: 100,
            forwarded,
            lossless: forwarded >= 100.0,
            came_through: 0,
            figure: String::new(),
        };
        let words = |forwarded| words("wolf", &[share(forwarded)]);
        assert_eq!(words(100.0), "wolf: at least 100.00 % forwarded");
        assert_eq!(words(99.999), "wolf: at least 99.99 % forwarded");
        assert_eq!(words(98.5), "wolf: at least 98.50 % forwarded");
        assert_eq!(kept_percent(99.999), "> 99.99 %");
        assert_eq!(kept_percent(100.0), "100.00 %");
    }
}

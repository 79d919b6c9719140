//! Loss by load: the onset of loss, and its growth.

use super::common::apart;
use super::lossless;
use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::{Area, Svg, plot, with_interval};
use crate::kit::format::{Scale, percent};
use crate::order::largest;
use crate::topic::frames::chart::{Dot, Mix, curve, legend};
use crate::topic::frames::mean_rate;
use maud::Markup;
use stats::{CellResult, Estimate, LoadResult};

const HEIGHT: f64 = 340.0;
const PLOT: Area = plot(HEIGHT, [30.0, 24.0, 48.0, 56.0]);
const PPM_PER_PERCENT: f64 = 1e4;

/// The chart of one mix; `None` if no cell has two loads.
pub(super) fn draw(mix: Mix<'_>, id: &str) -> Option<Markup> {
    let curves = mix.found(|cell| {
        let loads = cell.frames()?.loads();
        (loads.len() > 1).then_some(loads)
    });
    curves.first()?;
    let all = || curves.iter().flat_map(|(_, loads)| loads.iter());
    let fastest =
        largest(all().map(|load| {
            ends(load).map_or(load.offered.frames_per_s.mean, |[offered, _]| offered[1])
        }));
    let most =
        largest(all().map(|load| ends(load).map_or(load.lost_ppm.mean, |[_, lost]| lost[1])));
    let most = most / PPM_PER_PERCENT;
    let x_axis = Linear::si(fastest, 8.0, "pps");
    // At least 1 %, or a few lost frames would fill the height of the plot.
    let y_axis = Linear::new(most.max(1.0), 5.0, Scale::plain());
    let mut svg = Svg::new(id);
    legend(&mut svg, mix.run, &mix.set.devices);
    svg.y_axis(PLOT, &y_axis, "% lost");
    svg.x_axis(PLOT, &x_axis);
    let title = format!("offered load, {}", x_axis.unit());
    svg.x_title(PLOT, 38.0, &title);
    let name = mix.point.name();
    let ppm = Scale::of("ppm");
    for (cell, loads) in &curves {
        let dot = |load: &LoadResult| {
            let lost = load.lost_ppm.mean / PPM_PER_PERCENT;
            let offered = &load.offered.frames_per_s;
            Dot {
                position: (
                    PLOT.x_at(x_axis.share(offered.mean)),
                    PLOT.y_at(y_axis.share(lost)),
                ),
                lossless: load.account.lost == 0,
                tooltip: format!(
                    "{}, {name}, offered {}: {} lost; {}",
                    cell.dut,
                    mean_rate(offered),
                    percent(lost),
                    with_interval(&ppm, &load.lost_ppm)
                ),
            }
        };
        for load in *loads {
            let Some([offered, lost]) = ends(load) else {
                continue;
            };
            let x = |rate: f64| PLOT.x_at(x_axis.share(rate));
            let y = |ppm: f64| PLOT.y_at(y_axis.share(ppm / PPM_PER_PERCENT));
            svg.side_whisker(x(offered[0]), x(offered[1]), y(load.lost_ppm.mean));
            svg.whisker(
                x(load.offered.frames_per_s.mean),
                [y(lost[1]), y(lost[0])],
                4.0,
            );
        }
        curve(&mut svg, mix.run, cell, loads.iter().map(dot).collect());
    }
    let words = curves.iter().map(|(cell, loads)| words(cell, loads));
    Some(mix.finish(svg, "Frame loss by offered load", words))
}

/// The least and the most offered and lost in the repeats, if their loads are not one.
fn ends(load: &LoadResult) -> Option<[[f64; 2]; 2]> {
    let of = |one: &Estimate| [one.min, one.max];
    apart(load).map(|_| [of(&load.offered.frames_per_s), of(&load.lost_ppm)])
}

fn words(cell: &CellResult, loads: &[LoadResult]) -> String {
    let first = match lossless(loads) {
        (Some(load), _) => format!("no loss up to {}", mean_rate(&load.offered.frames_per_s)),
        (None, _) if loads.iter().all(|load| load.account.lost > 0) => {
            "loss at every load".to_owned()
        }
        (None, _) => "loss at the lowest load".to_owned(),
    };
    let at_highest = loads.first().map_or_else(String::new, |load| {
        format!(
            ", {} lost at the highest load, {}",
            percent(load.lost_ppm.mean / PPM_PER_PERCENT),
            mean_rate(&load.offered.frames_per_s)
        )
    });
    format!("{}: {first}{at_highest}", cell.dut)
}

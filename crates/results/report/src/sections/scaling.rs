//! Throughput by cores, workers, tunnels or flows.

use super::{Blocks, Section};
use crate::chart;
use crate::layout::Run;
use crate::tables::scaling::{figures, measurements, verdicts};
use stats::{Scaling, ScalingAxis};

/// Minimum points for a series that shows more than a ratio.
const CURVE_POINTS: usize = 3;

pub(super) const SECTION: Section = Section::result("scaling", "Scaling", |run, out| {
    if run.results.scalings.iter().any(is_curve) {
        blocks(run, out);
    }
})
.not_brief();

/// Series too short to answer anything; their figures are in other tables, too.
pub(super) const OF_TWO: Section =
    Section::result("scaling-of-two", "Scaling (two points)", |run, out| {
        if !run.results.scalings.iter().any(is_curve) {
            blocks(run, out);
        }
    })
    .beside();

/// Whether a series is long enough to show the end of scaling.
pub(crate) fn is_curve(series: &Scaling) -> bool {
    series.points.len() >= CURVE_POINTS
}

fn blocks(run: &Run<'_>, out: &mut Blocks) {
    let found = &run.results.scalings;
    if found.is_empty() {
        return;
    }
    out.table(verdicts(found, out.is_short()));
    if out.is_short() {
        return;
    }
    for (index, all) in measurements(run).into_iter().enumerate() {
        let (axis, series) = (all[0].axis, &all[0].series);
        out.chart(
            format!("By {}: {series}", axis.name()),
            how_to_read(axis),
            || chart::scaling::draw(run, &all, &format!("scaling-{index}")),
        );
        out.table(figures(run, &all));
    }
}

fn how_to_read(axis: ScalingAxis) -> &'static str {
    if axis.adds() {
        "Dots: mean of the repeats; whiskers: the farthest repeat's distance. Dotted: linear \
            scaling. Line: the fitted law, if one describes the points. Dashed: scaling \
            stops."
    } else {
        "Dots: mean of the repeats; whiskers: the farthest repeat's distance. Dotted: no \
            loss. Dashed: the figure falls."
    }
}

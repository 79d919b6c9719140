//! Throughput by cores, workers, tunnels or flows.

use super::Section;
use crate::chart;
use crate::tables::scaling::{figures, measurements, verdicts};
use stats::ScalingAxis;

pub(super) const SECTION: Section = Section::result("scaling", "Scaling", |run, out| {
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
})
.not_brief();

fn how_to_read(axis: ScalingAxis) -> &'static str {
    match axis.adds() {
        true => {
            "Dots: mean of the repeats; whiskers: the farthest repeat's distance. Dotted: linear \
            scaling. Line: the fitted law, where one describes the points. Dashed: where scaling \
            stops."
        }
        false => {
            "Dots: mean of the repeats; whiskers: the farthest repeat's distance. Dotted: no \
            loss. Dashed: where the figure falls."
        }
    }
}

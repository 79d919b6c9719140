//! Round-trip times by percentile.

use super::percentiles::{self, Curve};
use super::with_interval;
use crate::format::Scale;
use crate::layout::{Point, Run, Set};
use maud::Markup;
use stats::{CellResult, Distribution};

/// The chart of one point; `None` if no cell has round trips.
pub(crate) fn draw(run: &Run<'_>, set: &Set<'_>, point: &Point<'_>, id: &str) -> Option<Markup> {
    let curves: Vec<Curve<'_>> = point
        .cells
        .iter()
        .filter_map(|cell| curve(run, cell))
        .collect();
    let name = set.name_of(point);
    let svg = percentiles::draw(id, &name, "replies", &curves)?;
    let described: Vec<String> = curves.iter().map(Curve::words).collect();
    let description = format!("{name}, {}. {}.", set.common, described.join("; "));
    Some(svg.finish("Round-trip time by percentile", &description))
}

fn curve<'a>(run: &Run<'_>, cell: &'a CellResult) -> Option<Curve<'a>> {
    let found = cell.latency()?;
    let times = found.round_trips_ns.iter().map(|time| (*time, 1));
    Some(Curve {
        dut: &cell.dut,
        style: run.color(&cell.dut),
        times: Distribution::of(times)?,
        by_repeat: with_interval(&Scale::time(found.p50_ns.mean), &found.p50_ns),
    })
}

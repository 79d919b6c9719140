//! Round-trip times.

use super::Section;
use crate::layout::Protocol;
use crate::{chart, tables};

pub(super) const SECTION: Section = Section::result("latency", "Latency", |run, out| {
    let sets = run.sets_of(Protocol::Ping);
    for (at, set) in sets.iter().enumerate() {
        for (index, point) in set.points.iter().enumerate() {
            let conditions = format!("{}, {}", set.name_of(point), set.common);
            out.chart(
                format!("Round-trip time by percentile: {conditions}"),
                "All repeats pooled. Each nine is as wide as the one before; both axes are logarithmic. \
                 Dotted: fewer than ten replies are slower.",
                || chart::latency::draw(run, set, point, &format!("latency-{at}-{index}")),
            );
        }
    }
    out.tables(tables::latency(run, &sets));
    out.tables(tables::loaded(run));
    out.tables(tables::hops(run));
    out.tables(tables::path_mtu(run));
});

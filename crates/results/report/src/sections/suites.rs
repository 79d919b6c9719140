//! Suites of one device.

use super::{RESULTS, Section};
use crate::{chart, tables};

const READING: &str = "From the oldest to the strongest. Bars, or marks on a logarithmic axis: mean of the repeats; \
                       whiskers: the farthest repeat; \
                       the line on a bar or behind it: the ceiling that packets of this length leave, where it is \
                       not far above all figures. Beside them, what the suite adds to each packet, and the share of \
                       the ceiling that was reached.";

pub(super) const SECTION: Section = Section {
    id: "suites",
    name: "Suites",
    title: "Suites: cipher by hash",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| {
        let tables = tables::suites::suites(run, out.is_short());
        let overview = tables::suites::overview(run);
        let has_overview = !overview.is_empty();
        out.tables(overview);
        for (index, (matrix, rows)) in run.results.suites.iter().zip(tables).enumerate() {
            let id = format!("suites-{index}");
            let draw = || chart::suites::draw(run, matrix, &id);
            if has_overview {
                out.folded_chart(rows.caption.as_str(), READING, draw)
            } else {
                out.chart(rows.caption.as_str(), READING, draw)
            }
            out.table(rows);
        }
    },
};

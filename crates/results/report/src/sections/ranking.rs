//! Devices in order, group by group.

use super::Section;
use crate::{chart, tables::ranking};

const READING: &str = "Bars, or marks on a logarithmic axis: mean of the repeats. Lines: its interval; devices whose lines \
                       overlap are not distinguishable, and the number before a name is the \
                       range from its best to its worst possible rank. Outlined: insecure. Without a number: for reference.";

pub(super) const SECTION: Section = Section::result("ranking", "Ranking", |run, out| {
    let tables = ranking::rankings(run, out.is_short());
    let overview = ranking::overview(run);
    let has_overview = !overview.is_empty();
    out.tables(overview);
    for (index, (found, rows)) in ranking::ranked(run).iter().zip(tables).enumerate() {
        let id = format!("ranking-{index}");
        let draw = || Some(chart::ranking::draw(run, found, &id));
        if has_overview {
            out.folded_chart(ranking::caption(found), READING, draw)
        } else {
            out.chart(ranking::caption(found), READING, draw)
        }
        out.table(rows);
    }
});

//! Devices in order, group by group.

use super::Section;
use crate::{chart, tables::ranking};

const READING: &str = "Bars, or marks on a logarithmic axis: mean of the repeats. Lines: its interval; devices whose lines \
                       overlap are not distinguishable, and the number before a name is the \
                       range from its best to its worst possible rank. Outlined: insecure. Without a number: for reference.";

pub(super) const SECTION: Section = Section::result("ranking", "Ranking", |run, out| {
    let tables = ranking::rankings(run, out.is_short());
    if !tables.is_empty() {
        out.note(READING);
    }
    for (index, (found, rows)) in ranking::ranked(run).iter().zip(tables).enumerate() {
        out.chart(ranking::caption(found), "", || {
            Some(chart::ranking::draw(
                run,
                found,
                &format!("ranking-{index}"),
            ))
        });
        out.table(rows);
    }
});

//! Values read from boxes and machines during traffic, and the energy of the traffic.

use super::Section;
use crate::layout::groups::words_of;
use crate::{chart, tables};
use stats::CellResult;

/// Maximum number of charts; the tables have all cells.
const CHARTS_MAX: usize = 12;

pub(super) const SECTION: Section = Section::result("monitored", "Boxes and power", |run, out| {
    out.tables(tables::energy(run));
    out.tables(tables::monitored(run));
    let words = run.group_words();
    let cells = run.results.cells.iter();
    let monitored: Vec<&CellResult> = cells.filter(|cell| !cell.monitored.is_empty()).collect();
    for (index, cell) in monitored.iter().take(CHARTS_MAX).enumerate() {
        let group = words_of(&words, &cell.group).name;
        out.folded_chart(
            format!("{}: {group}", run.label(&cell.dut)),
            reading(monitored.len()),
            || chart::monitored::draw(run, cell, &format!("monitored-{index}")),
        );
    }
    out.details("Readings under each load", tables::monitored_loads(run));
});

fn reading(cells: usize) -> String {
    let most = if cells > CHARTS_MAX {
        format!(" The first {CHARTS_MAX} of {cells} measurements have a chart.")
    } else {
        String::new()
    };
    format!("Values over the time of the first measured repeat; grey: traffic flowed.{most}")
}

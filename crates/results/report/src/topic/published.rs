//! Published reports next to the measured figures.

pub(crate) mod beside;

use super::has_section;
use crate::kit::cells::reason_cell;
use crate::kit::format::{Scale, ratio_number};
use crate::kit::section::{Block, Section};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::order::unique;
use beside::{beside, drawings, overview};
use stats::PublishedResult;

pub(super) const SECTION: Section =
    Section::result("published", "Beside the published report", |run, out| {
        out.tables(overview(run));
        // Their columns are the report's, even without figures here.
        for table in beside(run) {
            out.push(Block::Table(table));
        }
        out.tables(drawings(run, |id| has_section(run, id)));
        out.tables(published(run));
    })
    .named("Published figures")
    .not_brief();

/// Published figures of journals that do not record their place in the report; `None` if none.
fn published(run: &Run<'_>) -> Option<Table> {
    // The tables of batches contain the shares of devices.
    let found = run.results.published.iter();
    let found = found.filter(|one| one.at.is_none() && !is_share(one));
    let found: Vec<&PublishedResult> = found.collect();
    found.first()?;
    let sources = unique(found.iter().map(|one| one.source.as_str()));
    let mut note = format!(
        "published: {}; measured: mean ± largest distance from it; ratio: measured by published, where \
        both count the same. They come from other machines, so nothing is judged by them",
        sources.join("; ")
    );
    let converted = unique(found.iter().filter_map(|one| one.converted.as_deref()));
    if !converted.is_empty() {
        note += &format!(
            ". Measured was converted to the published layer: {}",
            converted.join("; ")
        );
    }
    let counts = found.iter().any(|one| one.counts.is_some());
    let mut labels = vec!["What", "System", "Published", "Device here"];
    if counts {
        labels.insert(3, "Counts");
    }
    let mut table = Table::new("Published and measured figures", note)
        .labels(labels)
        .figures(["Measured", "Ratio"]);
    for one in found {
        let scale = scale(one);
        let measured = match (&one.measured, &one.refused, run.cell(&one.cell)) {
            (Some(found), ..) => Cell::plain(scale.estimate(found)),
            (None, Some(why), _) => Cell::reason(format!("not comparable: {why}")),
            (None, None, Some(cell)) => reason_cell(cell),
            (None, None, None) => Cell::missing(),
        };
        let mut row = vec![
            Cell::label(&one.what),
            Cell::label(&one.system),
            Cell::label(scale.value(one.published)),
        ];
        if counts {
            row.push(Cell::label(one.counts.as_deref().unwrap_or_default()));
        }
        row.extend([
            Cell::label(run.cell(&one.cell).map_or(&one.dut, |cell| &cell.dut)),
            measured,
            Cell::derived_or_missing(one.ratio.map(ratio_number)),
        ]);
        table.push(row);
    }
    Some(table)
}

/// Whether the figure is the share of a batch's devices that worked for a given time.
pub(super) fn is_share(one: &PublishedResult) -> bool {
    one.unit == "percent_of_devices"
}

/// The scale for printing a published figure and the figures measured for it.
pub(super) fn scale(one: &PublishedResult) -> Scale {
    let unit = match one.unit.as_str() {
        "bytes_per_s" => "B/s",
        "operations_per_s" => "op/s",
        _ => "bit/s",
    };
    Scale::si(one.published, unit)
}

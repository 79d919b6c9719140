//! Results of the checks, and reasons for missing figures.

use super::late_mark;
use crate::evidence::{Summary, common_form};
use crate::layout::Run;
use crate::order::grouped;
use crate::table::{Cell, Table};
use journal::record::in_brief;
use plan::LinkForm;
use stats::{CellResult, Status};

/// Results of the checks, one row per cell.
pub(crate) fn evidence(run: &Run<'_>) -> Table {
    let mut note = "checks passed over all repeats".to_owned();
    let mut titles = vec!["Checks"];
    // Crypto devices have no link between gateways.
    let has_link = !run.only_devices();
    if has_link {
        let form = common_form(run).map(LinkForm::name);
        titles.extend([form.unwrap_or("Sealed"), "Clear marker"]);
        note.push_str(&format!(
            "; of the frames sampled between the gateways: {}, and showing \
             the stations' marker in clear",
            form.unwrap_or("sealed by the device")
        ));
    }
    let mut table = Table::new("Evidence", note)
        .label("Cell")
        .figures(titles)
        .text("Verdict");
    for cell in &run.results.cells {
        let found = Summary::of(run, cell);
        let of = |part: u64, whole: u64| match whole {
            0 => Cell::missing(),
            _ => Cell::plain(format!("{part} of {whole}")),
        };
        let mut cells = vec![
            Cell::label(&cell.id),
            of(found.passed as u64, found.checks as u64),
        ];
        if has_link {
            cells.push(of(found.esp_frames, found.frames));
            cells.push(of(found.marker_frames, found.frames));
        }
        cells.push(verdict(cell));
        table.push(cells);
    }
    table
}

/// How much of the frame trials the evidence covers, one row per cell with covered trials. Empty
/// without such cells, and for journals from before every trial was read.
pub(crate) fn coverage(run: &Run<'_>) -> Table {
    let note = "frame trials over all repeats, including those of searches; by counters: the counters of the \
                cipher link were read; every frame: the kernel filter saw every frame on it; then the \
                frames of trials with both; samples are of one trial a repeat";
    let mut table = Table::new("Frame trials with evidence", note)
        .label("Cell")
        .figures([
            "By counters",
            "By the filter",
            "Frames covered",
            "Frames sampled",
        ]);
    for cell in &run.results.cells {
        let found = Summary::of(run, cell);
        let coverage = found.coverage;
        if !coverage.is_any() {
            continue;
        }
        let of = |part: u64, whole: u64| Cell::plain(format!("{part} of {whole}"));
        table.push(vec![
            Cell::label(&cell.id),
            of(coverage.counted, coverage.trials),
            of(coverage.filtered, coverage.trials),
            of(coverage.covered_frames, coverage.frames),
            Cell::plain(found.frames.to_string()),
        ]);
    }
    table
}

/// The status of a cell in words: `measured`, `invalid` …
fn verdict(cell: &CellResult) -> Cell {
    let repeats = &cell.repeats;
    match cell.status {
        Status::Measured => Cell::plain(format!("measured{}", late_mark(cell))),
        Status::Partly => Cell::plain(format!(
            "{} of {}{}",
            repeats.measured,
            repeats.planned,
            late_mark(cell)
        )),
        Status::Invalid => Cell::reason("invalid"),
        Status::Failed => Cell::reason("failed"),
        Status::NotRun => Cell::missing(),
    }
}

/// Maximum number of cells named in a row of the table of reasons.
const CELLS_NAMED: usize = 4;

/// Why cells lack a figure, or some repeats of it: one row per reason, with the affected cells.
/// Empty without reasons.
pub(crate) fn reasons(run: &Run<'_>) -> Table {
    let mut table = Table::new(
        "Invalid and failed trials",
        "their figures are not reported; cipherbench resume RUN --invalid repeats them",
    )
    .labels(["Cells", "Repeats"])
    .text("Reason");
    let cells = run.results.cells.iter();
    let all = cells.flat_map(|cell| {
        let own = cell.reasons.iter();
        own.map(move |reason| {
            let words = (&reason.text, &reason.explanation);
            (words, (cell.id.as_str(), reason.repeat))
        })
    });
    for ((text, explanation), places) in grouped(all) {
        let mut names: Vec<&str> = places.iter().map(|(cell, _)| *cell).collect();
        names.dedup();
        let mut repeats: Vec<u32> = places.iter().map(|(_, repeat)| *repeat).collect();
        repeats.sort_unstable();
        repeats.dedup();
        let repeats: Vec<String> = repeats.iter().map(u32::to_string).collect();
        let cells = match names.len() {
            count if count > CELLS_NAMED => {
                let named = names[..CELLS_NAMED - 1].join(", ");
                format!("{named} and {} more", count + 1 - CELLS_NAMED)
            }
            _ => names.join(", "),
        };
        table.push(vec![
            Cell::label(cells),
            Cell::label(repeats.join(", ")),
            match explanation {
                Some(explanation) => {
                    let check = in_brief(text);
                    let counters = text.strip_prefix(check).unwrap_or(text);
                    Cell::explained(check, explanation, counters.trim_start_matches(": "))
                }
                None => Cell::reason(text),
            },
        ]);
    }
    table
}

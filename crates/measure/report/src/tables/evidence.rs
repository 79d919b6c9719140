//! Results of the checks, and reasons for missing figures.

use crate::evidence::{Summary, common_form};
use crate::layout::Run;
use crate::order::grouped;
use crate::table::{Cell, Table};
use campaign::plan::Form;
use stats::{CellResult, Status};

/// Results of the checks, a row per cell.
pub(crate) fn evidence(run: &Run<'_>) -> Table {
    if run.only_devices() {
        return checks(run);
    }
    let form = common_form(run);
    let sealed = form.map_or("sealed by the device", Form::name);
    let note = format!(
        "checks passed over all repeats; of the frames sampled between the gateways, those that \
         were {sealed} and those that showed the stations' marker in clear"
    );
    let mut table = Table::new("Evidence", note)
        .label("Cell")
        .figure("Checks")
        .figure(form.map_or("Sealed", Form::name))
        .figure("Clear marker")
        .text("Verdict");
    for cell in &run.results.cells {
        let found = Summary::of(run, cell);
        let of = |part: u64, whole: u64| match whole {
            0 => Cell::missing(),
            _ => Cell::plain(format!("{part} of {whole}")),
        };
        table.push(vec![
            Cell::label(&cell.id),
            of(found.passed as u64, found.checks as u64),
            of(found.esp_frames, found.frames),
            of(found.marker_frames, found.frames),
            verdict(cell),
        ]);
    }
    table
}

/// Of crypto devices: nothing passes between gateways.
fn checks(run: &Run<'_>) -> Table {
    let mut table = Table::new("Evidence", "checks passed over all repeats")
        .label("Cell")
        .figure("Checks")
        .text("Verdict");
    for cell in &run.results.cells {
        let found = Summary::of(run, cell);
        table.push(vec![
            Cell::label(&cell.id),
            match found.checks {
                0 => Cell::missing(),
                checks => Cell::plain(format!("{} of {checks}", found.passed)),
            },
            verdict(cell),
        ]);
    }
    table
}

/// Cells in words: `measured`, `invalid` …
fn verdict(cell: &CellResult) -> Cell {
    let repeats = &cell.repeats;
    match cell.status {
        Status::Measured => Cell::plain("measured"),
        Status::Partly => Cell::plain(format!("{} of {}", repeats.measured, repeats.planned)),
        Status::Invalid => Cell::reason("invalid"),
        Status::Failed => Cell::reason("failed"),
        Status::NotRun => Cell::missing(),
    }
}

/// Why cells have no figure, or not that of all repeats: a row per reason. Empty when there is
/// none.
pub(crate) fn reasons(run: &Run<'_>) -> Table {
    let mut table = Table::new(
        "Invalid and failed trials",
        "their figures are not reported; cipherbench resume RUN --invalid repeats them",
    )
    .labels(["Cell", "Repeat"])
    .text("Reason");
    for cell in &run.results.cells {
        let reasons = cell.reasons.iter();
        let different = grouped(reasons.map(|reason| (&reason.text, reason.repeat.to_string())));
        for (text, repeats) in different {
            let labels = [Cell::label(&cell.id), Cell::label(repeats.join(", "))];
            table.push(labels.into_iter().chain([Cell::reason(text)]).collect());
        }
    }
    table
}

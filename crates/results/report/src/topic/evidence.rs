//! The checks of the evidence, counted, and the losses of each direction.

use super::frames::share;
use crate::kit::cells::late_mark;
use crate::kit::column::{Declared, text};
use crate::kit::format::si;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::evidence::{Summary, common_form, of_trial};
use maud::html;
use plan::LinkForm;
use stats::{CellResult, DirectionLoss, Status};

pub(super) const SECTION: Section = Section::annex("evidence", "Evidence", |run, out| {
    out.html(html! {
        p.note {
            "Every check of every trial, with the numbers that decided it, is under "
            a href="#cells" { "Cells and commands" } "."
        }
    });
    out.table(evidence(run));
    out.tables(coverage(run).with_rows());
    out.tables(directions(run));
});

/// Results of the checks, one row per cell.
fn evidence(run: &Run<'_>) -> Table {
    let mut note = "checks passed over all repeats".to_owned();
    let mut titles = vec!["Checks"];
    // Crypto devices have no link between gateways.
    let has_link = !run.only_devices();
    if has_link {
        // Devices may seal frames in different forms: then the heading is general.
        let form = common_form(run).map(LinkForm::name);
        titles.extend([form.unwrap_or("Sealed"), "Clear marker"]);
        note.push_str(&format!(
            "; of the frames sampled between the gateways: {}, and showing \
             the stations' marker in clear",
            form.unwrap_or("sealed by the device")
        ));
    }
    let mut table = Table::new("Evidence", note)
        .labels(["Cell"])
        .figures(titles)
        .texts(["Verdict"]);
    for cell in &run.results.cells {
        let found = Summary::of(run, cell);
        // `0 of 0` would look like a failed check.
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
fn coverage(run: &Run<'_>) -> Table {
    let note = "frame trials over all repeats, including those of searches; by counters: the counters of the \
                cipher link were read; every frame: the kernel filter saw every frame on it; then the \
                frames of trials with both; samples are of one trial a repeat";
    let mut table = Table::new("Frame trials with evidence", note)
        .labels(["Cell"])
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

/// One row per cell that loads both directions; `None` without any.
fn directions(run: &Run<'_>) -> Option<Table> {
    let note = "cells that load both directions at once; over every frame trial but the one that \
                found the highest load, overloads of a search included; lost: of the frames that left \
                the sender, mean of the repeats; a search holds the worse direction to its goal";
    let mut table = Table::new("Loss by direction", note)
        .labels(["Cell"])
        .figures(["Sent, A to B", "Lost, A to B"])
        .figures(["Sent, B to A", "Lost, B to A"]);
    for cell in &run.results.cells {
        let found = cell.frames().map_or(&[][..], |found| &found.directions);
        if found.is_empty() {
            continue;
        }
        let mut cells = vec![Cell::label(&cell.id)];
        cells.extend(found.iter().flat_map(figures));
        table.push(cells);
    }
    table.with_rows()
}

fn figures(found: &DirectionLoss) -> [Cell; 2] {
    let sent = found.account.sent() as f64;
    [
        Cell::plain(si(sent, "")),
        Cell::plain(share(found.account.lost, found.lost_ppm.mean)),
    ]
}

/// Checks of the evidence.
pub(crate) const COLUMNS: &[Declared] = &[
    ("checks_made", "checks of the evidence", |row| {
        text(of_trial(row.trial)?.checks.len())
    }),
    ("checks_passed", "passed checks of the evidence", |row| {
        text(
            of_trial(row.trial)?
                .checks
                .iter()
                .filter(|check| check.passed)
                .count(),
        )
    }),
];

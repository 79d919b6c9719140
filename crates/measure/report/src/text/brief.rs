//! The end of a run in a few lines: the answer, what makes it doubtful, a table for each kind of
//! trial, and where the rest is.

use super::terminal::{Page, Style};
use crate::Folders;
use crate::format::percent;
use crate::headline::{self, Headline};
use crate::layout::Run;
use crate::order::grouped;
use crate::sections::{self, Block, Document};
use crate::table::{Cell, Table};
use journal::record::in_brief;
use stats::{CellResult, LARGE_SPREAD_PERCENT, Reason, Status};
use std::collections::BTreeSet;
use units::human::counted;

/// Lines of the whole; a screen or two.
const LINES_MAX: usize = 76;
/// Lines for the devices' answers; those of the others are in the documents.
const ANSWER_LINES: usize = 24;
/// Facts in the answer of one device.
const FACTS_MAX: usize = 4;
/// Lines for what makes the figures doubtful.
const DOUBT_LINES: usize = 14;
/// Reasons of invalid and failed trials that are printed, and lines of each.
const REASONS_MAX: usize = 5;
const REASON_LINES: usize = 2;
/// Lines of a table without its rows: an empty one, caption, note, heading, rule.
const TABLE_LINES: usize = 5;
/// Fewest rows of a table that is printed.
const ROWS_LEAST: usize = 2;

/// Writes the short form.
pub(crate) fn write(
    run: &Run<'_>,
    files: Option<Folders<'_>>,
    width: usize,
    color: bool,
) -> String {
    let mut page = Page::new(width, color);
    page.line(&page.style.bold(run.title()));
    page.wrapped("", "", &headline::soundness(run), Style::plain);
    page.line("");
    answers(&mut page, run);
    doubts(&mut page, run);
    reasons(&mut page, run);
    let foot = foot(run, files, width, color);
    let room = LINES_MAX.saturating_sub(page.lines() + foot.lines());
    let is_whole = tables(&mut page, run, room);
    page.line("");
    if !is_whole {
        page.wrapped(
            "",
            "",
            "Left out: rows, columns and tables that do not fit.",
            Style::dim,
        );
    }
    page.append(&foot);
    page.text
}

/// A sentence for each device, with its doubt in it.
fn answers(page: &mut Page, run: &Run<'_>) {
    let found = headline::headlines(run);
    let begin = page.lines();
    for (index, device) in found.iter().enumerate() {
        let sentence = format!("{}: {}", device.device, answer(run, device));
        let mut own = page.empty();
        own.wrapped("", "  ", &sentence, Style::plain);
        let left = found.len() - index;
        if index > 0 && page.lines() - begin + own.lines() > ANSWER_LINES {
            page.line(&format!("… and {} more", counted(left, "device")));
            return;
        }
        page.append(&own);
    }
}

fn answer(run: &Run<'_>, device: &Headline) -> String {
    if let Some(why) = &device.without {
        return why.clone();
    }
    let facts = device.facts.iter().take(FACTS_MAX);
    let facts: Vec<String> = facts
        .map(|fact| {
            let label = fact.label.replace(", ", " ");
            format!("{label} {} {}", fact.figure, fact.unit)
        })
        .collect();
    let mut text = facts.join("; ");
    let doubt = doubt(run, device);
    if !doubt.is_empty() {
        text.push_str(&format!(". Doubtful: {doubt}"));
    }
    text + "."
}

/// What speaks against the figures of one device: cells without one, and repeats that scatter.
fn doubt(run: &Run<'_>, device: &Headline) -> String {
    let own = || {
        let cells = run.results.cells.iter();
        cells.filter(|cell| run.label(&cell.dut) == device.device)
    };
    let mut parts = Vec::new();
    let without = own().filter(|cell| {
        matches!(
            cell.status,
            Status::Invalid | Status::Failed | Status::NotRun
        )
    });
    let without = without.count();
    if without > 0 {
        parts.push(format!(
            "no figure in {without} of {}",
            counted(own().count(), "cell")
        ));
    }
    let spread = |cell: &CellResult| cell.spread_percent();
    let widest = own().filter_map(spread).fold(0.0, f64::max);
    if widest > LARGE_SPREAD_PERCENT {
        parts.push(format!("repeats differ by up to {}", percent(widest)));
    }
    parts.join(", ")
}

/// What changes a conclusion, before any table.
fn doubts(page: &mut Page, run: &Run<'_>) {
    let warnings = &run.results.warnings;
    if warnings.is_empty() {
        return;
    }
    page.line("");
    let begin = page.lines();
    for (index, warning) in warnings.iter().enumerate() {
        let mut own = page.empty();
        own.wrapped("- ", "  ", &warning.text, Style::plain);
        if index > 0 && page.lines() - begin + own.lines() >= DOUBT_LINES {
            let left = counted(warnings.len() - index, "warning");
            page.line(&format!("- and {left} more"));
            return;
        }
        page.append(&own);
    }
}

/// Why trials have no figure: once for each check that failed, what differs and what to do.
fn reasons(page: &mut Page, run: &Run<'_>) {
    let cells = run.results.cells.iter();
    let all = cells.flat_map(|cell| {
        let own = cell.reasons.iter();
        own.map(move |reason| (what_failed(reason), (cell.id.as_str(), reason)))
    });
    let found = grouped(all);
    if found.is_empty() {
        return;
    }
    page.line("");
    page.line(&page.style.bold("Invalid and failed trials"));
    page.cut(
        1,
        "`cipherbench resume RUN --invalid` repeats them",
        Style::dim,
    );
    for (index, (what, places)) in found.iter().enumerate() {
        if index == REASONS_MAX {
            let left = counted(found.len() - index, "reason");
            page.line(&format!("… and {left} more"));
            return;
        }
        let cells: BTreeSet<&str> = places.iter().map(|(cell, _)| *cell).collect();
        let cells = counted(cells.len(), "cell");
        match places
            .first()
            .and_then(|(_, reason)| reason.explanation.as_ref())
        {
            Some(found) => {
                let difference = format!("{what} in {cells}: {}", found.difference);
                page.cut(REASON_LINES - 1, &difference, Style::plain);
                page.cut(1, &found.advice, Style::dim);
            }
            None => page.cut(
                REASON_LINES,
                &format!("{cells}: {}", Cell::reason(what).text),
                Style::plain,
            ),
        }
    }
}

/// The check that failed, or the whole reason.
fn what_failed(reason: &Reason) -> &str {
    match reason.explanation {
        Some(_) => in_brief(&reason.text),
        None => &reason.text,
    }
}

/// The first table of each section that answers, within `room` lines, which they share. Returns
/// whether that is all of them.
fn tables(page: &mut Page, run: &Run<'_>, room: usize) -> bool {
    let sections = sections::of(run, Document::Terminal);
    let answers: Vec<Vec<Table>> = sections
        .into_iter()
        .filter(|(section, _)| section.brief)
        .map(|(_, blocks)| {
            let tables = blocks.into_iter().filter_map(|block| match block {
                Block::Table(table) => Some(table),
                _ => None,
            });
            tables.filter(|table| !table.rows.is_empty()).collect()
        })
        .filter(|tables: &Vec<Table>| !tables.is_empty())
        .collect();
    let mut is_whole = true;
    let mut left = room;
    let count = answers.len();
    for (index, tables) in answers.iter().enumerate() {
        let rows = (left / (count - index)).saturating_sub(TABLE_LINES);
        let table = &tables[0];
        is_whole &= tables.len() == 1;
        if rows < ROWS_LEAST.min(table.rows.len()) {
            is_whole = false;
            continue;
        }
        let mut own = page.empty();
        is_whole &= own.short_table(table, rows);
        left = left.saturating_sub(own.lines());
        page.append(&own);
    }
    is_whole
}

/// Where everything is.
fn foot(run: &Run<'_>, files: Option<Folders<'_>>, width: usize, color: bool) -> Page {
    let mut page = Page::new(width, color);
    page.wrapped("", "", &super::provenance(run), Style::dim);
    if let Some(folders) = files {
        let report = folders.documents.join(crate::HTML_NAME);
        page.line(&format!(
            "Report  {}",
            super::terminal::visible(&report.display().to_string())
        ));
        let run = super::terminal::visible(&folders.run.display().to_string());
        page.line(&format!("All     cipherbench report {run} --full"));
    }
    page
}

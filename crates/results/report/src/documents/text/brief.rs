//! The end of a run in a few lines: the answer, reasons for doubt, a table for each kind of trial,
//! and the location of the rest.

use super::provenance;
use super::terminal::{Page, Style};
use crate::documents::headline::{FirstScreen, Headline};
use crate::kit::format::quoted;
use crate::kit::section::{Block, Document};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::order::grouped;
use crate::topic;
use crate::topic::trouble::{self, kind};
use crate::{Folders, HTML_NAME};
use guard::visible;
use stats::WarningKind;
use std::collections::BTreeSet;
use units::human::counted;

/// Maximum lines in total: a screen or two.
const LINES_MAX: usize = 73;
/// Maximum lines for answer, findings and devices' figures; the documents have all devices.
const ANSWER_LINES: usize = 32;
/// Maximum facts in the answer of one device.
const FACTS_MAX: usize = 4;
/// Maximum lines for warnings.
const DOUBT_LINES: usize = 14;
/// Lines for warnings and for reasons of invalid and failed trials, however long the tables are.
const TROUBLE_LEAST: usize = 18;
/// The most of them, however short the tables are.
const TROUBLE_MOST: usize = 30;
/// Lines of a table in addition to its rows: an empty one, caption, note, heading, rule.
const TABLE_LINES: usize = 5;
/// Beginnings of the captions of tables that are always printed, since a campaign asks for them:
/// who is best, what a vendor's claims are worth, and which limits hold; and their maximum rows
/// without a cut.
const ASKED: [&str; 3] = ["Ranking", "Claims", "Limits"];
const ASKED_MAX: usize = 12;
/// Lines of a legend below a table.
const LEGEND_LINES: usize = 3;
/// Rows of the run's main table that are always printed, and the least rows of another one: the
/// first rows are the baseline's, and a table of them alone says nothing of the devices.
const ROWS_LEAST: usize = 5;

/// Writes the short form.
pub(crate) fn write(
    run: &Run<'_>,
    files: Option<Folders<'_>>,
    width: usize,
    color: bool,
) -> String {
    let mut page = Page::new(width, color).of_run(run, files);
    let first = FirstScreen::of(run);
    page.title(run.title());
    page.wrapped("", "", &first.soundness, Style::plain);
    page.line("");
    answers(&mut page, &first);
    // The foot comes last, but its lines reduce the room for the rest.
    let foot = foot(run, files, width, color);
    let tables = first_tables(run);
    let needs: Vec<usize> = tables.iter().map(|table| need(&page, &table[0])).collect();
    // Doubts precede all tables, as they may change a conclusion. They are cut before any device
    // is: the documents have the whole texts.
    let room = LINES_MAX.saturating_sub(page.lines() + foot.lines());
    let trouble = room.saturating_sub(needs.iter().sum());
    let trouble = trouble.clamp(TROUBLE_LEAST, TROUBLE_MOST);
    troubles(&mut page, run, trouble);
    let room = LINES_MAX.saturating_sub(page.lines() + foot.lines());
    let is_whole = print_tables(&mut page, &tables, &needs, room);
    page.line("");
    if !is_whole {
        page.wrapped(
            "",
            "",
            "The documents have more rows, columns and tables.",
            Style::dim,
        );
    }
    page.append(&foot);
    page.text
}

/// One sentence per device, including doubts.
fn answers(page: &mut Page, first: &FirstScreen) {
    // Answer and findings count as well, so that the devices do not push the tables off the screen.
    let begin = page.lines();
    if let Some(answer) = &first.answer {
        page.wrapped("", "", answer, Style::plain);
        page.line("");
    }
    for finding in &first.findings {
        page.wrapped("- ", "  ", finding, Style::plain);
    }
    if !first.findings.is_empty() {
        page.line("");
    }
    let of = |device: &Headline| format!("{}: {}", device.device, answer(device));
    let sentences = first.devices.iter().map(of);
    let left = some(page, "", sentences, (begin, ANSWER_LINES));
    if left > 0 {
        page.line(&format!("… and {} more", counted(left, "device")));
    }
}

/// Prints paragraphs as far as the lines since `begin` are at most `most`, but always the first.
/// Returns the number of the others.
fn some(
    page: &mut Page,
    lead: &str,
    texts: impl ExactSizeIterator<Item: AsRef<str>>,
    (begin, most): (usize, usize),
) -> usize {
    let count = texts.len();
    for (index, text) in texts.enumerate() {
        // Printed separately first, as the lines that it needs depend on the width.
        let mut own = page.empty();
        own.wrapped(lead, "  ", text.as_ref(), Style::plain);
        if index > 0 && page.lines() - begin + own.lines() > most {
            return count - index;
        }
        page.append(&own);
    }
    0
}

fn answer(device: &Headline) -> String {
    if let Some(why) = &device.without {
        return why.clone();
    }
    // The most important facts come first.
    let facts = device.facts.iter().take(FACTS_MAX);
    let facts: Vec<String> = facts
        .map(|fact| {
            let label = fact.label.replace(", ", " ");
            let figure = format!("{label} {} {}", fact.figure, fact.unit);
            match fact.brief.as_str() {
                "" => figure,
                brief => format!("{}, {brief}", figure.trim_end()),
            }
        })
        .collect();
    let mut text = facts.join("; ");
    if !device.doubt.is_empty() {
        text.push_str(&format!(". {}", device.doubt));
    }
    text + "."
}

/// Warnings, then the reasons of invalid and failed trials, in at most `room` lines.
fn troubles(page: &mut Page, run: &Run<'_>, room: usize) {
    let begin = page.lines();
    let reasons = reasons(run);
    // Both have a part, as neither explains the other.
    let mut own = page.empty();
    print_reasons(&mut own, &reasons, trouble::remedy(run), room / 2);
    let of_doubts = room.saturating_sub(own.lines());
    doubts(page, run, of_doubts.min(DOUBT_LINES));
    let used = page.lines() - begin;
    print_reasons(
        page,
        &reasons,
        trouble::remedy(run),
        room.saturating_sub(used),
    );
}

/// Warnings that may change a conclusion, before any table.
fn doubts(page: &mut Page, run: &Run<'_>, room: usize) {
    let warnings = &run.results.warnings;
    if warnings.is_empty() {
        return;
    }
    page.line("");
    let texts = warnings.iter().map(|warning| match warning.kind {
        // Its list is no example: a device that protects nothing is named on every screen.
        WarningKind::Insecure => warning.text.clone(),
        _ => without_examples(&warning.text),
    });
    // One line remains for the number of the others and the place of the remedies, which would push
    // tables off the screen.
    let room = (page.lines(), room.saturating_sub(2));
    match some(page, "- ", texts, room) {
        0 => page.indented(
            "The documents say what to do about each of them.",
            Style::dim,
        ),
        left => page.line(&format!(
            "- and {}; the documents say what to do about each of them",
            counted(left, "more warning")
        )),
    }
}

/// A warning without the cells that it lists as examples, which the documents have.
fn without_examples(text: &str) -> String {
    let Some((what, _)) = text.split_once(": `") else {
        return text.to_owned();
    };
    // An example in brackets goes with its brackets: `… at a time (least: `x`, 2 s): it is …`.
    let (what, rest) = match what.rsplit_once(" (") {
        Some((before, opened)) if !opened.contains(')') => {
            let end = text[what.len()..]
                .split_once(')')
                .map_or("", |(_, rest)| rest);
            (before, end)
        }
        _ => (what, ""),
    };
    // The sentence goes on behind the brackets.
    if rest.is_empty() {
        format!("{what}.")
    } else {
        format!("{what}{}", without_examples(rest))
    }
}

/// Why trials lack a figure: for each failed check once, the difference, the likely cause and the
/// remedy. The first of them is printed however narrow the screen is, so that no cause is there
/// without its remedy.
fn reasons(run: &Run<'_>) -> Vec<String> {
    let cells = run.results.cells.iter();
    let all = cells.flat_map(|cell| {
        let own = cell.reasons.iter();
        own.map(move |reason| (kind(reason), (cell.id.as_str(), reason)))
    });
    let mut found = grouped(all);
    // Stable. What a device or a tool reported itself is no matter of the machine, and short.
    found.sort_by_key(|(_, places)| {
        let first = places.first();
        first.is_some_and(|(_, reason)| reason.explanation.is_some())
    });
    // Remedies, with the first check that has each.
    let mut known: Vec<(&str, &str)> = Vec::new();
    let mut texts = Vec::new();
    for (what, places) in &found {
        // Several repeats of a cell may fail by the same check.
        let cells: BTreeSet<&str> = places.iter().map(|(cell, _)| *cell).collect();
        let cells = counted(cells.len(), "cell");
        let first = places.first();
        let Some(found) = first.and_then(|(_, reason)| reason.explanation.as_ref()) else {
            texts.push(format!("{cells}: {}", Cell::reason(what).text));
            continue;
        };
        let advice = found.advice.as_str();
        let remedy = match known.iter().find(|(same, _)| *same == advice) {
            Some((_, check)) => format!("as for {check}"),
            None => {
                known.push((advice, *what));
                advice.to_owned()
            }
        };
        texts.push(format!(
            "{what} failed in {cells}: {}. Likely cause: {}. What to do: {remedy}.",
            found.difference, found.cause
        ));
    }
    texts
}

fn print_reasons(page: &mut Page, reasons: &[String], hint: &str, room: usize) {
    if reasons.is_empty() {
        return;
    }
    page.line("");
    page.title("Invalid and failed trials");
    page.indented(hint, Style::dim);
    let room = (page.lines(), room.saturating_sub(4));
    let left = some(page, "  ", reasons.iter(), room);
    if left > 0 {
        page.line(&format!("  … and {left} more in the documents"));
    }
}

/// The tables of each section of the short form, which prints the first of each.
fn first_tables(run: &Run<'_>) -> Vec<Vec<Table>> {
    let sections = topic::sections(run, Document::Brief).into_iter();
    let tables = sections.map(|(_, blocks)| {
        let tables = blocks.into_iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        tables.filter(|table| !table.rows.is_empty()).collect()
    });
    tables
        .filter(|tables: &Vec<Table>| !tables.is_empty())
        .collect()
}

/// The lines that a whole table needs.
fn need(page: &Page, table: &Table) -> usize {
    let mut own = page.empty();
    own.short_table(table, usize::MAX);
    own.lines()
}

/// Prints the first table of each section, within `room` lines, which they share. Returns whether
/// nothing was left out.
fn print_tables(page: &mut Page, answers: &[Vec<Table>], needs: &[usize], room: usize) -> bool {
    let mut is_whole = true;
    let mut left = room;
    let count = answers.len();
    for (index, tables) in answers.iter().enumerate() {
        let table = &tables[0];
        // Equal shares of the remaining lines, and all that the later tables do not need, so that
        // no device is left out for empty lines.
        let later: usize = needs[index + 1..].iter().sum();
        let share = (left / (count - index)).max(left.saturating_sub(later));
        let rows = share.saturating_sub(TABLE_LINES);
        // A ranking without its last rows is useless.
        // The first table is the run's main one and is never left out.
        let is_asked = ASKED.iter().any(|asked| table.caption.starts_with(asked));
        let least = if is_asked && table.rows.len() <= ASKED_MAX {
            table.rows.len() + LEGEND_LINES
        } else if index == 0 {
            table.rows.len().min(ROWS_LEAST) + LEGEND_LINES
        } else {
            0
        };
        // Even this minimum must fit into the remaining lines.
        let rows = rows.max(least.min(left.saturating_sub(TABLE_LINES)));
        // Only the full form has the further tables of a section.
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

/// The location of the documents.
fn foot(run: &Run<'_>, files: Option<Folders<'_>>, width: usize, color: bool) -> Page {
    // Its commands already contain the folder, so there is none to replace.
    let mut page = Page::new(width, color);
    page.wrapped("", "", &provenance(run), Style::dim);
    if let Some(folders) = files {
        let report = folders.documents.join(HTML_NAME);
        page.line(&format!(
            "Report  {}",
            visible(&report.display().to_string())
        ));
        // Quoted first: the quotes enclose the name that the file system has.
        let path = quoted(&folders.run.display().to_string());
        let path = visible(&path);
        page.line(&format!("All     cipherbench report {path} --full"));
        if !run.results.progress.ended {
            page.line(&format!("Go on   cipherbench resume {path}"));
        }
    }
    page
}

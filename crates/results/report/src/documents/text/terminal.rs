//! The end of a run on a terminal.

mod blocks;

use super::wrap::{pad, wrap};
use super::{command, provenance};
use crate::documents::headline::FirstScreen;
use crate::kit::format::quoted;
use crate::kit::section::{Block, Document};
use crate::kit::table::{Cell, HOW_TO_READ, Kind, Row, Table};
use crate::layout::Run;
use crate::layout::evidence::Summary;
use crate::topic;
use crate::{CSV_NAME, Folders, HTML_NAME, JSON_NAME, MARKDOWN_NAME};
use guard::visible;
use unicode_width::UnicodeWidthStr;
use units::human::counted;

/// Gap between columns.
const GAP: usize = 2;
/// Maximum width of text in place of a figure; longer text is wrapped.
const REASON_WIDTH: usize = 26;
/// Widths of labels and texts in a table that does not fit side by side, as parts of the line.
const LABEL_PART: usize = 5;
const TEXT_PART: usize = 3;
/// Minimum width of a last column of text.
const MIN_TEXT_WIDTH: usize = 20;
/// Indentation of a paragraph below a title.
const INDENT: &str = "  ";
/// Lines of rows of a short table, however little room there is.
const ROWS_LEAST: usize = 5;
/// Minimum width, regardless of the terminal.
const MIN_WIDTH: usize = 40;

/// Writes everything; `files` are the folders of the run and its documents.
pub(crate) fn write(
    run: &Run<'_>,
    files: Option<Folders<'_>>,
    width: usize,
    color: bool,
) -> String {
    let mut page = Page::new(width, color).of_run(run, files);
    head(&mut page, run);
    for (section, blocks) in topic::sections(run, Document::Terminal) {
        for block in &blocks {
            match block {
                Block::Table(table) => page.table(table),
                Block::Warnings => warnings(&mut page, run, section.title),
                Block::Details { tables, .. } => tables.iter().for_each(|table| page.table(table)),
                // The other documents have the rest.
                Block::Chart { .. } | Block::Html(_) | Block::Cells | Block::Prose(_) => {}
            }
        }
    }
    foot(&mut page, run, files);
    page.text
}

fn head(page: &mut Page, run: &Run<'_>) {
    page.title(run.title());
    page.wrapped("", "", &provenance(run), Style::dim);
    let first = FirstScreen::of(run);
    page.wrapped("", "", &first.soundness, Style::plain);
    if let Some(answer) = &first.answer {
        page.line("");
        page.wrapped("", "", answer, Style::plain);
    }
    for finding in &first.findings {
        page.wrapped("- ", "  ", finding, Style::plain);
    }
    for found in first.devices {
        page.line("");
        page.title(&found.device);
        if let Some(why) = &found.without {
            page.wrapped("  ", "  ", why, Style::plain);
        }
        // Labels are padded to the widest one, so that the facts are aligned.
        let label = found
            .facts
            .iter()
            .map(|fact| visible(&fact.label).width())
            .max()
            .unwrap_or(0);
        for fact in &found.facts {
            let first = format!("  {:label$}  ", visible(&fact.label));
            let indent = " ".repeat(first.width());
            // A narrow terminal has the sentence below its label.
            if first.width() + MIN_TEXT_WIDTH > page.width {
                page.wrapped("  ", "  ", &fact.label, Style::plain);
                page.wrapped("    ", "    ", &fact.sentence(), Style::plain);
                continue;
            }
            page.wrapped(&first, &indent, &fact.sentence(), Style::plain);
        }
        if !found.doubt.is_empty() {
            page.wrapped("  ", "  ", &found.doubt, Style::plain);
        }
    }
}

fn warnings(page: &mut Page, run: &Run<'_>, title: &str) {
    page.line("");
    page.title(title);
    for warning in &run.results.warnings {
        page.wrapped("  - ", "    ", &warning.text, Style::plain);
        page.wrapped("    ", "    ", &warning.advice, Style::dim);
    }
}

fn foot(page: &mut Page, run: &Run<'_>, files: Option<Folders<'_>>) {
    page.line("");
    let evidence = Summary::total(run);
    if evidence.checks > evidence.passed {
        let failed = evidence.checks - evidence.passed;
        page.line(
            &page
                .style
                .red(&format!("{failed} of {} checks failed", evidence.checks)),
        );
    }
    if let Some(files) = files {
        for (what, folder, name) in [
            ("Report ", files.documents, HTML_NAME),
            ("Text   ", files.documents, MARKDOWN_NAME),
            ("Data   ", files.documents, JSON_NAME),
            ("       ", files.documents, CSV_NAME),
            ("Journal", files.run, journal::FILE_NAME),
        ] {
            page.line(&format!(
                "{what}  {}",
                visible(&folder.join(name).display().to_string())
            ));
        }
    }
    page.line(&format!("Command  {}", visible(&command(run))));
}

/// Whether to print colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    color: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        // Codes around blanks would keep `line` from trimming them.
        if self.color && !text.trim().is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn plain(self, text: &str) -> String {
        text.to_owned()
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn cell(self, kind: Kind, text: &str) -> String {
        match kind {
            Kind::Derived => self.paint("36", text),
            Kind::Reason | Kind::Word => self.red(text),
            Kind::Missing => self.dim(text),
            Kind::Label | Kind::Repeated | Kind::Plain | Kind::File | Kind::Term => text.to_owned(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Page {
    pub(crate) text: String,
    width: usize,
    pub(crate) style: Style,
    /// The run's folder, quoted for a shell, for commands; `None` if unknown.
    run: Option<String>,
}

impl Page {
    pub(crate) fn new(width: usize, color: bool) -> Self {
        Self {
            text: String::new(),
            // A narrower terminal wraps the lines itself, which is still readable.
            width: width.max(MIN_WIDTH),
            style: Style { color },
            run: None,
        }
    }

    /// Replaces the run's folder in the commands of texts.
    pub(crate) fn of_run(mut self, run: &Run<'_>, files: Option<Folders<'_>>) -> Self {
        // The given folder is the current one; the journal has the one from before any move.
        let known = files.map(|files| quoted(&files.run.display().to_string()));
        self.run = known.or_else(|| journal::dir_as_created(&run.journal.header));
        self
    }

    /// An empty page of the same width, style and run.
    pub(crate) fn empty(&self) -> Self {
        Self {
            text: String::new(),
            run: self.run.clone(),
            ..*self
        }
    }

    /// A text as printed: with the run's folder in commands, without terminal control characters.
    fn shown(&self, text: &str) -> String {
        // The folder is inserted first, as its name may contain control characters as well.
        let named = self.run.as_ref();
        let named = named.map(|run| journal::with_run(text, run));
        visible(named.as_deref().unwrap_or(text)).into_owned()
    }

    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
    }

    pub(crate) fn line(&mut self, line: &str) {
        // Padding at the end of a line would only show when copied.
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Prints a heading, which may be a text of the journal.
    pub(crate) fn title(&mut self, text: &str) {
        let line = self.style.bold(&visible(text));
        self.line(&line);
    }

    /// Prints a paragraph; its first line follows `first`, the others `indent`.
    pub(crate) fn wrapped(
        &mut self,
        first: &str,
        indent: &str,
        text: &str,
        style: fn(Style, &str) -> String,
    ) {
        let room = self
            .width
            .saturating_sub(indent.width())
            .max(MIN_TEXT_WIDTH);
        for (index, line) in wrap(&self.shown(text), room).into_iter().enumerate() {
            let lead = if index == 0 { first } else { indent };
            let line = format!("{lead}{}", style(self.style, &line));
            self.line(&line);
        }
    }

    /// A paragraph below a title.
    pub(crate) fn indented(&mut self, text: &str, style: fn(Style, &str) -> String) {
        self.wrapped(INDENT, INDENT, text, style);
    }

    /// Prints a table. If it is too wide, it is printed in parts, each with the labels.
    fn table(&mut self, table: &Table) {
        self.line("");
        self.title(&table.caption);
        if !table.conditions().is_empty() {
            self.wrapped("", "", table.conditions(), Style::dim);
        }
        if table.rows.is_empty() {
            self.line("(nothing yet)");
            return;
        }
        let is_too_wide = |page: &Self, widths: &[usize], parts: &[Vec<usize>]| {
            parts.iter().any(|part| total(widths, part) > page.width)
        };
        let mut widths = self.widths(table);
        let mut parts = self.parts(table, &widths);
        if parts.len() > 1 || is_too_wide(self, &widths, &parts) {
            // Each part repeats the labels, so narrow ones save whole parts.
            widths = self.narrow_widths(table, &widths);
            parts = self.parts(table, &widths);
            if let Some(last) = parts.last() {
                self.widen_last(table, &mut widths, last);
            }
        }
        // Labels and a figure that do not fit even so would be broken by the terminal, below wrong
        // headings.
        if is_too_wide(self, &widths, &parts) {
            self.blocks(table);
        } else {
            for part in parts {
                self.line("");
                self.part(table, &widths, &part);
            }
        }
        if let Some(footnote) = table.footnote() {
            self.wrapped("", "", &footnote, Style::dim);
        }
        if !table.method().is_empty() {
            let method = format!("{HOW_TO_READ}: {}", table.method());
            self.wrapped("", "", &method, Style::dim);
        }
    }

    /// Prints a table in few lines: the settings common to all its cells, the columns that fit,
    /// `rows` lines of rows, and the legend of their marks. Returns whether the table is complete.
    pub(crate) fn short_table(&mut self, table: &Table, rows: usize) -> bool {
        self.line("");
        self.title(&table.caption);
        let shared = table.conditions();
        if !shared.is_empty() {
            self.wrapped("", "", shared, Style::dim);
        }
        let mut widths = self.widths(table);
        let mut parts = self.parts(table, &widths);
        let short = (parts.len() > 1).then(|| table.in_short());
        if let Some(short) = &short {
            // More columns fit without the names of checks, which are above.
            widths = self.widths(short);
            parts = self.parts(short, &widths);
        }
        let table = short.as_ref().unwrap_or(table);
        let is_wide = |part: &Vec<usize>| total(&widths, part) > self.width;
        if parts.first().is_some_and(is_wide) {
            widths = self.narrow_widths(table, &widths);
            parts = self.parts(table, &widths);
        }
        let Some(part) = parts.first() else {
            return true;
        };
        let legend = |rows: usize| {
            let rows = table.rows[..rows].iter();
            let cells = rows.flat_map(|row| part.iter().map(|&column| &row.cells[column]));
            table.legend(shared, cells)
        };
        self.heading(table, &widths, part);
        // The legend of all rows is at least as long as that of the rows that fit.
        let reserved = legend(table.rows.len());
        let reserved = reserved.map_or(0, |legend| wrap(&self.shown(&legend), self.width).len());
        // A few rows whatever the room is: the first may be the baseline's, and says nothing alone.
        let rows = rows.saturating_sub(reserved).max(ROWS_LEAST);
        let begin = self.lines();
        let mut printed = table.rows.len();
        for (index, row) in table.rows.iter().enumerate() {
            let mut own = self.empty();
            own.row(table, &widths, part, &row.cells);
            // The last line states the number of remaining rows.
            let room = rows - usize::from(index + 1 < table.rows.len());
            // The first row is printed even if it needs more lines.
            if index > 0 && self.lines() - begin + own.lines() > room {
                let left = table.rows.len() - index;
                let line = format!("… {}", counted(left, "more row"));
                let line = self.style.dim(&line);
                self.line(&line);
                printed = index;
                break;
            }
            self.append(&own);
        }
        if let Some(legend) = legend(printed) {
            self.wrapped("", "", &legend, Style::dim);
        }
        printed == table.rows.len() && parts.len() == 1
    }

    /// Returns the width of each column. Figures are never broken; text is.
    fn widths(&self, table: &Table) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..table.columns.len())
            .map(|column| {
                let cells = table
                    .rows
                    .iter()
                    .map(|row| natural_width(&row.cells[column], self.width));
                cells
                    .max()
                    .unwrap_or(0)
                    .max(visible(&table.columns[column].title).width())
            })
            .collect();
        let all: Vec<usize> = (0..widths.len()).collect();
        self.widen_last(table, &mut widths, &all);
        widths
    }

    /// Gives a last column of text the width that the others of its part leave.
    fn widen_last(&self, table: &Table, widths: &mut [usize], part: &[usize]) {
        let Some((&last, others)) = part.split_last() else {
            return;
        };
        if table.columns[last].right {
            return;
        }
        let text = |row: &Row| self.shown(&row.cells[last].whole()).width();
        let longest = table.rows.iter().map(text).max().unwrap_or(0);
        let taken: usize = others.iter().map(|&column| widths[column] + GAP).sum();
        let room = self.width.saturating_sub(taken).max(MIN_TEXT_WIDTH);
        let title = visible(&table.columns[last].title).width();
        widths[last] = longest.max(title).min(room);
    }

    /// The same widths, with labels and texts narrow enough to be wrapped. Figures keep theirs.
    fn narrow_widths(&self, table: &Table, widths: &[usize]) -> Vec<usize> {
        let narrow = |(column, width): (usize, &usize)| {
            let heading = &table.columns[column];
            let most = if column < table.labels {
                self.width / LABEL_PART
            } else {
                self.width / TEXT_PART
            };
            let title = visible(&heading.title).width();
            if heading.right {
                *width
            } else {
                (*width).min(most.max(title))
            }
        };
        widths.iter().enumerate().map(narrow).collect()
    }

    /// Splits the columns into parts that fit side by side, each with the labels.
    fn parts(&self, table: &Table, widths: &[usize]) -> Vec<Vec<usize>> {
        // Each part repeats them, as a row without its labels could not be read.
        let labels: Vec<usize> = (0..table.labels).collect();
        let taken: usize = labels.iter().map(|&column| widths[column] + GAP).sum();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        // No part yet: even a column wider than the line needs one.
        let mut used = usize::MAX;
        for (column, width) in widths.iter().enumerate().skip(table.labels) {
            let width = width + GAP;
            // The last column of a part needs no gap.
            if used == usize::MAX || used + width > self.width + GAP {
                parts.push(labels.clone());
                used = taken;
            }
            used += width;
            if let Some(part) = parts.last_mut() {
                part.push(column);
            }
        }
        parts
    }

    /// Prints the heading and the rule below it; returns the rule.
    fn heading(&mut self, table: &Table, widths: &[usize], part: &[usize]) -> String {
        let rule = self.style.dim(&"─".repeat(total(widths, part)));
        self.groups(table, widths, part);
        let head = part.iter().map(|&column| {
            let heading = &table.columns[column];
            pad(&visible(&heading.title), widths[column], heading.right)
        });
        let head: Vec<String> = head.map(|text| self.style.bold(&text)).collect();
        self.line(&head.join(&" ".repeat(GAP)));
        self.line(&rule);
        rule
    }

    /// Prints the settings above the headings, each over its columns, in the lines needed.
    fn groups(&mut self, table: &Table, widths: &[usize], part: &[usize]) {
        // Adjacent columns of one setting, with their width together.
        let mut runs: Vec<(&str, usize)> = Vec::new();
        for &column in part {
            let group = table.columns[column].group.as_str();
            match runs.last_mut() {
                Some((last, width)) if !group.is_empty() && *last == group => {
                    *width += GAP + widths[column];
                }
                _ => runs.push((group, widths[column])),
            }
        }
        let wrapped: Vec<Vec<String>> = runs
            .iter()
            .map(|(group, width)| {
                if group.is_empty() {
                    Vec::new()
                } else {
                    wrap(&visible(group), *width)
                }
            })
            .collect();
        let lines = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..lines {
            let texts = runs.iter().zip(&wrapped).map(|((_, width), wrapped)| {
                // Shorter texts begin lower, so that all end just above their headings.
                let text = (line + wrapped.len()).checked_sub(lines);
                let text = text.and_then(|line| wrapped.get(line));
                let text = pad(text.map_or("", String::as_str), *width, true);
                self.style.bold(&text)
            });
            let texts: Vec<String> = texts.collect();
            self.line(&texts.join(&" ".repeat(GAP)));
        }
    }

    fn part(&mut self, table: &Table, widths: &[usize], part: &[usize]) {
        let rule = self.heading(table, widths, part);
        for row in &table.rows {
            if row.begins_block {
                self.line(&rule);
            }
            self.row(table, widths, part, &row.cells);
        }
    }

    /// Prints a row, in as many lines as its longest cell needs.
    fn row(&mut self, table: &Table, widths: &[usize], part: &[usize], cells: &[Cell]) {
        let wrapped: Vec<Vec<String>> = part
            .iter()
            .map(|&column| match cells[column].kind {
                // Merged with the label above, as if the cell spanned both rows.
                Kind::Repeated => vec![],
                _ => wrap(&self.shown(&cells[column].whole()), widths[column]),
            })
            .collect();
        let lines = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..lines {
            let texts = part.iter().zip(&wrapped).map(|(&column, wrapped)| {
                let text = wrapped.get(line).map_or("", String::as_str);
                let text = pad(text, widths[column], table.columns[column].right);
                self.style.cell(cells[column].kind, &text)
            });
            let texts: Vec<String> = texts.collect();
            self.line(&texts.join(&" ".repeat(GAP)));
        }
    }
}

/// The width of some columns side by side.
fn total(widths: &[usize], part: &[usize]) -> usize {
    let total: usize = part.iter().map(|&column| widths[column] + GAP).sum();
    // The last column needs no gap behind it.
    total.saturating_sub(GAP)
}

/// The width of a cell before squeezing. Figures are not wrapped; text in place of a figure is, as
/// is a label longer than half the line.
fn natural_width(cell: &Cell, line: usize) -> usize {
    let width = visible(&cell.text).width();
    match cell.kind {
        Kind::Reason => width.min(REASON_WIDTH),
        Kind::Label | Kind::Repeated => width.min(line / 2),
        Kind::Plain | Kind::File | Kind::Term | Kind::Derived | Kind::Word | Kind::Missing => width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_too_wide_is_printed_in_parts_with_its_labels() {
        let mut table = Table::new("caption", "").labels(["row"]);
        for column in 1..=4 {
            table = table.figures([format!("column {column}")]);
        }
        let figures = (1..=4).map(|column| Cell::plain(format!("{column}.00 Gbit/s")));
        table.push([Cell::label("one")].into_iter().chain(figures).collect());
        let mut page = Page {
            text: String::new(),
            width: 40,
            style: Style { color: false },
            run: None,
        };
        page.table(&table);
        let lines = [
            "",
            "caption",
            "",
            "row     column 1     column 2",
            "─────────────────────────────",
            "one  1.00 Gbit/s  2.00 Gbit/s",
            "",
            "row     column 3     column 4",
            "─────────────────────────────",
            "one  3.00 Gbit/s  4.00 Gbit/s",
            "",
        ];
        assert_eq!(page.text, lines.join("\n"));
    }

    #[test]
    fn names_cannot_drive_the_terminal() {
        assert_eq!(visible("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
    }
}

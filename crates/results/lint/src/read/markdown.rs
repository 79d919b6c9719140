//! Tables in Markdown, each below a comment `<!-- lint … -->` that holds its keys as TOML.
//!
//! The rows are split here: parsers of Markdown drop the cells that a row has too many, as the
//! GitHub Flavored Markdown specification asks (section 4.10), and these are what lint must report.

use super::comment::{self, CLOSE, OPEN};
use super::grid::{self, Around, Form};
use super::keys::Keys;
use super::markup::Text;
use super::{report, speed};
use crate::document::{Document, Remark};
use crate::source::Source;
use std::ops::Range;

/// The whole text of a comment that excludes the table below it.
const SKIP: &str = "skip";
/// How keys are added.
const HELP: &str = "put a comment above it: a line `<!-- lint`, keys as `unit = \"Mbit/s\"` and \
                    `columns = \"frame\"`, a line `-->`; `<!-- lint skip -->` excludes it";

pub(super) fn read(source: &Source) -> Document {
    let mut document = Document::default();
    let text = &source.text;
    let mut keys: Option<Range<usize>> = None;
    let mut at = 0;
    // Text outside tables and keys.
    let mut outside = String::new();
    let mut above = "";
    let is_report = report::is_report(text);
    let form = if is_report { Form::Report } else { Form::Any };
    while at < text.len() {
        let line = line_at(text, at);
        let shown = &text[line.clone()];
        // Keys come before tables: their TOML may contain bars.
        if comment::is_ours(shown) {
            if let Some(known) = keys.take() {
                // Statements alone: there is no table below.
                read_table(source, Some(known), Vec::new(), ("", form), &mut document);
            }
            let inside = at + shown.find(OPEN).unwrap_or(0) + OPEN.len();
            // Without an end the rest of the file is a comment, so nothing else can be read.
            let Some(length) = text[inside..].find(CLOSE) else {
                let help = "end it with `-->`";
                source.mistake(&source.place(&line), "the comment has no end", help);
                return document;
            };
            keys = Some(inside..inside + length);
            // HTML comments may span lines: the search goes on after the line that has the end.
            at = line_at(text, inside + length).end;
        } else if let Some(inside) = comment::inside(text, &line) {
            comment::refuse_alike(source, &line, &text[inside.clone()]);
            let end = line_at(text, inside.end).end;
            outside.push_str(&text[line.start..end]);
            at = end;
        } else if is_table(text, &line) {
            let mut lines = Vec::new();
            let mut number = 0;
            while at < text.len() {
                let line = line_at(text, at);
                if !text[line.clone()].contains('|') {
                    break;
                }
                // The second line separates the heading from the rows.
                if number != 1 {
                    lines.push(cells(source, &line));
                }
                number += 1;
                at = line.end;
            }
            // `take`, since keys hold for one table. The line above likewise names the unit of one
            // table alone.
            read_table(source, keys.take(), lines, (above, form), &mut document);
            above = "";
        } else if let Some(end) = code_end(text, &line) {
            // The block is skipped but for the output of a known program: people paste it there. A
            // note for a footnote may be in it.
            for output in speed::tables(source, line.start..end) {
                let around = ("", Form::Speed);
                read_table(source, keys.take(), output.lines, around, &mut document);
            }
            outside.push_str(&text[line.start..end]);
            at = end;
        } else if let Some(output) = speed::table(source, at..text.len()) {
            let around = ("", Form::Speed);
            read_table(source, keys.take(), output.lines, around, &mut document);
            at = output.end;
        } else {
            outside.push_str(shown);
            if !shown.trim().is_empty() {
                above = shown.trim();
            }
            at = line.end;
        }
    }
    if keys.is_some() {
        read_table(source, keys, Vec::new(), ("", form), &mut document);
    }
    if is_report {
        // Its own tables need no keys, and state much that no rule compares.
        document.remarks = vec![of_report(source, &document)];
    }
    for footnote in &mut document.footnotes {
        footnote.is_explained = is_explained(&footnote.mark, &outside);
    }
    document
}

/// The remark on a report of this program.
fn of_report(source: &Source, document: &Document) -> Remark {
    Remark {
        place: source.place(&(0..1)),
        what: format!(
            "this is a report of Cipherbench: of its tables, {} with rates or times are read, and cells that hold no \
             single figure are left out; the `results.json` of its run has every figure",
            document.tables.len()
        ),
    }
}

/// The end of a block of code that begins with this line: a table in it is an example.
fn code_end(text: &str, line: &Range<usize>) -> Option<usize> {
    let opening = text[line.clone()].trim_start();
    let fence = ["```", "~~~"]
        .into_iter()
        .find(|it| opening.starts_with(it))?;
    let mut at = line.end;
    while at < text.len() {
        let next = line_at(text, at);
        at = next.end;
        if text[next].trim().starts_with(fence) {
            break;
        }
    }
    Some(at)
}

/// Whether the text outside tables has a note for a mark.
fn is_explained(mark: &str, outside: &str) -> bool {
    let mut lines = outside
        .lines()
        .map(|line| line.trim_start_matches([' ', '>', '\\', '(']));
    match mark.chars().next() {
        // Emphasis has stars as well: a note begins a line, or follows another note.
        Some('*') => lines.any(|line| {
            let mut places = line.match_indices(mark);
            places.any(|(at, _)| {
                let (before, after) = (line[..at].trim_end(), &line[at + mark.len()..]);
                at == 0
                    || (before.ends_with([';', ',', '.'])
                        && after.starts_with([' ', ')', ':', '=']))
            })
        }),
        Some(c) if c.is_ascii_digit() => {
            let raised = format!("<sup>{mark}");
            outside.contains(&raised) || lines.any(|line| line.starts_with(mark))
        }
        // A dagger or `[1]` has no other use in a text, so it may occur anywhere.
        _ => outside.contains(mark),
    }
}

fn read_table(
    source: &Source,
    keys: Option<Range<usize>>,
    lines: Vec<Vec<Text>>,
    (above, form): (&str, Form),
    document: &mut Document,
) {
    let around = Around {
        above,
        is_bare: keys.is_none(),
        help: HELP,
        stated_in: "a comment `<!-- lint … -->` above it",
        form,
    };
    // An empty text parses as no keys, so bare tables take the same way.
    let range = keys.unwrap_or(0..0);
    let text = &source.text[range.clone()];
    if text.trim() == SKIP {
        document.numbered += 1;
        return;
    }
    Keys::parse(source, range.start, text, |keys| {
        grid::read(keys, lines, around, document);
    });
}

/// The line that begins at a byte, with its end of line.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let length = text[at..].find('\n').map_or(text.len() - at, |end| end + 1);
    at..at + length
}

/// Whether a line is the heading of a table: the next is made of dashes and bars.
fn is_table(text: &str, line: &Range<usize>) -> bool {
    let heading = &text[line.clone()];
    let next = &text[line_at(text, line.end)];
    let next = next.trim();
    heading.contains('|')
        && next.contains('-')
        && next.contains('|')
        && next.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// The cells of a line, by bars that no backslash precedes.
fn cells(source: &Source, line: &Range<usize>) -> Vec<Text> {
    let text = &source.text[line.clone()];
    let bars = text.match_indices('|').map(|(at, _)| at);
    // A bar in back-ticks separates cells too, as the specification of GitHub's tables has it
    // (section 4.10).
    let bars: Vec<usize> = bars.filter(|at| !text[..*at].ends_with('\\')).collect();
    let mut ends: Vec<usize> = bars.clone();
    let mut starts: Vec<usize> = bars.iter().map(|at| at + 1).collect();
    starts.insert(0, 0);
    ends.push(text.len());
    let mut ranges: Vec<_> = starts.into_iter().zip(ends).collect();
    // Bars at the ends of the line enclose it.
    if text.trim_start().starts_with('|') {
        ranges.remove(0);
    }
    if text.trim_end().ends_with('|') && ranges.len() > 1 {
        ranges.pop();
    }
    let cell = |(start, end): (usize, usize)| {
        let inside = &text[start..end];
        let lead = inside.len() - inside.trim_start().len();
        let shown = inside.trim();
        // The place of an empty cell is one byte inside it, and never the next cell.
        let from = line.start + start + lead.min(inside.len().saturating_sub(1));
        let place = source.place(&(from..from + shown.len().max(1)));
        (shown.replace("\\|", "|"), place)
    };
    ranges.into_iter().map(cell).collect()
}

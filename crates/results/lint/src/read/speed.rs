//! The output of `openssl speed`: its table, and the lines of its option `-mr`.
//!
//! ```text
//! type             16 bytes     64 bytes
//! AES-256-GCM     421374.88k  1106841.17k
//!
//! +H:16:64
//! +F:25:AES-256-GCM:421374880.00:1106841170.00
//! ```

use super::columns::Raw;
use super::markup::Text;
use super::{heading, markup};
use crate::source::Source;
use std::ops::Range;

/// The heading of the column of names.
const CORNER: &str = "type";
const UNIT: &str = "bytes";
/// Beginnings of the lines of `-mr`.
const SIZES: &str = "+H:";
const FIGURES: &str = "+F:";

/// A table in columns of text, with the end of its last line.
pub(super) struct TextTable {
    pub(super) end: usize,
    pub(super) lines: Vec<Vec<Text>>,
}

/// All tables in a part of a file.
pub(super) fn tables(source: &Source, part: Range<usize>) -> Vec<TextTable> {
    let mut found = Vec::new();
    let mut at = part.start;
    while at < part.end {
        match table(source, at..part.end) {
            Some(table) => {
                at = table.end;
                found.push(table);
            }
            None => at = line_end(&source.text, at),
        }
    }
    found
}

/// The table that begins with the line at the start of a part of a file.
pub(super) fn table(source: &Source, part: Range<usize>) -> Option<TextTable> {
    let first = part.start..line_end(&source.text, part.start);
    let is_machine = source.text[first.clone()].starts_with(SIZES);
    let heading = if is_machine {
        machine(source, &first, SIZES)?
    } else {
        human(source, &first)?
    };
    let width = heading.len();
    let mut lines = vec![heading];
    let mut at = first.end;
    let mut end = at;
    while at < part.end {
        let line = at..line_end(&source.text, at);
        let text = &source.text[line.clone()];
        let row = if is_machine {
            machine(source, &line, FIGURES)
        } else {
            row(source, &line, width)
        };
        at = line.end;
        match row.filter(|row| row.len() == width) {
            Some(row) => {
                lines.push(row);
                end = at;
            }
            // Lines of progress and of signatures may be between the figures.
            None if is_machine && text.starts_with('+') && !text.starts_with(SIZES) => {}
            None => break,
        }
    }
    (lines.len() > 1).then_some(TextTable { end, lines })
}

/// Whether columns are those of such a table in another form: sizes, and `k` behind every figure.
pub(super) fn is_like(columns: &[Raw]) -> bool {
    let has_k = |text: &str| {
        let number = text.strip_suffix('k');
        number.is_some_and(is_number)
    };
    let is_of = |column: &Raw| {
        let mut cells = column
            .cells
            .iter()
            .filter(|(text, _)| !markup::is_missing(text));
        heading::size(&column.name).is_some() && cells.all(|(text, _)| has_k(text))
    };
    let has_figure = |column: &Raw| column.cells.iter().any(|(text, _)| has_k(text));
    columns.iter().any(has_figure) && columns.iter().all(is_of)
}

fn is_number(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_part)
}

/// `type  16 bytes  64 bytes`.
fn human(source: &Source, line: &Range<usize>) -> Option<Vec<Text>> {
    let words = words(source, line);
    let (corner, sizes) = words.split_first()?;
    let pairs = sizes.chunks(2);
    let is_size = |pair: &[Text]| match pair {
        [(size, _), (unit, _)] => unit == UNIT && heading::size(size).is_some(),
        _ => false,
    };
    if corner.0 != CORNER || sizes.is_empty() || !pairs.clone().all(is_size) {
        return None;
    }
    let mut heading = vec![corner.clone()];
    heading.extend(pairs.map(|pair| (format!("{} {UNIT}", pair[0].0), pair[0].1.clone())));
    Some(heading)
}

/// A name, which may have blanks, and one figure for each size.
fn row(source: &Source, line: &Range<usize>, width: usize) -> Option<Vec<Text>> {
    let mut words = words(source, line);
    let names = words
        .len()
        .checked_sub(width - 1)
        .filter(|count| *count > 0)?;
    let figures = words.split_off(names);
    let is_figure = |(text, _): &Text| is_number(text.strip_suffix('k').unwrap_or(text));
    if !figures.iter().all(is_figure) {
        return None;
    }
    let name: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
    let mut row = vec![(name.join(" "), words[0].1.clone())];
    row.extend(figures);
    Some(row)
}

/// `+H:16:64`, or `+F:25:AES-256-GCM:421374880.00:1106841170.00` with the number of the algorithm,
/// which is left out.
fn machine(source: &Source, line: &Range<usize>, begin: &str) -> Option<Vec<Text>> {
    let text = source.text[line.clone()].trim_end();
    let rest = text.strip_prefix(begin)?;
    let mut at = line.start + begin.len();
    let mut fields = Vec::new();
    for field in rest.split(':') {
        fields.push((
            field.to_owned(),
            source.place(&(at..at + field.len().max(1))),
        ));
        at += field.len() + 1;
    }
    if begin == SIZES {
        let are_sizes = fields.iter().all(|(text, _)| heading::size(text).is_some());
        fields.insert(
            0,
            (
                CORNER.to_owned(),
                source.place(&(line.start..line.start + 1)),
            ),
        );
        return are_sizes.then_some(fields);
    }
    fields.remove(0);
    let is_figures = fields.iter().skip(1).all(|(text, _)| is_number(text));
    is_figures.then_some(fields)
}

/// The words of a line with their places.
fn words(source: &Source, line: &Range<usize>) -> Vec<Text> {
    let text = &source.text[line.clone()];
    let words = text.split_whitespace().map(|word| {
        let at = line.start + (word.as_ptr() as usize - text.as_ptr() as usize);
        (word.to_owned(), source.place(&(at..at + word.len())))
    });
    words.collect()
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

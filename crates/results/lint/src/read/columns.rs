//! Columns of a grid, before their cells are read as figures.

use super::markup::{self, Clean, Text};
use super::{heading, pairs};
use crate::document::Axis;
use crate::figure::Figure;
use crate::marks::{Decimal, Evidence, plain};
use crate::source::Source;
use crate::unit::{Quantity, Unit};
use yaml::Place;

/// One column without markup.
pub(super) struct Raw {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) cells: Vec<Text>,
    /// Marks of footnotes: of a cell by its number, or of the heading.
    pub(super) notes: Vec<(Option<usize>, String)>,
}

/// Returns the columns after the column of names.
pub(super) fn columns(heading: &[Text], lines: &[Vec<Text>]) -> Vec<Raw> {
    let indexed = heading.iter().enumerate().skip(1);
    let column = |(at, (name, place)): (usize, &Text)| {
        let Clean { text: name, marks } = markup::name(name);
        let mut notes: Vec<_> = marks.into_iter().map(|mark| (None, mark)).collect();
        let mut cells = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let (text, place) = &line[at];
            let Clean { text, marks } = markup::cell(text);
            notes.extend(marks.into_iter().map(|mark| (Some(number), mark)));
            cells.push((text, place.clone()));
        }
        Raw {
            name,
            place: place.clone(),
            cells,
            notes,
        }
    };
    indexed.map(column).collect()
}

/// Whether a column holds text: at least one text, and no figure. A column with a size as heading
/// holds figures.
pub(super) fn is_text(column: &Raw, decimal: Decimal, axis: Option<Axis>) -> bool {
    let is_size = heading::size(&column.name).is_some() || heading::is_mix(&column.name);
    // A text below a size is a mistake to report, and not a reason to leave out the column.
    if (is_size && !matches!(axis, Some(Axis::Names))) || matches!(axis, Some(Axis::Mix)) {
        return false;
    }
    let shown = shown(column);
    !shown.is_empty()
        && !shown
            .iter()
            .any(|text| figure(text, decimal, &column.place).is_some())
}

/// Whether a column of a table without keys holds rates, so that its other cells are mistakes:
/// figures alone, or more than half of them with a unit of rates.
pub(super) fn is_of_rates(column: &Raw, decimal: Decimal) -> bool {
    let shown = shown(column);
    let figures = shown
        .iter()
        .filter_map(|text| figure(text, decimal, &column.place));
    let units: Vec<Option<Unit>> = figures.collect();
    let is_size = heading::size(&column.name).is_some() || heading::is_mix(&column.name);
    let of_rates = |unit: &Unit| !matches!(unit.quantity, Quantity::Percent | Quantity::Time);
    let in_heading = heading::with_unit(&column.name)
        .1
        .is_some_and(|unit| of_rates(&unit));
    let rates = units.iter().flatten().filter(|unit| of_rates(unit)).count();
    // More than half, so that a column of rates with a few words in it is read and its words are
    // reported.
    let is_half = |count: usize| 2 * count > shown.len();
    let is_rate = in_heading || is_size || is_half(rates);
    units.len() == shown.len() || (is_half(units.len()) && is_rate)
}

/// The first text of a column that has rates with units too: without a remark on it, they would be
/// left out silently.
pub(super) fn text_among_rates(column: &Raw, decimal: Decimal) -> Option<&Text> {
    let read = |(text, place): &Text| figure(text, decimal, place);
    let has_rate = column
        .cells
        .iter()
        .filter_map(read)
        .flatten()
        .any(|unit| !matches!(unit.quantity, Quantity::Percent | Quantity::Time));
    let mut cells = column
        .cells
        .iter()
        .filter(|(text, _)| !markup::is_missing(text));
    cells.find(|cell| has_rate && read(cell).is_none())
}

fn shown(column: &Raw) -> Vec<&str> {
    let texts = column.cells.iter().map(|(text, _)| text.as_str());
    texts.filter(|text| !markup::is_missing(text)).collect()
}

/// Whether the heading or a cell has a unit.
pub(super) fn has_unit(column: &Raw) -> bool {
    let in_cell = |(text, place): &Text| figure(text, Decimal::Point, place).flatten().is_some();
    heading::with_unit(&column.name).1.is_some() || column.cells.iter().any(in_cell)
}

/// Returns the unit of a cell with one or several figures; `None` for a text.
pub(super) fn figure(text: &str, decimal: Decimal, place: &Place) -> Option<Option<Unit>> {
    // Not readable as a figure yet, but no text either: the mark is resolved, and parts are split,
    // later.
    if Evidence::of(text).unclear_comma || pairs::parts(text).is_some() {
        return Some(None);
    }
    match Figure::parse(&plain(text, decimal), place) {
        Ok(figure) => Some(figure.unit),
        Err(refusal) => refusal.is_range.then_some(None),
    }
}

/// Splits a column with several figures per cell, if its heading or the key `parts` names the
/// parts. Cells with one figure stay in a column with its name.
pub(super) fn split(
    source: &Source,
    column: Raw,
    parts: Option<&[String]>,
    is_bare: bool,
) -> Vec<Raw> {
    let several: Vec<Option<Vec<String>>> = column
        .cells
        .iter()
        .map(|(text, _)| pairs::parts(text))
        .collect();
    // The first cell with several figures states their number, and every other one must agree.
    let Some(at) = several.iter().position(Option::is_some) else {
        return vec![column];
    };
    let count = |at: usize| several[at].as_ref().map_or(0, Vec::len);
    let in_heading = pairs::named(&column.name, count(at));
    let by_key = parts.map(|parts| {
        let (bare, unit) = heading::with_unit(&column.name);
        let unit = unit
            .map(|unit| format!(" [{}]", unit.text))
            .unwrap_or_default();
        let named = parts.iter().map(|part| format!("{bare} {part}{unit}"));
        named.collect::<Vec<String>>()
    });
    // The heading comes first, since it is of this column, while the key is of all columns of the
    // table.
    let fitting = [in_heading, by_key].into_iter().flatten();
    let names = fitting.into_iter().find(|names| names.len() == count(at));
    let is_same = |other: usize| several[other].is_none() || count(other) == count(at);
    let Some(names) = names.filter(|_| (0..several.len()).all(is_same)) else {
        // Without keys, these cells may be dates or versions: they are mistakes if the column turns
        // out to hold rates.
        if is_bare {
            return vec![column];
        }
        let mut column = column;
        for (other, cell) in column.cells.iter_mut().enumerate() {
            let first = match count(other) {
                0 => continue,
                own if own != count(at) => {
                    pairs::refuse_count(source, &cell.1, &column.name, own, count(at));
                    pairs::parts(&cell.0).and_then(|parts| parts.into_iter().next())
                }
                _ => pairs::refuse(source, cell),
            };
            // One figure stays, so that the next steps find all further mistakes of the column.
            cell.0 = first.unwrap_or_default();
        }
        return vec![column];
    };
    let empty = |at: usize| (String::new(), column.cells[at].1.clone());
    let part = |number: usize, name: String| Raw {
        name,
        place: column.place.clone(),
        notes: match number {
            // A footnote counts once, in the first part.
            0 => column.notes.clone(),
            _ => Vec::new(),
        },
        cells: several
            .iter()
            .enumerate()
            .map(|(at, parts)| match parts {
                Some(parts) => (parts[number].clone(), column.cells[at].1.clone()),
                None => empty(at),
            })
            .collect(),
    };
    let mut split: Vec<Raw> = names
        .into_iter()
        .enumerate()
        .map(|(number, name)| part(number, name))
        .collect();
    // A cell with one figure is of no part: a sum, or both directions together. It keeps the name
    // of the column.
    let single = |at: usize| several[at].is_none() && !markup::is_missing(&column.cells[at].0);
    if (0..several.len()).any(single) {
        let cells = (0..several.len())
            .map(|at| {
                if single(at) {
                    column.cells[at].clone()
                } else {
                    empty(at)
                }
            })
            .collect();
        let whole = Raw { cells, ..column };
        split.insert(0, whole);
    }
    split
}

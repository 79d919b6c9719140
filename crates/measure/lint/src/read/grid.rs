//! A table of texts, from CSV or Markdown, to a table of figures.

use super::keys::{Keys, figure};
use super::{statements, table};
use crate::document::{Document, Row, Table};
use crate::source::Source;
use yaml::Place;

/// A cell's text and its place.
pub(super) type Text = (String, Place);

/// The mark of a decimal number in a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decimal {
    Point,
    Comma,
}

/// Reads a table below its keys. The first line holds the names of the columns, the first column
/// those of the rows.
pub(super) fn read(keys: &Keys<'_>, lines: Vec<Vec<Text>>, document: &mut Document) {
    statements::read(keys, document);
    let mut lines = lines.into_iter();
    let Some(heading) = lines.next() else {
        return keys.refuse_others();
    };
    let mut table = table::read(keys, &format!("table {}", document.tables.len() + 1));
    table::axis(keys, &mut table);
    let mean = keys.optional("mean_frame_rate").map(|it| (it, it.text()));
    let stated = keys.optional("decimal").and_then(|value| {
        let text = value.text()?;
        match text.as_str() {
            "comma" => Some(Decimal::Comma),
            "point" => Some(Decimal::Point),
            _ => {
                value.mistake(
                    format!("`{text}` is no decimal mark"),
                    "write \"comma\" or \"point\"",
                );
                None
            }
        }
    });
    keys.refuse_others();

    let source = keys.source;
    let wide = heading.len();
    let lines: Vec<_> = lines
        .filter(|line| has_width(source, line, wide, &table))
        .collect();
    let mean_name = mean.as_ref().and_then(|(_, name)| name.as_deref());
    let row = |line: &Vec<Text>| {
        let (name, place) = &line[0];
        table::row(source, place, name.clone(), table.axis)
    };
    let mut rows: Vec<Row> = lines.iter().map(row).collect();
    let mut mean_found = false;
    for (at, (name, place)) in heading.iter().enumerate().skip(1) {
        let is_mean = Some(name.as_str()) == mean_name;
        let column = match is_mean {
            true => None,
            false => table::column(source, place, name, table.axis, &document.mixes),
        };
        if column.is_none() && !is_mean {
            continue;
        }
        let texts: Vec<&Text> = lines.iter().map(|line| &line[at]).collect();
        let Some(decimal) = stated.or_else(|| decimal(source, name, &texts)) else {
            continue;
        };
        for (row, (text, place)) in rows.iter_mut().zip(texts) {
            let text = match decimal {
                Decimal::Comma => text.replace(',', "."),
                Decimal::Point => text.clone(),
            };
            let read = figure(source, &text, place);
            match is_mean {
                true => row.mean_frame_rate = read,
                false => row.cells.push(read),
            }
        }
        mean_found |= is_mean;
        table.columns.extend(column);
    }
    if let (Some((value, Some(name))), false) = (mean, mean_found) {
        value.mistake(
            format!("`{name}` is no column of the table"),
            "use the name of a column",
        );
    }
    table.rows = rows;
    table::check(source, &table);
    document.tables.push(table);
}

/// Reports a row of another length than the heading: merged cells, or a mark that splits a cell.
fn has_width(source: &Source, line: &[Text], wide: usize, table: &Table) -> bool {
    if line.len() == wide {
        return true;
    }
    if let Some((name, place)) = line.first() {
        let what = format!(
            "row `{name}` of table `{}` has {} cells, and its heading {wide}",
            table.id,
            line.len()
        );
        let help = "repeat merged cells in each column, write `-` for an empty one, and put a cell with the delimiter \
                    in quotes";
        source.mistake(place, what, help);
    }
    false
}

/// The decimal mark of a column; `None` if only its author knows, which is a mistake.
fn decimal(source: &Source, name: &str, texts: &[&Text]) -> Option<Decimal> {
    let with_comma = || texts.iter().filter(|(text, _)| text.contains(','));
    let Some((text, place)) = with_comma().next() else {
        return Some(Decimal::Point);
    };
    let has_point = texts.iter().any(|(text, _)| text.contains('.'));
    let is_certain = with_comma().any(|(text, _)| !may_be_thousands(text));
    if has_point || !is_certain {
        let why = match has_point {
            true => "the column has points too",
            false => "it may separate thousands",
        };
        source.mistake(
            place,
            format!("the comma of `{text}` in column `{name}` is ambiguous: {why}"),
            "add `decimal = \"comma\"` or `decimal = \"point\"` to the table's keys, and write numbers without marks of \
             thousands",
        );
        return None;
    }
    Some(Decimal::Comma)
}

/// Whether every comma in a text is followed by exactly three digits, and preceded by one to three.
fn may_be_thousands(text: &str) -> bool {
    let digits = |text: &str, from_end: bool| match from_end {
        true => text.chars().rev().take_while(char::is_ascii_digit).count(),
        false => text.chars().take_while(char::is_ascii_digit).count(),
    };
    text.match_indices(',').all(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let leading_zero = before.trim_start().starts_with('0');
        digits(after, false) == 3 && (1..=3).contains(&digits(before, true)) && !leading_zero
    })
}

//! The decimal mark of a table's columns: the unambiguous numbers of a column, or else of the
//! table, determine it.

use super::columns::Raw;
use super::markup::Text;
use crate::marks::{Decimal, Evidence};
use crate::source::Source;

/// Returns the decimal mark of each column, if it is certain.
pub(super) fn each(columns: &[Raw], stated: Option<Decimal>) -> Vec<Option<Decimal>> {
    let each = columns
        .iter()
        .map(|column| stated.or_else(|| evidence(column).decimal()));
    each.collect()
}

fn evidence(column: &Raw) -> Evidence {
    let texts = column.cells.iter().map(|(text, _)| Evidence::of(text));
    texts.fold(Evidence::default(), Evidence::and)
}

/// Returns the evidence of the whole table.
pub(super) fn whole_table(columns: &[Raw]) -> Evidence {
    let all = columns.iter().map(evidence);
    all.fold(Evidence::default(), Evidence::and)
}

/// Whether the points of a column may separate thousands, and nothing in the table decides.
pub(super) fn is_point_unclear(column: &Raw, whole: Evidence) -> bool {
    evidence(column).is_point_unclear() && whole.is_point_unclear()
}

/// The first cell of a column that has a mark.
pub(super) fn with_mark(column: &Raw, mark: char) -> Option<Text> {
    let mut cells = column.cells.iter();
    cells.find(|(text, _)| text.contains(mark)).cloned()
}

/// Returns the decimal mark of a column; `None` if it is ambiguous, which is a mistake.
pub(super) fn of(
    source: &Source,
    column: &Raw,
    whole: Evidence,
    has_semicolons: bool,
) -> Option<Decimal> {
    let found = evidence(column);
    if let Some(decimal) = found.decimal() {
        return Some(decimal);
    }
    let is_both = found.point && found.comma;
    // Programs that separate cells by semicolons write a decimal comma.
    let is_point = has_semicolons && is_point_unclear(column, whole);
    // No number of the column decides, but none contradicts the table either. Without an ambiguous
    // comma the point is safe: `1.234` is then read as printed.
    if !is_both && !is_point && (whole.decimal().is_some() || !found.unclear_comma) {
        return Some(whole.decimal().unwrap_or(Decimal::Point));
    }
    if is_both {
        let shows = |decimal: Decimal| {
            let mut cells = column.cells.iter();
            cells.find(|(text, _)| Evidence::of(text).decimal() == Some(decimal))
        };
        let ((comma, place), (point, _)) = (shows(Decimal::Comma)?, shows(Decimal::Point)?);
        source.mistake(
            place,
            format!(
                "column `{}` has two decimal marks: the comma of `{comma}` and the point of `{point}`",
                column.name
            ),
            "write one of them in all cells of the column",
        );
        return None;
    }
    let (mark, sign) = if is_point {
        ('.', "point")
    } else {
        (',', "comma")
    };
    let (text, place) = with_mark(column, mark)?;
    source.mistake(
        &place,
        format!(
            "the {sign} of `{text}` in column `{}` is ambiguous: it may separate thousands",
            column.name
        ),
        "add `decimal = \"comma\"` or `decimal = \"point\"` to the table's keys",
    );
    None
}

//! What of a table is not read: columns of text, and figures without a unit. A remark names each.

use super::columns::{self, Raw};
use super::keys::figure;
use super::markup::Text;
use super::{guess, heading, markup, pairs};
use crate::document::{Axis, Column, Document, Remark, Table};
use crate::marks::Decimal;
use crate::source::Source;

/// Leaves out columns of text. Columns before all figures are added to the names of the rows.
pub(super) fn without_texts(
    columns: Vec<Raw>,
    decimals: &[Option<Decimal>],
    axis: Option<Axis>,
    names: &mut [Text],
    (source, is_bare, document, table): (&Source, bool, &mut Document, &Table),
) -> Vec<Raw> {
    let mut kept: Vec<Raw> = Vec::new();
    for (column, decimal) in columns.into_iter().zip(decimals) {
        let decimal = decimal.unwrap_or(Decimal::Point);
        if refuse_two_units(source, &column, decimal) {
            continue;
        }
        // A table without keys may hold dates, versions and counts, so its columns must look like
        // rates. With keys, one figure makes a column of figures, and its texts are mistakes.
        let is_text = if is_bare {
            !columns::is_of_rates(&column, decimal)
        } else {
            columns::is_text(&column, decimal, axis)
        };
        if !is_text {
            kept.push(column);
            continue;
        }
        if is_bare && let Some((text, place)) = columns::text_among_rates(&column, decimal) {
            document.remarks.push(Remark {
                place: place.clone(),
                what: format!(
                    "column `{}` of {} is not checked: `{text}` is no figure",
                    column.name, table.id
                ),
            });
            continue;
        }
        // In a table of rates the row name must parse as a size or a mix, so nothing is added to
        // it.
        if kept.is_empty() && axis != Some(Axis::Rates) {
            for ((name, _), (text, _)) in names.iter_mut().zip(&column.cells) {
                if !markup::is_missing(text) {
                    if !name.is_empty() {
                        name.push_str(", ");
                    }
                    name.push_str(text);
                }
            }
            continue;
        }
        if is_bare {
            continue;
        }
        document.remarks.push(Remark {
            place: column.place,
            what: format!(
                "column `{}` of {} holds text, and is not read",
                column.name, table.id
            ),
        });
    }
    kept
}

/// Reports a column with two figures in different units in its cells: one mistake, as all cells are
/// of the same form, and one for each text among them. Returns whether it is such a column.
fn refuse_two_units(source: &Source, column: &Raw, decimal: Decimal) -> bool {
    let is_double = |cell: &&Text| pairs::has_two_units(&cell.0);
    let Some((text, place)) = column.cells.iter().find(is_double) else {
        return false;
    };
    let what = format!("`{text}` holds two figures with units");
    let help = "give each unit a column or a row of its own, for example `Throughput [Gbit/s]` and `Throughput [kpps]`";
    source.cell_mistake(place, what, help);
    for cell in column.cells.iter().filter(|cell| !is_double(cell)) {
        if !markup::is_missing(&cell.0) && columns::figure(&cell.0, decimal, &cell.1).is_none() {
            // Reports the mistake: it is no figure.
            let _ = figure(source, &cell.0, &cell.1);
        }
    }
    true
}

/// Words in headings of columns that describe the device.
const DESCRIPTIONS: [&str; 4] = ["link", "port", "ports", "interface"];

/// Leaves out columns without a size among columns of sizes, such as a count of ports. If the keys
/// state sizes, only a heading that begins with a digit is kept; otherwise all of these columns
/// must lack a unit, or describe the device.
pub(super) fn without_others(
    columns: Vec<Raw>,
    (axis, mean): (Option<Axis>, Option<&str>),
    corner: &str,
    document: &mut Document,
    table: &Table,
) -> Vec<Raw> {
    let is_size = |column: &Raw| {
        let name = &column.name;
        heading::size(name).is_some() || heading::is_mix(name)
    };
    let is_other = |column: &Raw| {
        let is_mean = mean == Some(column.name.as_str());
        let is_described = document.mixes.iter().any(|mix| mix.name == column.name);
        !is_size(column) && !is_mean && !is_described
    };
    let is_left_out = |column: &Raw| {
        let first = column.name.chars().next();
        // `15l8` is a size with a mistake, which is reported later.
        is_other(column) && first.is_some_and(|c| !c.is_ascii_digit())
    };
    let sizes: Vec<&str> = columns
        .iter()
        .filter(|it| is_size(it))
        .map(|it| it.name.as_str())
        .collect();
    let has_sizes = match axis {
        Some(Axis::Frame | Axis::Mtu | Axis::Bytes) => !sizes.is_empty(),
        Some(_) => false,
        None => {
            let guessed = guess::axis(corner, &sizes, &[], false);
            let is_description = |column: &Raw| {
                let name = column.name.to_lowercase();
                let mut words = name.split(|c: char| !c.is_alphanumeric());
                words.any(|word| DESCRIPTIONS.contains(&word)) || !columns::has_unit(column)
            };
            sizes.len() > 1
                && guessed != Axis::Names
                && columns.iter().filter(|it| is_other(it)).all(is_description)
        }
    };
    if !has_sizes {
        return columns;
    }
    let (left_out, kept): (Vec<Raw>, Vec<Raw>) =
        columns.into_iter().partition(|column| is_left_out(column));
    for column in left_out {
        document.remarks.push(Remark {
            place: column.place,
            what: format!(
                "column `{}` of {} has no size as heading, and is not checked",
                column.name, table.id
            ),
        });
    }
    kept
}

/// Leaves out columns without a known unit, if other columns have units or the table has no keys.
pub(super) fn without_unknown_units(table: &mut Table, is_bare: bool, document: &mut Document) {
    if !matches!(table.axis, Axis::Names | Axis::Devices) || table.unit.is_some() {
        return;
    }
    let is_known = |at: usize, column: &Column| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
        let has_unit: Vec<bool> = cells
            .flatten()
            .map(|figure| figure.unit.is_some())
            .collect();
        // The rows of a data sheet have quantities of many kinds: one without a unit says nothing
        // about the others.
        let some = is_bare && has_unit.contains(&true);
        column.unit.is_some() || some || has_unit.iter().all(|has| *has)
    };
    let columns = table.columns.iter().enumerate();
    let known: Vec<bool> = columns.map(|(at, column)| is_known(at, column)).collect();
    if !is_bare && !known.contains(&true) {
        return;
    }
    let mut names = Vec::new();
    // From the end, so that the indices of the columns before stay valid.
    for at in (0..known.len()).rev() {
        let column = &table.columns[at];
        let name = format!("`{}`", column.name);
        if !known[at] {
            names.push(name);
            table.columns.remove(at);
            for row in &mut table.rows {
                row.cells.remove(at);
            }
        } else if column.unit.is_none() {
            let cells = table
                .rows
                .iter_mut()
                .filter_map(|row| row.cells.get_mut(at));
            let without = cells.filter_map(|cell| cell.take_if(|figure| figure.unit.is_none()));
            match without.count() {
                0 => {}
                1 => names.push(format!("one in {name}")),
                count => names.push(format!("{count} in {name}")),
            }
        }
    }
    if !names.is_empty() {
        names.reverse();
        document.remarks.push(Remark {
            place: table.place.clone(),
            what: format!(
                "figures of {} without a unit of a rate or time are not checked: {}; add one in [] to the heading, or to each cell",
                table.id,
                names.join(", ")
            ),
        });
    }
}

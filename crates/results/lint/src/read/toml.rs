//! Published figures as TOML: the format of `reference/`.

use super::keys::{Keys, Value};
use super::{counts, statements, table};
use crate::document::{Document, Row, Table};
use crate::source::Source;
use yaml::Place;

pub(super) fn read(source: &Source) -> Document {
    let mut document = Document::default();
    Keys::parse(source, 0, &source.text, |keys| {
        // Mixes before tables, because columns name them.
        statements::read(keys, &mut document);
        document.differs = keys.text("differs");
        statements::figures(keys, &mut document);
        statements::each(keys, "table", |keys| {
            let number = document.tables.len() + 1;
            if !table::is_skipped(keys) {
                let table = one(keys, number, &mut document);
                document.tables.push(table);
            }
        });
        // Words for readers.
        let _ = keys.optional("findings");
        keys.refuse_others();
    });
    document
}

fn one(keys: &Keys<'_>, number: usize, document: &mut Document) -> Table {
    let mut table = table::read(keys, &format!("table {number}"));
    table::listed_columns(keys, document, &mut table);
    if let Some(figures) = keys.required("figures").and_then(|it| it.keys()) {
        let mut rows = figures.entries();
        let mut is_rate = |(name, place, value): &(String, Place, Value<'_>)| {
            let texts = value.list().into_iter().filter_map(|cell| cell.printed());
            let mut texts = texts.filter(|text| !text.is_empty());
            let remark = counts::remark(counts::ROW, name, &table.id, place);
            let is_rate = remark.is_none() || texts.any(|text| counts::has_own_unit(&text));
            document.remarks.extend(remark.filter(|_| !is_rate));
            is_rate
        };
        rows.retain(&mut is_rate);
        table.rows = rows
            .into_iter()
            .map(|(name, place, value)| {
                let cells: Vec<_> = value.list().iter().map(Value::figure).collect();
                if cells.len() != table.columns.len() {
                    value.mistake(
                        format!(
                            "row `{name}` has {} cells, and the table {} columns",
                            cells.len(),
                            table.columns.len()
                        ),
                        "write one cell for each column, \"\" where the report has none",
                    );
                }
                let row = table::row(keys.source, &place, "", name, table.axis, document);
                Row { cells, ..row }
            })
            .collect();
    }
    if let Some(means) = keys.optional("mean_frame_rate").and_then(|it| it.keys()) {
        for (name, place, value) in means.entries() {
            match table.rows.iter_mut().find(|row| row.name == name) {
                Some(row) => {
                    let mean = value.figure();
                    row.mean_frame_rate = mean.map(|mean| table::mean(keys.source, mean, None));
                }
                None => keys.source.mistake(
                    &place,
                    format!("`{name}` is no row of the table"),
                    "use a name that `figures` has",
                ),
            }
        }
    }
    without_counts(&mut table, document);
    table::resolve_prefixes(keys.source, &mut table);
    table::check(keys.source, &table, document);
    keys.refuse_others();
    table
}

/// Leaves out columns of counts, with a remark for each.
fn without_counts(table: &mut Table, document: &mut Document) {
    // From the end, so that the indices of the columns before stay valid.
    for at in (0..table.columns.len()).rev() {
        let mut cells = table
            .rows
            .iter()
            .filter_map(|row| row.cells.get(at)?.as_ref());
        if cells.any(|figure| figure.unit.is_some()) || table.columns[at].mix.is_some() {
            continue;
        }
        let name = &table.columns[at].name;
        let Some(remark) = counts::remark(counts::COLUMN, name, &table.id, &table.place) else {
            continue;
        };
        document.remarks.push(remark);
        table.columns.remove(at);
        for row in table.rows.iter_mut().filter(|row| row.cells.len() > at) {
            row.cells.remove(at);
        }
    }
}

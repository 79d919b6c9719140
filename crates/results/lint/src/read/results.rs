//! The project's `results.json`: its frame rates with their bit rates by layer, and its statistics.

mod statistics;

use crate::document::{Axis, Column, Document, Remark, Row, Table};
use crate::figure::Figure;
use crate::source::Source;
use crate::unit::Unit;
use serde_json::Value;
use units::Layer;
use units::human::counted;

/// Keys of the rates, as `stats` writes them.
const RATES: [(&str, Option<Layer>); 4] = [
    ("frames_per_s", None),
    ("l1_bps", Some(Layer::L1)),
    ("l2_bps", Some(Layer::L2)),
    ("ip_bps", Some(Layer::Ip)),
];
const SCHEMA: &str = "cipherbench-result/1";

pub(super) fn read(source: &Source) -> Document {
    let mut document = Document::default();
    let parsed: Result<Value, _> = serde_json::from_str(&source.text);
    let whole = source.path(String::new());
    let value = match parsed {
        Ok(value) => value,
        Err(error) => {
            source.mistake(
                &whole,
                format!("no JSON: {error}"),
                format!("rebuild it: `cipherbench report {}`", source.folder()),
            );
            return document;
        }
    };
    let schema = value["schema"].as_str().unwrap_or_default();
    if schema != SCHEMA {
        let what = format!("`schema` is `{schema}`, and not `{SCHEMA}`");
        let help = if schema.starts_with("cipherbench-result/") {
            format!(
                "rebuild it by this program: `cipherbench report {}`",
                source.folder()
            )
        } else {
            "lint reads the results.json of a run".to_owned()
        };
        source.mistake(&whole, what, help);
        return document;
    }
    let cells = value["cells"].as_array();
    for (at, cell) in cells.into_iter().flatten().enumerate() {
        let Some(bytes) = cell["traffic"]["mean_frame_bytes"].as_f64() else {
            continue;
        };
        let id = cell["id"].as_str().unwrap_or("cell");
        let mut table = table(source, id, format!("cells[{at}]"));
        let path = format!("cells[{at}].frames");
        rows(source, &cell["frames"], &path, bytes, &mut table.rows);
        if !table.rows.is_empty() {
            document.tables.push(table);
        }
    }
    // The remark counts both kinds apart, so the rates are counted before statistics are added.
    let rates = document.figure_count();
    for (at, cell) in cells.into_iter().flatten().enumerate() {
        let id = cell["id"].as_str().unwrap_or("cell");
        let path = format!("cells[{at}]");
        statistics::read(source, id, cell, &path, &mut document.tables);
    }
    document.remarks.push(Remark {
        place: whole,
        what: format!(
            "of {}, these are checked: {rates} rates of frames by layer, and {} percentiles, extremes and means; \
             nothing else of a run",
            counted(cells.map_or(0, Vec::len) as u64, "cell"),
            document.figure_count() - rates,
        ),
    });
    document
}

fn table(source: &Source, id: &str, path: String) -> Table {
    let columns = RATES.map(|(name, layer)| Column {
        name: name.to_owned(),
        unit: Unit::parse(if layer.is_some() { "bit/s" } else { "frames/s" }),
        layer,
        ..Column::default()
    });
    Table {
        axis: Axis::Rates,
        columns: columns.into(),
        ..bare_table(source, id, path)
    }
}

/// A table of a result, without columns and rows.
fn bare_table(source: &Source, id: &str, path: String) -> Table {
    Table {
        is_result: true,
        ..Table::bare(id.to_owned(), source.path(path))
    }
}

/// Finds every object below that holds a rate at each layer.
fn rows(source: &Source, value: &Value, path: &str, bytes: f64, found: &mut Vec<Row>) {
    match value {
        Value::Object(keys) => {
            let figure = |key: &str| {
                let mean = keys.get(key)?.get("mean")?.as_f64()?;
                Some(Figure::computed(mean, source.path(format!("{path}.{key}"))))
            };
            let cells: Vec<_> = RATES.iter().map(|(key, _)| figure(key)).collect();
            if cells.iter().all(Option::is_some) {
                found.push(Row {
                    name: path.to_owned(),
                    place: source.path(path.to_owned()),
                    size: Some(bytes),
                    mix: None,
                    system: String::new(),
                    layer: None,
                    device: String::new(),
                    cells,
                    mean_frame_rate: None,
                });
                return;
            }
            for (key, value) in keys {
                rows(source, value, &format!("{path}.{key}"), bytes, found);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                rows(source, value, &format!("{path}[{at}]"), bytes, found);
            }
        }
        _ => {}
    }
}

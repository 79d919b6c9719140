//! The statistics of a result: each object that holds several of one quantity, such as the minimum,
//! median and maximum over repeats, or percentiles of round trips.

use super::bare_table;
use crate::document::{Column, Row, Table};
use crate::figure::Figure;
use crate::rules::order;
use crate::source::Source;
use crate::unit::Unit;
use serde_json::{Map, Value};

/// Endings of keys, and their units.
const UNITS: [(&str, &str); 3] = [("_ns", "ns"), ("_bps", "bit/s"), ("_percent", "%")];
/// The fewest statistics to compare.
const KEYS_MIN: usize = 2;

/// Adds a table for each object at or below a value that holds statistics.
pub(super) fn read(source: &Source, id: &str, value: &Value, path: &str, tables: &mut Vec<Table>) {
    match value {
        Value::Object(keys) => {
            let is_rates = super::RATES.iter().all(|(key, _)| keys.contains_key(*key));
            if is_rates {
                // Compared with each other by layer.
                return;
            }
            if let Some(table) = table(source, id, keys, path) {
                tables.push(table);
            }
            for (key, value) in keys {
                read(source, id, value, &format!("{path}.{key}"), tables);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                read(source, id, value, &format!("{path}[{at}]"), tables);
            }
        }
        _ => {}
    }
}

/// The statistics among the keys of one object. Means over the same number of repeats keep the
/// order of the repeats.
fn table(source: &Source, id: &str, keys: &Map<String, Value>, path: &str) -> Option<Table> {
    let mut table = bare_table(source, &format!("{id}, {path}"), path.to_owned());
    let mut cells = Vec::new();
    let mut repeats = None;
    for (key, value) in keys {
        let known = order::named(key).is_some();
        // An estimate over repeats is an object with a mean and the number of repeats; other
        // statistics are plain numbers.
        let (number, n) = match value {
            Value::Object(estimate) => (estimate.get("mean"), estimate.get("n")),
            value => (Some(value), None),
        };
        let Some(number) = number.and_then(Value::as_f64) else {
            continue;
        };
        // Means over different repeats may be in any order, so only keys with the first one's
        // number are compared.
        if !known || (n.is_some() && *repeats.get_or_insert(n) != n) {
            continue;
        }
        let ending = UNITS.iter().find(|(ending, _)| key.ends_with(ending));
        table.columns.push(Column {
            name: key.clone(),
            unit: ending.and_then(|(_, unit)| Unit::parse(unit)),
            ..Column::default()
        });
        let place = source.path(format!("{path}.{key}"));
        cells.push(Some(Figure::computed(number, place)));
    }
    if cells.len() < KEYS_MIN {
        return None;
    }
    table.rows.push(Row {
        name: "value".to_owned(),
        place: source.path(path.to_owned()),
        size: None,
        mix: None,
        system: String::new(),
        layer: None,
        device: String::new(),
        cells,
        mean_frame_rate: None,
    });
    Some(table)
}

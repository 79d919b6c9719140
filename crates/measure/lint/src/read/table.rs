//! What a table's keys state of it; the same in every format.

use super::beside;
use super::keys::{Keys, Value};
use crate::document::{Axis, Column, Mix, Reference, Row, Table, Transport};
use crate::source::Source;
use crate::unit::{KNOWN, Unit};
use units::{BitRate, Layer};
use yaml::Place;

/// Names of the kinds of columns, as keys and as values of `columns`.
const AXES: [(&str, Axis); 6] = [
    ("frame", Axis::Frame),
    ("mtu", Axis::Mtu),
    ("bytes", Axis::Bytes),
    ("mix", Axis::Mix),
    ("rates", Axis::Rates),
    ("columns", Axis::Names),
];
const LAYERS: [(&str, Option<Layer>); 5] = [
    ("L1", Some(Layer::L1)),
    ("L2", Some(Layer::L2)),
    ("IP", Some(Layer::Ip)),
    ("payload", Some(Layer::Payload)),
    ("unstated", None),
];
const TRANSPORTS: [(&str, Transport); 2] = [("UDP", Transport::Udp), ("TCP", Transport::Tcp)];
const SENDERS: [(&str, bool); 3] = [("software", true), ("tester", false), ("unstated", false)];

/// Reads all keys but those of columns and rows.
pub(super) fn read(keys: &Keys<'_>, otherwise_id: &str) -> Table {
    let system = keys.text("system");
    let title = keys.text("title");
    let id = keys.text("id").or_else(|| system.clone());
    let id = id.or_else(|| title.clone());
    Table {
        id: id.unwrap_or_else(|| otherwise_id.to_owned()),
        title: system.or(title).unwrap_or_default(),
        place: keys.place().clone(),
        beside: beside::read(keys),
        unit: keys.optional("unit").and_then(unit),
        layer: keys
            .optional("layer")
            .and_then(|it| one_of(it, &LAYERS))
            .flatten(),
        transport: keys
            .optional("transport")
            .and_then(|it| one_of(it, &TRANSPORTS)),
        link_bps: keys.optional("link").and_then(link),
        mtu: None,
        software_sender: keys
            .optional("sender")
            .and_then(|it| one_of(it, &SENDERS))
            .unwrap_or(false),
        axis: Axis::Names,
        columns: Vec::new(),
        rows: Vec::new(),
        baseline: keys.optional("baseline").and_then(reference),
        repeats: keys.optional("repeats").and_then(reference),
        accelerates: keys.optional("accelerates").and_then(reference),
        significant: None,
    }
}

/// Reads the key that lists the columns, in TOML. A number as `mtu` is that of every cell.
pub(super) fn listed_columns(keys: &Keys<'_>, mixes: &[Mix], table: &mut Table) {
    for (key, axis) in AXES {
        let Some(value) = keys.optional(key) else {
            continue;
        };
        if axis == Axis::Mtu && !value.is_list() {
            table.mtu = mtu(value);
            continue;
        }
        if !table.columns.is_empty() {
            value.mistake("a second list of columns", "keep one");
            continue;
        }
        table.axis = axis;
        let named = |item: Value<'_>| {
            let name = item.printed()?;
            column(item.source, &item.place(), &name, axis, mixes)
        };
        table.columns = value.list().into_iter().filter_map(named).collect();
    }
    if table.columns.is_empty() {
        let names: Vec<_> = AXES.iter().map(|(name, _)| *name).collect();
        let help = format!("list them under one of {}", names.join(", "));
        keys.mistake("the table has no columns", help);
    }
}

/// Reads what the columns of a grid are: `columns = "frame"`.
pub(super) fn axis(keys: &Keys<'_>, table: &mut Table) {
    table.mtu = keys.optional("mtu").and_then(mtu);
    match keys.optional("columns").map(|it| one_of(it, &AXES)) {
        Some(axis) => table.axis = axis.unwrap_or(Axis::Names),
        None => keys.mistake(
            "the table does not state what its columns are",
            "add `columns = \"frame\"`, or \"mtu\", \"bytes\", \"mix\", \"rates\"; \"columns\" for anything else",
        ),
    }
}

/// A column by its heading: a size, the name of a mix, a layer with its unit, or any name.
pub(super) fn column(
    source: &Source,
    place: &Place,
    name: &str,
    axis: Axis,
    mixes: &[Mix],
) -> Option<Column> {
    let name = name.trim();
    let (bare, unit_text) = match name.split_once(['[', '(']) {
        Some((bare, rest)) => (bare.trim(), Some(rest.trim_end_matches([']', ')']).trim())),
        None => (name, None),
    };
    let mut column = Column {
        name: name.to_owned(),
        size: None,
        unit: unit_text.and_then(Unit::parse),
        layer: None,
    };
    match axis {
        Axis::Frame | Axis::Mtu | Axis::Bytes => {
            column.size = size(name);
            if column.size.is_none() {
                let help = "write a number of bytes, for example `1518`";
                source.mistake(place, format!("column `{name}` is no size"), help);
                return None;
            }
            name.trim_end_matches('B')
                .trim()
                .clone_into(&mut column.name);
        }
        Axis::Mix => {
            let found = mixes.iter().find(|mix| mix.name == name);
            column.size = found.map(|mix| mix.mean_bytes);
            if found.is_none() {
                let what = format!("mix `{name}` is not described");
                let help = "add a [[mix]] with its `name`, `frame` sizes and `weights`";
                source.mistake(place, what, help);
                return None;
            }
        }
        Axis::Rates => {
            let layer = LAYERS.iter().find(|(layer, _)| *layer == bare);
            column.layer = layer.and_then(|(_, layer)| *layer);
            let unit = column.unit.take().or_else(|| Unit::parse(bare));
            if unit.is_none() || (layer.is_none() && Unit::parse(bare).is_none()) {
                let what = format!("column `{name}` is no rate of a layer");
                let help = "write `frames/s`, `L1 [Mbit/s]`, `L2 [Mbit/s]`, `IP [Mbit/s]` or `payload [Mbit/s]`";
                source.mistake(place, what, help);
                return None;
            }
            column.unit = unit;
        }
        Axis::Names => {}
    }
    Some(column)
}

fn mtu(value: Value<'_>) -> Option<f64> {
    let text = value.printed()?;
    let bytes = size(&text);
    if bytes.is_none() {
        value.mistake(
            format!("`{text}` is no MTU"),
            "write a number of bytes, for example `1500`",
        );
    }
    bytes
}

/// `1518` or `1518 B`, in bytes.
fn size(text: &str) -> Option<f64> {
    let digits = text.trim().trim_end_matches('B').trim_end();
    let bytes: u32 = digits.parse().ok()?;
    (bytes > 0).then_some(f64::from(bytes))
}

/// A row by its heading, without cells. In a table of rates it is a frame size.
pub(super) fn row(source: &Source, place: &Place, name: String, axis: Axis) -> Row {
    let size = size(&name).filter(|_| axis == Axis::Rates);
    if axis == Axis::Rates && size.is_none() {
        let help = "rows of a table of rates are frame sizes in bytes, for example `1518`";
        source.mistake(place, format!("row `{name}` is no size"), help);
    }
    Row {
        name,
        place: place.clone(),
        size,
        cells: Vec::new(),
        mean_frame_rate: None,
    }
}

/// Reports what makes a table as a whole impossible to check.
pub(super) fn check(source: &Source, table: &Table) {
    let without = table.cells().find(|cell| cell.unit().is_none());
    if let Some(cell) = without {
        let what = format!("figures of table `{}` have no unit", table.id);
        let help =
            "add `unit = \"Mbit/s\"` to the table's keys, or a unit in [] to the column's heading";
        source.mistake(&cell.figure.place, what, help);
    }
    let mut means = table
        .rows
        .iter()
        .filter_map(|row| row.mean_frame_rate.as_ref());
    if let Some(mean) = means.next().filter(|_| table.axis != Axis::Frame) {
        let what = format!(
            "table `{}` has a mean frame rate, and no frame sizes",
            table.id
        );
        source.mistake(&mean.place, what, "state the frame sizes as its columns");
    }
}

/// One of the names that a key accepts; `None` after a mistake.
fn one_of<T: Copy>(value: Value<'_>, names: &[(&str, T)]) -> Option<T> {
    let text = value.text()?;
    let found = names.iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        value.mistake(
            format!("`{text}` is not known here"),
            format!("write one of {}", names.join(", ")),
        );
    }
    found.map(|(_, value)| *value)
}

pub(super) fn unit(value: Value<'_>) -> Option<Unit> {
    let text = value.text()?;
    let unit = Unit::parse(&text);
    if unit.is_none() {
        value.mistake(
            format!("unit `{text}` is not known"),
            format!("units are {KNOWN}"),
        );
    }
    unit
}

fn link(value: Value<'_>) -> Option<u64> {
    BitRate::parse(&value.text()?, Layer::L1)
        .map(BitRate::bps)
        .inspect_err(|error| value.mistake(error.to_string(), error.help()))
        .ok()
}

fn reference(value: Value<'_>) -> Option<Reference> {
    Some(Reference {
        id: value.text()?,
        place: value.place(),
    })
}

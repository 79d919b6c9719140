//! The keys of a table, which are the same in every format.

use super::keys::{Keys, Value};
use super::{beside, heading};
use crate::document::{Axis, Column, Document, Reference, Remark, Row, Table, Transport};
use crate::encapsulation::{self, Encapsulation};
use crate::figure::Figure;
use crate::source::Source;
use crate::unit::{KNOWN, Quantity, Unit};
use units::human::counted;
use units::{BitRate, Layer};
use yaml::Place;

/// Names of the kinds of columns, as keys and as values of `columns`.
const AXES: [(&str, Axis); 7] = [
    ("frame", Axis::Frame),
    ("mtu", Axis::Mtu),
    ("bytes", Axis::Bytes),
    ("mix", Axis::Mix),
    ("rates", Axis::Rates),
    ("devices", Axis::Devices),
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

/// Whether the table's keys exclude it: `skip = true`.
pub(super) fn is_skipped(keys: &Keys<'_>) -> bool {
    keys.optional("skip").is_some_and(|value| value.flag())
}

/// Reads all keys except the ones of columns and rows.
pub(super) fn read(keys: &Keys<'_>, otherwise_id: &str) -> Table {
    let system = keys.text("system");
    let title = keys.text("title");
    // Claims and findings need a name, so a table without any of the three gets its number.
    let id = keys.text("id").or_else(|| system.clone());
    let id = id.or_else(|| title.clone());
    let id = id.unwrap_or_else(|| otherwise_id.to_owned());
    Table {
        title: system.or(title).unwrap_or_default(),
        beside: beside::read(keys),
        unit: keys.optional("unit").and_then(unit),
        // `unstated` is a legal value and yields no layer, so the result is flattened.
        layer: keys
            .optional("layer")
            .and_then(|it| one_of(it, &LAYERS))
            .flatten(),
        transport: keys
            .optional("transport")
            .and_then(|it| one_of(it, &TRANSPORTS)),
        link_bps: keys.optional("link").and_then(link),
        encapsulation: keys.optional("encapsulation").and_then(encapsulation),
        software_sender: keys
            .optional("sender")
            .and_then(|it| one_of(it, &SENDERS))
            .unwrap_or(false),
        baseline: keys.optional("baseline").and_then(reference),
        repeats: keys.optional("repeats").and_then(reference),
        accelerates: keys.optional("accelerates").and_then(reference),
        ..Table::bare(id, keys.place().clone())
    }
}

/// Reads the key that lists the columns, in TOML. A number as `mtu` applies to every cell.
pub(super) fn listed_columns(keys: &Keys<'_>, document: &mut Document, table: &mut Table) {
    for (key, axis) in AXES {
        let Some(value) = keys.optional(key) else {
            continue;
        };
        // In TOML one key serves both: a list has columns of MTUs, and a number applies to every
        // cell.
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
            Some(column(item.source, &item.place(), &name, table, document))
        };
        let columns = value.list().into_iter().filter_map(named).collect();
        table.columns = columns;
    }
    if table.columns.is_empty() {
        let names: Vec<_> = AXES.iter().map(|(name, _)| *name).collect();
        let help = format!("list them under one of {}", names.join(", "));
        keys.mistake("the table has no columns", help);
    }
}

/// Reads the kind of a grid's columns: `columns = "frame"`; `None` if the keys do not state it.
pub(super) fn axis(keys: &Keys<'_>, table: &mut Table) -> Option<Axis> {
    table.mtu = keys.optional("mtu").and_then(mtu);
    let stated = keys.optional("columns")?;
    // After a mistake any axis serves to read on.
    Some(one_of(stated, &AXES).unwrap_or(Axis::Names))
}

/// The name of an axis, as a value of `columns`.
pub(super) fn axis_name(axis: Axis) -> &'static str {
    let found = AXES.iter().find(|(_, known)| *known == axis);
    found.map_or("columns", |(name, _)| name)
}

/// A column by its heading: a size, the name of a mix, a layer with its unit, or any name. After a
/// mistake it is kept, so that the mistakes of its cells are found too.
pub(super) fn column(
    source: &Source,
    place: &Place,
    name: &str,
    table: &Table,
    document: &mut Document,
) -> Column {
    let (name, axis) = (name.trim(), table.axis);
    let (bare, unit) = heading::with_unit(name);
    // Other words in brackets, as in `A (old) [Mbit/s]`, are kept. An ending as `_mbps` is not in
    // the heading as the unit spells it.
    let words = match &unit {
        Some(unit) if name.contains(&unit.text) => name.replacen(&unit.text, "", 1),
        _ => bare.to_owned(),
    };
    let found = document.mixes.iter().find(|mix| mix.name == name).cloned();
    let mut column = Column {
        name: name.to_owned(),
        unit,
        words: words.to_lowercase(),
        ..Column::default()
    };
    match axis {
        Axis::Frame | Axis::Mtu | Axis::Bytes => {
            // A size is read before the name of a mix, because mixes have any name.
            column.size = heading::size(name);
            if let Some(bytes) = column.size {
                // Tables of one file are compared by the names of columns, so `1518 B` and `1,518`
                // get one name. The unit `B` belongs to the size and not to the figures.
                column.name = bytes.to_string();
                column.unit = heading::unit_of_size(name);
            } else if axis == Axis::Frame && (found.is_some() || heading::is_mix(name)) {
                // A mix that the file does not describe is kept here, because the sizes around it
                // can be checked without it. A table of mixes alone needs the descriptions.
                column.size = found.as_ref().map(|mix| mix.mean_bytes);
                column.mix = found;
                if column.mix.is_none() {
                    remark_mix(document, place, &format!("column `{name}`"), name);
                }
            } else {
                let help = "write a number of bytes, for example `1518`, or the name of a [[mix]]";
                source.mistake(place, format!("column `{name}` is no size"), help);
            }
        }
        Axis::Mix => {
            column.size = found.as_ref().map(|mix| mix.mean_bytes);
            if found.is_none() {
                let what = format!("mix `{name}` is not described");
                let help =
                    "add a [[mix]] with its `name`, `frame` sizes and `weights`, or its `mean`";
                source.mistake(place, what, help);
            }
            column.mix = found;
        }
        Axis::Rates => {
            (column.layer, column.device) = heading::device(name);
            let quantity = column.unit.as_ref().map(|unit| unit.quantity);
            let is_known = match quantity {
                Some(Quantity::FrameRate) => true,
                Some(Quantity::BitRate) => column.layer.or(table.layer).is_some(),
                _ => false,
            };
            if !is_known {
                let what = format!("column `{name}` is no rate of a layer");
                let help = "write `frames/s`, `L1 [Mbit/s]`, `L2 [Mbit/s]`, `IP [Mbit/s]` or `payload [Mbit/s]`, or \
                            add the key `layer`";
                source.mistake(place, what, help);
                // One mistake is enough: any unit serves to read on.
                column.unit = column.unit.or_else(|| Unit::parse("frames/s"));
            }
        }
        Axis::Devices => (column.layer, column.device) = heading::device(name),
        Axis::Names => {}
    }
    column
}

fn remark_mix(document: &mut Document, place: &Place, what: &str, name: &str) {
    document.remarks.push(Remark {
        place: place.clone(),
        what: format!(
            "{what} is read, and not checked: no mix has this name; add a [[mix]] with `name = \"{name}\"`, and its \
             `frame` sizes and `weights`, or its `mean`"
        ),
    });
}

fn mtu(value: Value<'_>) -> Option<f64> {
    let text = value.printed()?;
    let bytes = heading::size(&text);
    if bytes.is_none() {
        value.mistake(
            format!("`{text}` is no MTU"),
            "write a number of bytes, for example `1500`",
        );
    }
    bytes
}

/// A row by its heading, without cells. In a table of rates or devices it is a frame size or a mix,
/// of a system that other columns name.
pub(super) fn row(
    source: &Source,
    place: &Place,
    system: &str,
    name: String,
    axis: Axis,
    document: &mut Document,
) -> Row {
    let is_rates = matches!(axis, Axis::Rates | Axis::Devices);
    let size = match axis {
        Axis::Rates | Axis::Devices => heading::size(&name),
        Axis::Names => heading::frame_size_in(&name),
        _ => None,
    };
    let found = document.mixes.iter().find(|mix| mix.name == name);
    let mix = found.filter(|_| is_rates && size.is_none()).cloned();
    if is_rates && size.is_none() && mix.is_none() {
        if heading::is_mix(&name) {
            remark_mix(document, place, &format!("row `{name}`"), &name);
        } else {
            let help = "rows of a table of rates are frame sizes in bytes, for example `1518`, or names of a [[mix]]";
            source.mistake(place, format!("row `{name}` is no size"), help);
        }
    }
    let is_named = matches!(axis, Axis::Frame | Axis::Mix);
    let (layer, device) = if is_named {
        heading::device(&name)
    } else {
        (None, String::new())
    };
    Row {
        layer,
        device,
        size: size.or(mix.as_ref().map(|mix| mix.mean_bytes)),
        mix,
        name: match (system, name.as_str()) {
            ("", _) => name,
            (_, "") => system.to_owned(),
            _ => format!("{system}, {name}"),
        },
        system: system.to_owned(),
        place: place.clone(),
        cells: Vec::new(),
        mean_frame_rate: None,
    }
}

/// Completes each prefix without a unit with the unit of its column or table: `743.38k` of bytes
/// per second. Returns whether there was a mistake: one for all figures.
pub(super) fn resolve_prefixes(source: &Source, table: &mut Table) -> bool {
    let of_table = table.unit.clone();
    let mut unknown: Vec<&Figure> = Vec::new();
    for row in &mut table.rows {
        for (column, figure) in table.columns.iter().zip(&mut row.cells) {
            let Some(figure) = figure else { continue };
            let Some(prefix) = figure.prefix else {
                continue;
            };
            let around = column.unit.as_ref().or(of_table.as_ref());
            figure.unit = around.and_then(|unit| unit.with_prefix(prefix));
            if figure.unit.is_none() {
                unknown.push(figure);
            }
        }
    }
    let Some(first) = unknown.first() else {
        return false;
    };
    let what = format!(
        "{} of table `{}` {} the prefix of a unit that is not stated, as `{}`",
        counted(unknown.len() as u64, "figure"),
        table.id,
        if unknown.len() == 1 { "has" } else { "have" },
        first.text,
    );
    let help = "state in the table's keys the unit without its prefix: `unit = \"frames/s\"`, `unit = \"bit/s\"`, or \
                `unit = \"B/s\"` for a table of `openssl speed`";
    source.mistake(&first.place, what, help);
    true
}

/// Gives a printed mean frame rate its unit: its own, or the one of its heading. A prefix alone is
/// of that, or of frames per second.
pub(super) fn mean(source: &Source, mut figure: Figure, heading: Option<Unit>) -> Figure {
    if let Some(prefix) = figure.prefix {
        let around = heading.or_else(|| Unit::parse("frames/s"));
        figure.unit = around.and_then(|unit| unit.with_prefix(prefix));
    } else if let (None, Some(unit)) = (&figure.unit, heading) {
        // Findings print the text alone, which means frames per second without a unit.
        if unit.scale > 1.0 {
            figure.text = format!("{} {}", figure.text, unit.text);
        }
        figure.unit = Some(unit);
    }
    if let Some(unit) = &figure.unit
        && unit.quantity != Quantity::FrameRate
    {
        let what = format!("`{}` is no frame rate, but in {}", figure.text, unit.text);
        let help = "state the mean in frames per second, or in `kpps` or `Mpps`";
        source.mistake(&figure.place, what, help);
    }
    figure
}

/// Reports faults that make a whole table impossible to check.
pub(super) fn check(source: &Source, table: &Table, document: &mut Document) {
    let without = table.cells().find(|cell| cell.unit().is_none());
    if let Some(cell) = without {
        let what = format!("figures of table `{}` have no unit", table.id);
        let help =
            "add `unit = \"Mbit/s\"` to the table's keys, or a unit in [] to the column's heading";
        source.mistake(&cell.figure.place, what, help);
    }
    remark_tunnel(table, document);
    let mut means = table
        .rows
        .iter()
        .filter_map(|row| row.mean_frame_rate.as_ref());
    // The rule divides each rate by its frame size, so any other axis leaves the mean unchecked.
    if let Some(mean) = means.next().filter(|_| table.axis != Axis::Frame) {
        let what = format!(
            "table `{}` has a mean frame rate, and no frame sizes",
            table.id
        );
        source.mistake(&mean.place, what, "state the frame sizes as its columns");
    }
}

/// Remarks a tunnel in a heading, if the link is known and the encapsulation is not.
fn remark_tunnel(table: &Table, document: &mut Document) {
    let is_known = table.encapsulation.is_some() || table.link_bps.is_none();
    // Last, because it computes every cell: the remark only matters if a rate is compared with the
    // link.
    let has_ceiling = || table.cells().any(|cell| cell.ceiling_bps().is_some());
    if is_known || !has_ceiling() {
        return;
    }
    let rows = table.rows.iter().map(|row| row.name.as_str());
    let columns = table.columns.iter().map(|column| column.name.as_str());
    let mut names = rows.chain(columns).chain([table.title.as_str()]);
    let named = names.find_map(|name| Some((name, encapsulation::named_in(name)?)));
    if let Some((name, known)) = named {
        document.remarks.push(Remark {
            place: table.place.clone(),
            what: format!(
                "`{name}` names a tunnel, and the table states no encapsulation: its rates are compared with the link \
                 alone; add `encapsulation = \"{known}\"`"
            ),
        });
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
            match text.as_str() {
                "k" | "K" | "M" | "G" | "T" => format!(
                    "`{text}` is a prefix alone: write the unit behind it, as `frames/s`, `bit/s`, or `B/s` for `openssl speed`"
                ),
                _ => format!("units are {KNOWN}"),
            },
        );
    }
    unit
}

fn encapsulation(value: Value<'_>) -> Option<Encapsulation> {
    let text = value.text()?;
    let found = Encapsulation::parse(&text);
    if found.is_none() {
        let what = format!("encapsulation `{text}` is not known");
        value.mistake(what, format!("write one of {}", encapsulation::KNOWN));
    }
    found
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

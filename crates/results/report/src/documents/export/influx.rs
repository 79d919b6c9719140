//! InfluxDB line protocol, version 2: one line per trial, time stamps in nanoseconds.

use super::{CellPoints, Points};
use stats::{Quantity, Reading};
use std::collections::BTreeMap;

/// Writes the measurement `cipherbench`: the cell's labels are tags, its quantities fields.
pub(super) fn write(points: &Points<'_>) -> String {
    let lines = points.cells.iter().flat_map(|cell| lines(points, cell));
    lines.collect()
}

/// The fields of each repeat, in the order of the repeats.
fn lines(points: &Points<'_>, cell: &CellPoints<'_>) -> Vec<String> {
    let mut fields: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for reading in &cell.readings {
        for sample in &reading.value.values {
            // Numbers without a suffix are floats, so that the type of a field never depends on its
            // value.
            let field = format!("{}={}", key(reading), sample.value);
            fields.entry(sample.repeat).or_default().push(field);
        }
    }
    let tags = points.labels(cell.planned);
    // The line protocol has no empty tag values.
    let tags = tags.iter().filter(|(_, value)| !value.is_empty());
    let tags: Vec<String> = tags
        .map(|(name, value)| format!("{name}={}", escaped(value)))
        .collect();
    let tags = tags.join(",");
    let line = |(repeat, fields): (u32, Vec<String>)| {
        let began = points.began_ns(cell.planned, repeat);
        format!(
            // Points with equal tags and time replace each other, so the repeat is a tag.
            "cipherbench,{tags},repeat={repeat} {} {began}\n",
            fields.join(",")
        )
    };
    fields.into_iter().map(line).collect()
}

/// The key of a quantity; for latency under a load, with the load.
fn key(reading: &Reading) -> String {
    let key = reading.quantity.key();
    match (reading.quantity, reading.load_percent) {
        (Quantity::LatencyP50 | Quantity::LatencyP99, Some(percent)) => {
            format!("{key}_at_{percent}_percent")
        }
        _ => key.to_owned(),
    }
}

/// Escapes commas, equals signs and spaces of a tag value. Line breaks cannot be escaped, and a
/// trailing backslash would escape the next character: an escaped space replaces the former and
/// follows the latter.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            ',' | '=' | ' ' => {
                text.push('\\');
                text.push(c);
            }
            c if c.is_control() => text.push_str("\\ "),
            c => text.push(c),
        }
    }
    if text.ends_with('\\') {
        // A backslash at the end would escape the comma after the tag.
        text.push_str("\\ ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_separates_tags_is_escaped() {
        assert_eq!(escaped("tcp/mtu=1500/a, b"), "tcp/mtu\\=1500/a\\,\\ b");
        assert_eq!(escaped("line\nbreak"), "line\\ break");
        // A backslash escapes only the next character, which must not exist here.
        assert_eq!(escaped("back\\"), "back\\\\ ");
    }
}

//! Cells that hold several figures: `533/356`, `10/10/6`.

use super::markup::Text;
use super::{heading, markup};
use crate::figure::prefix;
use crate::source::Source;
use crate::unit::{Quantity, Unit};
use std::ops::Range;
use yaml::Place;

/// Returns the figures of a cell, each with its unit, or else with that of the last one that has
/// one; `None` for one figure or a text.
pub(super) fn parts(text: &str) -> Option<Vec<String>> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for part in at_slashes(text.trim()) {
        let part = part.trim();
        // A dash alone is a missing part: `533/-`. A sign before digits is refused, as rates are
        // not negative.
        if let Some(unit) = part
            .strip_prefix('-')
            .filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            found.push(("-", unit.trim()));
            continue;
        }
        let (number, unit) = part.split_at(number_end(part)?);
        found.push((number.trim(), unit.trim()));
    }
    let of_last = found.iter().rev().map(|(_, unit)| *unit);
    let unit = of_last
        .into_iter()
        .find(|unit| !unit.is_empty())
        .unwrap_or_default();
    let is_unit =
        |text: &str| text.is_empty() || prefix(text).is_some() || Unit::parse(text).is_some();
    let quantity = |text: &str| Unit::parse(text).map(|unit| unit.quantity);
    let is_alike =
        |other: &str| is_unit(other) && (other.is_empty() || quantity(other) == quantity(unit));
    // `-/-` is an empty cell and not two figures.
    let has_figure = found.iter().any(|(part, _)| *part != "-");
    if found.len() < 2 || !has_figure || !found.iter().all(|(_, own)| is_alike(own)) {
        return None;
    }
    let with_unit = |(part, own): (&str, &str)| match (part, own) {
        ("-", _) => part.to_owned(),
        (_, "") => format!("{part} {unit}").trim_end().to_owned(),
        _ => format!("{part} {own}"),
    };
    Some(found.into_iter().map(with_unit).collect())
}

/// The parts of a text between slashes before a figure or a dash, not those of units.
fn at_slashes(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices('/') {
        let next = text[at + 1..].trim_start();
        if next.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            parts.push(&text[from..at]);
            from = at + 1;
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Whether a cell holds a bit rate and a frame rate, each with its unit: `1.2 Gbit/s / 1780 kpps`,
/// `9.4 Gbit/s (770 kpps)`.
pub(super) fn has_two_units(text: &str) -> bool {
    let quantity = |part: &str| {
        let part = part.trim().trim_end_matches(')').trim();
        let unit = Unit::parse(part[number_end(part)?..].trim())?;
        matches!(unit.quantity, Quantity::BitRate | Quantity::FrameRate).then_some(unit.quantity)
    };
    let mut marks = text.match_indices(['/', '(', ';', ',']);
    marks.any(|(at, _)| {
        let both = quantity(&text[..at]).zip(quantity(&text[at + 1..]));
        both.is_some_and(|(one, other)| one != other)
    })
}

/// The end of a number with its marks and a sign before it.
fn number_end(text: &str) -> Option<usize> {
    let sign = text.len()
        - text
            .trim_start_matches(['~', '<', '>', '≥', '≤', '≈'])
            .len();
    let is_inside = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'');
    let digits = text[sign..]
        .find(|c| !is_inside(c))
        .unwrap_or(text.len() - sign);
    let starts = text[sign..].starts_with(|c: char| c.is_ascii_digit());
    starts.then_some(sign + digits)
}

/// Advice on naming the parts.
const HELP: &str = "name them in the heading or the name of the row, as in `rate up/down`, or in the table's keys: \
                    `parts = [\"up\", \"down\"]`";

/// Reports a cell of several figures without names, and returns the first of them.
pub(super) fn refuse(source: &Source, (text, place): &Text) -> Option<String> {
    let parts = parts(text)?;
    // Without the text of the cell, so that equal mistakes of several cells are printed once.
    let what = format!("a cell holds {} figures without names", parts.len());
    source.mistake(place, what, HELP);
    parts.into_iter().find(|part| part != "-")
}

/// Reports a cell of another number of figures than the first one of its column.
pub(super) fn refuse_count(source: &Source, place: &Place, column: &str, own: usize, first: usize) {
    let what =
        format!("a cell in column `{column}` holds {own} figures, and the first one {first}");
    source.cell_mistake(place, what, HELP);
}

/// Splits each row that names the parts of its cells: `Firewall (1518/512/64 byte) | 10/9/6 Gbps`.
/// A heading that names them comes first. Other cells stay in a row of the whole name.
pub(super) fn split_rows(heading: &[Text], lines: Vec<Vec<Text>>) -> Vec<Vec<Text>> {
    lines
        .into_iter()
        .flat_map(|line| split_row(heading, line))
        .collect()
}

fn split_row(heading: &[Text], line: Vec<Text>) -> Vec<Vec<Text>> {
    let cells: Vec<_> = line.iter().map(|(text, _)| markup::cell(text)).collect();
    let of_row: Vec<Option<Vec<String>>> = cells
        .iter()
        .zip(heading)
        .enumerate()
        .map(|(at, (cell, (column, _)))| {
            let parts = parts(&cell.text).filter(|_| at > 0)?;
            let by_column = named(&markup::name(column).text, parts.len());
            by_column.is_none().then_some(parts)
        })
        .collect();
    let Some(first) = of_row.iter().position(Option::is_some) else {
        return vec![line];
    };
    let count = of_row[first].as_ref().map_or(0, Vec::len);
    // The name may go on in columns of text before the figures.
    let label =
        (0..first).find_map(|at| Some((at, named(&markup::name(&line[at].0).text, count)?)));
    let Some((label, names)) = label else {
        return vec![line];
    };
    let is_split = |at: usize| {
        of_row[at]
            .as_ref()
            .is_some_and(|parts| parts.len() == count)
    };
    let is_whole = |at: usize| at > first && !is_split(at) && !markup::is_missing(&cells[at].text);
    let mut rows = Vec::new();
    if (0..line.len()).any(is_whole) {
        let whole = line.iter().enumerate().map(|(at, (text, place))| {
            let text = if is_split(at) {
                String::new()
            } else {
                text.clone()
            };
            (text, place.clone())
        });
        rows.push(whole.collect());
    }
    for (number, name) in names.into_iter().enumerate() {
        let part = line.iter().enumerate().map(|(at, (text, place))| {
            let text = match &of_row[at] {
                _ if at == label => name.clone(),
                _ if at < first => text.clone(),
                // A footnote counts once, in the first part.
                Some(parts) if is_split(at) && number == 0 => {
                    format!("{}{}", parts[number], cells[at].marks.concat())
                }
                Some(parts) if is_split(at) => parts[number].clone(),
                _ => String::new(),
            };
            (text, place.clone())
        });
        rows.push(part.collect());
    }
    rows
}

/// Names between slashes in a heading.
struct Group<'a> {
    names: Vec<&'a str>,
    /// The bytes of the names.
    range: Range<usize>,
    /// The unit of sizes behind the last name.
    size_unit: &'a str,
}

/// Returns the names of as many parts in a heading, each with the other words and the unit:
/// `firewall 1518/512/64`, `rate up/down [Mbit/s]`, `Latency (min/avg/max) [µs]`.
pub(super) fn named(heading: &str, count: usize) -> Option<Vec<String>> {
    let (bare, unit) = heading::with_unit(heading);
    // An ending as `_mbps` is part of its word, and gone in `bare`.
    let text = if heading.contains(['[', '(']) {
        heading
    } else {
        bare
    };
    let fits = |group: &Group<'_>| group.names.len() == count;
    let group = groups(text).into_iter().rev().find(fits)?;
    let (mut before, mut after) = (
        text[..group.range.start].to_owned(),
        text[group.range.end..].to_owned(),
    );
    // The brackets around the names go, and stay around other words.
    if let Some(open) = before
        .rfind(['(', '['])
        .filter(|open| !before[*open..].contains([')', ']']))
    {
        before.remove(open);
        if let Some(close) = after.find([')', ']']) {
            after.replace_range(close..=close, " ");
        }
    }
    let its_unit = unit
        .as_ref()
        .map(|unit| unit.text.as_str())
        .unwrap_or_default();
    let without_unit = |text: String| {
        let text = text
            .replace(&format!("[{its_unit}]"), "")
            .replace(&format!("({its_unit})"), "");
        let text = text.trim_matches([' ', ',', ';', ':']);
        let bare = text.strip_suffix(its_unit).filter(|_| !its_unit.is_empty());
        let bare = bare.map(|bare| bare.trim_end_matches([' ', ',', ';']));
        let bare = bare.map(|bare| {
            if bare == "in" {
                ""
            } else {
                bare.trim_end_matches(" in")
            }
        });
        bare.unwrap_or(text).to_owned()
    };
    let (before, after) = (without_unit(before), without_unit(after));
    let unit = unit
        .map(|unit| format!("[{}]", unit.text))
        .unwrap_or_default();
    let full = |name: &&str| {
        let name = format!("{name} {}", group.size_unit);
        let words = [before.as_str(), name.trim(), after.as_str(), unit.as_str()];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" ")
    };
    Some(group.names.iter().map(full).collect())
}

const SIZE_UNITS: [&str; 7] = ["B", "b", "byte", "bytes", "Byte", "Bytes", "octets"];

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// All names between slashes, but for units.
fn groups(text: &str) -> Vec<Group<'_>> {
    let is_end = |c: char| c.is_whitespace() || "()[],;:|".contains(c);
    let slashes: Vec<usize> = text.match_indices('/').map(|(at, _)| at).collect();
    let mut found: Vec<Group<'_>> = Vec::new();
    let mut last_slash = None;
    for (number, at) in slashes.iter().enumerate() {
        let next = slashes.get(number + 1).copied().unwrap_or(text.len());
        let right = &text[at + 1..next];
        let lead = right.len() - right.trim_start().len();
        let length = right[lead..].find(is_end).unwrap_or(right.len() - lead);
        let mut end = at + 1 + lead + length;
        let mut name = &text[at + 1 + lead..end];
        let mut size_unit = "";
        let behind = &text[end..next];
        let word = behind.trim_start().split(is_end).next().unwrap_or_default();
        if is_digits(name) && SIZE_UNITS.contains(&word) {
            size_unit = word;
            end += behind.len() - behind.trim_start().len() + word.len();
        } else if let Some(bare) = SIZE_UNITS.iter().find_map(|unit| name.strip_suffix(unit))
            && is_digits(bare)
        {
            size_unit = &name[bare.len()..];
            name = bare;
        }
        // The name before belongs to a group if nothing else is between the two slashes.
        let goes_on = found
            .last_mut()
            .filter(|group| last_slash.is_some() && text[group.range.end..*at].trim().is_empty());
        match goes_on {
            Some(group) => {
                group.names.push(name);
                group.range.end = end;
                group.size_unit = size_unit;
            }
            None => {
                let left = text[..*at].trim_end();
                let mut start = left.rfind(is_end).map_or(0, |at| {
                    at + left[at..].chars().next().map_or(1, char::len_utf8)
                });
                let mut first = &left[start..];
                if SIZE_UNITS.contains(&first) {
                    // `1518 B / 64 B`.
                    let bare = left[..start].trim_end();
                    let from = bare.rfind(is_end).map_or(0, |at| {
                        at + bare[at..].chars().next().map_or(1, char::len_utf8)
                    });
                    if is_digits(&bare[from..]) {
                        (start, first) = (from, &bare[from..]);
                    }
                }
                found.push(Group {
                    names: vec![first, name],
                    range: start..end,
                    size_unit,
                });
            }
        }
        last_slash = Some(*at);
    }
    found.retain(|group| {
        let is_named = group.names.iter().all(|name| !name.is_empty());
        let is_second = group
            .names
            .last()
            .is_some_and(|name| ["s", "sec", "second"].contains(name));
        is_named && !is_second
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_figures_of_a_cell_are_split() {
        let of = |text| parts(text).map(|it| it.join(" | "));
        assert_eq!(of("533/356"), Some("533 | 356".to_owned()));
        assert_eq!(
            of("10/10/6 Gbps"),
            Some("10 Gbps | 10 Gbps | 6 Gbps".to_owned())
        );
        assert_eq!(
            of("10 Gbit/s / 900 Mbit/s / -"),
            Some("10 Gbit/s | 900 Mbit/s | -".to_owned())
        );
        assert_eq!(of("1.2 Gbit/s / 1780 kpps"), None);
        assert_eq!(of("1,2 / 3,4"), Some("1,2 | 3,4".to_owned()));
        assert_eq!(of("533/- Mbit/s"), Some("533 Mbit/s | -".to_owned()));
        for text in ["940", "940 Mbit/s", "n/a", "-", "a/b", "10/fast"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn headings_name_the_parts() {
        let of = |text: &str, count| named(text, count).map(|it| it.join(" | "));
        for (text, parts) in [
            (
                "firewall 1518/512/64",
                "firewall 1518 | firewall 512 | firewall 64",
            ),
            (
                "rate up/down [Mbit/s]",
                "rate up [Mbit/s] | rate down [Mbit/s]",
            ),
            (
                "rate up/down, Mbit/s",
                "rate up [Mbit/s] | rate down [Mbit/s]",
            ),
            (
                "rate [Mbit/s] (up/down)",
                "rate up [Mbit/s] | rate down [Mbit/s]",
            ),
            ("(up/down) Mbit/s", "up [Mbit/s] | down [Mbit/s]"),
            (
                "rate_up/rate_down_mbps",
                "rate_up [Mbit/s] | rate_down [Mbit/s]",
            ),
            ("latency (min/max)", "latency min | latency max"),
            ("64/512/1518", "64 | 512 | 1518"),
            ("1518/64 B [Gbit/s]", "1518 B [Gbit/s] | 64 B [Gbit/s]"),
            ("1518 B / 64 B [Gbit/s]", "1518 B [Gbit/s] | 64 B [Gbit/s]"),
            (
                "Latency (min/avg/max) [µs]",
                "Latency min [µs] | Latency avg [µs] | Latency max [µs]",
            ),
            (
                "Latency (min/avg/max, µs)",
                "Latency min [µs] | Latency avg [µs] | Latency max [µs]",
            ),
            (
                "Latency (min/avg/max in µs)",
                "Latency min [µs] | Latency avg [µs] | Latency max [µs]",
            ),
            (
                "Latency min / avg / max (µs)",
                "Latency min [µs] | Latency avg [µs] | Latency max [µs]",
            ),
            (
                "Latency [µs] min/avg/max",
                "Latency min [µs] | Latency avg [µs] | Latency max [µs]",
            ),
            (
                "min/avg/max latency in µs",
                "min latency [µs] | avg latency [µs] | max latency [µs]",
            ),
            (
                "Firewall 1518/512/64 byte UDP",
                "Firewall 1518 byte UDP | Firewall 512 byte UDP | Firewall 64 byte UDP",
            ),
            (
                "Firewall (1518/512/64 byte) [Gbps]",
                "Firewall 1518 byte [Gbps] | Firewall 512 byte [Gbps] | Firewall 64 byte [Gbps]",
            ),
            (
                "IPS/NGFW throughput (1518/512/64B UDP)",
                "IPS/NGFW throughput 1518 B UDP | IPS/NGFW throughput 512 B UDP | IPS/NGFW throughput 64 B UDP",
            ),
        ] {
            let count = parts.split(" | ").count();
            assert_eq!(of(text, count).as_deref(), Some(parts), "{text}");
            assert_eq!(of(text, count + 1), None, "{text}");
        }
        assert_eq!(of("D2E", 2), None);
        assert_eq!(of("rate [Mbit/s]", 2), None);
        assert_eq!(of("rate in frames/s", 2), None);
    }
}

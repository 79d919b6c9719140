//! Cells that hold several figures: `533/356`, `10/10/6`.

use super::heading;
use crate::unit::{Quantity, Unit};

/// Returns the figures of a cell, each with the unit after the last one; `None` for one figure or a
/// text.
pub(super) fn parts(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    loop {
        let part = rest
            .strip_prefix('-')
            // A dash alone is a missing part: `533/-`. A sign before digits is refused below, as
            // rates are not negative.
            .filter(|it| !it.starts_with(|c: char| c.is_ascii_digit()));
        let length = match part {
            Some(_) => 1,
            None => number_end(rest)?,
        };
        found.push(rest[..length].trim().to_owned());
        rest = rest[length..].trim_start();
        let next = rest.strip_prefix('/').map(str::trim_start);
        match next.filter(|next| next.starts_with(|c: char| c.is_ascii_digit() || c == '-')) {
            Some(next) => rest = next,
            None => break,
        }
    }
    let is_unit = rest.is_empty() || Unit::parse(rest).is_some();
    // `-/-` is an empty cell and not two figures.
    let has_figure = found.iter().any(|part| part != "-");
    if found.len() < 2 || !is_unit || !has_figure {
        return None;
    }
    let with_unit = |part: String| match part.as_str() {
        "-" => part,
        _ => format!("{part} {rest}").trim_end().to_owned(),
    };
    Some(found.into_iter().map(with_unit).collect())
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
pub(super) const HELP: &str = "name them in the heading, as in `rate up/down`, or in the table's keys: `parts = [\"up\", \"down\"]`";

/// Returns the names of the parts in a heading, each with the words before the parts and the unit
/// after them: `firewall 1518/512/64`, `rate up/down [Mbit/s]`.
pub(super) fn named(heading: &str) -> Option<Vec<String>> {
    let (bare, unit) = heading::with_unit(heading);
    let inside = heading.split_once(['(', '[']);
    let in_brackets = inside.filter(|_| unit.is_none()).map(|(before, rest)| {
        let inside = rest.split([')', ']']).next().unwrap_or_default();
        (before.trim(), inside)
    });
    // `1518/512/64 B`: the unit is of each size.
    let of_sizes = [" B", " byte", " bytes"]
        .iter()
        .find_map(|unit| Some((bare.strip_suffix(unit)?, *unit)));
    let (bare, size_unit) = of_sizes
        .filter(|(bare, _)| bare.ends_with(|c: char| c.is_ascii_digit()))
        .unwrap_or((bare, ""));
    let (stem, names) = match in_brackets {
        Some(found) => found,
        None => bare.rsplit_once(' ').unwrap_or(("", bare)),
    };
    let names: Vec<&str> = names.split('/').map(str::trim).collect();
    if names.len() < 2 || names.iter().any(|name| name.is_empty()) {
        return None;
    }
    let unit = unit
        .map(|unit| format!(" [{}]", unit.text))
        .unwrap_or_default();
    let full = |name: &&str| format!("{stem} {name}{size_unit}{unit}").trim().to_owned();
    Some(names.iter().map(full).collect())
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
        assert_eq!(of("1,2 / 3,4"), Some("1,2 | 3,4".to_owned()));
        assert_eq!(of("533/- Mbit/s"), Some("533 Mbit/s | -".to_owned()));
        for text in ["940", "940 Mbit/s", "n/a", "-", "a/b", "10/fast"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn headings_name_the_parts() {
        let of = |text| named(text).map(|it| it.join(" | "));
        assert_eq!(
            of("firewall 1518/512/64"),
            Some("firewall 1518 | firewall 512 | firewall 64".to_owned())
        );
        assert_eq!(
            of("rate up/down [Mbit/s]"),
            Some("rate up [Mbit/s] | rate down [Mbit/s]".to_owned())
        );
        assert_eq!(
            of("latency (min/max)"),
            Some("latency min | latency max".to_owned())
        );
        assert_eq!(of("64/512/1518"), Some("64 | 512 | 1518".to_owned()));
        assert_eq!(
            of("1518/64 B [Gbit/s]"),
            Some("1518 B [Gbit/s] | 64 B [Gbit/s]".to_owned())
        );
        assert_eq!(of("D2E"), None);
        assert_eq!(of("rate [Mbit/s]"), None);
    }
}

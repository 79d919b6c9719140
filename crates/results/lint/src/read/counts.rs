//! Rows and columns that count something, such as sessions or ports, or that are in watts: their
//! figures are no rates, and never take the unit of the table.

use super::columns;
use super::markup::Text;
use super::{heading, markup};
use crate::document::Remark;
use crate::figure::Figure;
use crate::marks::{Decimal, plain};
use crate::unit::Unit;
use yaml::Place;

/// Nouns of things that a data sheet counts.
const COUNTED: [&str; 52] = [
    "sessions",
    "tunnels",
    "connections",
    "policies",
    "users",
    "ports",
    "interfaces",
    "vlans",
    "routes",
    "peers",
    "clients",
    "servers",
    "hosts",
    "sas",
    "associations",
    "rules",
    "flows",
    "addresses",
    "entries",
    "vrfs",
    "vdoms",
    "contexts",
    "domains",
    "licences",
    "licenses",
    "cores",
    "threads",
    "cpus",
    "slots",
    "modules",
    "zones",
    "neighbors",
    "neighbours",
    "endpoints",
    "gateways",
    "devices",
    "sites",
    "networks",
    "subnets",
    "groups",
    "certificates",
    "keys",
    "channels",
    "streams",
    "instances",
    "tokens",
    "partitions",
    "sitzungen",
    "verbindungen",
    "benutzer",
    "schnittstellen",
    "richtlinien",
];
/// Words that make a noun in the singular a count: `concurrent session`.
const QUALIFIERS: [&str; 6] = [
    "max",
    "maximum",
    "maximal",
    "concurrent",
    "simultaneous",
    "supported",
];
/// Words behind a noun that make it a count: `session limit`. A tunnel's capacity may be a rate.
const HEADS: [&str; 3] = ["count", "limit", "number"];
const CAPACITIES: [&str; 6] = ["session", "connection", "user", "policy", "route", "vlan"];
/// Beginnings that make any noun a count.
const BEGINNINGS: [&str; 6] = [
    "number of ",
    "max number of ",
    "maximum number of ",
    "no. of ",
    "# of ",
    "anzahl ",
];
/// Physical quantities and money, in the name of a row or column.
const PHYSICAL: [&str; 24] = [
    "power",
    "consumption",
    "watt",
    "watts",
    "weight",
    "temperature",
    "humidity",
    "noise",
    "height",
    "width",
    "depth",
    "dimensions",
    "voltage",
    "current",
    "heat",
    "mtbf",
    "price",
    "cost",
    "memory",
    "ram",
    "storage",
    "leistungsaufnahme",
    "gewicht",
    "temperatur",
];
/// Their units, behind the name in brackets.
const PHYSICAL_UNITS: [&str; 18] = [
    "w", "kw", "va", "v", "a", "kg", "g", "lb", "lbs", "mm", "cm", "°c", "°f", "db", "db(a",
    "btu/h", "eur", "usd",
];
/// Words of quantities that a count only is a setting of: `throughput, all ports`.
const QUANTITIES: [&str; 12] = [
    "throughput",
    "rate",
    "rates",
    "bandwidth",
    "speed",
    "goodput",
    "latency",
    "delay",
    "jitter",
    "loss",
    "performance",
    "durchsatz",
];
/// Words before a noun that make it a setting: rates of `both ports`.
const SETTINGS: [&str; 15] = [
    "all", "both", "one", "two", "three", "four", "eight", "many", "few", "several", "multiple",
    "single", "more", "each", "bonded",
];
/// Words after which a name states conditions.
const CONDITIONS: [&str; 12] = [
    "per", "with", "at", "in", "on", "for", "over", "via", "through", "of", "by", "to",
];
/// Words for the rate of a link before ports: `10 GbE ports` are not ten.
const LINKS: [&str; 8] = ["g", "ge", "gbe", "gig", "gbit", "gigabit", "mbit", "m"];

/// What of a table is left out.
pub(super) const ROW: &str = "row";
pub(super) const COLUMN: &str = "column";

/// The kind of a figure that is no rate of bits or frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number of things.
    Count,
    /// Things per second.
    SetUps,
    /// Watts, kilograms, degrees.
    Physical,
}

/// The kind that the name of a row or column states; `None` for anything else, also with a unit.
fn kind(what: &str, name: &str) -> Option<Kind> {
    let lower = name.to_lowercase();
    // A row states its unit in brackets alone.
    let has_unit =
        heading::of_row(name).is_some() || (what == COLUMN && heading::with_unit(name).1.is_some());
    let words: Vec<&str> = words(&lower).collect();
    if has_unit || words.iter().any(|word| QUANTITIES.contains(word)) {
        return None;
    }
    let units = lower.split(['[', '(']).skip(1);
    let mut units = units.map(|unit| unit.trim_end_matches([']', ')', ' ']));
    if words.iter().any(|word| PHYSICAL.contains(word))
        || units.any(|unit| PHYSICAL_UNITS.contains(&unit))
    {
        return Some(Kind::Physical);
    }
    let per_second = ["/s", " per second", " per sec"];
    let is_set_ups = per_second.iter().any(|end| {
        let mut ends = lower.match_indices(end);
        ends.any(|(at, _)| {
            let before = lower[..at].rsplit(|c: char| !c.is_alphanumeric()).next();
            before.is_some_and(is_noun)
        })
    });
    if is_set_ups {
        return Some(Kind::SetUps);
    }
    if BEGINNINGS
        .iter()
        .any(|it| lower.trim_start().starts_with(it))
    {
        return Some(Kind::Count);
    }
    let mut segments = lower.split([',', ';', ':', '(', '[', ')', ']']);
    segments.any(is_counted).then_some(Kind::Count)
}

/// Whether the phrase names things, and no number of them: `concurrent sessions`, `10 GbE ports`.
fn is_counted(phrase: &str) -> bool {
    let words: Vec<&str> = words(phrase).collect();
    let end = words.iter().position(|word| CONDITIONS.contains(word));
    let words = &words[..end.unwrap_or(words.len())];
    let is_number = |word: &str| word.trim_end_matches('x').parse::<f64>().is_ok();
    let is_setting = words.iter().enumerate().any(|(at, word)| {
        let is_link = words.get(at + 1).is_some_and(|next| LINKS.contains(next));
        SETTINGS.contains(word) || (is_number(word) && !is_link)
    });
    let Some((last, before)) = words.split_last().filter(|_| !is_setting) else {
        return false;
    };
    if HEADS.contains(last) {
        return before.last().is_some_and(|word| is_noun(word));
    }
    if *last == "capacity" {
        let noun = before.last().copied().unwrap_or_default();
        return CAPACITIES.contains(&noun.trim_end_matches('s'));
    }
    let is_qualified = before.iter().any(|word| QUALIFIERS.contains(word));
    COUNTED.contains(last) || (is_qualified && is_noun(last))
}

/// Whether a word is a counted thing, in plural or singular.
fn is_noun(word: &str) -> bool {
    let plurals = [format!("{word}s"), format!("{word}es")];
    let of_y = word.strip_suffix('y').map(|stem| format!("{stem}ies"));
    let is_in = |word: &str| COUNTED.contains(&word);
    is_in(word) || plurals.iter().chain(&of_y).any(|plural| is_in(plural))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

/// Whether a cell's text ends with a unit.
pub(super) fn has_own_unit(text: &str) -> bool {
    let after = text.rsplit(|c: char| c.is_ascii_digit()).next();
    let is_unit = after.is_some_and(|rest| rest.len() < text.len() && Unit::parse(rest).is_some());
    let read = || Figure::parse(&plain(text, Decimal::Point), &Place::whole_file(""));
    is_unit || read().is_ok_and(|figure| figure.unit.is_some())
}

/// Returns the remark on a row or column that is left out, if its name states a count.
pub(super) fn remark(what: &str, name: &str, table: &str, place: &Place) -> Option<Remark> {
    let why = match kind(what, name)? {
        Kind::Count => "is a count and no rate",
        Kind::SetUps => "counts events per second, and no bits or frames",
        Kind::Physical => "is a physical quantity and no rate",
    };
    Some(Remark {
        place: place.clone(),
        what: format!("{what} `{name}` of {table} {why}: it is left out"),
    })
}

/// Takes rows and columns of counts out of a table, with a remark for each. One with a unit in a
/// cell stays, as does a column that has a use.
pub(super) fn take(
    heading: &mut Vec<Text>,
    lines: &mut Vec<Vec<Text>>,
    table: &str,
    is_used: impl Fn(&str) -> bool,
) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let names: Vec<String> = heading
        .iter()
        .map(|(text, _)| markup::name(text).text)
        .collect();
    let has_sizes = names
        .iter()
        .skip(1)
        .any(|name| heading::size(name).is_some());
    lines.retain(|line| {
        let cells: Vec<String> = line
            .iter()
            .map(|(text, _)| markup::cell(text).text)
            .collect();
        let is_figure = |text: &String| text.starts_with(|c: char| c.is_ascii_digit());
        let figures_at = cells
            .iter()
            .skip(1)
            .position(is_figure)
            .map_or(1, |at| at + 1);
        // Columns of text before the figures belong to the name, unless they describe a device.
        let labels = if has_sizes { 0..1 } else { 0..figures_at };
        let mut labels = labels.filter(|at| *at == 0 || kind(COLUMN, &names[*at]).is_none());
        let found = labels.find_map(|at| {
            let (text, place) = &line[at];
            remark(ROW, &markup::name(text).text, table, place)
        });
        let is_kept = found.is_none() || cells[1..].iter().any(|cell| has_own_unit(cell));
        if !is_kept {
            remarks.extend(found);
        }
        is_kept
    });
    // From the end, so that the indices of the columns before stay valid.
    for at in (1..heading.len()).rev() {
        let cells: Vec<String> = lines
            .iter()
            .map(|line| markup::cell(&line[at].0).text)
            .collect();
        let is_number = |text: &String| {
            let read = columns::figure(text, Decimal::Point, &heading[at].1);
            !markup::is_missing(text) && read.is_some_and(|unit| unit.is_none())
        };
        if is_used(&names[at])
            || cells.iter().any(|cell| has_own_unit(cell))
            || !cells.iter().any(is_number)
        {
            continue;
        }
        if let Some(remark) = remark(COLUMN, &names[at], table, &heading[at].1) {
            remarks.push(remark);
            heading.remove(at);
            for line in &mut *lines {
                line.remove(at);
            }
        }
    }
    remarks.sort_by_key(|remark| remark.place.spot.as_ref().map(|it| (it.line, it.column)));
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_counts_are_no_settings_and_no_rates() {
        for name in [
            "Sessions",
            "Concurrent sessions",
            "Max. concurrent session",
            "IPsec VPN tunnels",
            "Tunnels (IPsec)",
            "Firewall, Sessions",
            "Policies",
            "Users",
            "10 GbE ports",
            "10GE ports",
            "Ports (10 Gbit/s)",
            "Number of frobnicators",
            "VLANs",
            "Static routes",
            "MAC addresses",
            "Session limit",
            "Session capacity",
            "Port count",
            "Users with 1 Mbit/s each",
        ] {
            assert!(kind(COLUMN, name) == Some(Kind::Count), "{name}");
        }
        for name in [
            "New sessions/s",
            "Connections per second",
            "IPsec tunnels/sec",
        ] {
            assert!(kind(COLUMN, name) == Some(Kind::SetUps), "{name}");
        }
        for name in [
            "8 tunnels",
            "8 IPsec tunnels",
            "1,000 users",
            "all ports",
            "both ports",
            "Tunnel",
            "VLAN",
            "tunnel capacity",
            "Tunnel throughput",
            "Throughput, all ports",
            "Throughput with 8 tunnels",
            "Sessions [kpps]",
            "Connections/s",
            "Gateway",
            "CG-200",
            "1518",
            "",
        ] {
            assert!(kind(COLUMN, name).is_none(), "{name}");
        }
        for name in [
            "Power consumption [W]",
            "Max. power",
            "Weight (kg)",
            "Noise [dB(A)]",
        ] {
            assert!(kind(ROW, name) == Some(Kind::Physical), "{name}");
        }
        assert!(kind(ROW, "Connections/s") == Some(Kind::SetUps));
        assert!(has_own_unit("1,234 Mbit/s") && !has_own_unit("10,000") && !has_own_unit("3 Mio"));
    }
}

//! Compares percentiles, extremes and means of one quantity with each other.

use crate::document::{Cell, Table};
use crate::figure::Figure;
use crate::finding::{Finding, Rule};
use crate::unit::Quantity;

/// A statistic by its name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Statistic {
    /// The value that this share of all does not exceed: 0 is the minimum, 1 the maximum.
    Share(f64),
    /// The arithmetic mean: only between minimum and maximum.
    Mean,
}

/// Words in names, and their statistics.
const WORDS: [(&str, Statistic); 16] = [
    ("min", Statistic::Share(0.0)),
    ("minimum", Statistic::Share(0.0)),
    ("least", Statistic::Share(0.0)),
    ("lowest", Statistic::Share(0.0)),
    ("smallest", Statistic::Share(0.0)),
    ("median", Statistic::Share(0.5)),
    ("med", Statistic::Share(0.5)),
    ("max", Statistic::Share(1.0)),
    ("maximum", Statistic::Share(1.0)),
    ("most", Statistic::Share(1.0)),
    ("highest", Statistic::Share(1.0)),
    ("largest", Statistic::Share(1.0)),
    ("peak", Statistic::Share(1.0)),
    ("avg", Statistic::Mean),
    ("average", Statistic::Mean),
    ("mean", Statistic::Mean),
];
/// Words that are left out of the name of the quantity.
const UNITS: [&str; 8] = ["ns", "us", "µs", "ms", "s", "sec", "percentile", "pct"];

/// The lowest percentile of the form `p50`.
const SHORT_MIN: f64 = 10.0;

/// Returns the statistic that a name states, and the name of the quantity without it: `p95_ms`,
/// `max latency`, `99th percentile`.
pub(crate) fn named(name: &str) -> Option<(Statistic, String)> {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '.');
    // `1st run` is none.
    let has_ordinals = lower.contains("percentile") || lower.contains("pct");
    let mut found = None;
    let mut rest: Vec<&str> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        match statistic(word, has_ordinals) {
            // Two statistics in one name, as `max p95`, are of another set of values.
            Some(_) if found.is_some() => return None,
            Some(statistic) => found = Some(statistic),
            None if UNITS.contains(&word) => {}
            None => rest.push(word),
        }
    }
    Some((found?, rest.join(" ")))
}

fn statistic(word: &str, has_ordinals: bool) -> Option<Statistic> {
    let known = WORDS.iter().find(|(name, _)| *name == word);
    if let Some((_, statistic)) = known {
        return Some(*statistic);
    }
    let endings = ["th", "st", "nd", "rd"];
    let ordinal = endings.iter().find_map(|end| word.strip_suffix(end));
    let short = word.strip_prefix('p');
    let percent = short.or(ordinal.filter(|_| has_ordinals))?;
    // `f64` also parses `inf` and `nan`.
    let is_number = percent.starts_with(|c: char| c.is_ascii_digit());
    let value: f64 = percent.parse().ok().filter(|_| is_number)?;
    // `p1` is a port, or a core.
    if short.is_some() && value < SHORT_MIN {
        return None;
    }
    // `p999` is 99.9 %.
    let digits = percent.len().max(2) as i32;
    let share = if percent.contains('.') || value <= 100.0 {
        value / 100.0
    } else {
        value / 10f64.powi(digits)
    };
    (0.0..=1.0)
        .contains(&share)
        .then_some(Statistic::Share(share))
}

/// A statistic, the name of its quantity, and its cell.
type Named<'a> = (Statistic, String, Cell<'a>);

/// Statistics in columns of one row, or in rows of one column, that are out of order.
pub(super) fn out_of_order(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in &table.rows {
        let named = table.cells_of(row).filter_map(|cell| {
            let (statistic, rest) = named(&cell.column.name)?;
            Some((statistic, rest, cell))
        });
        findings.extend(compared(&named.collect::<Vec<_>>()));
    }
    let of_rows = table.rows.iter().filter(|row| named(&row.name).is_some());
    if of_rows.count() < 2 {
        return findings;
    }
    for column in &table.columns {
        let cells = table
            .cells()
            .filter(|cell| std::ptr::eq(cell.column, column));
        let named = cells.filter_map(|cell| {
            let (statistic, rest) = named(&cell.row.name)?;
            Some((statistic, rest, cell))
        });
        findings.extend(compared(&named.collect::<Vec<_>>()));
    }
    findings
}

/// Compares each pair of neighbours, the ends, and the mean between them.
fn compared(cells: &[Named<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    for (_, quantity, _) in cells {
        if done.contains(&quantity.as_str()) {
            continue;
        }
        done.push(quantity);
        let same = || cells.iter().filter(|(_, other, _)| other == quantity);
        let mut shares: Vec<(f64, Cell<'_>)> = same()
            .filter_map(|(statistic, _, cell)| match statistic {
                Statistic::Share(share) if is_comparable(*share, cell) => Some((*share, *cell)),
                _ => None,
            })
            .collect();
        shares.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut pairs: Vec<(Cell<'_>, Cell<'_>)> = shares
            .windows(2)
            .filter(|pair| pair[0].0 < pair[1].0)
            .map(|pair| (pair[0].1, pair[1].1))
            .collect();
        let end = |share: f64| shares.iter().find(|it| it.0.to_bits() == share.to_bits());
        let (least, most) = (end(0.0), end(1.0));
        if let (Some(least), Some(most)) = (least, most)
            && shares.len() > 2
        {
            pairs.push((least.1, most.1));
        }
        for (_, _, mean) in same().filter(|(statistic, ..)| *statistic == Statistic::Mean) {
            pairs.extend(least.map(|least| (least.1, *mean)));
            pairs.extend(most.map(|most| (*mean, most.1)));
        }
        findings.extend(pairs.iter().filter_map(|(low, high)| finding(low, high)));
    }
    findings
}

/// Percentiles of rates may count from above: "reached for 95 % of the time".
fn is_comparable(share: f64, cell: &Cell<'_>) -> bool {
    let is_end = [0.0, 0.5, 1.0]
        .iter()
        .any(|end: &f64| end.to_bits() == share.to_bits());
    let is_time = cell
        .unit()
        .is_some_and(|unit| unit.quantity == Quantity::Time);
    is_end || is_time
}

/// A statistic that must not be above another one, and is.
fn finding(low: &Cell<'_>, high: &Cell<'_>) -> Option<Finding> {
    let quantity = |cell: &Cell<'_>| cell.unit().map(|unit| unit.quantity);
    if quantity(low) != quantity(high) {
        return None;
    }
    let value = |cell: &Cell<'_>| cell.rounded().scaled(super::rates::scale(cell));
    if !value(high).is_below(value(low)) && !is_printed_below(high, low) {
        return None;
    }
    let is_row = std::ptr::eq(low.row, high.row);
    let name = |cell: &Cell<'_>| {
        if is_row {
            cell.column.name.clone()
        } else {
            cell.row.name.clone()
        }
    };
    let subject = if is_row {
        format!("{}, row {}", low.table.id, low.row.name)
    } else {
        format!("{}, {}", low.table.id, low.table.column_name(low.column))
    };
    Some(Finding {
        rule: Rule::StatisticsOutOfOrder,
        likeness: None,
        place: high.figure.place.clone(),
        subject,
        arithmetic: format!(
            "{} {} is above {} {}",
            name(low),
            low.shown(),
            name(high),
            high.shown()
        ),
        meaning: "the two are not of one set of values: one is wrong, or the columns are mixed up"
            .to_owned(),
    })
}

/// Whether a figure is printed below another of the same unit and the same last digit. Rounding
/// keeps the order of values, so that `40` is never rounded from a higher value than `50` is, with
/// however few digits both were rounded to.
fn is_printed_below(figure: &Cell<'_>, other: &Cell<'_>) -> bool {
    let (a, b) = (figure.figure, other.figure);
    let is_exact = |it: &Figure| it.top.is_none() && !it.approximate && !it.at_least;
    let is_same = match (figure.unit(), other.unit()) {
        (Some(one), Some(two)) => one.is_same(two),
        _ => false,
    };
    is_same
        && is_exact(a)
        && is_exact(b)
        && a.half_step.to_bits() == b.half_step.to_bits()
        && a.value < b.value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_found_in_names() {
        let share = |share| Some((Statistic::Share(share), String::new()));
        assert_eq!(named("p50_ms"), share(0.5));
        assert_eq!(named("p99.5"), share(0.995));
        assert_eq!(named("p995"), share(0.995));
        assert_eq!(named("99th percentile"), share(0.99));
        assert_eq!(
            named("max latency"),
            Some((Statistic::Share(1.0), "latency".to_owned()))
        );
        assert_eq!(named("avg_ms"), Some((Statistic::Mean, String::new())));
        for name in [
            "line rate",
            "p",
            "ping",
            "min of max",
            "A",
            "1st test",
            "p2",
        ] {
            assert_eq!(named(name), None, "{name}");
        }
    }
}

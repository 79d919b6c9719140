//! Statements outside tables: sums, mixes, claims, single figures.

use super::keys::{Keys, Value};
use super::{beside, table};
use crate::beside::Single;
use crate::claim::{Claim, Holds, Test};
use crate::document::{Cell, Document, Mix, Sum};
use crate::evaluation;
use crate::figure::Figure;
use crate::source::Source;
use crate::unit::{Quantity, Unit};

/// Reads the keys of the document as a whole. Mixes come first: columns refer to them.
pub(super) fn read(keys: &Keys<'_>, document: &mut Document) {
    if let Some(source) = keys.text("source") {
        document.source = source;
    }
    each(keys, "mix", |keys| {
        let mix = mix(keys, &mut document.sums);
        document.mixes.extend(mix);
    });
    each(keys, "sum", |keys| document.sums.extend(sum(keys)));
    each(keys, "claim", |keys| document.claims.extend(claim(keys)));
}

/// Reads single figures and charts. Figures in per cent of one system are shares of one whole.
pub(super) fn figures(keys: &Keys<'_>, document: &mut Document) {
    let mut shares: Vec<(String, Sum)> = Vec::new();
    each(keys, "figure", |keys| {
        let (value, unit) = (
            value(keys, "value"),
            keys.required("unit").and_then(table::unit),
        );
        let single = Single {
            id: keys.text("id"),
            system: keys.text("system").unwrap_or_default(),
            what: keys.text("what").unwrap_or_default(),
            beside: beside::read(keys),
            unit,
            figure: match value {
                Some(figure) => figure,
                None => return,
            },
        };
        keys.refuse_others();
        let system = &single.system;
        // Shares of one system in per cent must add up to 100, which the rule for sums checks.
        let is_share = |unit: &Unit| unit.quantity == Quantity::Percent;
        if single.unit.as_ref().is_some_and(is_share) {
            let index = shares.iter().position(|(known, _)| known == system);
            let index = index.unwrap_or_else(|| {
                let sum = hundred(&format!("shares of {system}"), keys);
                shares.push((system.clone(), sum));
                shares.len() - 1
            });
            shares[index].1.parts.push(single.figure.clone());
        }
        document.figures.push(single);
    });
    each(keys, "chart", |keys| {
        document.charts.extend(beside::chart(keys));
    });
    document.sums.extend(shares.into_iter().map(|(_, sum)| sum));
}

/// Calls a reader with the keys of each table of a list.
pub(super) fn each(keys: &Keys<'_>, key: &'static str, mut read: impl FnMut(&Keys<'_>)) {
    let items = keys.optional(key).map(|value| value.list());
    for item in items.into_iter().flatten() {
        if let Some(keys) = item.keys() {
            read(&keys);
        }
    }
}

fn value(keys: &Keys<'_>, key: &'static str) -> Option<Figure> {
    keys.required(key)?.figure()
}

fn hundred(what: &str, keys: &Keys<'_>) -> Sum {
    let total = Figure::parse("100", keys.place()).expect("a number is a figure");
    Sum {
        what: what.to_owned(),
        place: keys.place().clone(),
        parts: Vec::new(),
        total,
    }
}

fn list(keys: &Keys<'_>, key: &'static str) -> Vec<Figure> {
    let items = keys.required(key).map(|value| value.list());
    let figure = |item: Value<'_>| item.figure();
    items.into_iter().flatten().filter_map(figure).collect()
}

fn mix(keys: &Keys<'_>, sums: &mut Vec<Sum>) -> Option<Mix> {
    let name = keys.required("name").and_then(|it| it.text());
    // The mean alone allows the ceiling of the link and the layers to be checked, but not the sizes
    // of the mix.
    if let Some(mean) = keys.optional("mean") {
        keys.refuse_others();
        let mean = mean.figure()?;
        return Some(Mix {
            name: name?,
            mean_bytes: mean.value,
            half_step: mean.half_step,
            shares: Vec::new(),
        });
    }
    let frames = list(keys, "frame");
    let weights = list(keys, "weights");
    let in_percent = keys.text("unit").is_some_and(|unit| unit == "%");
    keys.refuse_others();
    let name = name?;
    let total: f64 = weights.iter().map(|weight| weight.value).sum();
    // Checked before `zip`, which would drop the longer list's rest, and before the division by the
    // total.
    if frames.len() != weights.len() || total <= 0.0 {
        keys.mistake(
            format!(
                "mix `{name}` has {} sizes and {} weights",
                frames.len(),
                weights.len()
            ),
            "write one weight for each size, or the mean frame size alone: `mean = 353.8`",
        );
        return None;
    }
    let pairs = frames.iter().zip(&weights);
    let shares: Vec<(f64, f64)> = pairs
        .map(|(frame, weight)| (weight.value / total, frame.value))
        .collect();
    // Only percentages have a sum to check: other weights are relative, as 7:4:1 of IMIX.
    if in_percent {
        let mut sum = hundred(&format!("weights of mix {name}"), keys);
        sum.parts = weights;
        sums.push(sum);
    }
    Some(Mix {
        name,
        mean_bytes: shares.iter().map(|(share, bytes)| share * bytes).sum(),
        half_step: 0.0,
        shares,
    })
}

fn sum(keys: &Keys<'_>) -> Option<Sum> {
    let what = keys.required("what").and_then(|it| it.text());
    let mut parts = list(keys, "parts");
    let mut total = value(keys, "total");
    keys.refuse_others();
    let stated = total.iter().chain(&parts).find_map(|it| it.unit.clone());
    if let Some(stated) = stated {
        for figure in total.iter_mut().chain(&mut parts) {
            let unit = figure.unit.get_or_insert_with(|| stated.clone());
            if unit.quantity != stated.quantity {
                let what = format!("`{}` cannot be added up with {}", figure.text, stated.text);
                let help = "write all numbers in units of one quantity";
                keys.source.mistake(&figure.place, what, help);
            }
        }
    }
    Some(Sum {
        what: what?,
        place: keys.place().clone(),
        parts,
        total: total?,
    })
}

fn claim(keys: &Keys<'_>) -> Option<Claim> {
    let says = keys.required("says").and_then(|it| it.text());
    let within = keys.optional("within").and_then(|it| share(it));
    let holds = match keys.optional("holds").map(|it| (it, it.text())) {
        None => Holds::Everywhere,
        Some((value, text)) => match text.as_deref() {
            Some("everywhere") => Holds::Everywhere,
            Some("mostly") => Holds::Mostly,
            _ => {
                value.mistake("`holds` is not known", "write \"everywhere\" or \"mostly\"");
                Holds::Everywhere
            }
        },
    };
    let items = keys.required("tests").map(|value| value.list());
    let test = |item: Value<'_>| {
        let text = item.text()?;
        Test::parse(&text)
            .inspect_err(|what| {
                item.mistake(
                    what,
                    "write `{table | row | column} > 80`: cells, numbers, + - * /, and one of > >= < <= =",
                );
            })
            .ok()
    };
    let tests = items.into_iter().flatten().filter_map(test).collect();
    keys.refuse_others();
    Some(Claim {
        says: says?,
        place: keys.place().clone(),
        tests,
        within: within.unwrap_or(0.0),
        holds,
    })
}

/// `5 %` as 0.05.
fn share(value: Value<'_>) -> Option<f64> {
    let text = value.text()?;
    let number = text.trim().strip_suffix('%').map(str::trim);
    let percent: Option<f64> = number.and_then(|number| number.parse().ok());
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    if percent.is_none() {
        value.mistake(format!("`{text}` is no share"), "write `5 %`");
    }
    percent.map(|percent| percent / 100.0)
}

/// Reports names of tables and cells that are not in the file.
pub(super) fn check_references(source: &Source, document: &Document) {
    let ids: Vec<_> = document.tables.iter().map(|it| it.id.as_str()).collect();
    let indexed = document.tables.iter().enumerate();
    // A result has thousands, each with its path as id.
    for (at, table) in indexed.filter(|(_, table)| !table.is_result) {
        if ids[..at].contains(&table.id.as_str()) {
            let what = format!("two tables have the id `{}`", table.id);
            source.mistake(&table.place, what, "give one of them another `id`");
        }
        let references = [&table.baseline, &table.repeats, &table.accelerates];
        for reference in references.into_iter().flatten() {
            let other = document.table(&reference.id);
            let Some(other) = other.filter(|other| other.id != table.id) else {
                let what = format!("`{}` is no other table of this file", reference.id);
                let help = format!("tables are {}", ids.join(", "));
                source.mistake(&reference.place, what, help);
                continue;
            };
            let is_there =
                |cell: &Cell<'_>| other.cell(&cell.row.name, &cell.column.name).is_some();
            if !table.cells().any(|cell| is_there(&cell)) {
                let what = format!("`{}` and `{}` have no cell in common", table.id, other.id);
                let help = "use the same names of rows and columns in both";
                source.mistake(&reference.place, what, help);
            }
        }
        let original = table.repeats.as_ref().and_then(|it| document.table(&it.id));
        let missing = original.and_then(|original| {
            let in_it =
                |cell: &Cell<'_>| original.cell(&cell.row.name, &cell.column.name).is_none();
            table.cells().find(in_it)
        });
        if let Some(cell) = missing {
            let what = format!(
                "`{}` is not in the table that this one repeats",
                cell.name()
            );
            source.mistake(
                &cell.figure.place,
                what,
                "use the names of rows and columns there",
            );
        }
    }
    for claim in &document.claims {
        for test in &claim.tests {
            if let Err(what) = evaluation::check(test, document) {
                let help =
                    "write {table | row | column} with names of this file, or {id} of a figure";
                source.mistake(&claim.place, what, help);
            }
        }
    }
}

//! Means and sums that the report prints.

use super::rates::percent;
use crate::document::{Axis, Cell, Document, Table};
use crate::figure::Figure;
use crate::finding::{Finding, Likeness, Rule};
use crate::interval::Interval;
use units::human::{frame_rate, number};

/// A mean that is off by less does not matter: nobody compares devices by it.
const SMALL_SHARE: f64 = 0.005;
/// A frame rate is an outlier if it differs by more from the mean of its neighbours.
const OUTLIER_SHARE: f64 = 0.05;

/// Mean frame rates: of rate / (8 · size) over the sizes of a row.
pub(super) fn means(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    if table.axis != Axis::Frame {
        return findings;
    }
    for row in &table.rows {
        let Some(printed) = &row.mean_frame_rate else {
            continue;
        };
        // A mix is no size of the mean.
        let sizes = table.cells_of(row).filter(|cell| {
            let column = cell.column;
            column.mix.is_none() && column.size.is_some()
        });
        let cells: Vec<Cell<'_>> = sizes.collect();
        // A mean over fewer sizes than the printed one differs without any slip, so one cell
        // without a rate ends the check of its row.
        let rates: Option<Vec<Interval>> = cells.iter().map(frames).collect();
        let Some(rates) = rates.filter(|rates| !rates.is_empty()) else {
            continue;
        };
        let count = rates.len() as f64;
        let sum = |rates: &[Interval]| {
            rates
                .iter()
                .copied()
                .fold(Interval::exact(0.0), |a, b| a + b)
        };
        let mean = sum(&rates).scaled(1.0 / count);
        // Means may have been cut off instead of rounded.
        let scale = printed.unit.as_ref().map_or(1.0, |unit| unit.scale);
        let stated = printed.rounded(2.0 * printed.half_step).scaled(scale);
        if mean.meets(stated) {
            continue;
        }
        let middle = mean.middle();
        let is_small = |share: f64| share.abs() < SMALL_SHARE;
        let ratio = printed.value * scale / middle;
        let share = ratio - 1.0;
        findings.push(Finding {
            rule: if is_small(share) { Rule::MeanImprecise } else { Rule::MeanDiffers },
            likeness: Some(Likeness {
                ratio,
                bytes: None,
                against: format!("table {}", table.id),
            }),
            place: printed.place.clone(),
            subject: format!("{}, row {}, mean frame rate", table.id, row.name),
            arithmetic: format!(
                "mean of rate / (8 × size) over {} sizes = {:.0} frames/s (with rounding {:.0} to {:.0}), printed {} \
                 ({})",
                rates.len(),
                middle,
                mean.low,
                mean.high,
                printed.text,
                percent(share),
            ),
            meaning: if is_small(share) { "the mean is not of the printed rates: probably of others that were measured or rounded apart"
                    .to_owned() } else { repair(&cells, &rates, stated).unwrap_or_else(|| {
                    "the mean or a rate of the row is wrong, and no single slip in a rate that stands out from its \
                     neighbours explains it"
                        .to_owned()
                }) },
        });
    }
    findings
}

fn frames(cell: &Cell<'_>) -> Option<Interval> {
    Some(cell.bit_rate()?.scaled(1.0 / (8.0 * cell.column.size?)))
}

/// Returns the slip in one cell that explains the mean: a changed digit, or two swapped ones. Only
/// for a cell with an outlier, and only a slip that explains it; of several the nearest.
fn repair(cells: &[Cell<'_>], rates: &[Interval], stated: Interval) -> Option<String> {
    // The frame rate of a device changes little between neighbouring sizes, so a slip in a digit
    // changes both the mean and the step to the neighbours.
    let middles: Vec<f64> = rates.iter().map(|it| it.middle()).collect();
    let mut best: Option<(f64, String)> = None;
    for (at, cell) in cells.iter().enumerate() {
        let expected = match (at.checked_sub(1).map(|it| middles[it]), middles.get(at + 1)) {
            (Some(before), Some(after)) => f64::midpoint(before, *after),
            (Some(before), None) => before,
            (None, Some(after)) => *after,
            (None, None) => continue,
        };
        let away = |rate: f64| (rate / expected - 1.0).abs();
        if away(middles[at]) < OUTLIER_SHARE {
            continue;
        }
        let indexed = rates.iter().enumerate().filter(|(other, _)| *other != at);
        // The sum of the others is fixed while about ten slips per digit are tried for this cell.
        let others = indexed.fold(Interval::exact(0.0), |sum, (_, rate)| sum + *rate);
        for text in slips(&cell.figure.text) {
            let Ok(figure) = Figure::parse(&text, &cell.figure.place) else {
                continue;
            };
            let changed = Cell {
                figure: &figure,
                ..*cell
            };
            let Some(rate) = frames(&changed) else {
                continue;
            };
            let mean = (others + rate).scaled(1.0 / rates.len() as f64);
            let middle = rate.middle();
            let is_better = best.as_ref().is_none_or(|(known, _)| away(middle) < *known);
            if mean.meets(stated) && away(middle) < OUTLIER_SHARE && is_better {
                let shown = format!(
                    "with {text} instead of {} at {} B the mean agrees, and the frame rate there is {} instead of {}, \
                     like its neighbours' {}: probably a slip in these digits",
                    cell.figure.text,
                    cell.column.name,
                    frame_rate(middle),
                    frame_rate(middles[at]),
                    frame_rate(expected),
                );
                best = Some((away(middle), shown));
            }
        }
    }
    best.map(|(_, shown)| shown)
}

/// All texts with one other digit, or with two neighbouring digits swapped.
fn slips(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let characters: Vec<char> = text.chars().collect();
    for (at, old) in characters
        .iter()
        .enumerate()
        .filter(|(_, c)| c.is_ascii_digit())
    {
        for digit in ('0'..='9').filter(|digit| digit != old) {
            let mut changed = characters.clone();
            changed[at] = digit;
            found.push(changed.into_iter().collect());
        }
        if characters.get(at + 1).is_some_and(char::is_ascii_digit) {
            let mut changed = characters.clone();
            changed.swap(at, at + 1);
            found.push(changed.into_iter().collect());
        }
    }
    found
}

/// Sums that the report states: of percentages, of headers.
pub(super) fn sums(document: &Document) -> Vec<Finding> {
    let differs = document.sums.iter().filter_map(|sum| {
        let scale = |figure: &Figure| figure.unit.as_ref().map_or(1.0, |unit| unit.scale);
        // In the unit of the printed sum.
        let rounded = |part: &Figure| part.rounded(0.0).scaled(scale(part) / scale(&sum.total));
        let parts = sum.parts.iter().map(rounded);
        let total = parts.fold(Interval::exact(0.0), |a, b| a + b);
        if total.meets(sum.total.rounded(0.0)) {
            return None;
        }
        let texts: Vec<&str> = sum.parts.iter().map(|part| part.text.as_str()).collect();
        Some(Finding {
            rule: Rule::SumDiffers,
            likeness: None,
            place: sum.place.clone(),
            subject: sum.what.clone(),
            arithmetic: format!(
                "{} = {}, not {}",
                texts.join(" + "),
                number(total.middle()),
                sum.total.text
            ),
            meaning: "a part is wrong or missing".to_owned(),
        })
    });
    differs.collect()
}

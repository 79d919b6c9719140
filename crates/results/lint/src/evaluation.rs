//! Evaluates claims with a document's figures.

use crate::beside::Single;
use crate::claim::{Operand, RELATIONS, Relation, Terms, Test};
use crate::document::{Cell, Document, Table};
use crate::interval::Interval;
use crate::unit::Unit;

/// The outcome of a test for one row and column.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Whether it can be true of values that round to the figures.
    pub(crate) holds: bool,
    /// The comparison with its numbers.
    pub(crate) shown: String,
    /// The middle of the left side, divided by the middle of the right side.
    pub(crate) ratio: f64,
}

/// One side of a comparison.
struct Side {
    rounded: Interval,
    /// As `rounded`, widened by the deviations of its cells.
    deviating: Interval,
    shown: String,
    is_computed: bool,
}

/// Checks that every name is in the document, that its cells have one unit, and that the test
/// compares at least one pair.
///
/// # Errors
/// A message about the first fault.
pub(crate) fn check(test: &Test, document: &Document) -> Result<(), String> {
    let mut units: Vec<&Unit> = Vec::new();
    let mut figures: Vec<&Unit> = Vec::new();
    for (_, operand) in test.left.iter().chain(&test.right) {
        let (table, row, column) = match operand {
            Operand::Number(..) => continue,
            Operand::Figure(id) => {
                let Some(found) = find_figure(document, id) else {
                    return Err(format!("no figure has the id `{id}`"));
                };
                figures.extend(found.figure.unit.as_ref().or(found.unit.as_ref()));
                continue;
            }
            Operand::Cell { table, row, column } => (table, row, column),
        };
        let Some(found) = document.table(table) else {
            return Err(format!("no table has the id `{table}`"));
        };
        let fitting: Vec<Cell<'_>> = fitting(found, row, column).collect();
        if fitting.is_empty() {
            return Err(format!(
                "table `{table}` has no figure at `{row}`, `{column}`"
            ));
        }
        units.extend(fitting.iter().filter_map(Cell::unit));
    }
    let mixed = |a: &Unit, b: &Unit| Err(format!("the test mixes {} and {}", a.text, b.text));
    if let Some(pair) = units.windows(2).find(|pair| !pair[0].is_same(pair[1])) {
        return mixed(pair[0], pair[1]);
    }
    // A figure may be a factor in another unit, as a share in per cent, but no rate in Gbit/s may
    // be compared with one in Mbit/s: their numbers are used as printed.
    for unit in &figures {
        let differs = |other: &&&Unit| other.quantity == unit.quantity && !other.is_same(unit);
        if let Some(other) = units.iter().chain(&figures).find(differs) {
            return mixed(other, unit);
        }
    }
    // Each cell exists, but a claim that compares no pair would hold without any check.
    if outcomes(test, document, 0.0).is_empty() {
        Err("the cells of the test have no row and column in common".to_owned())
    } else {
        Ok(())
    }
}

/// Returns the outcome for each row and column that all cells of the test have.
pub(crate) fn outcomes(test: &Test, document: &Document, within: f64) -> Vec<Outcome> {
    let bindings = bindings(test, document);
    let of_pair = |(row, column): &(String, String)| {
        let left = side(&test.left, document, row, column)?;
        let right = side(&test.right, document, row, column)?;
        Some(outcome(test.relation, &left, &right, within))
    };
    bindings.iter().filter_map(of_pair).collect()
}

fn outcome(relation: Relation, left: &Side, right: &Side, within: f64) -> Outcome {
    let wanted = right.rounded.widened(within);
    // "As before" allows for the deviation; "above 80" does not.
    let holds = match relation {
        Relation::Above | Relation::AtLeast => !left.rounded.is_below(wanted),
        Relation::Below | Relation::AtMost => !wanted.is_below(left.rounded),
        Relation::Equal => left.deviating.meets(right.deviating.widened(within)),
    };
    let mut signs = RELATIONS.iter();
    let sign = signs.find(|(_, known)| *known == relation);
    let sign = sign.map_or("", |(sign, _)| sign);
    let (a, b) = (left.rounded.middle(), right.rounded.middle());
    let value = |side: &Side, middle: f64| {
        if side.is_computed {
            format!("{} = {}", side.shown, units::human::number(middle))
        } else {
            side.shown.clone()
        }
    };
    let tolerance = if within > 0.0 {
        format!(" within {} %", units::human::number(within * 100.0))
    } else {
        String::new()
    };
    Outcome {
        holds,
        shown: format!("{} {sign} {}{tolerance}", value(left, a), value(right, b)),
        ratio: a / b,
    }
}

/// Returns the matches of `*`: the rows and columns of the first cell that has one.
fn bindings(test: &Test, document: &Document) -> Vec<(String, String)> {
    let mut operands = test.left.iter().chain(&test.right);
    let first = operands.find_map(|(_, operand)| match operand {
        Operand::Cell { table, row, column } if row == "*" || column == "*" => {
            Some((table, row, column))
        }
        _ => None,
    });
    let Some((table, row, column)) = first else {
        return vec![(String::new(), String::new())];
    };
    let cells = document.table(table).into_iter();
    let cells = cells.flat_map(|found| fitting(found, row, column));
    cells
        .map(|it| (it.row.name.clone(), it.column.name.clone()))
        .collect()
}

/// Returns the cells of a table at a row and column; either may be `*`.
fn fitting<'a>(table: &'a Table, row: &str, column: &str) -> impl Iterator<Item = Cell<'a>> {
    let fits = |name: &str, wanted: &str| wanted == "*" || name == wanted;
    table
        .cells()
        .filter(move |it| fits(&it.row.name, row) && fits(&it.column.name, column))
}

fn find_figure<'a>(document: &'a Document, id: &str) -> Option<&'a Single> {
    let mut figures = document.figures.iter();
    figures.find(|single| single.id.as_deref() == Some(id))
}

/// Returns the value of a side; `None` if a cell is missing.
fn side(terms: &Terms, document: &Document, row: &str, column: &str) -> Option<Side> {
    let mut sums: Vec<(char, Side)> = Vec::new();
    for (sign, operand) in terms {
        let value = operand.value(document, row, column)?;
        match (sign, sums.last_mut()) {
            // Products bind first: a factor joins the last term, and the terms are added up below.
            ('*' | '/', Some((_, last))) => join(last, *sign, &value),
            _ => sums.push((*sign, value)),
        }
    }
    let mut sums = sums.into_iter();
    let (_, mut total) = sums.next()?;
    for (sign, value) in sums {
        join(&mut total, sign, &value);
    }
    Some(total)
}

fn join(left: &mut Side, sign: char, right: &Side) {
    let apply = |a: Interval, b: Interval| match sign {
        '*' => a * b,
        '/' => a / b,
        '-' => a - b,
        _ => a + b,
    };
    *left = Side {
        rounded: apply(left.rounded, right.rounded),
        deviating: apply(left.deviating, right.deviating),
        shown: format!("{} {sign} {}", left.shown, right.shown),
        is_computed: true,
    };
}

impl Operand {
    fn value(&self, document: &Document, bound_row: &str, bound_column: &str) -> Option<Side> {
        let side = |rounded: Interval, deviation: f64, shown: String| Side {
            rounded,
            deviating: Interval {
                low: rounded.low - deviation,
                high: rounded.high + deviation,
            },
            shown,
            is_computed: false,
        };
        match self {
            Self::Number(value, text) => Some(side(*value, 0.0, text.clone())),
            Self::Figure(id) => {
                let figure = &find_figure(document, id)?.figure;
                Some(side(
                    figure.rounded(0.0),
                    figure.deviation_max(),
                    figure.text.clone(),
                ))
            }
            Self::Cell { table, row, column } => {
                let pick = |name: &'_ str, bound: &'_ str| match name {
                    "*" => bound.to_owned(),
                    name => name.to_owned(),
                };
                let (row, column) = (pick(row, bound_row), pick(column, bound_column));
                let cell = document.table(table)?.cell(&row, &column)?;
                let shown = format!("{} ({})", cell.figure.text, cell.name());
                Some(side(cell.rounded(), cell.figure.deviation_max(), shown))
            }
        }
    }
}

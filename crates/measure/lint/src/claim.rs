//! A conclusion of a report's text, written down as comparisons over cells.
//!
//! ```text
//! test  = terms, (">" | ">=" | "<" | "<=" | "="), terms ;
//! terms = product, { ("+" | "-"), product } ;
//! product = operand, { ("*" | "/"), operand } ;
//! operand = number | "{", table, "|", row, "|", column, "}" | "{", figure, "}" ;
//! ```
//!
//! A `*` as row or column stands for each one that every cell of the test has.

use crate::document::{Cell, Document, Table};
use crate::figure::Figure;
use crate::interval::Interval;
use crate::unit::Unit;
use yaml::Place;

/// A conclusion.
#[derive(Debug)]
pub struct Claim {
    /// What the report says, in other words.
    pub says: String,
    /// Where it is.
    pub place: Place,
    /// What must hold for it.
    pub tests: Vec<Test>,
    /// The share by which the right side may be missed: 0.05 for 5 %.
    pub within: f64,
    /// How often it must hold.
    pub holds: Holds,
}

/// How often a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// For all cells.
    Everywhere,
    /// For more than half of all cells.
    Mostly,
}

/// One comparison.
#[derive(Debug, Clone)]
pub struct Test {
    left: Terms,
    relation: Relation,
    right: Terms,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
}

const RELATIONS: [(&str, Relation); 5] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    (">", Relation::Above),
    ("<", Relation::Below),
    ("=", Relation::Equal),
];

/// Operands with the operation that joins each to those before it.
type Terms = Vec<(char, Operand)>;

#[derive(Debug, Clone)]
enum Operand {
    Number(Interval, String),
    Figure(String),
    Cell {
        table: String,
        row: String,
        column: String,
    },
}

/// The outcome of a test for one row and column.
#[derive(Debug)]
pub struct Outcome {
    /// Whether it can be true of values that round to the figures.
    pub holds: bool,
    /// The comparison with its numbers.
    pub shown: String,
    /// How far the middle of the left side is from that of the right, as their ratio.
    pub ratio: f64,
}

/// One side of a comparison.
struct Side {
    rounded: Interval,
    /// The same with the deviations of its cells.
    deviating: Interval,
    shown: String,
    is_computed: bool,
}

impl Test {
    /// Reads a comparison.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        // Names of cells may hold any sign but braces.
        let outside = |at: usize| {
            let before = &text[..at];
            before.matches('{').count() == before.matches('}').count()
        };
        let found = RELATIONS.iter().find_map(|(sign, relation)| {
            let (at, _) = text.match_indices(sign).find(|(at, _)| outside(*at))?;
            Some((at, sign.len(), *relation))
        });
        let (at, length, relation) = found.ok_or("the test compares nothing")?;
        Ok(Self {
            left: terms(&text[..at])?,
            relation,
            right: terms(&text[at + length..])?,
        })
    }

    /// Checks that every name is in the document, that its cells are in one unit, and that there is
    /// something to compare.
    ///
    /// # Errors
    /// What is not so.
    pub fn check(&self, document: &Document) -> Result<(), String> {
        let mut units: Vec<&Unit> = Vec::new();
        for (_, operand) in self.left.iter().chain(&self.right) {
            let (table, row, column) = match operand {
                Operand::Number(..) => continue,
                Operand::Figure(id) => {
                    if find_figure(document, id).is_none() {
                        return Err(format!("no figure has the id `{id}`"));
                    }
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
        if let Some(pair) = units.windows(2).find(|pair| !pair[0].is_same(pair[1])) {
            return Err(format!(
                "the test mixes {} and {}",
                pair[0].text, pair[1].text
            ));
        }
        match self.outcomes(document, 0.0).is_empty() {
            true => Err("the cells of the test have no row and column in common".to_owned()),
            false => Ok(()),
        }
    }

    /// The outcome for each row and column that all cells of the test have.
    #[must_use]
    pub fn outcomes(&self, document: &Document, within: f64) -> Vec<Outcome> {
        let bindings = self.bindings(document);
        let outcome = |(row, column): &(String, String)| {
            let left = side(&self.left, document, row, column)?;
            let right = side(&self.right, document, row, column)?;
            Some(self.outcome(&left, &right, within))
        };
        bindings.iter().filter_map(outcome).collect()
    }

    fn outcome(&self, left: &Side, right: &Side, within: f64) -> Outcome {
        let wanted = right.rounded.widened(within);
        // Whoever says "as before" allows for the deviation; whoever says "above 80" does not.
        let holds = match self.relation {
            Relation::Above | Relation::AtLeast => !left.rounded.is_below(wanted),
            Relation::Below | Relation::AtMost => !wanted.is_below(left.rounded),
            Relation::Equal => left.deviating.meets(right.deviating.widened(within)),
        };
        let mut signs = RELATIONS.iter();
        let sign = signs.find(|(_, relation)| *relation == self.relation);
        let sign = sign.map_or("", |(sign, _)| sign);
        let (a, b) = (left.rounded.middle(), right.rounded.middle());
        let value = |side: &Side, middle: f64| match side.is_computed {
            true => format!("{} = {}", side.shown, units::human::number(middle)),
            false => side.shown.clone(),
        };
        let tolerance = match within > 0.0 {
            true => format!(" within {} %", units::human::number(within * 100.0)),
            false => String::new(),
        };
        Outcome {
            holds,
            shown: format!("{} {sign} {}{tolerance}", value(left, a), value(right, b)),
            ratio: a / b,
        }
    }

    /// What `*` stands for: the rows and columns of the first cell that has one.
    fn bindings(&self, document: &Document) -> Vec<(String, String)> {
        let mut operands = self.left.iter().chain(&self.right);
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
}

/// The cells of a table at a row and column, each of which may be `*`.
fn fitting<'a>(table: &'a Table, row: &str, column: &str) -> impl Iterator<Item = Cell<'a>> {
    let fits = |name: &str, wanted: &str| wanted == "*" || name == wanted;
    table
        .cells()
        .filter(move |it| fits(&it.row.name, row) && fits(&it.column.name, column))
}

fn find_figure<'a>(document: &'a Document, id: &str) -> Option<&'a Figure> {
    let mut figures = document.figures.iter();
    let found = figures.find(|(known, _)| known.as_deref() == Some(id));
    found.map(|(_, figure)| figure)
}

/// The value of a side; `None` if it has no such cell.
fn side(terms: &Terms, document: &Document, row: &str, column: &str) -> Option<Side> {
    let mut sums: Vec<(char, Side)> = Vec::new();
    for (sign, operand) in terms {
        let value = operand.value(document, row, column)?;
        match (sign, sums.last_mut()) {
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
                let figure = find_figure(document, id)?;
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

/// Reads one side.
fn terms(text: &str) -> Result<Terms, String> {
    let mut terms = Vec::new();
    let mut sign = '+';
    let mut rest = text.trim();
    loop {
        let (operand, after) = operand(rest)?;
        terms.push((sign, operand));
        rest = after.trim_start();
        let Some(next) = rest.chars().next() else {
            return Ok(terms);
        };
        if !"+-*/".contains(next) {
            return Err(format!("`{rest}` does not begin with one of + - * /"));
        }
        sign = next;
        rest = rest[1..].trim_start();
    }
}

fn operand(text: &str) -> Result<(Operand, &str), String> {
    let Some(inside) = text.strip_prefix('{') else {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '~');
        let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let figure = Figure::parse(number, &Place::whole_file(""));
        let figure = figure.map_err(|_| format!("`{text}` begins with neither number nor cell"))?;
        // A number of the text is exact, unless it is called approximate.
        let value = match figure.approximate {
            true => figure.rounded(0.0),
            false => Interval::exact(figure.value),
        };
        return Ok((Operand::Number(value, number.to_owned()), rest));
    };
    let (names, rest) = inside.split_once('}').ok_or("a cell has no `}`")?;
    let names: Vec<_> = names
        .split('|')
        .map(|name| name.trim().to_owned())
        .collect();
    match <[String; 3]>::try_from(names) {
        Ok([table, row, column]) => Ok((Operand::Cell { table, row, column }, rest)),
        Err(names) if names.len() == 1 => Ok((Operand::Figure(names[0].clone()), rest)),
        Err(_) => Err("a cell is {table | row | column}".to_owned()),
    }
}

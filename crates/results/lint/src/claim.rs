//! A conclusion of a report's text, written down as comparisons over cells.
//!
//! ```text
//! test  = terms, (">" | ">=" | "<" | "<=" | "="), terms ;
//! terms = product, { ("+" | "-"), product } ;
//! product = operand, { ("*" | "/"), operand } ;
//! operand = number | "{", table, "|", row, "|", column, "}" | "{", figure, "}" ;
//! ```
//!
//! A `*` as row or column matches each one that every cell of the test has.

use crate::figure::Figure;
use crate::interval::Interval;
use yaml::Place;

/// A conclusion.
#[derive(Debug)]
pub struct Claim {
    /// The report's conclusion, paraphrased.
    pub says: String,
    /// Its place.
    pub place: Place,
    /// The comparisons that must hold.
    pub tests: Vec<Test>,
    /// The tolerance of the right side, as a share: 0.05 for 5 %.
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
    pub(crate) left: Terms,
    pub(crate) relation: Relation,
    pub(crate) right: Terms,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
}

/// Relations by their signs; the longer signs first.
pub(crate) const RELATIONS: [(&str, Relation); 5] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    (">", Relation::Above),
    ("<", Relation::Below),
    ("=", Relation::Equal),
];

/// Operands, each with the operation that joins it to the ones before.
pub(crate) type Terms = Vec<(char, Operand)>;

#[derive(Debug, Clone)]
pub(crate) enum Operand {
    Number(Interval, String),
    Figure(String),
    Cell {
        table: String,
        row: String,
        column: String,
    },
}

impl Test {
    /// Reads a comparison.
    ///
    /// # Errors
    /// Why it is no comparison.
    pub fn parse(text: &str) -> Result<Self, String> {
        // Names of cells may hold any sign but braces.
        let outside = |at: usize| {
            let before = &text[..at];
            before.matches('{').count() == before.matches('}').count()
        };
        let found = RELATIONS.iter().find_map(|(sign, relation)| {
            // The signs are tried in the order of the list, so `>=` is found before its `>`.
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
        // No sign and no exponent: `-` is an operation here.
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '~');
        let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let figure = Figure::parse(number, &Place::whole_file(""));
        let figure = figure.map_err(|_| format!("`{text}` begins with neither number nor cell"))?;
        // A number of the text is exact, unless it is called approximate.
        let value = if figure.approximate {
            figure.rounded(0.0)
        } else {
            Interval::exact(figure.value)
        };
        return Ok((Operand::Number(value, number.to_owned()), rest));
    };
    let (names, rest) = inside.split_once('}').ok_or("a cell has no `}`")?;
    let names: Vec<_> = names
        .split('|')
        .map(|name| name.trim().to_owned())
        .collect();
    // `try_from` returns the names if they are not three.
    match <[String; 3]>::try_from(names) {
        Ok([table, row, column]) => Ok((Operand::Cell { table, row, column }, rest)),
        Err(names) if names.len() == 1 => Ok((Operand::Figure(names[0].clone()), rest)),
        Err(_) => Err("a cell is {table | row | column}".to_owned()),
    }
}

//! The common part of sizes, rates and durations: a number and a unit from a list.

use crate::decimal::{self, Decimal, Misfit};
use crate::{ErrorKind, ParseError};

/// A unit: its name, and how many of the quantity's smallest unit it is.
type Unit = (&'static str, u64);

/// A kind of quantity and its notation in files.
#[derive(Debug)]
pub(crate) struct Quantity {
    /// The name in error messages.
    pub(crate) noun: &'static str,
    /// The smallest unit in words, plural.
    pub(crate) smallest: &'static str,
    /// From small to large; the first has scale 1.
    pub(crate) units: &'static [Unit],
    /// Common misspellings of units, in lower case, and the unit meant.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// An example for the help when a text is not a quantity at all.
    pub(crate) example: &'static str,
    /// The most likely unit of a number without one.
    pub(crate) likely_unit: fn(whole: u64) -> &'static str,
}

impl Quantity {
    /// Reads a number and its unit as a count of the smallest unit.
    pub(crate) fn parse(&self, text: &str) -> Result<u64, ParseError> {
        let noun = self.noun;
        let text = text.trim_matches(' ');
        let Some((number, unit)) = Decimal::split(text) else {
            return Err(self.no_number(text));
        };
        // The number as written, for advice that only adds a unit.
        let digits = text[..text.len() - unit.len()].trim_end();
        let number = number.map_err(|misfit| self.misfit(text, misfit))?;
        if unit.is_empty() {
            // A fraction has no whole number, and gets the unit of small ones.
            let likely = (self.likely_unit)(number.times(1).unwrap_or(0));
            return Err(ParseError::new(
                ErrorKind::NoUnit,
                format!("{noun} `{}` has no unit", shown(text)),
                format!(
                    "write `{} {likely}`; units are {}",
                    shown(digits),
                    self.unit_names()
                ),
            ));
        }
        // Aliases are advice in messages and never accepted: files have one notation.
        let Some((_, scale)) = self.units.iter().find(|(known, _)| *known == unit) else {
            return Err(self.unknown_unit(text, digits, unit));
        };
        number
            .times(*scale)
            .map_err(|misfit| self.misfit(text, misfit))
    }

    /// Prints exactly, in the largest of the decimal units that is not larger than the value.
    pub(crate) fn print(&self, value: u64) -> String {
        // 0 is printed in the smallest unit.
        let fits = |(_, scale): &&Unit| *scale <= value.max(1);
        let unit = self.units.iter().rev().find(fits);
        let (name, scale) = unit.unwrap_or(&self.units[0]);
        format!("{} {name}", decimal::print(value, *scale))
    }

    fn no_number(&self, text: &str) -> ParseError {
        let (noun, example) = (self.noun, self.example);
        let what = if text.is_empty() {
            format!("{noun} is empty")
        } else if text.starts_with('-') {
            format!("{noun} `{}` is negative", shown(text))
        } else {
            format!("`{}` is not a {noun}", shown(text))
        };
        let help = format!("a {noun} is a number and its unit, for example `{example}`");
        ParseError::new(ErrorKind::NoNumber, what, help)
    }

    fn unknown_unit(&self, text: &str, digits: &str, unit: &str) -> ParseError {
        let meant = self
            .aliases
            .iter()
            // In lower case: people write `GBPS` and `Gbps`.
            .find(|(alias, _)| *alias == unit.to_lowercase());
        // `GB/s` is not a misspelling of `Gbit/s`: it is eight times as much.
        let in_bytes = self.noun == "bit rate" && unit.contains('B');
        let help = match meant {
            _ if in_bytes => format!("rates are in bits: units are {}", self.unit_names()),
            Some((_, unit)) => {
                format!(
                    "write `{} {unit}`; units are {}",
                    shown(digits),
                    self.unit_names()
                )
            }
            None => format!("units are {}", self.unit_names()),
        };
        let what = format!(
            "{} `{}` has the unknown unit `{}`",
            self.noun,
            shown(text),
            shown(unit)
        );
        ParseError::new(ErrorKind::UnknownUnit, what, help)
    }

    fn misfit(&self, text: &str, misfit: Misfit) -> ParseError {
        let (noun, text) = (self.noun, shown(text));
        match misfit {
            Misfit::NotWhole => ParseError::new(
                ErrorKind::NotWhole,
                format!("{noun} `{text}` is not a whole number of {}", self.smallest),
                format!("the smallest {noun} is `1 {}`", self.units[0].0),
            ),
            Misfit::TooLarge => ParseError::new(
                ErrorKind::TooLarge,
                format!("{noun} `{text}` is too large"),
                format!("the largest {noun} is `{}`", self.print(u64::MAX)),
            ),
        }
    }

    fn unit_names(&self) -> String {
        let names: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// The text for messages: short, and without characters that would move a terminal's cursor.
fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 40;
    let mut shown: String = text
        .chars()
        .take(SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

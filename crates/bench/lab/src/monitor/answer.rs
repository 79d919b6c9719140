//! Answers of sources, and the numbers in them.

use crate::scan::{first_decimal, first_number, one_line};

/// Largest value that is recorded: thousandths of it are far from the limit of 64 bits.
const VALUE_MAX: f64 = 1e12;
/// Longest text of a box in a reason, in characters.
const TEXT_CHARS_MAX: usize = 60;
const PPM: f64 = 1e6;
const MILLI: f64 = 1e3;

/// An answer of a source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// Text of a command, an SNMP octet string or a label.
    Text(String),
    /// A whole number.
    Number(i64),
    /// A number of 64 bits that only rises.
    Count(u64),
    /// A number that begins again at 0 when it would reach `range`.
    Wrapping {
        /// Its value.
        count: u64,
        /// One more than its highest value.
        range: u64,
    },
    /// A number of a page.
    Decimal(f64),
}

impl Answer {
    /// The value times millionths, in thousandths.
    pub(super) fn milli(&self, scale_ppm: u64) -> Result<i64, String> {
        // Floating point is exact enough: thousandths of a unit are recorded.
        let value = match self {
            Self::Text(text) => {
                first_decimal(text).ok_or_else(|| format!("no number in `{}`", brief(text)))?
            }
            Self::Number(number) => *number as f64,
            Self::Count(count) | Self::Wrapping { count, .. } => *count as f64,
            Self::Decimal(value) => *value,
        };
        thousandths(value * (scale_ppm as f64 / PPM))
    }

    /// The count, and its range if it wraps around before 64 bits do.
    pub(crate) fn count(&self) -> Result<(u64, Option<u64>), String> {
        let whole = |count: Option<u64>| {
            let words = || format!("`{}` is no count", brief(&self.text()));
            count.map(|count| (count, None)).ok_or_else(words)
        };
        match self {
            Self::Wrapping { count, range } => Ok((*count, Some(*range))),
            Self::Count(count) => whole(Some(*count)),
            Self::Number(number) => whole(u64::try_from(*number).ok()),
            // Pages have counts as floating-point numbers, exact below 2^53.
            Self::Decimal(value) => {
                // Just below 2^64, so the cast keeps the value.
                let fits = (0.0..18e18).contains(value);
                whole(fits.then_some(*value as u64))
            }
            Self::Text(text) => whole(first_number(text)),
        }
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Count(count) | Self::Wrapping { count, .. } => count.to_string(),
            Self::Decimal(value) => value.to_string(),
        }
    }
}

/// A value in thousandths.
pub(super) fn thousandths(value: f64) -> Result<i64, String> {
    if value.abs() <= VALUE_MAX {
        Ok((value * MILLI).round() as i64)
    } else {
        // Also for NaN.
        Err(format!("{value} is out of range"))
    }
}

/// The beginning of a text, on one line.
fn brief(text: &str) -> String {
    one_line(text, TEXT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_thousandths_of_the_scaled_unit() {
        let text = |text: &str| Answer::Text(text.to_owned());
        assert_eq!(text("41.5 C").milli(1_000_000), Ok(41_500));
        assert_eq!(Answer::Number(-415).milli(100_000), Ok(-41_500));
        assert_eq!(Answer::Decimal(0.0004).milli(1_000_000), Ok(0));
        assert_eq!(Answer::Count(7).milli(1_000_000_000_000), Ok(7_000_000_000));
        for bad in [f64::NAN, f64::INFINITY, -2e12] {
            let error = Answer::Decimal(bad).milli(1_000_000).unwrap_err();
            assert!(error.contains("out of range"), "{error}");
        }
        let error = text("<html>\n nothing</html>")
            .milli(1_000_000)
            .unwrap_err();
        assert_eq!(error, "no number in `<html> nothing</html>`");
    }

    #[test]
    fn counts_are_whole_and_not_negative() {
        assert_eq!(Answer::Text("packets 17".into()).count(), Ok((17, None)));
        assert_eq!(Answer::Decimal(1.458e9).count(), Ok((1_458_000_000, None)));
        for bad in [
            Answer::Number(-1),
            Answer::Decimal(f64::NAN),
            Answer::Decimal(-1.0),
            Answer::Decimal(1e30),
            Answer::Text("none".into()),
        ] {
            assert!(bad.count().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(text in ".*", number: i64, decimal: f64, scale_ppm in 1..=1_000_000_000_000_u64) {
            for answer in [Answer::Text(text), Answer::Number(number), Answer::Decimal(decimal)] {
                if let Ok(milli) = answer.milli(scale_ppm) {
                    prop_assert!(milli.unsigned_abs() <= 1_000_000_000_000_000);
                }
                let _ = answer.count();
            }
        }
    }
}

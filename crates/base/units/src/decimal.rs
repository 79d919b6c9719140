//! Exact decimal numbers of any length. A number times its scale must be a whole number: `1.5` of a
//! unit of 1 is refused.

/// A decimal number as written: its digits, and how many of them follow the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    fraction_digits: u32,
}

/// Why a decimal is not a whole 64-bit number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    NotWhole,
    TooLarge,
}

/// More digits than this are never intended.
const DIGITS_MAX: usize = 30;

impl Decimal {
    /// Splits `text` into the decimal number at its start and the rest without the blanks between.
    ///
    /// `None` when it starts with anything but a digit; a sign, an exponent or `_` is not part of a
    /// number.
    pub(crate) fn split(text: &str) -> Option<(Result<Self, Misfit>, &str)> {
        let whole_end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        // Also for `.5`: a number has one notation.
        if whole_end == 0 {
            return None;
        }
        let (whole, rest) = text.split_at(whole_end);
        // A point without a digit behind it is not part of the number: `1.s` has no unit, instead
        // of one second.
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after) if after.starts_with(|c: char| c.is_ascii_digit()) => {
                let end = after
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(after.len());
                after.split_at(end)
            }
            _ => ("", rest),
        };
        Some((
            Self::from_parts(whole, fraction),
            rest.trim_start_matches(' '),
        ))
    }

    fn from_parts(whole: &str, fraction: &str) -> Result<Self, Misfit> {
        // Zeros that change nothing do not count as digits, so `0.5000 s` is as short as `0.5 s`.
        let (whole, fraction) = (
            whole.trim_start_matches('0'),
            fraction.trim_end_matches('0'),
        );
        if whole.len() > DIGITS_MAX {
            return Err(Misfit::TooLarge);
        }
        if whole.len() + fraction.len() > DIGITS_MAX {
            return Err(Misfit::NotWhole);
        }
        let digits = whole
            .bytes()
            .chain(fraction.bytes())
            .fold(0u128, |value, digit| value * 10 + u128::from(digit - b'0'));
        // Not longer than DIGITS_MAX, so it fits.
        Ok(Self {
            digits,
            fraction_digits: fraction.len() as u32,
        })
    }

    /// This number times `scale`, when that is whole.
    pub(crate) fn times(self, scale: u64) -> Result<u64, Misfit> {
        // At most 10³⁰, which fits 128 bits.
        let divisor = 10u128.pow(self.fraction_digits);
        // Multiplied before it is divided, so nothing is rounded.
        let product = self
            .digits
            .checked_mul(u128::from(scale))
            .ok_or(Misfit::TooLarge)?;
        if product % divisor != 0 {
            return Err(Misfit::NotWhole);
        }
        u64::try_from(product / divisor).map_err(|_| Misfit::TooLarge)
    }
}

/// `value / scale` in decimal, without needless zeros; `scale` is a power of ten.
pub(crate) fn print(value: u64, scale: u64) -> String {
    let (whole, mut fraction) = (value / scale, value % scale);
    if fraction == 0 {
        return whole.to_string();
    }
    // Zeros between the point and the first digit must be printed: 1001 ms are 1.001 s.
    let mut width = scale.ilog10() as usize;
    while fraction.is_multiple_of(10) {
        fraction /= 10;
        width -= 1;
    }
    format!("{whole}.{fraction:0width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str, scale: u64) -> Result<u64, Misfit> {
        Decimal::split(text)
            .unwrap()
            .0
            .and_then(|decimal| decimal.times(scale))
    }

    #[test]
    fn a_fraction_is_exact_or_refused() {
        assert_eq!(number("1.5", 1000), Ok(1500));
        assert_eq!(number("0.000000001", 1_000_000_000), Ok(1));
        assert_eq!(number("0.0000000001", 1_000_000_000), Err(Misfit::NotWhole));
        assert_eq!(number("0.1", 1), Err(Misfit::NotWhole));
        assert_eq!(number("0001.5000", 10), Ok(15));
    }

    #[test]
    fn a_number_of_any_length_does_not_overflow() {
        assert_eq!(number("18446744073709551615", 1), Ok(u64::MAX));
        assert_eq!(number("18446744073709551616", 1), Err(Misfit::TooLarge));
        assert_eq!(number(&"9".repeat(31), 1), Err(Misfit::TooLarge));
        assert_eq!(number(&"9".repeat(5000), 1), Err(Misfit::TooLarge));
        assert_eq!(number(&"9".repeat(30), u64::MAX), Err(Misfit::TooLarge));
        assert_eq!(
            number(&format!("0.{}1", "0".repeat(5000)), u64::MAX),
            Err(Misfit::NotWhole)
        );
        assert_eq!(number(&format!("0.{}", "0".repeat(5000)), u64::MAX), Ok(0));
    }

    #[test]
    fn the_rest_is_what_follows_the_blanks() {
        assert_eq!(Decimal::split("1.5  s").unwrap().1, "s");
        assert_eq!(Decimal::split("1.s").unwrap().1, ".s");
        assert_eq!(Decimal::split("1e9").unwrap().1, "e9");
        assert_eq!(Decimal::split("-1"), None);
        assert_eq!(Decimal::split(".5"), None);
        assert_eq!(Decimal::split(""), None);
    }

    #[test]
    fn prints_without_needless_zeros() {
        assert_eq!(print(1_500, 1_000), "1.5");
        assert_eq!(print(2_000, 1_000), "2");
        assert_eq!(print(1_001, 1_000), "1.001");
        assert_eq!(print(7, 1), "7");
    }
}

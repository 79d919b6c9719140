//! Ratios: a part of a whole in per cent, `0.5 %`.

use crate::ParseError;
use crate::decimal;
use crate::quantity::Quantity;
use std::fmt;

const PPM_PER_PERCENT: u64 = 10_000;

const RATIO: Quantity = Quantity {
    noun: "ratio",
    smallest: "parts per million",
    units: &[("ppm", 1), ("%", PPM_PER_PERCENT)],
    aliases: &[
        ("percent", "%"),
        ("per cent", "%"),
        ("pct", "%"),
        ("p.c.", "%"),
    ],
    example: "0.5 %",
    likely_unit: |_| "%",
};

/// A ratio in parts per million; may be above one (110 %).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ratio(u64);

impl Ratio {
    /// The given number of parts per million.
    #[must_use]
    pub const fn from_ppm(ppm: u64) -> Self {
        Self(ppm)
    }

    /// The given number of per cent.
    #[must_use]
    pub const fn from_percent(percent: u32) -> Self {
        Self(percent as u64 * PPM_PER_PERCENT)
    }

    /// Reads a number and `%` or `ppm`.
    ///
    /// # Errors
    /// When it is anything else, or not a whole number of parts per million.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        RATIO.parse(text).map(Self)
    }

    /// Parts per million.
    #[must_use]
    pub const fn ppm(self) -> u64 {
        self.0
    }

    /// Per cent, if that is a whole number.
    #[must_use]
    pub const fn percent(self) -> Option<u64> {
        if self.0.is_multiple_of(PPM_PER_PERCENT) {
            Some(self.0 / PPM_PER_PERCENT)
        } else {
            None
        }
    }
}

/// Exact, always in per cent: `0.5 %`.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not by the units: a small ratio would be in ppm, and a column of ratios in two units.
        f.pad(&format!("{} %", decimal::print(self.0, PPM_PER_PERCENT)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use proptest::prelude::*;

    #[test]
    fn reads_per_cent_and_parts_per_million() {
        assert_eq!(Ratio::parse("0 %"), Ok(Ratio::from_ppm(0)));
        assert_eq!(Ratio::parse("0.5%"), Ok(Ratio::from_ppm(5_000)));
        assert_eq!(Ratio::parse("110 %"), Ok(Ratio::from_percent(110)));
        assert_eq!(Ratio::parse("20 ppm"), Ok(Ratio::from_ppm(20)));
        assert_eq!(Ratio::from_percent(110).percent(), Some(110));
        assert_eq!(Ratio::from_ppm(5_000).percent(), None);
    }

    #[test]
    fn a_bare_number_is_shown_with_its_unit() {
        let error = Ratio::parse("0.5").unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoUnit);
        assert_eq!(error.help(), "write `0.5 %`; units are ppm, %");
        let error = Ratio::parse("0.00001 %").unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotWhole);
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(ppm in 0..u64::MAX / PPM_PER_PERCENT) {
            let ratio = Ratio::from_ppm(ppm);
            prop_assert_eq!(Ratio::parse(&ratio.to_string()), Ok(ratio));
        }
    }
}

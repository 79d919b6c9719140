//! One printed figure: its digits, its deviation, and the values for which they stand.

use crate::interval::Interval;
use crate::unit::Unit;
use yaml::Place;

/// `~` makes the rounding of a figure this many times as wide.
pub const APPROXIMATE: f64 = 10.0;

/// A figure as printed.
#[derive(Debug, Clone)]
pub struct Figure {
    /// As in the file, with a decimal point.
    pub text: String,
    /// Where it is.
    pub place: Place,
    /// The number as printed; the middle of a range.
    pub value: f64,
    /// Half of the last printed digit's step; half of the range where one is printed.
    pub half_step: f64,
    /// Whether the report itself says that it is approximate.
    pub approximate: bool,
    /// The deviation, if one is printed.
    pub deviation: Option<Deviation>,
    /// The figure's own unit, if it has one.
    pub unit: Option<Unit>,
    /// Digits from the first that is not zero to the last that is printed.
    pub digits: usize,
    /// The same without zeros at the end.
    pub significant: usize,
}

/// A deviation as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    /// The number.
    pub value: f64,
    /// The step of its last printed digit.
    pub step: f64,
    /// Whether it is in per cent of the figure.
    pub percent: bool,
}

/// Why a text is no figure: what is wrong, and what to do.
pub type Refusal = (String, &'static str);

impl Figure {
    /// Reads `14.0`, `~100.0`, `14.0 ± 0.9`, `972 Mbps`, `14.0 Gbit/s ± 6.4 %`, `25..30`, `<25`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: &str, place: &Place) -> Result<Self, Refusal> {
        let refused = || {
            (
                format!("`{text}` is no figure"),
                "write `14.0`, `14.0 ± 0.9`, `~100.0`, `25..30` or `972 Mbit/s`; leave a cell without figure empty, or \
                 write `-`",
            )
        };
        let shown = text.trim().trim_end_matches('*').trim_end();
        let (main, deviation) = match shown.split_once('±') {
            Some((main, deviation)) => (main.trim(), Some(deviation.trim())),
            None => (shown, None),
        };
        let approximate = main.starts_with(['~', '∼', '≈']);
        let is_limit = main.starts_with('<');
        let main = main.trim_start_matches(['~', '∼', '≈', '<']).trim_start();
        let (number, rest) = number(main).ok_or_else(refused)?;
        let (value, mut half_step, rest) = match rest.strip_prefix("..") {
            Some(rest) => {
                let (end, rest) = self::number(rest.trim_start()).ok_or_else(refused)?;
                let (low, high) = (number.value, end.value);
                (f64::midpoint(low, high), (high - low).abs() / 2.0, rest)
            }
            None if is_limit => (number.value / 2.0, number.value / 2.0, rest),
            None => (number.value, number.step / 2.0, rest),
        };
        if approximate {
            half_step *= APPROXIMATE;
        }
        let mut unit = own_unit(rest).ok_or_else(refused)?;
        let deviation = match deviation.map(|text| self::number(text).ok_or_else(refused)) {
            None => None,
            Some(read) => {
                let (number, rest) = read?;
                let after = own_unit(rest).ok_or_else(refused)?;
                let percent = rest.trim() == "%";
                if !percent && after.is_some() {
                    unit = after;
                }
                Some(Deviation {
                    value: number.value,
                    step: number.step,
                    percent,
                })
            }
        };
        Ok(Self {
            text: text.trim().to_owned(),
            place: place.clone(),
            value,
            half_step,
            approximate,
            deviation,
            unit,
            digits: number.digits,
            significant: number.significant,
        })
    }

    /// A number that a program wrote with full precision.
    #[must_use]
    pub fn computed(value: f64, place: Place) -> Self {
        Self {
            text: value.to_string(),
            place,
            value,
            // A program that rounds to whole bits per second, or an older one to micro-units.
            half_step: 0.5 + value.abs() * 1e-6,
            approximate: false,
            deviation: None,
            unit: None,
            digits: 17,
            significant: 17,
        }
    }

    /// The deviation in the figure's unit, 0 if none is printed.
    #[must_use]
    pub fn deviation_value(&self) -> f64 {
        self.deviation
            .map_or(0.0, |deviation| match deviation.percent {
                true => self.value * deviation.value / 100.0,
                false => deviation.value,
            })
    }

    /// The largest deviation that rounds to the printed one, in the figure's unit.
    #[must_use]
    pub fn deviation_max(&self) -> f64 {
        let step = self.deviation.map_or(0.0, |it| match it.percent {
            true => self.value * it.step / 100.0,
            false => it.step,
        });
        self.deviation_value() + step / 2.0
    }

    /// All values that round to the figure with this half step.
    #[must_use]
    pub fn rounded(&self, half_step: f64) -> Interval {
        Interval::around(self.value, half_step.max(self.half_step))
    }
}

struct Number {
    value: f64,
    step: f64,
    digits: usize,
    significant: usize,
}

/// The number at the start of a text, and what follows. Only digits and one point.
fn number(text: &str) -> Option<(Number, &str)> {
    let mut end = 0;
    let mut point = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => end = at + 1,
            // `25..30` is a range.
            b'.' if point.is_none() && text.as_bytes().get(at + 1) != Some(&b'.') => {
                point = Some(at);
            }
            _ => break,
        }
    }
    let printed = &text[..end];
    let value: f64 = printed.parse().ok()?;
    let decimals = point.filter(|at| *at < end).map_or(0, |at| end - at - 1);
    let digits: String = printed.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0');
    // Longer numbers have no figure's precision, and their step would be zero.
    (printed.len() <= 18).then(|| {
        let number = Number {
            value,
            step: 10f64.powi(-(decimals as i32)),
            digits: digits.len(),
            significant: digits.trim_end_matches('0').len(),
        };
        (number, &text[end..])
    })
}

/// The unit after a number: `Some(None)` if there is none, `None` if it is not known.
fn own_unit(text: &str) -> Option<Option<Unit>> {
    match text.trim() {
        "" => Some(None),
        text => Unit::parse(text).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Figure {
        Figure::parse(text, &Place::whole_file("t")).unwrap()
    }

    #[test]
    fn a_printed_figure_stands_for_all_that_round_to_it() {
        assert_eq!(
            parse("9.4").rounded(0.0),
            Interval {
                low: 9.35,
                high: 9.450_000_000_000_001
            }
        );
        assert_eq!(parse("~100.0").rounded(0.0), Interval::around(100.0, 0.5));
        assert_eq!(parse("25..30").rounded(0.0), Interval::around(27.5, 2.5));
        assert_eq!(parse("<25").rounded(0.0), Interval::around(12.5, 12.5));
        assert_eq!(parse("940*").value.to_bits(), 940f64.to_bits());
    }

    #[test]
    fn deviations_and_units_are_read_on_either_side() {
        let figure = parse("14.0 Gbit/s ± 6.4 %");
        assert!((figure.deviation_value() - 0.896).abs() < 1e-9);
        assert_eq!(figure.unit.unwrap().text, "Gbit/s");
        let figure = parse("8.0 ± 1 Gbit/s");
        assert!((figure.deviation_max() - 1.5).abs() < 1e-9);
        assert_eq!(figure.unit.unwrap().text, "Gbit/s");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "fast", "1,5", "1.2.3", "14 parsecs", "1e9", "12 ±"] {
            assert!(
                Figure::parse(text, &Place::whole_file("t")).is_err(),
                "{text}"
            );
        }
    }
}

//! One printed figure: its digits, its deviation, and the values that round to it.

use crate::interval::Interval;
use crate::marks::{Decimal, Evidence, plain};
use crate::number::number;
use crate::unit::{Unit, number_word};
use yaml::Place;

/// `~` makes the rounding of a figure this many times as wide.
pub const APPROXIMATE: f64 = 10.0;

/// A figure as printed.
#[derive(Debug, Clone)]
pub struct Figure {
    /// As in the file, with a decimal point.
    pub text: String,
    /// Its place.
    pub place: Place,
    /// The number as printed; the middle of a range.
    pub value: f64,
    /// Half of the last printed digit's step, or half of a printed range.
    pub half_step: f64,
    /// The upper end of a printed range, with all values that round to it.
    pub top: Option<Interval>,
    /// Whether the report marks it as approximate.
    pub approximate: bool,
    /// The deviation, if one is printed.
    pub deviation: Option<Deviation>,
    /// Whether it is a lower limit: `≥ 900`.
    pub at_least: bool,
    /// The unit printed with the figure, if any.
    pub unit: Option<Unit>,
    /// A prefix without a unit, which the column or table states: `743.38k`.
    pub prefix: Option<char>,
    /// Digits from the first that is not zero to the last that is printed.
    pub digits: usize,
    /// As `digits`, without zeros at the end.
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

/// Why a text is no figure.
#[derive(Debug)]
pub struct Refusal {
    /// The reason, in a clause.
    pub what: String,
    /// Advice.
    pub help: &'static str,
    /// Whether it is a range with its ends in the wrong order, and so no text.
    pub is_range: bool,
}

impl Figure {
    /// Reads `14.0`, `~100.0`, `14.0 ± 0.9`, `972 Mbps`, `14.0 Gbit/s ± 6.4 %`, `25..30`, `<25`,
    /// `≥ 900`, `1.2e9`, `743.38k`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: &str, place: &Place) -> Result<Self, Refusal> {
        let refused = || Refusal {
            what: format!("`{text}` is no figure"),
            help: "write `14.0`, `14.0 ± 0.9`, `~100.0`, `25..30`, `≥ 900`, `1.2e9` or `972 Mbit/s`; leave a cell without \
                 figure empty, or write `-` or `n/a`",
            is_range: false,
        };
        // A star is the mark of a footnote and no part of the number.
        let shown = text.trim().trim_end_matches('*').trim_end();
        let shown = without_aside(shown);
        // A comma that is certainly decimal, or ambiguous, must fail below: the grid replaces it
        // beforehand if the column decides it. Only unambiguous thousands are resolved here.
        let evidence = Evidence::of(shown);
        let shown = if evidence.comma || evidence.unclear_comma {
            shown.to_owned()
        } else {
            plain(shown, Decimal::Point)
        };
        let sign = ["±", "+/-", "+-"]
            .into_iter()
            .find(|it| shown.contains(*it));
        // The deviation is cut off first, because the unit may follow either of the two.
        let (main, deviation) = match sign.and_then(|sign| shown.split_once(sign)) {
            Some((main, deviation)) => (main.trim(), Some(deviation.trim())),
            None => (shown.as_str(), None),
        };
        let (limit, main) = limit(main);
        let (number, rest) = number(main).ok_or_else(refused)?;
        let mut top = None;
        let (value, mut half_step, rest) = match range_end(rest) {
            Some(rest) => {
                let (end, rest) = self::number(rest).ok_or_else(refused)?;
                let (low, high) = (number.value, end.value);
                if high < low {
                    return Err(Refusal {
                        what: format!("the range `{}` begins with its higher end", text.trim()),
                        help: "write the lower end first, as in `812–937`; two figures of one cell are separated by `/`",
                        is_range: true,
                    });
                }
                top = Some(Interval::around(high, end.step / 2.0));
                (f64::midpoint(low, high), (high - low) / 2.0, rest)
            }
            // "Below 25" is any value from 0 to 25, kept as a middle and a half step like a range.
            None if limit == Limit::AtMost => (number.value / 2.0, number.value / 2.0, rest),
            None => (number.value, number.step / 2.0, rest),
        };
        if limit == Limit::About {
            half_step *= APPROXIMATE;
        }
        // `openssl speed` prints a bare `k`. It is looked for before units, as no unit is one of
        // these letters or words.
        let prefix = prefix(rest.trim());
        let mut unit = match prefix {
            Some(_) => None,
            None => own_unit(rest).ok_or_else(refused)?,
        };
        let deviation = match deviation.map(|text| self::number(text).ok_or_else(refused)) {
            None => None,
            Some(read) => {
                let (number, rest) = read?;
                let after = own_unit(rest).ok_or_else(refused)?;
                // `8.0 ± 1 Gbit/s` has the unit of both at the end. `± 6.4 %` is a share of the
                // figure, and its unit precedes the sign.
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
            top,
            approximate: limit == Limit::About,
            at_least: limit == Limit::AtLeast,
            deviation,
            unit,
            prefix,
            digits: number.digits,
            significant: number.significant,
        })
    }

    /// Returns a number that a program wrote with full precision.
    #[must_use]
    pub fn computed(value: f64, place: Place) -> Self {
        Self {
            text: value.to_string(),
            place,
            value,
            // Programs round to whole bits per second, and older ones to micro-units.
            half_step: 0.5 + value.abs() * 1e-6,
            top: None,
            approximate: false,
            at_least: false,
            deviation: None,
            unit: None,
            prefix: None,
            // An `f64` has no more, so that no precision is found below the computed one.
            digits: 17,
            significant: 17,
        }
    }

    /// Returns the deviation in the figure's unit, 0 if none is printed.
    #[must_use]
    pub fn deviation_value(&self) -> f64 {
        self.deviation.map_or(0.0, |deviation| {
            if deviation.percent {
                self.value * deviation.value / 100.0
            } else {
                deviation.value
            }
        })
    }

    /// Returns the largest deviation that rounds to the printed one, in the figure's unit.
    #[must_use]
    pub fn deviation_max(&self) -> f64 {
        let step = self.deviation.map_or(0.0, |it| {
            if it.percent {
                self.value * it.step / 100.0
            } else {
                it.step
            }
        });
        self.deviation_value() + step / 2.0
    }

    /// Returns all values that round to the figure, with at least this half step.
    #[must_use]
    pub fn rounded(&self, half_step: f64) -> Interval {
        let around = Interval::around(self.value, half_step.max(self.half_step));
        if self.at_least {
            Interval {
                high: f64::INFINITY,
                ..around
            }
        } else {
            around
        }
    }
}

/// Leaves out brackets behind a figure that say more about it: a share (`(16 %)`), a count
/// (`(n = 3)`, `[2 of 3]`) or a range (`(52 to 67 µs)`). Other brackets may hold a second figure.
fn without_aside(text: &str) -> &str {
    let Some(at) = text.rfind(['(', '[']) else {
        return text;
    };
    let before = text[..at].trim_end();
    let Some(inside) = text[at + 1..].strip_suffix([')', ']']) else {
        return text;
    };
    let is_digit = |c: char| c.is_ascii_digit();
    let is_number = inside.starts_with(|c| is_digit(c) || matches!(c, '<' | '~' | '−' | '-' | '+'));
    let marks = [" to ", " of ", "–", "..", "…"];
    let has_mark = marks.iter().any(|mark| inside.contains(mark));
    let is_count = inside.starts_with("n =") || inside.starts_with("n=");
    let is_aside = is_count || (is_number && (inside.ends_with('%') || has_mark));
    if !is_aside || !before.starts_with(|c| is_digit(c) || "~∼≈<>≤≥".contains(c)) {
        return text;
    }
    // Some cells have two: the share, and the repeats that it is of.
    without_aside(before)
}

/// The meaning of a sign in front of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    None,
    About,
    AtMost,
    AtLeast,
}

/// Signs and words in front of a number; the longer ones first.
const LIMITS: [(&str, Limit); 16] = [
    ("~", Limit::About),
    ("∼", Limit::About),
    ("≈", Limit::About),
    ("approx.", Limit::About),
    ("about ", Limit::About),
    ("ca.", Limit::About),
    ("<=", Limit::AtMost),
    ("≤", Limit::AtMost),
    ("<", Limit::AtMost),
    ("up to ", Limit::AtMost),
    ("at most ", Limit::AtMost),
    (">=", Limit::AtLeast),
    ("≥", Limit::AtLeast),
    (">", Limit::AtLeast),
    ("at least ", Limit::AtLeast),
    ("over ", Limit::AtLeast),
];

fn limit(text: &str) -> (Limit, &str) {
    let text = text.trim();
    let found = LIMITS
        .iter()
        .find_map(|(sign, limit)| Some((*limit, text.strip_prefix(sign)?.trim_start())));
    found.unwrap_or((Limit::None, text))
}

/// Returns the text after the mark of a range; `None` if no mark and number follow.
fn range_end(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let marks = ["..", "…", "–", "—", "-", "−", "to "];
    let after = marks.iter().find_map(|mark| rest.strip_prefix(mark))?;
    let after = after.trim_start();
    after
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(after)
}

/// Returns a prefix without a unit, as a letter: `k`, `Mio`.
pub(crate) fn prefix(text: &str) -> Option<char> {
    match text {
        "k" | "K" | "M" | "G" | "T" => text.chars().next(),
        _ => number_word(text)
            .filter(|(_, rest)| rest.is_empty())
            .map(|(prefix, _)| prefix),
    }
}

/// Returns the unit after a number: `Some(None)` if absent, `None` if unknown.
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
    fn the_forms_of_other_programs_and_people_are_read() {
        let value = |text| parse(text).value;
        for (text, expected) in [
            ("1.2e9", 1.2e9),
            ("1.2E+9 bit/s", 1.2e9),
            ("1.2×10^9", 1.2e9),
            ("1.2 · 10⁹", 1.2e9),
            ("1,234,567", 1_234_567.0),
            ("1,234.5", 1_234.5),
            ("1 234 567 pps", 1_234_567.0),
            ("25-30 Mbps", 27.5),
            ("25 – 30", 27.5),
            ("25 to 30", 27.5),
        ] {
            assert!((value(text) / expected - 1.0).abs() < 1e-12, "{text}");
        }
        let figure = parse("743221.38k");
        assert_eq!((figure.prefix, figure.unit), (Some('k'), None));
        let figure = parse("3 Mio");
        assert_eq!((figure.prefix, figure.unit), (Some('M'), None));
        for (text, scale) in [
            ("3 Mio pps", 1e6),
            ("3 Mrd. bit/s", 1e9),
            ("3 k frames/s", 1e3),
            ("3 million pps", 1e6),
        ] {
            assert_eq!(
                parse(text).unit.map(|unit| unit.scale),
                Some(scale),
                "{text}"
            );
        }
        let least = parse("≥ 900 Mbps").rounded(0.0);
        assert!(least.low < 900.0 && least.low > 899.0 && least.high.is_infinite());
        let step = parse("1.2e9").half_step;
        assert!((step / 5e7 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_range_has_a_top_and_begins_with_its_lower_end() {
        assert_eq!(parse("25-30 Mbps").top, Some(Interval::around(30.0, 0.5)));
        assert_eq!(parse("25 Mbps").top, None);
        let refused = Figure::parse("937–812 Mbit/s", &Place::whole_file("t")).unwrap_err();
        assert_eq!(
            refused.what,
            "the range `937–812 Mbit/s` begins with its higher end"
        );
    }

    #[test]
    fn brackets_that_say_more_about_a_figure_are_left_out() {
        for (text, value, deviation) in [
            ("442 ± 70 kpps (16 %)", 442.0, 70.0),
            ("49.9 ± 0.1 kpps (< 1 %)", 49.9, 0.1),
            ("859 Mbit/s (n = 1)", 859.0, 0.0),
            ("12.5 ± 1.9 Gbit/s (15 %) [2 of 3: late]", 12.5, 1.9),
            ("3.39 ms (52.4 µs to 6.73 ms)", 3.39, 0.0),
            ("884 Mbit/s (1–2)", 884.0, 0.0),
        ] {
            let figure = parse(text);
            let found = (figure.value, figure.deviation_value());
            assert_eq!(found, (value, deviation), "{text}");
            assert!(figure.unit.is_some(), "{text}");
        }
        for text in ["533 (356)", "(16 %)", "fast (16 %)", "940 (Mbit/s"] {
            let found = Figure::parse(text, &Place::whole_file("t"));
            assert!(found.is_err(), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "fast",
            "1,5",
            "1,234",
            "1.2.3",
            "14 parsecs",
            "12 ±",
            "25 –",
        ] {
            assert!(
                Figure::parse(text, &Place::whole_file("t")).is_err(),
                "{text}"
            );
        }
    }
}

//! Printing for people: three significant digits, four when the first is a 1, and a fitting unit.
//!
//! The fourth digit keeps the step between neighbours under half a per cent of the value: `1.234
//! Gbit/s`, `7.11 Gbit/s`, `350 µs`. Zeros at the end of a fraction are left out: `1.5 s`. Values
//! are floats because means are; for exact values use `Display`.

use std::fmt::Display;

/// The same with five significant digits, for figures of which a reader computes a ratio: the two
/// rounded numbers give it to within 0.02 %.
pub mod fine {
    use super::{BIT_RATES, FRAME_RATES, TIMES, digits_of, print_as};

    /// A bit rate in bit/s: `7.1143 Gbit/s`.
    #[must_use]
    pub fn bit_rate(bps: f64) -> String {
        print_as(bps, BIT_RATES, number)
    }

    /// A frame rate in frames/s: `1.2346 Mpps`.
    #[must_use]
    pub fn frame_rate(fps: f64) -> String {
        print_as(fps, FRAME_RATES, number)
    }

    /// A time in nanoseconds: `350.12 µs`.
    #[must_use]
    pub fn duration_ns(ns: f64) -> String {
        print_as(ns, TIMES, number)
    }

    /// A number without unit: `7.1143`.
    #[must_use]
    pub fn number(value: f64) -> String {
        digits_of(value, |_| 4)
    }
}

type Units = &'static [(f64, &'static str)];
const BIT_RATES: Units = &[
    (1e12, "Tbit/s"),
    (1e9, "Gbit/s"),
    (1e6, "Mbit/s"),
    (1e3, "kbit/s"),
    (1.0, "bit/s"),
];
const FRAME_RATES: Units = &[
    (1e9, "Gpps"),
    (1e6, "Mpps"),
    (1e3, "kpps"),
    (1.0, "frames/s"),
];
const TIMES: Units = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];

/// A number of things: `1 cell`, `2 cells`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A bit rate in bit/s: `7.11 Gbit/s`.
#[must_use]
pub fn bit_rate(bps: f64) -> String {
    print(bps, BIT_RATES)
}

/// A frame rate in frames/s: `1.2 Mpps`.
#[must_use]
pub fn frame_rate(fps: f64) -> String {
    print(fps, FRAME_RATES)
}

/// An amount of data in bytes, with decimal prefixes: `1.5 GB`.
#[must_use]
pub fn data(bytes: f64) -> String {
    print(
        bytes,
        &[
            (1e12, "TB"),
            (1e9, "GB"),
            (1e6, "MB"),
            (1e3, "kB"),
            (1.0, "B"),
        ],
    )
}

/// A time in nanoseconds: `350 µs`, `1.5 s`; in minutes from 2 min, in hours from 2 h.
#[must_use]
pub fn duration_ns(ns: f64) -> String {
    const MINUTE: f64 = 60e9;
    const HOUR: f64 = 60.0 * MINUTE;
    // Minutes and hours have other steps than the decimal units, so they do not follow in one
    // list.
    if ns.abs() >= 2.0 * HOUR {
        return print(ns, &[(HOUR, "h")]);
    }
    if ns.abs() >= 2.0 * MINUTE {
        return print(ns, &[(MINUTE, "min")]);
    }
    print(ns, TIMES)
}

/// A duration, printed as by [`duration_ns`].
#[must_use]
pub fn duration(duration: std::time::Duration) -> String {
    duration_ns(duration.as_secs_f64() * 1e9)
}

/// A number without unit: `7.11`, `1234`, `0.0123`.
#[must_use]
pub fn number(value: f64) -> String {
    digits(value)
}

/// Prints in the first unit in which the *rounded* number is at least 1, else in the last.
fn print(value: f64, units: &[(f64, &str)]) -> String {
    print_as(value, units, digits)
}

fn print_as(value: f64, units: &[(f64, &str)], digits: fn(f64) -> String) -> String {
    for (scale, name) in units {
        let number = digits(value / scale);
        if number
            // The size decides about the unit, not the sign.
            .trim_start_matches('-')
            // The printed text decides, not the value: 999.96 rounds to 1000, which is 1 of the
            // next unit.
            .starts_with(|first: char| ('1'..='9').contains(&first))
        {
            return format!("{number} {name}");
        }
    }
    // Less than one of the smallest unit, or not a number.
    let (scale, name) = units.last().map_or((1.0, ""), |unit| *unit);
    format!("{} {name}", digits(value / scale))
}

/// Three significant digits, four when the first is a 1; whole digits are never rounded away.
fn digits(value: f64) -> String {
    digits_of(value, |value| {
        // The exponent form rounds correctly on every machine and shows the leading digit after
        // rounding: 9.996 has become 1.00e1.
        let four = format!("{value:.3e}");
        if four.trim_start_matches('-').starts_with('1') {
            3
        } else {
            2
        }
    })
}

/// With this many digits behind the first one.
fn digits_of(value: f64, significant: fn(f64) -> usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let significant = significant(value);
    let rounded = format!("{value:.significant$e}");
    let Some((_, exponent)) = rounded.split_once('e') else {
        return rounded;
    };
    let exponent: i64 = exponent.parse().unwrap_or(0);
    // Negative for large numbers: then there are no decimals, and all digits of the whole part
    // remain.
    let decimals = usize::try_from(significant as i64 - exponent)
        .unwrap_or(0)
        // A tiny number is printed as 0, not with hundreds of zeros.
        .min(12);
    let text = format!("{value:.decimals$}");
    // Zeros are needless behind a point only: 1500 keeps both.
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    // A small negative number may round to zero.
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Text that Markdown must not read as markup, on one line.
#[must_use]
pub fn in_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => escaped.extend(['\\', c]),
            // Markdown passes HTML on, so its characters become entities.
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A line break would end the table cell or the item.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BitRate, Layer};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn chooses_unit_and_digits() {
        assert_eq!(bit_rate(7_114_000_000.0), "7.11 Gbit/s");
        assert_eq!(bit_rate(1_234_500_000.0), "1.234 Gbit/s");
        assert_eq!(bit_rate(14_500_000_000.0), "14.5 Gbit/s");
        assert_eq!(bit_rate(250_000_000.0), "250 Mbit/s");
        assert_eq!(bit_rate(0.0), "0 bit/s");
        assert_eq!(frame_rate(1_200_000.0), "1.2 Mpps");
        assert_eq!(frame_rate(64.0), "64 frames/s");
        assert_eq!(data(1_500.0), "1.5 kB");
        assert_eq!(number(0.012_34), "0.01234");
    }

    #[test]
    fn fine_figures_have_five_digits() {
        assert_eq!(fine::bit_rate(7_114_321_000.0), "7.1143 Gbit/s");
        assert_eq!(fine::frame_rate(999_999.0), "1 Mpps");
        assert_eq!(fine::duration_ns(350_000.0), "350 µs");
        assert_eq!(fine::number(12_345.6), "12346");
    }

    #[test]
    fn times_go_from_nanoseconds_to_hours() {
        assert_eq!(duration_ns(350_000.0), "350 µs");
        assert_eq!(duration(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(duration(Duration::from_secs(95)), "95 s");
        assert_eq!(duration(Duration::from_secs(150)), "2.5 min");
        assert_eq!(duration(Duration::from_secs(7200)), "2 h");
        assert_eq!(duration_ns(0.4), "0.4 ns");
    }

    #[test]
    fn rounding_up_moves_to_the_next_unit() {
        assert_eq!(bit_rate(999_960_000.0), "1 Gbit/s");
        assert_eq!(bit_rate(999_400_000.0), "999 Mbit/s");
        assert_eq!(duration_ns(999_999.9), "1 ms");
        assert_eq!(bit_rate(9_996_000_000.0), "10 Gbit/s");
        assert_eq!(bit_rate(1_999_900.0), "2 Mbit/s");
    }

    #[test]
    fn negative_and_missing_values_are_printable() {
        assert_eq!(bit_rate(-7_114_000_000.0), "-7.11 Gbit/s");
        assert_eq!(bit_rate(f64::NAN), "– bit/s");
        assert_eq!(number(f64::INFINITY), "–");
    }

    proptest! {
        #[test]
        fn is_within_half_a_step_of_the_value(bps in 1_000u64..1_000_000_000_000_000) {
            let printed = bit_rate(bps as f64);
            let read = BitRate::parse(&printed, Layer::L2).unwrap().bps();
            let off = read.abs_diff(bps) as f64 / bps as f64;
            prop_assert!(off <= 0.0051, "{} for {}", printed, bps);
            prop_assert_eq!(bit_rate(read as f64), printed);
        }
    }
}

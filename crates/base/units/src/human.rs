//! Printing for people: three significant digits, four when the first is a 1, and a fitting unit.
//!
//! The fourth digit keeps the step between neighbours under half a per cent of the value: `1.234
//! Gbit/s`, `7.11 Gbit/s`, `350 µs`. Zeros at the end of a fraction are left out: `1.5 s`. Values
//! are floats because means are; for exact values use `Display`.

use std::fmt::Display;

/// Two numbers that a reader compares, in one unit and with equal decimals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// `7.11` and `6.84`; with their units if these are far apart.
    pub numbers: [String; 2],
    /// The unit of both; empty if they have none, or their own.
    pub unit: String,
}

/// The units that values are printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scales {
    /// Of bit/s.
    BitRate,
    /// Of frames/s.
    FrameRate,
    /// Of nanoseconds.
    Time,
    /// None.
    Number,
}

impl Scales {
    const fn units(self) -> Units {
        match self {
            Self::BitRate => BIT_RATES,
            Self::FrameRate => FRAME_RATES,
            Self::Time => TIMES,
            Self::Number => &[(1.0, "")],
        }
    }
}

/// Two values in the unit of the larger one, the smaller one with this many significant digits. If
/// one is ten times the other or more, each has its unit.
#[must_use]
pub fn pair(values: [f64; 2], scales: Scales, digits: usize) -> Pair {
    let units = scales.units();
    let behind = digits.saturating_sub(1);
    let [small, large] = [
        values[0].abs().min(values[1].abs()),
        values[0].abs().max(values[1].abs()),
    ];
    if values.iter().any(|value| value.is_nan()) || small <= large / 10.0 {
        let numbers = values.map(|value| {
            let text = print_as(value, units, |value| digits_of(value, |_| behind));
            text.trim_end().to_owned()
        });
        let unit = String::new();
        return Pair { numbers, unit };
    }
    let rounded = |scale: f64| format!("{:.behind$e}", large / scale);
    // The rounded value decides: 999.96 is 1 of the next unit.
    let fits = |(scale, _): &&(f64, &str)| !rounded(*scale).contains("e-");
    let (scale, unit) = units
        .iter()
        .find(fits)
        .or(units.last())
        .copied()
        .unwrap_or((1.0, ""));
    let exponent = (small / scale).log10().floor() as i64;
    let decimals = usize::try_from(behind as i64 - exponent)
        .unwrap_or(0)
        .min(12);
    Pair {
        numbers: values.map(|value| format!("{:.decimals$}", value / scale)),
        unit: unit.to_owned(),
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

/// A time in nanoseconds: `350 µs`, `1.5 s`; from 2 min on `2 min 37 s`, from 1 h on `7 h 36 min`.
#[must_use]
pub fn duration_ns(ns: f64) -> String {
    // The rounded time decides: 3599.8 s are 1 h, not 60 min.
    let seconds = (ns.abs() / SECOND).round();
    if seconds >= HOUR_S {
        return in_two_units(ns, 60.0 * SECOND, ["h", "min"]);
    }
    if seconds >= 2.0 * MINUTE_S {
        return in_two_units(ns, SECOND, ["min", "s"]);
    }
    print(ns, TIMES)
}

const SECOND: f64 = 1e9;
const MINUTE_S: f64 = 60.0;
const HOUR_S: f64 = 60.0 * MINUTE_S;

/// A time in whole steps of the smaller of two units, 60 of which are one of the larger. People
/// read clocks, so minutes and hours have no decimals.
fn in_two_units(ns: f64, step_ns: f64, [large, small]: [&str; 2]) -> String {
    let steps = (ns.abs() / step_ns).round() as u64;
    let sign = if ns < 0.0 { "-" } else { "" };
    match (steps / 60, steps % 60) {
        (whole, 0) => format!("{sign}{whole} {large}"),
        (whole, rest) => format!("{sign}{whole} {large} {rest} {small}"),
    }
}

/// An estimated time in nanoseconds, to be printed after `about`: `95 s`, `3 min`, `7 h 35 min`. An
/// estimate is coarse: it has whole minutes from 2 min on, steps of 5 min from 1 h on, and whole
/// hours from a day on.
#[must_use]
pub fn estimate_ns(ns: f64) -> String {
    let step = SECOND
        * match ns / SECOND {
            seconds if seconds >= 24.0 * HOUR_S => HOUR_S,
            seconds if seconds >= HOUR_S => 5.0 * MINUTE_S,
            seconds if seconds >= 2.0 * MINUTE_S => MINUTE_S,
            seconds if seconds >= 10.0 => 1.0,
            _ => return duration_ns(ns),
        };
    duration_ns((ns / step).round() * step)
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

fn print_as(value: f64, units: &[(f64, &str)], digits: impl Fn(f64) -> String) -> String {
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
fn digits_of(value: f64, significant: impl Fn(f64) -> usize) -> String {
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
    fn two_values_share_unit_and_decimals() {
        let shown = |a, b, scales, digits| {
            let Pair { numbers, unit } = pair([a, b], scales, digits);
            format!("{} → {} {unit}", numbers[0], numbers[1])
                .trim_end()
                .to_owned()
        };
        let rate = |a, b| shown(a, b, Scales::BitRate, 3);
        assert_eq!(rate(4.0598e9, 3.6538e9), "4.06 → 3.65 Gbit/s");
        assert_eq!(rate(998.9e6, 1.0012e9), "0.999 → 1.001 Gbit/s");
        assert_eq!(rate(999.6e6, 999.7e6), "1.000 → 1.000 Gbit/s");
        assert_eq!(rate(10.0e9, 9.5e9), "10.00 → 9.50 Gbit/s");
        assert_eq!(rate(4.06e9, 31.2e6), "4.06 Gbit/s → 31.2 Mbit/s");
        assert_eq!(rate(0.0, 4.06e9), "0 bit/s → 4.06 Gbit/s");
        assert_eq!(
            shown(350_120.0, 349_990.0, Scales::Time, 5),
            "350.12 → 349.99 µs"
        );
        assert_eq!(
            shown(12_345.6, 12_000.0, Scales::Number, 3),
            "12346 → 12000"
        );
        assert_eq!(shown(f64::NAN, 1.0, Scales::Time, 3), "– ns → 1 ns");
    }

    #[test]
    fn times_go_from_nanoseconds_to_hours() {
        assert_eq!(duration_ns(350_000.0), "350 µs");
        assert_eq!(duration(Duration::from_millis(1500)), "1.5 s");
        assert_eq!(duration(Duration::from_secs(95)), "95 s");
        assert_eq!(duration(Duration::from_millis(119_400)), "119.4 s");
        assert_eq!(duration(Duration::from_millis(119_600)), "2 min");
        assert_eq!(duration(Duration::from_secs(157)), "2 min 37 s");
        assert_eq!(duration(Duration::from_secs(3599)), "59 min 59 s");
        assert_eq!(duration(Duration::from_millis(3_599_800)), "1 h");
        assert_eq!(duration(Duration::from_secs(27_360)), "7 h 36 min");
        assert_eq!(duration(Duration::from_secs(7 * 86_400)), "168 h");
        assert_eq!(duration_ns(-157e9), "-2 min 37 s");
        assert_eq!(duration_ns(f64::NAN), "– ns");
        assert_eq!(duration_ns(0.4), "0.4 ns");
    }

    #[test]
    fn an_estimate_has_no_digits_that_it_does_not_support() {
        let seconds = [0.5, 9.2, 52.4, 119.7, 157.0, 3590.0, 27_500.0, 145_000.0];
        let printed = seconds.map(|seconds| estimate_ns(seconds * 1e9));
        assert_eq!(
            printed,
            [
                "500 ms",
                "9.2 s",
                "52 s",
                "2 min",
                "3 min",
                "1 h",
                "7 h 40 min",
                "40 h"
            ]
        );
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

//! Formats numbers as the source reports do: `25.7 ± 2.0 Gbit/s (8 %)`.
//!
//! Mean and distance share unit and decimals, so that they are easy to compare. Numbers below 10
//! have two decimals, below 100 one, above none: more would be noise compared with any spread.
//!
//! A spread that would reach zero or less, of a quantity that cannot, is printed as the range of
//! the repeats: `0.30 ms (repeats 0–0.80)`, not `0.30 ± 0.50 ms (167 %)`.

use stats::{Bound, Comparison, Estimate};
pub(crate) use units::human::counted;

/// `41.5 MiB`.
pub(crate) fn bytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}

/// SI prefixes by size, for rates and counts.
const PREFIXES: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
/// Units of time, in nanoseconds.
const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];

/// A scale for printing values: `value / divisor`, followed by `unit`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    pub(crate) divisor: f64,
    pub(crate) unit: String,
}

impl Scale {
    /// Uses the prefix that makes `value` 1 to 999, before `unit` (`bit/s`).
    pub(crate) fn si(value: f64, unit: &str) -> Self {
        let (divisor, prefix) = fitting(value, &PREFIXES);
        Self {
            divisor,
            unit: format!("{prefix}{unit}"),
        }
    }

    /// Uses the unit of time that makes `value_ns` 1 to 999.
    pub(crate) fn time(value_ns: f64) -> Self {
        let (divisor, unit) = fitting(value_ns, &TIMES);
        Self {
            divisor,
            unit: unit.to_owned(),
        }
    }

    /// With a unit that takes no prefix, such as `frames`.
    pub(crate) fn of(unit: &str) -> Self {
        let (divisor, unit) = (1.0, unit.to_owned());
        Self { divisor, unit }
    }

    /// Without a unit.
    pub(crate) fn plain() -> Self {
        Self::of("")
    }

    /// Returns the number alone.
    pub(crate) fn number(&self, value: f64) -> String {
        let value = value / self.divisor;
        format!("{value:.*}", decimals(value))
    }

    /// Returns number and unit.
    pub(crate) fn value(&self, value: f64) -> String {
        format!("{} {}", self.number(value), self.unit)
            .trim_end()
            .to_owned()
    }

    /// Mean, largest distance from it, unit, per cent: the source reports' format; or mean, unit
    /// and range ([`range_of`]).
    pub(crate) fn estimate(&self, estimate: &Estimate) -> String {
        // The distance has the decimals of the mean, even if it is far smaller.
        let mean = estimate.mean / self.divisor;
        let decimals = decimals(mean);
        let unit = if self.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", self.unit)
        };
        if let Some([low, high]) = range_of(estimate) {
            let range = format!("{}–{}", self.number(low), self.number(high));
            return format!("{mean:.decimals$}{unit} (repeats {range})");
        }
        // A single repeat has no distance, and ± 0 would seem exact.
        match (estimate.n, estimate.largest_distance_percent) {
            (1, _) => format!("{mean:.decimals$}{unit} (n = 1)"),
            (_, share) => {
                let distance = estimate.largest_distance / self.divisor;
                // A mean of 0 has no share, a temperature has no zero that shares could start from,
                // and per cents of per cents would be mistaken for these.
                let has_share = !["%", "°C"].contains(&self.unit.as_str());
                let share = share
                    .filter(|_| has_share)
                    .map_or_else(String::new, |share| format!(" ({})", whole_percent(share)));
                format!("{mean:.decimals$} ± {distance:.decimals$}{unit}{share}")
            }
        }
    }
}

/// The smallest and the largest repeat, if a distance to both sides of the mean would reach zero or
/// less, of a quantity that no repeat shows below zero.
pub(crate) fn range_of(estimate: &Estimate) -> Option<[f64; 2]> {
    let reaches_zero = estimate.mean > 0.0 && estimate.largest_distance >= estimate.mean;
    (reaches_zero && estimate.min >= 0.0).then_some([estimate.min, estimate.max])
}

/// `402 kpps`: a value with the SI prefix that fits it.
pub(crate) fn si(value: f64, unit: &str) -> String {
    Scale::si(value, unit).value(value)
}

/// The largest unit with a rounded value of at least 1; the smallest unit for smaller values.
fn fitting(value: f64, units: &[(f64, &'static str)]) -> (f64, &'static str) {
    // Three digits are printed, so from 999.5 on a number needs the next unit.
    let fits = |(divisor, _): &&(f64, &str)| value.abs() >= 0.9995 * divisor;
    units
        .iter()
        .find(fits)
        .or(units.last())
        .copied()
        .unwrap_or((1.0, ""))
}

fn decimals(value: f64) -> usize {
    // The limits apply to the rounded number: 9.996 is printed as `10.0`.
    match value.abs() {
        0.0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    }
}

/// `25.7 ± 2.0 Gbit/s (8 %)`, for an estimate in bit/s.
pub(crate) fn bit_rate(estimate: &Estimate) -> String {
    Scale::si(estimate.mean, "bit/s").estimate(estimate)
}

/// `7.90 ± 0.10 Gbit/CPU-s (1 %)`.
pub(crate) fn bits_per_cpu_s(estimate: &Estimate) -> String {
    Scale::si(estimate.mean, "bit/CPU-s").estimate(estimate)
}

/// `72.1 ± 2.0 µs (3 %)`, for an estimate in nanoseconds.
pub(crate) fn time(estimate: &Estimate) -> String {
    Scale::time(estimate.mean).estimate(estimate)
}

/// `72.1 µs`.
pub(crate) fn time_ns(value_ns: f64) -> String {
    Scale::time(value_ns).value(value_ns)
}

/// `48.1 ± 1.2 %`, for a loss, or `0.30 % (repeats 0–0.80)`; `0` if nothing was lost.
pub(crate) fn loss(lost: u64, ratio: &Estimate) -> String {
    if lost == 0 {
        return "0".into();
    }
    let (mean, distance) = (100.0 * ratio.mean, 100.0 * ratio.largest_distance);
    match ratio.n {
        1 => format!("{} (n = 1)", percent(mean)),
        // Rounded to 0.00 %, a small loss would look like none.
        _ if mean < 0.01 => "< 0.01 %".into(),
        _ if let Some(ends) = range_of(ratio) => {
            let [low, high] = ends.map(|end| match percent(100.0 * end) {
                text if end > 0.0 => text.trim_end_matches(" %").to_owned(),
                _ => "0".to_owned(),
            });
            format!("{} (repeats {low}–{high})", percent(mean))
        }
        _ => {
            let decimals = if mean < 1.0 { 2 } else { 1 };
            format!("{mean:.decimals$} ± {distance:.decimals$} %")
        }
    }
}

/// `48.1 %`, `0.25 %`, `< 0.01 %`, `-31.1 %`.
pub(crate) fn percent(percent: f64) -> String {
    match percent {
        0.0 => "0 %".into(),
        share if share <= -1.0 => format!("{share:.1} %"),
        share if share <= -0.01 => format!("{share:.2} %"),
        share if share < 0.0 => "> -0.01 %".into(),
        share if share < 0.01 => "< 0.01 %".into(),
        share if share < 1.0 => format!("{share:.2} %"),
        share => format!("{share:.1} %"),
    }
}

/// `8 %`, `< 1 %`.
fn whole_percent(percent: f64) -> String {
    match percent {
        // `0 %` means that all repeats are equal.
        share if share > 0.0 && share < 0.5 => "< 1 %".into(),
        share => format!("{share:.0} %"),
    }
}

/// `0.49`, `18.2`, `0.042`, `0.00039`.
pub(crate) fn ratio_number(ratio: f64) -> String {
    let decimals = match ratio {
        ratio if ratio >= 99.95 => 0,
        ratio if ratio >= 9.995 => 1,
        ratio if ratio >= 0.0995 => 2,
        // Zero is included here: the last arm would print it with five decimals.
        ratio if ratio >= 0.00995 || ratio <= 0.0 => 3,
        ratio if ratio >= 0.000_995 => 4,
        _ => 5,
    };
    format!("{ratio:.decimals$}")
}

/// `0.49 (0.48–0.50)`: the ratio and its 95 % interval; `≤ 0.49 (0.48–0.50)` for a bound.
pub(crate) fn ratio(comparison: &Comparison) -> String {
    let bound = match comparison.bound {
        None => "",
        Some(Bound::AtMost) => "≤ ",
        Some(Bound::AtLeast) => "≥ ",
        Some(Bound::Neither) => "~ ",
    };
    let ends = comparison.low.zip(comparison.high);
    format!("{bound}{}", ratio_with(comparison.ratio, ends))
}

/// A ratio with the ends of its interval. It has more digits if an end would round to 1, so that
/// the text shows the side of 1.
pub(crate) fn ratio_with(ratio: f64, ends: Option<(f64, f64)>) -> String {
    let Some((low, high)) = ends else {
        return ratio_number(ratio);
    };
    let with = |decimals: Option<usize>| {
        let number = |value: f64| match decimals {
            Some(decimals) => format!("{value:.decimals$}"),
            None => ratio_number(value),
        };
        (number(ratio), number(low), number(high))
    };
    let is_one = |text: &str| text.trim_end_matches('0') == "1.";
    // The usual digits, then up to six decimals: the first that show the side of 1.
    let all = [None, Some(3), Some(4), Some(5), Some(6)].map(with);
    let shows = |(_, low, high): &&(String, String, String)| !is_one(low) && !is_one(high);
    let fitting = all.iter().find(shows);
    // An end of exactly 1 is printed as 1 with any number of decimals.
    let (ratio, low, high) = fitting.unwrap_or(&all[0]);
    format!("{ratio} ({low}–{high})")
}

/// `repeats up to 3.2 h apart`, for pairs measured before and after a resume.
pub(crate) fn apart(apart_ns: Option<u64>) -> Option<String> {
    let apart = units::human::duration_ns(apart_ns? as f64);
    Some(format!("repeats up to {apart} apart"))
}

/// A command line that a shell parses into the same words.
pub(crate) fn command_line(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    quoted.join(" ")
}

/// Lowers the first letter, except that of an abbreviation.
pub(crate) fn uncapitalized(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => text.to_owned(),
    }
}

/// A word as a shell reads it back, such as the path of a folder.
pub(crate) fn quoted(word: &str) -> String {
    // A list of harmless characters is safer than one of all that a shell interprets.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        // Between single quotes nothing is special but the quote itself, which must be outside of
        // them.
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

pub(crate) fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        // The upper case of one character may be several.
        first.to_uppercase().chain(characters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Sample;

    fn estimate(values: &[f64]) -> Estimate {
        let samples = (1..)
            .zip(values)
            .map(|(repeat, &value)| Sample { repeat, value });
        Estimate::of(samples.collect()).unwrap()
    }

    #[test]
    fn the_source_reports_own_cell_is_printed_as_there() {
        assert_eq!(
            bit_rate(&estimate(&[25.7e9, 23.7e9, 27.7e9])),
            "25.7 ± 2.0 Gbit/s (8 %)"
        );
    }

    #[test]
    fn mean_and_distance_share_unit_and_decimals() {
        assert_eq!(
            bit_rate(&estimate(&[772e6, 760e6, 784e6])),
            "772 ± 12 Mbit/s (2 %)"
        );
        assert_eq!(
            bit_rate(&estimate(&[7.11e9, 7.114e9])),
            "7.11 ± 0.00 Gbit/s (< 1 %)"
        );
        assert_eq!(
            bit_rate(&estimate(&[999.6e6, 999.6e6])),
            "1.00 ± 0.00 Gbit/s (0 %)"
        );
        assert_eq!(bit_rate(&estimate(&[7.11e9])), "7.11 Gbit/s (n = 1)");
        assert_eq!(bit_rate(&estimate(&[0.0, 0.0])), "0 ± 0 bit/s");
        assert_eq!(time(&estimate(&[72e3, 74e3])), "73.0 ± 1.0 µs (1 %)");
    }

    #[test]
    fn a_spread_never_reaches_below_zero() {
        let printed = [
            &[0.0, 0.1e6, 0.8e6][..],
            &[0.0, 2.0e6],
            &[0.9e6, 1.1e6],
            &[0.0, 0.0],
            // Differences may be negative, and so may their spread.
            &[-0.1e6, 0.3e6],
        ]
        .map(|values| time(&estimate(values)));
        assert_eq!(
            printed,
            [
                "300 µs (repeats 0–800)",
                "1.00 ms (repeats 0–2.00)",
                "1.00 ± 0.10 ms (10 %)",
                "0 ± 0 ns",
                "100 ± 200 µs (200 %)"
            ]
        );
        let shares = ["%", "°C", "W"].map(|unit| Scale::of(unit).estimate(&estimate(&[9.0, 11.0])));
        assert_eq!(
            shares,
            ["10.0 ± 1.0 %", "10.0 ± 1.0 °C", "10.0 ± 1.0 W (10 %)"]
        );
        assert_eq!(
            loss(9, &estimate(&[0.0, 0.001, 0.008])),
            "0.30 % (repeats 0–0.80)"
        );
        let found = estimate(&[0.0, 1.0, 5.0]);
        assert!(found.interval_95.ends().unwrap().0.abs() < f64::EPSILON);
    }

    #[test]
    fn no_loss_is_distinguished_from_hardly_any() {
        assert_eq!(loss(0, &estimate(&[0.0, 0.0])), "0");
        assert_eq!(loss(1, &estimate(&[0.0, 1e-6])), "< 0.01 %");
        assert_eq!(loss(9, &estimate(&[0.0024, 0.0026])), "0.25 ± 0.01 %");
        assert_eq!(loss(9, &estimate(&[0.47, 0.49])), "48.0 ± 1.0 %");
    }

    #[test]
    fn a_negative_share_keeps_its_sign() {
        let texts = [-31.1, -0.25, -0.001, 0.0, 0.001, 0.25].map(percent);
        assert_eq!(
            texts,
            [
                "-31.1 %",
                "-0.25 %",
                "> -0.01 %",
                "0 %",
                "< 0.01 %",
                "0.25 %"
            ]
        );
    }

    #[test]
    fn ratios_keep_three_digits_or_so() {
        assert_eq!(ratio_number(0.4872), "0.49");
        assert_eq!(ratio_number(0.0424), "0.042");
        assert_eq!(ratio_number(18.24), "18.2");
        assert_eq!(ratio_number(180.2), "180");
    }

    #[test]
    fn an_interval_shows_on_which_side_of_1_its_ends_are() {
        assert_eq!(ratio_with(0.49, Some((0.48, 0.5))), "0.49 (0.48–0.50)");
        assert_eq!(ratio_with(0.99, Some((0.97, 1.01))), "0.99 (0.97–1.01)");
        assert_eq!(
            ratio_with(0.99, Some((0.98, 0.9981))),
            "0.990 (0.980–0.998)"
        );
        assert_eq!(
            ratio_with(1.001, Some((0.998, 1.01))),
            "1.001 (0.998–1.010)"
        );
        assert_eq!(ratio_with(1.0, Some((1.0, 1.0))), "1.00 (1.00–1.00)");
        assert_eq!(ratio_with(0.99, None), "0.99");
    }

    #[test]
    fn command_lines_can_be_pasted_into_a_shell() {
        let words = ["iperf3", "-c", "10.0.0.2", "a b", "", "it's", "$HOME;rm"];
        let line = command_line(&words.map(str::to_owned));
        assert_eq!(line, r"iperf3 -c 10.0.0.2 'a b' '' 'it'\''s' '$HOME;rm'");
        let echoed = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s\\n' {line}")])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(echoed.stdout).unwrap(),
            words.join("\n") + "\n"
        );
    }
}

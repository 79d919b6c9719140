//! Durations, as [`std::time::Duration`]: `1.5 s`, `500 ms`, `2 min`.

use crate::ParseError;
use crate::decimal;
use crate::quantity::Quantity;
use std::time::Duration;

const DURATION: Quantity = Quantity {
    noun: "duration",
    smallest: "nanoseconds",
    units: &[
        ("ns", 1),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", NS_PER_S),
        ("min", 60 * NS_PER_S),
        ("h", 3_600 * NS_PER_S),
    ],
    aliases: &[
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("msec", "ms"),
        ("millisecond", "ms"),
        ("milliseconds", "ms"),
        ("usec", "µs"),
        ("microseconds", "µs"),
        ("nsec", "ns"),
        ("nanoseconds", "ns"),
        ("m", "min"),
        ("mins", "min"),
        ("minute", "min"),
        ("minutes", "min"),
        ("hr", "h"),
        ("hour", "h"),
        ("hours", "h"),
    ],
    example: "30 s",
    likely_unit: |_| "s",
};

const NS_PER_S: u64 = 1_000_000_000;

/// Reads a duration: a number and `ns`, `µs` (or `us`), `ms`, `s`, `min` or `h`.
///
/// # Errors
/// When it is anything else, finer than a nanosecond, or longer than 584 years.
pub fn parse(text: &str) -> Result<Duration, ParseError> {
    // The micro sign has two code points, and keyboards often have neither.
    let text = match text
        .strip_suffix("us")
        .or_else(|| text.strip_suffix("\u{3bc}s"))
    {
        Some(number) => &format!("{number}µs"),
        None => text,
    };
    DURATION.parse(text).map(Duration::from_nanos)
}

/// Prints a duration exactly; hours and minutes only when they are whole, else seconds and less.
#[must_use]
pub fn print(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), u64::from(duration.subsec_nanos()));
    match (seconds, nanos) {
        // By the units it would be `0 ns`.
        (0, 0) => "0 s".to_owned(),
        (0, _) => DURATION.print(nanos),
        // Whole hours and minutes read back as the same duration; a fraction of one need not be
        // decimal: 100 s are 1.666… min.
        (_, 0) if seconds.is_multiple_of(3_600) => format!("{} h", seconds / 3_600),
        (_, 0) if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        (_, 0) => format!("{seconds} s"),
        // Not by the units: seconds and nanoseconds together may exceed 64 bits of nanoseconds.
        _ => format!(
            "{seconds}{} s",
            // `0.5` without its zero is appended to the seconds.
            decimal::print(nanos, NS_PER_S).trim_start_matches('0')
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use proptest::prelude::*;

    #[test]
    fn reads_every_unit() {
        assert_eq!(parse("30 s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("350 µs"), Ok(Duration::from_micros(350)));
        assert_eq!(parse("350 \u{3bc}s"), Ok(Duration::from_micros(350)));
        assert_eq!(parse("350 us"), Ok(Duration::from_micros(350)));
        assert_eq!(parse("7 ns"), Ok(Duration::from_nanos(7)));
        assert_eq!(parse("2 min"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("2 h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse("0 s"), Ok(Duration::ZERO));
    }

    #[test]
    fn a_number_without_unit_is_shown_with_the_likely_one() {
        let error = parse("30").unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoUnit);
        assert_eq!(error.to_string(), "duration `30` has no unit");
        assert_eq!(
            error.help(),
            "write `30 s`; units are ns, µs, ms, s, min, h"
        );
    }

    #[test]
    fn a_near_miss_gets_the_intended_unit() {
        let error = parse("30 seconds").unwrap_err();
        assert_eq!(
            error.to_string(),
            "duration `30 seconds` has the unknown unit `seconds`"
        );
        assert!(
            error.help().starts_with("write `30 s`;"),
            "{}",
            error.help()
        );
        assert!(
            parse("2 m")
                .unwrap_err()
                .help()
                .starts_with("write `2 min`;")
        );
    }

    #[test]
    fn refuses_what_is_not_a_duration() {
        assert_eq!(
            parse("-1 s").unwrap_err().to_string(),
            "duration `-1 s` is negative"
        );
        assert_eq!(parse("").unwrap_err().to_string(), "duration is empty");
        assert_eq!(
            parse("soon").unwrap_err().to_string(),
            "`soon` is not a duration"
        );
        assert_eq!(parse("1.5 ns").unwrap_err().kind, ErrorKind::NotWhole);
        assert_eq!(
            parse("99999999999 h").unwrap_err().kind,
            ErrorKind::TooLarge
        );
        assert_eq!(
            parse("1 h 30 min").unwrap_err().kind,
            ErrorKind::UnknownUnit
        );
        assert_eq!(parse("1e3 s").unwrap_err().kind, ErrorKind::UnknownUnit);
    }

    #[test]
    fn prints_minutes_and_hours_only_when_whole() {
        assert_eq!(print(Duration::from_secs(90)), "90 s");
        assert_eq!(print(Duration::from_secs(120)), "2 min");
        assert_eq!(print(Duration::from_secs(5400)), "90 min");
        assert_eq!(print(Duration::from_secs(7200)), "2 h");
        assert_eq!(print(Duration::from_millis(61_500)), "61.5 s");
        assert_eq!(print(Duration::from_millis(1)), "1 ms");
        assert_eq!(print(Duration::ZERO), "0 s");
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(ns: u64) {
            let duration = Duration::from_nanos(ns);
            prop_assert_eq!(parse(&print(duration)), Ok(duration));
        }

        #[test]
        fn reads_back_whole_seconds(seconds in 0u64..1_000_000) {
            let duration = Duration::from_secs(seconds);
            prop_assert_eq!(parse(&print(duration)), Ok(duration));
        }

        #[test]
        fn never_panics(text in any::<String>(), number in "[0-9.]{0,40}", unit in "[a-zµ/]{0,4}") {
            let _ = parse(&text);
            let _ = parse(&format!("{number} {unit}"));
        }
    }
}

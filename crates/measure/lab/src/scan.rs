//! Numbers in what programs print.

/// Returns the first whole number: digits with no letter, digit or dot before or after them.
pub(crate) fn first_number(said: &str) -> Option<u64> {
    words(said).find_map(|(_, word)| word.parse().ok())
}

/// Returns the first number in decimal notation, with its sign: `-12.5`. No letter, digit or dot is
/// directly before or after it.
pub(crate) fn first_decimal(said: &str) -> Option<f64> {
    words(said).find_map(|(at, word)| {
        let is_decimal = |c: char| c.is_ascii_digit() || c == '.';
        let fits = word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(is_decimal);
        let value: f64 = fits.then(|| word.parse().ok())??;
        let mut before = said[..at].chars().rev();
        let is_negative = before.next() == Some('-')
            && before.next().is_none_or(|c| c.is_whitespace() || c == '=');
        Some(if is_negative { -value } else { value })
    })
}

/// Runs of letters, digits, dots and `_`, without dots at the end, and where they begin.
fn words(said: &str) -> impl Iterator<Item = (usize, &str)> {
    let of_word = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
    let mut from = 0;
    let pieces = said.split_inclusive(move |c: char| !of_word(c));
    pieces.map(move |piece| {
        let at = from;
        from += piece.len();
        let word = piece.trim_end_matches(|c: char| !of_word(c));
        (at, word.trim_end_matches('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_number_is_a_whole_one() {
        for (said, number) in [
            ("  Encrypted packets:        1234", Some(1234)),
            ("ge-0/0/1.0 in 17", Some(0)),
            ("gw1 192.0.2.1 rate 1.5 count 42.", Some(42)),
            ("packets=7 bytes=8", Some(7)),
            ("none at all", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(first_number(said), number, "{said}");
        }
    }

    #[test]
    fn the_first_decimal_has_its_sign_and_its_fraction() {
        for (said, number) in [
            ("Core 0:        +41.5°C  (high = +80.0°C)", Some(0.0)),
            ("+41.5°C", Some(41.5)),
            ("temp=-12.25 C", Some(-12.25)),
            ("    Instantaneous power reading:   212 Watts", Some(212.0)),
            ("192.0.2.1 37%", Some(37.0)),
            ("2026-11-27", Some(2026.0)),
            ("inf nan 1e5 0x10", None),
            ("", None),
        ] {
            assert_eq!(first_decimal(said), number, "{said}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_and_what_is_printed_is_found(
            before in "[^0-9.]{0,9}[ \n:]",
            value in -1_000_000_i64..1_000_000,
            any in ".*",
        ) {
            let _ = (first_number(&any), first_decimal(&any));
            let printed = format!("{before} {:.3} W", value as f64 / 1000.0);
            prop_assert_eq!(first_decimal(&printed), Some(value as f64 / 1000.0));
        }
    }
}

//! Numbers, fields and texts in the output of programs.

/// Separators between groups of three digits that have no other meaning in a number. A comma is
/// included although it may be a decimal one.
const SEPARATORS: [char; 6] = [',', '\'', '\u{2019}', '\u{a0}', '\u{202f}', '\u{2009}'];

/// The value of `key: value` in a text.
pub(crate) fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(name, _)| name.trim() == key)?;
    Some(value.trim())
}

/// The beginning of a text, on one line.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns the first whole number: digits with no letter, digit or dot next to them. Thousands may
/// be separated: `1,234,567`. `1 234` may be one number or two, so it is rejected.
pub(crate) fn first_number(said: &str) -> Option<u64> {
    let (at, word, number) = words(said).find_map(|(at, word)| Some((at, word, whole(word)?)))?;
    (spaced_groups(word, &said[at + word.len()..]) == 0).then_some(number)
}

/// Returns the first number in decimal notation, with its sign: `-12.5`. No letter, digit or dot
/// may be next to it. Thousands may be separated if that is unambiguous: `1,234.5`; `1,234` may
/// have a decimal comma, so it is rejected.
pub(crate) fn first_decimal(said: &str) -> Option<f64> {
    let begins = |(_, word): &(usize, &str)| {
        let of_number = |c: char| c.is_ascii_digit() || c == '.' || SEPARATORS.contains(&c);
        word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(of_number)
    };
    let fits = |found: &(usize, &str)| begins(found) && found.1.matches('.').count() < 2;
    let (at, word) = words(said).find(fits)?;
    if spaced_groups(word, &said[at + word.len()..]) > 1 {
        return None;
    }
    let value: f64 = match word.split_once('.') {
        Some((integer, fraction)) => format!("{}.{fraction}", whole(integer)?).parse().ok()?,
        None if word.matches(',').count() == 1 => return None,
        None => whole(word)? as f64,
    };
    // Only a minus that begins a word is a sign: not in `port-5`.
    let mut before = said[..at].chars().rev();
    let is_negative =
        before.next() == Some('-') && before.next().is_none_or(|c| c.is_whitespace() || c == '=');
    Some(if is_negative { -value } else { value })
}

/// Parses a whole number, with or without one kind of separator between groups of three digits.
pub(crate) fn whole(word: &str) -> Option<u64> {
    let Some(separator) = word.chars().find(|c| SEPARATORS.contains(c)) else {
        let is_number = word.bytes().all(|b| b.is_ascii_digit());
        return is_number.then(|| word.parse().ok())?;
    };
    let mut groups = word.split(separator);
    let first = groups.next()?;
    // Otherwise the separator may be a decimal comma.
    let are_three = groups.clone().all(|group| group.len() == 3);
    let digits: String = groups.fold(first.to_owned(), |digits, group| digits + group);
    let is_number = digits.bytes().all(|b| b.is_ascii_digit());
    let fits = (1..=3).contains(&first.len()) && are_three && is_number;
    fits.then(|| digits.parse().ok())?
}

/// Counts the groups of exactly three digits that follow `word` in `rest`, each after one space:
/// they may belong to the same number.
fn spaced_groups(word: &str, rest: &str) -> usize {
    // Longer digits without separators are not the first group of a number.
    if word.len() > 3 {
        return 0;
    }
    let mut count = 0;
    let mut rest = rest;
    while let Some(next) = rest.strip_prefix(' ') {
        let end = next
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(next.len());
        let is_whole = next[end..].chars().next().is_none_or(char::is_whitespace);
        if end != 3 || !is_whole {
            break;
        }
        (count, rest) = (count + 1, &next[end..]);
    }
    count
}

/// Returns runs of letters, digits, dots and `_`, without trailing dots, and their offsets. A
/// separator between digits belongs to the run.
fn words(said: &str) -> impl Iterator<Item = (usize, &str)> {
    let of_word = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
    let is_separator = move |at: usize, c: char| {
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let after = said[at + c.len_utf8()..].chars().next();
        SEPARATORS.contains(&c) && is_digit(said[..at].chars().next_back()) && is_digit(after)
    };
    let belongs = move |at: usize, c: char| of_word(c) || is_separator(at, c);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = said[from..]
            .char_indices()
            .find(|&(at, c)| belongs(from + at, c));
        let start = from + start?.0;
        let mut rest = said[start..].char_indices();
        let end = rest.find(|&(at, c)| !belongs(start + at, c));
        let end = end.map_or(said.len(), |(at, _)| start + at);
        from = end;
        Some((start, said[start..end].trim_end_matches('.')))
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
    fn separated_thousands_are_one_number_and_what_may_be_two_is_none() {
        for (said, number) in [
            ("1,234,567", Some(1_234_567)),
            ("packets: 1,234 of 5", Some(1_234)),
            ("1'234'567 B", Some(1_234_567)),
            ("1\u{202f}234\u{202f}567", Some(1_234_567)),
            ("1\u{a0}234", Some(1_234)),
            ("1 234 567", None),
            ("in 12 345", None),
            ("in 12 34", Some(12)),
            ("in 12  345", Some(12)),
            ("in 1234 567", Some(1234)),
            ("1,23 then 7", Some(7)),
            ("1.2K", None),
            ("1,234'567", None),
            ("7, 8", Some(7)),
        ] {
            assert_eq!(first_number(said), number, "{said}");
        }
        for (said, number) in [
            ("1,234.5 W", Some(1234.5)),
            ("1,234,567", Some(1_234_567.0)),
            ("1,234 W", None),
            ("12,5 W", None),
            ("45 250", Some(45.0)),
            ("1 234 567", None),
        ] {
            assert_eq!(first_decimal(said), number, "{said}");
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

//! Marks inside numbers: decimal marks and separators of thousands.
//!
//! Two different marks in one number are never ambiguous: the last is the decimal mark. A mark that
//! occurs twice is unambiguous too, and so is one that is not followed by exactly three digits.
//! Only numbers like `1,234` and `1.234` are ambiguous. A point is usually a decimal mark, so such
//! numbers are read with a decimal point, unless another mark separates the cells of the file.

use std::ops::Range;

/// The mark of a decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decimal {
    /// `1.5`.
    Point,
    /// `1,5`.
    Comma,
}

/// The evidence of numbers for their decimal mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// At least one number can only have a decimal point.
    pub(crate) point: bool,
    /// At least one number can only have a decimal comma.
    pub(crate) comma: bool,
    /// A comma that may be either: `1,234`.
    pub(crate) unclear_comma: bool,
    /// A point that may be either: `1.234`.
    pub(crate) unclear_point: bool,
    /// A whole number of four digits or more without a mark: thousands are not separated.
    pub(crate) unmarked: bool,
}

impl Evidence {
    /// Returns the evidence of a text's numbers.
    pub(crate) fn of(text: &str) -> Self {
        let mut found = Self::default();
        for range in numbers(text) {
            found.add(&text[range]);
        }
        found
    }

    /// Combines both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            point: self.point || other.point,
            comma: self.comma || other.comma,
            unclear_comma: self.unclear_comma || other.unclear_comma,
            unclear_point: self.unclear_point || other.unclear_point,
            unmarked: self.unmarked || other.unmarked,
        }
    }

    /// Returns the mark, if the evidence is for one alone.
    pub(crate) const fn decimal(self) -> Option<Decimal> {
        match (self.point, self.comma) {
            (true, false) => Some(Decimal::Point),
            (false, true) => Some(Decimal::Comma),
            _ => None,
        }
    }

    /// Whether every number with a point may have it before thousands, and none shows what it is.
    pub(crate) const fn is_point_unclear(self) -> bool {
        self.unclear_point && !self.point && !self.comma && !self.unmarked
    }

    fn add(&mut self, number: &str) {
        let count = |mark: char| number.matches(mark).count();
        let (points, commas) = (count('.'), count(','));
        let last = number.rfind(['.', ',']);
        match (points, commas) {
            (0, 0) => {
                let digits = number.bytes().filter(u8::is_ascii_digit).count();
                self.unmarked |= digits > 3 && digits == number.len();
            }
            (1.., 1..) => {
                let is_point = last.is_some_and(|at| number[at..].starts_with('.'));
                // 1,234.5 and 1.234,5; the decimal mark occurs once.
                self.point |= is_point && points == 1;
                self.comma |= !is_point && commas == 1;
            }
            // `1.234.567`: a decimal mark occurs once, so points that repeat separate thousands and
            // the decimal mark is the comma. Without groups of three, as in `1.2.3`, the number is
            // a version or a date and shows nothing.
            (2.., 0) => self.comma |= has_groups(number, '.'),
            (0, 2..) => self.point |= has_groups(number, ','),
            (1, 0) if has_groups(number, '.') => self.unclear_point = true,
            (1, 0) => self.point = true,
            (0, 1) if has_groups(number, ',') => self.unclear_comma = true,
            (0, 1) => self.comma = true,
        }
    }
}

/// Returns the text with decimal points and without marks of thousands. A number that does not fit
/// the decimal mark is not changed, and is no figure then.
pub(crate) fn plain(text: &str, decimal: Decimal) -> String {
    let (point, thousands) = match decimal {
        Decimal::Point => ('.', ','),
        Decimal::Comma => (',', '.'),
    };
    let mut plain = String::with_capacity(text.len());
    let mut from = 0;
    for range in numbers(text) {
        plain.push_str(&text[from..range.start]);
        from = range.end;
        let number = &text[range];
        let (whole, fraction) = match number.split_once(point) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        // A second decimal mark, or a mark of thousands behind it, makes the text no number of this
        // kind. It stays as printed, so that the message about it quotes the file.
        let fits = fraction.is_none_or(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
        if !fits || (whole.contains(thousands) && !has_groups(whole, thousands)) {
            plain.push_str(number);
            continue;
        }
        plain.extend(whole.chars().filter(char::is_ascii_digit));
        if let Some(fraction) = fraction {
            plain.push('.');
            plain.push_str(fraction);
        }
    }
    plain.push_str(&text[from..]);
    plain
}

/// Whether a mark separates groups of three digits, after one to three that begin with no zero.
fn has_groups(number: &str, mark: char) -> bool {
    let whole: String = number.chars().filter(|c| !is_spacer(*c)).collect();
    let mut groups = whole.split(mark);
    let first = groups.next().unwrap_or_default();
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    (1..=3).contains(&first.len())
        && digits(first)
        && !first.starts_with('0')
        && groups.all(|group| group.len() == 3 && digits(group))
}

/// Marks that separate thousands and nothing else.
const fn is_spacer(c: char) -> bool {
    matches!(c, ' ' | '\'' | '’' | '_')
}

/// Returns the numbers of a text with the marks inside them.
fn numbers(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(|c: char| c.is_ascii_digit()) {
        let start = at + start;
        let mut end = start;
        while let Some(next) = next_end(&text[start..], end - start) {
            end = start + next;
        }
        found.push(start..end);
        at = end;
    }
    found
}

/// Returns the end after one more digit, or after a mark and a digit; `None` at the number's end.
fn next_end(text: &str, end: usize) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.bytes().take_while(u8::is_ascii_digit).count()
    };
    let c = text[end..].chars().next()?;
    if c.is_ascii_digit() {
        return Some(end + 1);
    }
    let after = end + c.len_utf8();
    if matches!(c, '.' | ',') {
        return (digits(after) > 0).then_some(after);
    }
    if !is_spacer(c) {
        return None;
    }
    // A group of exactly three digits, after one of one to three.
    let before = text[..end].bytes().rev();
    let before = before.take_while(u8::is_ascii_digit).count();
    (digits(after) == 3 && (1..=3).contains(&before)).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_different_marks_are_not_ambiguous() {
        let of = |text: &str| Evidence::of(text).decimal();
        assert_eq!(of("1.049,2"), Some(Decimal::Comma));
        assert_eq!(of("1,049.2"), Some(Decimal::Point));
        assert_eq!(of("1,234,567"), Some(Decimal::Point));
        assert_eq!(of("1.234.567"), Some(Decimal::Comma));
        assert_eq!(of("49,2"), Some(Decimal::Comma));
        assert_eq!(of("1,234"), None);
        assert_eq!(of("1.234"), None);
        assert!(Evidence::of("1,234").unclear_comma);
        for (texts, expected) in [
            (&["844.594", "1.234"][..], true),
            (&["844.594", "700"], true),
            (&["844.594", "49.2"], false),
            (&["844.594", "0.123"], false),
            (&["844.594", "1488095"], false),
            (&["844.594", "9,5"], false),
            (&["700"], false),
        ] {
            let all = texts.iter().map(|text| Evidence::of(text));
            let all = all.fold(Evidence::default(), Evidence::and);
            assert_eq!(all.is_point_unclear(), expected, "{texts:?}");
        }
    }

    #[test]
    fn marks_of_thousands_are_left_out() {
        for (text, decimal, expected) in [
            ("1.049,2 ± 3,5", Decimal::Comma, "1049.2 ± 3.5"),
            ("1,234,567", Decimal::Point, "1234567"),
            ("1 234 567 pps", Decimal::Point, "1234567 pps"),
            ("1'234.5", Decimal::Point, "1234.5"),
            ("25..30", Decimal::Point, "25..30"),
            ("49,2", Decimal::Point, "49,2"),
            ("1.2.3", Decimal::Point, "1.2.3"),
            ("10 20", Decimal::Point, "10 20"),
            ("533/356", Decimal::Comma, "533/356"),
        ] {
            assert_eq!(plain(text, decimal), expected);
        }
    }
}

//! One number at the start of a text, with a decimal point and perhaps an exponent.

/// A number as printed.
pub(crate) struct Number {
    pub(crate) value: f64,
    /// The step of its last printed digit.
    pub(crate) step: f64,
    /// Digits from the first that is not zero to the last that is printed.
    pub(crate) digits: usize,
    /// As `digits`, without zeros at the end.
    pub(crate) significant: usize,
}

/// Figures of a report have no larger exponents.
const EXPONENT_MAX: i32 = 30;
/// Figures have fewer digits, and the step of longer numbers would be zero.
const LENGTH_MAX: usize = 18;
const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// Returns the number at the start of a text, and the rest.
pub(crate) fn number(text: &str) -> Option<(Number, &str)> {
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
    let mantissa: f64 = printed.parse().ok()?;
    // `end` is after the last digit: the point of `5.` is not part of the number.
    let decimals = point.filter(|at| *at < end).map_or(0, |at| end - at - 1);
    let digits: String = printed.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0');
    let (exponent, rest) = exponent(&text[end..]);
    if printed.len() > LENGTH_MAX || exponent.abs() > EXPONENT_MAX {
        return None;
    }
    // Parsed as a whole, so that 1.2e9 is exactly 1200000000.
    let value = match exponent {
        0 => mantissa,
        _ => format!("{}e{exponent}", printed.trim_end_matches('.'))
            .parse()
            .ok()?,
    };
    let number = Number {
        value,
        step: 10f64.powi(exponent - decimals as i32),
        digits: digits.len(),
        significant: digits.trim_end_matches('0').len(),
    };
    Some((number, rest))
}

/// Returns an exponent (`e9`, `E+09`, `×10^9`, `·10⁹`; 0 if absent), and the rest.
fn exponent(text: &str) -> (i32, &str) {
    let signed = |rest: &str| -> Option<(i32, usize)> {
        let sign = usize::from(rest.starts_with(['+', '-']));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let length = sign + digits;
        (1..=3).contains(&digits).then_some(())?;
        Some((rest[..length].parse().ok()?, length))
    };
    if let Some(rest) = text.strip_prefix(['e', 'E']) {
        return signed(rest).map_or((0, text), |(found, length)| (found, &rest[length..]));
    }
    let power = text.trim_start();
    let power = power
        .strip_prefix(['×', '·', 'x', '*'])
        .map(str::trim_start);
    let Some(power) = power.and_then(|it| it.strip_prefix("10")) else {
        return (0, text);
    };
    if let Some(rest) = power.strip_prefix('^') {
        return signed(rest).map_or((0, text), |(found, length)| (found, &rest[length..]));
    }
    let mut exponent = 0;
    let mut rest = power;
    while let Some(c) = rest.chars().next() {
        let Some(digit) = SUPERSCRIPTS.iter().position(|known| *known == c) else {
            break;
        };
        // The limit avoids an overflow and is refused above as too large.
        exponent = (exponent * 10 + digit as i32).min(1000);
        rest = &rest[c.len_utf8()..];
    }
    if rest.len() == power.len() {
        (0, text)
    } else {
        (exponent, rest)
    }
}

//! Units of published figures, in the spellings that reports use.

/// The quantity of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Bits per second.
    BitRate,
    /// Frames per second.
    FrameRate,
    /// A share in per cent.
    Percent,
    /// Seconds.
    Time,
    /// Anything else: operations per second.
    Other,
}

/// A unit as a report spells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The spelling.
    pub text: String,
    /// Its quantity.
    pub quantity: Quantity,
    /// Bits, frames or operations per second, seconds, or per cent in one of it.
    pub scale: f64,
}

/// Names without their prefix, in lower case. A capital `B` is a byte in rates: eight bits.
const BIT_RATES: [&str; 9] = [
    "bit/s",
    "bits/s",
    "bps",
    "b/s",
    "b/sec",
    "bit/sec",
    "bits/sec",
    "bits/second",
    "bits per second",
];
const FRAME_RATES: [&str; 11] = [
    "frames/s",
    "frames/sec",
    "fps",
    "pps",
    "packets/s",
    "packets/sec",
    "packets/second",
    "pkt/s",
    "pkts/s",
    "frames per second",
    "packets per second",
];
const OPERATION_RATES: [&str; 13] = [
    "/s",
    "operations/s",
    "operations/sec",
    "ops/s",
    "ops/sec",
    "op/s",
    "ops/second",
    "sign/s",
    "verify/s",
    "requests/s",
    "requests/sec",
    "transactions/s",
    "connections/s",
];
/// Names with a capital `B`, or with the word.
const BYTE_RATES: [&str; 12] = [
    "B/s",
    "B/sec",
    "Bps",
    "Byte/s",
    "Bytes/s",
    "byte/s",
    "bytes/s",
    "Byte/sec",
    "Bytes/sec",
    "byte/sec",
    "bytes/sec",
    "bytes/second",
];
const TIMES: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("sec", 1.0),
    ("h", 3600.0),
];
/// Words for powers of ten, in English and German data sheets, and their prefixes. Longer ones
/// come before those that they begin with.
const NUMBER_WORDS: [(&str, char); 14] = [
    ("thousand", 'k'),
    ("tsd.", 'k'),
    ("tsd", 'k'),
    ("millionen", 'M'),
    ("millions", 'M'),
    ("million", 'M'),
    ("mio.", 'M'),
    ("mio", 'M'),
    ("milliarden", 'G'),
    ("milliard", 'G'),
    ("mrd.", 'G'),
    ("mrd", 'G'),
    ("mia.", 'G'),
    ("mia", 'G'),
];
/// The spellings that error messages list.
pub(crate) const KNOWN: &str = "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, MB/s, MiB/s, frames/s, kpps, operations/s, %, \
                                ns, µs, ms, s";

impl Unit {
    /// Whether figures of both can be compared as they are printed.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        // Scales are products of powers of ten and two, without error.
        self.quantity == other.quantity && self.scale.to_bits() == other.scale.to_bits()
    }

    /// Reads a unit; `None` if unknown.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let made = |quantity, scale| {
            Some(Self {
                text: text.to_owned(),
                quantity,
                scale,
            })
        };
        if text == "%" || text.starts_with("% of ") {
            return made(Quantity::Percent, 1.0);
        }
        // Times come before prefixes: the `m` of `ms` is no mega.
        if let Some((_, scale)) = TIMES.iter().find(|(name, _)| *name == text) {
            return made(Quantity::Time, *scale);
        }
        let (prefix, rest) = prefixed(text);
        let (quantity, scale) = rate(rest)?;
        made(quantity, scale * prefix)
    }

    /// Whether it counts bytes: `MB/s`.
    pub(crate) fn is_of_bytes(&self) -> bool {
        let (_, bare) = prefixed(&self.text);
        BYTE_RATES.contains(&bare)
    }

    /// Whether its prefix counts 1024: `MiB/s`.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        let mut letters = self.text.chars();
        let prefix = letters.next();
        prefix.is_some_and(|c| "kKmMgGtT".contains(c))
            && letters.next() == Some('i')
            && letters.as_str().starts_with(['b', 'B'])
    }

    /// Returns this unit with another prefix, as `openssl speed` prints `743.38k` for bytes per
    /// second; `None` if it takes none.
    #[must_use]
    pub fn with_prefix(&self, prefix: char) -> Option<Self> {
        if matches!(self.quantity, Quantity::Percent | Quantity::Time) {
            return None;
        }
        let (_, bare) = prefixed(&self.text);
        Self::parse(&format!("{prefix}{bare}"))
    }
}

/// The quantity of a rate without prefix, and its scale.
fn rate(name: &str) -> Option<(Quantity, f64)> {
    if BYTE_RATES.contains(&name) {
        return Some((Quantity::BitRate, 8.0));
    }
    // Only after the rates in bytes: `MB/s` and `Mb/s` differ by the case alone.
    let name = name.to_lowercase();
    let is_in = |names: &[&str]| names.contains(&name.as_str());
    let quantity = if is_in(&BIT_RATES) {
        Quantity::BitRate
    } else if is_in(&FRAME_RATES) {
        Quantity::FrameRate
    } else {
        is_in(&OPERATION_RATES).then_some(Quantity::Other)?
    };
    Some((quantity, 1.0))
}

/// Returns the prefix that a word at the start of a text stands for, and the rest: `Mio pps`.
pub(crate) fn number_word(text: &str) -> Option<(char, &str)> {
    NUMBER_WORDS.iter().find_map(|(word, prefix)| {
        let start = text.get(..word.len())?;
        let rest = &text[word.len()..];
        let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric());
        (start.eq_ignore_ascii_case(word) && is_whole).then_some((*prefix, rest.trim_start()))
    })
}

/// The scale of a prefix, and the rest. `Ki` counts 1024, `k` and `K` 1000.
fn prefixed(text: &str) -> (f64, &str) {
    // The `t` of `transactions/s` is no tera.
    if rate(text).is_some() {
        return (1.0, text);
    }
    if let Some((prefix, rest)) = number_word(text) {
        let scale = match prefix {
            'k' => 1e3,
            'M' => 1e6,
            _ => 1e9,
        };
        return (scale, rest);
    }
    let mut letters = text.chars();
    let (decimal, binary) = match letters.next() {
        Some('k' | 'K') => (1e3, 1024.0),
        Some('M' | 'm') => (1e6, 1024.0 * 1024.0),
        Some('G' | 'g') => (1e9, 1024.0 * 1024.0 * 1024.0),
        Some('T' | 't') => (1e12, 1024.0 * 1024.0 * 1024.0 * 1024.0),
        _ => return (1.0, text),
    };
    match letters.next() {
        Some('i') if letters.as_str().starts_with(['b', 'B']) => (binary, &text[2..]),
        // Also `k frames/s`, with a blank. The prefix is one byte, so the slice begins at a
        // character.
        _ => (decimal, text[1..].trim_start()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_reports_are_read() {
        let scale = |text| Unit::parse(text).map(|unit| unit.scale);
        assert_eq!(scale("gbps"), Some(1e9));
        assert_eq!(scale("MBit/s"), Some(1e6));
        assert_eq!(scale("Mb/s"), Some(1e6));
        assert_eq!(scale("MB/s"), Some(8e6));
        assert_eq!(scale("k frames/s"), Some(1e3));
        assert_eq!(scale("% of devices"), Some(1.0));
        assert_eq!(scale("MiB/s"), Some(8.0 * 1_048_576.0));
        assert_eq!(scale("KB/sec"), Some(8e3));
        assert_eq!(scale("Gbits/sec"), Some(1e9));
        assert_eq!(scale("kops/sec"), Some(1e3));
        assert_eq!(scale("ms"), Some(1e-3));
        assert_eq!(scale("transactions/s"), Some(1.0));
        assert_eq!(scale("k transactions/s"), Some(1e3));
        assert_eq!(scale("furlongs"), None);
    }

    #[test]
    fn every_listed_spelling_is_read_without_a_prefix() {
        let names = [&BIT_RATES[..], &FRAME_RATES, &OPERATION_RATES].concat();
        for name in names {
            assert_eq!(
                Unit::parse(name).map(|unit| unit.scale),
                Some(1.0),
                "{name}"
            );
        }
        for name in BYTE_RATES {
            assert_eq!(
                Unit::parse(name).map(|unit| unit.scale),
                Some(8.0),
                "{name}"
            );
        }
    }

    #[test]
    fn prefixes_that_count_1024_are_known() {
        for (text, expected) in [
            ("MiB/s", true),
            ("Kibit/s", true),
            ("MB/s", false),
            ("bit/s", false),
            ("Mbit/s", false),
        ] {
            let unit = Unit::parse(text);
            assert_eq!(unit.map(|it| it.is_binary()), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_prefix_alone_is_of_the_unit_around_it() {
        let with = |unit: &str, prefix| Unit::parse(unit).and_then(|it| it.with_prefix(prefix));
        assert_eq!(with("MB/s", 'k').map(|it| it.scale), Some(8e3));
        assert_eq!(with("kpps", 'M').map(|it| it.text), Some("Mpps".to_owned()));
        let thousands = with("transactions/s", 'k').map(|it| it.scale);
        assert_eq!(thousands, Some(1e3));
        assert_eq!(with("%", 'k'), None);
    }
}

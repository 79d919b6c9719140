//! Units of published figures, in the spellings that reports use.

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Bits per second.
    BitRate,
    /// Frames per second.
    FrameRate,
    /// A share in per cent.
    Percent,
    /// Anything else: operations per second, times.
    Other,
}

/// A unit as a report spells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The spelling.
    pub text: String,
    /// What it counts.
    pub quantity: Quantity,
    /// Bits per second, frames per second or per cent in one of it; 1 for other quantities.
    pub scale: f64,
}

/// Names without their prefix, in lower case. A capital `B` is a byte in rates: eight bits.
const BIT_RATES: [&str; 6] = ["bit/s", "bits/s", "bps", "b/s", "bit/sec", "bits/sec"];
const FRAME_RATES: [&str; 4] = ["frames/s", "fps", "pps", "packets/s"];
const OTHERS: [&str; 8] = ["operations/s", "ops/s", "ns", "µs", "us", "ms", "s", "h"];
/// The spellings that error messages list.
pub(crate) const KNOWN: &str =
    "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, MB/s, frames/s, operations/s, %, ns, µs, ms, s";

impl Unit {
    /// Whether figures of both can be compared as they are printed.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        // Scales are products of powers of ten and 8, without error.
        self.quantity == other.quantity && self.scale.to_bits() == other.scale.to_bits()
    }

    /// Reads a unit; `None` if it is none that is known.
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
        if OTHERS.contains(&text) {
            return made(Quantity::Other, 1.0);
        }
        let (scale, rest) = prefixed(text);
        if matches!(rest, "B/s" | "Byte/s" | "bytes/s" | "Bps") {
            return made(Quantity::BitRate, 8.0 * scale);
        }
        let rest = rest.to_lowercase();
        if BIT_RATES.contains(&rest.as_str()) {
            return made(Quantity::BitRate, scale);
        }
        if FRAME_RATES.contains(&rest.as_str()) {
            return made(Quantity::FrameRate, scale);
        }
        None
    }
}

fn prefixed(text: &str) -> (f64, &str) {
    let scale = match text.chars().next() {
        Some('k' | 'K') => 1e3,
        Some('M' | 'm') => 1e6,
        Some('G' | 'g') => 1e9,
        Some('T' | 't') => 1e12,
        _ => return (1.0, text),
    };
    (scale, text[1..].trim_start())
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
        assert_eq!(scale("furlongs"), None);
    }
}

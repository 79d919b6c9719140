//! Rates: bits per second at a named layer, and frames per second.

use crate::ParseError;
use crate::quantity::Quantity;
use std::fmt;

/// The layer at which a bit rate is counted: the same traffic has four rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// On the wire: frames with preamble, start delimiter and the gap between frames.
    L1,
    /// Frames from destination address to FCS.
    L2,
    /// IP packets.
    Ip,
    /// Transport payload: UDP payload, TCP bytes.
    Payload,
}

impl Layer {
    /// Name in reports: `L1`, `L2`, `IP`, `payload`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::Ip => "IP",
            Self::Payload => "payload",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

const BIT_RATE: Quantity = Quantity {
    noun: "bit rate",
    smallest: "bits per second",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
    aliases: &[
        ("bps", "bit/s"),
        ("b/s", "bit/s"),
        ("bits/s", "bit/s"),
        ("kbps", "kbit/s"),
        ("kb/s", "kbit/s"),
        ("kbit", "kbit/s"),
        ("kbit/s", "kbit/s"),
        ("kbits/s", "kbit/s"),
        ("k", "kbit/s"),
        ("mbps", "Mbit/s"),
        ("mb/s", "Mbit/s"),
        ("mbit", "Mbit/s"),
        ("mbit/s", "Mbit/s"),
        ("mbits/s", "Mbit/s"),
        ("m", "Mbit/s"),
        ("gbps", "Gbit/s"),
        ("gb/s", "Gbit/s"),
        ("gbit", "Gbit/s"),
        ("gbit/s", "Gbit/s"),
        ("gbits/s", "Gbit/s"),
        ("g", "Gbit/s"),
        ("tbps", "Tbit/s"),
        ("tbit", "Tbit/s"),
        ("tbit/s", "Tbit/s"),
    ],
    example: "10 Gbit/s",
    // 10 bit/s is never meant; 1000 and more often means Mbit/s, and from a million on the bare
    // rate.
    likely_unit: |whole| match whole {
        0..1_000 => "Gbit/s",
        1_000..1_000_000 => "Mbit/s",
        _ => "bit/s",
    },
};

/// Bits per second in one direction, counted at one [`Layer`]. Rates of different layers cannot be
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BitRate {
    bps: u64,
    layer: Layer,
}

impl BitRate {
    /// The given number of bits per second at a layer.
    #[must_use]
    pub const fn new(bps: u64, layer: Layer) -> Self {
        Self { bps, layer }
    }

    /// Reads a number and `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s` or `Tbit/s` (decimal prefixes).
    ///
    /// The text does not contain the layer: the file's key implies it.
    ///
    /// # Errors
    /// When it is anything else, or not a whole number of bits per second.
    pub fn parse(text: &str, layer: Layer) -> Result<Self, ParseError> {
        BIT_RATE.parse(text).map(|bps| Self { bps, layer })
    }

    /// Bits per second.
    #[must_use]
    pub const fn bps(self) -> u64 {
        self.bps
    }

    /// The layer at which it is counted.
    #[must_use]
    pub const fn layer(self) -> Layer {
        self.layer
    }
}

/// Exact, without the layer: `1.5 Gbit/s`. The alternate form `{:#}` names it: `1.5 Gbit/s L2`.
impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = BIT_RATE.print(self.bps);
        if f.alternate() {
            write!(f, "{rate} {}", self.layer)
        } else {
            f.pad(&rate)
        }
    }
}

const FRAME_RATE: Quantity = Quantity {
    noun: "frame rate",
    smallest: "frames per second",
    units: &[
        ("frames/s", 1),
        ("kpps", 1_000),
        ("Mpps", 1_000_000),
        ("Gpps", 1_000_000_000),
    ],
    aliases: &[
        ("fps", "frames/s"),
        ("frame/s", "frames/s"),
        ("kfps", "kpps"),
        ("kpps", "kpps"),
        ("mfps", "Mpps"),
        ("mpps", "Mpps"),
        ("gpps", "Gpps"),
    ],
    example: "1.2 Mpps",
    likely_unit: |_| "frames/s",
};

/// Frames per second in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameRate(u64);

impl FrameRate {
    /// The given number of frames per second.
    #[must_use]
    pub const fn new(fps: u64) -> Self {
        Self(fps)
    }

    /// Reads a number and `frames/s`, `kpps`, `Mpps` or `Gpps` (decimal prefixes), which may be
    /// written `pps`, `k frames/s`, `M frames/s` and `G frames/s` too.
    ///
    /// # Errors
    /// When it is anything else, or not a whole number of frames per second.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        // Only the prefix is parsed here, so that there is one list of units.
        let number = text.trim_end().strip_suffix("frames/s").map(str::trim_end);
        let prefixed = number.and_then(|number| {
            // ASCII, so it is one byte, which the slice below cuts off.
            let prefix = number.chars().last().filter(|c| "kMG".contains(*c))?;
            Some(format!("{}{prefix}pps", &number[..number.len() - 1]))
        });
        // The other units have it too, so a reader expects it.
        let plain = text
            .trim_end()
            .strip_suffix("pps")
            .filter(|number| number.ends_with(|c: char| c.is_ascii_digit() || c.is_whitespace()));
        let prefixed = prefixed.or_else(|| plain.map(|number| format!("{number} frames/s")));
        FRAME_RATE
            .parse(prefixed.as_deref().unwrap_or(text))
            .map(Self)
    }

    /// Frames per second.
    #[must_use]
    pub const fn fps(self) -> u64 {
        self.0
    }
}

/// Exact: `1.2 Mpps`.
impl fmt::Display for FrameRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&FRAME_RATE.print(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use proptest::prelude::*;

    fn bps(text: &str) -> u64 {
        BitRate::parse(text, Layer::L2).unwrap().bps()
    }

    fn help(text: &str) -> String {
        BitRate::parse(text, Layer::L2)
            .unwrap_err()
            .help()
            .to_owned()
    }

    #[test]
    fn reads_decimal_prefixes() {
        assert_eq!(bps("10 Gbit/s"), 10_000_000_000);
        assert_eq!(bps("250 Mbit/s"), 250_000_000);
        assert_eq!(bps("1.5 Gbit/s"), 1_500_000_000);
        assert_eq!(bps("64kbit/s"), 64_000);
        assert_eq!(bps("0 bit/s"), 0);
        assert_eq!(FrameRate::parse("1.2 Mpps"), Ok(FrameRate::new(1_200_000)));
        assert_eq!(FrameRate::parse("64 frames/s"), Ok(FrameRate::new(64)));
        for text in ["200 pps", "200pps", "200  pps "] {
            assert_eq!(FrameRate::parse(text), Ok(FrameRate::new(200)));
        }
        assert!(FrameRate::parse("pps").is_err() && FrameRate::parse("1 xpps").is_err());
        assert_eq!(
            FrameRate::parse("1.5 M frames/s"),
            Ok(FrameRate::new(1_500_000))
        );
        assert_eq!(
            FrameRate::parse("100kframes/s"),
            Ok(FrameRate::new(100_000))
        );
        assert_eq!(
            FrameRate::parse("1 m frames/s").unwrap_err().kind,
            ErrorKind::UnknownUnit
        );
    }

    #[test]
    fn a_number_without_unit_is_shown_with_the_likely_one() {
        assert!(help("10").starts_with("write `10 Gbit/s`;"));
        assert!(help("2500").starts_with("write `2500 Mbit/s`;"));
        assert!(help("10000000000").starts_with("write `10000000000 bit/s`;"));
        assert_eq!(FrameRate::parse("5").unwrap_err().kind, ErrorKind::NoUnit);
    }

    #[test]
    fn wrong_case_is_corrected_but_bytes_are_not_read_as_bits() {
        assert!(
            help("10 gbps").starts_with("write `10 Gbit/s`;"),
            "{}",
            help("10 gbps")
        );
        assert!(help("10 Gbps").starts_with("write `10 Gbit/s`;"));
        assert!(help("1 GB/s").starts_with("rates are in bits:"));
        assert!(help("1 MiB/s").starts_with("rates are in bits:"));
    }

    #[test]
    fn names_its_layer_in_the_alternate_form() {
        let rate = BitRate::new(1_500_000_000, Layer::L2);
        assert_eq!(
            format!("{rate} / {rate:#} / {rate:>12}"),
            "1.5 Gbit/s / 1.5 Gbit/s L2 /   1.5 Gbit/s"
        );
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(bps: u64, exponent in 0u32..18, small in 0u64..10_000) {
            for bps in [bps, small.saturating_mul(10u64.pow(exponent))] {
                let rate = BitRate::new(bps, Layer::Ip);
                prop_assert_eq!(BitRate::parse(&rate.to_string(), Layer::Ip), Ok(rate));
                let rate = FrameRate::new(bps);
                prop_assert_eq!(FrameRate::parse(&rate.to_string()), Ok(rate));
            }
        }
    }
}

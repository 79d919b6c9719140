//! Sizes: memory, and the four lengths that one packet has.

use crate::ParseError;
use crate::quantity::Quantity;
use std::fmt;

const SIZE: Quantity = Quantity {
    noun: "size",
    smallest: "bytes",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
    aliases: &[
        ("b", "B"),
        ("byte", "B"),
        ("bytes", "B"),
        ("octets", "B"),
        ("kb", "kB"),
        ("kib", "KiB"),
        ("ki", "KiB"),
        // A prefix alone is binary in tools for memory and files.
        ("k", "KiB"),
        ("mb", "MB"),
        ("mib", "MiB"),
        ("mi", "MiB"),
        ("m", "MiB"),
        ("gb", "GB"),
        ("gib", "GiB"),
        ("gi", "GiB"),
        ("g", "GiB"),
        ("tb", "TB"),
        ("tib", "TiB"),
        ("ti", "TiB"),
        ("t", "TiB"),
    ],
    example: "1500 B",
    likely_unit: |_| "B",
};

/// An amount of memory or data, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes(u64);

impl Bytes {
    /// The given number of bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Reads a number and `B`, `kB`, `MB`, `GB`, `TB` (decimal) or `KiB`, `MiB`, `GiB`, `TiB`
    /// (binary).
    ///
    /// # Errors
    /// When it is anything else, or not a whole number of bytes.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        SIZE.parse(text).map(Self)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Exact; from 16 KiB on with a binary prefix when that leaves a whole number: `64 KiB`, `9216 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Smaller sizes have few digits and are often packet lengths.
        const PREFIXED_FROM: u64 = 16 << 10;
        let binary = SIZE.units.iter().rev().find(|(_, scale)| {
            scale.is_power_of_two()
                && self.0 >= *scale.max(&PREFIXED_FROM)
                // A prefix that needs decimals would hide the exact length of a packet.
                && self.0.is_multiple_of(*scale)
        });
        let (name, scale) = binary.unwrap_or(&SIZE.units[0]);
        f.pad(&format!("{} {name}", self.0 / scale))
    }
}

/// What Ethernet adds to an IP packet, in bytes (IEEE 802.3 clauses 3 and 4), without VLAN tags.
pub mod frame_constants {
    /// Destination, source and type.
    pub const HEADER_BYTES: u64 = 14;
    /// Frame check sequence.
    pub const FCS_BYTES: u64 = 4;
    /// Preamble and start delimiter (8) and the smallest gap between frames (12).
    pub const PREAMBLE_AND_GAP_BYTES: u64 = 20;
    /// A shorter frame is padded to this, FCS included.
    pub const MIN_BYTES: u64 = 64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use proptest::prelude::*;

    #[test]
    fn reads_decimal_and_binary_prefixes() {
        assert_eq!(Bytes::parse("64 B").unwrap().get(), 64);
        assert_eq!(Bytes::parse("64 KiB").unwrap().get(), 65_536);
        assert_eq!(Bytes::parse("64 kB").unwrap().get(), 64_000);
        assert_eq!(Bytes::parse("4MiB").unwrap().get(), 4 << 20);
        assert_eq!(Bytes::parse("0.5 KiB").unwrap().get(), 512);
        assert_eq!(
            Bytes::parse("1.0005 KiB").unwrap_err().kind,
            ErrorKind::NotWhole
        );
    }

    #[test]
    fn a_number_without_unit_is_shown_with_the_likely_one() {
        let error = Bytes::parse("1500").unwrap_err();
        assert_eq!(error.to_string(), "size `1500` has no unit");
        assert_eq!(
            error.help(),
            "write `1500 B`; units are B, kB, KiB, MB, MiB, GB, GiB, TB, TiB"
        );
        assert!(
            Bytes::parse("64 bytes")
                .unwrap_err()
                .help()
                .starts_with("write `64 B`;")
        );
    }

    #[test]
    fn prints_a_binary_prefix_only_when_it_leaves_a_whole_number() {
        let printed = |bytes| Bytes::new(bytes).to_string();
        assert_eq!(printed(0), "0 B");
        assert_eq!(printed(1500), "1500 B");
        assert_eq!(printed(9216), "9216 B");
        assert_eq!(printed(65_536), "64 KiB");
        assert_eq!(printed(65_537), "65537 B");
        assert_eq!(printed(1 << 30), "1 GiB");
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(bytes: u64, shift in 0u32..40, small in 0u64..100_000) {
            for bytes in [bytes, small << shift] {
                let size = Bytes::new(bytes);
                prop_assert_eq!(Bytes::parse(&size.to_string()), Ok(size));
            }
        }
    }
}

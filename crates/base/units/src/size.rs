//! Sizes: memory, and the four lengths that one packet has.

use crate::ParseError;
use crate::quantity::{Quantity, Unit};
use std::fmt;

const SIZE: Quantity = Quantity {
    noun: "size",
    smallest: "bytes",
    units: &[
        Unit {
            name: "B",
            scale: 1,
        },
        Unit {
            name: "kB",
            scale: 1_000,
        },
        Unit {
            name: "KiB",
            scale: 1 << 10,
        },
        Unit {
            name: "MB",
            scale: 1_000_000,
        },
        Unit {
            name: "MiB",
            scale: 1 << 20,
        },
        Unit {
            name: "GB",
            scale: 1_000_000_000,
        },
        Unit {
            name: "GiB",
            scale: 1 << 30,
        },
        Unit {
            name: "TB",
            scale: 1_000_000_000_000,
        },
        Unit {
            name: "TiB",
            scale: 1 << 40,
        },
    ],
    aliases: &[
        ("b", "B"),
        ("byte", "B"),
        ("bytes", "B"),
        ("octets", "B"),
        ("kb", "kB"),
        ("kib", "KiB"),
        ("ki", "KiB"),
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

macro_rules! size_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u64);

        impl $name {
            /// The given number of bytes.
            #[must_use]
            pub const fn new(bytes: u64) -> Self {
                Self(bytes)
            }

            /// Reads a number and `B`, `kB`, `MB`, `GB`, `TB` (decimal) or `KiB`, `MiB`, `GiB`,
            /// `TiB` (binary).
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
    };
}

size_type! {
    /// An amount of memory or data, in bytes.
    Bytes
}

/// Exact; from 16 KiB on with a binary prefix when that leaves a whole number: `64 KiB`, `9216 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Smaller sizes have few digits and are often packet lengths.
        const PREFIXED_FROM: u64 = 16 << 10;
        let binary = SIZE.units.iter().rev().find(|unit| {
            unit.scale.is_power_of_two()
                && self.0 >= unit.scale.max(PREFIXED_FROM)
                && self.0.is_multiple_of(unit.scale)
        });
        let unit = binary.unwrap_or(&SIZE.units[0]);
        f.pad(&format!("{} {}", self.0 / unit.scale, unit.name))
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

macro_rules! length {
    ($(#[$doc:meta])* $name:ident) => {
        size_type! {
            $(#[$doc])*
            $name
        }

        /// Exact, always in `B`: lengths of packets are compared digit by digit.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!("{} B", self.0))
            }
        }
    };
}

length! {
    /// Length of a packet's transport payload: a UDP payload, a TCP segment's data.
    PayloadBytes
}

length! {
    /// Length of an IP packet, header included. An interface's MTU is a limit on this.
    IpBytes
}

length! {
    /// Length of an Ethernet frame from destination address to FCS: the frame size of RFC 2544 §9.
    FrameBytes
}

length! {
    /// Length of a frame on the wire, including its preamble and the gap after it.
    WireBytes
}

impl PayloadBytes {
    /// The IP packet that carries this payload behind `headers` bytes of IP and transport headers.
    #[must_use]
    pub const fn ip(self, headers: u64) -> IpBytes {
        IpBytes(self.0.saturating_add(headers))
    }
}

impl IpBytes {
    /// The payload that fits behind `headers` bytes of IP and transport headers; `None` when none
    /// does.
    #[must_use]
    pub const fn payload(self, headers: u64) -> Option<PayloadBytes> {
        match self.0.checked_sub(headers) {
            Some(payload) => Some(PayloadBytes(payload)),
            None => None,
        }
    }

    /// The frame that carries this packet: 14 bytes of header, 4 of FCS, and padding up to 64.
    #[must_use]
    pub const fn frame(self) -> FrameBytes {
        let added = frame_constants::HEADER_BYTES + frame_constants::FCS_BYTES;
        let bytes = self.0.saturating_add(added);
        if bytes < frame_constants::MIN_BYTES {
            FrameBytes(frame_constants::MIN_BYTES)
        } else {
            FrameBytes(bytes)
        }
    }
}

impl FrameBytes {
    /// The longest IP packet in this frame; `None` when the frame is shorter than its header and
    /// FCS.
    #[must_use]
    pub const fn ip(self) -> Option<IpBytes> {
        match self
            .0
            .checked_sub(frame_constants::HEADER_BYTES + frame_constants::FCS_BYTES)
        {
            Some(ip) => Some(IpBytes(ip)),
            None => None,
        }
    }

    /// The length on the wire: 20 bytes more.
    #[must_use]
    pub const fn wire(self) -> WireBytes {
        WireBytes(
            self.0
                .saturating_add(frame_constants::PREAMBLE_AND_GAP_BYTES),
        )
    }
}

impl WireBytes {
    /// The frame in this length; `None` when it is shorter than preamble and gap.
    #[must_use]
    pub const fn frame(self) -> Option<FrameBytes> {
        match self.0.checked_sub(frame_constants::PREAMBLE_AND_GAP_BYTES) {
            Some(frame) => Some(FrameBytes(frame)),
            None => None,
        }
    }
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
        let error = IpBytes::parse("1500").unwrap_err();
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
        assert_eq!(IpBytes::new(9216).to_string(), "9216 B");
    }

    #[test]
    fn a_packet_grows_by_18_and_20_bytes_on_its_way_to_the_wire() {
        let ip = PayloadBytes::new(1472).ip(28);
        assert_eq!(ip, IpBytes::new(1500));
        assert_eq!(ip.frame(), FrameBytes::new(1518));
        assert_eq!(ip.frame().wire(), WireBytes::new(1538));
        assert_eq!(ip.payload(28), Some(PayloadBytes::new(1472)));
        assert_eq!(IpBytes::new(27).payload(28), None);
    }

    #[test]
    fn a_short_packet_is_padded_to_the_smallest_frame() {
        assert_eq!(IpBytes::new(28).frame(), FrameBytes::new(64));
        assert_eq!(IpBytes::new(46).frame(), FrameBytes::new(64));
        assert_eq!(IpBytes::new(47).frame(), FrameBytes::new(65));
        assert_eq!(FrameBytes::new(17).ip(), None);
        assert_eq!(WireBytes::new(19).frame(), None);
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(bytes: u64, shift in 0u32..40, small in 0u64..100_000) {
            for bytes in [bytes, small << shift] {
                let size = Bytes::new(bytes);
                prop_assert_eq!(Bytes::parse(&size.to_string()), Ok(size));
                let length = FrameBytes::new(bytes);
                prop_assert_eq!(FrameBytes::parse(&length.to_string()), Ok(length));
            }
        }

        #[test]
        fn lengths_come_back_from_the_wire(bytes in 46u64..100_000) {
            let ip = IpBytes::new(bytes);
            prop_assert_eq!(ip.frame().wire().frame().and_then(FrameBytes::ip), Some(ip));
        }
    }
}

//! IP prefixes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP prefix in CIDR form whose host bits are zero, for example `10.1.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// Why a text is not a prefix, and how to write one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotAPrefix {
    pub(crate) what: &'static str,
    pub(crate) help: String,
}

impl Prefix {
    /// A prefix; `None` when the length is too long for the address, or host bits are set.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let fits = length <= address_bits(address);
        (fits && masked(address, length) == address).then_some(Self { address, length })
    }

    /// The prefix of this length that contains an address; `None` when the length is too long for
    /// it.
    #[must_use]
    pub fn around(address: IpAddr, length: u8) -> Option<Self> {
        (length <= address_bits(address)).then(|| Self {
            address: masked(address, length),
            length,
        })
    }

    /// Its first address.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Its last address, with all host bits set.
    #[must_use]
    pub fn last(self) -> IpAddr {
        let length = u32::from(self.length);
        match self.address {
            IpAddr::V4(first) => {
                let hosts = u32::MAX.checked_shr(length).unwrap_or(0);
                Ipv4Addr::from_bits(first.to_bits() | hosts).into()
            }
            IpAddr::V6(first) => {
                let hosts = u128::MAX.checked_shr(length).unwrap_or(0);
                Ipv6Addr::from_bits(first.to_bits() | hosts).into()
            }
        }
    }

    /// Its length in bits.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether it contains an address.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        // An address of the other family stays different.
        masked(address, self.length) == self.address
    }

    /// Whether it overlaps another prefix.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        // Prefixes are nested or disjoint, so one of two that overlap contains the other.
        self.contains(other.address) || other.contains(self.address)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, NotAPrefix> {
        let refuse = |what, help: String| Err(NotAPrefix { what, help });
        let example =
            || "a prefix is an address and a length, for example `10.1.0.0/24`".to_owned();
        let Some((address, length)) = text.split_once('/') else {
            return match text.parse::<IpAddr>() {
                Ok(address) => refuse(
                    "has no length",
                    format!(
                        "for this address alone write `{address}/{}`",
                        address_bits(address)
                    ),
                ),
                Err(_) => refuse("is not an IP prefix", example()),
            };
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return refuse("is not an IP prefix", example());
        };
        let bits = address_bits(address);
        let length = match length.parse::<u8>() {
            // Rust also parses `+8` and `08`, which other programs refuse or read as octal.
            Ok(value) if value <= bits && value.to_string() == length => value,
            _ => {
                return refuse(
                    "has no valid length",
                    format!("the length is from 0 to {bits}"),
                );
            }
        };
        let first = masked(address, length);
        if first != address {
            return refuse(
                "has host bits set",
                format!("the prefix is `{first}/{length}`"),
            );
        }
        Ok(Self { address, length })
    }
}

fn address_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with all but its first `length` bits cleared.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            // A shift by all 32 bits, for length 0, is `None`: then no bit is kept.
            let mask = u32::MAX
                .checked_shl(32 - u32::from(length.min(32)))
                .unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(length.min(128)))
                .unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).unwrap()
    }

    #[test]
    fn reads_and_prints_both_families() {
        for text in [
            "10.1.0.0/24",
            "0.0.0.0/0",
            "192.0.2.7/32",
            "fd00::/8",
            "::/0",
            "::1/128",
        ] {
            assert_eq!(prefix(text).to_string(), text);
            assert_eq!(
                Prefix::new(prefix(text).address(), prefix(text).length()),
                Some(prefix(text))
            );
        }
    }

    #[test]
    fn refuses_invalid_prefixes_with_advice() {
        let refused = |text| {
            let error = Prefix::parse(text).unwrap_err();
            (error.what, error.help)
        };
        assert_eq!(
            refused("10.1.0.5/24"),
            ("has host bits set", "the prefix is `10.1.0.0/24`".into())
        );
        assert_eq!(refused("10.1.0.0/33").0, "has no valid length");
        assert_eq!(refused("10.1.0.0/+8").0, "has no valid length");
        assert_eq!(refused("10.1.0.0/").0, "has no valid length");
        assert_eq!(refused("::1").1, "for this address alone write `::1/128`");
        assert_eq!(refused("ten/8").0, "is not an IP prefix");
        assert_eq!(Prefix::new("10.1.0.5".parse().unwrap(), 24), None);
        assert_eq!(Prefix::new("10.0.0.0".parse().unwrap(), 33), None);
    }

    #[test]
    fn prefixes_contain_their_addresses() {
        assert!(prefix("10.1.0.0/24").contains("10.1.0.255".parse().unwrap()));
        assert!(!prefix("10.1.0.0/24").contains("10.1.1.0".parse().unwrap()));
        assert!(prefix("0.0.0.0/0").contains("255.1.1.0".parse().unwrap()));
        assert!(!prefix("0.0.0.0/0").contains("::".parse().unwrap()));
        assert!(prefix("10.0.0.0/8").overlaps(prefix("10.1.0.0/24")));
        assert!(prefix("10.1.0.0/24").overlaps(prefix("10.0.0.0/8")));
        assert!(!prefix("10.1.0.0/24").overlaps(prefix("10.2.0.0/24")));
    }
}

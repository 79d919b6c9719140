//! The rules for names, words and addresses, which the readers of files share with the check of a
//! plan from a journal.

use std::net::Ipv4Addr;

/// The kernel's names of congestion controls are no longer (`TCP_CA_NAME_MAX`).
const CONGESTION_NAME_MAX: usize = 15;
/// Longest name of an interface that the kernel accepts (`IFNAMSIZ` without the final zero).
const INTERFACE_CHARS_MAX: usize = 15;

/// Ranges that test traffic may use: private (RFC 1918), for benchmarks (RFC 2544 §C.2.2) and for
/// documentation (RFC 5737). A leaked packet has no owner.
pub const TEST_RANGES: [(Ipv4Addr, u8); 7] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
];

/// Whether this /24 is in one of [`TEST_RANGES`].
#[must_use]
pub fn is_test_network(network: Ipv4Addr) -> bool {
    let contains = |(first, length): (Ipv4Addr, u8)| {
        let differs = u32::from(network) ^ u32::from(first);
        differs.leading_zeros() >= length.into()
    };
    // All ranges are a /24 or larger, so the first address decides for the whole network.
    network.octets()[3] == 0 && TEST_RANGES.into_iter().any(contains)
}

/// Whether the kernel can have a congestion control of this name.
#[must_use]
pub fn is_congestion(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.len() <= CONGESTION_NAME_MAX && name.bytes().all(fits)
}

/// Whether the kernel accepts this name of an interface, and `ip` reads it as one word.
#[must_use]
pub fn is_interface(name: &str) -> bool {
    // The kernel refuses `/`, `:` and blanks (`dev_valid_name`).
    let fits = |c: char| c.is_ascii_graphic() && !"/:".contains(c);
    !name.is_empty() && name.len() <= INTERFACE_CHARS_MAX && name.chars().all(fits)
}

/// Whether this is a whole path of plain characters, which a shell on the host reads as one word.
#[must_use]
pub fn is_program_path(path: &str) -> bool {
    // Nothing that a shell would change: no blank, quote, `~` or `$`.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    path.starts_with('/') && path.chars().all(is_plain)
}

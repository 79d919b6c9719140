//! Gateway names, as in certificates and in the configuration of peers.

use pki_types::DnsName;

/// An invalid gateway name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name for a gateway: use small letters, digits, `-` and `.`, as in gw1 or \
     gw1.example.net"
)]
pub struct BadName(pub String);

/// Checks a gateway name: a DNS name in lower case, so that it has one spelling only.
///
/// # Errors
/// [`BadName`].
pub fn check_name(name: &str) -> Result<(), BadName> {
    let small = name
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'));
    // `DnsName` takes a dot at the end, the absolute form, which would be a second spelling.
    if small && !name.ends_with('.') && DnsName::try_from(name).is_ok() {
        Ok(())
    } else {
        Err(BadName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum length of a name in bytes (RFC 1035 §2.3.4, without the root's dot).
    const NAME_BYTES_MAX: usize = 253;

    #[test]
    fn names_have_one_spelling() {
        for good in ["gw1", "a-b.example.net", "x1.2y", &"a".repeat(63)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "a.".repeat(NAME_BYTES_MAX / 2) + "aa";
        for bad in [
            "",
            "GW1",
            "gw1.",
            ".gw1",
            "a..b",
            "-a",
            "a-",
            "*",
            "*.net",
            "a_b",
            "a b",
            "10.0.0.1",
            "a/b",
            "ä",
            &long,
            &"a".repeat(64),
        ] {
            assert_eq!(check_name(bad), Err(BadName(bad.to_owned())));
        }
    }
}

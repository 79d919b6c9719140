//! Gateway names, as in certificates and in the configuration of peers.

use crate::reason;
use rustls::pki_types::{CertificateDer, DnsName};

/// Maximum length of a name in bytes (RFC 1035 §2.3.4, without the root's dot).
pub const NAME_BYTES_MAX: usize = 253;

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
pub fn check(name: &str) -> Result<(), BadName> {
    let small = name
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'));
    if small && !name.ends_with('.') && DnsName::try_from(name).is_ok() {
        Ok(())
    } else {
        Err(BadName(name.to_owned()))
    }
}

/// Returns the only name of a certificate, or a description of the problem.
///
/// Extracts the name only. TLS verifies that the certificate is valid for it.
pub(crate) fn of_certificate(certificate: &CertificateDer<'_>) -> Result<String, String> {
    let parsed = webpki::EndEntityCert::try_from(certificate).map_err(|error| {
        let words = reason::words(&error);
        format!("it cannot be read as an X.509 certificate: {words}")
    })?;
    let names: Vec<_> = parsed.valid_dns_names().collect();
    match names[..] {
        [name] => match check(name) {
            Ok(()) => Ok(name.to_owned()),
            Err(bad) => Err(bad.to_string()),
        },
        [] => Err("it has no DNS name among its alternative names".to_owned()),
        _ => Err(format!(
            "it has {} names ({}): a gateway has one",
            names.len(),
            names.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_spelling() {
        for good in ["gw1", "a-b.example.net", "x1.2y", &"a".repeat(63)] {
            assert_eq!(check(good), Ok(()), "{good}");
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
            assert_eq!(check(bad), Err(BadName(bad.to_owned())));
        }
    }
}

//! What a certificate says: its name, and the period in which it is valid.

use crate::names::check_name;
use pki_types::CertificateDer;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime};

pub(crate) const UNREADABLE: &str = "it cannot be read as an X.509 certificate";

/// Returns the only name of a certificate, or a description of the problem.
///
/// Extracts the name only. TLS verifies that the certificate is valid for it.
///
/// # Errors
/// The problem, as the predicate of a sentence about the certificate.
pub fn name_of(certificate: &CertificateDer<'_>) -> Result<String, String> {
    // This only parses: no chain, period or use is checked here.
    let parsed = webpki::EndEntityCert::try_from(certificate)
        .map_err(|error| format!("{UNREADABLE}: {}", words(&error)))?;
    let names: Vec<_> = parsed.valid_dns_names().collect();
    match names[..] {
        [name] => match check_name(name) {
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

/// Returns the period in which all certificates (DER) of a chain are valid (RFC 5280 §4.1.2.5), or
/// the problem of one.
///
/// # Errors
/// The problem, as the predicate of a sentence about the certificate.
pub fn validity_of(chain: &[impl AsRef<[u8]>]) -> Result<Range<SystemTime>, String> {
    let mut periods = Vec::with_capacity(chain.len());
    for certificate in chain {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate.as_ref())
            .map_err(|_| UNREADABLE.to_owned())?;
        // A time before 1970 counts as 1970: both are long past.
        let time = |seconds: i64| {
            SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
        };
        let validity = parsed.validity();
        periods.push(time(validity.not_before.timestamp())..time(validity.not_after.timestamp()));
    }
    // The chain is valid only while each of its certificates is.
    let common = |one: Range<SystemTime>, other: Range<SystemTime>| {
        one.start.max(other.start)..one.end.min(other.end)
    };
    periods
        .into_iter()
        .reduce(common)
        .ok_or_else(|| "there is no certificate".to_owned())
}

/// Writes the name of an error in words: `UnsupportedCertVersion` as `unsupported cert version`.
#[must_use]
pub fn words(error: &impl fmt::Debug) -> String {
    let name = format!("{error:?}");
    let mut words = String::new();
    // A variant with fields continues with ` {` or `(`, where its name ends.
    for letter in name.chars().take_while(|letter| letter.is_alphanumeric()) {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

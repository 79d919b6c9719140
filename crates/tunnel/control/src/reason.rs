//! Human-readable reasons for failed connections.

use crate::validity::about;
use pki::{of_chain, words};
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use std::io;
use std::time::Duration;

/// Describes an I/O or TLS error of a connection.
pub(crate) fn of_io(error: &io::Error) -> String {
    // TLS errors arrive wrapped in I/O errors, with a text for developers.
    if let Some(tls) = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>())
    {
        return of_tls(tls);
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the peer closed the connection unexpectedly".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        _ => error.to_string(),
    }
}

/// Describes a TLS error.
pub(crate) fn of_tls(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(_) => {
            format!("the peer's certificate: {}", of_certificate(error))
        }
        Error::NoCertificatesPresented => "the peer shows no certificate".to_owned(),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::PeerIncompatible(what) => of_incompatible(what),
        // Somebody in the path changed bytes, or mixed up two connections.
        Error::DecryptError => {
            "received data was not sealed with the keys of this connection".to_owned()
        }
        Error::InvalidMessage(what) => format!("what the peer sends is not TLS: {}", words(what)),
        other => format!("TLS failed: {other}"),
    }
}

/// Describes a certificate error, of this side's certificate or the peer's.
pub(crate) fn of_certificate(error: &Error) -> String {
    let Error::InvalidCertificate(what) = error else {
        return error.to_string();
    };
    match what {
        CertificateError::ExpiredContext { time, not_after } => format!(
            "it expired {} ago (create a new one; is the clock right?)",
            between(not_after, time)
        ),
        CertificateError::Expired => {
            "it expired (create a new one; is the clock right?)".to_owned()
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it is not valid for another {} (is the clock right?)",
            between(time, not_before)
        ),
        CertificateError::NotValidYet => "it is not valid yet (is the clock right?)".to_owned(),
        // Two authorities of the same name give the second error; the remedy is the same.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is not signed by the authority that this side trusts".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "it is not that of {}, but of {}",
            expected.to_str(),
            names(presented)
        ),
        CertificateError::InvalidPurposeContext { .. } | CertificateError::InvalidPurpose => {
            "it is not valid for both ends of a connection (server and client authentication)"
                .to_owned()
        }
        CertificateError::BadEncoding => "it cannot be read as an X.509 certificate".to_owned(),
        CertificateError::Revoked => "it is revoked".to_owned(),
        CertificateError::UnhandledCriticalExtension => {
            "it has a critical extension that is not known here".to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its kind of signature is not supported (ECDSA on P-256 always is)".to_owned()
        }
        CertificateError::NotValidForName => "it is that of another name".to_owned(),
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(what) => of_chain(what),
            None => other.to_string(),
        },
        other => format!("it is not accepted: {}", words(other)),
    }
}

/// rustls writes them as `DnsName("gw3")`.
fn names(presented: &[String]) -> String {
    if presented.is_empty() {
        return "nobody".to_owned();
    }
    let plain = |name: &String| {
        name.trim_start_matches("DnsName(")
            .trim_matches(|character| matches!(character, '"' | ')'))
            .to_owned()
    };
    presented.iter().map(plain).collect::<Vec<_>>().join(", ")
}

/// Describes the alert of a peer that closes the connection (RFC 8446 §6.2).
fn of_alert(alert: AlertDescription) -> String {
    let what = match alert {
        AlertDescription::CertificateExpired => {
            "our certificate: it expired, or is not valid yet (is a clock wrong?)"
        }
        // As above: which of them arrives depends on the peer's library.
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "our certificate: it is not signed by the authority that the peer trusts"
        }
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            "our certificate"
        }
        AlertDescription::UnsupportedCertificate => "the kind of our certificate",
        AlertDescription::CertificateRequired => "us without a certificate",
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "the handshake: it has no key exchange or cipher in common with us"
        }
        AlertDescription::ProtocolVersion => "TLS 1.3",
        other => return format!("the peer refuses, with the TLS alert `{}`", words(&other)),
    };
    format!("the peer refuses {what}")
}

fn of_incompatible(what: &PeerIncompatible) -> String {
    match what {
        PeerIncompatible::NoKxGroupsInCommon | PeerIncompatible::NamedGroupsExtensionRequired => {
            "the peer does not support the key exchange X25519MLKEM768".to_owned()
        }
        PeerIncompatible::NoCipherSuitesInCommon => {
            "the peer does not support the cipher AES-256-GCM with SHA-384".to_owned()
        }
        PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::Tls12NotOfferedOrEnabled
        | PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig => {
            "the peer does not support TLS 1.3".to_owned()
        }
        other => format!("the peer lacks a required feature: {}", words(other)),
    }
}

/// The approximate time between two points.
fn between(earlier: &UnixTime, later: &UnixTime) -> String {
    // The clock may have been set between both looks.
    let seconds = later.as_secs().saturating_sub(earlier.as_secs());
    about(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printed_without_their_type() {
        assert_eq!(names(&["DnsName(\"gw3\")".to_owned()]), "gw3");
        assert_eq!(names(&[]), "nobody");
    }

    #[test]
    fn faults_of_certificates_are_described_in_words() {
        let of_chain = |error: webpki::Error| {
            let other = CertificateError::Other(rustls::OtherError(std::sync::Arc::new(error)));
            of_certificate(&Error::InvalidCertificate(other))
        };
        assert_eq!(
            of_chain(webpki::Error::UnsupportedCertVersion),
            "it is not accepted: unsupported cert version"
        );
        assert!(of_chain(webpki::Error::CaUsedAsEndEntity).contains("that of an authority"));
        let unknown = CertificateError::UnknownRevocationStatus;
        assert_eq!(
            of_certificate(&Error::InvalidCertificate(unknown)),
            "it is not accepted: unknown revocation status"
        );
        let alert = Error::AlertReceived(AlertDescription::InternalError);
        assert_eq!(
            of_tls(&alert),
            "the peer refuses, with the TLS alert `internal error`"
        );
    }
}

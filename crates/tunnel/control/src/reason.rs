//! Human-readable reasons for failed connections.

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use std::io;

/// Describes an I/O or TLS error of a connection.
pub(crate) fn of_io(error: &io::Error) -> String {
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
        Error::DecryptError => {
            "received data was not sealed with the keys of this connection".to_owned()
        }
        Error::InvalidMessage(what) => format!("what the peer sends is not TLS: {what:?}"),
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
            about(time.as_secs(), not_after.as_secs())
        ),
        CertificateError::Expired => {
            "it expired (create a new one; is the clock right?)".to_owned()
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "it is not valid for another {} (is the clock right?)",
            about(not_before.as_secs(), time.as_secs())
        ),
        CertificateError::NotValidYet => "it is not valid yet (is the clock right?)".to_owned(),
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
        other => other.to_string(),
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
        other => return format!("the peer refuses, with the TLS alert {other:?}"),
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
        other => format!("the peer lacks a required feature: {other:?}"),
    }
}

/// The approximate time between two points.
fn about(later_s: u64, earlier_s: u64) -> String {
    let seconds = later_s.saturating_sub(earlier_s);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_in_the_unit_that_fits() {
        assert_eq!(about(100, 30), "70 s");
        assert_eq!(about(7000, 0), "116 min");
        assert_eq!(about(100_000, 0), "27 h");
        assert_eq!(about(1_000_000, 0), "11 days");
        assert_eq!(about(1, 2), "0 s");
    }

    #[test]
    fn names_are_printed_without_their_type() {
        assert_eq!(names(&["DnsName(\"gw3\")".to_owned()]), "gw3");
        assert_eq!(names(&[]), "nobody");
    }
}

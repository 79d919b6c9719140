//! TLS to a KME: TLS 1.2 or 1.3, since the standard allows both, with the SAE's certificate. The
//! files are read once.

use crate::error::{Failure, SetupError, quoted};
use guard::Writers;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use std::error::Error;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Maximum size of a certificate or key file in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Mode bits that a private key must not have: any access by group or others.
const KEY_FORBIDDEN: u32 = 0o077;

/// The client's TLS configuration.
///
/// The hybrid key exchange is offered first, so that recorded traffic does not reveal the keys once
/// X25519 is broken. A KME without it selects another group. Sessions are not resumed, so each
/// connection is verified in full.
///
/// # Errors
/// [`SetupError::NotRead`], [`TooOpen`](SetupError::TooOpen), [`Pem`](SetupError::Pem),
/// [`Pair`](SetupError::Pair).
pub(crate) fn client_config(
    certificate: &Path,
    key: &Path,
    ca: &Path,
    writers: &Writers,
) -> Result<ClientConfig, SetupError> {
    let writers = Some(writers);
    let roots = roots(ca, writers)?;
    let chain = certificates(certificate, writers)?;
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![
        kx_group::X25519MLKEM768,
        kx_group::X25519,
        kx_group::SECP256R1,
        kx_group::SECP384R1,
    ];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has suites of both versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, private_key(key, writers)?)
        .map_err(|error| SetupError::Pair {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            what: pair_problem(&error),
        })?;
    // A resumed session would accept a certificate that has expired meanwhile.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// The certificates of a file as those of authorities.
pub(crate) fn roots(ca: &Path, writers: Option<&Writers>) -> Result<RootCertStore, SetupError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(ca, writers)? {
        roots
            .add(authority)
            .map_err(|error| no_authority(ca, &error))?;
    }
    Ok(roots)
}

pub(crate) fn no_authority(ca: &Path, error: &dyn Error) -> SetupError {
    SetupError::Pem {
        path: ca.to_owned(),
        what: format!("it holds a certificate that cannot be a CA's: {error}"),
    }
}

fn pair_problem(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            "the key does not match the certificate (configure the two files that were made together)"
                .to_owned()
        }
        other => format!("{other} (RSA, ECDSA and Ed25519 are supported)"),
    }
}

pub(crate) fn certificates(
    path: &Path,
    writers: Option<&Writers>,
) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let text = read(path, None, writers)?;
    let bad = |what: &str| SetupError::Pem {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|_| bad("it is not PEM: a section is truncated or not base64"))?;
    if found.is_empty() {
        return Err(bad(
            "it holds no certificate (expected PEM, with -----BEGIN CERTIFICATE-----)",
        ));
    }
    Ok(found)
}

pub(crate) fn private_key(
    path: &Path,
    writers: Option<&Writers>,
) -> Result<PrivateKeyDer<'static>, SetupError> {
    let text = read(path, Some(KEY_FORBIDDEN), writers)?;
    // The parser's own error may quote a line of the file.
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| SetupError::Pem {
        path: path.to_owned(),
        what: "it holds no private key that can be read (expected PEM, with -----BEGIN PRIVATE KEY-----, not encrypted)"
            .to_owned(),
    })
}

/// Reads the complete file into memory that is wiped when dropped. Rejects a file with `forbidden`
/// mode bits, and one that others than `writers` could have written.
fn read(
    path: &Path,
    forbidden: Option<u32>,
    writers: Option<&Writers>,
) -> Result<Zeroizing<Vec<u8>>, SetupError> {
    let not_read = |source| SetupError::NotRead {
        path: path.to_owned(),
        source,
    };
    let mut file = guard::open_regular(path).map_err(not_read)?;
    let metadata = file.metadata().map_err(not_read)?;
    // Before the content is read: a user who could write the file could choose the authority.
    if let Some(writers) = writers {
        writers.check(path)?;
    }
    if forbidden.is_some_and(|forbidden| metadata.mode() & forbidden != 0) {
        return Err(SetupError::TooOpen {
            path: path.to_owned(),
            mode: metadata.mode() & 0o7777,
        });
    }
    guard::read_wiped(&mut file, FILE_BYTES_MAX).map_err(not_read)
}

/// The TLS error in the source chain of `error`, at any depth.
pub(crate) fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        next = match error.downcast_ref::<io::Error>() {
            // The `source` of an I/O error skips the error that it wraps.
            Some(outer) => outer.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Describes a TLS error, with advice on which side has to change what.
pub(crate) fn failure(error: &rustls::Error, host: &str) -> Failure {
    use rustls::Error as Tls;
    let (problem, advice) = match error {
        Tls::InvalidCertificate(error) => certificate_problem(error, host),
        Tls::AlertReceived(alert) => alert_problem(*alert),
        Tls::InvalidMessage(_) => (
            "the server does not speak TLS".to_owned(),
            "is the port right, and does the KME listen there with https?",
        ),
        Tls::PeerIncompatible(error) => (
            format!("no common version, suite or key exchange: {error:?}"),
            "the KME must offer TLS 1.2 or 1.3 with AES-GCM or ChaCha20-Poly1305",
        ),
        other => (
            other.to_string(),
            "the KME, or a device on the path, violates TLS: see the KME's log",
        ),
    };
    Failure::Tls { problem, advice }
}

fn certificate_problem(error: &CertificateError, host: &str) -> (String, &'static str) {
    use CertificateError as Bad;
    match error {
        Bad::Expired | Bad::ExpiredContext { .. } => (
            format!("the KME's certificate has expired: {error}"),
            "have it renewed, or set this machine's clock",
        ),
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => (
            format!("the KME's certificate is not valid yet: {error}"),
            "set this machine's clock, or the clock of the machine that issued the certificate",
        ),
        Bad::UnknownIssuer | Bad::BadSignature => (
            "the KME's certificate is not signed by a CA of the file `ca`".to_owned(),
            "give the certificate of the CA that signed it; if you do not know that CA, do not",
        ),
        Bad::NotValidForName => (
            format!("the KME's certificate is not for `{host}`"),
            "use a name of the certificate in the URL, or have one issued for this name or address",
        ),
        Bad::NotValidForNameContext { presented, .. } => (
            format!(
                "the KME's certificate is not for `{host}`, but for {}",
                quoted(&presented.join(", "))
            ),
            "use a name of the certificate in the URL, or have one issued for this name or address",
        ),
        Bad::Revoked => (
            "the KME's certificate is revoked".to_owned(),
            "have a new one issued",
        ),
        Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. } => (
            "the KME's certificate is not valid for a server".to_owned(),
            "have one issued for server authentication",
        ),
        other => (
            format!("the KME's certificate is not valid: {other}"),
            "have a new one issued: X.509 version 3, with the host in its subject alternative names",
        ),
    }
}

fn alert_problem(alert: AlertDescription) -> (String, &'static str) {
    use AlertDescription as Alert;
    match alert {
        Alert::CertificateExpired | Alert::CertificateRevoked => (
            format!(
                "the KME regards the certificate of this SAE as expired or revoked ({alert:?})"
            ),
            "have it renewed, and check the clocks of both machines",
        ),
        Alert::NoCertificate
        | Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateUnknown
        | Alert::CertificateRequired
        | Alert::UnknownCA
        | Alert::AccessDenied
        | Alert::DecryptError => (
            format!("the KME does not accept the certificate of this SAE ({alert:?})"),
            "have it signed by a CA that the KME knows, for client authentication",
        ),
        Alert::HandshakeFailure | Alert::ProtocolVersion | Alert::InsufficientSecurity => (
            format!("no common version, suite or key exchange ({alert:?})"),
            "the KME must offer TLS 1.2 or 1.3 with AES-GCM or ChaCha20-Poly1305",
        ),
        Alert::UnrecognisedName => (
            "the KME does not know the host name of the URL".to_owned(),
            "use the name that it is configured with",
        ),
        other => (
            format!("the KME aborts the handshake ({other:?})"),
            "see the KME's log",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn finds_a_nested_tls_error() {
        let tls = rustls::Error::AlertReceived(AlertDescription::UnknownCA);
        let outer = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls.clone()));
        assert_eq!(cause_of(&outer), Some(&tls));
        assert_eq!(cause_of(&io::Error::other("no")), None);
        assert_eq!(cause_of(&io::Error::from_raw_os_error(111)), None);
    }

    #[test]
    fn rejects_a_private_key_that_others_may_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
        let error = private_key(file.path(), None).unwrap_err();
        assert!(
            error.to_string().contains("mode 0640") && error.to_string().contains("chmod 600"),
            "{error}"
        );
    }

    #[test]
    fn describes_the_expected_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path();
        for (text, expected) in [
            ("", "holds no certificate"),
            ("hello", "holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\nMIIB", "not PEM"),
            (
                "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n",
                "not PEM",
            ),
        ] {
            fs::write(path, text).unwrap();
            let error = certificates(path, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        fs::write(path, "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n").unwrap();
        let error = private_key(path, None).unwrap_err().to_string();
        assert!(error.contains("holds no private key"), "{error}");
        assert!(!error.contains("c2V"), "{error}");
        fs::write(path, vec![b'a'; FILE_BYTES_MAX + 1]).unwrap();
        let error = certificates(path, None).unwrap_err().to_string();
        assert!(error.contains("right file"), "{error}");
        let error = certificates(Path::new("/"), None).unwrap_err().to_string();
        assert!(error.contains("not a file"), "{error}");
    }
}

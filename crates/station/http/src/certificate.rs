//! The certificate and the authority of one trial.

use crate::error::HttpError;
use crate::spec::{Identity, SERVER_NAME};
use pki::{Authority, CertificateError, days_from_now};
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;

/// A trial takes a day at most.
const DAYS: u32 = 2;

/// The credentials that both ends of a trial need for TLS.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The authority's certificate in PEM, for the client.
    pub authority: String,
    /// Certificate and key, for the server.
    pub identity: Identity,
}

/// Creates an authority and a certificate for [`SERVER_NAME`] that it signs.
///
/// # Errors
/// [`HttpError::Certificate`]: the operating system gives no randomness.
pub fn issue() -> Result<Certificate, HttpError> {
    let issued = || {
        let authority = Authority::generate()?;
        let server = authority.issue(SERVER_NAME, days_from_now(DAYS))?;
        Ok(Certificate {
            authority: authority.certificate().to_owned(),
            identity: Identity {
                certificate: server.certificate,
                key: server.key.to_string(),
            },
        })
    };
    issued().map_err(|error: CertificateError| HttpError::Certificate(error.to_string()))
}

/// The client's TLS 1.3 configuration. It trusts only this authority and resumes no session, so
/// each connection has a full handshake.
pub(crate) fn client_config(
    authority: &str,
    protocol: &[u8],
) -> Result<Arc<rustls::ClientConfig>, HttpError> {
    let refused = |error: &dyn std::fmt::Display| HttpError::Certificate(error.to_string());
    let authority = CertificateDer::from_pem_slice(authority.as_bytes());
    let mut roots = RootCertStore::empty();
    let authority = authority.map_err(|error| refused(&error))?;
    roots.add(authority).map_err(|error| refused(&error))?;
    // The provider is named, since rustls has no default if a build has two of them.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| refused(&error))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    // The version is fixed by ALPN: a server that chose another one would be measured under the
    // wrong name.
    config.alpn_protocols = vec![protocol.to_vec()];
    // A resumed session would cost the server less than a full handshake.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

//! The certificate and the authority of one trial.

use crate::error::HttpError;
use crate::spec::{Identity, SERVER_NAME};
use control::certificates::{create_authority, create_certificate};
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
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
/// [`HttpError::Certificate`], and [`HttpError::System`] if no temporary folder can be created.
pub fn issue() -> Result<Certificate, HttpError> {
    let refused = |error: &dyn std::fmt::Display| HttpError::Certificate(error.to_string());
    let folder = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir();
    let folder = folder.map_err(HttpError::system("create a folder"))?;
    let folder = folder.path();
    let authority = create_authority(folder).map_err(|error| refused(&error))?;
    let server =
        create_certificate(folder, SERVER_NAME, folder, DAYS).map_err(|error| refused(&error))?;
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(HttpError::system(format!("read {}", path.display())))
    };
    Ok(Certificate {
        authority: read(&authority.certificate)?,
        identity: Identity {
            certificate: read(&server.certificate)?,
            key: read(&server.key)?,
        },
    })
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
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| refused(&error))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

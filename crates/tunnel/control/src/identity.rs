//! The gateway's identity: its certificate and key, and the authority that it trusts.

use crate::reason;
use crate::tls;
use guard::Writers;
use pki::{ReadError, certificates_of_pem, name_of, read_public, read_secret, validity_of};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use zeroize::Zeroize;

/// A gateway's validated certificate and key, ready for handshakes.
#[derive(Clone)]
pub struct Identity {
    name: String,
    files: Files,
    valid: Range<SystemTime>,
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) server: Arc<ServerConfig>,
}

/// The files of an identity.
#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    ca: PathBuf,
    /// Who may have written them.
    writers: Writers,
}

/// Why an identity cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read, or others may use it.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file has invalid content.
    #[error("{}: {what}", .path.display())]
    Malformed {
        /// File.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// The key does not match the certificate.
    #[error(
        "the key {} does not match the certificate {} (use the two files that were made together)",
        .key.display(), .certificate.display()
    )]
    KeyDiffers {
        /// Key file.
        key: PathBuf,
        /// Certificate file.
        certificate: PathBuf,
    },
    /// No peer would accept the certificate.
    #[error("the certificate {} cannot be used: {what}", .path.display())]
    Refused {
        /// Certificate file.
        path: PathBuf,
        /// Why peers would reject it.
        what: String,
    },
    /// The certificate that was read again has another name, which no peer accepts.
    #[error("the certificate {} is now that of {now}, not of {before} (restart the service to change its name)", .path.display())]
    OtherName {
        /// Certificate file.
        path: PathBuf,
        /// The name in use.
        before: String,
        /// The name in the file.
        now: String,
    },
    /// TLS cannot be configured with the identity.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl Identity {
    /// Reads certificate (intermediates may follow in the same file), key and authority, all PEM.
    /// Makes the checks of a peer: the certificate's validity period, the authority's signature,
    /// client and server authentication, and that it has exactly one name.
    ///
    /// # Errors
    /// [`IdentityError`], with the file and the remedy.
    pub fn load(certificate: &Path, key: &Path, ca: &Path) -> Result<Self, IdentityError> {
        Self::load_for(certificate, key, ca, &Writers::of_process())
    }

    /// As [`load`](Self::load), but these users may have written the files.
    ///
    /// # Errors
    /// As there.
    pub fn load_for(
        certificate: &Path,
        key: &Path,
        ca: &Path,
        writers: &Writers,
    ) -> Result<Self, IdentityError> {
        let chain = certificates(certificate, writers)?;
        let roots = Arc::new(roots(ca, writers)?);
        let provider = tls::provider();
        let own = {
            let mut key_der = private_key(key, writers)?;
            let loaded = any_supported_type(&key_der);
            // The library keeps a copy in its key; this one is no longer needed, and
            // `PrivateKeyDer` does not wipe itself.
            key_der.zeroize();
            CertifiedKey::new(chain, loaded.map_err(|error| malformed(key, error))?)
        };
        // Found here with the names of the files; otherwise each handshake would fail at the peer.
        own.keys_match().map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => IdentityError::KeyDiffers {
                key: key.to_owned(),
                certificate: certificate.to_owned(),
            },
            other => malformed(certificate, other),
        })?;
        let refused = |what| IdentityError::Refused {
            path: certificate.to_owned(),
            what,
        };
        // With the code of rustls that a peer uses, for both roles: a certificate that this accepts
        // does not fail later.
        check(&own.cert, &roots, &provider).map_err(|error| match error {
            rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => refused(format!(
                "the authority in {} has not signed it",
                ca.display()
            )),
            other => refused(reason::of_certificate(&other)),
        })?;
        // The first certificate is the gateway's; intermediate ones follow.
        let name = name_of(&own.cert[0]).map_err(refused)?;
        let valid = validity_of(&own.cert).map_err(refused)?;
        let own = Arc::new(own);
        let client = tls::client(&provider, &roots, &own).map_err(IdentityError::Tls)?;
        let server = tls::server(&provider, &roots, &own).map_err(IdentityError::Tls)?;
        Ok(Self {
            name,
            files: Files {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
                ca: ca.to_owned(),
                // Kept for a reload, when the process may have dropped its privileges.
                writers: writers.clone(),
            },
            valid,
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }

    /// Reads the same files again, and checks them in the same way. Connections that are up are not
    /// affected.
    ///
    /// # Errors
    /// As [`load`](Self::load), and if the name has changed.
    pub fn reload(&self) -> Result<Self, IdentityError> {
        let Files {
            certificate,
            key,
            ca,
            writers,
        } = &self.files;
        let new = Self::load_for(certificate, key, ca, writers)?;
        // Peers are configured with the name, and keys are bound to it.
        if new.name != self.name {
            return Err(IdentityError::OtherName {
                path: certificate.clone(),
                before: self.name.clone(),
                now: new.name,
            });
        }
        Ok(new)
    }

    /// The period in which the certificate and all of its intermediates are valid.
    #[must_use]
    pub fn valid(&self) -> Range<SystemTime> {
        self.valid.clone()
    }

    /// The name in the certificate.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The TLS configuration of the connector. A caller that uses it without the rest of this crate
    /// must verify each handshake with [`tls::session`].
    #[must_use]
    pub fn client_config(&self) -> &Arc<ClientConfig> {
        &self.client
    }

    /// The TLS configuration of the listener; [`client_config`](Self::client_config) applies here
    /// too.
    #[must_use]
    pub fn server_config(&self) -> &Arc<ServerConfig> {
        &self.server
    }
}

/// Omits the contents, which include a key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Verifies the certificate now as a listener and a connector would.
fn check(
    chain: &[CertificateDer<'_>],
    roots: &Arc<RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<(), rustls::Error> {
    // `certificates` has refused an empty file.
    let (own, intermediates) = chain.split_first().expect("there is at least one");
    let now = UnixTime::now();
    verify_server_cert_signed_by_trust_anchor(
        &ParsedCertificate::try_from(own)?,
        roots,
        intermediates,
        now,
        provider.signature_verification_algorithms.all,
    )?;
    // Made anew for each check: it is used at a start and a reload only.
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
    verifier.verify_client_cert(own, intermediates, now)?;
    Ok(())
}

/// Reads at least one certificate.
fn certificates(
    path: &Path,
    writers: &Writers,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let text = read_public(path, writers)?;
    let found = certificates_of_pem(&text).map_err(|what| malformed(path, what))?;
    Ok(found.into_iter().map(CertificateDer::from).collect())
}

fn roots(path: &Path, writers: &Writers) -> Result<RootCertStore, IdentityError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, writers)? {
        roots
            .add(certificate)
            .map_err(|error| malformed(path, reason::of_certificate(&error)))?;
    }
    Ok(roots)
}

fn private_key(path: &Path, writers: &Writers) -> Result<PrivateKeyDer<'static>, IdentityError> {
    let text = read_secret(path, writers)?;
    PrivateKeyDer::from_pem_slice(&text)
        // The parser's error is dropped: it might quote a part of the key.
        .map_err(|_| malformed(path, "it has no private key in PEM"))
}

fn malformed(path: &Path, what: impl fmt::Display) -> IdentityError {
    IdentityError::Malformed {
        path: path.to_owned(),
        what: what.to_string(),
    }
}

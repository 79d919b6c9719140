//! TLS of a KME: its own certificate, and identification of callers by theirs.

use super::config::KmeConfig;
use super::network::Sae;
use crate::error::SetupError;
use crate::tls::{certificates, no_authority, private_key, roots};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use std::sync::Arc;

/// A KME's TLS configuration: TLS 1.2 or 1.3 (clause 5.1), for clients whose certificates its
/// authority signed. Sessions are not resumed, so each connection is verified in full.
///
/// # Errors
/// [`SetupError`]: a file cannot be read or is invalid.
pub(super) fn server_config(kme: &KmeConfig) -> Result<ServerConfig, SetupError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let roots = roots(&kme.ca, None)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| no_authority(&kme.ca, &error))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has suites of all versions")
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            certificates(&kme.certificate, None)?,
            private_key(&kme.key, None)?,
        )
        .map_err(|error| SetupError::Pair {
            certificate: kme.certificate.clone(),
            key: kme.key.clone(),
            what: error.to_string(),
        })?;
    // A client that offers only HTTP/2 is then refused in the handshake, with an alert that says
    // so.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The SAEs of one KME by the DNS names in their certificates.
pub(super) struct Names(Vec<(Sae, ServerName<'static>)>);

impl Names {
    pub(super) fn new(saes: &[String]) -> Self {
        let named = saes.iter().map(|sae| {
            let name = ServerName::try_from(sae.clone());
            (
                sae.as_str().into(),
                name.expect("the configuration was checked"),
            )
        });
        Self(named.collect())
    }

    /// The SAE that the certificate identifies; `None` if it matches no SAE, or more than one
    /// (several names, or a wildcard).
    pub(super) fn sae(&self, certificate: &CertificateDer<'_>) -> Option<Sae> {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        let mut named = self
            .0
            .iter()
            .filter(|(_, name)| verify_server_name(&parsed, name).is_ok());
        let (sae, _) = named.next()?;
        // A wildcard would let one certificate speak for several SAEs.
        named.next().is_none().then(|| Sae::clone(sae))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    fn certificate(names: &[&str]) -> CertificateDer<'static> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let made = CertificateParams::new(names).unwrap().self_signed(&key);
        made.unwrap().der().clone()
    }

    #[test]
    fn a_certificate_identifies_the_calling_sae() {
        let names = Names::new(&["gw1".to_owned(), "gw2.x".to_owned(), "gw3.x".to_owned()]);
        let sae = |names_in_it: &[&str]| names.sae(&certificate(names_in_it));
        assert_eq!(sae(&["gw1"]).as_deref(), Some("gw1"));
        assert_eq!(sae(&["GW2.x", "other"]).as_deref(), Some("gw2.x"));
        assert_eq!(sae(&["gw"]), None);
        assert_eq!(sae(&["127.0.0.1"]), None);
        assert_eq!(sae(&["gw1", "gw2.x"]), None);
        assert_eq!(sae(&["*.x"]), None);
        assert_eq!(names.sae(&CertificateDer::from(vec![0x30, 0])), None);
    }
}

//! The handshake: TLS 1.3 with X25519MLKEM768 and AES-256-GCM, both sides with certificates, and nothing else.
//!
//! There is no second choice to fall back to: another version, group or cipher is not offered, sessions are never resumed, no
//! tickets are given, no data goes with the first flight. And what came out of a handshake is looked at again ([`session`]):
//! a mistake in a configuration must not become a weaker key.
//!
//! Sources: RFC 8446; draft-ietf-tls-ecdhe-mlkem for the group; RFC 8446 §7.5 and RFC 5705 for the exporter.

use crate::names;
use keying::chain::{CHAIN_BYTES, Secret};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::pki_types::ServerName;
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    CipherSuite, ClientConfig, CommonState, ConnectionCommon, HandshakeKind, NamedGroup,
    ProtocolVersion, RootCertStore, ServerConfig,
};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The key exchange, as it is told to people.
pub const KEY_EXCHANGE: &str = "X25519MLKEM768";
/// What the keys of a tunnel come from in the handshake (RFC 8446 §7.5). It takes no context: what keys are bound to enters
/// later derivations.
const EXPORTER_LABEL: &[u8] = b"EXPORTER-cipherbench-esp";

/// What a handshake gave, once all of it was found to be as it must be.
pub struct Session {
    /// From the exporter; the same on both sides, and nowhere else.
    pub secret: Secret,
    /// The name in the peer's certificate.
    pub peer: String,
}

/// What a handshake should never have given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// It is not yet done, or does not tell.
    #[error("the handshake told no {0}")]
    Untold(&'static str),
    /// Another version, group or cipher.
    #[error("the handshake gave {what} {got}, where only {expected} may be")]
    Other {
        /// What sort of thing.
        what: &'static str,
        /// What it gave.
        got: String,
        /// What it must give.
        expected: &'static str,
    },
    /// The peer's certificate names nobody, or several.
    #[error("the peer's certificate cannot be used: {0}")]
    Name(String),
    /// No secret could be had.
    #[error("the handshake gave no secret: {0}")]
    Exporter(String),
}

/// Cryptography of which only what is wanted is there.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: vec![kx_group::X25519MLKEM768],
        cipher_suites: vec![cipher_suite::TLS13_AES_256_GCM_SHA384],
        ..aws_lc_rs::default_provider()
    })
}

/// Of the side that connects.
pub(crate) fn client(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    own: &Arc<CertifiedKey>,
) -> Result<ClientConfig, String> {
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .build()
            .map_err(|error| error.to_string())?;
    let mut config = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| error.to_string())?
        .with_webpki_verifier(verifier)
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    // The peer's name would be sent in clear, and one who listens has no certificates to choose from.
    config.enable_sni = false;
    Ok(config)
}

/// Of the side that listens.
pub(crate) fn server(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    own: &Arc<CertifiedKey>,
) -> Result<ServerConfig, String> {
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            // Nobody has another certificate to choose; without hints a foreign one is shown, and told as that.
            .clear_root_hint_subjects()
            .build()
            .map_err(|error| error.to_string())?;
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_tls13_tickets = 0;
    config.max_early_data_size = 0;
    config.send_half_rtt_data = false;
    Ok(config)
}

/// The secret and the peer of a handshake that is done, if it is one that may be used.
///
/// # Errors
/// [`Breach`]: the connection is to be closed, and nothing of it used.
pub fn session<Data>(connection: &ConnectionCommon<Data>) -> Result<Session, Breach>
where
    ConnectionCommon<Data>: Deref<Target = CommonState>,
{
    if connection.is_handshaking() {
        return Err(Breach::Untold("end"));
    }
    let version = connection.protocol_version();
    if version != Some(ProtocolVersion::TLSv1_3) {
        return Err(other("version", version, "TLS 1.3"));
    }
    let group = connection
        .negotiated_key_exchange_group()
        .map(|group| group.name());
    if group != Some(NamedGroup::X25519MLKEM768) {
        return Err(other("key exchange", group, KEY_EXCHANGE));
    }
    let suite = connection
        .negotiated_cipher_suite()
        .map(|suite| suite.suite());
    if suite != Some(CipherSuite::TLS13_AES_256_GCM_SHA384) {
        return Err(other("cipher", suite, "AES-256-GCM with SHA-384"));
    }
    let kind = connection.handshake_kind();
    if !matches!(
        kind,
        Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest)
    ) {
        return Err(other("kind of handshake", kind, "a full one"));
    }
    let certificate = connection
        .peer_certificates()
        .and_then(<[_]>::first)
        .ok_or(Breach::Untold("certificate of the peer"))?;
    let peer = names::of_certificate(certificate).map_err(Breach::Name)?;
    // What told the name is not what is made to check it.
    let name =
        ServerName::try_from(peer.as_str()).map_err(|error| Breach::Name(error.to_string()))?;
    ParsedCertificate::try_from(certificate)
        .and_then(|parsed| verify_server_name(&parsed, &name))
        .map_err(|error| Breach::Name(error.to_string()))?;
    let mut secret = Zeroizing::new([0; CHAIN_BYTES]);
    connection
        .export_keying_material(&mut *secret, EXPORTER_LABEL, None)
        .map_err(|error| Breach::Exporter(error.to_string()))?;
    Ok(Session { secret, peer })
}

fn other(what: &'static str, got: Option<impl fmt::Debug>, expected: &'static str) -> Breach {
    Breach::Other {
        what,
        got: got.map_or_else(|| "none".to_owned(), |got| format!("{got:?}")),
        expected,
    }
}

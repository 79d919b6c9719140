//! The handshake: TLS 1.3 with X25519MLKEM768 and AES-256-GCM, mutually authenticated, nothing
//! else.
//!
//! There is no fallback: no other version, group or cipher is offered, sessions are never resumed,
//! no tickets are issued, and there is no early data. [`session`] verifies the result of each
//! handshake again: a configuration mistake must not result in a weaker key.
//!
//! Sources: RFC 8446; draft-ietf-tls-ecdhe-mlkem for the group; RFC 8446 §7.5 and RFC 5705 for the
//! exporter.

use crate::reason;
use keying::chain::{CHAIN_BYTES, Secret};
use pki::{name_of, validity_of};
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
use std::time::SystemTime;
use zeroize::Zeroizing;

/// Name of the key exchange in messages.
pub const KEY_EXCHANGE: &str = "X25519MLKEM768";
/// Exporter label for the secret that a tunnel's keys derive from (RFC 8446 §7.5). It has no
/// context: later derivations bind the keys to theirs.
const EXPORTER_LABEL: &[u8] = b"EXPORTER-cipherbench-esp";

/// The verified result of a handshake.
pub struct Session {
    /// The exported secret, known to the two sides only.
    pub secret: Secret,
    /// The name in the peer's certificate.
    pub peer: String,
    /// When the first of the peer's certificates expires.
    pub not_after: SystemTime,
}

/// A handshake result that must not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// The handshake is not complete, or a property is unknown.
    #[error("the handshake is incomplete: no {0}")]
    Missing(&'static str),
    /// Another version, group, cipher or kind of handshake.
    #[error("the handshake negotiated {what} {got}, but only {expected} is permitted")]
    Other {
        /// The property.
        what: &'static str,
        /// The negotiated value.
        got: String,
        /// The only permitted value.
        expected: &'static str,
    },
    /// The peer's certificate has no name, or several.
    #[error("the peer's certificate cannot be used: {0}")]
    Name(String),
    /// The exporter failed.
    #[error("the handshake exported no secret: {0}")]
    Exporter(String),
}

/// A crypto provider with the only permitted key exchange and cipher suite.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: vec![kx_group::X25519MLKEM768],
        cipher_suites: vec![cipher_suite::TLS13_AES_256_GCM_SHA384],
        ..aws_lc_rs::default_provider()
    })
}

/// The TLS configuration of the connector.
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
    // A resumed session would repeat no check of the certificates.
    config.resumption = Resumption::disabled();
    // Early data can be replayed (RFC 8446 §8).
    config.enable_early_data = false;
    // SNI would send the peer's name in clear, and a listener has one certificate only.
    config.enable_sni = false;
    Ok(config)
}

/// The TLS configuration of the listener.
pub(crate) fn server(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    own: &Arc<CertifiedKey>,
) -> Result<ServerConfig, String> {
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            // A client has one certificate only; without hints it sends it even if another
            // authority signed it, and the error says so.
            .clear_root_hint_subjects()
            .build()
            .map_err(|error| error.to_string())?;
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
    // The same on this side: no tickets, no stored sessions, no early data that could be replayed.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_tls13_tickets = 0;
    config.max_early_data_size = 0;
    config.send_half_rtt_data = false;
    Ok(config)
}

/// Verifies a completed handshake and returns its secret and peer.
///
/// # Errors
/// [`Breach`]: the connection must be closed, and nothing of it used.
pub fn session<Data>(connection: &ConnectionCommon<Data>) -> Result<Session, Breach>
where
    ConnectionCommon<Data>: Deref<Target = CommonState>,
{
    // The properties below are not final until then.
    if connection.is_handshaking() {
        return Err(Breach::Missing("end"));
    }
    // All of these were configured. A mistake in the configuration, or in the library, must not go
    // unnoticed.
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
    // A HelloRetryRequest is a full handshake with one more round trip.
    let kind = connection.handshake_kind();
    if !matches!(
        kind,
        Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest)
    ) {
        return Err(other("kind of handshake", kind, "a full one"));
    }
    let chain = connection.peer_certificates().unwrap_or_default();
    let certificate = chain
        .first()
        .ok_or(Breach::Missing("certificate of the peer"))?;
    let peer = name_of(certificate).map_err(Breach::Name)?;
    // The name was extracted by other code than TLS verifies names with, so verify it as TLS does.
    let name =
        ServerName::try_from(peer.as_str()).map_err(|error| Breach::Name(error.to_string()))?;
    ParsedCertificate::try_from(certificate)
        .and_then(|parsed| verify_server_name(&parsed, &name))
        .map_err(|error| Breach::Name(reason::of_certificate(&error)))?;
    // Of the whole chain: an intermediate certificate may expire before the peer's.
    let not_after = validity_of(chain).map_err(Breach::Name)?.end;
    let mut secret = Zeroizing::new([0; CHAIN_BYTES]);
    connection
        .export_keying_material(&mut *secret, EXPORTER_LABEL, None)
        .map_err(|error| Breach::Exporter(error.to_string()))?;
    Ok(Session {
        secret,
        peer,
        not_after,
    })
}

fn other(what: &'static str, got: Option<impl fmt::Debug>, expected: &'static str) -> Breach {
    Breach::Other {
        what,
        got: got.map_or_else(|| "none".to_owned(), |got| format!("{got:?}")),
        expected,
    }
}

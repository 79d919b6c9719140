//! A client of one KME: the three calls of ETSI GS QKD 014 v1.1.1 clause 5.

use crate::answer::{Answer, is_uuid};
use crate::channel::{Call, Channel, Target};
use crate::error::{Failure, KmeError, SetupError, quoted};
use crate::key::QkdKey;
use crate::ledger::Ledger;
use crate::tls;
use crate::types::{Extension, KeyId, KeyIds, KeyRequest, Status};
use guard::Writers;
use hyper::body::Bytes;
use hyper::{Method, Uri};
use rustls::pki_types::ServerName;
use std::fmt::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The port of a URL without one.
const HTTPS_PORT: u16 = 443;
/// Maximum length of an SAE ID in characters.
const SAE_CHARS_MAX: usize = 255;

/// Configuration of a [`Kme`].
#[derive(Debug, Clone)]
pub struct Setup {
    /// `https://host:port`, followed by a path if the KME serves `/api/v1/keys` below one.
    pub url: String,
    /// ID of this side's SAE; the KME derives the same ID from its certificate.
    pub sae: String,
    /// PEM file of the SAE's certificate, followed by its intermediates.
    pub certificate: PathBuf,
    /// PEM file of the private key, accessible to its owner only (mode 600).
    pub key: PathBuf,
    /// PEM file of the CAs that may have signed the KME's certificate.
    pub ca: PathBuf,
    /// Limit for each call, including queueing and connecting.
    pub timeout: Duration,
}

/// One SAE's client of its KME. Clones share one client.
///
/// Runs on the caller's tokio runtime (a single-threaded one suffices) and opens no file after
/// construction. It never returns a key twice, whatever the KME delivers, as long as it remembers
/// the key (about 30 000 keys).
#[derive(Clone)]
pub struct Kme {
    inner: Arc<Inner>,
}

struct Inner {
    /// The URL up to `/api/v1/keys`, without a trailing slash.
    base: String,
    /// The path of `base`.
    prefix: String,
    sae: String,
    channel: Channel,
    ledger: Mutex<Ledger>,
    /// The KME answered a GET with status 405 and a POST with another.
    posts_only: AtomicBool,
}

impl Kme {
    /// Reads the files and resolves the host; sends nothing yet. Blocks during name resolution.
    ///
    /// # Errors
    /// [`SetupError`]: the invalid setting and the reason.
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        Self::new_for(setup, &Writers::of_process())
    }

    /// As [`new`](Self::new), where these users may have written the files.
    ///
    /// # Errors
    /// As there.
    pub fn new_for(setup: &Setup, writers: &Writers) -> Result<Self, SetupError> {
        if let Err(what) = check_sae(&setup.sae) {
            return Err(SetupError::Sae {
                id: quoted(&setup.sae),
                what,
            });
        }
        // Every call would fail, in a way that looks like a fault of the network.
        if setup.timeout.is_zero() {
            return Err(SetupError::NoTimeout);
        }
        // Resolved before the caller drops its privileges: afterwards the resolver's files may be
        // out of reach.
        let (target, prefix) = target(&setup.url)?;
        let config = tls::client_config(&setup.certificate, &setup.key, &setup.ca, writers)?;
        Ok(Self {
            inner: Arc::new(Inner {
                base: format!("https://{}{prefix}", target.authority),
                prefix,
                sae: setup.sae.clone(),
                channel: Channel::new(target, config, setup.timeout),
                ledger: Mutex::new(Ledger::new()),
                posts_only: AtomicBool::new(false),
            }),
        })
    }

    /// ID of this side's SAE.
    #[must_use]
    pub fn sae(&self) -> &str {
        &self.inner.sae
    }

    /// The KME's URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.inner.base
    }

    /// The KME's addresses, as resolved.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.inner.channel.addresses()
    }

    /// "Get status": the KME's status for this SAE as master and `slave`.
    ///
    /// # Errors
    /// [`KmeError`]; [`Failure::WrongSae`] if the KME knows this SAE by an ID other than the
    /// configured one.
    pub async fn status(&self, slave: &str) -> Result<Status, KmeError> {
        let url = self.url_of(slave, "status")?;
        let failed = |failure| url.failed(failure);
        let nothing = Extension::new();
        let answer = self.get(&url, String::new(), &nothing).await;
        let answer = answer.map_err(failed)?;
        let status = answer.status().map_err(failed)?;
        // The peer names this side by the configured ID when it fetches keys. Under another one it
        // would find none.
        if status.master_sae_id != self.inner.sae {
            return Err(failed(Failure::WrongSae {
                reported: quoted(&status.master_sae_id),
                own: quoted(&self.inner.sae),
            }));
        }
        Ok(status)
    }

    /// "Get key": new keys, which `slave` can get from its KME by their IDs. Uses GET if the query
    /// can express the request and the KME accepts it, otherwise POST.
    ///
    /// # Errors
    /// [`KmeError`]; keys that the KME may have delivered are then discarded.
    pub async fn new_keys(
        &self,
        slave: &str,
        request: &KeyRequest,
    ) -> Result<Vec<QkdKey>, KmeError> {
        let url = self.url_of(slave, "enc_keys")?;
        let failed = |failure| url.failed(failure);
        check_request(request).map_err(failed)?;
        // GET needs no body, but has only number and size (clause 5.3).
        let answer = if request.is_simple() {
            self.get(&url, query_of(request), request).await
        } else {
            self.post(&url, request).await
        };
        let keys = answer.and_then(|answer| answer.new_keys(request));
        let keys = keys.map_err(failed)?;
        // Entered before they are returned: one key that was delivered before spoils the whole
        // response.
        self.enter(&keys).map_err(failed)?;
        Ok(keys)
    }

    /// "Get key with key IDs": the keys that `master` got from its KME, in the order of `ids`. Uses
    /// GET for one key, POST for several.
    ///
    /// # Errors
    /// [`KmeError`]; [`Failure::Used`] for an ID for which this client already received a key.
    pub async fn keys_by_id(&self, master: &str, ids: &[String]) -> Result<Vec<QkdKey>, KmeError> {
        let url = self.url_of(master, "dec_keys")?;
        let failed = |failure| url.failed(failure);
        self.check_ids(ids).map_err(failed)?;
        let key_ids = ids.iter().map(|id| KeyId {
            key_id: id.clone(),
            key_id_extension: None,
        });
        let request = KeyIds {
            key_ids: key_ids.collect(),
            key_ids_extension: None,
        };
        // For one key the simple form of the call is enough.
        let answer = if let [id] = ids {
            self.get(&url, format!("?key_ID={id}"), &request).await
        } else {
            self.post(&url, &request).await
        };
        let keys = answer.and_then(|answer| answer.keys_by_id(ids));
        let keys = keys.map_err(failed)?;
        self.enter(&keys).map_err(failed)?;
        Ok(keys)
    }

    /// Checks the IDs, which come from the peer, before they become part of a URL.
    fn check_ids(&self, ids: &[String]) -> Result<(), Failure> {
        if ids.is_empty() {
            return Err(Failure::Request(
                "no key id was given (at least one is needed)".to_owned(),
            ));
        }
        // Before the KME is asked: a key that was delivered once must not be used again, even if
        // the KME would deliver it again.
        let ledger = self.ledger();
        for (at, id) in ids.iter().enumerate() {
            if !is_uuid(id) {
                return Err(Failure::Request(format!(
                    "{} is not a key id (expected a UUID)",
                    quoted(id)
                )));
            }
            // UUIDs compare without case (RFC 9562 §4).
            if ids[..at].iter().any(|other| other.eq_ignore_ascii_case(id)) {
                return Err(Failure::Request(format!(
                    "key id {id} appears twice in one request"
                )));
            }
            if ledger.knows(id) {
                return Err(Failure::Used { id: id.clone() });
            }
        }
        Ok(())
    }

    fn enter(&self, keys: &[QkdKey]) -> Result<(), Failure> {
        self.ledger().enter(keys)
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        let ledger = self.inner.ledger.lock();
        ledger.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a GET; if the KME does not accept that method, a POST with `body`, the same request.
    async fn get(
        &self,
        url: &CallUrl<'_>,
        query: String,
        body: &impl serde::Serialize,
    ) -> Result<Answer, Failure> {
        // Saves the KME a refused call before each accepted one.
        if self.inner.posts_only.load(Ordering::Relaxed) {
            return self.post(url, body).await;
        }
        let call = Call {
            method: Method::GET,
            path: format!("{}{}{query}", self.inner.prefix, url.path),
            body: Bytes::new(),
        };
        let answer = self.inner.channel.call(&call).await?;
        if !answer.refuses_method() {
            return Ok(answer);
        }
        let answer = self.post(url, body).await?;
        if !answer.refuses_method() {
            // Only if the POST was not refused as well: a KME that refuses both methods has another
            // problem.
            self.inner.posts_only.store(true, Ordering::Relaxed);
        }
        Ok(answer)
    }

    async fn post(
        &self,
        url: &CallUrl<'_>,
        body: &impl serde::Serialize,
    ) -> Result<Answer, Failure> {
        let call = Call {
            method: Method::POST,
            path: format!("{}{}", self.inner.prefix, url.path),
            body: serde_json::to_vec(body)
                .expect("texts and numbers are JSON")
                .into(),
        };
        self.inner.channel.call(&call).await
    }

    fn url_of(&self, sae: &str, call: &str) -> Result<CallUrl<'_>, KmeError> {
        // Made before the check: the error names the call as well.
        let url = CallUrl {
            base: &self.inner.base,
            path: format!("/api/v1/keys/{}/{call}", encoded(sae)),
        };
        match check_sae(sae) {
            Ok(()) => Ok(url),
            Err(what) => Err(url.failed(Failure::Request(format!(
                "SAE id {} cannot be used: {what}",
                quoted(sae)
            )))),
        }
    }
}

impl fmt::Debug for Kme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kme({} for SAE {:?})", self.url(), self.sae())
    }
}

/// The URL of one call.
struct CallUrl<'a> {
    base: &'a str,
    /// The path after the base, percent-encoded.
    path: String,
}

impl CallUrl<'_> {
    fn failed(&self, failure: Failure) -> KmeError {
        KmeError {
            url: format!("{}{}", self.base, self.path),
            failure,
        }
    }
}

/// Parses a URL and resolves its host. Returns the target and the path prefix.
fn target(url: &str) -> Result<(Target, String), SetupError> {
    let bad = |what| SetupError::Url {
        url: url.escape_debug().to_string(),
        what,
    };
    // `Uri` drops a fragment silently.
    if url.contains('#') {
        return Err(bad("it has a fragment"));
    }
    let uri: Uri = url.parse().map_err(|_| bad("it is not well formed"))?;
    if uri.scheme_str() != Some("https") {
        return Err(bad("it must begin with https://"));
    }
    let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
    // A password in the URL would show up in logs and error messages.
    if authority.as_str().contains('@') {
        return Err(bad(
            "it has a user in it, but the certificate identifies the client",
        ));
    }
    if uri.query().is_some() {
        return Err(bad("it has a query"));
    }
    let prefix = uri.path().trim_end_matches('/').to_owned();
    if prefix.ends_with("/api/v1/keys") {
        return Err(bad("leave /api/v1/keys out, every call appends it"));
    }
    // The library's port accessor does not report a port that is not a number.
    let port = match authority.as_str().strip_prefix(authority.host()) {
        Some("") => HTTPS_PORT,
        rest => rest
            .and_then(|rest| rest.strip_prefix(':')?.parse().ok())
            .filter(|&port| port != 0)
            .ok_or_else(|| bad("it has no port that can be connected to"))?,
    };
    // An IPv6 address has brackets in a URL, but not in a certificate or for the resolver.
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    // The certificate is compared with the host as configured, not with its resolved address.
    let name = ServerName::try_from(host.clone())
        .map_err(|_| bad("its host is neither a DNS name nor an IP address"))?;
    let no_address = |source| SetupError::NoAddress {
        host: host.clone(),
        source,
    };
    let addresses: Vec<_> = (host.as_str(), port)
        .to_socket_addrs()
        .map_err(no_address)?
        .collect();
    if addresses.is_empty() {
        return Err(no_address(std::io::ErrorKind::NotFound.into()));
    }
    let target = Target {
        addresses,
        host: host.clone(),
        name,
        authority: authority.as_str().to_owned(),
    };
    Ok((target, prefix))
}

/// Checks an SAE ID, which is one path segment; `.` and `..` would act as dot segments however they
/// are encoded.
fn check_sae(id: &str) -> Result<(), &'static str> {
    match id {
        "" => Err("it is empty"),
        "." | ".." => Err("in a URL it means another folder"),
        _ if id.chars().count() > SAE_CHARS_MAX => Err("it has more than 255 characters"),
        _ if id.chars().any(char::is_control) => Err("it has a control character"),
        _ => Ok(()),
    }
}

fn check_request(request: &KeyRequest) -> Result<(), Failure> {
    if request.number == Some(0) {
        return Err(Failure::Request("0 keys are requested".to_owned()));
    }
    match request.size {
        Some(size) if size == 0 || size % 8 != 0 => Err(Failure::Request(format!(
            "keys of {size} bits are requested: the size must be a multiple of 8, and not 0"
        ))),
        _ => Ok(()),
    }
}

/// Number and size as a query. Unset values are omitted, so the KME applies its defaults.
fn query_of(request: &KeyRequest) -> String {
    let mut query = String::new();
    for (name, value) in [("number", request.number), ("size", request.size)] {
        if let Some(value) = value {
            let separator = if query.is_empty() { '?' } else { '&' };
            // Writing to a string cannot fail.
            let _ = write!(query, "{separator}{name}={value}");
        }
    }
    query
}

/// Encodes one path segment: all but the unreserved characters of RFC 3986 §2.3 become `%XX`.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        // A slash must be encoded: it would begin another segment.
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_urls() {
        let (kme, prefix) = target("https://127.0.0.1:8443/").unwrap();
        assert_eq!(kme.addresses, ["127.0.0.1:8443".parse().unwrap()]);
        assert_eq!((kme.host.as_str(), prefix.as_str()), ("127.0.0.1", ""));
        let (kme, prefix) = target("HTTPS://[::1]/kme/one/").unwrap();
        assert_eq!(kme.addresses, ["[::1]:443".parse().unwrap()]);
        assert_eq!((kme.host.as_str(), prefix.as_str()), ("::1", "/kme/one"));
        assert_eq!(kme.authority, "[::1]");
        let (kme, _) = target("https://localhost:1").unwrap();
        assert!(
            kme.addresses
                .iter()
                .all(|address| address.ip().is_loopback())
        );
    }

    #[test]
    fn rejects_urls_that_cannot_be_a_kme() {
        for (url, expected) in [
            ("", "not well formed"),
            ("10.0.0.1:443", "must begin with https://"),
            ("http://10.0.0.1", "must begin with https://"),
            ("https://", "not well formed"),
            ("https://10.0.0.1:0", "no port"),
            ("https://10.0.0.1:", "no port"),
            ("https://10.0.0.1:65536", "no port"),
            ("https://a@10.0.0.1", "user in it"),
            ("https://10.0.0.1?a", "a query"),
            ("https://10.0.0.1/#a", "a fragment"),
            ("https://10.0.0.1/api/v1/keys/", "leave /api/v1/keys out"),
            ("https://a b", "not well formed"),
            ("https://-", "neither a DNS name"),
        ] {
            let error = match target(url) {
                Ok(_) => panic!("{url} is taken"),
                Err(error) => error.to_string(),
            };
            assert!(error.contains(expected), "{url}: {error}");
        }
    }

    #[test]
    fn encodes_reserved_characters_of_a_path() {
        assert_eq!(encoded("gw-2.lab_~A"), "gw-2.lab_~A");
        assert_eq!(encoded("a/b?c#d%e f+ä"), "a%2Fb%3Fc%23d%25e%20f%2B%C3%A4");
        for bad in ["", ".", "..", "a\nb", &"x".repeat(256)] {
            assert!(check_sae(bad).is_err(), "{bad}");
        }
        assert_eq!(check_sae("..."), Ok(()));
    }

    #[test]
    fn a_query_omits_unset_values() {
        let mut request = KeyRequest::default();
        assert_eq!(query_of(&request), "");
        request.size = Some(256);
        assert_eq!(query_of(&request), "?size=256");
        assert_eq!(query_of(&KeyRequest::new(3, 1024)), "?number=3&size=1024");
    }
}

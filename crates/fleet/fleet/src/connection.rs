//! A connection to a fleet's server: authentication, trusted certificates, and the creation of
//! buckets.

use crate::bucket::{ANSWER_LIMIT, Bucket, ENTRY_BYTES_MAX};
use crate::denial::Denials;
use crate::error::{FleetError, disk, refused};
use crate::identity::Identity;
use crate::pin::Pin;
use crate::unreadable::Unreadable;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, kv, object_store};
use async_nats::rustls::pki_types::CertificateDer;
use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::{Auth, AuthError, ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};
use base16ct::lower::encode_string as hex;
use guard::Component;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between pings. A silent connection is given up after three.
const PING: Duration = Duration::from_secs(10);

/// The largest file of certificates, in bytes; a system's bundle has 220 kB.
const CERTIFICATES_BYTES_MAX: usize = 4 << 20;
/// The longest part of an address in a folder's name, in characters.
const READABLE_CHARS: usize = 60;

/// How to reach the server.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `nats://host:port`, or `tls://…`; of a cluster several, with commas between.
    pub url: String,
    /// A file with a user's NKey, alone or with a JWT.
    pub key: Option<PathBuf>,
    /// Certificates of the authority that signed the server's. If set, nothing is sent without TLS.
    pub ca: Option<PathBuf>,
}

impl Access {
    /// Returns a name for a folder of files from this server: its address without the user's
    /// password, for people, and a hash of it, so that two servers never share a folder.
    #[must_use]
    pub fn folder_name(&self) -> Component {
        let addresses = self.url.split(',');
        let addresses = addresses.map(|url| url.rsplit('@').next().unwrap_or(url));
        let address = addresses.collect::<Vec<_>>().join(",");
        let readable = address.chars().take(READABLE_CHARS);
        let readable: String = readable
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let hash = hex(&Sha256::digest(&address)[..8]);
        Component::new(format!("at-{readable}-{hash}"))
            .unwrap_or_else(|error| unreachable!("letters, digits and hyphens: {error}"))
    }
}

/// A connection, with the server's denials and the entries that could not be read.
pub(crate) struct Connection {
    pub(crate) context: jetstream::Context,
    pub(crate) denials: Denials,
    pub(crate) unreadable: Unreadable,
}

impl Connection {
    /// Connects to a server, or to any server of a cluster. A pinned certificate is accepted under
    /// any name.
    pub(crate) async fn to(
        access: &Access,
        pinned: Option<&CertificateDer<'static>>,
    ) -> Result<Self, FleetError> {
        let unreachable = |reason: String, help| FleetError::Unreachable {
            url: access.url.clone(),
            reason,
            help,
        };
        let addresses = access.url.split(',').map(|url| url.trim().parse());
        let addresses: Vec<ServerAddr> =
            addresses
                .collect::<Result<_, _>>()
                .map_err(|error: std::io::Error| {
                    unreachable(
                        error.to_string(),
                        "write it as nats://host:4222, or several with commas between",
                    )
                })?;
        let mut options = match &access.key {
            Some(path) => identified(path)?,
            None => ConnectOptions::new(),
        };
        let denials = Denials::new();
        let noting = denials.clone();
        options = options
            .name("cipherbench")
            .connection_timeout(ANSWER_LIMIT)
            .request_timeout(Some(ANSWER_LIMIT))
            // Otherwise a cut network would show only after minutes of TCP.
            .ping_interval(PING)
            .event_callback(move |event| {
                noting.note(&event);
                async {}
            });
        if let Some(path) = &access.ca {
            // For the message: the client would say only that the connection failed.
            certificates(path)?;
            options = options
                .add_root_certificates(path.clone())
                .require_tls(true);
        }
        if let Some(certificate) = pinned {
            let config = Pin::config(certificate.clone());
            options = options.tls_client_config(config).require_tls(true);
        }
        let client = options.connect(addresses).await.map_err(|error| {
            match (error.kind(), tls_help(&error)) {
                (ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication, _) => {
                    FleetError::Unknown {
                        url: access.url.clone(),
                        reason: error.to_string(),
                        help: "name the file of a user's key or credentials that the server knows and that has not \
                               expired: `--key FILE`",
                    }
                }
                (_, Some(help)) => unreachable(error.to_string(), help),
                _ => unreachable(
                    error.to_string(),
                    "start one with `cipherbench fleet server`, or correct `--url`",
                ),
            }
        })?;
        Ok(Self {
            context: jetstream::new(client),
            denials,
            unreadable: Unreadable::new(),
        })
    }

    pub(crate) fn bucket(&self, store: kv::Store) -> Bucket {
        Bucket::new(store, self.denials.clone(), self.unreadable.clone())
    }

    /// Creates a bucket, or updates the configuration of an existing one.
    pub(crate) async fn make_bucket(
        &self,
        name: &str,
        description: &str,
        replicas: Option<usize>,
    ) -> Result<(), FleetError> {
        if let Ok(found) = self.context.get_key_value(name).await {
            let config = Config {
                max_message_size: ENTRY_BYTES_MAX,
                ..found.stream.cached_info().config.clone()
            };
            return self
                .update(name, config, replicas, &found.stream.cached_info().config)
                .await;
        }
        let config = kv::Config {
            bucket: name.to_owned(),
            description: description.to_owned(),
            // Nobody reads earlier values, and each would take room.
            history: 1,
            max_value_size: ENTRY_BYTES_MAX,
            num_replicas: replicas.unwrap_or(1),
            ..kv::Config::default()
        };
        let made = self.context.create_key_value(config).await;
        made.map(drop)
            .map_err(|error| refused(format!("make bucket {name}"), &error))
    }

    /// As `make_bucket`, for the archive's files.
    pub(crate) async fn make_archive(
        &self,
        bucket: &str,
        replicas: Option<usize>,
    ) -> Result<(), FleetError> {
        let name = format!("OBJ_{bucket}");
        if let Ok(found) = self.context.get_stream(&name).await {
            let config = &found.cached_info().config;
            return self.update(bucket, config.clone(), replicas, config).await;
        }
        let config = object_store::Config {
            bucket: bucket.to_owned(),
            description: Some("Files of runs, by the hash of their content".to_owned()),
            num_replicas: replicas.unwrap_or(1),
            ..object_store::Config::default()
        };
        let made = self.context.create_object_store(config).await;
        made.map(drop)
            .map_err(|error| refused("make the archive".to_owned(), &error))
    }

    async fn update(
        &self,
        name: &str,
        mut config: Config,
        replicas: Option<usize>,
        found: &Config,
    ) -> Result<(), FleetError> {
        config.num_replicas = replicas.unwrap_or(config.num_replicas);
        // No request if nothing changes: a user may lack the right to make it.
        if config == *found {
            return Ok(());
        }
        let updated = self.context.update_stream(config).await;
        updated
            .map(drop)
            .map_err(|error| refused(format!("change bucket {name}"), &error))
    }
}

/// Reads the certificates of a file in PEM, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FleetError> {
    let text = guard::read_bytes(path, CERTIFICATES_BYTES_MAX)
        .map_err(disk("read the certificates", path))?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(FleetError::Mistake {
            file: path.display().to_string(),
            reason: "it has no certificate in PEM (`-----BEGIN CERTIFICATE-----`)".to_owned(),
            help: "`cipherbench keys authority DIR` makes an authority, whose certificate is DIR/ca.pem"
                .to_owned(),
        }),
    }
}

/// Returns advice if TLS is the reason why a connection failed.
fn tls_help(error: &ConnectError) -> Option<&'static str> {
    const HELP: [(&str, &str); 5] = [
        (
            "UnknownIssuer",
            "name the certificate of who signed the server's: `--ca FILE`",
        ),
        (
            "not valid for name",
            "write `--url` with a name that is in the server's certificate",
        ),
        (
            "certificate expired",
            "have the server's owner renew its certificate, and see whether this machine's clock is right",
        ),
        ("not valid yet", "see whether this machine's clock is right"),
        (
            "InvalidContentType",
            "that server has no TLS: use `cipherbench fleet server --tls-cert FILE --tls-key FILE`, or leave `--ca` out",
        ),
    ];
    // By words of its text: the client wraps the error of TLS so that its type is lost.
    let text = error.to_string();
    let found = HELP.iter().find(|(words, _)| text.contains(words));
    let is_of_tls = text.contains("certificate") || text.contains("tls");
    match found {
        Some((_, help)) => Some(help),
        None if is_of_tls => Some("see the server's certificate, and `--ca` and `--url` here"),
        None => None,
    }
}

/// Returns the prefix of a user's inboxes, which no other user may read.
pub(crate) fn inbox(public_key: &str) -> String {
    format!("_INBOX.{public_key}")
}

/// Authenticates with a file that is read at each connection, so that replacing it renews
/// credentials.
fn identified(path: &Path) -> Result<ConnectOptions, FleetError> {
    // Read here as well, so that a wrong file is reported with its reason.
    let public = Identity::read(path)?.public();
    let path = path.to_owned();
    let options = ConnectOptions::with_auth_callback(move |nonce| {
        let path = path.clone();
        async move {
            let failed = |error: &dyn std::error::Error| AuthError::new(error.to_string());
            let identity = Identity::read(&path).map_err(|error| failed(&error))?;
            let signature = identity.key.sign(&nonce).map_err(|error| failed(&error))?;
            let mut auth = Auth::new();
            auth.signature = Some(signature);
            auth.nkey = identity.jwt.is_none().then(|| identity.public());
            auth.jwt = identity.jwt;
            Ok(auth)
        }
    });
    Ok(options.custom_inbox_prefix(inbox(&public)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_share_no_folder_and_a_password_names_none() {
        let name = |url: &str| {
            let access = Access {
                url: url.to_owned(),
                ..Access::default()
            };
            access.folder_name().to_string()
        };
        assert_ne!(name("nats://a.b:4222"), name("nats://a-b:4222"));
        let long = format!("nats://{}", "x".repeat(1000));
        for url in ["", "nats://me:secret@host:4222", "../..", &long] {
            let name = name(url);
            assert!(
                !name.contains("secret") && name.starts_with("at-"),
                "{name}"
            );
        }
    }
}

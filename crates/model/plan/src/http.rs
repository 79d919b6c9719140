//! Trials over HTTP, with the terms of RFC 9411: server, client and objects.

use crate::words::time;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use units::Bytes;
use units::human::counted;

/// A trial over HTTP. A client on station A fetches objects from a server on station B.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpTest {
    /// The server.
    pub server: HttpServer,
    /// The client.
    pub client: HttpClient,
    /// Size of the objects in bytes; `None`: [`Self::MIX_BYTES`] in turn.
    pub object_bytes: Option<u64>,
    /// Version of HTTP.
    pub version: HttpVersion,
    /// Whether TLS 1.3 (RFC 8446) protects it.
    pub tls: bool,
    /// Storage for the received objects.
    pub store: Store,
    /// Concurrent connections; of wget2 files fetched in parallel.
    pub connections: u32,
    /// Transactions before a connection is closed; `None`: it stays open to the end.
    pub transactions_per_connection: Option<u32>,
    /// Requests in flight on each connection; 1 but for HTTP/2.
    pub streams: u16,
    /// Transactions/s intended, by an open-loop schedule over all connections; `None`: closed loop,
    /// each request follows the end of the one before it.
    pub transactions_per_s: Option<u32>,
    /// Ramp-up phase (RFC 9411 §4.3.4), and of the same length the ramp-down phase, in nanoseconds.
    pub ramp_ns: u64,
    /// Sustain phase, the only counted one, in nanoseconds.
    pub duration_ns: u64,
}

impl HttpTest {
    /// A trial over HTTP in words, without cores and path.
    #[must_use]
    pub fn in_words(&self) -> String {
        // Every field is named, so that the compiler asks for the words of a new one.
        let Self {
            server,
            client,
            object_bytes,
            version,
            tls,
            store,
            connections,
            transactions_per_connection,
            streams,
            transactions_per_s,
            ramp_ns,
            duration_ns,
        } = *self;
        let objects = match object_bytes {
            Some(bytes) => format!("objects of {}", Bytes::new(bytes)),
            // The sizes of `MIX_BYTES`.
            None => "objects of 1, 16, 64 and 256 KiB in turn".to_owned(),
        };
        let pace = transactions_per_s.map_or_else(
            || ", closed loop".to_owned(),
            |rate| format!(", open loop at {rate} transactions/s"),
        );
        let phases = format!(", {} between ramps of {}", time(duration_ns), time(ramp_ns));
        // Short flows have neither a version nor TLS, and one transaction per connection.
        if server == HttpServer::Plain {
            let connections = counted(connections, "connection");
            return format!("short flows, {objects} by {connections} at a time{pace}{phases}");
        }
        let tls = if tls { " over TLS 1.3" } else { "" };
        let mut words = format!(
            "HTTP/{}{tls}, {objects} from {}",
            version.name(),
            server.name()
        );
        match client {
            HttpClient::OpenLoop => {
                words += &format!(" by {}", counted(connections, "connection"));
                if version == HttpVersion::Http2 {
                    words += &format!(" of {}", counted(streams, "stream"));
                }
                if let Some(most) = transactions_per_connection {
                    words += &format!(" of {} each", counted(most, "transaction"));
                }
                words += &pace;
            }
            // It decides by itself how files share connections, and has no rate of requests.
            HttpClient::Wget2 => {
                let place = match store {
                    Store::Ram => "a RAM disk",
                    Store::Disk => "the disk",
                };
                words += &format!(
                    " by wget2, {} in parallel, to {place}",
                    counted(connections, "file")
                );
            }
        }
        words + &phases
    }

    /// Sizes of the objects of a mix in bytes, in equal shares: the sizes of single objects in RFC
    /// 9411 §7.3.3.2.
    pub const MIX_BYTES: [u64; 4] = [1 << 10, 16 << 10, 64 << 10, 256 << 10];

    /// Sizes of the objects that are fetched in turn, in bytes.
    #[must_use]
    pub fn objects(&self) -> Vec<u64> {
        self.object_bytes
            .map_or_else(|| Self::MIX_BYTES.to_vec(), |bytes| vec![bytes])
    }

    /// Name of the kind of trial: `flows` without HTTP, `http` otherwise.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self.server {
            HttpServer::Plain => "flows",
            HttpServer::Nginx | HttpServer::Python => "http",
        }
    }

    /// Time of all phases, in nanoseconds.
    #[must_use]
    pub const fn run_ns(&self) -> u64 {
        // The ramp-down phase is as long as the ramp-up phase.
        self.duration_ns
            .saturating_add(self.ramp_ns.saturating_mul(2))
    }
}

/// A server of static files.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum HttpServer {
    /// nginx, a worker per core.
    #[default]
    Nginx,
    /// `http.server` of Python: a thread per connection, HTTP/1.1 without TLS.
    Python,
    /// Built in, without HTTP: each TCP connection asks for one object, which the server sends and
    /// then closes the connection.
    Plain,
}

impl HttpServer {
    /// All of HTTP, with their names in campaigns.
    // `flows` is the kind of trial for the third, so no key names it.
    pub const ALL: [(&'static str, Self); 2] = [("nginx", Self::Nginx), ("python", Self::Python)];

    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The program that must be installed; `None` for the built-in server.
    #[must_use]
    pub const fn program(self) -> Option<&'static str> {
        match self {
            Self::Nginx => Some("nginx"),
            Self::Python => Some("python3"),
            Self::Plain => None,
        }
    }
}

/// A client.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum HttpClient {
    /// Built in: compares each object while it arrives, and stores none.
    #[default]
    OpenLoop,
    /// wget2, which writes files; they are compared afterwards.
    Wget2,
}

impl HttpClient {
    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A version of HTTP.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
pub enum HttpVersion {
    /// HTTP/1.1 (RFC 9112).
    #[default]
    #[serde(rename = "1.1")]
    #[strum(serialize = "1.1")]
    Http1,
    /// HTTP/2 (RFC 9113); without TLS with prior knowledge (§3.3).
    #[serde(rename = "2")]
    #[strum(serialize = "2")]
    Http2,
}

impl HttpVersion {
    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Storage for a client's files.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Store {
    /// A separate RAM disk (tmpfs).
    #[default]
    Ram,
    /// The disk of its folder for temporary files.
    Disk,
}

impl Store {
    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

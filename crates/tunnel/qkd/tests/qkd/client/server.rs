//! A TLS server with one thread per connection, whose answers a function provides.

use crate::client::setup::{Authority, Files, Identity, url};
use qkd::{Kme, Setup};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion,
};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path with query.
    pub(crate) path: String,
    /// Headers as `name: value`, in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    /// Number of the connection at the server, from 0.
    pub(crate) connection: usize,
    /// Number of the request on its connection, from 0.
    pub(crate) number: usize,
}

/// The server's reaction to a request.
pub(crate) enum Reply {
    /// Sends these bytes, then reads the next request.
    Bytes(String),
    /// Sends these bytes, then hangs up.
    Last(String),
    /// Sends nothing until the client hangs up.
    Silence,
}

/// An HTTP response.
pub(crate) fn http(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// JSON with status 200.
pub(crate) fn json(body: &str) -> Reply {
    Reply::Bytes(http("200 OK", "application/json", body))
}

/// What the server has received.
#[derive(Default)]
struct Seen {
    requests: Vec<Request>,
    connections: usize,
    /// Version and key exchange of each handshake that succeeded.
    tls: Vec<String>,
}

/// A running server with its clients' settings. It ends with the test's process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) files: Files,
    seen: Arc<Mutex<Seen>>,
}

/// Identities and trusted CAs of both sides.
pub(crate) struct Sides {
    pub(crate) server: Identity,
    pub(crate) client: Identity,
    /// Trusted by the server, PEM.
    pub(crate) clients_authority: String,
    /// Trusted by the client, PEM.
    pub(crate) servers_authority: String,
}

impl Sides {
    /// Both certificates from one CA, the server's with its address.
    pub(crate) fn good() -> Self {
        let authority = Authority::new("CA");
        Self {
            server: authority.issue(&["127.0.0.1"]),
            client: authority.issue(&["gw1"]),
            clients_authority: authority.pem(),
            servers_authority: authority.pem(),
        }
    }
}

impl Server {
    pub(crate) fn new(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(Sides::good(), rustls::DEFAULT_VERSIONS, answer)
    }

    pub(crate) fn with(
        sides: Sides,
        versions: &[&'static SupportedProtocolVersion],
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let config = Arc::new(config(&sides, versions));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let of_thread = Arc::clone(&seen);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for (connection, tcp) in listener.incoming().enumerate() {
                let (tcp, config) = (tcp.unwrap(), Arc::clone(&config));
                let (seen, answer) = (Arc::clone(&of_thread), Arc::clone(&answer));
                seen.lock().unwrap().connections += 1;
                // An error ends this connection only; the client's test checks it.
                thread::spawn(move || serve(tcp, config, connection, &seen, &*answer));
            }
        });
        Self {
            address,
            files: Files::new(&sides.client, &sides.servers_authority),
            seen,
        }
    }

    pub(crate) fn setup(&self) -> Setup {
        self.files.setup(&url(self.address))
    }

    pub(crate) fn client(&self) -> Kme {
        Kme::new(&self.setup()).unwrap()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen().connections
    }

    pub(crate) fn tls(&self) -> Vec<String> {
        self.seen().tls.clone()
    }
}

fn config(sides: &Sides, versions: &[&'static SupportedProtocolVersion]) -> ServerConfig {
    let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&sides.clients_authority)).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
    let key = PrivateKeyDer::from_pem_slice(sides.server.key.as_bytes()).unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate(&sides.server.certificate)], key)
        .unwrap()
}

fn serve(
    mut tcp: TcpStream,
    config: Arc<ServerConfig>,
    connection: usize,
    seen: &Mutex<Seen>,
    answer: &dyn Fn(&Request) -> Reply,
) -> io::Result<()> {
    let mut tls = ServerConnection::new(config).unwrap();
    while tls.is_handshaking() {
        if let Err(error) = tls.complete_io(&mut tcp) {
            // The alert is sent. Hanging up with unread bytes would reset the connection, and the
            // client might never receive it.
            io::copy(&mut tcp, &mut io::sink())?;
            return Err(error);
        }
    }
    let group = tls.negotiated_key_exchange_group().unwrap().name();
    let version = tls.protocol_version().unwrap();
    seen.lock()
        .unwrap()
        .tls
        .push(format!("{version:?} {group:?}"));
    let mut stream = BufReader::new(StreamOwned::new(tls, tcp));
    for number in 0.. {
        let Some(request) = read(&mut stream, connection, number)? else {
            break;
        };
        seen.lock().unwrap().requests.push(request.clone());
        let (bytes, last) = match answer(&request) {
            Reply::Bytes(bytes) => (bytes, false),
            Reply::Last(bytes) => (bytes, true),
            Reply::Silence => {
                io::copy(&mut stream, &mut io::sink())?;
                break;
            }
        };
        stream.get_mut().write_all(bytes.as_bytes())?;
        stream.get_mut().flush()?;
        if last {
            break;
        }
    }
    // A complete TLS shutdown: only the length of the response reveals the truncation.
    let stream = stream.get_mut();
    stream.conn.send_close_notify();
    stream.flush()
}

fn read(
    stream: &mut impl BufRead,
    connection: usize,
    number: usize,
) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    assert_eq!(words.next(), Some("HTTP/1.1\r\n"));
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: String::new(),
        connection,
        number,
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let header = line.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(bytes) = header.strip_prefix("content-length: ") {
            length = bytes.parse().unwrap();
        }
        request.headers.push(header);
    }
    stream.take(length).read_to_string(&mut request.body)?;
    Ok(Some(request))
}

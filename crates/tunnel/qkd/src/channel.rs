//! Calls of HTTP/1.1 over TLS to one KME. Connections are kept for the next call, and made anew when they have gone stale.

use crate::answer::Answer;
use crate::error::Failure;
use crate::tls;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

/// The longest body that is taken, in bytes. 128 keys of 1 Kibit are some 40 KB.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// What hyper may buffer, head of the answer included, in bytes.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Calls at a time; the others wait, within their time.
const CALLS_MAX: usize = 16;
/// Connections that are kept while nobody calls.
const IDLE_MAX: usize = 2;

type Sender = SendRequest<Full<Bytes>>;

/// Where a KME is.
pub(crate) struct Target {
    /// Its addresses, tried in this order.
    pub(crate) addresses: Vec<SocketAddr>,
    /// As the URL has it, for its certificate and for messages.
    pub(crate) host: String,
    /// The host as TLS knows it.
    pub(crate) name: ServerName<'static>,
    /// Host and port as HTTP wants them.
    pub(crate) authority: String,
}

/// A request, as often as it must be made.
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query, encoded.
    pub(crate) path: String,
    /// JSON; empty: none.
    pub(crate) body: Bytes,
}

/// The way to one KME.
pub(crate) struct Channel {
    target: Target,
    tls: TlsConnector,
    /// For a call with all that it needs.
    limit: Duration,
    idle: Mutex<Vec<Sender>>,
    calls: Semaphore,
}

impl Channel {
    pub(crate) fn new(target: Target, tls: ClientConfig, limit: Duration) -> Self {
        Self {
            target,
            tls: TlsConnector::from(Arc::new(tls)),
            limit,
            idle: Mutex::new(Vec::new()),
            calls: Semaphore::new(CALLS_MAX),
        }
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.target.addresses
    }

    /// Makes a call and reads its answer whole, whatever its status.
    ///
    /// # Errors
    /// What the connection, TLS and HTTP have to say; [`Failure::Slow`], [`Failure::TooLong`].
    pub(crate) async fn call(&self, call: &Call) -> Result<Answer, Failure> {
        let slow = Failure::Slow {
            doing: "the call",
            limit: self.limit,
        };
        timeout(self.limit, self.call_unlimited(call))
            .await
            .unwrap_or(Err(slow))
    }

    async fn call_unlimited(&self, call: &Call) -> Result<Answer, Failure> {
        let _turn = self.calls.acquire().await.expect("it is never closed");
        if let Some(mut sender) = self.kept().await {
            // A server closes an idle connection when it likes, maybe just now: then nothing has been answered, and the call is
            // made again. If the KME had already done it, keys are lost, none is delivered twice.
            if let Ok(response) = sender.send_request(self.request(call)).await {
                return self.answer(sender, response).await;
            }
        }
        let mut sender = self.connect().await?;
        let response = sender
            .send_request(self.request(call))
            .await
            .map_err(|error| self.broken(&error))?;
        self.answer(sender, response).await
    }

    /// A connection of an earlier call that is still good, as far as one can see.
    async fn kept(&self) -> Option<Sender> {
        loop {
            let mut sender = self.idle().pop()?;
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Sender>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Sender, Failure> {
        // Each address may take its share of the time; the answer needs some too.
        let limit = self.limit / (self.target.addresses.len() as u32 + 1);
        let mut failure = None;
        for &address in &self.target.addresses {
            match timeout(limit, self.connect_to(address)).await {
                Ok(Ok(sender)) => return Ok(sender),
                Ok(Err(error)) => failure = Some(error),
                Err(_) => {
                    failure = Some(Failure::Slow {
                        doing: "connecting",
                        limit,
                    });
                }
            }
        }
        Err(failure.expect("a target has an address"))
    }

    async fn connect_to(&self, address: SocketAddr) -> Result<Sender, Failure> {
        let unreachable = |error: std::io::Error| Failure::Unreachable {
            cause: format!("{address}: {error}"),
        };
        let tcp = TcpStream::connect(address).await.map_err(unreachable)?;
        // Requests are small and waited for.
        tcp.set_nodelay(true).map_err(unreachable)?;
        let stream = self
            .tls
            .connect(self.target.name.clone(), tcp)
            .await
            .map_err(|error| match tls::cause_of(&error) {
                Some(tls) => tls::failure(tls, &self.target.host),
                None => Failure::Tls {
                    problem: format!("the connection ends in the handshake: {error}"),
                    advice: "is the port right, and does the KME listen there with https?",
                },
            })?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(BUFFER_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.broken(&error))?;
        // Ends when the sender is dropped or the KME hangs up; who waits for an answer is told the error.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }

    fn request(&self, call: &Call) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(&call.method)
            .uri(&call.path)
            .header(HOST, &self.target.authority)
            .header(ACCEPT, "application/json");
        if !call.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request
            .body(Full::new(call.body.clone()))
            .expect("path and host are encoded")
    }

    /// Reads the answer to its end; only then the connection can carry another call.
    async fn answer(
        &self,
        sender: Sender,
        response: Response<Incoming>,
    ) -> Result<Answer, Failure> {
        let (head, body) = response.into_parts();
        let text = |name| text(&head.headers, name);
        let answer = Answer {
            status: head.status.as_u16(),
            content_type: text(CONTENT_TYPE),
            location: text(LOCATION),
            retry_after: text(RETRY_AFTER)
                .and_then(|seconds| seconds.trim().parse().ok())
                .map(Duration::from_secs),
            body: self.body(body).await?,
        };
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(sender);
        }
        Ok(answer)
    }

    /// The whole body, in memory that is wiped, also when it has to grow.
    async fn body(&self, mut body: Incoming) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let too_long = || Failure::TooLong {
            limit: BODY_BYTES_MAX,
        };
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > BODY_BYTES_MAX {
            return Err(too_long());
        }
        let mut whole = Zeroizing::new(Vec::with_capacity(announced));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken(&error))?;
            let Ok(data) = frame.into_data() else {
                continue; // trailers
            };
            if data.len() > BODY_BYTES_MAX - whole.len() {
                return Err(too_long());
            }
            append(&mut whole, &data);
        }
        Ok(whole)
    }

    fn broken(&self, error: &hyper::Error) -> Failure {
        if let Some(tls) = tls::cause_of(error) {
            return tls::failure(tls, &self.target.host);
        }
        if error.is_parse() {
            return Failure::Garbage {
                what: format!("it is no HTTP/1.1: {error}"),
            };
        }
        let mut cause = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            cause = format!("{cause}: {source}");
        }
        Failure::Broken { cause }
    }
}

fn text(headers: &HeaderMap, name: hyper::header::HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Growing in place would leave a copy behind, so the old memory is wiped.
fn append(whole: &mut Zeroizing<Vec<u8>>, more: &[u8]) {
    let needed = whole.len() + more.len();
    if needed > whole.capacity() {
        let mut larger = Zeroizing::new(Vec::with_capacity(needed.max(2 * whole.capacity())));
        larger.extend_from_slice(whole);
        *whole = larger;
    }
    whole.extend_from_slice(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_grows_by_its_parts() {
        let mut whole = Zeroizing::new(Vec::new());
        let mut expected = Vec::new();
        for length in [0usize, 1, 2, 100, 3, 5000] {
            let part: Vec<u8> = (0..length).map(|at| at as u8).collect();
            append(&mut whole, &part);
            expected.extend(part);
        }
        assert_eq!(*whole, expected);
    }
}

//! HTTP/1.1 calls over TLS to one KME. Idle connections are reused, and replaced when stale.

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

/// Maximum accepted body length in bytes. 128 keys of 1 Kibit take about 40 KB.
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// Limit of hyper's buffer, including the response head, in bytes.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Maximum concurrent calls; further calls wait, within their timeout.
const CALLS_MAX: usize = 16;
/// Maximum number of idle connections kept for reuse.
const IDLE_MAX: usize = 2;

type Sender = SendRequest<Full<Bytes>>;

/// Address and names of a KME.
pub(crate) struct Target {
    /// Its addresses, tried in this order.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The host in the URL, for error messages.
    pub(crate) host: String,
    /// The host name that the certificate must carry.
    pub(crate) name: ServerName<'static>,
    /// Host and port for the `Host` header.
    pub(crate) authority: String,
}

/// A request, which may have to be sent more than once.
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query, encoded.
    pub(crate) path: String,
    /// JSON; empty if there is no body.
    pub(crate) body: Bytes,
}

/// The connections to one KME.
pub(crate) struct Channel {
    target: Target,
    tls: TlsConnector,
    /// Limit for a call, including queueing and connecting.
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

    /// Makes a call and reads the complete response, whatever its status.
    ///
    /// # Errors
    /// Failures of the connection, TLS and HTTP; [`Failure::Slow`], [`Failure::TooLong`].
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
        // Within the limit of the call: a KME that hangs must not collect calls without end.
        let _turn = self.calls.acquire().await.expect("it is never closed");
        // One try with a kept connection: the next one may be as old.
        if let Some(mut sender) = self.kept().await {
            // A server may close an idle connection at any time. Then there is no response, and the
            // call is retried. If the KME had already handled it, keys are lost, but none is
            // delivered twice.
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

    /// Takes an idle connection that is not known to be closed.
    async fn kept(&self) -> Option<Sender> {
        loop {
            let mut sender = self.idle().pop()?;
            // Not ready means closed. A connection may still be closed before the request arrives.
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Sender>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Sender, Failure> {
        // Each address gets an equal share of the time; one share is left for the response.
        let limit = self.limit / (self.target.addresses.len() as u32 + 1);
        // The last address's failure is reported: all have failed by then.
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
        // Requests are small, and the caller waits for the response.
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
        // Ends when the sender is dropped or the KME closes; a pending request receives the error.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }

    fn request(&self, call: &Call) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(&call.method)
            .uri(&call.path)
            .header(HOST, &self.target.authority)
            .header(ACCEPT, "application/json");
        // A GET has no content, so it has no type.
        if !call.body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request
            .body(Full::new(call.body.clone()))
            // No text of a peer gets here unencoded.
            .expect("path and host are encoded")
    }

    /// Reads the response to its end; only then can the connection carry another call.
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
        // The others are closed: a burst of calls must not hold connections for ever.
        if idle.len() < IDLE_MAX {
            // Only after the whole body: the connection carries one response after the other.
            idle.push(sender);
        }
        Ok(answer)
    }

    /// Reads the complete body into memory that is wiped, also when it grows.
    async fn body(&self, mut body: Incoming) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let too_long = || Failure::TooLong {
            limit: BODY_BYTES_MAX,
        };
        // A lower bound: with chunked encoding the length is not known, so the limit applies again
        // below.
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > BODY_BYTES_MAX {
            return Err(too_long());
        }
        // Usually allocated once, at the announced length.
        let mut whole = Zeroizing::new(Vec::with_capacity(announced));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken(&error))?;
            let Ok(data) = frame.into_data() else {
                continue; // trailers
            };
            // Does not underflow: `whole` never exceeds the maximum.
            if data.len() > BODY_BYTES_MAX - whole.len() {
                return Err(too_long());
            }
            append(&mut whole, &data);
        }
        Ok(whole)
    }

    fn broken(&self, error: &hyper::Error) -> Failure {
        // With TLS 1.3 the server's verdict on the client's certificate arrives after the
        // handshake, as an error of the first call.
        if let Some(tls) = tls::cause_of(error) {
            return tls::failure(tls, &self.target.host);
        }
        if error.is_parse() {
            return Failure::Garbage {
                what: format!("it is not HTTP/1.1: {error}"),
            };
        }
        // hyper names the step, and its source the reason: both are needed to mend it.
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

/// Appends `more`. Growing in place could leave a copy in freed memory, so this wipes the old
/// buffer.
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
    fn appends_all_parts_of_a_body() {
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

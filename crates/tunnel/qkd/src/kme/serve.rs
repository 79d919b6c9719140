//! The HTTP service of one KME: from a request to a response.

use super::Shared;
use super::call::{Ask, Call, Target};
use super::door::{Caller, Door};
use super::fault::{Armed, Fault};
use super::network::Sae;
use super::refusal::Refusal;
use super::tls::Names;
use crate::types::{Error, KeyContainer};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use rustls::ServerConfig;
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Twice the body of a request for the maximum number of keys by ID.
const BODY_BYTES_MAX: usize = 512 * 1024;
/// Longer bodies are still read up to this length: a client does not read the refusal while it
/// sends.
const DRAINED_BYTES_MAX: usize = 16 * 1024 * 1024;
const BODY_TIME_MAX: Duration = Duration::from_secs(10);

/// Accepts TLS connections. SAEs of other KMEs may connect too; their calls get status 401.
pub(super) fn open(
    listener: TcpListener,
    config: ServerConfig,
    names: Names,
) -> io::Result<Door<TlsStream<TcpStream>>> {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let names = Arc::new(names);
    Door::open(listener, move |stream| {
        let names = Arc::clone(&names);
        let accepting = acceptor.accept(stream);
        async move {
            let stream = accepting.await?;
            let (_, tls) = stream.get_ref();
            // The handshake has verified the chain; only the name is left to compare.
            let certificate = tls.peer_certificates().and_then(|chain| chain.first());
            let sae = certificate.and_then(|certificate| names.sae(certificate));
            Ok((stream, Caller(sae)))
        }
    })
}

/// A KME by its index in the network.
#[derive(Clone)]
struct Kme {
    shared: Arc<Shared>,
    place: usize,
}

pub(super) fn router(shared: Arc<Shared>, place: usize) -> Router {
    Router::new()
        .fallback(answer)
        .with_state(Kme { shared, place })
}

async fn answer(
    State(kme): State<Kme>,
    ConnectInfo(Caller(caller)): ConnectInfo<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Some(target) = Target::of_path(parts.uri.path()) else {
        let error = Error::new("ETSI GS QKD 014 does not define this path");
        return refused(&Refusal::Error(StatusCode::NOT_FOUND, error));
    };
    let call = target.call;
    // The body is read even if the call is refused: see `DRAINED_BYTES_MAX`.
    let body = read_body(body).await;
    // Sleeps without the lock, so that a delayed response does not delay the others.
    if let Some(delay) = kme.strike(Fault::Delay, call) {
        sleep(delay.delay).await;
    }
    // Instead of the call, so that no keys are used up for a response that nobody can read.
    let response = if kme.strike(Fault::Garbage, call).is_some() {
        (StatusCode::OK, "{\"keys\": [").into_response()
    } else {
        let done = body.and_then(|body| kme.execute(caller, &target, &parts, &body));
        done.unwrap_or_else(|refusal| refused(&refusal))
    };
    // Counted after the call, with the status that the caller gets.
    let mut network = kme.shared.network();
    network.count(kme.place, call, response.status().as_u16());
    response
}

async fn read_body(body: Body) -> Result<Vec<u8>, Refusal> {
    timeout(BODY_TIME_MAX, read_to_end(body))
        .await
        .unwrap_or_else(|_| Err(Refusal::bad_request("the body does not end")))
}

async fn read_to_end(mut body: Body) -> Result<Vec<u8>, Refusal> {
    let (mut kept, mut length) = (Vec::new(), 0);
    while length <= DRAINED_BYTES_MAX
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|_| Refusal::bad_request("the body is truncated"))?;
        let data = frame.into_data().unwrap_or_default();
        // Counts beyond the limit too, but keeps nothing more.
        length += data.len();
        if length <= BODY_BYTES_MAX {
            kept.extend_from_slice(&data);
        }
    }
    if length <= BODY_BYTES_MAX {
        Ok(kept)
    } else {
        Err(Refusal::bad_request(format!(
            "the body is longer than {BODY_BYTES_MAX} bytes"
        )))
    }
}

impl Kme {
    fn strike(&self, fault: Fault, call: Call) -> Option<Armed> {
        self.shared.network().strike(self.place, fault, call)
    }

    /// Executes a call, if it is permitted.
    fn execute(
        &self,
        caller: Option<Sae>,
        target: &Target,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Response, Refusal> {
        // First, before anything about keys or faults can be learned.
        let caller = caller.ok_or(Refusal::Unauthorized)?;
        if self.strike(Fault::Unavailable, target.call).is_some() {
            return Err(Refusal::unavailable("the KME is out of service"));
        }
        let ask = Ask::read(target.call, &parts.method, parts.uri.query(), body)?;
        let now = self.shared.now();
        let mut network = self.shared.network();
        let (place, sae) = (self.place, target.sae.as_str());
        let container = |keys| KeyContainer {
            keys,
            key_container_extension: None,
        };
        match ask {
            Ask::Status => Ok(json(
                StatusCode::OK,
                &network.status(now, place, &caller, sae)?,
            )),
            Ask::NewKeys(request) => {
                let keys = network.new_keys(now, place, &caller, sae, &request)?;
                Ok(json(StatusCode::OK, &container(keys)))
            }
            Ask::KeysById(ids) => {
                let keys = network.keys_by_id(place, &caller, sae, &ids)?;
                Ok(json(StatusCode::OK, &container(keys)))
            }
        }
    }
}

fn refused(refusal: &Refusal) -> Response {
    match refusal {
        Refusal::Unauthorized => StatusCode::UNAUTHORIZED.into_response(),
        Refusal::Error(status, error) => json(*status, error),
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("names and numbers can be written as JSON");
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        // A key must reach its caller only, and once.
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, body).into_response()
}

//! The address for tests: faults are switched at `/faults`, counters are at `/metrics`. Plain HTTP, on loopback alone.
//!
//! - `POST /faults` with `{"fault": "unavailable", "kme": "kme-a", "count": 3}` lets a fault strike; without `kme` at all
//!   KMEs, without `count` until it is cleared. What else can be said is in `fault::read`: it is what the configuration
//!   has under `start_with`.
//! - `DELETE /faults` clears all; with a body as above that names them, those of one KME, or one fault.
//! - `GET /faults` tells what is to strike.

use super::Shared;
use super::door::{Caller, Door};
use super::fault::{self, Armed, Fault};
use super::network::Network;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use yaml::{Mistakes, Node, Reported};

const BODY_BYTES_MAX: usize = 64 * 1024;

pub(super) fn open(listener: TcpListener) -> io::Result<Door<TcpStream>> {
    Door::open(listener, async |stream| Ok((stream, Caller(None))))
}

pub(super) fn router(shared: Arc<Shared>) -> Router {
    let faults = get(list).post(arm).delete(clear);
    Router::new()
        .route("/faults", faults)
        .route("/metrics", get(metrics))
        .with_state(shared)
}

async fn list(State(shared): State<Arc<Shared>>) -> Response {
    let network = shared.network();
    let armed = network.kmes().flat_map(|(name, _, faults)| {
        let armed = faults.armed().iter();
        armed.map(move |armed| described(name, armed))
    });
    let text = Value::Array(armed.collect()).to_string();
    ([(CONTENT_TYPE, "application/json")], text + "\n").into_response()
}

/// As it would be asked for.
fn described(kme: &str, armed: &Armed) -> Value {
    let mut told = Map::new();
    told.insert("kme".to_owned(), kme.into());
    told.insert("fault".to_owned(), armed.fault.name().into());
    if armed.fault == Fault::Delay {
        let delay = units::time::print(armed.delay);
        told.insert("delay".to_owned(), delay.into());
    }
    if let Some(call) = armed.call {
        told.insert("call".to_owned(), call.name().into());
    }
    if let Some(count) = armed.count {
        told.insert("count".to_owned(), count.into());
    }
    Value::Object(told)
}

async fn arm(State(shared): State<Arc<Shared>>, body: Body) -> Response {
    let read = |root: Node<'_>| {
        root.map(|map| {
            let kme = read_kme(map, &shared);
            let armed = fault::read(map);
            Ok((kme?, armed?))
        })
    };
    match asked(body, read).await {
        Ok((kme, armed)) => {
            let mut network = shared.network();
            let faults = network.faults(kme.as_deref());
            faults.for_each(|faults| faults.arm(armed));
            StatusCode::NO_CONTENT.into_response()
        }
        Err(refusal) => refusal,
    }
}

async fn clear(State(shared): State<Arc<Shared>>, body: Body) -> Response {
    let read = |root: Node<'_>| {
        root.map(|map| {
            let kme = read_kme(map, &shared);
            let known = Fault::ALL.map(|fault| (fault.name(), fault));
            let fault = map.optional("fault");
            let fault = fault.map(|node| node.one_of("fault", &known)).transpose();
            Ok((kme?, fault?))
        })
    };
    match asked(body, read).await {
        Ok((kme, fault)) => {
            let mut network = shared.network();
            let faults = network.faults(kme.as_deref());
            faults.for_each(|faults| faults.clear(fault));
            StatusCode::NO_CONTENT.into_response()
        }
        Err(refusal) => refusal,
    }
}

fn read_kme(map: &yaml::Map<'_>, shared: &Shared) -> Result<Option<String>, Reported> {
    let Some(node) = map.optional("kme") else {
        return Ok(None);
    };
    let name = node.text()?;
    match shared.network().faults(Some(name)).next() {
        Some(_) => Ok(Some(name.to_owned())),
        None => Err(node.mistake(
            format!("no KME has the name `{name}`"),
            "names are those of the configuration",
        )),
    }
}

/// A body, read by the configuration's own reader: what it takes is YAML, and so JSON. An empty one is `{}`.
async fn asked<T>(
    body: Body,
    read: impl FnOnce(Node<'_>) -> Result<T, Reported>,
) -> Result<T, Response> {
    let refused = |text: String| (StatusCode::BAD_REQUEST, text + "\n").into_response();
    let bytes = to_bytes(body, BODY_BYTES_MAX).await.map_err(|_| {
        refused(format!(
            "error: the body is longer than {BODY_BYTES_MAX} bytes"
        ))
    })?;
    let text = String::from_utf8(bytes.to_vec())
        .map_err(|_| refused("error: the body is no UTF-8 text".to_owned()))?;
    let text = match text.trim() {
        "" => "{}",
        text => text,
    };
    let decoded = yaml::parse("body", text).and_then(|document| document.decode(read));
    decoded.map_err(|mistakes: Mistakes| refused(mistakes.to_string()))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let now = shared.now();
    let text = render(&mut shared.network(), now);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// The exposition text: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
fn render(network: &mut Network, now: std::time::Duration) -> String {
    let mut out = String::new();
    // Writing to a string does not fail, here and below.
    let name = header(
        &mut out,
        "answers_total",
        "counter",
        "Answers, by call and HTTP status.",
    );
    for (kme, counts, _) in network.kmes() {
        for ((call, status), value) in &counts.answers {
            let call = call.name();
            let _ = writeln!(
                out,
                "{name}{{kme=\"{kme}\",call=\"{call}\",status=\"{status}\"}} {value}"
            );
        }
    }
    let help = "Keys handed out, to those who asked for new ones and to those who named them.";
    let name = header(&mut out, "keys_total", "counter", help);
    for (kme, counts, _) in network.kmes() {
        for (to, value) in [("master", counts.to_masters), ("slave", counts.to_slaves)] {
            let _ = writeln!(out, "{name}{{kme=\"{kme}\",to=\"{to}\"}} {value}");
        }
    }
    let name = header(
        &mut out,
        "faults_total",
        "counter",
        "Calls that a fault has struck.",
    );
    for (kme, _, faults) in network.kmes() {
        for fault in Fault::ALL {
            let (value, fault) = (faults.struck(fault), fault.name());
            let _ = writeln!(out, "{name}{{kme=\"{kme}\",fault=\"{fault}\"}} {value}");
        }
    }
    let help = "Keys of the default size that the link of two KMEs has.";
    let name = header(&mut out, "stored_keys", "gauge", help);
    for ([one, other], value) in network.stored(now) {
        let _ = writeln!(out, "{name}{{kme=\"{one}\",peer=\"{other}\"}} {value}");
    }
    let (waiting, forgotten) = network.waiting();
    let name = header(
        &mut out,
        "waiting_keys",
        "gauge",
        "Keys that a slave has not fetched.",
    );
    let _ = writeln!(out, "{name} {waiting}");
    let help = "Keys that were dropped because too many waited.";
    let name = header(&mut out, "forgotten_keys_total", "counter", help);
    let _ = writeln!(out, "{name} {forgotten}");
    out
}

fn header(out: &mut String, name: &str, kind: &str, help: &str) -> String {
    let name = format!("cipherbench_kme_{name}");
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    name
}

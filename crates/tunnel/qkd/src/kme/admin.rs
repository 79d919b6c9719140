//! The test interface: fault injection at `/faults`, counters at `/metrics`. Plain HTTP, loopback
//! only.
//!
//! - `POST /faults` with `{"fault": "unavailable", "kme": "kme-a", "count": 3}` arms a fault;
//!   without `kme` at all KMEs, without `count` until it is cleared. `fault::read` defines the
//!   other fields, which are those of `start_with` in the configuration.
//! - `DELETE /faults` clears all faults; a body with `kme` or `fault` restricts it to one KME or
//!   one fault.
//! - `GET /faults` lists the armed faults.

use super::Shared;
use super::door::{Caller, Door};
use super::fault::{self, Armed, Fault, Faults};
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

/// The armed fault as the body of the `POST` that would arm it.
fn described(kme: &str, armed: &Armed) -> Value {
    let mut fields = Map::new();
    fields.insert("kme".to_owned(), kme.into());
    fields.insert("fault".to_owned(), armed.fault.name().into());
    if armed.fault == Fault::Delay {
        let delay = units::time::print(armed.delay);
        fields.insert("delay".to_owned(), delay.into());
    }
    if let Some(call) = armed.call {
        fields.insert("call".to_owned(), call.name().into());
    }
    if let Some(count) = armed.count {
        fields.insert("count".to_owned(), count.into());
    }
    Value::Object(fields)
}

async fn arm(State(shared): State<Arc<Shared>>, body: Body) -> Response {
    change(&shared, body, fault::read, Faults::arm).await
}

async fn clear(State(shared): State<Arc<Shared>>, body: Body) -> Response {
    let read = |map: &yaml::Map<'_>| {
        let known = Fault::ALL.map(|fault| (fault.name(), fault));
        let fault = map.optional("fault");
        fault.map(|node| node.one_of("fault", &known)).transpose()
    };
    change(&shared, body, read, Faults::clear).await
}

/// Applies a body to the faults of the KME that it names, or of all.
async fn change<T: Copy>(
    shared: &Shared,
    body: Body,
    read: impl FnOnce(&yaml::Map<'_>) -> Result<T, Reported>,
    apply: fn(&mut Faults, T),
) -> Response {
    let read = |root: Node<'_>| {
        root.keys(fault::REQUEST, |map| {
            // Both are read before `?`, so that the mistakes of both are reported.
            let kme = read_kme(map, shared);
            let value = read(map);
            Ok((kme?, value?))
        })
    };
    match asked(body, read).await {
        Ok((kme, value)) => {
            let mut network = shared.network();
            // Under one lock for all KMEs, so that no call meets half of a change.
            let faults = network.faults(kme.as_deref());
            faults.for_each(|faults| apply(faults, value));
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

/// Parses a body with the configuration's YAML reader, which also accepts JSON. An empty body means
/// `{}`.
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
        .map_err(|_| refused("error: the body is not UTF-8 text".to_owned()))?;
    // A DELETE usually has no body.
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

//! Transactions over HTTP/2 (RFC 9113), with hyper.

use crate::connect::{connect, of_hyper};
use crate::object::Object;
use crate::shared::Client;
use crate::spec::SERVER_NAME;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::header::{AGE, CONTENT_LENGTH};
use hyper::rt::Executor;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use journal::record::HttpFailure;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Flow-control windows that do not limit transfers on a path of 10 Gbit/s and 10 ms.
const CONNECTION_WINDOW: u32 = 16 << 20;
const STREAM_WINDOW: u32 = 4 << 20;

/// Spawns tasks on this thread.
#[derive(Clone)]
struct Local;

impl<F: Future<Output: 'static> + 'static> Executor<F> for Local {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

/// A connection that several streams share.
struct Shared {
    sender: SendRequest<Empty<Bytes>>,
    /// Transactions begun on it.
    used: u32,
}

/// Starts the streams of one connection, which perform its share of transactions during the run.
pub(crate) fn spawn(tasks: &mut JoinSet<()>, client: &Rc<Client>, share: f64) {
    // Opened by the first transaction, not here: a connection without work would count as open.
    let connection = Rc::new(Mutex::new(None));
    for _ in 0..client.spec.test.streams {
        tasks.spawn_local(run(Rc::clone(client), Rc::clone(&connection), share));
    }
}

async fn run(client: Rc<Client>, connection: Rc<Mutex<Option<Shared>>>, share: f64) {
    let limit = Duration::from_nanos(client.spec.timeout_ns);
    while let Some((begin_ns, object)) = client.next(share).await {
        let made = tokio::time::timeout(limit, transact(&client, &connection, object));
        match made.await.unwrap_or(Err(HttpFailure::Timeout)) {
            Ok((first_ns, last_ns)) => {
                let mut tally = client.tally.borrow_mut();
                tally.succeeded(object, begin_ns, first_ns, last_ns);
            }
            Err(why) => {
                client.failed(why).await;
            }
        }
    }
}

async fn transact(
    client: &Rc<Client>,
    connection: &Mutex<Option<Shared>>,
    object: usize,
) -> Result<(u64, u64), HttpFailure> {
    let mut sender = sender(client, connection).await?;
    let scheme = if client.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let name = Object::name(object);
    let request = Request::get(format!("{scheme}://{SERVER_NAME}/{name}")).body(Empty::new());
    let request = request.map_err(|_| HttpFailure::Protocol)?;
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| of_hyper(&error))?;
    let first_ns = client.schedule.now_ns();
    let object = &client.objects[object];
    if response.status() != StatusCode::OK {
        return Err(HttpFailure::Status);
    }
    // Only a cache adds `Age` (RFC 9111 §5.1): the object would not have crossed the whole path.
    if response.headers().contains_key(AGE) {
        return Err(HttpFailure::Cached);
    }
    let announced = response.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse().ok());
    if announced != Some(object.bytes()) {
        return Err(HttpFailure::WrongLength);
    }
    let mut body = response.into_body();
    let mut offset = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| of_hyper(&error))?;
        // Trailers have no data.
        let Some(bytes) = frame.data_ref() else {
            continue;
        };
        if !object.matches(offset, bytes) {
            return Err(HttpFailure::WrongContent);
        }
        offset += bytes.len() as u64;
    }
    if offset == object.bytes() {
        Ok((first_ns, client.schedule.now_ns()))
    } else {
        Err(HttpFailure::Truncated)
    }
}

/// Returns a sender on the shared connection; opens a new one if it is absent, ended or used up.
async fn sender(
    client: &Rc<Client>,
    connection: &Mutex<Option<Shared>>,
) -> Result<SendRequest<Empty<Bytes>>, HttpFailure> {
    // Held over the handshake: the other streams wait for this connection instead of opening more.
    let mut connection = connection.lock().await;
    if let Some(shared) = &mut *connection
        && !shared.sender.is_closed()
        && !client.is_used_up(shared.used)
    {
        shared.used += 1;
        return Ok(shared.sender.clone());
    }
    // Its driver ends, and closes it, when the last stream has dropped its sender.
    *connection = None;
    let stream = connect(client).await?;
    let handshake = Builder::new(Local)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(TokioIo::new(stream))
        .await;
    let (sender, driver) = handshake.map_err(|error| of_hyper(&error))?;
    let owner = Rc::clone(client);
    tokio::task::spawn_local(async move {
        // Its error reaches the transactions on the connection.
        let _ = driver.await;
        owner.tally.borrow_mut().closed();
    });
    let shared = connection.insert(Shared { sender, used: 1 });
    Ok(shared.sender.clone())
}

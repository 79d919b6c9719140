//! Transactions over HTTP/1.1 (RFC 9112).
//!
//! Written by hand over `httparse`. The client requests one object after another, so a request is a
//! constant, and a response is one head with a length. All connections of a thread read into one
//! buffer, which stays in the cache.

use crate::connect::{Stream, connect, of_io};
use crate::object::Object;
use crate::shared::Client;
use crate::spec::SERVER_NAME;
use journal::record::HttpFailure;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// A longer head is refused.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Header fields of a response, at most.
const FIELDS_MAX: usize = 48;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// Performs one connection's share of transactions until the run is over.
pub(crate) async fn run(client: Rc<Client>, share: f64) {
    let requests = Requests::of(&client);
    let mut timer = Timer::new(&client);
    let mut connection: Option<Connection> = None;
    while let Some((begin_ns, object)) = client.next(share).await {
        let made = transact(&client, &mut connection, &mut timer, &requests, object).await;
        match made {
            Ok((first_ns, last_ns)) => {
                let mut tally = client.tally.borrow_mut();
                tally.succeeded(object, begin_ns, first_ns, last_ns);
            }
            Err(why) => {
                close(&client, &mut connection);
                client.failed(why).await;
            }
        }
        // After a failure there is no connection left.
        let used_up = connection
            .as_ref()
            .is_some_and(|it| client.is_used_up(it.used));
        if used_up && let Some(connection) = &mut connection {
            // Let the server close, so that the port stays in TIME-WAIT on its side.
            let _ = connection.ended(&mut timer).await;
        }
        if used_up {
            close(&client, &mut connection);
        }
    }
    close(&client, &mut connection);
}

fn close(client: &Client, connection: &mut Option<Connection>) {
    if connection.take().is_some() {
        client.tally.borrow_mut().closed();
    }
}

/// Performs one transaction, on a new connection if none is open. Returns the arrival times of the
/// first and the last byte.
async fn transact(
    client: &Client,
    connection: &mut Option<Connection>,
    timer: &mut Timer,
    requests: &Requests,
    object: usize,
) -> Result<(u64, u64), HttpFailure> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(Connection {
            stream: connect(client).await?,
            used: 0,
            head: Vec::new(),
        }),
    };
    // Before the request, since the last one of a connection asks the server to close.
    connection.used += 1;
    // The header `Connection: close` (RFC 9112 §9.6) makes the server close first.
    let request = requests.of_object(object, client.is_used_up(connection.used));
    timer.begin();
    let stream = &mut connection.stream;
    stream
        .write_all(request)
        .await
        .map_err(|error| of_io(&error))?;
    // TLS may hold back a record until it is flushed.
    stream.flush().await.map_err(|error| of_io(&error))?;
    connection
        .response(client, timer, &client.objects[object])
        .await
}

/// The requests of all objects.
struct Requests {
    /// For each object: a request that keeps the connection open, and one that closes it.
    requests: Vec<[Vec<u8>; 2]>,
}

impl Requests {
    fn of(client: &Client) -> Self {
        let request = |number: usize, close: &str| {
            let name = Object::name(number);
            format!("GET /{name} HTTP/1.1\r\nHost: {SERVER_NAME}\r\n{close}\r\n").into_bytes()
        };
        let numbers = 0..client.objects.len();
        Self {
            requests: numbers
                .map(|number| {
                    [
                        request(number, ""),
                        request(number, "Connection: close\r\n"),
                    ]
                })
                .collect(),
        }
    }

    fn of_object(&self, object: usize, closes: bool) -> &[u8] {
        &self.requests[object][usize::from(closes)]
    }
}

/// The time limit of a transaction. The runtime's timer is set once per limit, not per transaction.
struct Timer {
    sleep: Pin<Box<Sleep>>,
    limit: Duration,
    begun: Instant,
}

impl Timer {
    fn new(client: &Client) -> Self {
        let limit = Duration::from_nanos(client.spec.timeout_ns);
        Self {
            sleep: Box::pin(tokio::time::sleep(limit)),
            limit,
            begun: Instant::now(),
        }
    }

    fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// Whether the limit has passed; polled only while there is nothing to read.
    fn poll_passed(&mut self, context: &mut std::task::Context<'_>) -> bool {
        // It was set for an earlier transaction, so its end may be too early for this one.
        while self.sleep.as_mut().poll(context).is_ready() {
            let end = self.begun + self.limit;
            if Instant::now() >= end {
                return true;
            }
            self.sleep.as_mut().reset(end);
        }
        false
    }
}

struct Connection {
    stream: Stream,
    /// Transactions begun on it.
    used: u32,
    /// The beginning of a head that arrived in pieces.
    head: Vec<u8>,
}

/// How much of a response has arrived.
enum Part {
    Head,
    /// This many bytes of the object.
    Object(u64),
}

impl Connection {
    async fn response(
        &mut self,
        client: &Client,
        timer: &mut Timer,
        object: &Object,
    ) -> Result<(u64, u64), HttpFailure> {
        let mut part = Part::Head;
        let mut first_ns = None;
        loop {
            let now_ns = self
                .read(timer, |head, bytes| {
                    if bytes.is_empty() {
                        return Err(HttpFailure::Truncated);
                    }
                    let now_ns = client.schedule.now_ns();
                    part.take(head, object, bytes)?;
                    Ok(now_ns)
                })
                .await?;
            // The head counts as the first byte, as the client sees the answer begin there.
            let first_ns = *first_ns.get_or_insert(now_ns);
            if matches!(part, Part::Object(bytes) if bytes == object.bytes()) {
                return Ok((first_ns, now_ns));
            }
        }
    }

    /// Waits until the server has closed the connection.
    async fn ended(&mut self, timer: &mut Timer) -> Result<(), HttpFailure> {
        timer.begin();
        self.read(timer, |_, bytes| match bytes {
            [] => Ok(()),
            _ => Err(HttpFailure::WrongLength),
        })
        .await
    }

    /// Reads once and passes the bytes to `take`; an empty slice at the end of the connection.
    async fn read<T>(
        &mut self,
        timer: &mut Timer,
        mut take: impl FnMut(&mut Vec<u8>, &[u8]) -> Result<T, HttpFailure>,
    ) -> Result<T, HttpFailure> {
        poll_fn(|context| {
            BUFFER.with_borrow_mut(|buffer| {
                let mut read = ReadBuf::new(buffer);
                let polled = Pin::new(&mut self.stream).poll_read(context, &mut read);
                // Data that has arrived counts, even if the limit passed while it waited.
                if polled.is_pending() && timer.poll_passed(context) {
                    return Poll::Ready(Err(HttpFailure::Timeout));
                }
                if let Err(error) = ready!(polled) {
                    return Poll::Ready(Err(of_io(&error)));
                }
                Poll::Ready(take(&mut self.head, read.filled()))
            })
        })
        .await
    }
}

impl Part {
    /// Processes the next bytes. `head` holds the beginning of a head that arrived in pieces.
    fn take(
        &mut self,
        head: &mut Vec<u8>,
        object: &Object,
        bytes: &[u8],
    ) -> Result<(), HttpFailure> {
        if let Self::Object(_) = self {
            return self.take_object(object, bytes);
        }
        // Nearly always the head arrives whole: then it is read from the buffer, without a copy.
        if head.is_empty() {
            match head_bytes(object, bytes)? {
                Some(length) => {
                    *self = Self::Object(0);
                    return self.take_object(object, &bytes[length..]);
                }
                None => head.extend_from_slice(bytes),
            }
        } else {
            head.extend_from_slice(bytes);
            if let Some(length) = head_bytes(object, head)? {
                *self = Self::Object(0);
                let taken = self.take_object(object, &head[length..]);
                head.clear();
                return taken;
            }
        }
        if head.len() > HEAD_BYTES_MAX {
            Err(HttpFailure::Protocol)
        } else {
            Ok(())
        }
    }

    fn take_object(&mut self, object: &Object, bytes: &[u8]) -> Result<(), HttpFailure> {
        let Self::Object(offset) = self else {
            return Ok(());
        };
        let end = *offset + bytes.len() as u64;
        if end > object.bytes() {
            return Err(HttpFailure::WrongLength);
        }
        if !object.matches(*offset, bytes) {
            return Err(HttpFailure::WrongContent);
        }
        *offset = end;
        Ok(())
    }
}

/// Checks a head and returns its length; `None` while it is incomplete.
fn head_bytes(object: &Object, bytes: &[u8]) -> Result<Option<usize>, HttpFailure> {
    // Not zeroed: this runs once for each response.
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut fields,
    );
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(HttpFailure::Protocol),
    };
    // Before the fields: an error page has a length too.
    if response.code != Some(200) {
        return Err(HttpFailure::Status);
    }
    // Without `Content-Length` the end would be the end of the connection, and a cut could not be
    // distinguished from it.
    let mut announced = None;
    for field in response.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = std::str::from_utf8(field.value).ok();
            announced = value.and_then(|value| value.parse::<u64>().ok());
        } else if field.name.eq_ignore_ascii_case("age") {
            return Err(HttpFailure::Cached);
        }
    }
    if announced == Some(object.bytes()) {
        Ok(Some(length))
    } else {
        Err(HttpFailure::WrongLength)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(parts: &[&[u8]]) -> Result<u64, HttpFailure> {
        let object = Object::new(0, 64);
        let (mut part, mut head) = (Part::Head, Vec::new());
        for bytes in parts {
            part.take(&mut head, &object, bytes)?;
        }
        match part {
            Part::Head => Ok(0),
            Part::Object(bytes) => Ok(bytes),
        }
    }

    fn response(fields: &str) -> Vec<u8> {
        let mut bytes = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").into_bytes();
        Object::new(0, 64).write_to(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_response_may_arrive_in_any_parts() {
        let whole = response("Server: x\r\ncontent-LENGTH: 64");
        for at in 1..whole.len() {
            assert_eq!(taken(&[&whole[..at], &whole[at..]]), Ok(64), "{at}");
        }
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(taken(&bytes), Ok(64));
    }

    #[test]
    fn what_is_not_the_object_has_its_reason() {
        let failure = |bytes: &[u8]| taken(&[bytes]).unwrap_err();
        let head = |head: &str| failure(format!("{head}\r\n\r\n").as_bytes());
        assert_eq!(
            head("HTTP/1.1 404 No\r\nContent-Length: 64"),
            HttpFailure::Status
        );
        assert_eq!(head("HTTP/1.1 304 Not Modified"), HttpFailure::Status);
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nContent-Length: 63"),
            HttpFailure::WrongLength
        );
        assert_eq!(head("HTTP/1.1 200 OK"), HttpFailure::WrongLength);
        let cached = "HTTP/1.1 200 OK\r\nAge: 3\r\nContent-Length: 64";
        assert_eq!(head(cached), HttpFailure::Cached);
        assert_eq!(failure(b"nonsense\r\n\r\n"), HttpFailure::Protocol);
        let mut long = response("Content-Length: 64");
        long.push(b'x');
        assert_eq!(failure(&long), HttpFailure::WrongLength);
        let mut other = response("Content-Length: 64");
        *other.last_mut().unwrap() ^= 1;
        assert_eq!(failure(&other), HttpFailure::WrongContent);
        let endless = vec![b'a'; 2 * HEAD_BYTES_MAX];
        let endless = [b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &endless].concat();
        assert_eq!(failure(&endless), HttpFailure::Protocol);
    }
}

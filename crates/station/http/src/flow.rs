//! Short flows without HTTP: one TCP connection per object.
//!
//! The client sends the number of the object; the server sends the object and closes. So the
//! completion time consists of a handshake, a request and the object, without a file server.

use crate::connect::{connect, of_io};
use crate::error::HttpError;
use crate::object::Object;
use crate::shared::Client;
use crate::spec::Serve;
use journal::record::HttpFailure;
use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Time limit of the server for the request, and for sending each part of the object.
const SERVER_LIMIT: Duration = Duration::from_secs(5);

/// Serves until it is stopped, with a thread per connection.
pub(crate) fn serve(spec: &Serve) -> Result<Infallible, HttpError> {
    let objects = Arc::new(Object::all(&spec.test.objects()));
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, spec.port))
        .map_err(HttpError::system("listen for flows"))?;
    loop {
        // The client counts a connection that it gave up as its failure.
        let Ok((stream, _)) = listener.accept() else {
            continue;
        };
        let objects = Arc::clone(&objects);
        thread::spawn(move || send(stream, &objects));
    }
}

fn send(mut stream: TcpStream, objects: &[Object]) -> io::Result<()> {
    // The last part of an object must not wait for an acknowledgement (RFC 896).
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SERVER_LIMIT))?;
    stream.set_write_timeout(Some(SERVER_LIMIT))?;
    let mut number = [0; 4];
    stream.read_exact(&mut number)?;
    let number = u32::from_be_bytes(number) as usize;
    match objects.get(number) {
        Some(object) => object.write_to(&mut stream),
        None => Ok(()),
    }?;
    stream.flush()
}

/// Runs one flow after another until the run is over.
pub(crate) async fn run(client: Rc<Client>, share: f64) {
    let limit = Duration::from_nanos(client.spec.timeout_ns);
    let mut buffer = vec![0; READ_BYTES];
    while let Some((begin_ns, object)) = client.next(share).await {
        let fetched = tokio::time::timeout(limit, fetch(&client, object, &mut buffer)).await;
        match fetched.unwrap_or(Err(HttpFailure::Timeout)) {
            Ok((first_ns, last_ns)) => {
                let mut tally = client.tally.borrow_mut();
                tally.succeeded(object, begin_ns, first_ns, last_ns);
            }
            Err(why) => client.failed(why).await,
        }
    }
}

/// Counts a connection as closed on drop.
struct Open<'a>(&'a Client);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.tally.borrow_mut().closed();
    }
}

/// Fetches one object. Returns the arrival times of its first and its last byte.
async fn fetch(
    client: &Client,
    number: usize,
    buffer: &mut [u8],
) -> Result<(u64, u64), HttpFailure> {
    let mut stream = connect(client).await?;
    // From here on every return closes the connection.
    let _open = Open(client);
    let request = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    let sent = stream.write_all(&request).await;
    sent.map_err(|error| of_io(&error))?;
    let object = &client.objects[number];
    let (mut first_ns, mut last_ns, mut offset) = (None, 0, 0);
    // The server closes, so the port stays in TIME-WAIT on its side.
    loop {
        let bytes = stream.read(buffer).await.map_err(|error| of_io(&error))?;
        if bytes == 0 {
            break;
        }
        // Before the content: bytes beyond the end match nothing, and have a reason of their kind.
        if offset + bytes as u64 > object.bytes() {
            return Err(HttpFailure::WrongLength);
        }
        if !object.matches(offset, &buffer[..bytes]) {
            return Err(HttpFailure::WrongContent);
        }
        offset += bytes as u64;
        // The end of the object is its last byte, not the FIN that follows.
        last_ns = client.schedule.now_ns();
        first_ns.get_or_insert(last_ns);
    }
    match first_ns {
        Some(first_ns) if offset == object.bytes() => Ok((first_ns, last_ns)),
        _ => Err(HttpFailure::Truncated),
    }
}

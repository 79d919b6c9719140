//! The server: a bounded number of connections.

use axum::Router;
use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Most open connections. Each takes a descriptor of the process, which may also start the programs
/// of a run; a process usually has 1024. Further connections wait.
const CONNECTIONS_MAX: usize = 200;
/// A connection over which nothing has passed for so long ends: a request of which half was sent
/// would hold its place for ever. Longer than any page takes to make. Updates send a comment every
/// 15 s, so they do not end.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// Serves a site until the future is dropped.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, router: Router) -> io::Result<()> {
    serve_bounded(listener, router, CONNECTIONS_MAX, IDLE_MAX).await
}

async fn serve_bounded(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    idle_max: Duration,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(connections_max));
    let bounded = Bounded {
        listener,
        places,
        idle_max,
    };
    axum::serve(bounded, router).await
}

struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
    idle_max: Duration,
}

impl Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // The place first: a connection that is not accepted takes no descriptor. The semaphore is
        // never closed.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        // Axum's listener goes on after an error, such as a connection that has gone meanwhile.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let connection = Connection {
            stream,
            idle_max: self.idle_max,
            idle: Box::pin(tokio::time::sleep(self.idle_max)),
            _place: place,
        };
        (connection, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with its place. Its reads and writes fail after a time in which no byte passed.
struct Connection {
    stream: TcpStream,
    idle_max: Duration,
    idle: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// The result of a read or write; if it has to wait, an error once the time is over.
    fn within_time<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            let end = Instant::now() + self.idle_max;
            self.idle.as_mut().reset(end);
            return result;
        }
        ready!(self.idle.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.within_time(context, result)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_time(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::io::{Read, Write};
    use std::net::TcpStream as Client;

    /// Serves the pages `/` and `/slow` to two connections.
    fn served(idle_max: Duration) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let slow = || async {
                    tokio::time::sleep(Duration::from_millis(600)).await;
                    "slow"
                };
                let router = Router::new()
                    .route("/", get(|| async { "page" }))
                    .route("/slow", get(slow));
                serve_bounded(listener, router, 2, idle_max).await
            })
        });
        address
    }

    fn asked(address: SocketAddr, request: &str) -> Client {
        let mut client = Client::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        client
    }

    fn answer(mut client: Client) -> String {
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn halves_of_requests_do_not_hold_all_places() {
        let address = served(Duration::from_millis(200));
        let halves = [(); 2].map(|()| asked(address, "GET / HTTP/1.1\r\nHost: "));
        // Accepted when one of them has ended.
        let whole = asked(address, "GET / HTTP/1.0\r\n\r\n");
        assert!(answer(whole).ends_with("page"));
        drop(halves);
    }

    #[test]
    fn a_page_that_takes_long_is_sent() {
        let address = served(Duration::from_secs(60));
        let client = asked(address, "GET /slow HTTP/1.0\r\n\r\n");
        assert!(answer(client).ends_with("slow"));
    }
}

//! A listener that has limits: so many connections at once, none for longer than so long.
//!
//! Who connects beyond that waits in the kernel's queue, and is then turned away there.

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
use tokio::time::{Sleep, sleep};

/// Scrapers that one encryptor may have, and some more.
const CONNECTIONS_MAX: usize = 16;
/// A scrape takes milliseconds; a scraper that keeps its connection makes a new one, then.
const LIFETIME_MAX: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
    lifetime: Duration,
}

impl Limited {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self::with(listener, CONNECTIONS_MAX, LIFETIME_MAX)
    }

    fn with(listener: TcpListener, connections: usize, lifetime: Duration) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(connections)),
            lifetime,
        }
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let places = Arc::clone(&self.places);
        let place = places
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // Waits by itself where the process is out of descriptors.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let connection = Connection {
            stream,
            over: Box::pin(sleep(self.lifetime)),
            _place: place,
        };
        (connection, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends by itself.
pub(super) struct Connection {
    stream: TcpStream,
    over: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    /// Once its time is over, each call fails.
    fn poll_alive(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.over.as_mut().poll(context) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_alive(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_alive(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_alive(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;
    use std::io::{Read as _, Write as _};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";

    /// A server with one place on a thread of its own.
    fn serve(lifetime: Duration) -> SocketAddr {
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
                let router = Router::new().route("/", get(async || "here"));
                axum::serve(Limited::with(listener, 1, lifetime), router).await
            })
        });
        address
    }

    #[test]
    fn who_says_nothing_holds_a_place_for_a_while_only() {
        let address = serve(Duration::from_millis(100));
        let mut silent = std::net::TcpStream::connect(address).unwrap();
        let mut served = std::net::TcpStream::connect(address).unwrap();
        served.write_all(REQUEST).unwrap();
        let mut answer = String::new();
        // Answered only when the first one's time is over.
        served.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        let mut nothing = String::new();
        silent.read_to_string(&mut nothing).unwrap();
        assert_eq!(nothing, "");
    }
}

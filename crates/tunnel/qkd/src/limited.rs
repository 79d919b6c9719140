//! A TCP listener with a maximum number of concurrent connections, and HTTP/1.1 over it.
//!
//! Further connections wait in the kernel's backlog; when that is full, the kernel refuses them.

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Accepts a connection only while fewer than the maximum are open.
#[derive(Debug)]
pub(crate) struct LimitedListener {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

impl LimitedListener {
    /// Limits a listener to this many concurrent connections.
    #[must_use]
    pub(crate) fn new(listener: TcpListener, connections: usize) -> Self {
        Self {
            listener,
            permits: Arc::new(Semaphore::new(connections)),
        }
    }

    /// The next connection, with its place among the open ones: to be dropped when it is closed.
    pub(crate) async fn accept(&mut self) -> (TcpStream, OwnedSemaphorePermit) {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // axum's listener pauses and retries when the process is out of file descriptors.
        let (stream, _) = Listener::accept(&mut self.listener).await;
        (stream, permit)
    }
}

/// Serves HTTP/1.1 to a maximum number of concurrent connections, each with a maximum lifetime.
///
/// It is here for the encryptor too: its crate is optimized, which the code of an HTTP server is
/// not worth.
pub async fn serve_limited(
    listener: TcpListener,
    router: Router,
    connections: usize,
    lifetime: Duration,
) -> Infallible {
    let mut listener = LimitedListener::new(listener, connections);
    loop {
        // Waits for a permit first: further clients wait in the backlog, and cost no descriptor.
        let (stream, permit) = listener.accept().await;
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A failed connection concerns its client only.
            let _ = timeout(lifetime, connection).await;
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::io::{Read as _, Write as _};
    use std::net::SocketAddr;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";

    /// Starts a server on a new thread; it serves one connection at a time.
    fn start(lifetime: Duration) -> SocketAddr {
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
                serve_limited(listener, router, 1, lifetime).await
            })
        });
        address
    }

    #[test]
    fn a_silent_connection_holds_its_permit_for_its_lifetime_only() {
        let address = start(Duration::from_millis(100));
        let mut silent = std::net::TcpStream::connect(address).unwrap();
        let mut served = std::net::TcpStream::connect(address).unwrap();
        served.write_all(REQUEST).unwrap();
        let mut answer = String::new();
        // The answer comes after the silent connection's lifetime has ended.
        served.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        let mut nothing = String::new();
        silent.read_to_string(&mut nothing).unwrap();
        assert_eq!(nothing, "");
    }
}

//! Serves HTTP/1.1 with limits: a maximum number of concurrent connections, each with a maximum
//! lifetime.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use qkd::LimitedListener;
use std::convert::Infallible;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// More than the number of scrapers that one encryptor has.
const CONNECTIONS_MAX: usize = 16;
/// A scrape takes milliseconds; a scraper that keeps its connection open reconnects after this.
const LIFETIME_MAX: Duration = Duration::from_secs(30);

pub(super) async fn serve(listener: TcpListener, router: Router) -> Infallible {
    serve_with(listener, router, CONNECTIONS_MAX, LIFETIME_MAX).await
}

async fn serve_with(
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
                serve_with(listener, router, 1, lifetime).await
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

//! Plain and TLS connections, and the reasons for their failures.

use crate::shared::Client;
use crate::spec::SERVER_NAME;
use journal::record::HttpFailure;
use rustls::pki_types::ServerName;
use std::cell::Cell;
use std::error::Error;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection, plain or TLS.
pub(crate) type Stream = Box<dyn Duplex>;

/// Both halves of a connection.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

/// A TCP connection that counts the bytes received.
struct Counted {
    stream: TcpStream,
    received: Rc<Cell<u64>>,
}

/// Opens a connection, including the TLS handshake, if any.
pub(crate) async fn connect(client: &Client) -> Result<Stream, HttpFailure> {
    let limit = Duration::from_nanos(client.spec.timeout_ns);
    let connecting = tokio::time::timeout(limit, open(client));
    // One limit for TCP and TLS: a server that accepts and then says nothing must not hold the
    // connection.
    let stream = connecting.await.unwrap_or(Err(HttpFailure::Timeout))?;
    let now_ns = client.schedule.now_ns();
    client.tally.borrow_mut().connected(now_ns);
    Ok(stream)
}

async fn open(client: &Client) -> Result<Stream, HttpFailure> {
    let stream = TcpStream::connect(client.spec.server).await;
    let stream = stream.map_err(|error| of_io(&error))?;
    // Nagle (RFC 896) would delay a request until the last one is acknowledged.
    stream.set_nodelay(true).map_err(|error| of_io(&error))?;
    let stream = Counted {
        stream,
        received: Rc::clone(&client.received),
    };
    let Some(config) = &client.tls else {
        return Ok(Box::new(stream));
    };
    let name = ServerName::try_from(SERVER_NAME).map_err(|_| HttpFailure::Tls)?;
    let connector = TlsConnector::from(config.clone());
    let stream = connector.connect(name, stream).await;
    let stream = stream.map_err(|error| of_io(&error))?;
    Ok(Box::new(stream))
}

/// Classifies an error of a socket or of TLS over it.
pub(crate) fn of_io(error: &io::Error) -> HttpFailure {
    match error.raw_os_error().map(nix::Error::from_raw) {
        // These two are faults of the client, so they must not look like ones of the server.
        Some(nix::Error::EMFILE | nix::Error::ENFILE) => return HttpFailure::NoDescriptor,
        Some(nix::Error::EADDRNOTAVAIL) => return HttpFailure::NoPort,
        _ => {}
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => HttpFailure::Refused,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            HttpFailure::Reset
        }
        ErrorKind::TimedOut => HttpFailure::Timeout,
        ErrorKind::UnexpectedEof => HttpFailure::Truncated,
        // rustls reports its errors with this kind.
        ErrorKind::InvalidData => HttpFailure::Tls,
        _ => HttpFailure::Other,
    }
}

/// Classifies an error of hyper.
pub(crate) fn of_hyper(error: &hyper::Error) -> HttpFailure {
    let mut cause = error.source();
    // The reason of the socket is more exact than hyper's own kinds, which come last.
    while let Some(found) = cause {
        if let Some(io) = found.downcast_ref::<io::Error>() {
            return of_io(io);
        }
        cause = found.source();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return HttpFailure::Truncated;
    }
    HttpFailure::Protocol
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Below TLS, so that record headers and handshakes count as they do on the link.
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let received = (buffer.filled().len() - before) as u64;
        self.received.set(self.received.get() + received);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

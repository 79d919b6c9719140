//! A listener with limits: a maximum number of concurrent connections, an idle timeout, and no
//! service before the caller is identified.

use super::network::Sae;
use crate::limited::LimitedListener;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// Maximum concurrent connections to one address. Clients keep them open: a gateway has a few.
const CONNECTIONS_MAX: usize = 256;
/// Time limit for the handshake, before the first request.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Idle timeout of a connection. Longer than any delay that a fault can inject.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// The identity of a connection's client: one of the KME's SAEs, or `None` if unknown.
#[derive(Debug, Clone)]
pub(super) struct Caller(pub(super) Option<Sae>);

/// A listener that yields identified connections.
pub(super) struct Door<S> {
    identified: mpsc::Receiver<(Connection<S>, Caller)>,
    address: SocketAddr,
}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Door<S> {
    /// Accepts connections in a task. `identify` performs the handshake and identifies the client;
    /// if it fails, the connection is closed.
    pub(super) fn open<F>(
        listener: TcpListener,
        identify: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = io::Result<(S, Caller)>> + Send + 'static,
    {
        let address = listener.local_addr()?;
        // Handshakes run at the same time, each in its task: a silent client delays nobody. The
        // server takes the finished ones.
        let (sender, identified) = mpsc::channel(1);
        tokio::spawn(accept(listener, identify, sender));
        Ok(Self {
            identified,
            address,
        })
    }
}

async fn accept<S, F>(
    listener: TcpListener,
    identify: impl Fn(TcpStream) -> F,
    sender: mpsc::Sender<(Connection<S>, Caller)>,
) where
    S: Send + 'static,
    F: Future<Output = io::Result<(S, Caller)>> + Send + 'static,
{
    let mut listener = LimitedListener::new(listener, CONNECTIONS_MAX);
    loop {
        let (stream, permit) = listener.accept().await;
        // A response is one short segment; Nagle's algorithm would delay it.
        let _ = stream.set_nodelay(true);
        let identifying = identify(stream);
        let sender = sender.clone();
        tokio::spawn(async move {
            if let Ok(Ok((stream, caller))) = timeout(HANDSHAKE_TIME_MAX, identifying).await {
                // Fails only if the server has ended.
                let _ = sender.send((Connection::new(stream, permit), caller)).await;
            }
        });
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Listener for Door<S> {
    type Io = Connection<S>;
    type Addr = Caller;

    async fn accept(&mut self) -> (Connection<S>, Caller) {
        match self.identified.recv().await {
            Some(identified) => identified,
            // The task that accepts lives as long as the runtime.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Caller> {
        Ok(Caller(None))
    }
}

impl<S> Door<S> {
    /// The listening address.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Connected<IncomingStream<'_, Door<S>>>
    for Caller
{
    fn connect_info(stream: IncomingStream<'_, Door<S>>) -> Self {
        stream.remote_addr().clone()
    }
}

/// A connection that fails after [`SILENCE_MAX`] without progress.
pub(super) struct Connection<S> {
    stream: S,
    silence: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl<S> Connection<S> {
    fn new(stream: S, permit: OwnedSemaphorePermit) -> Self {
        Self {
            stream,
            silence: Box::pin(sleep(SILENCE_MAX)),
            _permit: permit,
        }
    }

    /// Restarts the idle timer if the operation completed; otherwise fails if the timer has
    /// expired.
    fn limited<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            // Any progress counts, in either direction.
            self.silence.as_mut().reset(Instant::now() + SILENCE_MAX);
            return result;
        }
        // Registers the timer with the task as well, so that it is woken when nothing else happens.
        match self.silence.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.limited(context, result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.limited(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limited(context, result)
    }
}

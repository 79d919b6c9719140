//! Listeners with limits: so many connections at once, none for long that is silent, none served that has not shown
//! who it is.
//!
//! Who connects beyond that waits in the kernel's queue, and is then turned away there.

use super::network::Sae;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// Connections to one address. Clients keep theirs: a gateway has a few.
const CONNECTIONS_MAX: usize = 256;
/// For what comes before the first request.
const GREETING_TIME_MAX: Duration = Duration::from_secs(10);
/// A connection on which nothing has come or gone for so long is closed. Longer than any delay among the faults.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Who is at the other end of a connection: one of the KME's SAEs, or nobody it knows.
#[derive(Debug, Clone)]
pub(super) struct Caller(pub(super) Option<Sae>);

/// Connections that have been greeted.
pub(super) struct Door<S> {
    greeted: mpsc::Receiver<(Connection<S>, Caller)>,
    address: SocketAddr,
}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Door<S> {
    /// Accepts connections from now on, on a task of its own. `greet` finds out who each is from; one on which it fails
    /// is closed.
    pub(super) fn open<F>(
        listener: TcpListener,
        greet: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> io::Result<Self>
    where
        F: Future<Output = io::Result<(S, Caller)>> + Send + 'static,
    {
        let address = listener.local_addr()?;
        let (hand_over, greeted) = mpsc::channel(1);
        tokio::spawn(accept(listener, greet, hand_over));
        Ok(Self { greeted, address })
    }
}

async fn accept<S, F>(
    mut listener: TcpListener,
    greet: impl Fn(TcpStream) -> F,
    hand_over: mpsc::Sender<(Connection<S>, Caller)>,
) where
    S: Send + 'static,
    F: Future<Output = io::Result<(S, Caller)>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // Waits by itself where the process is out of descriptors.
        let (stream, _) = Listener::accept(&mut listener).await;
        // An answer is one short segment: it is not to wait for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let greeting = greet(stream);
        let hand_over = hand_over.clone();
        tokio::spawn(async move {
            if let Ok(Ok((stream, caller))) = timeout(GREETING_TIME_MAX, greeting).await {
                // Fails where the server has ended.
                let _ = hand_over
                    .send((Connection::new(stream, place), caller))
                    .await;
            }
        });
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Listener for Door<S> {
    type Io = Connection<S>;
    type Addr = Caller;

    async fn accept(&mut self) -> (Connection<S>, Caller) {
        match self.greeted.recv().await {
            Some(greeted) => greeted,
            // The task that accepts lives as long as the runtime.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Caller> {
        Ok(Caller(None))
    }
}

impl<S> Door<S> {
    /// Where it listens.
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

/// A connection that fails once it has been silent for too long.
pub(super) struct Connection<S> {
    stream: S,
    silence: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl<S> Connection<S> {
    fn new(stream: S, place: OwnedSemaphorePermit) -> Self {
        Self {
            stream,
            silence: Box::pin(sleep(SILENCE_MAX)),
            _place: place,
        }
    }

    /// What was to be done: done, so the silence begins anew; failed for the silence; or still to be done.
    fn heard<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.silence.as_mut().reset(Instant::now() + SILENCE_MAX);
            return result;
        }
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
        self.heard(context, result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.heard(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.heard(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.heard(context, result)
    }
}

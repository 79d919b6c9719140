//! One connection: a task that opens or accepts it, and transfers messages both ways until it ends.
//!
//! The shell queues messages to send; when it drops its end of the queue, the task sends the rest
//! and closes. The task sends reports to the shell. It makes no decision about keys.

use super::LinkId;
use crate::Identity;
use crate::frame::{Frames, framed};
use crate::reason;
use crate::tls::{self, Session};
use keying::chain::Secret;
use keying::message::{Message, Refusal};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// Time limit from accepting a connection to its first message, including the TLS handshake.
pub const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for sending one message.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for the peer to read the reason before the connection closes.
const LINGER: Duration = Duration::from_secs(1);
/// Maximum bytes read and discarded meanwhile.
const LINGER_BYTES: usize = 64 * 1024;
/// Size of a read; most messages are shorter.
const CHUNK_BYTES: usize = 2048;
/// Capacity of a connection's send queue. A side never has more than a few messages in flight.
pub(super) const ORDERS_MAX: usize = 64;

/// A task's report to the shell.
pub(super) enum Report {
    /// An outbound connection is up, with the right peer.
    Up {
        link: LinkId,
        secret: Secret,
        /// Time until a certificate of either side expires.
        valid_for: Duration,
    },
    /// An inbound connection has completed TLS, and its first message has arrived.
    Opened {
        link: LinkId,
        from: SocketAddr,
        session: Session,
        message: Message,
        /// As in [`Self::Up`].
        valid_for: Duration,
    },
    /// A message arrived.
    Received { link: LinkId, message: Message },
    /// Received data is not a valid message; reading has stopped.
    Garbled { link: LinkId, detail: String },
    /// An inbound connection ended before its first message.
    Refused {
        link: LinkId,
        from: SocketAddr,
        reason: String,
    },
    /// A connection ended.
    Ended { link: LinkId, reason: String },
}

/// A task's ends of the queues.
pub(super) struct Ends {
    pub(super) link: LinkId,
    pub(super) orders: mpsc::Receiver<Message>,
    pub(super) reports: mpsc::Sender<Report>,
}

impl Ends {
    /// Sends a report. An error means that the shell has ended; the runtime then drops the task.
    async fn report(&self, report: Report) {
        let _ = self.reports.send(report).await;
    }
}

/// Destination and identity of an outbound connection.
pub(super) struct Target {
    pub(super) local: IpAddr,
    pub(super) remote: SocketAddr,
    pub(super) peer: String,
    pub(super) config: Arc<ClientConfig>,
    /// When this side's certificate expires.
    pub(super) not_after: SystemTime,
    /// Limits concurrent connection attempts to the peer's address.
    pub(super) gate: Arc<Semaphore>,
}

/// Opens a connection and transfers its messages.
pub(super) async fn connect(target: Target, ends: Ends) {
    let link = ends.link;
    // The semaphore is never closed; without a permit there would merely be one attempt too many.
    let permit = Arc::clone(&target.gate).acquire_owned().await.ok();
    match dial(&target).await {
        Ok((stream, session)) => {
            let valid_for = valid_for(&session, target.not_after);
            let secret = session.secret;
            ends.report(Report::Up {
                link,
                secret,
                valid_for,
            })
            .await;
            converse(stream, Frames::default(), permit, ends).await;
        }
        Err(reason) => ends.report(Report::Ended { link, reason }).await,
    }
}

/// Accepts a connection and transfers its messages.
pub(super) async fn accept(stream: TcpStream, from: SocketAddr, identity: Identity, ends: Ends) {
    let link = ends.link;
    // One limit for the handshake and the first message: a client cannot use the time twice.
    let opened = open(stream, Arc::clone(&identity.server));
    match timeout(OPEN_LIMIT, opened).await {
        Ok(Ok((stream, frames, session, message))) => {
            let valid_for = valid_for(&session, identity.valid().end);
            ends.report(Report::Opened {
                link,
                from,
                session,
                message,
                valid_for,
            })
            .await;
            converse(stream, frames, None, ends).await;
        }
        Ok(Err(reason)) => ends.report(Report::Refused { link, from, reason }).await,
        Err(_) => {
            let reason = format!(
                "it sent no valid first message within {} s",
                OPEN_LIMIT.as_secs()
            );
            ends.report(Report::Refused { link, from, reason }).await;
        }
    }
}

/// Time until a certificate of the session expires; this side's expires at `not_after`.
fn valid_for(session: &Session, not_after: SystemTime) -> Duration {
    let end = session.not_after.min(not_after);
    end.duration_since(SystemTime::now()).unwrap_or_default()
}

async fn dial(target: &Target) -> Result<(client::TlsStream<TcpStream>, Session), String> {
    let to = |error: &io::Error| {
        format!(
            "no connection to {}: {}",
            target.remote,
            reason::of_io(error)
        )
    };
    let stream = tcp(target).await.map_err(|error| to(&error))?;
    let name = ServerName::try_from(target.peer.clone()).map_err(|error| error.to_string())?;
    let handshake = TlsConnector::from(Arc::clone(&target.config)).connect(name, stream);
    let stream = match handshake.into_fallible().await {
        Ok(stream) => stream,
        Err((error, stream)) => {
            // Its alert says why, and must arrive.
            close(stream).await;
            return Err(to(&error));
        }
    };
    let session = tls::session(stream.get_ref().1).map_err(|breach| breach.to_string())?;
    // TLS has verified that the certificate is valid for this name. It must also have no other
    // name.
    if session.peer != target.peer {
        return Err(format!(
            "{} has the certificate of {}, not of {}",
            target.remote, session.peer, target.peer
        ));
    }
    Ok((stream, session))
}

async fn tcp(target: &Target) -> io::Result<TcpStream> {
    let socket = match target.local {
        IpAddr::V4(_) => TcpSocket::new_v4(),
        IpAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // The peer accepts connections from this address only; the route might choose another.
    socket.bind(SocketAddr::new(target.local, 0))?;
    let stream = socket.connect(target.remote).await?;
    // Messages are short, and each side waits for the other's.
    stream.set_nodelay(true)?;
    Ok(stream)
}

type Opened = (server::TlsStream<TcpStream>, Frames, Session, Message);

async fn open(stream: TcpStream, config: Arc<ServerConfig>) -> Result<Opened, String> {
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    let handshake = TlsAcceptor::from(config).accept(stream).into_fallible();
    let mut stream = match handshake.await {
        Ok(stream) => stream,
        Err((error, stream)) => {
            // Its alert says why, and must arrive.
            close(stream).await;
            return Err(reason::of_io(&error));
        }
    };
    let session = match tls::session(stream.get_ref().1) {
        Ok(session) => session,
        Err(breach) => {
            refuse(stream, breach.to_string()).await;
            return Err(breach.to_string());
        }
    };
    let mut frames = Frames::default();
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        match message(&mut frames) {
            Ok(Some(message)) => return Ok((stream, frames, session, message)),
            Ok(None) => {}
            Err(detail) => {
                refuse(stream, detail.clone()).await;
                return Err(format!("{}: {detail}", session.peer));
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) => return Err(format!("{} closed before its first message", session.peer)),
            Ok(length) => frames.push(&chunk[..length]),
            Err(error) => return Err(format!("{}: {}", session.peer, reason::of_io(&error))),
        }
    }
}

/// The next complete message, if any, or why it is invalid.
fn message(frames: &mut Frames) -> Result<Option<Message>, String> {
    let bytes = frames.take().map_err(|error| error.to_string())?;
    bytes
        .map(|bytes| Message::decode(&bytes))
        .transpose()
        .map_err(|garbled| garbled.to_string())
}

/// Transfers messages until the shell or the peer closes. Releases the permit on the peer's first
/// message: by then the peer has completed the handshake, too.
async fn converse<S>(
    mut stream: S,
    mut frames: Frames,
    mut permit: Option<OwnedSemaphorePermit>,
    mut ends: Ends,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let link = ends.link;
    let mut chunk = [0; CHUNK_BYTES];
    let mut reading = true;
    let reason = loop {
        if reading {
            // Before the next read: the last one may have brought more than one message.
            match message(&mut frames) {
                Ok(Some(message)) => {
                    drop(permit.take());
                    ends.report(Report::Received { link, message }).await;
                    continue;
                }
                Ok(None) => {}
                Err(detail) => {
                    // The start of the next message is lost. Sending goes on, so that the reason
                    // for the refusal reaches the peer.
                    reading = false;
                    ends.report(Report::Garbled { link, detail }).await;
                }
            }
        }
        tokio::select! {
            order = ends.orders.recv() => match order {
                Some(message) => {
                    // Nothing is read meanwhile; the limit of the send keeps that short.
                    if let Err(reason) = send(&mut stream, &message).await {
                        break reason;
                    }
                }
                None => {
                    // The permit counts handshakes, and closing may take a while.
                    drop(permit);
                    return close(stream).await;
                }
            },
            read = stream.read(&mut chunk), if reading => match read {
                Ok(0) => break "the peer closed the connection".to_owned(),
                Ok(length) => frames.push(&chunk[..length]),
                Err(error) => break reason::of_io(&error),
            },
        }
    };
    ends.report(Report::Ended { link, reason }).await;
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &Message) -> Result<(), String> {
    let bytes = framed(&message.encode());
    let sent = timeout(SEND_LIMIT, async {
        stream.write_all(&bytes).await?;
        stream.flush().await
    });
    match sent.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(reason::of_io(&error)),
        Err(_) => Err(format!(
            "the peer did not take a message within {} s",
            SEND_LIMIT.as_secs()
        )),
    }
}

/// Sends the reason and closes.
async fn refuse(mut stream: server::TlsStream<TcpStream>, detail: String) {
    let why = Refusal::Protocol;
    if send(&mut stream, &Message::Refuse { why, detail })
        .await
        .is_ok()
    {
        close(stream).await;
    }
}

/// Closes so that sent data arrives: with unread bytes of the peer, the operating system would
/// reset the connection and discard it.
async fn close(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let polite = async {
        // TLS's close_notify and then FIN: the peer sees an end, not an interruption.
        stream.shutdown().await?;
        let mut chunk = [0; CHUNK_BYTES];
        let mut left = LINGER_BYTES;
        while left > 0 {
            match stream.read(&mut chunk).await? {
                0 => break,
                length => left = left.saturating_sub(length),
            }
        }
        io::Result::Ok(())
    };
    // The connection closes in any case.
    let _ = timeout(LINGER, polite).await;
}

//! One connection: a task that makes or takes it, and then carries messages both ways until it ends.
//!
//! The shell gives orders by a queue; when it drops its end of that, the task sends what is left and closes. The task tells what
//! happens by reports. It never decides anything about keys.

use super::LinkId;
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
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// From a connection's coming in to its first message: TLS, and one message more.
pub const OPEN_LIMIT: Duration = Duration::from_secs(5);
/// For one message to go out.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// For the peer to read why it is closed.
const LINGER: Duration = Duration::from_secs(1);
/// What is read and thrown away meanwhile.
const LINGER_BYTES: usize = 64 * 1024;
/// What is read at once; most messages are shorter.
const CHUNK_BYTES: usize = 2048;
/// Messages that may wait to go out, on one connection. A side never has more than a few under way.
pub(super) const ORDERS_MAX: usize = 64;

/// What a task tells the shell.
pub(super) enum Report {
    /// The connection that was asked for is up, with the right peer.
    Up { link: LinkId, secret: Secret },
    /// A connection came in, is through TLS, and its first message is there.
    Opened {
        link: LinkId,
        from: SocketAddr,
        session: Session,
        message: Message,
    },
    /// A message came.
    Received { link: LinkId, message: Message },
    /// Something came that is no message; nothing is read any more.
    Garbled { link: LinkId, detail: String },
    /// A connection that came in is over before it was of use.
    Refused {
        link: LinkId,
        from: SocketAddr,
        reason: String,
    },
    /// A connection is over.
    Ended { link: LinkId, reason: String },
}

/// What a task needs beside its connection.
pub(super) struct Ends {
    pub(super) link: LinkId,
    pub(super) orders: mpsc::Receiver<Message>,
    pub(super) reports: mpsc::Sender<Report>,
}

impl Ends {
    /// If nobody takes the report the shell is gone, and soon the task, too.
    async fn tell(&self, report: Report) {
        let _ = self.reports.send(report).await;
    }
}

/// Where to, as whom.
pub(super) struct Target {
    pub(super) local: IpAddr,
    pub(super) remote: SocketAddr,
    pub(super) peer: String,
    pub(super) config: Arc<ClientConfig>,
    /// Of the peer's address: how many connections may be under way to it.
    pub(super) gate: Arc<Semaphore>,
}

/// Makes a connection, and carries its messages.
pub(super) async fn connect(target: Target, ends: Ends) {
    let link = ends.link;
    // Nobody closes a gate; without a permit the connection would only be one too many.
    let permit = Arc::clone(&target.gate).acquire_owned().await.ok();
    match dial(&target).await {
        Ok((stream, session)) => {
            let secret = session.secret;
            ends.tell(Report::Up { link, secret }).await;
            converse(stream, Frames::default(), permit, ends).await;
        }
        Err(reason) => ends.tell(Report::Ended { link, reason }).await,
    }
}

/// Takes a connection, and carries its messages.
pub(super) async fn accept(
    stream: TcpStream,
    from: SocketAddr,
    config: Arc<ServerConfig>,
    ends: Ends,
) {
    let link = ends.link;
    match timeout(OPEN_LIMIT, open(stream, config)).await {
        Ok(Ok((stream, frames, session, message))) => {
            ends.tell(Report::Opened {
                link,
                from,
                session,
                message,
            })
            .await;
            converse(stream, frames, None, ends).await;
        }
        Ok(Err(reason)) => ends.tell(Report::Refused { link, from, reason }).await,
        Err(_) => {
            let reason = format!("it said nothing of use for {} s", OPEN_LIMIT.as_secs());
            ends.tell(Report::Refused { link, from, reason }).await;
        }
    }
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
    socket.bind(SocketAddr::new(target.local, 0))?;
    let stream = socket.connect(target.remote).await?;
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
            Ok(0) => return Err(format!("{} closed without a word", session.peer)),
            Ok(length) => frames.push(&chunk[..length]),
            Err(error) => return Err(format!("{}: {}", session.peer, reason::of_io(&error))),
        }
    }
}

/// The next message that is wholly there; or what is wrong with it.
fn message(frames: &mut Frames) -> Result<Option<Message>, String> {
    let bytes = frames.take().map_err(|error| error.to_string())?;
    bytes
        .map(|bytes| Message::decode(&bytes))
        .transpose()
        .map_err(|garbled| garbled.to_string())
}

/// Carries messages until the shell or the peer closes. The permit is given back when the peer has answered: then its side of
/// the handshake is done, too.
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
            match message(&mut frames) {
                Ok(Some(message)) => {
                    drop(permit.take());
                    ends.tell(Report::Received { link, message }).await;
                    continue;
                }
                Ok(None) => {}
                Err(detail) => {
                    reading = false;
                    ends.tell(Report::Garbled { link, detail }).await;
                }
            }
        }
        tokio::select! {
            order = ends.orders.recv() => match order {
                Some(message) => {
                    if let Err(reason) = send(&mut stream, &message).await {
                        break reason;
                    }
                }
                None => {
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
    ends.tell(Report::Ended { link, reason }).await;
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

/// Says why, and closes.
async fn refuse(mut stream: server::TlsStream<TcpStream>, detail: String) {
    let why = Refusal::Protocol;
    if send(&mut stream, &Message::Refuse { why, detail })
        .await
        .is_ok()
    {
        close(stream).await;
    }
}

/// Closes so that what was sent arrives: while bytes of the peer are unread, the operating system would throw it away.
async fn close(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let polite = async {
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
    // It is over in any case.
    let _ = timeout(LINGER, polite).await;
}

//! A station as a device's WireGuard peer: it makes the handshakes, and keeps the session alive.
//!
//! Every station program makes a new handshake, so its counters begin at 0 and no number can
//! repeat. It is always the initiator: a device starts no handshake while it receives (whitepaper
//! §6.5).

mod handshake;

use crate::error::TrafficError;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::{Aead, NONCE_BYTES, Selection, TAG_BYTES};
use guard::read_text;
use handshake::{Identity, Initiation, Key, Session};
use port::{Stop, wait_readable};
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use wire::overhead::WIREGUARD_PAD_TO_BYTES;
use zeroize::Zeroizing;

/// First byte of transport data (§5.4.6), which is followed by three zeroes.
pub(crate) const TRANSPORT: u8 = 4;
/// Type, the receiver's index and the counter, in front of the sealed packet.
pub(crate) const HEADER_BYTES: usize = 16;

/// How long a handshake may take: less than a station may take until it is ready.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(4);
/// Interval of initiations until a response comes. A device accepts at most one in 20 ms, and
/// responds immediately.
const RETRY: Duration = Duration::from_millis(500);
/// Age at which a session is replaced: a device refuses sessions older than 180 s (§6.1).
const RENEW_AFTER: Duration = Duration::from_secs(100);
/// A device that sends and hears nothing for 15 s begins a handshake (§6.5).
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Longer than any configuration with one peer.
const BYTES_MAX: usize = 1 << 16;
/// Sessions that packets may still arrive in.
const SESSIONS_MAX: usize = 3;

/// Sessions with a device, kept alive by a dedicated thread until they are dropped.
pub(crate) struct WireGuardKeys {
    shared: Arc<Shared>,
    keeper: Option<JoinHandle<()>>,
}

struct Shared {
    selection: Selection,
    identity: Identity,
    socket: UdpSocket,
    remote: IpAddr,
    /// Whether a generator seals in the sessions: then the keeper seals only the first packet of
    /// each.
    sends: bool,
    /// Newest last.
    sessions: Mutex<Vec<Session>>,
    /// Number of sessions so far.
    made: AtomicU64,
    stop: Stop,
}

/// The sealing half of a session.
pub(crate) struct Sealing {
    aead: Box<dyn Aead>,
    peer_index: u32,
    /// Counter of the next packet.
    next: u64,
}

impl WireGuardKeys {
    /// Makes the first handshake from `local`; `file` has the keys, as `wg setconf` reads them.
    ///
    /// # Errors
    /// [`TrafficError`] when the file cannot be read, or the device does not answer.
    pub(crate) fn open(
        selection: Selection,
        file: &Path,
        (local, remote): (IpAddr, IpAddr),
        port: u16,
        sends: bool,
    ) -> Result<Self, TrafficError> {
        let failed = |what: String, error: io::Error| TrafficError::Handshake {
            remote,
            reason: format!("{what}: {error}"),
        };
        let identity = read(file).map_err(|error| failed(file.display().to_string(), error))?;
        let open = || {
            let socket = UdpSocket::bind((local, port))?;
            // Connected, so that datagrams of others do not arrive.
            socket.connect((remote, port))?;
            // The keeper also waits for the request to stop.
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| failed(format!("UDP port {port}"), error))?;
        let shared = Arc::new(Shared {
            selection,
            identity,
            socket,
            remote,
            sends,
            sessions: Mutex::default(),
            made: AtomicU64::new(0),
            stop: Stop::new().map_err(TrafficError::Resources)?,
        });
        // The first one here, not on the thread: a device that does not answer is an error of the
        // station.
        let mut keepalives = shared.shake_hands()?;
        let keeping = Arc::clone(&shared);
        let keeper = thread::Builder::new()
            .name("wireguard".to_owned())
            .spawn(move || keeping.keep(&mut keepalives))
            .map_err(TrafficError::Resources)?;
        Ok(Self {
            shared,
            keeper: Some(keeper),
        })
    }

    /// Number of handshakes so far.
    pub(crate) fn made(&self) -> u64 {
        self.shared.made.load(Relaxed)
    }

    /// The sealing half of the newest session; `None` if it was taken before, or is not a
    /// generator's.
    pub(crate) fn sealing(&self) -> Option<Sealing> {
        let mut sessions = self.shared.lock();
        let newest = sessions.last_mut()?;
        if newest.is_taken || !self.shared.sends {
            return None;
        }
        // Two senders with one key and one counter would repeat nonces.
        newest.is_taken = true;
        // The first packet of each is the keeper's.
        Some(self.shared.sealing(newest, 1))
    }

    /// The key to open packets of the session with that index.
    pub(crate) fn opening(&self, own_index: u32) -> Option<Box<dyn Aead>> {
        let sessions = self.shared.lock();
        let session = sessions.iter().find(|it| it.own_index == own_index)?;
        Some(self.shared.selection.aead(&*session.opening))
    }
}

impl Drop for WireGuardKeys {
    fn drop(&mut self) {
        self.shared.stop.raise();
        if let Some(keeper) = self.keeper.take() {
            // Its panic is no reason for another.
            let _ = keeper.join();
        }
    }
}

impl Sealing {
    /// Seals `inner[..bytes]`, which has room for padding behind it, with its header into `dst`;
    /// returns the length written.
    #[inline(never)]
    pub(crate) fn seal(&mut self, inner: &mut [u8], bytes: usize, dst: &mut [u8]) -> usize {
        let padded = bytes.next_multiple_of(WIREGUARD_PAD_TO_BYTES);
        let mut kept = [0; WIREGUARD_PAD_TO_BYTES];
        let kept = &mut kept[..padded - bytes];
        // The buffer has the pattern of longer frames there, which is restored below.
        kept.copy_from_slice(&inner[bytes..padded]);
        inner[bytes..padded].fill(0);
        let (header, sealed) = dst.split_at_mut(HEADER_BYTES);
        header[..4].copy_from_slice(&[TRANSPORT, 0, 0, 0]);
        header[4..8].copy_from_slice(&self.peer_index.to_le_bytes());
        header[8..].copy_from_slice(&self.next.to_le_bytes());
        let sealed = &mut sealed[..padded + TAG_BYTES];
        self.aead
            .seal(&nonce(self.next), &[], &inner[..padded], sealed);
        self.next += 1;
        inner[bytes..padded].copy_from_slice(kept);
        HEADER_BYTES + padded + TAG_BYTES
    }
}

/// The nonce of a counter (§5.4.6).
#[inline]
pub(crate) fn nonce(counter: u64) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce[NONCE_BYTES - 8..].copy_from_slice(&counter.to_le_bytes());
    nonce
}

impl Shared {
    /// Replaces the session when it is old, and lets the device hear from its peer.
    fn keep(&self, keepalives: &mut Sealing) {
        let (mut made, mut heard) = (Instant::now(), Instant::now());
        while !self.stop.is_raised() {
            // A generator's packets are signs of life themselves.
            let due = if self.sends {
                RENEW_AFTER.saturating_sub(made.elapsed())
            } else {
                KEEPALIVE_INTERVAL.saturating_sub(heard.elapsed())
            };
            let _ = wait_readable(&[self.stop.as_fd()], Some(due));
            if self.stop.is_raised() {
                break;
            }
            if made.elapsed() >= RENEW_AFTER {
                // Until it succeeds, the trial goes on with the old session; the result shows the
                // effect.
                if let Ok(new) = self.shake_hands() {
                    *keepalives = new;
                    (made, heard) = (Instant::now(), Instant::now());
                }
            } else if heard.elapsed() >= KEEPALIVE_INTERVAL && !self.sends {
                self.send_keepalive(keepalives);
                heard = Instant::now();
            }
        }
    }

    /// Makes a handshake and confirms it, so that the device uses the new keys immediately; returns
    /// the sealing half for further keepalives.
    fn shake_hands(&self) -> Result<Sealing, TrafficError> {
        let failed = |reason: String| TrafficError::Handshake {
            remote: self.remote,
            reason,
        };
        let begun = Instant::now();
        let mut initiations = Vec::new();
        while begun.elapsed() < HANDSHAKE_LIMIT && !self.stop.is_raised() {
            let index = getrandom::u32().map_err(|error| failed(error.to_string()))?;
            let begin = Initiation::new(&self.identity, index);
            let (initiation, message) = begin.map_err(|error| failed(error.to_string()))?;
            // Earlier ones remain: their responses may still be on the way.
            initiations.push(initiation);
            // A device that is not up yet refuses the datagram.
            let _ = self.socket.send(&message);
            if let Some(session) = self.await_response(&mut initiations) {
                let mut keepalives = self.sealing(&session, 0);
                let mut sessions = self.lock();
                if sessions.len() == SESSIONS_MAX {
                    sessions.remove(0);
                }
                sessions.push(session);
                // The keepalive goes out without the lock, which openers take.
                drop(sessions);
                self.send_keepalive(&mut keepalives);
                self.made.fetch_add(1, Relaxed);
                return Ok(keepalives);
            }
        }
        let limit = HANDSHAKE_LIMIT.as_secs();
        Err(failed(format!("it has not answered within {limit} s")))
    }

    /// A busy device may answer an initiation after the next one was sent.
    fn await_response(&self, initiations: &mut [Initiation]) -> Option<Session> {
        let sent = Instant::now();
        let mut message = [0; 2048];
        loop {
            let left = RETRY.checked_sub(sent.elapsed())?;
            let fds = [self.socket.as_fd(), self.stop.as_fd()];
            wait_readable(&fds, Some(left)).ok()?;
            if self.stop.is_raised() {
                return None;
            }
            // The socket takes packets of anybody: what is no response to ours is ignored.
            while let Ok(bytes) = self.socket.recv(&mut message) {
                let message = &message[..bytes];
                let mut responses = initiations.iter_mut();
                if let Some(session) = responses.find_map(|it| it.finish(message)) {
                    return Some(session);
                }
            }
        }
    }

    fn send_keepalive(&self, keepalives: &mut Sealing) {
        let mut packet = [0; HEADER_BYTES + TAG_BYTES];
        let bytes = keepalives.seal(&mut [], 0, &mut packet);
        // The device's next packet shows whether it arrived.
        let _ = self.socket.send(&packet[..bytes]);
    }

    fn sealing(&self, session: &Session, next: u64) -> Sealing {
        Sealing {
            aead: self.selection.aead(&*session.sealing),
            peer_index: session.peer_index,
            next,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the keys of `[Interface]` and `[Peer]`.
fn read(file: &Path) -> io::Result<Identity> {
    let text = Zeroizing::new(read_text(file, BYTES_MAX)?);
    let key = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let mut values = lines.filter(|(key, _)| key.trim() == name);
        let Some((_, value)) = values.next() else {
            return Ok(None);
        };
        let decoded = BASE64_STANDARD.decode(value.trim()).map(Zeroizing::new);
        let key = decoded
            .ok()
            .and_then(|bytes| <[u8; 32]>::try_from(&**bytes).ok());
        key.map(|key| Some(Key::from(key)))
            .ok_or_else(|| invalid(name))
    };
    let needed = |name| key(name)?.ok_or_else(|| invalid(name));
    Ok(Identity {
        private: needed("PrivateKey")?,
        peer_public: *needed("PublicKey")?,
        psk: key("PresharedKey")?.unwrap_or_default(),
    })
}

fn invalid(name: &str) -> io::Error {
    let what = format!("`{name}` is no key");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;

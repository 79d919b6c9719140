//! Datagrams between both ends: probes of the MTU, pings, marked packets. Each begins with the
//! check's key; all others are ignored.
//!
//! ```text
//! key (8 B) | kind (1 B) | number (4 B) | ...
//! ```

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Length of the header.
pub(crate) const HEADER_BYTES: usize = 8 + 1 + 4;
/// Longest wait of one call.
const STEP: Duration = Duration::from_millis(50);

/// Kind of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Greeting,
    Greeted,
    Probe,
    /// Its payload is the length of the probe.
    Probed,
    Ping,
    Pong,
    /// Never answered.
    Marked,
}

impl Kind {
    const ALL: [(Self, u8); 7] = [
        (Self::Greeting, b'h'),
        (Self::Greeted, b'H'),
        (Self::Probe, b'?'),
        (Self::Probed, b'!'),
        (Self::Ping, b'p'),
        (Self::Pong, b'P'),
        (Self::Marked, b'm'),
    ];

    fn byte(self) -> u8 {
        let found = Self::ALL.iter().find(|(kind, _)| *kind == self);
        found.map_or(0, |(_, byte)| *byte)
    }

    /// The kind of the answer.
    const fn answer(self) -> Option<Self> {
        match self {
            Self::Greeting => Some(Self::Greeted),
            Self::Probe => Some(Self::Probed),
            Self::Ping => Some(Self::Pong),
            Self::Greeted | Self::Probed | Self::Pong | Self::Marked => None,
        }
    }
}

/// A datagram's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    kind: Kind,
    number: u32,
}

impl Header {
    fn bytes(self, key: u64) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&key.to_be_bytes());
        bytes[8] = self.kind.byte();
        bytes[9..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// `None`: not of this check.
    fn parse(datagram: &[u8], key: u64) -> Option<Self> {
        let (header, _) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        if header[..8] != key.to_be_bytes() {
            return None;
        }
        let (kind, _) = Kind::ALL.iter().find(|(_, byte)| *byte == header[8])?;
        let number = [header[9], header[10], header[11], header[12]];
        Some(Self {
            kind: *kind,
            number: u32::from_be_bytes(number),
        })
    }
}

/// Whether a datagram is of the check with this key.
#[must_use]
pub fn is_of_check(datagram: &[u8], key: u64) -> bool {
    Header::parse(datagram, key).is_some()
}

/// An answer that arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) kind: Kind,
    pub(crate) number: u32,
    /// Of a probe, its length.
    pub(crate) length: u16,
    pub(crate) at: Instant,
}

/// One end's socket, and the thread that answers the other end.
pub(crate) struct Datagrams {
    socket: Arc<UdpSocket>,
    peer: IpAddr,
    key: u64,
    arrived: Mutex<Receiver<Arrived>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Datagrams {
    /// Answers on a socket. One that is not connected is connected to the first end of the address
    /// `peer` that knows the key.
    pub(crate) fn new(socket: UdpSocket, peer: IpAddr, key: u64) -> io::Result<Self> {
        port::never_fragment_to(&socket, peer)?;
        socket.set_read_timeout(Some(STEP))?;
        let socket = Arc::new(socket);
        let stop = Arc::new(AtomicBool::new(false));
        let (to, arrived) = mpsc::channel();
        let answering = Answering {
            socket: Arc::clone(&socket),
            peer,
            key,
            to,
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new().name("datagrams".to_owned());
        Ok(Self {
            socket,
            peer,
            key,
            arrived: Mutex::new(arrived),
            stop,
            thread: Some(thread.spawn(move || answering.run())?),
        })
    }

    /// Sends a datagram of `payload_bytes`, filled with `fill` again and again.
    pub(crate) fn send(
        &self,
        kind: Kind,
        number: u32,
        (payload_bytes, fill): (usize, &[u8]),
    ) -> io::Result<()> {
        let mut datagram = Vec::with_capacity(payload_bytes.max(HEADER_BYTES));
        datagram.extend(Header { kind, number }.bytes(self.key));
        let rest = payload_bytes.saturating_sub(HEADER_BYTES);
        datagram.extend(fill.iter().cycle().take(rest));
        self.socket.send(&datagram).map(drop)
    }

    /// The next answer, if one comes by then.
    pub(crate) fn next(&self, by: Instant) -> Option<Arrived> {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let left = by.saturating_duration_since(Instant::now());
        arrived.recv_timeout(left).ok()
    }

    /// Greets the other end until it answers.
    pub(crate) fn greet(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut number = 0;
        while Instant::now() < end {
            // A lost greeting is repeated.
            let _ = self.send(Kind::Greeting, number, (0, &[]));
            number += 1;
            let answer = self.next(Instant::now() + 2 * STEP);
            if answer.is_some_and(|answer| answer.kind == Kind::Greeted) {
                return true;
            }
        }
        false
    }

    /// The MTU that the kernel uses towards the other end.
    pub(crate) fn known_mtu(&self) -> io::Result<u16> {
        port::path_mtu(&self.socket, self.peer)
    }

    /// Length of the IP and UDP headers.
    pub(crate) const fn ip_bytes(&self) -> u16 {
        match self.peer {
            IpAddr::V4(_) => 20 + 8,
            IpAddr::V6(_) => 40 + 8,
        }
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there is no reason for another here.
            let _ = thread.join();
        }
    }
}

/// The thread that reads the socket.
struct Answering {
    socket: Arc<UdpSocket>,
    peer: IpAddr,
    key: u64,
    to: Sender<Arrived>,
    stop: Arc<AtomicBool>,
}

impl Answering {
    fn run(self) {
        let mut buffer = vec![0; 1 << 16];
        let mut is_connected = self.socket.peer_addr().is_ok();
        while !self.stop.load(Ordering::Relaxed) {
            // Errors are routers' reports about earlier datagrams, or the end of the wait.
            let Ok((bytes, from)) = self.socket.recv_from(&mut buffer) else {
                continue;
            };
            let at = Instant::now();
            let Some(header) = Header::parse(&buffer[..bytes], self.key) else {
                continue;
            };
            if !is_connected {
                if from.ip() != self.peer || self.socket.connect(from).is_err() {
                    continue;
                }
                is_connected = true;
            }
            self.take(header, &buffer[..bytes], at);
        }
    }

    fn take(&self, header: Header, datagram: &[u8], at: Instant) {
        if let Some(kind) = header.kind.answer() {
            let answer = Header { kind, ..header };
            let length = (datagram.len() as u16).to_be_bytes();
            let answer = [&answer.bytes(self.key)[..], &length].concat();
            // A lost answer is requested again.
            let _ = self.socket.send(&answer);
            return;
        }
        let length = datagram[HEADER_BYTES..].first_chunk::<2>();
        // The receiver lives as long as this thread.
        let _ = self.to.send(Arrived {
            kind: header.kind,
            number: header.number,
            length: length.map_or(0, |bytes| u16::from_be_bytes(*bytes)),
            at,
        });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two ends on the loopback interface.
    pub(crate) fn pair() -> [Datagrams; 2] {
        let here = IpAddr::from([127, 0, 0, 1]);
        let [asker, listener] = [(); 2].map(|()| UdpSocket::bind((here, 0)).unwrap());
        asker.connect(listener.local_addr().unwrap()).unwrap();
        [asker, listener].map(|socket| Datagrams::new(socket, here, 7).unwrap())
    }

    #[test]
    fn a_greeting_connects_and_foreign_datagrams_are_ignored() {
        let [asker, listener] = pair();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = listener.socket.local_addr().unwrap();
        let header = Header {
            kind: Kind::Greeting,
            number: 0,
        };
        stranger.send_to(&header.bytes(8), to).unwrap();
        stranger.send_to(b"hello", to).unwrap();
        assert!(asker.greet(Duration::from_secs(10)));
        assert_eq!(
            listener.socket.peer_addr().unwrap(),
            asker.socket.local_addr().unwrap()
        );
    }

    #[test]
    fn a_header_is_read_as_written() {
        for (kind, _) in Kind::ALL {
            let header = Header { kind, number: 513 };
            let bytes = header.bytes(9);
            assert_eq!(Header::parse(&bytes, 9), Some(header));
            assert_eq!(Header::parse(&bytes, 10), None);
            assert_eq!(Header::parse(&bytes[1..], 9), None);
        }
    }
}

//! The thread of IKE: sockets, a clock, and the peers.
//!
//! It may make the system calls of a lane's thread only: it opens no file and no socket.

use super::order::Order;
use super::peer::{Peer, Wire};
use crate::log;
use crate::privileges::InForce;
use ike::message::Header;
use ike::session::Path;
use port::wait_readable;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// On the shared port messages have this marker (RFC 3948 section 2.2).
const MARKER: [u8; 4] = [0; 4];
/// Datagrams of one socket in a row, so that a flood at one does not hold up the other.
const ROW: usize = 64;

/// The sockets of IKE.
pub(super) struct Sockets {
    /// The port of first messages.
    pub(super) first: UdpSocket,
    /// The lane's port, for sending only.
    pub(super) shared: UdpSocket,
    /// Messages that a lane has received, and orders.
    pub(super) read: UnixDatagram,
    /// Only one peer's datagrams arrive at the lane's port.
    pub(super) only_peer: bool,
    /// The lane's address.
    pub(super) local: SocketAddr,
}

impl Wire for Sockets {
    fn send(&mut self, datagram: &[u8], path: Path, marker: bool) {
        let framed;
        let (socket, bytes) = if marker {
            framed = [&MARKER, datagram].concat();
            (&self.shared, framed.as_slice())
        } else {
            (&self.first, datagram)
        };
        // The first error may be a report about an earlier datagram. A message that cannot be sent
        // is repeated like one that is lost.
        let _ = (0..2).any(|_| socket.send_to(bytes, path.remote).is_ok());
    }
}

/// The running thread. Dropping it deletes the IKE SAs, and joins it.
pub(crate) struct Thread {
    orders: Arc<UnixDatagram>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        // It may be full of messages, which the thread reads.
        while self.thread.as_ref().is_some_and(|it| !it.is_finished()) {
            Order::Stop.send(0, &self.orders);
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by the thread.
            let _ = thread.join();
        }
    }
}

/// Starts the thread.
pub(super) fn start(
    peers: Vec<Peer>,
    sockets: Sockets,
    orders: Arc<UnixDatagram>,
    in_force: InForce,
) -> io::Result<Thread> {
    let work = move || {
        if let Err(error) = in_force.restrict_worker() {
            return log::warn(format_args!("IKE does not run: {error}"));
        }
        let mut running = Running {
            peers,
            sockets,
            start: Instant::now(),
        };
        if let Err(error) = running.run() {
            log::warn(format_args!("IKE has stopped: {error}"));
        }
    };
    let thread = std::thread::Builder::new().name("ike".to_owned());
    Ok(Thread {
        orders,
        thread: Some(thread.spawn(work)?),
    })
}

struct Running {
    peers: Vec<Peer>,
    sockets: Sockets,
    start: Instant,
}

impl Running {
    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; usize::from(u16::MAX) + 1];
        loop {
            let now = self.start.elapsed();
            for peer in &mut self.peers {
                if peer.wakes_at().is_some_and(|at| at <= now) {
                    peer.tick(now, &mut self.sockets);
                }
            }
            let wakes = self.peers.iter().filter_map(Peer::wakes_at).min();
            let limit = wakes.map(|at| at.saturating_sub(self.start.elapsed()));
            let fds = [self.sockets.first.as_fd(), self.sockets.read.as_fd()];
            wait_readable(&fds, limit)?;
            for _ in 0..ROW {
                let Ok((bytes, from)) = self.sockets.first.recv_from(&mut buffer) else {
                    break;
                };
                self.first(&buffer[..bytes], from);
            }
            for _ in 0..ROW {
                let Ok(bytes) = self.sockets.read.recv(&mut buffer) else {
                    break;
                };
                let datagram = &buffer[..bytes];
                if let Some(message) = datagram.strip_prefix(&MARKER) {
                    self.shared(message);
                } else if let Some((order, number)) = Order::parse(datagram) {
                    let now = self.start.elapsed();
                    if order == Order::Stop {
                        for peer in &mut self.peers {
                            peer.stop(now, &mut self.sockets);
                        }
                        return Ok(());
                    }
                    if let Some(peer) = self.peers.get_mut(number) {
                        peer.order(now, order, &mut self.sockets);
                    }
                }
            }
        }
    }

    /// A datagram at the port of first messages.
    fn first(&mut self, datagram: &[u8], from: SocketAddr) {
        let now = self.start.elapsed();
        let mut peers = self.peers.iter_mut();
        match peers.find(|it| it.path().remote.ip() == from.ip()) {
            Some(peer) => {
                let path = Path {
                    local: peer.path().local,
                    remote: from,
                };
                peer.receive(now, datagram, path, true, &mut self.sockets);
            }
            None => self.ignore(),
        }
    }

    /// A message at the lane's port: the lane does not know its sender, so that its SPIs decide.
    fn shared(&mut self, message: &[u8]) {
        let now = self.start.elapsed();
        let header = Header::peek(message).ok();
        let is_owner = |peer: &&mut Peer| header.as_ref().is_some_and(|it| peer.owns(it));
        let owner = match self.peers.as_mut_slice() {
            [only] if self.sockets.only_peer => Some(only),
            peers => peers.iter_mut().find(is_owner),
        };
        let Some(peer) = owner else {
            return self.ignore();
        };
        let path = Path {
            local: self.sockets.local,
            remote: peer.shared_remote(),
        };
        let may_begin = self.sockets.only_peer;
        peer.receive(now, message, path, may_begin, &mut self.sockets);
    }

    /// Counts a datagram of a stranger.
    fn ignore(&self) {
        if let Some(peer) = self.peers.first() {
            peer.ignore("unknown_peer");
        }
    }
}

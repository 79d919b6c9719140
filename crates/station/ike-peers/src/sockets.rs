//! The sockets of many ports: datagrams go out and come in in batches.

use crate::error::PeersError;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use port::{Datagram, Inbox, MultihomedSocket, wait_readable};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Sockets that are read before the next datagrams are sent.
const READY_MAX: usize = 64;
/// Bytes that wait until they are sent in any case.
const OUTBOX_BYTES: usize = 1 << 20;

/// A datagram that waits, with the place of its socket.
#[derive(Debug)]
struct Waiting {
    socket: u32,
    datagram: Datagram,
}

#[derive(Debug)]
pub(crate) struct Sockets {
    sockets: Vec<MultihomedSocket>,
    epoll: Epoll,
    buffer: Vec<u8>,
    outbox: Vec<Waiting>,
    chunk: Vec<Datagram>,
    ready: Vec<u32>,
    /// Absent while its datagrams are passed on.
    inbox: Option<Inbox>,
    /// Datagrams that the kernel did not take.
    pub(crate) unsent: u64,
    /// Its last reason.
    pub(crate) refusal: Option<io::Error>,
}

impl Sockets {
    /// Binds ports of an address.
    pub(crate) fn open(address: IpAddr, ports: &[u16]) -> Result<Self, PeersError> {
        let failed = PeersError::system("wait for datagrams");
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.map_err(|errno| failed(errno.into()))?;
        let mut sockets = Vec::with_capacity(ports.len());
        for (place, port) in (0..).zip(ports) {
            let bound = MultihomedSocket::bind(SocketAddr::new(address, *port));
            let socket = bound.map_err(|source| PeersError::Port {
                port: *port,
                source,
            })?;
            let event = EpollEvent::new(EpollFlags::EPOLLIN, place);
            let failed = PeersError::system("wait for datagrams");
            let added = epoll.add(&socket, event);
            added.map_err(|errno| failed(errno.into()))?;
            sockets.push(socket);
        }
        Ok(Self {
            sockets,
            epoll,
            buffer: Vec::new(),
            outbox: Vec::new(),
            chunk: Vec::new(),
            ready: Vec::new(),
            inbox: Some(Inbox::new()),
            unsent: 0,
            refusal: None,
        })
    }

    /// The ports, in order.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.sockets.iter().map(MultihomedSocket::port).collect()
    }

    /// Datagrams lost because a receive buffer was full.
    pub(crate) fn missed(&self) -> u64 {
        let missed = self.sockets.iter().map(|it| u64::from(it.missed()));
        missed.sum()
    }

    /// The socket of a port: one of two, or of many that follow each other.
    fn socket_of(&self, port: u16) -> Option<u32> {
        let first = self.sockets.first()?.port();
        let guess = usize::from(port.wrapping_sub(first));
        let has_port = |place: &usize| self.sockets.get(*place).is_some_and(|it| it.port() == port);
        let mut places = [guess, 0, 1].into_iter();
        places.find(has_port).map(|place| place as u32)
    }

    /// Puts a datagram, in two parts, into the outbox.
    pub(crate) fn push(&mut self, parts: [&[u8]; 2], local: SocketAddr, remote: SocketAddr) {
        let Some(socket) = self.socket_of(local.port()) else {
            self.unsent += 1;
            return;
        };
        let start = self.buffer.len();
        for part in parts {
            self.buffer.extend_from_slice(part);
        }
        self.outbox.push(Waiting {
            socket,
            datagram: Datagram {
                bytes: start..self.buffer.len(),
                local: local.ip(),
                remote,
            },
        });
        if self.buffer.len() >= OUTBOX_BYTES {
            self.flush();
        }
    }

    /// Sends everything.
    pub(crate) fn flush(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        // Stable: datagrams of one peer keep their order, as they have one socket.
        self.outbox.sort_by_key(|it| it.socket);
        let mut outbox = std::mem::take(&mut self.outbox);
        for same in outbox.chunk_by(|one, other| one.socket == other.socket) {
            self.chunk.clear();
            self.chunk.extend(same.iter().map(|it| it.datagram.clone()));
            let socket = &self.sockets[same[0].socket as usize];
            let mut rest = self.chunk.as_slice();
            while !rest.is_empty() {
                let sent = match socket.send(&self.buffer, rest) {
                    Ok(sent) => sent,
                    // One that is lost is repeated.
                    Err(error) => {
                        self.unsent += 1;
                        self.refusal = Some(error);
                        1
                    }
                };
                rest = &rest[sent.max(1)..];
            }
        }
        outbox.clear();
        self.outbox = outbox;
        self.buffer.clear();
    }

    /// Waits until datagrams come, one of up to seven flags is raised, or this time is over.
    pub(crate) fn wait(
        &mut self,
        limit: Option<Duration>,
        flags: &[BorrowedFd<'_>],
    ) -> Result<(), PeersError> {
        let failed = || PeersError::system("wait for datagrams");
        self.ready.clear();
        // `epoll_wait` counts in milliseconds, and set-ups follow each other faster.
        if limit.is_none_or(|it| !it.is_zero()) {
            let mut fds = vec![self.epoll.0.as_fd()];
            fds.extend(flags);
            wait_readable(&fds, limit).map_err(failed())?;
        }
        let mut events = [EpollEvent::empty(); READY_MAX];
        let count = match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
            Ok(count) => count,
            Err(nix::Error::EINTR) => 0,
            Err(errno) => return Err(failed()(errno.into())),
        };
        let places = events[..count].iter().map(|it| it.data() as u32);
        self.ready.extend(places);
        Ok(())
    }

    /// Passes on datagrams that have come: of each socket up to 64, with its local address.
    pub(crate) fn receive(
        &mut self,
        mut take: impl FnMut(&mut Self, &[u8], SocketAddr, SocketAddr),
    ) {
        let ready = std::mem::take(&mut self.ready);
        let mut inbox = self.inbox.take().unwrap_or_default();
        for &place in &ready {
            let socket = &mut self.sockets[place as usize];
            let port = socket.port();
            // An error is a report about an earlier datagram; the next look reads on.
            if socket.recv(&mut inbox).is_err() {
                continue;
            }
            for (bytes, local, remote) in inbox.datagrams() {
                take(self, bytes, SocketAddr::new(local, port), remote);
            }
        }
        self.inbox = Some(inbox);
        self.ready = ready;
    }
}

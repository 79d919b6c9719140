//! A UDP lane: one socket, one peer or thousands, datagrams in trains by `UDP_SEGMENT` and
//! `UDP_GRO`.
//!
//! A train is one system call and one pass through the stack for up to 64 KB. Whether the kernel
//! supports trains is determined by sending one: NAT keepalives (RFC 3948 §2.3), which a peer must
//! ignore. An interface may still refuse later (EIO, EINVAL); from then on trains to that peer are
//! sent datagram by datagram.
//!
//! With one peer the socket is connected: only that peer's datagrams arrive, and sends need no
//! route lookup. With more it is not, and each train has its peer's address.
//!
//! A connected socket reports ICMP errors about earlier datagrams at the next call of any kind.
//! They can be forged by anyone, so they are read and ignored: they do not even change the path's
//! MTU, which is the route's.

pub(crate) mod control;
mod messages;
pub(crate) mod multihomed;
mod options;
mod route;

use crate::wait::wait_writable;
use crate::{Batch, CipherPort, Sent, TRAIN_BYTES_MAX, TRAINS_MAX, Train};
use arrayvec::ArrayVec;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// `UDP_MAX_SEGMENTS` of Linux from 6.9 on, and before.
const TRAIN_DATAGRAMS: [usize; 2] = [128, 64];
/// Number of peers to try a train on: the first may have no route.
const PROBED_PEERS: usize = 4;
/// Longest wait of one `send` for room in the send buffer before datagrams count as lost. It delays
/// the other direction as well.
const SEND_WAIT: Duration = Duration::from_millis(2);
/// Maximum number of reports about earlier datagrams that one `recv` reads.
const REPORTS_MAX: usize = 16;
const KEEPALIVE: u8 = 0xff;
/// Nothing received, or an error of the socket itself.
const ABOUT_THE_SOCKET: [libc::c_int; 5] = [
    libc::EAGAIN,
    libc::EBADF,
    libc::ENOTSOCK,
    libc::EFAULT,
    libc::EINVAL,
];
/// Outer IP header, without options, and UDP header.
const OUTER_IPV4_BYTES: usize = 20 + 8;
const OUTER_IPV6_BYTES: usize = 40 + 8;

/// Trains on a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpOffloads {
    /// Send trains (`UDP_SEGMENT`).
    pub gso: bool,
    /// Receive trains (`UDP_GRO`).
    pub gro: bool,
}

/// A socket and its peers.
#[derive(Debug)]
pub struct UdpLane {
    socket: Socket,
    local: SocketAddr,
    peers: Box<[Peer]>,
    train_max: usize,
    gro: bool,
    fragment: bool,
}

#[derive(Debug)]
struct Peer {
    address: SocketAddr,
    /// In the socket's form: an IPv4 address on an IPv6 socket is mapped (RFC 4291 §2.5.5.2).
    name: SockAddr,
    /// Its interface refused a train.
    singly: bool,
    /// The longest datagram sent in a train: longer ones need fragmentation.
    train_datagram_max: usize,
}

/// The way to send a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrainMode {
    Whole,
    Singly,
    /// To no known peer.
    Nowhere,
}

impl UdpLane {
    /// Binds `local` and connects to `remote`: a lane with this one peer.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn connect(local: SocketAddr, remote: SocketAddr, wanted: UdpOffloads) -> io::Result<Self> {
        Self::open(local, &[remote], wanted)
    }

    /// Binds `local` for these peers; [`Train::peer`] is the index in the list. `wanted` offloads
    /// are used if they work. A `local` of `[::]` reaches IPv4 peers, too.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for no peer, more than 65,536, or one that `local` cannot
    /// reach; else the kernel's error: address in use, not of this host, no route to a single peer.
    pub fn open(local: SocketAddr, peers: &[SocketAddr], wanted: UdpOffloads) -> io::Result<Self> {
        if peers.is_empty() || peers.len() > usize::from(u16::MAX) + 1 {
            return Err(invalid(format!(
                "a lane has 1 to 65536 peers, not {}",
                peers.len()
            )));
        }
        let peers: Box<[Peer]> = peers
            .iter()
            .map(|peer| Peer::new(local, *peer))
            .collect::<io::Result<_>>()?;
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // Before the bind: datagrams can arrive from then on.
        options::grow_buffers(&socket);
        // Options of IPv4 apply to mapped addresses too, and must be set on this socket as well.
        let mixed = peers.iter().any(|peer| peer.address.is_ipv4()) && local.is_ipv6();
        if local.is_ipv6() {
            socket.set_only_v6(!mixed)?;
        }
        options::set_path_mtu_mode(&socket, local, mixed, false)?;
        options::receive_tos(&socket, local, mixed)?;
        socket.bind(&local.into())?;
        if let [only] = &*peers {
            socket.connect(&only.name)?;
        }
        let gro = wanted.gro && options::receive_trains(&socket).is_ok();
        let mut lane = Self {
            socket,
            local,
            peers,
            train_max: 1,
            gro,
            fragment: false,
        };
        if wanted.gso {
            lane.train_max = lane.probe_trains();
        }
        Ok(lane)
    }

    /// Makes the kernel fragment datagrams that exceed the route's MTU, or refuse them (the initial
    /// setting). They are sent singly, not in trains.
    ///
    /// # Errors
    /// The kernel's error; no case is known.
    pub fn set_fragment(&mut self, fragment: bool) -> io::Result<()> {
        let mixed = self.local.is_ipv6() && self.peers.iter().any(|peer| peer.address.is_ipv4());
        options::set_path_mtu_mode(&self.socket, self.local, mixed, fragment)?;
        self.fragment = fragment;
        for number in 0..self.peers.len() {
            // The kernel does not fragment the datagrams of a train, so longer ones are sent
            // singly. A peer without a route counts as unlimited until a train to it is refused.
            let mtu = self.path_mtu(number as u16).ok().filter(|_| fragment);
            let peer = &mut self.peers[number];
            peer.train_datagram_max = mtu.map_or(usize::MAX, |mtu| peer.payload_of(mtu));
        }
        Ok(())
    }

    /// Another handle of the lane's socket, for messages that share its port (RFC 3948 §2.2). It
    /// does not block, and must not be read while the lane runs.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn second_handle(&self) -> io::Result<UdpSocket> {
        Ok(self.socket.try_clone()?.into())
    }

    /// The offloads in force.
    #[must_use]
    pub const fn offloads(&self) -> UdpOffloads {
        UdpOffloads {
            gso: self.train_max > 1,
            gro: self.gro,
        }
    }

    /// The MTU of the route to a peer, in bytes: the longest outer IP packet that can be sent. It
    /// comes from the interface and the route, without the kernel's knowledge from ICMP messages.
    ///
    /// # Errors
    /// When the kernel has no route, or the peer does not exist.
    pub fn path_mtu(&self, peer: u16) -> io::Result<usize> {
        let address = self.peers.get(usize::from(peer));
        let address = address
            .ok_or_else(|| invalid(format!("there is no peer {peer}")))?
            .address;
        let local = self.local.ip();
        // The kernel refuses a request with a source of another family, and `::` is no address of
        // this host.
        let source = local.is_ipv4() == address.is_ipv4() && !local.is_unspecified();
        route::mtu(address.ip(), source.then_some(local))
    }

    /// Sends keepalives as a train; returns the longest train that the kernel accepts.
    fn probe_trains(&self) -> usize {
        let takes = |datagrams: usize, peer: usize| {
            let bytes = [KEEPALIVE; TRAIN_DATAGRAMS[0]];
            let train = Train {
                bytes: datagrams,
                datagram_bytes: 1,
                peer: peer as u16,
                ..Train::default()
            };
            // The first error may be a report about the previous probe.
            (0..2).any(|_| self.send_messages(&bytes, &[train]).is_ok())
        };
        let peers = self.peers.len().min(PROBED_PEERS);
        TRAIN_DATAGRAMS
            .into_iter()
            .find(|datagrams| (0..peers).any(|peer| takes(*datagrams, peer)))
            .unwrap_or(1)
    }

    #[inline]
    fn way(&self, train: &Train) -> TrainMode {
        match self.peers.get(usize::from(train.peer)) {
            None => TrainMode::Nowhere,
            Some(peer)
                if train.bytes > train.datagram_bytes
                    && (peer.singly || train.datagram_bytes > peer.train_datagram_max) =>
            {
                TrainMode::Singly
            }
            Some(_) => TrainMode::Whole,
        }
    }

    /// Sends trains until all are sent or refused.
    ///
    /// An error may be a report about an earlier datagram: then nothing was sent, and a second try
    /// decides.
    fn send_all(&mut self, buffer: &[u8], mut trains: &[Train], sent: &mut Sent) {
        let mut tried_before = false;
        let mut waited = false;
        while let Some(first) = trains.first() {
            // A run of trains for one call: it ends at the first one that needs another way,
            // which keeps the order.
            let whole = trains
                .iter()
                .take_while(|train| self.way(train) == TrainMode::Whole);
            let whole = whole.count();
            if whole == 0 {
                if self.way(first) == TrainMode::Singly {
                    self.send_singly(buffer, *first, sent);
                } else {
                    sent.failed += first.datagrams();
                }
                trains = &trains[1..];
                continue;
            }
            let error = match self.send_messages(buffer, &trains[..whole]) {
                Ok(count) => {
                    for train in &trains[..count] {
                        sent.datagrams += train.datagrams();
                        sent.bytes += train.bytes as u64;
                    }
                    trains = &trains[count..];
                    tried_before = false;
                    continue;
                }
                Err(error) => error.raw_os_error().unwrap_or(0),
            };
            if error == libc::EAGAIN {
                // One wait per call: more would delay the packets of the other direction, which
                // this thread also carries.
                if waited || !wait_writable(self.socket.as_fd(), SEND_WAIT) {
                    sent.failed += trains.iter().map(Train::datagrams).sum::<u64>();
                    return;
                }
                waited = true;
                continue;
            }
            if !tried_before {
                tried_before = true;
                continue;
            }
            self.refused(buffer, *first, error, sent);
            trains = &trains[1..];
            tried_before = false;
        }
    }

    /// Handles a train that the kernel refused: sends it another way if possible, else counts it.
    fn refused(&mut self, buffer: &[u8], train: Train, error: libc::c_int, sent: &mut Sent) {
        let is_train = train.bytes > train.datagram_bytes;
        match error {
            // The route's MTU has shrunk since the last query.
            libc::EMSGSIZE | libc::EINVAL if is_train && self.fragment => {
                self.send_singly(buffer, train, sent);
            }
            libc::EIO | libc::EINVAL if is_train => {
                let before = sent.datagrams;
                self.send_singly(buffer, train, sent);
                // Only if its datagrams pass one by one was the train the reason.
                if sent.datagrams > before {
                    self.peers[usize::from(train.peer)].singly = true;
                    if self.peers.iter().all(|peer| peer.singly) {
                        self.train_max = 1;
                    }
                }
            }
            libc::EMSGSIZE => sent.too_big += train.datagrams(),
            _ => sent.failed += train.datagrams(),
        }
    }

    /// Sends the datagrams of one train one by one.
    fn send_singly(&mut self, buffer: &[u8], train: Train, sent: &mut Sent) {
        let mut singles: ArrayVec<Train, TRAINS_MAX> = ArrayVec::new();
        for range in train.ranges() {
            singles.push(Train {
                start: range.start,
                bytes: range.len(),
                datagram_bytes: range.len(),
                ..train
            });
            if singles.is_full() {
                self.send_all(buffer, &singles, sent);
                singles.clear();
            }
        }
        self.send_all(buffer, &singles, sent);
    }
}

impl CipherPort for UdpLane {
    fn send(&mut self, batch: &mut Batch) -> Sent {
        let mut sent = Sent::default();
        self.send_all(&batch.buffer, &batch.trains, &mut sent);
        batch.trains.clear();
        sent
    }

    /// The batch's buffer takes one train per [`TRAIN_BYTES_MAX`].
    fn recv(&mut self, batch: &mut Batch) -> io::Result<()> {
        for _ in 0..REPORTS_MAX {
            let Err(error) = self.receive_messages(batch) else {
                return Ok(());
            };
            // Any other error is a signal, or a report about a datagram sent before.
            if error
                .raw_os_error()
                .is_some_and(|code| ABOUT_THE_SOCKET.contains(&code))
            {
                return Err(error);
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn train_max(&self) -> usize {
        self.train_max
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl Peer {
    fn new(local: SocketAddr, address: SocketAddr) -> io::Result<Self> {
        let name = match (local.ip(), address.ip()) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => address,
            (IpAddr::V6(ip), IpAddr::V4(peer)) if ip.is_unspecified() => {
                SocketAddr::from((peer.to_ipv6_mapped(), address.port()))
            }
            _ => {
                return Err(invalid(format!(
                    "{address} cannot be reached from {local}: different address family; `[::]` reaches both"
                )));
            }
        };
        Ok(Self {
            address,
            name: name.into(),
            singly: false,
            train_datagram_max: usize::MAX,
        })
    }

    /// The payload of an outer packet of `mtu` bytes.
    const fn payload_of(&self, mtu: usize) -> usize {
        mtu.saturating_sub(if self.address.is_ipv4() {
            OUTER_IPV4_BYTES
        } else {
            OUTER_IPV6_BYTES
        })
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

const _: () = assert!(TRAIN_DATAGRAMS[0] <= TRAIN_BYTES_MAX);

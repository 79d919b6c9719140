//! Receiving by UDP sockets bound to the test ports.

use super::BATCH_FRAMES;
use super::headers::{HEADERS_BYTES_MAX, rebuild};
use crate::arrivals::Arrivals;
use crate::frame::{FRAME_SLOT_BYTES, FramePortStats, FrameReceiver};
use crate::kernel::{self, Interface};
use crate::udp::control::{CONTROL_BYTES, Control, messages, time_ns};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Receive buffer requested from the kernel for each socket, in bytes; it may grant less.
const RECEIVE_BUFFER_BYTES: libc::c_int = 16 << 20;
/// Index of the losses in SO_MEMINFO's values (`SK_MEMINFO_DROPS` of linux/sock_diag.h), and their
/// number.
const MEMINFO_DROPS: usize = 8;
const MEMINFO_VALUES: usize = 9;

/// Receives datagrams to the test ports, and returns them as frames with rebuilt headers.
#[derive(Debug)]
pub struct SocketReceiver {
    /// One per port.
    sockets: Vec<Listener>,
    /// The next to read.
    turn: usize,
    /// Readable when one of several sockets is readable.
    any: Option<OwnedFd>,
    arrivals: Arrivals,
    slots: Box<[u8]>,
}

#[derive(Debug)]
struct Listener {
    socket: Socket,
    port: u16,
}

impl SocketReceiver {
    /// Binds `udp_ports` on the interface, IPv6 and IPv4, for `threads` receivers among which the
    /// kernel divides the flows.
    ///
    /// # Errors
    /// EADDRINUSE when another socket listens there.
    pub(in crate::frame) fn open(
        interface: &Interface,
        threads: usize,
        udp_ports: &[u16],
    ) -> io::Result<Vec<Self>> {
        let open = |_| Self::open_one(interface, threads > 1, udp_ports);
        (0..threads).map(open).collect()
    }

    fn open_one(interface: &Interface, shared: bool, udp_ports: &[u16]) -> io::Result<Self> {
        let listen = |port: &u16| Listener::open(interface, shared, *port);
        let sockets: Vec<_> = udp_ports.iter().map(listen).collect::<io::Result<_>>()?;
        // A wait takes one descriptor: an epoll combines the sockets of several ports.
        let any = match &sockets[..] {
            [_] => None,
            sockets => Some(epoll(sockets)?),
        };
        Ok(Self {
            sockets,
            turn: 0,
            any,
            arrivals: Arrivals::new(),
            slots: vec![0; BATCH_FRAMES * FRAME_SLOT_BYTES].into_boxed_slice(),
        })
    }
}

/// A descriptor that is readable when one of the sockets is.
fn epoll(sockets: &[Listener]) -> io::Result<OwnedFd> {
    // SAFETY: epoll_create1 takes no pointers.
    let fd = kernel::check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the kernel has just created this descriptor, and it has no other owner.
    let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
    for Listener { socket, .. } in sockets {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        let socket = socket.as_raw_fd();
        // SAFETY: the event outlives the call.
        kernel::check(unsafe { libc::epoll_ctl(fd, libc::EPOLL_CTL_ADD, socket, &raw mut event) })?;
    }
    Ok(epoll)
}

impl Listener {
    fn open(interface: &Interface, shared: bool, port: u16) -> io::Result<Self> {
        // One socket for both protocols, unless this host has no IPv6.
        let (socket, address) = match Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP)) {
            Ok(socket) => (socket, IpAddr::from(Ipv6Addr::UNSPECIFIED)),
            Err(_) => (
                Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?,
                IpAddr::from(Ipv4Addr::UNSPECIFIED),
            ),
        };
        let (level, option) = if address.is_ipv6() {
            socket.set_only_v6(false)?;
            (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)
        } else {
            (libc::IPPROTO_IP, libc::IP_PKTINFO)
        };
        kernel::set_option(&socket, level, option, &1)?;
        kernel::set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)?;
        kernel::set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES)?;
        socket.set_nonblocking(true)?;
        // Only if threads share the port: otherwise another program of the same user could bind
        // it too, and take a part of the frames.
        socket.set_reuse_port(shared)?;
        socket.bind_device(Some(interface.name.as_bytes()))?;
        socket.bind(&SocketAddr::new(address, port).into())?;
        Ok(Self { socket, port })
    }

    /// Receives one batch into `slots`, and passes it to `read`.
    fn recv(
        &self,
        slots: &mut [u8],
        arrivals: &mut Arrivals,
        read: &mut impl FnMut(&mut [u8], Option<u64>),
    ) -> io::Result<usize> {
        // SAFETY: all-zero is a valid value of these plain C structures.
        let (mut batch, mut vectors, mut names): (
            [libc::mmsghdr; BATCH_FRAMES],
            [libc::iovec; BATCH_FRAMES],
            [libc::sockaddr_in6; BATCH_FRAMES],
        ) = unsafe { (zeroed(), zeroed(), zeroed()) };
        let mut controls = [Control::EMPTY; BATCH_FRAMES];
        for (index, message) in batch.iter_mut().enumerate() {
            let slot = &mut slots[index * FRAME_SLOT_BYTES..][..FRAME_SLOT_BYTES];
            let room = &mut slot[HEADERS_BYTES_MAX..];
            vectors[index].iov_base = room.as_mut_ptr().cast();
            vectors[index].iov_len = room.len();
            let header = &mut message.msg_hdr;
            header.msg_iov = &raw mut vectors[index];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut names[index]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            header.msg_control = controls[index].bytes.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES;
        }
        // SAFETY: every message points to a distinct vector, name and control block, and the vector
        // to a distinct slot; all outlive the call.
        let count = unsafe { kernel::receive_messages(&self.socket, &mut batch) }?;
        arrivals.update();
        for (index, message) in batch[..count].iter().enumerate() {
            let used = message.msg_hdr.msg_controllen.min(CONTROL_BYTES);
            let (target, came_ns) = control(&controls[index].bytes[..used]);
            let end = HEADERS_BYTES_MAX + message.msg_len as usize;
            let slot = &mut slots[index * FRAME_SLOT_BYTES..][..end];
            let target = SocketAddr::new(target, self.port);
            let start = rebuild(slot, source(&names[index]), target);
            let came_ns = came_ns.and_then(|came_ns| arrivals.monotonic_ns(came_ns));
            read(&mut slot[start..], came_ns);
        }
        Ok(count)
    }

    /// Datagrams lost because the socket's buffer was full.
    fn dropped(&self) -> u64 {
        let values: io::Result<[u32; MEMINFO_VALUES]> =
            kernel::option(&self.socket, libc::SOL_SOCKET, libc::SO_MEMINFO);
        // It cannot fail on a socket since Linux 4.12.
        values.map_or(0, |values| u64::from(values[MEMINFO_DROPS]))
    }
}

/// The source address of a message, of either family.
fn source(name: &libc::sockaddr_in6) -> SocketAddr {
    if libc::c_int::from(name.sin6_family) == libc::AF_INET6 {
        let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
        return SocketAddr::new(address.into(), u16::from_be(name.sin6_port));
    }
    // SAFETY: the family identifies the shorter structure, any bytes are a value of it, and both
    // are aligned to 4.
    let name = unsafe { &*std::ptr::from_ref(name).cast::<libc::sockaddr_in>() };
    let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
    SocketAddr::new(address.into(), u16::from_be(name.sin_port))
}

/// Target address and time, by CLOCK_REALTIME in nanoseconds, in a message's control block.
fn control(block: &[u8]) -> (IpAddr, Option<i64>) {
    let mut target = None;
    let mut came_ns = None;
    for (level, kind, data) in messages(block) {
        match (level, kind) {
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                target = data
                    .first_chunk::<16>()
                    .map(|address| IpAddr::from(*address));
            }
            // Interface and local address come before the header's.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let address = data.get(8..).and_then(<[u8]>::first_chunk::<4>);
                target = address.map(|address| IpAddr::from(*address));
            }
            _ => came_ns = time_ns(level, kind, data).or(came_ns),
        }
    }
    let target = target.unwrap_or_else(|| Ipv6Addr::UNSPECIFIED.into());
    (target, came_ns)
}

impl FrameReceiver for SocketReceiver {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        self.recv_timed(|frame, _| read(frame))
    }

    fn recv_timed(&mut self, mut read: impl FnMut(&mut [u8], Option<u64>)) -> io::Result<usize> {
        for _ in 0..self.sockets.len() {
            let listener = &self.sockets[self.turn];
            // The next call begins at the next port, so a busy one does not starve the others.
            self.turn = (self.turn + 1) % self.sockets.len();
            match listener.recv(&mut self.slots, &mut self.arrivals, &mut read) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        match (&self.any, &self.sockets[..]) {
            (Some(any), _) => Some(any.as_fd()),
            (None, [only, ..]) => Some(only.socket.as_fd()),
            (None, []) => None,
        }
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats {
            receive_dropped: self.sockets.iter().map(Listener::dropped).sum(),
            ..FramePortStats::default()
        }
    }
}

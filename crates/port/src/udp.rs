//! A UDP lane: one connected socket, datagrams in trains by `UDP_SEGMENT` and `UDP_GRO`.
//!
//! A train is one system call and one pass through the stack for up to 64 KB. Whether the kernel takes trains is
//! found out by sending one: NAT keepalives (RFC 3948 §2.3), which a peer must ignore. An interface may
//! still refuse later (EIO, EINVAL); then trains are sent datagram by datagram from there on.
//!
//! A connected socket reports ICMP errors about datagrams sent before, at whatever call comes next. Anyone can
//! forge those, so they are read away and change nothing: not even the path's MTU, which is the route's.

use crate::wait::wait_writable;
use crate::{Batch, CipherPort, Sent, TRAIN_BYTES_MAX, TRAINS_MAX, Train};
use arrayvec::ArrayVec;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Receive buffer asked of the kernel, in bytes; it may give less.
const RECEIVE_BUFFER_BYTES: libc::c_int = 16 << 20;
/// Send buffer likewise. It is a queue in front of the link: a longer one delays more than it saves.
const SEND_BUFFER_BYTES: libc::c_int = 4 << 20;
/// `UDP_MAX_SEGMENTS` of Linux since 6.9, and before.
const TRAIN_DATAGRAMS: [usize; 2] = [128, 64];
/// How long one `send` waits for room in the send buffer, at most, before datagrams count as lost. The other
/// direction waits meanwhile.
const SEND_WAIT: Duration = Duration::from_millis(2);
/// Reports about earlier datagrams that one `recv` reads away.
const REPORTS_MAX: usize = 16;
const KEEPALIVE: u8 = 0xff;
/// Nothing is there, or the socket itself is wrong.
const ABOUT_THE_SOCKET: [libc::c_int; 5] = [
    libc::EAGAIN,
    libc::EBADF,
    libc::ENOTSOCK,
    libc::EFAULT,
    libc::EINVAL,
];
/// Messages in one system call.
const MESSAGES_MAX: usize = TRAINS_MAX;

/// Trains on a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpOffloads {
    /// Send trains (`UDP_SEGMENT`).
    pub gso: bool,
    /// Receive trains (`UDP_GRO`).
    pub gro: bool,
}

/// A socket connected to one peer.
#[derive(Debug)]
pub struct UdpLane {
    socket: Socket,
    train_max: usize,
    gro: bool,
}

/// Room for one control message that carries an `int` or a `u16`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 32]);

impl UdpLane {
    /// Binds `local` and connects to `remote`. `wanted` offloads are used where they work.
    ///
    /// # Errors
    /// What the kernel says: address in use, not of this host, no route.
    pub fn connect(local: SocketAddr, remote: SocketAddr, wanted: UdpOffloads) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        grow_buffers(&socket);
        ignore_reported_mtu(&socket, local)?;
        socket.bind(&local.into())?;
        socket.connect(&remote.into())?;
        let gro = wanted.gro && set_option(&socket, libc::UDP_GRO, 1).is_ok();
        let mut lane = Self {
            socket,
            train_max: 1,
            gro,
        };
        if wanted.gso {
            lane.train_max = lane.probe_trains();
        }
        Ok(lane)
    }

    /// The offloads in force.
    #[must_use]
    pub const fn offloads(&self) -> UdpOffloads {
        UdpOffloads {
            gso: self.train_max > 1,
            gro: self.gro,
        }
    }

    /// The MTU of the route to the peer, in bytes: the longest outer IP packet that can be sent.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn path_mtu(&self) -> io::Result<usize> {
        let (level, option) = if self.socket.local_addr()?.is_ipv6() {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU)
        } else {
            (libc::IPPROTO_IP, libc::IP_MTU)
        };
        int_option(&self.socket, level, option).map(|mtu| usize::try_from(mtu).unwrap_or(0))
    }

    /// Sends keepalives as a train; the longest train that the kernel takes.
    fn probe_trains(&self) -> usize {
        let takes = |datagrams: &usize| {
            let bytes = [KEEPALIVE; TRAIN_DATAGRAMS[0]];
            let train = Train {
                bytes: *datagrams,
                datagram_bytes: 1,
                ..Train::default()
            };
            // The first error may be a report about the probe before.
            (0..2).any(|_| self.send_messages(&bytes, &[train]).is_ok())
        };
        TRAIN_DATAGRAMS.into_iter().find(takes).unwrap_or(1)
    }

    /// Sends each train as one message; how many messages went out.
    fn send_messages(&self, buffer: &[u8], trains: &[Train]) -> io::Result<usize> {
        // SAFETY: all-zero is a valid value of these plain C structures.
        let mut messages: [libc::mmsghdr; MESSAGES_MAX] = unsafe { zeroed() };
        let mut vectors: ArrayVec<libc::iovec, MESSAGES_MAX> = ArrayVec::new();
        let mut controls = [Control([0; 32]); MESSAGES_MAX];
        for train in trains.iter().take(MESSAGES_MAX) {
            let bytes = &buffer[train.start..train.start + train.bytes];
            vectors.push(libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            });
        }
        for (((message, vector), control), train) in messages
            .iter_mut()
            .zip(&mut vectors)
            .zip(&mut controls)
            .zip(trains)
        {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            if train.bytes > train.datagram_bytes {
                put_segment_size(&mut message.msg_hdr, control, train.datagram_bytes as u16);
            }
        }
        // SAFETY: the first `vectors.len()` messages point to vectors and controls that outlive the call; the vectors
        // point into `buffer`, which the kernel only reads.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                vectors.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(sent as usize)
        }
    }

    /// Sends trains until all are sent or refused.
    ///
    /// An error may be a report about an earlier datagram: then nothing was sent, and a second try tells.
    fn send_all(&mut self, buffer: &[u8], mut trains: &[Train], sent: &mut Sent) {
        let mut tried_before = false;
        let mut waited = false;
        while let Some(first) = trains.first() {
            let error = match self.send_messages(buffer, trains) {
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
            match error {
                libc::EIO | libc::EINVAL if first.datagrams() > 1 => {
                    let before = sent.datagrams;
                    self.send_singly(buffer, *first, sent);
                    if sent.datagrams > before {
                        self.train_max = 1;
                    }
                }
                libc::EMSGSIZE => sent.too_big += first.datagrams(),
                _ => sent.failed += first.datagrams(),
            }
            trains = &trains[1..];
            tried_before = false;
        }
    }

    /// Sends the datagrams of one train one by one.
    fn send_singly(&mut self, buffer: &[u8], train: Train, sent: &mut Sent) {
        let end = train.start + train.bytes;
        let mut singles: ArrayVec<Train, MESSAGES_MAX> = ArrayVec::new();
        for start in (train.start..end).step_by(train.datagram_bytes) {
            let bytes = train.datagram_bytes.min(end - start);
            singles.push(Train {
                start,
                bytes,
                datagram_bytes: bytes,
                ..train
            });
            if singles.is_full() {
                self.send_all(buffer, &singles, sent);
                singles.clear();
            }
        }
        self.send_all(buffer, &singles, sent);
    }

    /// Receives trains, one a message.
    fn receive_messages(&self, batch: &mut Batch) -> io::Result<()> {
        batch.trains.clear();
        // SAFETY: all-zero is a valid value of these plain C structures.
        let mut messages: [libc::mmsghdr; MESSAGES_MAX] = unsafe { zeroed() };
        let mut controls = [Control([0; 32]); MESSAGES_MAX];
        let mut vectors: ArrayVec<libc::iovec, MESSAGES_MAX> = batch
            .buffer
            .chunks_exact_mut(TRAIN_BYTES_MAX)
            .take(MESSAGES_MAX)
            .map(|buffer| libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        for ((message, vector), control) in messages.iter_mut().zip(&mut vectors).zip(&mut controls)
        {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = size_of::<Control>();
        }
        // SAFETY: each of the first `vectors.len()` messages points to a vector and a control block that outlive
        // the call, and each vector to a buffer of that length that nothing else refers to.
        let count = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                vectors.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        for (at, message) in messages[..count as usize].iter().enumerate() {
            let bytes = message.msg_len as usize;
            batch.trains.push(Train {
                start: at * TRAIN_BYTES_MAX,
                bytes,
                datagram_bytes: gro_size(&message.msg_hdr).unwrap_or(bytes),
                ..Train::default()
            });
        }
        Ok(())
    }
}

impl CipherPort for UdpLane {
    fn send(&mut self, batch: &mut Batch) -> Sent {
        let mut sent = Sent::default();
        self.send_all(&batch.buffer, &batch.trains, &mut sent);
        batch.trains.clear();
        sent
    }

    fn recv(&mut self, batch: &mut Batch) -> io::Result<()> {
        for _ in 0..REPORTS_MAX {
            let Err(error) = self.receive_messages(batch) else {
                return Ok(());
            };
            // Anything else is a signal, or a report about a datagram sent before.
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

/// Asks for large buffers: beyond the host's limit where privilege allows, up to it otherwise.
fn grow_buffers(socket: &Socket) {
    for (force, plain, bytes) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER_BYTES),
    ] {
        if set_level_option(socket, libc::SOL_SOCKET, force, bytes).is_err() {
            // Never refused: the kernel gives what it may.
            let _ = set_level_option(socket, libc::SOL_SOCKET, plain, bytes);
        }
    }
}

/// Sends by the route's MTU, whatever ICMP says of the path; IPv4 routers may fragment.
fn ignore_reported_mtu(socket: &Socket, local: SocketAddr) -> io::Result<()> {
    if local.is_ipv6() {
        let mode = libc::IPV6_PMTUDISC_INTERFACE;
        set_level_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, mode)
    } else {
        let mode = libc::IP_PMTUDISC_INTERFACE;
        set_level_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, mode)
    }
}

fn int_option(socket: &Socket, level: libc::c_int, option: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: value and length outlive the call, and the length is that of the value.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut bytes,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}

fn set_option(socket: &Socket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    set_level_option(socket, libc::SOL_UDP, option, value)
}

fn set_level_option(
    socket: &Socket,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option's value is a C int that outlives the call, and its size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Writes the `UDP_SEGMENT` control message.
fn put_segment_size(header: &mut libc::msghdr, control: &mut Control, size: u16) {
    header.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: `control` is aligned and larger than the one message written, CMSG_SPACE(2) being 24; the header
    // points to it.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as u32) as usize;
        let message = libc::CMSG_FIRSTHDR(header);
        (*message).cmsg_level = libc::SOL_UDP;
        (*message).cmsg_type = libc::UDP_SEGMENT;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as usize;
        libc::CMSG_DATA(message).cast::<u16>().write_unaligned(size);
    }
}

/// Reads the `UDP_GRO` control message: the length of each datagram of the train but the last.
fn gro_size(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel filled the control block that the header points to, and set its length; the CMSG
    // functions stay inside it.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            if (*message).cmsg_level == libc::SOL_UDP && (*message).cmsg_type == libc::UDP_GRO {
                let size = libc::CMSG_DATA(message)
                    .cast::<libc::c_int>()
                    .read_unaligned();
                return usize::try_from(size).ok().filter(|&size| size > 0);
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    None
}

const _: () = assert!(TRAIN_DATAGRAMS[0] <= TRAIN_BYTES_MAX);

//! A packet socket (packet(7)) on one interface: all frames or those that pass a filter, in both
//! directions or received only.

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, getsockopt, recv, setsockopt, socket, sockopt,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The longest frame: a super-packet of 64 KB with its Ethernet header and a VLAN tag.
pub(crate) const FRAME_BYTES_MAX: usize = 65_536 + 18;

/// `PACKET_IGNORE_OUTGOING` of linux/if_packet.h, since Linux 4.20: the kernel neither copies nor
/// filters frames that the interface sends.
const IGNORE_OUTGOING: libc::c_int = 23;

/// The index that binds a socket to every interface of its namespace.
const ALL_INTERFACES: libc::c_uint = 0;

/// An open socket for the frames that the interface receives, and usually those it sends too.
///
/// Frames that do not fit its buffer are dropped, at no cost to the traffic.
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a socket for every frame, with the system's default buffer; on request each is behind
    /// a [`wire::vnet::VnetHeader`] that describes super-packets. `received_only`: without frames
    /// that the interface sends.
    pub(crate) fn open(
        interface: &str,
        with_headers: bool,
        received_only: bool,
    ) -> io::Result<Self> {
        let index = if_nametoindex(interface)?;
        let socket = Self::unbound()?;
        if with_headers {
            socket.turn_on(libc::PACKET_VNET_HDR)?;
        }
        if received_only {
            socket.turn_on(IGNORE_OUTGOING)?;
        }
        // Only now: until it is bound, no frame enters that the options do not apply to.
        socket.bind(index)?;
        Ok(socket)
    }

    /// Opens a socket for the frames that pass the filter. No other frame ever enters.
    pub(crate) fn open_filtered(
        interface: &str,
        received_only: bool,
        filter: &[libc::sock_filter],
        buffer_bytes: usize,
    ) -> io::Result<Self> {
        let index = if_nametoindex(interface)?;
        let socket = Self::unbound()?;
        attach(&socket.0, filter)?;
        if received_only {
            socket.turn_on(IGNORE_OUTGOING)?;
        }
        setsockopt(&socket.0, sockopt::RcvBuf, &buffer_bytes)?;
        socket.bind(index)?;
        Ok(socket)
    }

    /// Opens a socket for frames of an Ethernet type received on any interface of the namespace
    /// that pass the filter; an empty filter passes all. It counts the frames and keeps almost
    /// none.
    pub(crate) fn open_on_all(protocol: u16, filter: &[libc::sock_filter]) -> io::Result<Self> {
        let socket = Self::unbound()?;
        if !filter.is_empty() {
            attach(&socket.0, filter)?;
        }
        // The kernel raises this to the smallest buffer that it allows.
        setsockopt(&socket.0, sockopt::RcvBuf, &0)?;
        socket.bind_to(ALL_INTERFACES, protocol)?;
        Ok(socket)
    }

    /// Opens a socket with protocol 0, which receives nothing until it is bound to an interface.
    fn unbound() -> io::Result<Self> {
        let fd = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        Ok(Self(fd))
    }

    /// Turns on an option of packet sockets.
    fn turn_on(&self, option: libc::c_int) -> io::Result<()> {
        let on: libc::c_int = 1;
        set_option(&self.0, (libc::SOL_PACKET, option), &on)
    }

    fn bind(&self, index: libc::c_uint) -> io::Result<()> {
        self.bind_to(index, libc::ETH_P_ALL as u16)
    }

    fn bind_to(&self, index: libc::c_uint, protocol: u16) -> io::Result<()> {
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        // In network order, as the kernel compares it with the field of a frame.
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index.cast_signed();
        // SAFETY: the pointer is to a live `sockaddr_ll`, and the length is its size.
        let result = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        Errno::result(result)?;
        Ok(())
    }

    /// Frames that passed the filter since the socket was opened or last queried, including frames
    /// dropped for lack of buffer space.
    pub(crate) fn frames(&self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: both pointers are to live values, and the length is the size of the first.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        Errno::result(result)?;
        Ok(statistics.tp_packets.into())
    }

    /// Returns and clears the socket's pending error: ENETDOWN after its interface went down.
    pub(crate) fn take_error(&self) -> io::Result<Option<Errno>> {
        let code = getsockopt(&self.0, sockopt::SocketError)?;
        Ok((code != 0).then(|| Errno::from_raw(code)))
    }

    /// Receives one frame, truncated to the buffer; `None` if none came within `limit`.
    pub(crate) fn receive(&self, buffer: &mut [u8], limit: Duration) -> io::Result<Option<usize>> {
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut fds, timeout) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            // Not blocking, because the limit applies to the poll above.
            match recv(self.0.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(bytes) => return Ok(Some(bytes)),
                // A report may be spurious (select(2)).
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sets a socket's filter.
fn attach(socket: &impl AsRawFd, filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // The kernel copies the instructions, which live until then, and does not write to them.
    set_option(socket, (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER), &program)
}

fn set_option<T>(
    socket: &impl AsRawFd,
    (level, option): (libc::c_int, libc::c_int),
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer is to a live value, which the kernel copies, and the length is its size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// A filter applied to bytes: the kernel runs it without a frame's metadata, such as the VLAN tag
/// that it removed.
pub(crate) struct BytesFilter {
    sender: UnixDatagram,
    receiver: UnixDatagram,
}

impl BytesFilter {
    pub(crate) fn new(filter: &[libc::sock_filter]) -> io::Result<Self> {
        let (sender, receiver) = UnixDatagram::pair()?;
        attach(&receiver, filter)?;
        receiver.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    /// Whether the filter passes these bytes.
    pub(crate) fn passes(&self, frame: &[u8]) -> io::Result<bool> {
        self.sender.send(frame)?;
        match self.receiver.recv(&mut [0]) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

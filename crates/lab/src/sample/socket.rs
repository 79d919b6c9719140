//! A packet socket (packet(7)) on one interface: every frame, both directions.

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// An open socket; it sees what the interface sends and receives while it lives.
///
/// Its buffer is the system's default: what does not fit is not sampled, and costs the traffic
/// nothing.
pub(super) struct PacketSocket(OwnedFd);

impl PacketSocket {
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        let index = if_nametoindex(interface)?;
        // Protocol 0: it hears nothing before it is bound to its interface.
        let fd = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        let socket = Self(fd);
        socket.bind(index)?;
        Ok(socket)
    }

    fn bind(&self, index: libc::c_uint) -> io::Result<()> {
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index.cast_signed();
        // SAFETY: the pointer is to a live `sockaddr_ll`, and the length is its own.
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

    /// One frame, cut to the buffer; `None` when none came within `limit`.
    pub(super) fn receive(&self, buffer: &mut [u8], limit: Duration) -> io::Result<Option<usize>> {
        let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut fds, timeout) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match recv(self.0.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

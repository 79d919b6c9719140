//! AF_PACKET: whole frames to and from an interface. Needs CAP_NET_RAW in the interface's network namespace.

mod receive;
mod send;

pub use receive::PacketReceiver;
pub use send::PacketSender;

use crate::kernel::{self, Interface};
use std::io;
use std::os::fd::OwnedFd;

/// Binds to an interface; `protocol` 0 receives nothing.
fn bind(socket: &OwnedFd, interface: &Interface, protocol: libc::c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = interface.index as libc::c_int;
    kernel::bind(socket, &address)
}

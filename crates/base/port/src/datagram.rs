//! Options of UDP sockets that no library has in safe code.

use crate::kernel::set_option;
use std::io;
use std::os::fd::AsRawFd;

/// Makes an IPv4 UDP socket send datagrams without a checksum (RFC 768).
///
/// # Errors
/// The kernel's error.
pub fn send_without_checksum(socket: &impl AsRawFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, &1)
}

/// Makes an IPv4 socket send every packet whole and with the don't-fragment bit. One that is longer
/// than the path's known MTU is refused with EMSGSIZE.
///
/// # Errors
/// The kernel's error.
pub fn never_fragment(socket: &impl AsRawFd) -> io::Result<()> {
    set_option(
        socket,
        libc::IPPROTO_IP,
        libc::IP_MTU_DISCOVER,
        &libc::IP_PMTUDISC_DO,
    )
}

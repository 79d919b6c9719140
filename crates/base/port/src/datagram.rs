//! Options of UDP sockets that no library has in safe code.

use crate::kernel::{option, set_option};
use std::io;
use std::net::IpAddr;
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

/// Does the same for a socket of the family of `peer`.
///
/// # Errors
/// The kernel's error.
pub fn never_fragment_to(socket: &impl AsRawFd, peer: IpAddr) -> io::Result<()> {
    match peer {
        IpAddr::V4(_) => never_fragment(socket),
        IpAddr::V6(_) => set_option(
            socket,
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            &libc::IPV6_PMTUDISC_DO,
        ),
    }
}

/// The MTU of the path of a socket connected to `peer`, in bytes, after all reports of routers.
///
/// # Errors
/// The kernel's error.
pub fn path_mtu(socket: &impl AsRawFd, peer: IpAddr) -> io::Result<u16> {
    let (level, name) = match peer {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let mtu: libc::c_int = option(socket, level, name)?;
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_path_of_the_loopback_interface_has_its_mtu() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = socket.local_addr().unwrap();
        socket.connect(peer).unwrap();
        never_fragment_to(&socket, peer.ip()).unwrap();
        // 65536 B do not fit: no IP packet is longer than this.
        assert_eq!(path_mtu(&socket, peer.ip()).unwrap(), u16::MAX);
    }
}

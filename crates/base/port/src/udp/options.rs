//! Socket options of a lane.

use crate::kernel::{set_option, set_receive_buffer, set_send_buffer};
use socket2::Socket;
use std::io;
use std::net::SocketAddr;

/// Receive buffer requested from the kernel, in bytes; it may grant less.
const RECEIVE_BUFFER_BYTES: libc::c_int = 16 << 20;
/// Send buffer requested in the same way. It is a queue in front of the link: a longer one delays
/// more than it saves.
const SEND_BUFFER_BYTES: libc::c_int = 4 << 20;

/// Requests large buffers.
pub(super) fn grow_buffers(socket: &Socket) {
    // The plain size is never refused: the kernel grants it up to its limit.
    let _ = set_receive_buffer(socket, RECEIVE_BUFFER_BYTES);
    let _ = set_send_buffer(socket, SEND_BUFFER_BYTES);
}

/// Sends by the route's MTU, ignoring ICMP reports about the path. Longer datagrams are refused, or
/// fragmented here; IPv4 routers may fragment in any case. `mixed` is an IPv6 socket for IPv4
/// peers, too.
pub(super) fn set_path_mtu_mode(
    socket: &Socket,
    local: SocketAddr,
    mixed: bool,
    fragment: bool,
) -> io::Result<()> {
    if local.is_ipv6() {
        let mode = if fragment {
            libc::IPV6_PMTUDISC_OMIT
        } else {
            libc::IPV6_PMTUDISC_INTERFACE
        };
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &mode)?;
    }
    if local.is_ipv4() || mixed {
        let mode = if fragment {
            libc::IP_PMTUDISC_OMIT
        } else {
            libc::IP_PMTUDISC_INTERFACE
        };
        set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &mode)?;
    }
    Ok(())
}

/// Makes the kernel report DSCP and ECN of received datagrams.
pub(super) fn receive_tos(socket: &Socket, local: SocketAddr, mixed: bool) -> io::Result<()> {
    if local.is_ipv6() {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, &1)?;
    }
    if local.is_ipv4() || mixed {
        set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, &1)?;
    }
    Ok(())
}

/// Makes the kernel deliver trains.
pub(super) fn receive_trains(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &1)
}

//! Socket options of a lane.

use crate::kernel::{option, set_option};
use socket2::Socket;
use std::io;
use std::net::SocketAddr;

/// Receive buffer asked of the kernel, in bytes; it may give less.
const RECEIVE_BUFFER_BYTES: libc::c_int = 16 << 20;
/// Send buffer likewise. It is a queue in front of the link: a longer one delays more than it saves.
const SEND_BUFFER_BYTES: libc::c_int = 4 << 20;

/// Asks for large buffers: beyond the host's limit where privilege allows, up to it otherwise.
pub(super) fn grow_buffers(socket: &Socket) {
    for (force, plain, bytes) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER_BYTES),
    ] {
        if set_option(socket, libc::SOL_SOCKET, force, &bytes).is_err() {
            // Never refused: the kernel gives what it may.
            let _ = set_option(socket, libc::SOL_SOCKET, plain, &bytes);
        }
    }
}

/// Sends by the route's MTU, whatever ICMP says of the path. Where a datagram is longer, it is refused, or
/// fragmented here; IPv4 routers may fragment in any case. `mixed` is an IPv6 socket for IPv4 peers, too.
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

/// Has the kernel tell DSCP and ECN of what is received.
pub(super) fn receive_tos(socket: &Socket, local: SocketAddr, mixed: bool) -> io::Result<()> {
    if local.is_ipv6() {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, &1)?;
    }
    if local.is_ipv4() || mixed {
        set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, &1)?;
    }
    Ok(())
}

/// Has the kernel hand over trains.
pub(super) fn receive_trains(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, &1)
}

/// The MTU of a connected socket's route to `peer`.
pub(super) fn path_mtu(socket: &Socket, peer: SocketAddr) -> io::Result<usize> {
    let mtu: libc::c_int = if peer.is_ipv4() {
        option(socket, libc::IPPROTO_IP, libc::IP_MTU)?
    } else {
        option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU)?
    };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

//! Sockets that receive test frames and drop them.

use crate::kernel::{attach_filter, filter_step};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Binds UDP ports of an interface, so that the kernel does not answer frames to them with "port
/// unreachable" (RFC 1122 §4.1.3.1). A filter drops every datagram before it is queued.
#[derive(Debug)]
pub struct Swallow {
    /// Held open, never read.
    _sockets: Vec<Socket>,
}

impl Swallow {
    /// Binds `udp_ports` of `interface`, IPv4 and IPv6. Needs no privilege.
    ///
    /// # Errors
    /// EADDRINUSE when another socket listens there; EPERM, without privilege, for a socket already
    /// bound to an interface.
    pub fn bind(interface: &str, udp_ports: &[u16]) -> io::Result<Self> {
        let mut sockets = Vec::with_capacity(2 * udp_ports.len());
        for port in udp_ports {
            let addresses = [
                SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)),
                SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port)),
            ];
            for address in addresses {
                match one(interface, address) {
                    // This host has no IPv6.
                    Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
                    socket => sockets.push(socket?),
                }
            }
        }
        Ok(Self { _sockets: sockets })
    }
}

fn one(interface: &str, address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // "return 0": drop the whole datagram.
    let nothing = filter_step(libc::BPF_RET | libc::BPF_K, 0, 0, 0);
    attach_filter(&socket, [nothing])?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&address.into())?;
    Ok(socket)
}

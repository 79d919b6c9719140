//! A UDP socket for any number of local addresses: each datagram has its own source.
//!
//! A host accepts datagrams for a network as if it had all of its addresses after
//! `ip route add local NETWORK dev lo`. One socket of the unspecified address then stands for all
//! of them, and the kernel reports which one a datagram was sent to (`IP_PKTINFO`).

use super::control::{Control, messages};
use super::messages::message;
use super::options;
use crate::kernel::{self, set_option};
use crate::wait::wait_writable;
use arrayvec::ArrayVec;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Datagrams per system call.
const MESSAGES_MAX: usize = 64;
/// Longest datagram, rounded up.
const SLOT_BYTES: usize = 1 << 16;
/// Longest wait for room in the send buffer.
const SEND_WAIT: Duration = Duration::from_millis(2);
/// Size of a socket's address of either family, rounded up.
const NAME_BYTES: usize = 32;

/// A datagram with its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Its bytes in a buffer.
    pub bytes: Range<usize>,
    /// This end's address.
    pub local: IpAddr,
    /// The other end's.
    pub remote: SocketAddr,
}

/// Received datagrams.
#[derive(Debug)]
pub struct Inbox {
    buffer: Box<[u8]>,
    datagrams: Vec<Datagram>,
}

impl Inbox {
    /// An empty one. Its memory is used once datagrams arrive.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffer: vec![0; MESSAGES_MAX * SLOT_BYTES].into_boxed_slice(),
            datagrams: Vec::with_capacity(MESSAGES_MAX),
        }
    }

    /// The datagrams of the last call, with their addresses at this end and at the other.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = (&[u8], IpAddr, SocketAddr)> {
        let datagrams = self.datagrams.iter();
        datagrams.map(|it| (&self.buffer[it.bytes.clone()], it.local, it.remote))
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

/// A UDP socket with one port and any number of local addresses. All addresses of a network are
/// this host's after `ip route add local NETWORK dev lo`.
#[derive(Debug)]
pub struct MultihomedSocket {
    socket: Socket,
    local: SocketAddr,
    missed: u32,
}

impl MultihomedSocket {
    /// Binds an address, or all of its family if it is unspecified. Port 0 chooses a free one.
    /// Datagrams may exceed the MTU: they are fragmented.
    ///
    /// # Errors
    /// The kernel's error: port in use, not permitted, or no address of this host.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        options::grow_buffers(&socket);
        options::set_path_mtu_mode(&socket, address, false, true)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &1)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
            set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &1)?;
        } else {
            set_option(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, &1)?;
        }
        socket.bind(&address.into())?;
        let bound = socket.local_addr()?.as_socket();
        Ok(Self {
            socket,
            local: bound.unwrap_or(address),
            missed: 0,
        })
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.local.port()
    }

    /// Datagrams lost because the receive buffer was full, as the last received one reported.
    #[must_use]
    pub const fn missed(&self) -> u32 {
        self.missed
    }

    /// Sends datagrams from `buffer`, at most 64 per call, and returns their number. Waits up
    /// to 2 ms for room in the send buffer.
    ///
    /// # Errors
    /// The kernel's error about the first datagram: the caller leaves it out.
    pub fn send(&self, buffer: &[u8], datagrams: &[Datagram]) -> io::Result<usize> {
        match self.send_once(buffer, datagrams) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_writable(self.socket.as_fd(), SEND_WAIT);
                self.send_once(buffer, datagrams)
            }
            sent => sent,
        }
    }

    fn send_once(&self, buffer: &[u8], datagrams: &[Datagram]) -> io::Result<usize> {
        let datagrams = &datagrams[..datagrams.len().min(MESSAGES_MAX)];
        let mut vectors: ArrayVec<libc::iovec, MESSAGES_MAX> = ArrayVec::new();
        let mut controls: ArrayVec<Control, MESSAGES_MAX> = ArrayVec::new();
        let mut names: ArrayVec<SockAddr, MESSAGES_MAX> = ArrayVec::new();
        for datagram in datagrams {
            let bytes = &buffer[datagram.bytes.clone()];
            vectors.push(libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            });
            controls.push(source(datagram.local));
            names.push(datagram.remote.into());
        }
        let mut messages: ArrayVec<libc::mmsghdr, MESSAGES_MAX> = ArrayVec::new();
        let parts = vectors.iter_mut().zip(&mut controls).zip(&names);
        for ((vector, control), name) in parts {
            let length = control.used;
            let mut message = message(vector, control, length);
            let header = &mut message.msg_hdr;
            header.msg_name = name.as_ptr().cast_mut().cast();
            header.msg_namelen = name.len();
            messages.push(message);
        }
        // SAFETY: each message points to a vector, a control block and a name that outlive the
        // call; the vectors point into `buffer`. The kernel only reads all of them.
        unsafe { kernel::send_messages(&self.socket, &mut messages) }
    }

    /// Receives up to 64 datagrams, which replace those in the inbox.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if none waits; the inbox is then empty.
    pub fn recv(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        inbox.datagrams.clear();
        let mut vectors: ArrayVec<libc::iovec, MESSAGES_MAX> = inbox
            .buffer
            .chunks_exact_mut(SLOT_BYTES)
            .map(|slot| libc::iovec {
                iov_base: slot.as_mut_ptr().cast(),
                iov_len: slot.len(),
            })
            .collect();
        let mut controls = [Control::EMPTY; MESSAGES_MAX];
        let mut names = [Name([0; NAME_BYTES]); MESSAGES_MAX];
        let mut headers: ArrayVec<libc::mmsghdr, MESSAGES_MAX> = ArrayVec::new();
        let parts = vectors.iter_mut().zip(&mut controls).zip(&mut names);
        for ((vector, control), name) in parts {
            let length = control.bytes.len();
            let mut message = message(vector, control, length);
            let header = &mut message.msg_hdr;
            header.msg_name = name.0.as_mut_ptr().cast();
            header.msg_namelen = NAME_BYTES as libc::socklen_t;
            headers.push(message);
        }
        // SAFETY: each message points to a vector, a control block and a name that outlive the
        // call, and each vector to a slot of that length without other references.
        let count = unsafe { kernel::receive_messages(&self.socket, &mut headers) }?;
        let received = headers[..count].iter().zip(&controls).zip(&names);
        for (at, ((message, control), name)) in received.enumerate() {
            let used = message.msg_hdr.msg_controllen.min(control.bytes.len());
            let about = About::parse(&control.bytes[..used]);
            self.missed = about.missed.unwrap_or(self.missed);
            let start = at * SLOT_BYTES;
            let bytes = (message.msg_len as usize).min(SLOT_BYTES);
            inbox.datagrams.push(Datagram {
                bytes: start..start + bytes,
                local: about.local.unwrap_or(self.local.ip()),
                // The kernel writes an address of the socket's family.
                remote: name.parse().unwrap_or(self.local),
            });
        }
        Ok(())
    }
}

impl AsFd for MultihomedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends from this address.
fn source(address: IpAddr) -> Control {
    let mut control = Control::EMPTY;
    match address {
        // `struct in_pktinfo`: interface, source, and an address that the kernel ignores.
        IpAddr::V4(ip) => {
            let mut info = [0; 12];
            info[4..8].copy_from_slice(&ip.octets());
            control.put(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        // `struct in6_pktinfo`: source, interface.
        IpAddr::V6(ip) => {
            let mut info = [0; 20];
            info[..16].copy_from_slice(&ip.octets());
            control.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        }
    }
    control
}

/// What the kernel reports about a received datagram.
#[derive(Debug, Default, PartialEq, Eq)]
struct About {
    local: Option<IpAddr>,
    missed: Option<u32>,
}

impl About {
    /// Safe on any bytes; unknown messages are skipped.
    fn parse(block: &[u8]) -> Self {
        let mut about = Self::default();
        for (level, kind, data) in messages(block) {
            match (level, kind) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let address = data.get(8..).and_then(<[u8]>::first_chunk::<4>);
                    about.local = address.map(|it| Ipv4Addr::from(*it).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let address = data.first_chunk::<16>();
                    about.local = address.map(|it| Ipv6Addr::from(*it).into());
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    about.missed = data.first_chunk().map(|it| u32::from_ne_bytes(*it));
                }
                _ => {}
            }
        }
        about
    }
}

/// The bytes of `struct sockaddr_in` or `sockaddr_in6`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Name([u8; NAME_BYTES]);

impl Name {
    fn parse(&self) -> Option<SocketAddr> {
        let family = u16::from_ne_bytes(*self.0.first_chunk()?);
        let port = u16::from_be_bytes(*self.0[2..].first_chunk()?);
        let ip: IpAddr = match libc::c_int::from(family) {
            libc::AF_INET => Ipv4Addr::from(*self.0[4..].first_chunk::<4>()?).into(),
            libc::AF_INET6 => Ipv6Addr::from(*self.0[8..].first_chunk::<16>()?).into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_readable;

    fn received(socket: &mut MultihomedSocket, inbox: &mut Inbox) {
        let limit = Some(Duration::from_secs(10));
        assert!(wait_readable(&[socket.as_fd()], limit).unwrap());
        socket.recv(inbox).unwrap();
    }

    #[test]
    fn datagrams_have_the_addresses_that_were_asked_for() {
        // All addresses of 127.0.0.0/8 are the host's.
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut hosts = MultihomedSocket::bind(any).unwrap();
        let gateway = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut gateway = MultihomedSocket::bind(gateway).unwrap();
        let remote = SocketAddr::from(([127, 0, 0, 1], gateway.port()));
        let local = |last: u8| IpAddr::from([127, 8, 7, last]);
        let buffer: Vec<u8> = (0..=u8::MAX).collect();
        let sent: Vec<Datagram> = (1..=70)
            .map(|at: u8| Datagram {
                bytes: usize::from(at)..usize::from(at) * 3,
                local: local(at),
                remote,
            })
            .collect();
        assert_eq!(hosts.send(&buffer, &sent).unwrap(), 64);
        assert_eq!(hosts.send(&buffer, &sent[64..]).unwrap(), 6);
        let mut inbox = Inbox::new();
        let mut at = 0;
        while at < 70 {
            received(&mut gateway, &mut inbox);
            for (bytes, here, from) in inbox.datagrams() {
                assert_eq!(bytes, &buffer[sent[at].bytes.clone()]);
                assert_eq!(here, remote.ip());
                assert_eq!(from, SocketAddr::new(sent[at].local, hosts.port()));
                at += 1;
            }
        }
        // And back, to one of the addresses.
        let back = Datagram {
            bytes: 0..5,
            local: remote.ip(),
            remote: SocketAddr::new(local(9), hosts.port()),
        };
        assert_eq!(gateway.send(&buffer, &[back]).unwrap(), 1);
        received(&mut hosts, &mut inbox);
        let datagrams: Vec<_> = inbox.datagrams().collect();
        assert_eq!(datagrams, [(&buffer[..5], local(9), remote)]);
        assert_eq!(
            hosts.recv(&mut inbox).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert_eq!((inbox.datagrams().len(), hosts.missed()), (0, 0));
    }

    #[test]
    fn it_speaks_ipv6() {
        let here = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0);
        let Ok(mut one) = MultihomedSocket::bind(here) else {
            println!("skipped: this host has no IPv6");
            return;
        };
        let other = MultihomedSocket::bind((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
        let datagram = Datagram {
            bytes: 1..3,
            local: here.ip(),
            remote: SocketAddr::new(here.ip(), one.port()),
        };
        assert_eq!(other.send(&[1, 2, 3], &[datagram]).unwrap(), 1);
        let mut inbox = Inbox::new();
        received(&mut one, &mut inbox);
        let from = SocketAddr::new(here.ip(), other.port());
        let datagrams: Vec<_> = inbox.datagrams().collect();
        assert_eq!(datagrams, [(&[2, 3][..], here.ip(), from)]);
    }

    #[test]
    fn a_source_that_the_host_does_not_have_is_refused() {
        let socket = MultihomedSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).unwrap();
        let datagram = Datagram {
            bytes: 0..1,
            local: IpAddr::from([192, 0, 2, 77]),
            remote: SocketAddr::from(([127, 0, 0, 1], 9)),
        };
        assert!(socket.send(&[0], &[datagram]).is_err());
    }

    #[test]
    fn damaged_reports_are_skipped() {
        let control = source(IpAddr::from([192, 0, 2, 1]));
        for end in 0..control.used - 4 {
            assert_eq!(About::parse(&control.bytes[..end]), About::default());
        }
        assert_eq!(Name([0; NAME_BYTES]).parse(), None);
    }
}

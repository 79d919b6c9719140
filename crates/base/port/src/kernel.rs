//! Shared code of the kernel's ports: interfaces, socket options, shared memory.

use std::cell::Cell;
use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// An interface of this network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Without the Ethernet header.
    pub(crate) mtu: usize,
    pub(crate) is_up: bool,
    /// At least 1.
    pub(crate) receive_queues: u32,
}

/// `struct ethtool_channels` of linux/ethtool.h.
#[repr(C)]
#[derive(Debug, Default)]
struct EthtoolChannels {
    command: u32,
    max: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

/// `ETHTOOL_GCHANNELS`.
const GET_CHANNELS: u32 = 0x3c;

/// Maximum number of entries of a device's table that maps hashes of received frames to queues:
/// more than any has.
const INDIRECTIONS_MAX: usize = 4096;

/// `struct ethtool_rxfh_indir` of linux/ethtool.h.
#[repr(C)]
struct EthtoolIndirection {
    command: u32,
    entries: u32,
    queues: [u32; INDIRECTIONS_MAX],
}

/// `ETHTOOL_GRXFHINDIR`.
const GET_INDIRECTION: u32 = 0x38;

impl Interface {
    /// Looks up an interface by name.
    pub(crate) fn find(name: &str) -> io::Result<Self> {
        // Any socket accepts these requests, and one of this family needs no privilege.
        let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let c_name = CString::new(name)?;
        let mut request = request_for(name)?;
        // SAFETY: a string that ends in zero and outlives the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: SIOCGIFMTU takes an ifreq and writes `ifru_mtu`; any bytes are valid for it.
        let mtu = unsafe {
            check(libc::ioctl(
                socket.as_raw_fd(),
                libc::SIOCGIFMTU,
                &raw mut request,
            ))?;
            request.ifr_ifru.ifru_mtu
        };
        // SAFETY: as above for SIOCGIFFLAGS and `ifru_flags`.
        let flags = unsafe {
            check(libc::ioctl(
                socket.as_raw_fd(),
                libc::SIOCGIFFLAGS,
                &raw mut request,
            ))?;
            request.ifr_ifru.ifru_flags
        };
        let mut channels = EthtoolChannels {
            command: GET_CHANNELS,
            ..EthtoolChannels::default()
        };
        request.ifr_ifru.ifru_data = ptr::from_mut(&mut channels).cast();
        // SAFETY: SIOCETHTOOL takes an ifreq that points to the structure of its command. A driver
        // without the command has one queue.
        unsafe {
            libc::ioctl(
                socket.as_raw_fd(),
                libc::SIOCETHTOOL as libc::Ioctl,
                &raw mut request,
            )
        };
        Ok(Self {
            name: name.to_owned(),
            index,
            mtu: usize::try_from(mtu).unwrap_or(0),
            is_up: libc::c_int::from(flags) & libc::IFF_UP != 0,
            receive_queues: (channels.receive + channels.combined).max(1),
        })
    }

    /// Number of the first receive queues among which the device divides frames by their hash;
    /// `None` if it does not report that.
    pub(crate) fn hashed_over(&self) -> Option<u32> {
        let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
        let mut request = request_for(&self.name).ok()?;
        let mut table = EthtoolIndirection {
            command: GET_INDIRECTION,
            entries: INDIRECTIONS_MAX as u32,
            queues: [0; INDIRECTIONS_MAX],
        };
        let mut ask = |entries| {
            table.entries = entries;
            request.ifr_ifru.ifru_data = ptr::from_mut(&mut table).cast();
            // SAFETY: SIOCETHTOOL takes an ifreq that points to the structure of its command; that
            // has room for the stated number of entries.
            check(unsafe {
                libc::ioctl(
                    socket.as_raw_fd(),
                    libc::SIOCETHTOOL as libc::Ioctl,
                    &raw mut request,
                )
            })
            .ok()?;
            Some(table.entries)
        };
        // To 0 the kernel answers with the number alone.
        let entries = ask(0)?;
        if entries == 0 || entries as usize > INDIRECTIONS_MAX {
            return None;
        }
        // A table that has grown in between is refused (EINVAL).
        ask(entries)?;
        let used = &table.queues[..entries as usize];
        used.iter().max().map(|highest| highest + 1)
    }
}

/// A request about the interface of that name.
pub(crate) fn request_for(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// Creates a non-blocking eventfd.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes no pointers.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: the kernel has just created this descriptor, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Creates a non-blocking socket.
pub(crate) fn socket(
    domain: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes no pointers.
    let fd = check(unsafe { libc::socket(domain, kind, protocol) })?;
    // SAFETY: the kernel has just created this descriptor, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket to an address of its family.
pub(crate) fn bind<A: Plain>(socket: &impl AsRawFd, address: &A) -> io::Result<()> {
    let (bytes, length) = (ptr::from_ref(address).cast(), size_of::<A>());
    // SAFETY: the address outlives the call, and its length is given.
    check(unsafe { libc::bind(socket.as_raw_fd(), bytes, length as libc::socklen_t) }).map(drop)
}

/// Binds a packet socket to an interface; `protocol` 0 receives nothing.
pub(crate) fn bind_packet(
    socket: &OwnedFd,
    interface: &Interface,
    protocol: libc::c_int,
) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = interface.index as libc::c_int;
    bind(socket, &address)
}

/// Adds a packet socket to a group among which flows are divided by a hash of their addresses and
/// ports, or creates one; returns its number.
pub(crate) fn join_fanout(socket: &OwnedFd, group: Option<u16>) -> io::Result<u16> {
    let flags = libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    // The kernel chooses an unused number for the first socket: a fixed one could be another
    // program's group in this namespace.
    let (id, flags) = match group {
        Some(id) => (libc::c_uint::from(id), flags),
        None => (0, flags | libc::PACKET_FANOUT_FLAG_UNIQUEID),
    };
    let value = (id | (libc::PACKET_FANOUT_HASH | flags) << 16) as libc::c_int;
    set_option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &value)?;
    let joined: libc::c_int = option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT)?;
    Ok(joined as u16)
}

/// Sets a socket option.
pub(crate) fn set_option<T: Plain>(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let (bytes, length) = (
        ptr::from_ref(value).cast(),
        size_of::<T>() as libc::socklen_t,
    );
    // SAFETY: the value outlives the call, and its length is passed.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, bytes, length) }).map(drop)
}

/// An instruction of a socket's filter (classic BPF).
pub(crate) const fn filter_step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Sets a socket's filter.
pub(crate) fn attach_filter<const N: usize>(
    socket: &impl AsRawFd,
    mut filter: [libc::sock_filter; N],
) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: N as libc::c_ushort,
        filter: filter.as_mut_ptr(),
    };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Sets the size of a socket's send buffer: beyond the system's limit if the process may do that,
/// otherwise up to it.
pub(crate) fn set_send_buffer(socket: &impl AsRawFd, bytes: libc::c_int) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes))
}

/// Sets the size of a socket's receive buffer, as [`set_send_buffer`] does.
pub(crate) fn set_receive_buffer(socket: &impl AsRawFd, bytes: libc::c_int) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes))
}

/// Reads a socket option.
pub(crate) fn option<T: Plain>(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    // SAFETY: all-zero is a valid value of the plain C types that `T` may be.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    let bytes = ptr::from_mut(&mut value).cast();
    // SAFETY: `value` has room for `length` bytes, and any bytes are valid for it.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, bytes, &raw mut length) })?;
    Ok(value)
}

/// The pending error of the socket, if any: a wait on it would report it for ever.
pub(crate) fn pending_error(socket: &impl AsRawFd) -> io::Result<()> {
    match option::<libc::c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Decides when to query a socket for its error. Its port is polled millions of times a second, and
/// each query is a system call: it is made after a wait that found nothing, and occasionally
/// otherwise.
#[derive(Debug, Default)]
pub(crate) struct ErrorWatch {
    waited: Cell<bool>,
    empty_polls: Cell<u32>,
}

/// Empty polls between queries without a wait.
const POLLS_PER_QUESTION: u32 = 1024;

impl ErrorWatch {
    /// Must be called when a wait for the socket may follow: an error ends the wait.
    pub(crate) fn note_wait(&self) {
        self.waited.set(true);
    }

    /// Must be called after each empty poll: returns the socket's error, or that it would block.
    pub(crate) fn empty(&self, socket: &impl AsRawFd) -> io::Error {
        let polls = self.empty_polls.get().wrapping_add(1);
        self.empty_polls.set(polls);
        // The first empty poll asks as well, as a socket may have its error from the start.
        if !self.waited.replace(false) && polls % POLLS_PER_QUESTION != 1 {
            return io::ErrorKind::WouldBlock.into();
        }
        match pending_error(socket) {
            Ok(()) => io::ErrorKind::WouldBlock.into(),
            Err(error) => error,
        }
    }
}

/// Sends messages by one call, without waiting; returns how many it took.
///
/// # Safety
/// Every address in them must be valid during the call, which only reads there.
#[inline]
pub(crate) unsafe fn send_messages(
    socket: &impl AsRawFd,
    messages: &mut [libc::mmsghdr],
) -> io::Result<usize> {
    let (first, count) = (messages.as_mut_ptr(), messages.len() as libc::c_uint);
    // SAFETY: the messages are a slice, and the caller guarantees the rest.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), first, count, libc::MSG_DONTWAIT) };
    check(sent).map(|sent| sent as usize)
}

/// Receives messages by one call, without waiting; returns how many there were.
///
/// # Safety
/// Every address in them must be valid during the call, which writes there.
#[inline]
pub(crate) unsafe fn receive_messages(
    socket: &impl AsRawFd,
    messages: &mut [libc::mmsghdr],
) -> io::Result<usize> {
    let (first, count) = (messages.as_mut_ptr(), messages.len() as libc::c_uint);
    let (socket, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT);
    // SAFETY: the messages are a slice, and the caller guarantees the rest; no time limit is given.
    let received = unsafe { libc::recvmmsg(socket, first, count, flags, ptr::null_mut()) };
    check(received).map(|received| received as usize)
}

/// A system call's result, or its error.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// C structures of integers, and of addresses that only the kernel dereferences.
///
/// # Safety
/// Every bit pattern must be a value, including zero.
pub(crate) unsafe trait Plain {}
// SAFETY: integers, and structures of integers.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats_v3 {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_hdr_v1 {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket3_hdr {}
// SAFETY: as above.
unsafe impl Plain for libc::sock_fprog {}
// SAFETY: as above.
unsafe impl<const N: usize> Plain for [u32; N] {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_options {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_desc {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_xdp {}

/// Memory shared with the kernel.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory, owned by this value alone; users that share it with the kernel follow the
// kernel's protocol.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` of a socket's rings at `offset`.
    pub(crate) fn of_socket(
        socket: &impl AsRawFd,
        bytes: usize,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        // Populated, so that no page fault delays the first frames.
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::new(socket.as_raw_fd(), bytes, offset, flags)
    }

    /// Maps the memory that BPF programs share.
    pub(crate) fn of_map(map: &impl AsRawFd, bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::new(map.as_raw_fd(), bytes, 0, flags)
    }

    /// Memory of this process, initially zero.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::new(-1, bytes, 0, flags)
    }

    /// Its length.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn new(
        fd: libc::c_int,
        bytes: usize,
        offset: libc::off_t,
        flags: libc::c_int,
    ) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no memory of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// The `bytes` bytes at `offset`.
    ///
    /// # Panics
    /// If they extend beyond the end.
    #[inline]
    pub(crate) fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "outside of a ring"
        );
        // SAFETY: within the mapping, as just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value; pointers into it do not outlive it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_readable;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    #[test]
    fn a_sockets_error_is_queried_after_a_wait_and_otherwise_rarely() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let watch = ErrorWatch::default();
        let blocks = |socket| watch.empty(socket).kind() == io::ErrorKind::WouldBlock;
        assert!(blocks(&socket));
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(closed.local_addr().unwrap()).unwrap();
        drop(closed);
        let refuse = || {
            socket.send(b"anybody there?").unwrap();
            let refused = wait_readable(&[socket.as_fd()], Some(Duration::from_secs(10)));
            assert!(refused.unwrap(), "no answer");
        };
        refuse();
        assert!(blocks(&socket), "it was queried without a reason");
        watch.note_wait();
        let error = watch.empty(&socket);
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        refuse();
        let polls = (1..=POLLS_PER_QUESTION).find(|_| !blocks(&socket));
        assert!(polls.is_some_and(|polls| polls > 100), "{polls:?}");
    }
}

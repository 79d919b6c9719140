//! What the ports of the kernel have in common: interfaces, socket options, shared memory.

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// An interface of this network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    /// Without the Ethernet header.
    pub(super) mtu: usize,
    pub(super) is_up: bool,
    /// At least 1.
    pub(super) receive_queues: u32,
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

impl Interface {
    /// Looks it up by name.
    pub(super) fn find(name: &str) -> io::Result<Self> {
        let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let c_name = CString::new(name)?;
        if name.is_empty() || name.len() >= request.ifr_name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
            *to = *from as libc::c_char;
        }
        // SAFETY: a string that ends in zero and outlives the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: SIOCGIFMTU takes an ifreq and writes `ifru_mtu`, which any bytes are valid for.
        let mtu = unsafe {
            check(libc::ioctl(
                socket.as_raw_fd(),
                libc::SIOCGIFMTU,
                &raw mut request,
            ))?;
            request.ifr_ifru.ifru_mtu
        };
        // SAFETY: SIOCGIFFLAGS likewise, with `ifru_flags`.
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
        // SAFETY: SIOCETHTOOL takes an ifreq that points to the structure of its command. A driver that does not know
        // the command has one queue.
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
}

/// Makes a socket that does not block.
pub(super) fn socket(
    domain: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes no pointers.
    let fd = check(unsafe { libc::socket(domain, kind, protocol) })?;
    // SAFETY: the kernel just made this descriptor, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket to an address of the kind that it takes.
pub(super) fn bind<A: Plain>(socket: &impl AsRawFd, address: &A) -> io::Result<()> {
    let (bytes, length) = (ptr::from_ref(address).cast(), size_of::<A>());
    // SAFETY: the address outlives the call, and its length is given.
    check(unsafe { libc::bind(socket.as_raw_fd(), bytes, length as libc::socklen_t) }).map(drop)
}

/// Sets a socket option.
pub(super) fn set_option<T: Plain>(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let (bytes, length) = (
        ptr::from_ref(value).cast(),
        size_of::<T>() as libc::socklen_t,
    );
    // SAFETY: the value outlives the call, and its length is given.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, bytes, length) }).map(drop)
}

/// Reads a socket option.
pub(super) fn option<T: Plain>(
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

/// The error that the socket holds, if there is one: what a wait on it would report for ever.
pub(super) fn pending_error(socket: &impl AsRawFd) -> io::Result<()> {
    match option::<libc::c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// By how much CLOCK_REALTIME, in which the kernel notes arrivals, is ahead of CLOCK_MONOTONIC.
pub(super) fn realtime_ahead_ns() -> i64 {
    let read = |clock| {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` outlives the call; both clocks are always there.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let before = read(libc::CLOCK_MONOTONIC);
    let real = read(libc::CLOCK_REALTIME);
    let after = read(libc::CLOCK_MONOTONIC);
    real - before.midpoint(after)
}

/// A system call's result, or its error.
pub(super) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// C structures of integers, and of addresses that only the kernel follows.
///
/// # Safety
/// Every bit pattern must be a value, zero too.
pub(super) unsafe trait Plain {}
// SAFETY: integers, and structures of integers.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats_v3 {}
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
unsafe impl Plain for libc::xdp_desc {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_xdp {}

/// Memory shared with the kernel.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory, owned by this value alone; who shares it with the kernel keeps to the kernel's protocol.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` of a socket's rings at `offset`.
    pub(super) fn of_socket(
        socket: &impl AsRawFd,
        bytes: usize,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::new(socket.as_raw_fd(), bytes, offset, flags)
    }

    /// Memory of this process, zero at first.
    pub(super) fn anonymous(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::new(-1, bytes, 0, flags)
    }

    /// Its length.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn new(
        fd: libc::c_int,
        bytes: usize,
        offset: libc::off_t,
        flags: libc::c_int,
    ) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping where the kernel chooses touches no memory of ours.
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
    /// Where they go beyond the end.
    #[inline]
    pub(super) fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
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
        // SAFETY: the mapping is this value's own; pointers into it do not outlive it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

//! AF_XDP: rings shared with the kernel, below the network stack (Linux
//! `Documentation/networking/af_xdp.rst`).
//!
//! Zero-copy if the driver has it, otherwise in copy mode, which every driver supports. A frame is
//! one descriptor within one page: longer ones need other ports. Needs CAP_NET_RAW; to receive,
//! CAP_BPF and CAP_NET_ADMIN too.

mod receive;
mod ring;
mod send;

pub use receive::XdpReceiver;
pub use send::XdpSender;

use super::xdp_mode::XdpMemory;
use crate::kernel::{self, Interface, Mapping};
use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

/// The longest frame sent: a page.
pub(super) const SEND_BYTES_MAX: usize = 4096;
/// Space that the kernel reserves in front of a received frame.
const HEADROOM_BYTES: usize = 256;
/// The longest frame received.
pub(super) const RECEIVE_BYTES_MAX: usize = SEND_BYTES_MAX - HEADROOM_BYTES;
/// Longest wait for the kernel to release a closed socket's resources; some milliseconds are usual.
const RELEASE_WAIT: Duration = Duration::from_millis(300);

/// Opens a socket with zero-copy or, if the driver refuses that, with copies. The kernel unlocks
/// the memory of the refused socket with a delay, which an unprivileged user must wait for.
fn zero_copy_or_copy<S>(open: impl Fn(XdpMemory) -> io::Result<S>) -> io::Result<S> {
    if let Ok(socket) = open(XdpMemory::ZeroCopy) {
        return Ok(socket);
    }
    retry_on(libc::ENOBUFS, || open(XdpMemory::Copy))
}

/// Repeats an attempt that fails with the transient error `passes`, for up to `RELEASE_WAIT`.
fn retry_on<T>(passes: libc::c_int, attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let until = Instant::now() + RELEASE_WAIT;
    loop {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(passes) && Instant::now() < until => {
                thread::sleep(RELEASE_WAIT / 100);
            }
            result => return result,
        }
    }
}

/// A socket with its frame memory, before it is bound.
fn socket(frames: &Mapping, chunk_bytes: usize, flags: u32) -> io::Result<OwnedFd> {
    let socket = kernel::socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
    let memory = libc::xdp_umem_reg {
        addr: frames.at(0, 1) as u64,
        len: frames.bytes() as u64,
        chunk_size: chunk_bytes as u32,
        headroom: 0,
        flags,
        tx_metadata_len: 0,
    };
    kernel::set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
    Ok(socket)
}

/// Binds to a queue, with exactly this use of memory. The kernel releases the queue of a closed
/// socket with a delay, which this waits for.
fn bind(
    socket: &OwnedFd,
    interface: &Interface,
    queue: u32,
    memory: XdpMemory,
    flags: u16,
) -> io::Result<()> {
    let memory = match memory {
        XdpMemory::ZeroCopy => libc::XDP_ZEROCOPY,
        XdpMemory::Copy => libc::XDP_COPY,
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: memory | flags,
        sxdp_ifindex: interface.index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    retry_on(libc::EBUSY, || kernel::bind(socket, &address))
}

/// The owner of the memory that a bound socket's driver uses, as the kernel reports it.
fn memory_of(socket: &OwnedFd) -> io::Result<XdpMemory> {
    let options: libc::xdp_options = kernel::option(socket, libc::SOL_XDP, libc::XDP_OPTIONS)?;
    Ok(match options.flags & libc::XDP_OPTIONS_ZEROCOPY {
        0 => XdpMemory::Copy,
        _ => XdpMemory::ZeroCopy,
    })
}

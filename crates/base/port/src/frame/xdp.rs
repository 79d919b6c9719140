//! AF_XDP: rings shared with the kernel, below the network stack (Linux
//! `Documentation/networking/af_xdp.rst`).
//!
//! In copy mode, which every driver supports. A frame is one descriptor within one page: longer
//! ones need other ports. Needs CAP_NET_RAW; to receive, CAP_BPF and CAP_NET_ADMIN too.

mod receive;
mod ring;
mod send;

pub use receive::XdpReceiver;
pub use send::XdpSender;

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
/// Longest wait for the kernel to release a closed socket's queue; some milliseconds are usual.
const RELEASE_WAIT: Duration = Duration::from_millis(300);

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

/// Binds to a queue. The kernel releases the queue of a closed socket with a delay, which this
/// waits for.
fn bind(socket: &OwnedFd, interface: &Interface, queue: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: interface.index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let until = Instant::now() + RELEASE_WAIT;
    loop {
        match kernel::bind(socket, &address) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                thread::sleep(RELEASE_WAIT / 100);
            }
            result => return result,
        }
    }
}

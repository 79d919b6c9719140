//! Ways for packets in and out.
//!
//! A [`ClearPort`] carries IP packets and super-packets, each behind a `virtio_net_hdr`; a [`CipherPort`] carries
//! datagrams, in trains of equal size where the kernel takes those. Both work on the caller's buffers and
//! allocate nothing. Test traffic goes by a [`FrameSender`] and a [`FrameReceiver`], which carry whole Ethernet
//! frames in their own buffers. Non-blocking: a caller that finds nothing waits with [`wait_readable`].
//!
//! The only crate with I/O `unsafe`.
//!
//! To add a port: one file, one of the traits, and the test of its kind in `tests/`; a frame port is also a kind
//! in [`FramePortKind`] and a place in the orders of `frame/open.rs`.

mod bell;
mod frame;
mod memory;
mod tun;
mod udp;
mod wait;

pub use frame::{
    AnyReceiver, AnySender, FRAME_SLOT_BYTES, FrameClearPort, FramePortError, FramePortKind,
    FramePortStats, FrameReceiver, FrameSender, MemoryFrameReceiver, MemoryFrameSender, OpenFrames,
    Opened, PacketReceiver, PacketSender, SocketReceiver, SocketSender, Swallow, XdpReceiver,
    XdpSender, memory_frame_pair, open_receivers, open_senders,
};
pub use memory::{MemoryCipherPort, MemoryClearPort, memory_cipher_pair, memory_clear_pair};
pub use tun::{Tun, TunError, TunOffloads, TunSettings};
pub use udp::{UdpLane, UdpOffloads};
pub use wait::{Stop, wait_readable};

use std::io;
use std::os::fd::BorrowedFd;
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;

/// A buffer of this size holds any packet of a clear port with its virtio header.
pub const CLEAR_BUFFER_BYTES: usize = wire::vnet::VNET_HEADER_BYTES + 65_535;

/// The largest payload of one UDP send or receive over IPv4.
pub const TRAIN_BYTES_MAX: usize = 65_507;

/// Where clear packets come from and go to.
pub trait ClearPort: Send {
    /// Reads one packet: virtio header, then the packet. The length of both.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none.
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes one packet or super-packet from its pieces.
    ///
    /// # Errors
    /// What the kernel says; the packet is lost then.
    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()>;

    /// The super-packets that `send` takes.
    fn joinable(&self) -> Joinable;

    /// Becomes readable when `recv` has something; `None` for a port that cannot be waited for. To be called
    /// anew before each wait: only then does a ring in memory know that somebody sleeps.
    fn readable(&self) -> Option<BorrowedFd<'_>>;
}

/// A run of datagrams to send: `bytes` of the caller's buffer, cut every `datagram_bytes`; the last may be
/// shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    /// Offset of the first byte.
    pub start: usize,
    /// Length in bytes, at most [`TRAIN_BYTES_MAX`].
    pub bytes: usize,
    /// Length of each datagram but the last.
    pub datagram_bytes: usize,
}

impl Train {
    /// Number of datagrams.
    #[must_use]
    pub const fn datagrams(&self) -> u64 {
        self.bytes.div_ceil(self.datagram_bytes) as u64
    }
}

/// What became of the datagrams of one [`CipherPort::send`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Taken by the kernel.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Refused: longer than the path's MTU.
    pub too_big: u64,
    /// Refused for another reason (no buffers, interface down).
    pub failed: u64,
}

/// Where datagrams come from and go to: one peer.
pub trait CipherPort: Send {
    /// Sends trains that lie in `buffer`.
    fn send(&mut self, buffer: &[u8], trains: &[Train]) -> Sent;

    /// Receives into `batch`, replacing what it held.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is nothing.
    fn recv(&mut self, batch: &mut Batch) -> io::Result<()>;

    /// Datagrams in one train at most; 1 when there are no trains.
    fn train_max(&self) -> usize;

    /// Becomes readable when `recv` has something; `None` for a port that cannot be waited for. To be called
    /// anew before each wait: only then does a ring in memory know that somebody sleeps.
    fn readable(&self) -> Option<BorrowedFd<'_>>;
}

/// Buffers for received trains.
#[derive(Debug)]
pub struct Batch {
    buffers: Vec<Box<[u8]>>,
    /// Length and datagram length of each filled buffer.
    filled: Vec<(usize, usize)>,
}

impl Batch {
    /// Room for `trains` trains.
    #[must_use]
    pub fn new(trains: usize) -> Self {
        let buffer = || vec![0; TRAIN_BYTES_MAX].into_boxed_slice();
        Self {
            buffers: (0..trains).map(|_| buffer()).collect(),
            filled: Vec::with_capacity(trains),
        }
    }

    /// The received datagrams, in order.
    pub fn datagrams(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.buffers
            .iter_mut()
            .zip(&self.filled)
            .flat_map(|(buffer, &(bytes, datagram))| {
                // An empty datagram is one too.
                let chunks = buffer[..bytes.max(1)].chunks_mut(datagram.max(1));
                chunks.map(move |chunk| {
                    let length = chunk.len().min(bytes);
                    &mut chunk[..length]
                })
            })
    }
}

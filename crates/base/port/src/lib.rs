//! Ways for packets in and out.
//!
//! A [`ClearPort`] carries IP packets and super-packets, each behind a `virtio_net_hdr`; a [`CipherPort`] carries
//! datagrams, in trains of equal size where the kernel takes those. Both work on the caller's buffers, or lend
//! their own, and allocate nothing. Test traffic goes by a [`FrameSender`] and a [`FrameReceiver`], which carry whole Ethernet
//! frames in their own buffers. Non-blocking: a caller that finds nothing waits with [`wait_readable`].
//!
//! The only crate with I/O `unsafe`.
//!
//! To add a port: one file, one of the traits, and the test of its kind in `tests/`; a frame port is also a kind
//! in [`FramePortKind`] and a place in the orders of `frame/open.rs`.

mod bell;
mod bpf;
pub mod fault;
mod frame;
mod kernel;
mod link;
mod memory;
mod probe;
mod sink;
mod steering;
mod tun;
mod udp;
mod wait;

pub use frame::{
    AnyReceiver, AnySender, FRAME_SLOT_BYTES, FrameClearPort, FramePortError, FramePortKind,
    FramePortStats, FrameReceiver, FrameSender, MemoryFrameReceiver, MemoryFrameSender, OpenFrames,
    Opened, OutgoingReceiver, PacketReceiver, PacketSender, SocketReceiver, SocketSender, Swallow,
    XdpReceiver, XdpSender, memory_frame_pair, open_outgoing, open_receivers, open_senders,
};
pub use link::{LinkError, LinkOffloads, LinkPort};
pub use memory::{
    MEMORY_BATCH_BYTES, MemoryCipherPort, MemoryClearPort, memory_cipher_pair, memory_clear_pair,
};
pub use sink::Sink;
pub use steering::flow_hash;
pub use tun::{Tun, TunError, TunOffloads, TunSettings};
pub use udp::control::Ancillary;
pub use udp::{UdpLane, UdpOffloads};
pub use wait::{Ready, Stop, Waiter, wait_readable};

use arrayvec::ArrayVec;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;

/// A buffer of this size holds any packet of a clear port with its virtio header: an IP packet of the longest
/// kind in an Ethernet frame with two VLAN tags.
pub const CLEAR_BUFFER_BYTES: usize = wire::vnet::VNET_HEADER_BYTES + 14 + 8 + 65_535;

/// The largest payload of one UDP send or receive over IPv4.
pub const TRAIN_BYTES_MAX: usize = 65_507;
/// Trains in one batch at most.
pub const TRAINS_MAX: usize = 64;

/// Bytes that a clear port leaves behind a packet it hands out, for the padding and trailer of its ESP packet.
pub const CLEAR_ROOM_BYTES: usize = 24;

/// Where clear packets come from and go to: IP packets, or Ethernet frames for a port on a link.
pub trait ClearPort: Send {
    /// Takes one packet: virtio header, then the packet, whose length with its header is told. It lies at the
    /// start of the slice, which is `buffer` or memory of the port's own, and goes on for
    /// [`CLEAR_ROOM_BYTES`] at least. `buffer` has [`CLEAR_BUFFER_BYTES`] and that room.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none.
    fn recv<'a>(&'a mut self, buffer: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)>;

    /// Writes one packet or super-packet from its pieces.
    ///
    /// # Errors
    /// What the kernel says; the packet is lost then. A port that gathers may tell later, by
    /// [`flush`](Self::flush).
    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()>;

    /// Hands over what `send` may have gathered: to be called at the end of each batch. How many packets that
    /// `send` had taken were lost since the last call.
    ///
    /// # Errors
    /// When the port is gone.
    fn flush(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    /// Packets that came and were lost for want of room, before `recv`: as many as the port knows of by now. It only
    /// grows, and costs nothing to read. 0 from a port that does not learn of them; those of a TUN device are among
    /// its interface's counters.
    fn missed(&self) -> u64 {
        0
    }

    /// The super-packets that `send` takes.
    fn joinable(&self) -> Joinable;

    /// Becomes readable when `recv` has something; `None` for a port that cannot be waited for. To be called
    /// anew before each wait: only then does a ring in memory know that somebody sleeps.
    fn readable(&self) -> Option<BorrowedFd<'_>>;
}

/// A run of datagrams to or from one peer: `bytes` of a batch's buffer, cut every `datagram_bytes`; the last may
/// be shorter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Train {
    /// Offset of the first byte.
    pub start: usize,
    /// Length in bytes, at most [`TRAIN_BYTES_MAX`].
    pub bytes: usize,
    /// Length of each datagram but the last.
    pub datagram_bytes: usize,
    /// Whom to send it to: the number of one of the port's peers. Without meaning in what was received.
    pub peer: u16,
    /// DSCP and ECN of the outer headers (RFC 2474, RFC 3168), as in the second byte of an IPv4 header.
    pub tos: u8,
}

impl Train {
    /// Number of datagrams. An empty datagram is one, too.
    #[must_use]
    pub const fn datagrams(&self) -> u64 {
        if self.bytes <= self.datagram_bytes {
            return 1;
        }
        let step = if self.datagram_bytes == 0 {
            1
        } else {
            self.datagram_bytes
        };
        self.bytes.div_ceil(step) as u64
    }

    /// Where each datagram lies in the batch's buffer.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (start, end) = (self.start, self.start + self.bytes);
        let step = self.datagram_bytes.max(1);
        (0..self.datagrams() as usize).map(move |index| {
            let at = start + index * step;
            at..end.min(at + step)
        })
    }
}

/// Trains, and the buffer that they lie in.
#[derive(Debug)]
pub struct Batch {
    /// What the trains point into. A port may exchange it for another of the same length.
    pub buffer: Box<[u8]>,
    /// The trains, in order. No more than [`TRAINS_MAX`]: nothing is allocated.
    pub trains: Box<ArrayVec<Train, TRAINS_MAX>>,
}

impl Batch {
    /// An empty batch with a buffer of that length.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            buffer: vec![0; bytes].into_boxed_slice(),
            trains: Box::default(),
        }
    }

    /// An empty batch with room for as many of the longest trains.
    #[must_use]
    pub fn for_trains(trains: usize) -> Self {
        Self::new(trains * TRAIN_BYTES_MAX)
    }

    /// The datagrams, in order.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let ranges = self.trains.iter().flat_map(Train::ranges);
        ranges.map(|range| &self.buffer[range])
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

/// Where datagrams come from and go to: one or more peers.
pub trait CipherPort: Send {
    /// Sends the trains of a batch, which is empty then; its buffer holds nothing of use.
    fn send(&mut self, batch: &mut Batch) -> Sent;

    /// Receives into `batch`, replacing what it held.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is nothing.
    fn recv(&mut self, batch: &mut Batch) -> io::Result<()>;

    /// Length of the buffer that a batch for [`recv`](Self::recv) best has: room for as many of the longest trains as
    /// one call brings.
    fn batch_bytes(&self) -> usize {
        32 * TRAIN_BYTES_MAX
    }

    /// Datagrams in one train at most; 1 when there are no trains.
    fn train_max(&self) -> usize;

    /// Becomes readable when `recv` has something; `None` for a port that cannot be waited for. To be called
    /// anew before each wait: only then does a ring in memory know that somebody sleeps.
    fn readable(&self) -> Option<BorrowedFd<'_>>;
}

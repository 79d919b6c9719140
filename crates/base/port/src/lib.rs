//! Ports: packet input and output.
//!
//! A [`ClearPort`] carries IP packets and super-packets, each behind a `virtio_net_hdr`; a
//! [`CipherPort`] carries datagrams, in trains of equal size if the kernel supports those. Both
//! work on the caller's buffers, or lend buffers of the port, and allocate nothing. Test traffic
//! uses a [`FrameSender`] and a [`FrameReceiver`], which carry whole Ethernet frames in the port's
//! buffers. Non-blocking: a caller that finds nothing waits with [`wait_readable`].
//!
//! The only crate with I/O `unsafe`.
//!
//! To add a port: one file, one of the traits, and the test of its kind in `tests/`; a frame port
//! is also a kind in [`FramePortKind`] and a place in the orders of `frame/open.rs`.

mod arrivals;
mod bell;
mod bpf;
mod card_clock;
mod datagram;
mod frame;
mod kernel;
mod link;
mod memory;
mod priority;
mod probe;
mod steering;
mod tcp;
mod tun;
mod udp;
mod vlan;
mod wait;

pub use arrivals::ClockOffset;
pub use card_clock::{CardClock, CardReading};
pub use datagram::{never_fragment, never_fragment_to, path_mtu, send_without_checksum};
pub use frame::{
    AnyReceiver, AnySender, Beside, FRAME_SLOT_BYTES, FrameClearPort, FramePortError,
    FramePortKind, FramePortStats, FrameReceiver, FrameSender, MemoryFrameReceiver,
    MemoryFrameSender, OpenFrames, Opened, OutgoingReceiver, PacketReceiver, PacketSender, Packets,
    PromptReceiver, SocketReceiver, SocketSender, Swallow, Tap, TapFrame, TapSettings, XdpAttach,
    XdpMemory, XdpMode, XdpReceiver, XdpSender, memory_frame_pair, open_outgoing,
    open_prompt_receivers, open_receivers, open_senders,
};
pub use link::{LinkError, LinkOffloads, LinkPort};
pub use memory::{MEMORY_BATCH_BYTES, MemoryCipherPort, memory_cipher_pair};
pub use priority::{run_in_front, run_in_real_time, run_when_idle};
pub use steering::flow_hash;
pub use tcp::TcpReading;
pub use tun::{Tun, TunError, TunOffloads, TunSettings};
pub use udp::control::Ancillary;
pub use udp::multihomed::{Datagram, Inbox, MultihomedSocket};
pub use udp::{UdpLane, UdpOffloads};
pub use wait::{Ready, Stop, Waiter, is_timeout, wait_readable};

use arrayvec::ArrayVec;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;

/// A buffer of this size holds any packet of a clear port with its virtio header: an IP packet of
/// maximum length in an Ethernet frame with two VLAN tags.
pub const CLEAR_BUFFER_BYTES: usize = wire::vnet::VNET_HEADER_BYTES + 14 + 8 + 65_535;

/// The largest payload of one UDP send or receive over IPv4.
pub const TRAIN_BYTES_MAX: usize = 65_507;
/// Maximum number of trains in a batch.
pub const TRAINS_MAX: usize = 64;

/// Bytes that a clear port reserves behind a received packet, for the padding and trailer of its
/// ESP packet.
pub const CLEAR_ROOM_BYTES: usize = 24;

/// Source and destination of clear packets: IP packets, or Ethernet frames for a port on a link.
pub trait ClearPort: Send {
    /// Receives one packet: virtio header, then the packet. Returns the slice and the length of
    /// both. They are at the start of the slice, which is `buffer` or memory of the port, and has
    /// at least [`CLEAR_ROOM_BYTES`] behind them. `buffer` has [`CLEAR_BUFFER_BYTES`] and that
    /// room.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if no packet waits.
    fn recv<'a>(&'a mut self, buffer: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)>;

    /// Sends one packet or super-packet from its pieces.
    ///
    /// # Errors
    /// The kernel's error; the packet is then lost. A port that gathers packets may report it
    /// later, in [`flush`](Self::flush).
    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()>;

    /// Sends the packets that `send` may have gathered; must be called at the end of each batch.
    /// Returns how many packets accepted by `send` were lost since the last call.
    ///
    /// # Errors
    /// When the port is gone.
    fn flush(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    /// Packets lost before `recv` because no room was left, as far as the port knows. It only
    /// grows, and costs nothing to read. 0 for a port without this information; a TUN device's
    /// losses are in its interface's counters.
    fn missed(&self) -> u64 {
        0
    }

    /// The super-packets that `send` accepts.
    fn joinable(&self) -> Joinable;

    /// The descriptor that is readable when `recv` has packets; `None` for a port that cannot be
    /// waited for. Must be called before each wait: a ring in memory rings its bell only then.
    fn readable(&self) -> Option<BorrowedFd<'_>>;
}

/// A run of datagrams to or from one peer: `bytes` of a batch's buffer, split every
/// `datagram_bytes`; the last may be shorter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Train {
    /// Offset of the first byte.
    pub start: usize,
    /// Length in bytes, at most [`TRAIN_BYTES_MAX`].
    pub bytes: usize,
    /// Length of each datagram but the last.
    pub datagram_bytes: usize,
    /// The destination: the index of one of the port's peers. Unused in received trains.
    pub peer: u16,
    /// DSCP and ECN of the outer headers (RFC 2474, RFC 3168), as in the second byte of an IPv4
    /// header.
    pub tos: u8,
}

impl Train {
    /// Number of datagrams. An empty train is one empty datagram.
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

    /// The range of each datagram in the batch's buffer.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (start, end) = (self.start, self.start + self.bytes);
        let step = self.datagram_bytes.max(1);
        (0..self.datagrams() as usize).map(move |index| {
            let at = start + index * step;
            at..end.min(at + step)
        })
    }
}

/// Trains and their buffer.
#[derive(Debug)]
pub struct Batch {
    /// The buffer of the trains. A port may exchange it for another of the same length.
    pub buffer: Box<[u8]>,
    /// The trains, in order. No more than [`TRAINS_MAX`]: nothing is allocated.
    pub trains: Box<ArrayVec<Train, TRAINS_MAX>>,
}

impl Batch {
    /// An empty batch with a buffer of this length.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            buffer: vec![0; bytes].into_boxed_slice(),
            trains: Box::default(),
        }
    }

    /// An empty batch with room for this many of the longest trains.
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

/// The result of one [`CipherPort::send`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Accepted by the kernel.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Refused: longer than the path's MTU.
    pub too_big: u64,
    /// Refused for another reason (no buffers, interface down).
    pub failed: u64,
}

/// Source and destination of datagrams: one or more peers.
pub trait CipherPort: Send {
    /// Sends the trains of a batch, which is empty afterwards; the content of its buffer is
    /// undefined.
    fn send(&mut self, batch: &mut Batch) -> Sent;

    /// Receives into `batch`, replacing its content.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is nothing.
    fn recv(&mut self, batch: &mut Batch) -> io::Result<()>;

    /// The best length of a batch's buffer for [`recv`](Self::recv): room for the maximum number of
    /// longest trains per call.
    fn batch_bytes(&self) -> usize {
        32 * TRAIN_BYTES_MAX
    }

    /// Maximum number of datagrams in a train; 1 without trains.
    fn train_max(&self) -> usize;

    /// The descriptor that is readable when `recv` has datagrams; `None` for a port that cannot be
    /// waited for. Must be called before each wait: a ring in memory rings its bell only then.
    fn readable(&self) -> Option<BorrowedFd<'_>>;
}

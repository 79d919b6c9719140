//! Ports for Ethernet frames: the entry and exit of test traffic at a station.
//!
//! A frame is Ethernet header to the end of the payload, without FCS. Both directions work on slots
//! that the port owns, in batches, without allocation: the sender writes each frame directly into
//! memory that the kernel (or the ring) reads, and the receiver reads it in place.

mod bpf;
mod clear;

mod memory;
mod open;
mod packet;
mod socket;
mod swallow;
mod wanted;
mod xdp;
mod xdp_mode;

pub(crate) use bpf::DropCaptured;
pub use clear::FrameClearPort;
pub use memory::{MemoryFrameReceiver, MemoryFrameSender, memory_frame_pair};
pub use open::{
    AnyReceiver, AnySender, FramePortError, Opened, open_outgoing, open_prompt_receivers,
    open_receivers, open_senders,
};
pub use packet::{
    OutgoingReceiver, PacketReceiver, PacketSender, PromptReceiver, Tap, TapFrame, TapSettings,
};
pub use socket::{SocketReceiver, SocketSender};
pub use swallow::Swallow;
pub use wanted::{Beside, OpenFrames, Packets};
pub use xdp::{XdpReceiver, XdpSender};
pub use xdp_mode::{XdpAttach, XdpMemory, XdpMode};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

/// The largest frame that a port carries, without FCS: 9216 B with FCS, and ESP in UDP around it.
pub const FRAME_SLOT_BYTES: usize = 9216 + 256;

/// A kind of frame port. [`open_senders`] and [`open_receivers`] document the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FramePortKind {
    /// AF_XDP: rings shared with the kernel, below the network stack.
    Xdp,
    /// AF_PACKET: batches to the driver without a queue, a memory-mapped ring from the kernel.
    Packet,
    /// UDP sockets: the kernel creates and checks the headers.
    Socket,
    /// Rings in memory, within one process.
    Memory,
}

impl fmt::Display for FramePortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xdp => "AF_XDP",
            Self::Packet => "AF_PACKET",
            Self::Socket => "UDP socket",
            Self::Memory => "memory",
        })
    }
}

/// Counts of a port since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramePortStats {
    /// Frames handed to the kernel or the ring.
    pub sent: u64,
    /// Frames that the kernel refused or lost on this station, before the wire.
    pub send_failed: u64,
    /// Frames that reached this station and were lost because no slot was free.
    pub receive_dropped: u64,
}

/// Sends frames.
pub trait FrameSender: Send {
    /// Sends up to `count` frames. `fill` is called once for each frame that fits, in order, with a
    /// slot of [`FRAME_SLOT_BYTES`] (of undefined content), and returns the frame's length.
    ///
    /// Returns the number of slots filled: 0 when there is no room now. Each of these has been
    /// sent, is counted in [`FramePortStats::send_failed`], or waits for room and precedes all
    /// others in the next call.
    ///
    /// # Errors
    /// When the interface is gone or down.
    fn send(&mut self, count: usize, fill: impl FnMut(&mut [u8]) -> usize) -> io::Result<usize>;

    /// Waits until everything has been sent; counts the frames that could not be. Does nothing if
    /// [`send`](Self::send) leaves no frame waiting.
    ///
    /// # Errors
    /// When the interface is gone or down.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Counts so far.
    fn stats(&self) -> FramePortStats;
}

/// Receives frames.
pub trait FrameReceiver: Send {
    /// Passes every available frame, up to one batch, to `read`, which may change the bytes in
    /// place. Returns their number.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if no frame waits; anything else when the interface is gone.
    fn recv(&mut self, read: impl FnMut(&mut [u8])) -> io::Result<usize>;

    /// As [`recv`](Self::recv), with each frame's arrival time at this station, by CLOCK_MONOTONIC
    /// in nanoseconds, if the kernel noted it. Otherwise (`None`) the frame arrived now.
    ///
    /// # Errors
    /// As `recv`.
    fn recv_timed(&mut self, mut read: impl FnMut(&mut [u8], Option<u64>)) -> io::Result<usize> {
        self.recv(|frame| read(frame, None))
    }

    /// The descriptor that is readable when `recv` has frames; `None` for a port that cannot be
    /// waited for. Must be called before each wait: a ring in memory rings its bell only then.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// Counts so far.
    fn stats(&self) -> FramePortStats;
}

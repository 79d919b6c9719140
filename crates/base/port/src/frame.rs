//! Ports for Ethernet frames: how test traffic leaves a station and enters one.
//!
//! A frame is Ethernet header to the end of the payload, without FCS. Both directions work on slots
//! that the port owns, in batches, without allocation: the sender writes each frame where the
//! kernel (or the ring) takes it from, the receiver reads it where it was put.

mod bpf;
mod clear;

mod memory;
mod open;
mod packet;
mod socket;
mod swallow;
mod xdp;

pub(crate) use bpf::Deafness;
pub use clear::FrameClearPort;
pub use memory::{MemoryFrameReceiver, MemoryFrameSender, memory_frame_pair};
pub use open::{
    AnyReceiver, AnySender, FramePortError, OpenFrames, Opened, open_outgoing, open_receivers,
    open_senders,
};
pub use packet::{OutgoingReceiver, PacketReceiver, PacketSender};
pub use socket::{SocketReceiver, SocketSender};
pub use swallow::Swallow;
pub use xdp::{XdpReceiver, XdpSender};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

/// The largest frame that a port carries, without FCS: 9216 B with FCS, and ESP in UDP around it.
pub const FRAME_SLOT_BYTES: usize = 9216 + 256;

/// A kind of frame port. [`open_senders`] and [`open_receivers`] say which is tried first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FramePortKind {
    /// AF_XDP: rings shared with the kernel, below the network stack.
    Xdp,
    /// AF_PACKET: batches to the driver without a queue, a memory-mapped ring from the kernel.
    Packet,
    /// UDP sockets: the kernel makes and checks the headers.
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

/// What a port has counted since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramePortStats {
    /// Frames that were handed on.
    pub sent: u64,
    /// Frames that the kernel refused or lost on this station, before the wire.
    pub send_failed: u64,
    /// Frames that reached this station and were lost in it: no slot was free.
    pub receive_dropped: u64,
}

/// Sends frames.
pub trait FrameSender: Send {
    /// Sends up to `count` frames. `fill` is called once for each that there is room for, in order,
    /// with a slot of [`FRAME_SLOT_BYTES`] (what it holds is undefined), and returns the frame's length.
    ///
    /// How many were filled: 0 when there is no room now. Each of these has been handed on, is counted in
    /// [`FramePortStats::send_failed`], or waits for room and goes before all others with the next call.
    ///
    /// # Errors
    /// When the interface is gone or down.
    fn send(&mut self, count: usize, fill: impl FnMut(&mut [u8]) -> usize) -> io::Result<usize>;

    /// Waits until everything has been handed on; counts what could not be.
    ///
    /// # Errors
    /// When the interface is gone or down.
    fn flush(&mut self) -> io::Result<()>;

    /// Counts so far.
    fn stats(&self) -> FramePortStats;
}

/// Receives frames.
pub trait FrameReceiver: Send {
    /// Hands every frame that is there, up to one batch, to `read`: the bytes may be changed in place. How
    /// many there were.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none; anything else when the interface is gone.
    fn recv(&mut self, read: impl FnMut(&mut [u8])) -> io::Result<usize>;

    /// As [`recv`](Self::recv), with the time that each frame came to this station, by CLOCK_MONOTONIC in
    /// nanoseconds, where the kernel noted it. Where it did not (`None`), the frame came now.
    ///
    /// # Errors
    /// As `recv`.
    fn recv_timed(&mut self, mut read: impl FnMut(&mut [u8], Option<u64>)) -> io::Result<usize> {
        self.recv(|frame| read(frame, None))
    }

    /// Becomes readable when `recv` has something; `None` for a port that cannot be waited for. To be called
    /// anew before each wait: only then does a ring in memory know that somebody sleeps.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// Counts so far.
    fn stats(&self) -> FramePortStats;
}

//! AF_PACKET: whole frames to and from an interface. Needs CAP_NET_RAW in the interface's network
//! namespace.

mod blocks;
mod outgoing;
mod prompt;
mod receive;
mod send;
mod tap;

pub use outgoing::OutgoingReceiver;
pub use prompt::PromptReceiver;
pub use receive::PacketReceiver;
pub use send::PacketSender;
pub use tap::{Tap, TapFrame, TapSettings};

use crate::frame::FramePortStats;
use crate::kernel;
use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;

/// Frames that a receiving socket has lost so far; the kernel resets its count when it is read.
#[derive(Debug, Default)]
struct Dropped(Cell<u64>);

impl Dropped {
    fn stats(&self, socket: &OwnedFd) -> FramePortStats {
        // The additional counts of a ring of blocks are behind these.
        let stats: io::Result<libc::tpacket_stats> =
            kernel::option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        // It cannot fail on a packet socket.
        let new = stats.map_or(0, |stats| u64::from(stats.tp_drops));
        self.0.set(self.0.get() + new);
        FramePortStats {
            receive_dropped: self.0.get(),
            ..FramePortStats::default()
        }
    }
}

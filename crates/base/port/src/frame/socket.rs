//! UDP sockets: test frames without any privilege.
//!
//! The kernel creates Ethernet, IP and UDP headers, resolves the next hop, and drops frames that it
//! rejects. A frame's addresses, ports and payload are kept; MAC addresses, TTL and the like are
//! not.

mod headers;
mod receive;
mod send;

pub use receive::SocketReceiver;
pub use send::SocketSender;

/// Frames per system call.
const BATCH_FRAMES: usize = 64;

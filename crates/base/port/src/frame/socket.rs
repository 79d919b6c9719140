//! UDP sockets: test frames without any privilege.
//!
//! The kernel makes Ethernet, IP and UDP headers itself, resolves the next hop itself, and drops what it does not
//! like. What a frame says of addresses, ports and payload is kept; MAC addresses, TTL and the like are not.

mod headers;
mod receive;
mod send;

pub use receive::SocketReceiver;
pub use send::SocketSender;

/// Frames in one system call.
const BATCH_FRAMES: usize = 64;

//! Ports joined in memory: the data path without kernel, privilege or clock.
//!
//! What moves is the buffer, not its bytes: each direction has two rings that pass buffers back and forth, and the
//! sender takes the one that came back last, which is still in the cache. What finds no room is lost, as on a
//! wire. No lock, no allocation after set-up.

mod cipher;
mod clear;

pub use cipher::{MEMORY_BATCH_BYTES, MemoryCipherPort, memory_cipher_pair};
pub use clear::{MemoryClearPort, memory_clear_pair};

use crate::bell::Bell;
use rtrb::{Consumer, Producer, RingBuffer};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The end of a direction that fills buffers.
#[derive(Debug)]
struct Sending<B> {
    full: Producer<B>,
    free: Consumer<B>,
    bell: Arc<Bell>,
}

/// The end that empties them.
#[derive(Debug)]
struct Receiving<B> {
    full: Consumer<B>,
    free: Producer<B>,
    bell: Arc<Bell>,
}

/// A direction in which up to `capacity` buffers move.
fn direction<B>(capacity: usize) -> (Sending<B>, Receiving<B>) {
    let (full, full_out) = RingBuffer::new(capacity);
    let (free_in, free) = RingBuffer::new(capacity);
    let bell = Arc::new(Bell::new());
    let sending = Sending {
        full,
        free,
        bell: Arc::clone(&bell),
    };
    let receiving = Receiving {
        full: full_out,
        free: free_in,
        bell,
    };
    (sending, receiving)
}

impl<B> Receiving<B> {
    /// Gives a buffer back. One for which the ring has no room is let go: the sender has enough then.
    #[inline]
    fn give_back(&mut self, buffer: B) {
        let _ = self.free.push(buffer);
    }

    /// Readable when there is something in the ring, or `more` says so.
    fn readable(&self, more: bool) -> BorrowedFd<'_> {
        self.bell.arm(|| self.full.is_empty() && !more)
    }
}

//! Ports joined in memory: the data path without kernel, privilege or clock.
//!
//! Buffers move instead of their bytes: each direction has two rings that pass buffers back and
//! forth, and the sender uses the one returned last, which is still in the cache. Packets without
//! room are lost, as on a wire. No lock, no allocation after set-up.

mod cipher;

pub use cipher::{MEMORY_BATCH_BYTES, MemoryCipherPort, memory_cipher_pair};

use crate::bell::Bell;
use rtrb::{Consumer, Producer, RingBuffer};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The end of a direction that fills buffers.
#[derive(Debug)]
pub(crate) struct Sending<B> {
    pub(crate) full: Producer<B>,
    pub(crate) free: Consumer<B>,
    pub(crate) bell: Arc<Bell>,
}

/// The end that empties them.
#[derive(Debug)]
pub(crate) struct Receiving<B> {
    pub(crate) full: Consumer<B>,
    pub(crate) free: Producer<B>,
    bell: Arc<Bell>,
}

/// The ends of one direction, for up to `capacity` buffers.
pub(crate) fn direction<B>(capacity: usize) -> (Sending<B>, Receiving<B>) {
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
    /// Returns a buffer. If the ring has no room it is freed: the sender then has enough.
    #[inline]
    pub(crate) fn give_back(&mut self, buffer: B) {
        let _ = self.free.push(buffer);
    }

    /// Readable when the ring is not empty, or `more` is true.
    pub(crate) fn readable(&self, more: bool) -> BorrowedFd<'_> {
        self.bell.arm(|| self.full.is_empty() && !more)
    }
}

//! A ring of AF_XDP: single producer, single consumer, one of them the kernel.

use crate::kernel::{self, Mapping, Plain};
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// One of a socket's four rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Free chunks to the kernel.
    Fill,
    /// Sent chunks from the kernel.
    Completion,
    /// Received frames from the kernel.
    Receive,
    /// Frames to send to the kernel.
    Send,
}

/// A ring of `T`: addresses or descriptors.
#[derive(Debug)]
pub(super) struct Ring<T> {
    memory: Mapping,
    offsets: libc::xdp_ring_offset,
    mask: u32,
    /// Our index, the producer's or the consumer's, as last published to the kernel.
    pub(super) own: u32,
    entries: PhantomData<T>,
}

impl<T: Plain + Copy> Ring<T> {
    /// Creates the ring with `entries`, a power of two.
    pub(super) fn new(socket: &OwnedFd, which: Which, entries: u32) -> io::Result<Self> {
        let option = match which {
            Which::Fill => libc::XDP_UMEM_FILL_RING,
            Which::Completion => libc::XDP_UMEM_COMPLETION_RING,
            Which::Receive => libc::XDP_RX_RING,
            Which::Send => libc::XDP_TX_RING,
        };
        kernel::set_option(socket, libc::SOL_XDP, option, &entries)?;
        let offsets: libc::xdp_mmap_offsets =
            kernel::option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let (offsets, page_offset) = match which {
            Which::Fill => (offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t),
            Which::Completion => (
                offsets.cr,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
            ),
            Which::Receive => (offsets.rx, libc::XDP_PGOFF_RX_RING),
            Which::Send => (offsets.tx, libc::XDP_PGOFF_TX_RING),
        };
        let bytes = offsets.desc as usize + entries as usize * size_of::<T>();
        Ok(Self {
            memory: Mapping::of_socket(socket, bytes, page_offset)?,
            offsets,
            mask: entries - 1,
            own: 0,
            entries: PhantomData,
        })
    }

    fn index(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: `at` checks the bounds; the kernel aligns its indices, and accesses them
        // atomically.
        unsafe { AtomicU32::from_ptr(self.memory.at(offset as usize, 4).cast()) }
    }

    fn entry(&self, index: u32) -> *mut T {
        let offset = self.offsets.desc as usize + (index & self.mask) as usize * size_of::<T>();
        self.memory.at(offset, size_of::<T>()).cast()
    }

    /// Entries that the kernel has produced and we have not consumed.
    #[inline]
    pub(super) fn produced(&self) -> u32 {
        // Acquire: the entries are written before the index. Indices run freely and wrap, so a
        // difference is a number of entries.
        let producer = self.index(self.offsets.producer).load(Ordering::Acquire);
        producer.wrapping_sub(self.own)
    }

    /// Entries that we have produced and the kernel has not consumed.
    #[inline]
    pub(super) fn unconsumed(&self) -> u32 {
        let consumer = self.index(self.offsets.consumer).load(Ordering::Acquire);
        self.own.wrapping_sub(consumer)
    }

    /// The `nth` entry to consume, less than the number that [`produced`](Self::produced) returned.
    #[inline]
    pub(super) fn read(&self, nth: u32) -> T {
        // SAFETY: within the ring, aligned, ours until it is released; any bytes are a value.
        unsafe { self.entry(self.own.wrapping_add(nth)).read() }
    }

    /// Returns `count` consumed entries to the kernel.
    #[inline]
    pub(super) fn release(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        let consumer = self.index(self.offsets.consumer);
        // Release: the kernel may overwrite these entries once it sees the index.
        consumer.store(self.own, Ordering::Release);
    }

    /// Writes the `nth` entry to produce; the ring must have room for it.
    #[inline]
    pub(super) fn write(&mut self, nth: u32, value: T) {
        // SAFETY: within the ring, aligned, and ours: the caller does not exceed the room.
        unsafe { self.entry(self.own.wrapping_add(nth)).write(value) }
    }

    /// Passes `count` written entries to the kernel.
    #[inline]
    pub(super) fn submit(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        let producer = self.index(self.offsets.producer);
        // Release: the entries must be visible before the index.
        producer.store(self.own, Ordering::Release);
    }
}

//! Frame ports joined in memory: two rings that pass the same buffers back and forth.
//!
//! ```text
//! sender ── full ring ──► receiver
//!   ▲                        │
//!   └─────── free ring ◄─────┘
//! ```
//!
//! A frame is written and read in place; only the pointer moves. The sender fills the buffer that
//! was returned last, which is still in the cache. No lock, no allocation after set-up, no loss.

use super::{FRAME_SLOT_BYTES, FramePortStats, FrameReceiver, FrameSender};
use crate::memory::{Receiving, Sending, direction};
use std::io;
use std::os::fd::BorrowedFd;

/// Maximum number of frames per `recv`.
const BATCH_FRAMES: usize = 256;

#[derive(Debug)]
struct Slot {
    bytes: Box<[u8; FRAME_SLOT_BYTES]>,
    length: u32,
}

/// The sending end.
#[derive(Debug)]
pub struct MemoryFrameSender {
    ring: Sending<Slot>,
    /// Free slots, the most recently used on top.
    spare: Vec<Slot>,
    sent: u64,
}

/// The receiving end.
#[derive(Debug)]
pub struct MemoryFrameReceiver {
    ring: Receiving<Slot>,
    /// The slot lent last by `lend`.
    lent: Option<Slot>,
}

/// A link in memory for up to `capacity` frames.
///
/// # Panics
/// When the process is out of file descriptors.
#[must_use]
pub fn memory_frame_pair(capacity: usize) -> (MemoryFrameSender, MemoryFrameReceiver) {
    // The receiver frees a slot a moment before its place in the full ring, which needs spare
    // places.
    let (sending, receiving) = direction(capacity + BATCH_FRAMES);
    let slot = || Slot {
        bytes: Box::new([0; FRAME_SLOT_BYTES]),
        length: 0,
    };
    let sender = MemoryFrameSender {
        ring: sending,
        spare: (0..capacity).map(|_| slot()).collect(),
        sent: 0,
    };
    let receiver = MemoryFrameReceiver {
        ring: receiving,
        lent: None,
    };
    (sender, receiver)
}

impl MemoryFrameSender {
    fn take_back(&mut self) {
        let returned = self.ring.free.slots();
        if let Ok(slots) = self.ring.free.read_chunk(returned) {
            self.spare.extend(slots);
        }
    }
}

impl FrameSender for MemoryFrameSender {
    #[inline]
    fn send(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        self.take_back();
        let count = count.min(self.spare.len());
        let Ok(places) = self.ring.full.write_chunk_uninit(count) else {
            return Ok(0);
        };
        if count == 0 {
            return Ok(0);
        }
        let kept = self.spare.len() - count;
        // From the top: these slots were returned last, and are still in the cache.
        places.fill_from_iter(self.spare.drain(kept..).rev().map(|mut slot| {
            slot.length = fill(&mut slot.bytes[..]) as u32;
            slot
        }));
        self.sent += count as u64;
        self.ring.bell.ring_if_armed();
        Ok(count)
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats {
            sent: self.sent,
            ..FramePortStats::default()
        }
    }
}

impl MemoryFrameReceiver {
    /// Lends the next frame until the next call: its slot, and its length.
    #[inline]
    pub(super) fn lend(&mut self) -> Option<(&mut [u8; FRAME_SLOT_BYTES], usize)> {
        if let Some(slot) = self.lent.take() {
            self.ring.give_back(slot);
        }
        let slot = self.lent.insert(self.ring.full.pop().ok()?);
        Some((&mut slot.bytes, slot.length as usize))
    }

    /// The slot lent last, if still lent; an empty slice otherwise.
    #[inline]
    pub(super) fn lent(&mut self) -> &mut [u8] {
        self.lent
            .as_mut()
            .map_or(&mut [], |slot| &mut slot.bytes[..])
    }

    /// Passes up to `count` frames to `read`; returns their number.
    #[inline]
    fn take(&mut self, count: usize, mut read: impl FnMut(&mut [u8])) -> usize {
        let count = self.ring.full.slots().min(count);
        if count == 0 {
            return 0;
        }
        let slots = self.ring.full.read_chunk(count);
        let places = self.ring.free.write_chunk_uninit(count);
        // There are this many, and the free ring has a place for every slot.
        let (Ok(slots), Ok(places)) = (slots, places) else {
            unreachable!("a ring lost a slot")
        };
        places.fill_from_iter(slots.into_iter().map(|mut slot| {
            read(&mut slot.bytes[..slot.length as usize]);
            slot
        }))
    }
}

impl FrameReceiver for MemoryFrameReceiver {
    #[inline]
    fn recv(&mut self, read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        match self.take(BATCH_FRAMES, read) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.readable(false))
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_readable;
    use std::time::Duration;

    fn number(slot: &mut [u8], number: u64) -> usize {
        let length = 60 + (number % 9000) as usize;
        slot[..8].copy_from_slice(&number.to_be_bytes());
        slot[length - 1] = number as u8;
        length
    }

    fn check(frame: &[u8], number: u64) {
        assert_eq!(frame.len(), 60 + (number % 9000) as usize);
        assert_eq!(frame[..8], number.to_be_bytes());
        assert_eq!(frame[frame.len() - 1], number as u8);
    }

    #[test]
    fn a_full_link_accepts_no_frame_and_an_empty_one_has_none() {
        let (mut sender, mut receiver) = memory_frame_pair(3);
        assert_eq!(
            receiver.recv(|_| ()).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        let mut next = 0;
        let mut fill = |slot: &mut [u8]| {
            assert_eq!(slot.len(), FRAME_SLOT_BYTES);
            next += 1;
            number(slot, next)
        };
        assert_eq!(sender.send(2, &mut fill).unwrap(), 2);
        assert_eq!(sender.send(2, &mut fill).unwrap(), 1);
        assert_eq!(sender.send(2, &mut fill).unwrap(), 0);
        let mut seen = 0;
        let read = |frame: &mut [u8]| {
            seen += 1;
            check(frame, seen);
        };
        assert_eq!(receiver.recv(read).unwrap(), 3);
        assert_eq!(sender.send(9, &mut fill).unwrap(), 3);
        assert_eq!(sender.stats().sent, 6);
    }

    #[test]
    fn every_frame_crosses_once_and_in_order_between_two_threads() {
        const FRAMES: u64 = 50_000;
        let (mut sender, mut receiver) = memory_frame_pair(100);
        let thread = std::thread::spawn(move || {
            let mut next = 0;
            while next < FRAMES {
                let batch = (next % 77 + 1).min(FRAMES - next) as usize;
                let fill = |slot: &mut [u8]| {
                    next += 1;
                    number(slot, next - 1)
                };
                if sender.send(batch, fill).unwrap() == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let mut seen = 0;
        while seen < FRAMES {
            let read = |frame: &mut [u8]| {
                check(frame, seen);
                seen += 1;
            };
            if receiver.recv(read).is_err() {
                let fd = receiver.readable().unwrap();
                assert!(wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap());
            }
        }
        thread.join().unwrap();
        assert!(receiver.recv(|_| ()).is_err());
    }
}

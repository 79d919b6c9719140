//! Frames that wait until they are due, in slots of one buffer.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Memory for one direction's slots. The kernel provides pages as they are used.
const MEMORY_BYTES: usize = 256 << 20;
/// More frames than this do not wait: 100 ms of the fastest link that the bridge carries.
const SLOTS_MAX: usize = 1 << 17;

/// Frames that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    buffer: Box<[u8]>,
    stride: usize,
    /// Free slots, the one used last on top.
    free: Vec<u32>,
    in_order: VecDeque<Entry>,
    held_back: BinaryHeap<Reverse<Entry>>,
    /// Frames put so far.
    count: u64,
}

/// A frame in its slot, ordered by when it is due and, at one time, by when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due_ns: u64,
    number: u64,
    slot: u32,
    bytes: u32,
}

impl Waiting {
    /// Slots for frames of up to `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        let stride = bytes.next_multiple_of(64);
        // Fewer for long frames, so that both directions together have a known bound.
        let slots = (MEMORY_BYTES / stride).clamp(1, SLOTS_MAX);
        Self {
            buffer: vec![0; slots * stride].into_boxed_slice(),
            stride,
            free: (0..slots as u32).rev().collect(),
            in_order: VecDeque::with_capacity(slots),
            held_back: BinaryHeap::with_capacity(slots),
            count: 0,
        }
    }

    /// Keeps a frame until it is due; returns `false` if it does not fit a slot, or no slot is
    /// free. Frames that are not held back come in the order of their due times.
    pub(super) fn put(&mut self, frame: &[u8], due_ns: u64, is_held_back: bool) -> bool {
        if frame.len() > self.stride {
            return false;
        }
        // The slot used last, which is still in the cache.
        let Some(slot) = self.free.pop() else {
            return false;
        };
        self.buffer[slot as usize * self.stride..][..frame.len()].copy_from_slice(frame);
        self.count += 1;
        let entry = Entry {
            due_ns,
            number: self.count,
            slot,
            // At most a stride, which fits.
            bytes: frame.len() as u32,
        };
        if is_held_back {
            self.held_back.push(Reverse(entry));
        } else {
            self.in_order.push_back(entry);
        }
        true
    }

    /// Passes the next frame to `send` if it is due, and returns when it was.
    pub(super) fn take_due(&mut self, now_ns: u64, send: impl FnOnce(&[u8])) -> Option<u64> {
        let (entry, is_held_back) = self.next().filter(|(entry, _)| entry.due_ns <= now_ns)?;
        if is_held_back {
            self.held_back.pop();
        } else {
            self.in_order.pop_front();
        }
        send(&self.buffer[entry.slot as usize * self.stride..][..entry.bytes as usize]);
        // After the port has copied the frame.
        self.free.push(entry.slot);
        Some(entry.due_ns)
    }

    /// When the next frame is due.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.next().map(|(entry, _)| entry.due_ns)
    }

    /// The frame that is due next, and whether it is held back.
    fn next(&self) -> Option<(Entry, bool)> {
        let in_order = self.in_order.front().map(|entry| (*entry, false));
        let held_back = self.held_back.peek().map(|Reverse(entry)| (*entry, true));
        // By due time and then by arrival, as entries are ordered.
        in_order.into_iter().chain(held_back).min()
    }

    /// Whether all waiting frames are held back.
    pub(super) fn is_in_order_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    /// Frames that wait.
    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.held_back.len()
    }
}

//! Ports with faults: simulate a bad or hostile network on the receive side. For tests.
//!
//! A wrapper changes what its port *receives*; sent packets are unchanged. Wrappers compose, and
//! the same seed has the same effect on the same input. There is no clock: delays are counted in
//! calls of `recv`. They allocate.

mod cipher;
mod clear;

pub use cipher::FaultyCipher;
pub use clear::FaultyClear;

use crate::kernel;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Faults, each with an independent probability from 0 to 1 per packet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// Seed of the random numbers.
    pub seed: u64,
    /// It is lost.
    pub loss: f64,
    /// It is duplicated.
    pub duplicate: f64,
    /// One of its bits is flipped.
    pub corrupt: f64,
    /// It is truncated: at any byte, or before the first.
    pub truncate: f64,
    /// It is overtaken by some later packets.
    pub reorder: f64,
    /// It is delayed by some calls of `recv`.
    pub delay: f64,
    /// Maximum number of calls; at least 1.
    pub delay_batches: u64,
}

/// Counts so far. Every packet received is delivered, held, or lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounts {
    /// Packets received from the inner port.
    pub received: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets lost.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets with a flipped bit; a copy has the same fault as its original.
    pub corrupted: u64,
    /// Packets cut short.
    pub truncated: u64,
    /// Packets delayed.
    pub delayed: u64,
    /// Packets delivered after one that arrived later (RFC 4737 §3).
    pub reordered: u64,
}

/// A packet in transit.
#[derive(Debug, Clone)]
struct Held {
    /// The call of `recv` that may deliver it, and its order within that call.
    due: (u64, u64),
    /// Its number in order of arrival.
    number: u64,
    bytes: Vec<u8>,
    tos: u8,
}

/// The packets in transit and the faults applied to them.
#[derive(Debug)]
struct Network {
    faults: Faults,
    random: u64,
    /// In order of delivery.
    held: Vec<Held>,
    call: u64,
    /// One more than the highest number delivered.
    next_expected: u64,
    counts: FaultCounts,
    /// Always readable: for a reader that would wait while packets are held.
    ready: OwnedFd,
}

/// Maximum number of places that a reordered packet falls back.
const PLACES_MAX: u64 = 8;

impl Network {
    fn new(faults: Faults) -> Self {
        let ready = kernel::eventfd(1);
        let ready =
            ready.unwrap_or_else(|error| panic!("cannot make an eventfd for a network: {error}"));
        Self {
            faults,
            random: faults.seed,
            held: Vec::new(),
            call: 0,
            next_expected: 0,
            counts: FaultCounts::default(),
            ready,
        }
    }

    /// A random number (SplitMix64).
    const fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From 0 to `end` - 1.
    const fn below(&mut self, end: u64) -> u64 {
        self.random() % end
    }

    fn happens(&mut self, probability: f64) -> bool {
        // 53 bits fill the mantissa.
        ((self.random() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Adds a packet; its first `kept` bytes are never changed.
    fn take(&mut self, bytes: &[u8], kept: usize, tos: u8) {
        let number = self.counts.received;
        self.counts.received += 1;
        if self.happens(self.faults.loss) {
            self.counts.lost += 1;
            return;
        }
        let mut held = Held {
            due: (self.call, number),
            number,
            bytes: bytes.to_vec(),
            tos,
        };
        if self.happens(self.faults.truncate) && bytes.len() > kept {
            let end = kept as u64 + self.below((bytes.len() - kept) as u64);
            held.bytes.truncate(end as usize);
            self.counts.truncated += 1;
        }
        if self.happens(self.faults.corrupt) && held.bytes.len() > kept {
            let at = kept as u64 + self.below((held.bytes.len() - kept) as u64);
            held.bytes[at as usize] ^= 1 << self.below(8);
            self.counts.corrupted += 1;
        }
        if self.happens(self.faults.duplicate) {
            self.counts.duplicated += 1;
            let copy = held.clone();
            self.hold(copy);
        }
        self.hold(held);
    }

    /// Sets a packet's delivery time, and inserts it in order.
    fn hold(&mut self, mut held: Held) {
        if self.happens(self.faults.delay) {
            held.due.0 += 1 + self.below(self.faults.delay_batches.max(1));
            self.counts.delayed += 1;
        }
        if self.happens(self.faults.reorder) {
            held.due.1 += 1 + self.below(PLACES_MAX);
        }
        // Behind those with the same time: a packet that falls back follows the one already there.
        let at = self.held.partition_point(|other| other.due <= held.due);
        self.held.insert(at, held);
    }

    /// The next packet due in this call, if `fits` accepts it.
    fn next(&mut self, fits: impl FnOnce(&Held) -> bool) -> Option<Held> {
        let first = self.held.first()?;
        if first.due.0 > self.call || !fits(first) {
            return None;
        }
        let next = self.held.remove(0);
        self.counts.delivered += 1;
        self.counts.reordered += u64::from(next.number + 1 < self.next_expected);
        self.next_expected = self.next_expected.max(next.number + 1);
        Some(next)
    }

    /// The descriptor that becomes readable when a packet may be available.
    fn readable<'a>(&'a self, inner: Option<BorrowedFd<'a>>) -> Option<BorrowedFd<'a>> {
        if self.held.is_empty() {
            inner
        } else {
            Some(self.ready.as_fd())
        }
    }
}

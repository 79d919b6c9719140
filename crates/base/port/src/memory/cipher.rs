//! Cipher ports in memory: a batch is passed by exchanging buffers, without a copy.
//!
//! Both callers' buffers must have [`MEMORY_BATCH_BYTES`] for that; others are copied.

use super::{Receiving, Sending, direction};
use crate::{Batch, CipherPort, Sent, TRAIN_BYTES_MAX, Train};
use std::io;
use std::mem::swap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Length of the buffers that move.
pub const MEMORY_BATCH_BYTES: usize = 4 * TRAIN_BYTES_MAX;
/// Buffers per direction. They take no memory before their first use, and are reused.
const BATCHES: usize = 256;
/// Places in the rings: injected datagrams have separate buffers.
const PLACES: usize = 8192;
/// Maximum number of waiting bytes in one direction.
const WAITING_BYTES_MAX: u64 = 4 << 20;

/// One end of a cipher link in memory.
#[derive(Debug)]
pub struct MemoryCipherPort {
    rx: Receiving<Batch>,
    /// A batch that is partly copied out, and the number of its trains copied.
    partial: Option<(Batch, usize)>,
    /// Number of bytes received, for the sender.
    received: Arc<AtomicU64>,
    received_bytes: u64,
    tx: Sending<Batch>,
    /// Free batches, the most recently used on top.
    spare: Vec<Batch>,
    sent_bytes: u64,
    taken: Arc<AtomicU64>,
}

/// Two connected cipher ports: each receives the datagrams that the other sends.
///
/// # Panics
/// When the process is out of file descriptors.
#[must_use]
pub fn memory_cipher_pair() -> (MemoryCipherPort, MemoryCipherPort) {
    let (to_one, from_other) = direction(PLACES);
    let (to_other, from_one) = direction(PLACES);
    let (by_one, by_other) = (Arc::default(), Arc::default());
    let end = |rx, tx, received: &Arc<_>, taken: &Arc<_>| MemoryCipherPort {
        rx,
        partial: None,
        received: Arc::clone(received),
        received_bytes: 0,
        tx,
        spare: (0..BATCHES)
            .map(|_| Batch::new(MEMORY_BATCH_BYTES))
            .collect(),
        sent_bytes: 0,
        taken: Arc::clone(taken),
    };
    (
        end(from_other, to_other, &by_one, &by_other),
        end(from_one, to_one, &by_other, &by_one),
    )
}

impl MemoryCipherPort {
    /// Sends one datagram, as [`send`](CipherPort::send) does; it is lost when the link is full.
    /// Allocates.
    pub fn inject(&mut self, datagram: &[u8]) {
        let mut batch = Batch {
            buffer: datagram.into(),
            trains: Box::default(),
        };
        batch.trains.push(Train {
            bytes: datagram.len(),
            datagram_bytes: datagram.len(),
            ..Train::default()
        });
        if self.has_room(datagram.len() as u64) && self.tx.full.push(batch).is_ok() {
            self.sent_bytes += datagram.len() as u64;
            self.tx.bell.ring_if_armed();
        }
    }

    fn has_room(&self, bytes: u64) -> bool {
        // Not negative: the receiver counts bytes after it has taken them from the ring.
        let waiting = self.sent_bytes - self.taken.load(Ordering::Acquire);
        waiting + bytes <= WAITING_BYTES_MAX
    }

    /// A free batch; `None` when the link is full.
    fn spare(&mut self) -> Option<Batch> {
        // Injected datagrams have buffers of their length, which are dropped here.
        while let Ok(batch) = self.tx.free.pop() {
            if batch.buffer.len() == MEMORY_BATCH_BYTES {
                self.spare.push(batch);
            }
        }
        self.spare.pop()
    }

    /// Moves a whole batch to the peer; `false` when the link is full.
    fn put(&mut self, batch: &mut Batch, bytes: u64) -> bool {
        if !self.has_room(bytes) {
            return false;
        }
        let Some(mut other) = self.spare() else {
            return false;
        };
        other.trains.clear();
        if batch.buffer.len() == MEMORY_BATCH_BYTES {
            // The caller gets a free buffer for the full one: nothing is copied.
            swap(batch, &mut other);
        } else {
            let copied = copy_trains(batch, 0, &mut other);
            if copied < batch.trains.len() {
                self.spare.push(other);
                return false;
            }
        }
        // Possible by injected datagrams alone: there are more places than batches.
        if let Err(rtrb::PushError::Full(other)) = self.tx.full.push(other) {
            self.spare.push(other);
            return false;
        }
        self.sent_bytes += bytes;
        self.tx.bell.ring_if_armed();
        true
    }

    /// Returns a batch after its bytes have been received.
    fn done(&mut self, batch: Batch, bytes: u64) {
        self.rx.give_back(batch);
        self.received_bytes += bytes;
        self.received.store(self.received_bytes, Ordering::Release);
    }
}

impl CipherPort for MemoryCipherPort {
    /// A batch without room is lost as a whole.
    fn send(&mut self, batch: &mut Batch) -> Sent {
        if batch.trains.is_empty() {
            return Sent::default();
        }
        let datagrams = batch.trains.iter().map(Train::datagrams).sum();
        let bytes = bytes_of(batch);
        let taken = self.put(batch, bytes);
        batch.trains.clear();
        if taken {
            Sent {
                datagrams,
                bytes,
                ..Sent::default()
            }
        } else {
            Sent {
                failed: datagrams,
                ..Sent::default()
            }
        }
    }

    fn recv(&mut self, batch: &mut Batch) -> io::Result<()> {
        batch.trains.clear();
        let mut used = 0;
        loop {
            let next = match self.partial.take() {
                Some(partial) => Some(partial),
                None => self.rx.full.pop().ok().map(|batch| (batch, 0)),
            };
            let Some((mut from, copied)) = next else {
                break;
            };
            let bytes = bytes_of(&from);
            // Only as the first of this call: an exchange would lose trains that are copied
            // already.
            if used == 0 && copied == 0 && from.buffer.len() == batch.buffer.len() {
                swap(batch, &mut from);
                self.done(from, bytes);
                return Ok(());
            }
            // A batch that can be exchanged is left for the next call.
            let exchange = from.buffer.len() == batch.buffer.len() && copied == 0;
            let now = if exchange {
                0
            } else {
                copy_trains(&from, copied, batch)
            };
            used += now;
            if copied + now < from.trains.len() {
                self.partial = Some((from, copied + now));
                break;
            }
            self.done(from, bytes);
        }
        if batch.trains.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    /// Batches of this length are exchanged, others copied.
    fn batch_bytes(&self) -> usize {
        MEMORY_BATCH_BYTES
    }

    fn train_max(&self) -> usize {
        64
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.rx.readable(self.partial.is_some()))
    }
}

fn bytes_of(batch: &Batch) -> u64 {
    batch.trains.iter().map(|train| train.bytes as u64).sum()
}

/// Copies trains behind those in `to` while there is room; returns how many. A train longer than a
/// whole buffer is truncated.
fn copy_trains(from: &Batch, first: usize, to: &mut Batch) -> usize {
    let mut copied = 0;
    for train in &from.trains[first..] {
        let start = to.trains.last().map_or(0, |last| last.start + last.bytes);
        let room = to.buffer.len() - start;
        if to.trains.is_full() || (train.bytes > room && start > 0) {
            break;
        }
        let bytes = train.bytes.min(room);
        let source = &from.buffer[train.start..train.start + bytes];
        to.buffer[start..start + bytes].copy_from_slice(source);
        to.trains.push(Train {
            start,
            bytes,
            ..*train
        });
        copied += 1;
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_readable;
    use std::time::Duration;

    /// Fills a batch with trains of 1000-byte datagrams that hold `number`.
    fn fill(batch: &mut Batch, number: u8, trains: usize) {
        batch.trains.clear();
        for start in (0..trains * 10_000).step_by(10_000) {
            batch.buffer[start..start + 10_000].fill(number);
            batch.trains.push(Train {
                start,
                bytes: 10_000,
                datagram_bytes: 1000,
                tos: number,
                ..Train::default()
            });
        }
    }

    #[test]
    fn buffers_of_the_links_own_length_are_exchanged() {
        let (mut a, mut b) = memory_cipher_pair();
        let (mut out, mut into) = (
            Batch::new(MEMORY_BATCH_BYTES),
            Batch::new(MEMORY_BATCH_BYTES),
        );
        fill(&mut out, 5, 3);
        let buffer = out.buffer.as_ptr();
        assert_eq!(a.send(&mut out).datagrams, 30);
        assert!(out.trains.is_empty());
        b.recv(&mut into).unwrap();
        assert_eq!(into.buffer.as_ptr(), buffer);
        assert!(into.datagrams().all(|datagram| datagram == [5; 1000]));
        assert_eq!((into.datagrams().count(), into.trains[2].tos), (30, 5));
    }

    #[test]
    fn buffers_of_other_lengths_are_copied_train_by_train() {
        for (out_bytes, into_bytes) in [
            (100_000, MEMORY_BATCH_BYTES),
            (MEMORY_BATCH_BYTES, 25_000),
            (100_000, 65_000),
        ] {
            let (mut a, mut b) = memory_cipher_pair();
            let (mut out, mut into) = (Batch::new(out_bytes), Batch::new(into_bytes));
            for number in 0..20 {
                fill(&mut out, number, 7);
                assert_eq!(a.send(&mut out).datagrams, 70);
            }
            let mut got = Vec::new();
            while b.recv(&mut into).is_ok() {
                assert!(!into.trains.is_empty());
                got.extend(
                    into.datagrams()
                        .map(|datagram| (datagram[0], datagram.len())),
                );
            }
            let sent = (0..20).flat_map(|number| std::iter::repeat_n((number, 1000), 70));
            assert_eq!(got, sent.collect::<Vec<_>>(), "{out_bytes} to {into_bytes}");
        }
    }

    #[test]
    fn batches_beyond_a_full_link_are_lost_and_counted() {
        let (mut a, mut b) = memory_cipher_pair();
        let (mut out, mut into) = (
            Batch::new(MEMORY_BATCH_BYTES),
            Batch::new(MEMORY_BATCH_BYTES),
        );
        let (mut sent, mut failed) = (0, 0);
        for _ in 0..500 {
            fill(&mut out, 1, 1);
            let result = a.send(&mut out);
            sent += result.datagrams;
            failed += result.failed;
        }
        // Limited by buffers, which run out before the bytes here.
        assert_eq!(
            (sent, failed),
            (10 * BATCHES as u64, 5000 - 10 * BATCHES as u64)
        );
        let mut received = 0;
        while b.recv(&mut into).is_ok() {
            received += into.datagrams().count() as u64;
        }
        assert_eq!(received, sent);
        // Limited by bytes.
        let mut sent = 0;
        for _ in 0..100 {
            fill(&mut out, 1, 26);
            sent += a.send(&mut out).bytes;
        }
        assert_eq!(sent, WAITING_BYTES_MAX / 260_000 * 260_000);
    }

    #[test]
    fn injected_datagrams_arrive_unchanged() {
        let (mut a, mut b) = memory_cipher_pair();
        let lengths = [100, 100, 40, 100, 0, 0, 100, 200, 200, 1];
        for (at, length) in lengths.into_iter().enumerate() {
            a.inject(&vec![at as u8; length]);
        }
        let mut batch = Batch::for_trains(1);
        b.recv(&mut batch).unwrap();
        let sent = lengths.into_iter().enumerate();
        let sent: Vec<_> = sent.map(|(at, length)| vec![at as u8; length]).collect();
        assert!(batch.datagrams().eq(sent.iter().map(Vec::as_slice)));
        assert_eq!(
            b.recv(&mut batch).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
    }

    #[test]
    fn batches_cross_threads_and_wake_a_waiting_reader() {
        const BATCHES: u64 = 3000;
        let (mut a, mut b) = memory_cipher_pair();
        let thread = std::thread::spawn(move || {
            let mut batch = Batch::new(MEMORY_BATCH_BYTES);
            let mut seen = 0;
            while seen < BATCHES {
                if b.recv(&mut batch).is_err() {
                    let fd = b.readable().unwrap();
                    assert!(wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap());
                    continue;
                }
                assert!(
                    batch
                        .datagrams()
                        .all(|datagram| datagram == [seen as u8; 1000])
                );
                seen += 1;
            }
        });
        let mut batch = Batch::new(MEMORY_BATCH_BYTES);
        for number in 0..BATCHES {
            loop {
                fill(&mut batch, number as u8, number as usize % 5 + 1);
                if a.send(&mut batch).failed == 0 {
                    break;
                }
                std::thread::yield_now();
            }
        }
        thread.join().unwrap();
    }
}

//! Ports joined in memory: the data path without kernel, privilege or clock.
//!
//! Each direction is a ring of bytes in which packets lie one behind the other, their length in front. A packet for
//! which there is no room is lost, as on a wire. No lock, no allocation after set-up.

use crate::bell::Bell;
use crate::{Batch, CLEAR_BUFFER_BYTES, CipherPort, ClearPort, Sent, TRAIN_BYTES_MAX, Train};
use rtrb::chunks::ChunkError;
use rtrb::{Consumer, CopyToUninit, Producer, RingBuffer};
use std::io;
use std::iter::once;
use std::mem::{MaybeUninit, take};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;

/// Bytes that wait in one direction at most: some tens of the longest packets, tens of thousands of the shortest.
const RING_BYTES: usize = 4 << 20;
/// The length in front of each packet.
const LENGTH_BYTES: usize = 4;

#[derive(Debug)]
struct Sending {
    ring: Producer<u8>,
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct Receiving {
    ring: Consumer<u8>,
    bell: Arc<Bell>,
}

fn direction() -> (Sending, Receiving) {
    let (sending, receiving) = RingBuffer::new(RING_BYTES);
    let bell = Arc::new(Bell::new());
    (
        Sending {
            ring: sending,
            bell: Arc::clone(&bell),
        },
        Receiving {
            ring: receiving,
            bell,
        },
    )
}

impl Sending {
    /// Puts a packet of `bytes` in from its pieces; `false` when it is lost. The reader sees it at once, but is woken
    /// by the bell.
    #[inline]
    fn put<'a>(&mut self, bytes: usize, pieces: impl Iterator<Item = &'a [u8]>) -> bool {
        let Ok(mut chunk) = self.ring.write_chunk_uninit(LENGTH_BYTES + bytes) else {
            return false;
        };
        let (front, back) = chunk.as_mut_slices();
        let mut room = Room { front, back };
        room.fill(&(bytes as u32).to_ne_bytes());
        pieces.for_each(|piece| room.fill(piece));
        assert!(room.is_full(), "the pieces are as long as said");
        // SAFETY: every byte of the chunk has been written, as just checked.
        unsafe { chunk.commit_all() };
        true
    }
}

/// What is left to write of a packet's place; it may lie across the ring's end.
struct Room<'a> {
    front: &'a mut [MaybeUninit<u8>],
    back: &'a mut [MaybeUninit<u8>],
}

impl Room<'_> {
    #[inline]
    fn fill(&mut self, mut piece: &[u8]) {
        if piece.len() > self.front.len() {
            let (before, after) = piece.split_at(self.front.len());
            before.copy_to_uninit(self.front);
            self.front = take(&mut self.back);
            piece = after;
        }
        let (now, later) = take(&mut self.front).split_at_mut(piece.len());
        piece.copy_to_uninit(now);
        self.front = later;
    }

    const fn is_full(&self) -> bool {
        self.front.is_empty() && self.back.is_empty()
    }
}

impl Receiving {
    /// Length of the next packet.
    #[inline]
    fn next_bytes(&mut self) -> Option<usize> {
        let chunk = self.ring.read_chunk(LENGTH_BYTES).ok()?;
        let (front, back) = chunk.as_slices();
        let mut length = [0; LENGTH_BYTES];
        length[..front.len()].copy_from_slice(front);
        length[front.len()..].copy_from_slice(back);
        Some(u32::from_ne_bytes(length) as usize)
    }

    /// Takes the next packet, `bytes` long, into `buffer`; what does not fit is cut off.
    #[inline]
    fn take(&mut self, bytes: usize, buffer: &mut [u8]) -> Result<usize, ChunkError> {
        let chunk = self.ring.read_chunk(LENGTH_BYTES + bytes)?;
        let (front, back) = chunk.as_slices();
        let kept = bytes.min(buffer.len());
        // The length may lie across the ring's end, like the packet.
        let skipped = LENGTH_BYTES.min(front.len());
        let (front, back) = (&front[skipped..], &back[LENGTH_BYTES - skipped..]);
        let (in_front, in_back) = buffer[..kept].split_at_mut(front.len().min(kept));
        in_front.copy_from_slice(&front[..in_front.len()]);
        in_back.copy_from_slice(&back[..in_back.len()]);
        chunk.commit_all();
        Ok(kept)
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.bell.arm(|| self.ring.is_empty())
    }
}

/// One end of a clear link in memory.
#[derive(Debug)]
pub struct MemoryClearPort {
    rx: Receiving,
    tx: Sending,
    joinable: Joinable,
}

/// Two clear ports; what one sends, the other receives.
///
/// # Panics
/// When the process is out of file descriptors.
#[must_use]
pub fn memory_clear_pair(joinable: Joinable) -> (MemoryClearPort, MemoryClearPort) {
    let ((to_one, from_other), (to_other, from_one)) = (direction(), direction());
    (
        MemoryClearPort {
            rx: from_other,
            tx: to_other,
            joinable,
        },
        MemoryClearPort {
            rx: from_one,
            tx: to_one,
            joinable,
        },
    )
}

impl ClearPort for MemoryClearPort {
    #[inline]
    fn recv<'a>(&'a mut self, buffer: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        let bytes = self.rx.next_bytes().ok_or(io::ErrorKind::WouldBlock)?;
        let taken = self
            .rx
            .take(bytes, &mut buffer[..CLEAR_BUFFER_BYTES])
            .map_err(|_| io::ErrorKind::WouldBlock)?;
        Ok((buffer, taken))
    }

    #[inline]
    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        let vnet = vnet.to_bytes();
        let pieces = [&vnet, headers].into_iter().chain(payload.iter().copied());
        let bytes = pieces.clone().map(<[u8]>::len).sum();
        if !self.tx.put(bytes, pieces) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.tx.bell.ring_if_armed();
        Ok(())
    }

    fn joinable(&self) -> Joinable {
        self.joinable
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.rx.readable())
    }
}

/// One end of a cipher link in memory.
#[derive(Debug)]
pub struct MemoryCipherPort {
    rx: Receiving,
    tx: Sending,
}

/// Two cipher ports; what one sends, the other receives.
///
/// # Panics
/// When the process is out of file descriptors.
#[must_use]
pub fn memory_cipher_pair() -> (MemoryCipherPort, MemoryCipherPort) {
    let ((to_one, from_other), (to_other, from_one)) = (direction(), direction());
    (
        MemoryCipherPort {
            rx: from_other,
            tx: to_other,
        },
        MemoryCipherPort {
            rx: from_one,
            tx: to_one,
        },
    )
}

impl MemoryCipherPort {
    /// Sends one datagram as it is, which an eavesdropper or attacker would do; it is lost when the link is full.
    pub fn inject(&mut self, datagram: &[u8]) {
        self.tx.put(datagram.len(), once(datagram));
        self.tx.bell.ring_if_armed();
    }

    /// Fills `buffer` with a train: datagrams of the first one's length, and a shorter one at the end. Length of
    /// both; `None` when there is nothing.
    fn take_train(&mut self, buffer: &mut [u8]) -> Option<(usize, usize)> {
        let datagram = self.rx.next_bytes()?;
        let mut used = self.rx.take(datagram, buffer).ok()?;
        let mut last = datagram;
        while let Some(next) = self.rx.next_bytes() {
            let fits = (1..=last).contains(&next) && last == datagram;
            if !fits || used + next > buffer.len() {
                break;
            }
            used += self.rx.take(next, &mut buffer[used..]).ok()?;
            last = next;
        }
        Some((used, datagram))
    }
}

impl CipherPort for MemoryCipherPort {
    fn send(&mut self, batch: &mut Batch) -> Sent {
        let mut sent = Sent::default();
        for datagram in batch.datagrams() {
            if self.tx.put(datagram.len(), once(datagram)) {
                sent.datagrams += 1;
                sent.bytes += datagram.len() as u64;
            } else {
                sent.failed += 1;
            }
        }
        batch.trains.clear();
        self.tx.bell.ring_if_armed();
        sent
    }

    fn recv(&mut self, batch: &mut Batch) -> io::Result<()> {
        batch.trains.clear();
        let mut start = 0;
        while !batch.trains.is_full() {
            let end = batch.buffer.len().min(start + TRAIN_BYTES_MAX);
            let Some((bytes, datagram_bytes)) = self.take_train(&mut batch.buffer[start..end])
            else {
                break;
            };
            batch.trains.push(Train {
                start,
                bytes,
                datagram_bytes,
                ..Train::default()
            });
            start += bytes;
        }
        if batch.trains.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    fn train_max(&self) -> usize {
        64
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.rx.readable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_readable;
    use std::time::Duration;

    const NONE: Joinable = Joinable {
        tcp: false,
        udp: false,
    };

    fn packet(number: usize) -> Vec<u8> {
        (0..number * 7919 % 65_000)
            .map(|at| (at + number) as u8)
            .collect()
    }

    #[test]
    fn packets_of_every_length_cross_the_ends_of_the_ring_unchanged() {
        const PACKETS: usize = 2000;
        let (mut a, mut b) = memory_clear_pair(NONE);
        let mut buffer = vec![0; crate::CLEAR_BUFFER_BYTES];
        let mut seen = 0;
        for number in 0..PACKETS {
            let bytes = packet(number);
            let (headers, payload) = bytes.split_at(bytes.len() / 3);
            let (one, two) = payload.split_at(payload.len() / 2);
            a.send(&VnetHeader::PLAIN, headers, &[one, two]).unwrap();
            // The reader is some packets behind, so that the ring's ends fall everywhere.
            if number >= 20 || number + 1 == PACKETS {
                let bytes = b.recv(&mut buffer).unwrap();
                assert_eq!(buffer[10..bytes], packet(seen));
                seen += 1;
            }
        }
        assert_eq!(seen, PACKETS - 20);
    }

    #[test]
    fn what_a_full_link_cannot_take_is_lost_and_counted() {
        let (mut a, mut b) = memory_cipher_pair();
        let buffer = vec![7; 60_000];
        let train = Train {
            start: 0,
            bytes: 60_000,
            datagram_bytes: 1000,
        };
        let (mut sent, mut failed) = (0, 0);
        for _ in 0..100 {
            let result = a.send(&buffer, &[train]);
            sent += result.datagrams;
            failed += result.failed;
        }
        assert_eq!(sent as usize, RING_BYTES / 1004);
        assert_eq!(sent + failed, 6000);
        let mut batch = Batch::new(4);
        let mut received = 0;
        while b.recv(&mut batch).is_ok() {
            received += batch.datagrams().count() as u64;
        }
        assert_eq!(received, sent);
    }

    #[test]
    fn datagrams_arrive_as_they_were_whatever_train_they_come_in() {
        let (mut a, mut b) = memory_cipher_pair();
        let lengths = [100, 100, 40, 100, 0, 0, 100, 200, 200, 1];
        for (at, length) in lengths.into_iter().enumerate() {
            a.inject(&vec![at as u8; length]);
        }
        let mut batch = Batch::new(64);
        b.recv(&mut batch).unwrap();
        let got: Vec<_> = batch
            .datagrams()
            .map(|datagram| datagram.to_vec())
            .collect();
        let sent = lengths.into_iter().enumerate();
        assert_eq!(
            got,
            sent.map(|(at, length)| vec![at as u8; length])
                .collect::<Vec<_>>()
        );
        assert_eq!(
            b.recv(&mut batch).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
    }

    #[test]
    fn a_reader_that_waits_is_woken() {
        const PACKETS: u32 = 2000;
        let (mut a, mut b) = memory_clear_pair(NONE);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 2000];
            let mut next = 0u32;
            while next < PACKETS {
                match b.recv(&mut buffer) {
                    Ok(bytes) => {
                        assert_eq!(buffer[10..bytes], next.to_be_bytes());
                        next += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                        let fd = b.readable().unwrap();
                        assert!(wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap());
                    }
                }
            }
        });
        for number in 0..PACKETS {
            a.send(&VnetHeader::PLAIN, &number.to_be_bytes(), &[])
                .unwrap();
            if number % 3 == 0 {
                std::thread::yield_now();
            }
        }
        thread.join().unwrap();
    }
}

//! Clear ports in memory: `send` copies a packet once, into a buffer that `recv` lends.

use super::{Receiving, Sending, direction};
use crate::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort};
use std::io;
use std::os::fd::BorrowedFd;
use wire::coalesce::Joinable;
use wire::vnet::{VNET_HEADER_BYTES, VnetHeader};

/// The two buffer lengths, and the number of each per direction: for packets of an Ethernet link,
/// and for super-packets. An odd number of cache lines each, so that buffers share no cache set.
const KINDS: [(usize, usize); 2] = [
    (37 * 64, 2048),
    (
        (CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES).next_multiple_of(128) + 64,
        64,
    ),
];

#[derive(Debug)]
struct Slot {
    bytes: Box<[u8]>,
    length: usize,
}

/// One end of a clear link in memory.
#[derive(Debug)]
pub struct MemoryClearPort {
    rx: Receiving<Slot>,
    /// The buffer lent last.
    lent: Option<Slot>,
    tx: Sending<Slot>,
    /// Free buffers of each length, the most recently used on top.
    spare: [Vec<Slot>; 2],
    joinable: Joinable,
}

/// Two clear ports; what one sends, the other receives.
///
/// # Panics
/// When the process is out of file descriptors.
#[must_use]
pub fn memory_clear_pair(joinable: Joinable) -> (MemoryClearPort, MemoryClearPort) {
    let capacity = KINDS.iter().map(|(_, count)| count).sum();
    let (to_one, from_other) = direction(capacity);
    let (to_other, from_one) = direction(capacity);
    let end = |rx, tx| MemoryClearPort {
        rx,
        lent: None,
        tx,
        spare: KINDS.map(|(bytes, count)| {
            let slot = || Slot {
                bytes: vec![0; bytes].into_boxed_slice(),
                length: 0,
            };
            std::iter::repeat_with(slot).take(count).collect()
        }),
        joinable,
    };
    (end(from_other, to_other), end(from_one, to_one))
}

impl MemoryClearPort {
    /// A free buffer for a packet of `bytes`; `None` when the link is full.
    #[inline]
    fn slot(&mut self, bytes: usize) -> Option<Slot> {
        while let Ok(slot) = self.tx.free.pop() {
            self.spare[usize::from(slot.bytes.len() > KINDS[0].0)].push(slot);
        }
        let [short, long] = &mut self.spare;
        if bytes + CLEAR_ROOM_BYTES > KINDS[0].0 {
            return long.pop();
        }
        short.pop()
    }
}

impl ClearPort for MemoryClearPort {
    /// Lends the buffer that contains the packet.
    #[inline]
    fn recv<'a>(&'a mut self, _: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        if let Some(slot) = self.lent.take() {
            self.rx.give_back(slot);
        }
        let slot = self.rx.full.pop().map_err(|_| io::ErrorKind::WouldBlock)?;
        let slot = self.lent.insert(slot);
        Ok((&mut slot.bytes, slot.length))
    }

    /// A packet without room is lost, with [`io::ErrorKind::StorageFull`].
    #[inline]
    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        let parts = payload.iter().map(|part| part.len()).sum::<usize>();
        let length = VNET_HEADER_BYTES + headers.len() + parts;
        if length > CLEAR_BUFFER_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut slot = self.slot(length).ok_or(io::ErrorKind::StorageFull)?;
        slot.length = length;
        let mut room = &mut slot.bytes[..length];
        let vnet = vnet.to_bytes();
        for piece in [&vnet, headers].iter().chain(payload) {
            let (now, later) = room.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            room = later;
        }
        // The ring has a place for every buffer.
        self.tx
            .full
            .push(slot)
            .map_err(|_| io::ErrorKind::StorageFull)?;
        self.tx.bell.ring_if_armed();
        Ok(())
    }

    fn joinable(&self) -> Joinable {
        self.joinable
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.rx.readable(false))
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
        (0..number * 7919 % 65_535)
            .map(|at| (at + number) as u8)
            .collect()
    }

    #[test]
    fn packets_of_every_length_cross_unchanged_and_are_lent_with_room_behind() {
        const PACKETS: usize = 2000;
        let (mut a, mut b) = memory_clear_pair(NONE);
        let mut seen = 0;
        for number in 0..PACKETS {
            let bytes = packet(number);
            let (headers, payload) = bytes.split_at(bytes.len() / 3);
            let (one, two) = payload.split_at(payload.len() / 2);
            a.send(&VnetHeader::PLAIN, headers, &[one, two]).unwrap();
            // The reader is some packets behind.
            if number >= 20 {
                let (lent, bytes) = b.recv(&mut []).unwrap();
                assert_eq!(lent[10..bytes], packet(seen));
                lent[bytes..bytes + CLEAR_ROOM_BYTES].fill(0xee);
                seen += 1;
            }
        }
        assert_eq!(seen, PACKETS - 20);
    }

    #[test]
    fn a_full_link_loses_what_comes_and_takes_more_once_it_is_read() {
        let (mut a, mut b) = memory_clear_pair(NONE);
        for (bytes, capacity) in [(100, KINDS[0].1), (60_000, KINDS[1].1)] {
            let packet = vec![7; bytes];
            let mut send = || a.send(&VnetHeader::PLAIN, &packet, &[]);
            (0..capacity).for_each(|_| send().unwrap());
            assert_eq!(send().unwrap_err().kind(), io::ErrorKind::StorageFull);
            b.recv(&mut []).unwrap();
            assert_eq!(
                send().unwrap_err().kind(),
                io::ErrorKind::StorageFull,
                "it is lent"
            );
            for _ in 1..capacity {
                b.recv(&mut []).unwrap();
            }
            assert!(b.recv(&mut []).is_err());
            send().unwrap();
            b.recv(&mut []).unwrap();
        }
    }

    #[test]
    fn a_reader_that_waits_is_woken() {
        const PACKETS: u32 = 2000;
        let (mut a, mut b) = memory_clear_pair(NONE);
        let thread = std::thread::spawn(move || {
            let mut next = 0u32;
            while next < PACKETS {
                match b.recv(&mut []) {
                    Ok((lent, bytes)) => {
                        assert_eq!(lent[10..bytes], next.to_be_bytes());
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

//! Faults in front of a clear port.

use super::{FaultCounts, Faults, Network};
use crate::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort};
use std::io;
use std::os::fd::BorrowedFd;
use wire::coalesce::Joinable;
use wire::vnet::{VNET_HEADER_BYTES, VnetHeader};

/// Packets read from the inner port in one call, so that they can be reordered.
const WINDOW: usize = 16;

/// A clear port behind a bad network. Virtio headers are unchanged: they are never on a wire.
#[derive(Debug)]
pub struct FaultyClear<P> {
    inner: P,
    network: Network,
    buffer: Box<[u8]>,
}

impl<P: ClearPort> FaultyClear<P> {
    /// Puts `faults` in front of a port.
    ///
    /// # Panics
    /// When the process is out of file descriptors.
    #[must_use]
    pub fn new(inner: P, faults: Faults) -> Self {
        Self {
            inner,
            network: Network::new(faults),
            buffer: vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES].into_boxed_slice(),
        }
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> FaultCounts {
        self.network.counts
    }

    /// Number of packets in transit.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.network.held.len()
    }

    /// The inner port.
    pub const fn inner_mut(&mut self) -> &mut P {
        &mut self.inner
    }
}

impl<P: ClearPort> ClearPort for FaultyClear<P> {
    fn recv<'a>(&'a mut self, buffer: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        self.network.call += 1;
        while self.network.held.len() < WINDOW {
            match self.inner.recv(&mut self.buffer) {
                Ok((packet, bytes)) => self.network.take(&packet[..bytes], VNET_HEADER_BYTES, 0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let next = self.network.next(|_| true);
        let next = next.ok_or(io::ErrorKind::WouldBlock)?;
        buffer[..next.bytes.len()].copy_from_slice(&next.bytes);
        Ok((buffer, next.bytes.len()))
    }

    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        self.inner.send(vnet, headers, payload)
    }

    fn flush(&mut self) -> io::Result<u64> {
        self.inner.flush()
    }

    fn missed(&self) -> u64 {
        self.inner.missed()
    }

    fn joinable(&self) -> Joinable {
        self.inner.joinable()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.network.readable(self.inner.readable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_clear_pair;

    #[test]
    fn packets_meet_every_fault_and_are_all_accounted_for() {
        const PACKETS: u64 = 1500;
        let none = Joinable {
            tcp: false,
            udp: false,
        };
        let (mut a, b) = memory_clear_pair(none);
        let faults = Faults {
            seed: 3,
            loss: 0.1,
            duplicate: 0.1,
            corrupt: 0.1,
            truncate: 0.1,
            reorder: 0.1,
            delay: 0.1,
            delay_batches: 4,
        };
        let mut port = FaultyClear::new(b, faults);
        for number in 0..PACKETS {
            a.send(&VnetHeader::PLAIN, &number.to_be_bytes(), &[&[1; 100]])
                .unwrap();
        }
        let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
        let (mut got, mut whole) = (0, 0);
        while port.counts().received < PACKETS || port.held() > 0 {
            let Ok((packet, bytes)) = port.recv(&mut buffer) else {
                continue;
            };
            assert_eq!(packet[..10], VnetHeader::PLAIN.to_bytes());
            got += 1;
            whole += u64::from(bytes == 118 && packet[18..bytes] == [1; 100]);
        }
        let counts = port.counts();
        assert_eq!(counts.delivered, got);
        assert_eq!(PACKETS + counts.duplicated, got + counts.lost);
        for count in [
            counts.lost,
            counts.duplicated,
            counts.corrupted,
            counts.truncated,
            counts.delayed,
            counts.reordered,
        ] {
            assert!(count > 50 && count < 600, "{counts:?}");
        }
        assert!(whole > got / 2 && whole < got, "{whole} of {got} are whole");
    }
}

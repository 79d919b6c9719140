//! A cipher port with faults: simulates a bad or hostile network on the receive side.
//!
//! The wrapper changes what its port *receives*; sent packets are unchanged. Wrappers compose, and
//! the same seed has the same effect on the same input. There is no clock: delays are counted in
//! calls of `recv`. They allocate.

use port::{Batch, CipherPort, Sent, Stop, TRAIN_BYTES_MAX, Train};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Faults, each with an independent probability from 0 to 1 per packet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Faults {
    /// Seed of the random numbers.
    pub(crate) seed: u64,
    /// It is lost.
    pub(crate) loss: f64,
    /// It is duplicated.
    pub(crate) duplicate: f64,
    /// One of its bits is flipped.
    pub(crate) corrupt: f64,
    /// It is truncated: at any byte, or before the first.
    pub(crate) truncate: f64,
    /// It is overtaken by some later packets.
    pub(crate) reorder: f64,
    /// It is delayed by some calls of `recv`.
    pub(crate) delay: f64,
    /// Maximum number of calls; at least 1.
    pub(crate) delay_batches: u64,
}

/// Counts so far. Every packet received is delivered, held, or lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FaultCounts {
    /// Packets received from the inner port.
    pub(crate) received: u64,
    /// Packets delivered.
    pub(crate) delivered: u64,
    /// Packets lost.
    pub(crate) lost: u64,
    /// Copies made.
    pub(crate) duplicated: u64,
    /// Packets with a flipped bit; a copy has the same fault as its original.
    pub(crate) corrupted: u64,
    /// Packets cut short.
    pub(crate) truncated: u64,
    /// Packets delayed.
    pub(crate) delayed: u64,
    /// Packets delivered after one that arrived later (RFC 4737 §3).
    pub(crate) reordered: u64,
}

/// A packet in transit.
#[derive(Debug, Clone)]
struct FramesInTransit {
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
    held: Vec<FramesInTransit>,
    call: u64,
    /// One more than the highest number delivered.
    next_expected: u64,
    counts: FaultCounts,
    /// Always readable: for a reader that would wait while packets are held.
    ready: Stop,
}

/// Maximum number of places that a reordered packet falls back.
const PLACES_MAX: u64 = 8;

impl Network {
    fn new(faults: Faults) -> Self {
        let ready = Stop::new().expect("a descriptor for a network");
        ready.raise();
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

    /// Adds a packet.
    fn take(&mut self, bytes: &[u8], tos: u8) {
        let number = self.counts.received;
        self.counts.received += 1;
        if self.happens(self.faults.loss) {
            self.counts.lost += 1;
            return;
        }
        let mut held = FramesInTransit {
            due: (self.call, number),
            number,
            bytes: bytes.to_vec(),
            tos,
        };
        if self.happens(self.faults.truncate) && !bytes.is_empty() {
            let end = self.below(bytes.len() as u64);
            held.bytes.truncate(end as usize);
            self.counts.truncated += 1;
        }
        if self.happens(self.faults.corrupt) && !held.bytes.is_empty() {
            let at = self.below(held.bytes.len() as u64);
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
    fn hold(&mut self, mut held: FramesInTransit) {
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
    fn next(&mut self, fits: impl FnOnce(&FramesInTransit) -> bool) -> Option<FramesInTransit> {
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

/// A cipher port behind a bad network.
#[derive(Debug)]
pub(crate) struct FaultyCipher<P> {
    inner: P,
    network: Network,
    batch: Batch,
}

impl<P: CipherPort> FaultyCipher<P> {
    /// Puts `faults` in front of a port.
    ///
    /// # Panics
    /// When the process is out of file descriptors.
    #[must_use]
    pub(crate) fn new(inner: P, faults: Faults) -> Self {
        Self {
            inner,
            network: Network::new(faults),
            batch: Batch::for_trains(4),
        }
    }

    /// The counts so far.
    #[must_use]
    pub(crate) const fn counts(&self) -> FaultCounts {
        self.network.counts
    }

    /// Number of datagrams in transit.
    #[must_use]
    pub(crate) const fn held(&self) -> usize {
        self.network.held.len()
    }

    /// The inner port.
    pub(crate) const fn inner_mut(&mut self) -> &mut P {
        &mut self.inner
    }
}

impl<P: CipherPort> CipherPort for FaultyCipher<P> {
    fn send(&mut self, batch: &mut Batch) -> Sent {
        self.inner.send(batch)
    }

    fn recv(&mut self, batch: &mut Batch) -> io::Result<()> {
        batch.trains.clear();
        self.network.call += 1;
        match self.inner.recv(&mut self.batch) {
            Ok(()) => {
                for train in &*self.batch.trains {
                    for range in train.ranges() {
                        self.network.take(&self.batch.buffer[range], train.tos);
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let mut used = 0;
        let length = batch.buffer.len();
        while !batch.trains.is_full() {
            let fits = |next: &FramesInTransit| used + next.bytes.len() <= length;
            let Some(next) = self.network.next(fits) else {
                break;
            };
            let end = used + next.bytes.len();
            batch.buffer[used..end].copy_from_slice(&next.bytes);
            append(batch, used, next.bytes.len(), next.tos);
            used = end;
        }
        if batch.trains.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    fn train_max(&self) -> usize {
        self.inner.train_max()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.network.readable(self.inner.readable())
    }
}

/// Appends a datagram to the last train if it may follow there, as the kernel does, or starts one.
fn append(batch: &mut Batch, start: usize, bytes: usize, tos: u8) {
    if let Some(last) = batch.trains.last_mut() {
        let even = last.bytes % last.datagram_bytes.max(1) == 0;
        let follows = even && (1..=last.datagram_bytes).contains(&bytes);
        if follows && last.tos == tos && last.bytes + bytes <= TRAIN_BYTES_MAX {
            last.bytes += bytes;
            return;
        }
    }
    batch.trains.push(Train {
        start,
        bytes,
        datagram_bytes: bytes,
        tos,
        ..Train::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::{MemoryCipherPort, memory_cipher_pair, wait_readable};
    use std::time::Duration;

    const DATAGRAMS: u16 = 2000;

    /// Each datagram contains its number, and bytes derived from it.
    fn datagram(number: u16) -> Vec<u8> {
        let mut datagram = vec![number as u8; 50 + usize::from(number / 100)];
        datagram[..2].copy_from_slice(&number.to_be_bytes());
        datagram
    }

    /// The datagrams that arrive, of all those sent ten at a time.
    fn run(faults: Faults) -> (Vec<Vec<u8>>, FaultCounts) {
        let (mut a, b) = memory_cipher_pair();
        let mut port = FaultyCipher::new(b, faults);
        let mut batch = Batch::for_trains(1);
        let mut got: Vec<Vec<u8>> = Vec::new();
        for number in 0..DATAGRAMS {
            a.inject(&datagram(number));
            if number % 10 == 9 && port.recv(&mut batch).is_ok() {
                got.extend(batch.datagrams().map(<[u8]>::to_vec));
            }
        }
        while port.held() > 0 {
            let fd = port.readable().unwrap();
            assert!(wait_readable(&[fd], Some(Duration::ZERO)).unwrap());
            if port.recv(&mut batch).is_ok() {
                got.extend(batch.datagrams().map(<[u8]>::to_vec));
            }
        }
        let counts = port.counts();
        assert_eq!(counts.received, u64::from(DATAGRAMS));
        assert_eq!(counts.delivered, got.len() as u64);
        assert_eq!(
            counts.received + counts.duplicated,
            counts.delivered + counts.lost
        );
        (got, counts)
    }

    fn about(count: u64, expected: f64) -> bool {
        (count as f64 - expected).abs() < 5.0 * expected.sqrt()
    }

    #[test]
    fn without_faults_all_packets_arrive_unchanged() {
        let (got, counts) = run(Faults::default());
        assert!(got.into_iter().eq((0..DATAGRAMS).map(datagram)));
        let nothing_done = FaultCounts {
            received: DATAGRAMS.into(),
            delivered: DATAGRAMS.into(),
            ..FaultCounts::default()
        };
        assert_eq!(counts, nothing_done);
    }

    #[test]
    fn each_fault_has_its_effect_at_its_rate() {
        let seed = 7;
        let all = f64::from(DATAGRAMS);
        let intact = |got: &[Vec<u8>]| {
            got.iter()
                .all(|one| *one == datagram(u16::from_be_bytes([one[0], one[1]])))
        };

        let (got, counts) = run(Faults {
            seed,
            loss: 0.1,
            ..Faults::default()
        });
        assert!(intact(&got) && about(counts.lost, 0.1 * all), "{counts:?}");

        let (got, counts) = run(Faults {
            seed,
            duplicate: 0.1,
            ..Faults::default()
        });
        assert!(
            intact(&got) && about(counts.duplicated, 0.1 * all),
            "{counts:?}"
        );

        let (got, counts) = run(Faults {
            seed,
            corrupt: 0.1,
            ..Faults::default()
        });
        let flipped = |(one, number): (&Vec<u8>, u16)| {
            let pairs = one.iter().zip(datagram(number));
            pairs.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
        };
        let flips: Vec<u32> = got.iter().zip(0..).map(flipped).collect();
        assert_eq!(flips.iter().sum::<u32>() as u64, counts.corrupted);
        assert!(flips.iter().all(|flips| *flips < 2) && about(counts.corrupted, 0.1 * all));

        let (got, counts) = run(Faults {
            seed,
            truncate: 0.1,
            ..Faults::default()
        });
        let short = got
            .iter()
            .zip(0..)
            .filter(|(one, number)| one.len() < datagram(*number).len());
        assert_eq!(short.count() as u64, counts.truncated);
        assert!(about(counts.truncated, 0.1 * all), "{counts:?}");

        let (got, counts) = run(Faults {
            seed,
            reorder: 0.1,
            ..Faults::default()
        });
        assert!(intact(&got) && got.len() == usize::from(DATAGRAMS));
        assert!(counts.reordered > DATAGRAMS as u64 / 30, "{counts:?}");

        let delay = Faults {
            seed,
            delay: 0.1,
            delay_batches: 20,
            ..Faults::default()
        };
        let (got, counts) = run(delay);
        assert!(intact(&got) && got.len() == usize::from(DATAGRAMS));
        assert!(
            about(counts.delayed, 0.1 * all) && counts.reordered > 100,
            "{counts:?}"
        );
    }

    #[test]
    fn equal_seeds_have_equal_effects_and_others_differ() {
        let faults = |seed| Faults {
            seed,
            loss: 0.05,
            duplicate: 0.05,
            corrupt: 0.05,
            truncate: 0.05,
            reorder: 0.2,
            delay: 0.05,
            delay_batches: 5,
        };
        assert_eq!(run(faults(1)), run(faults(1)));
        assert_ne!(run(faults(1)).0, run(faults(2)).0);
    }

    #[test]
    fn wrappers_compose() {
        let (mut a, b) = memory_cipher_pair();
        let twice = Faults {
            duplicate: 1.0,
            ..Faults::default()
        };
        let inner: FaultyCipher<MemoryCipherPort> = FaultyCipher::new(b, twice);
        let mut port = FaultyCipher::new(inner, twice);
        a.inject(b"four");
        let mut batch = Batch::for_trains(1);
        port.recv(&mut batch).unwrap();
        assert!(batch.datagrams().eq([b"four"; 4]));
        assert_eq!(port.inner_mut().counts().duplicated, 1);
        assert_eq!(port.counts().duplicated, 2);
    }
}

//! Workloads for measuring engines.

use std::time::{Duration, Instant};

use engine::{EngineFailed, Packet, Transform};
use wire::Suite;
use wire::overhead::{ESP_HEADER_BYTES, esp_bytes};

use crate::curve::{Direction, Load};

/// Maximum packets of a round: more would not change the cache hits of the shortest packets.
const ROUND_PACKETS_MAX: usize = 256;

/// Batches of ESP packets of one length that an engine seals and opens repeatedly.
///
/// Batches are used in rotation. Packets are contiguous, as in a train.
pub struct Workload {
    suite: Suite,
    inner_bytes: usize,
    batch: usize,
    buffer: Vec<u8>,
    packets: Vec<Packet>,
    authentic: Vec<bool>,
    /// Plaintexts of the packets, for sealing from a separate text.
    texts: Vec<u8>,
}

impl Workload {
    /// Makes ESP packets for inner packets of `inner_bytes`, `batch` of them in each batch. A round
    /// has about `round_bytes`, and at least one batch.
    ///
    /// # Panics
    /// If `batch` is 0.
    #[must_use]
    pub fn new(suite: Suite, inner_bytes: usize, batch: usize, round_bytes: usize) -> Self {
        assert!(batch > 0, "a batch has packets");
        let bytes = esp_bytes(suite, inner_bytes);
        let packets = (round_bytes / bytes).clamp(1, ROUND_PACKETS_MAX);
        // Whole batches only: a shorter one at the end would cost more per packet.
        let packets = packets.next_multiple_of(batch);
        let text_bytes = bytes - prefix_bytes(suite) - suite.icv_bytes();
        let mut workload = Self {
            suite,
            inner_bytes,
            batch,
            buffer: (0..packets * bytes).map(|at| at as u8).collect(),
            packets: (0..packets)
                .map(|index| Packet {
                    at: index * bytes,
                    bytes,
                    sequence_high: 0,
                })
                .collect(),
            authentic: vec![false; batch],
            texts: (0..packets * text_bytes).map(|at| at as u8).collect(),
        };
        workload.put_prefixes();
        workload
    }

    /// Writes SPI, and a distinct sequence number and IV to each packet.
    fn put_prefixes(&mut self) {
        for (packet, sequence) in self.packets.iter().zip(1u64..) {
            let prefix = &mut self.buffer[packet.at..][..prefix_bytes(self.suite)];
            prefix[..4].copy_from_slice(&0xc1bu32.to_be_bytes());
            let sequence = sequence.to_be_bytes();
            prefix[4..8].copy_from_slice(&sequence[4..]);
            // IVs have 0 to 16 bytes: the number is cut, or followed by the bytes of the buffer.
            for (byte, value) in prefix[8..].iter_mut().zip(sequence) {
                *byte = value;
            }
        }
    }

    /// Returns the load of one batch.
    #[must_use]
    pub fn load(&self) -> Load {
        Load::of(&self.packets[..self.batch])
    }

    /// Returns the number of packets in a round.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Returns the total length of the inner packets in a round, in bytes.
    #[must_use]
    pub fn inner_bytes(&self) -> usize {
        self.inner_bytes * self.packets.len()
    }

    /// Runs a round in this direction: every batch once. Returns its duration. Packets to open are
    /// sealed first, which is not timed.
    ///
    /// # Errors
    /// [`EngineFailed`].
    ///
    /// # Panics
    /// If the engine does not open what it has sealed.
    pub fn round(
        &mut self,
        transform: &mut dyn Transform,
        direction: Direction,
    ) -> Result<Duration, EngineFailed> {
        match direction {
            Direction::Seal => self.seal(transform),
            Direction::SealFrom => self.seal_from(transform),
            Direction::Open => {
                // Opening replaces the ciphertext, so each round needs sealed packets again.
                self.seal(transform)?;
                self.open(transform)
            }
        }
    }

    pub(crate) fn seal(&mut self, transform: &mut dyn Transform) -> Result<Duration, EngineFailed> {
        // One reading of the clock per round: it takes as long as a part of a short packet.
        let start = Instant::now();
        for batch in self.packets.chunks(self.batch) {
            transform.seal(&mut self.buffer, batch)?;
        }
        Ok(start.elapsed())
    }

    /// Opens the packets that were just sealed.
    pub(crate) fn open(&mut self, transform: &mut dyn Transform) -> Result<Duration, EngineFailed> {
        let mut all_authentic = true;
        let start = Instant::now();
        for batch in self.packets.chunks(self.batch) {
            transform.open(&mut self.buffer, batch, &mut self.authentic)?;
            // Looks at each verdict within the timed part, as a lane does.
            all_authentic &= self.authentic.iter().all(|&authentic| authentic);
        }
        let elapsed = start.elapsed();
        // The engine has passed its known answers.
        assert!(all_authentic, "{} opens what was sealed", self.suite);
        Ok(elapsed)
    }

    fn seal_from(&mut self, transform: &mut dyn Transform) -> Result<Duration, EngineFailed> {
        let texts = self
            .texts
            .chunks_exact(self.texts.len() / self.packets.len());
        let start = Instant::now();
        for (packet, text) in self.packets.iter().zip(texts) {
            let sealed = &mut self.buffer[packet.at..packet.at + packet.bytes];
            transform.seal_from(packet.sequence_high, text, sealed)?;
        }
        Ok(start.elapsed())
    }
}

/// Length of ESP header and IV.
const fn prefix_bytes(suite: Suite) -> usize {
    ESP_HEADER_BYTES + suite.iv_bytes()
}

/// Returns keying material for measurements; no SA uses it.
#[must_use]
pub fn keymat(suite: Suite) -> Vec<u8> {
    let byte = |index: usize| (index as u8).wrapping_mul(37).wrapping_add(11);
    (0..suite.keymat_bytes()).map(byte).collect()
}

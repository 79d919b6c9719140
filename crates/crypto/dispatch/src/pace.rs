//! Packets to measure engines with.

use std::time::{Duration, Instant};

use engine::{EngineFailed, Packet, Transform};
use wire::Suite;
use wire::overhead::{ESP_HEADER_BYTES, esp_bytes};

use crate::curve::{Direction, Load};

/// Packets of a round, at most: with more, the shortest would be no less in the caches.
const ROUND_PACKETS_MAX: usize = 256;

/// Batches of ESP packets, all of one length, that an engine seals and opens again and again.
///
/// Buffers rotate: no batch is taken twice before all others. Packets lie one behind the other, as
/// in a train.
pub struct Workload {
    suite: Suite,
    inner_bytes: usize,
    batch: usize,
    buffer: Vec<u8>,
    packets: Vec<Packet>,
    authentic: Vec<bool>,
    /// Plaintext of one packet after the other, for sealing from elsewhere.
    texts: Vec<u8>,
}

impl Workload {
    /// Packets that carry inner packets of `inner_bytes`, `batch` of them in each batch. A round
    /// goes through about `round_bytes`, and one batch at least.
    ///
    /// # Panics
    /// If `batch` is 0.
    #[must_use]
    pub fn new(suite: Suite, inner_bytes: usize, batch: usize, round_bytes: usize) -> Self {
        assert!(batch > 0, "a batch has packets");
        let bytes = esp_bytes(suite, inner_bytes);
        let packets = (round_bytes / bytes).clamp(1, ROUND_PACKETS_MAX);
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

    /// SPI, sequence numbers and IVs, each of its own.
    fn put_prefixes(&mut self) {
        for (packet, sequence) in self.packets.iter().zip(1u64..) {
            let prefix = &mut self.buffer[packet.at..][..prefix_bytes(self.suite)];
            prefix[..4].copy_from_slice(&0xc1bu32.to_be_bytes());
            let sequence = sequence.to_be_bytes();
            prefix[4..8].copy_from_slice(&sequence[4..]);
            for (byte, value) in prefix[8..].iter_mut().zip(sequence) {
                *byte = value;
            }
        }
    }

    /// What one batch is.
    #[must_use]
    pub fn load(&self) -> Load {
        Load::of(&self.packets[..self.batch])
    }

    /// Packets in a round.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Length of the inner packets in a round together, in bytes.
    #[must_use]
    pub fn inner_bytes(&self) -> usize {
        self.inner_bytes * self.packets.len()
    }

    /// A round in that direction: every batch once. Returns what it took. What is opened was sealed
    /// before, in time that is not counted.
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
                self.seal(transform)?;
                self.open(transform)
            }
        }
    }

    pub(crate) fn seal(&mut self, transform: &mut dyn Transform) -> Result<Duration, EngineFailed> {
        let start = Instant::now();
        for batch in self.packets.chunks(self.batch) {
            transform.seal(&mut self.buffer, batch)?;
        }
        Ok(start.elapsed())
    }

    /// Opens what has just been sealed.
    pub(crate) fn open(&mut self, transform: &mut dyn Transform) -> Result<Duration, EngineFailed> {
        let mut all_authentic = true;
        let start = Instant::now();
        for batch in self.packets.chunks(self.batch) {
            transform.open(&mut self.buffer, batch, &mut self.authentic)?;
            all_authentic &= self.authentic.iter().all(|&authentic| authentic);
        }
        let elapsed = start.elapsed();
        // It has given its known answers.
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

/// ESP header and IV.
const fn prefix_bytes(suite: Suite) -> usize {
    ESP_HEADER_BYTES + suite.iv_bytes()
}

/// Keying material to measure with; no SA ever has it.
#[must_use]
pub fn keymat(suite: Suite) -> Vec<u8> {
    let byte = |index: usize| (index as u8).wrapping_mul(37).wrapping_add(11);
    (0..suite.keymat_bytes()).map(byte).collect()
}

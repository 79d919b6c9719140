//! Counters: every packet in is a packet out or exactly one drop reason.
//!
//! A worker counts in its own [`Tally`], plain numbers, and publishes it once a batch with relaxed stores: one
//! writer, any reader, no read-modify-write on the packet path.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a packet was dropped. Each dropped packet has exactly one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// Clear side: not a whole IP packet, or in contradiction to its virtio header.
    Malformed,
    /// Clear side: the ESP packet would not fit the path's MTU.
    TooBig,
    /// Clear side: the outbound SA has no sequence numbers left.
    SequenceExhausted,
    /// Clear side: the kernel did not take the datagram (no buffers, no route).
    SendFailed,
    /// Cipher side: a NAT keepalive (RFC 3948 §2.3).
    Keepalive,
    /// Cipher side: too short for ESP, or not ESP.
    Runt,
    /// Cipher side: no SA with this SPI.
    NoSa,
    /// Cipher side: the sequence number was seen before.
    Replayed,
    /// Cipher side: the sequence number is left of the replay window.
    TooOld,
    /// Cipher side: the integrity check failed.
    IntegrityFailed,
    /// Cipher side: authentic, but its trailer is wrong.
    BadTrailer,
    /// Cipher side: a dummy packet (RFC 4303 §2.6).
    Dummy,
    /// Cipher side: authentic, but not an IP packet.
    NotIp,
    /// Cipher side: the inner source address is not of a network behind the peer (RFC 4301 §5.2).
    Policy,
    /// Cipher side: the clear port did not take it.
    WriteFailed,
    /// Cipher side: the crypto engine failed, and there was no other.
    EngineFailed,
}

impl DropReason {
    /// All reasons, in the order of [`Tally::dropped`].
    pub const ALL: [Self; 16] = [
        Self::Malformed,
        Self::TooBig,
        Self::SequenceExhausted,
        Self::SendFailed,
        Self::Keepalive,
        Self::Runt,
        Self::NoSa,
        Self::Replayed,
        Self::TooOld,
        Self::IntegrityFailed,
        Self::BadTrailer,
        Self::Dummy,
        Self::NotIp,
        Self::Policy,
        Self::WriteFailed,
        Self::EngineFailed,
    ];

    /// Number of reasons that the clear side has; the rest are the cipher side's.
    const CLEAR_SIDE: usize = 4;

    /// Name in metrics and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooBig => "too_big",
            Self::SequenceExhausted => "sequence_exhausted",
            Self::SendFailed => "send_failed",
            Self::Keepalive => "keepalive",
            Self::Runt => "runt",
            Self::NoSa => "no_sa",
            Self::Replayed => "replayed",
            Self::TooOld => "too_old",
            Self::IntegrityFailed => "integrity_failed",
            Self::BadTrailer => "bad_trailer",
            Self::Dummy => "dummy",
            Self::NotIp => "not_ip",
            Self::Policy => "policy",
            Self::WriteFailed => "write_failed",
            Self::EngineFailed => "engine_failed",
        }
    }
}

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Packets as they are on a wire: the segments of a super-packet count each.
    pub packets: u64,
    /// Bytes: of IP on the clear side, of ESP on the cipher side.
    pub bytes: u64,
}

impl Flow {
    /// Counts one packet.
    #[inline]
    pub const fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// Everything that one lane counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Received on the clear side.
    pub clear_rx: Flow,
    /// Sent on the clear side.
    pub clear_tx: Flow,
    /// Received on the cipher side.
    pub cipher_rx: Flow,
    /// Sent on the cipher side.
    pub cipher_tx: Flow,
    /// Dropped packets, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
}

impl Tally {
    /// Counts `packets` dropped for one reason.
    #[inline]
    pub const fn drop(&mut self, reason: DropReason, packets: u64) {
        self.dropped[reason as usize] += packets;
    }

    /// Whether every packet received is sent or dropped, on each side.
    #[must_use]
    pub fn balances(&self) -> bool {
        let (clear, cipher) = self.dropped.split_at(DropReason::CLEAR_SIDE);
        self.clear_rx.packets == self.cipher_tx.packets + clear.iter().sum::<u64>()
            && self.cipher_rx.packets == self.clear_tx.packets + cipher.iter().sum::<u64>()
    }

    /// Every count by name: `clear_rx_packets`, `cipher_tx_bytes`, `dropped_packets.replayed` …
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> + use<> {
        let flows = ["clear_rx", "clear_tx", "cipher_rx", "cipher_tx"];
        let flows = flows
            .into_iter()
            .flat_map(|flow| ["packets", "bytes"].map(|unit| format!("{flow}_{unit}")));
        let drops = DropReason::ALL.map(|reason| format!("dropped_packets.{}", reason.name()));
        flows.chain(drops).zip(self.values())
    }

    fn values(&self) -> [u64; VALUES] {
        let mut values = [0; VALUES];
        let flows = [self.clear_rx, self.clear_tx, self.cipher_rx, self.cipher_tx];
        for (pair, flow) in values.chunks_mut(2).zip(flows) {
            pair.copy_from_slice(&[flow.packets, flow.bytes]);
        }
        values[8..].copy_from_slice(&self.dropped);
        values
    }

    fn from_values(values: &[u64; VALUES]) -> Self {
        let flow = |at: usize| Flow {
            packets: values[at],
            bytes: values[at + 1],
        };
        let mut dropped = [0; DropReason::ALL.len()];
        dropped.copy_from_slice(&values[8..]);
        Self {
            clear_rx: flow(0),
            clear_tx: flow(2),
            cipher_rx: flow(4),
            cipher_tx: flow(6),
            dropped,
        }
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (a, b) = (self.values(), other.values());
        Self::from_values(&std::array::from_fn(|at| a[at] + b[at]))
    }
}

const VALUES: usize = 8 + DropReason::ALL.len();

/// A lane's tally as others see it: up to one batch old.
#[derive(Debug)]
pub struct Counters([AtomicU64; VALUES]);

impl Default for Counters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; VALUES])
    }
}

impl Counters {
    /// Shows `tally` to readers.
    #[inline]
    pub fn publish(&self, tally: &Tally) {
        for (counter, value) in self.0.iter().zip(tally.values()) {
            counter.store(value, Relaxed);
        }
    }

    /// What was published last; single values may be one batch apart.
    #[must_use]
    pub fn read(&self) -> Tally {
        Tally::from_values(&std::array::from_fn(|at| self.0[at].load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_numbered_in_the_order_of_all() {
        for (at, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
        assert_eq!(
            DropReason::ALL[DropReason::CLEAR_SIDE],
            DropReason::Keepalive
        );
    }

    #[test]
    fn readers_see_what_was_published() {
        let mut tally = Tally::default();
        tally.clear_rx.add(1500);
        tally.cipher_tx.add(1556);
        tally.cipher_rx.add(90);
        tally.drop(DropReason::WriteFailed, 1);
        assert!(tally.balances());
        let counters = Counters::default();
        counters.publish(&tally);
        assert_eq!(counters.read(), tally);
        let named: Vec<_> = tally.named().filter(|(_, value)| *value > 0).collect();
        let named: Vec<_> = named
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        assert_eq!(
            named,
            [
                ("clear_rx_packets", 1),
                ("clear_rx_bytes", 1500),
                ("cipher_rx_packets", 1),
                ("cipher_rx_bytes", 90),
                ("cipher_tx_packets", 1),
                ("cipher_tx_bytes", 1556),
                ("dropped_packets.write_failed", 1),
            ]
        );
        tally.drop(DropReason::Malformed, 1);
        assert!(!tally.balances());
    }
}

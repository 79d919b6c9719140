//! Limits of one SA.

use crate::iv::KEY_BITS;
use engine::SequenceNumbers;
use wire::{Cipher, Gost, Suite};

/// What an SA may seal under one key; it stops at the limit reached first.
///
/// The information that a cipher with blocks of `n` bits leaks grows with the square of the number
/// `q` of blocks under one key: an observer distinguishes it from a random permutation with an
/// advantage of about `q^2 / 2^(n+1)`. The defaults ([`of`](Self::of)) keep that small:
///
/// | Cipher | Bytes | Why |
/// | --- | --- | --- |
/// | AES in GCM or CBC | 2^52 | 2^48 blocks of 128 bits: about 2^-33, within the 2^-32 that NIST SP 800-38D §8 takes for GCM |
/// | DES, triple DES | 2^23 | 2^20 blocks of 64 bits, the most that NIST SP 800-67 Rev. 2 permits for one key bundle; Sweet32 (CVE-2016-2183) attacks far beyond that |
/// | Magma alone | 2^28 | 2^25 blocks of 64 bits: about 2^-15; these suites are for comparisons. It is fewer than 2^32 packets as well, so that no IV of CTR, which is the low half of the sequence number, repeats ([`packets_max`](Self::packets_max)) |
/// | Magma in MGM | 2^36 | the key is a tree's root; each of its leaves is used for 2^10 packets, which in 1500 bytes are 2^18.6 cipher calls: about 2^-28. These are 2^15.4 leaves, and their advantages add up: about 2^-12. In packets of 9000 bytes it is 2^-10 |
/// | Kuznyechik in MGM | no limit | the same tree ([`Gost::packets_per_key_log2`]), blocks of 128 bits: with 2^24 packets of 1500 bytes per leaf 2^-66, and with the 2^18 leaves of 2^42 packets 2^-48 |
/// | ChaCha20, none | no limit | not a permutation, so equal blocks reveal nothing (RFC 8446 §5.5); nothing is encrypted |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Packets; also the last sequence number.
    pub packets: u64,
    /// Bytes of plaintext: inner packets with padding and trailers.
    pub bytes: u64,
}

impl Limits {
    /// Default number of packets for every suite: 2^42, 50 days at a million a second. Nonces would
    /// last for 2^64; keys with a longer life have no benefit.
    pub const PACKETS: u64 = 1 << 42;

    /// No limits.
    pub const NONE: Self = Self {
        packets: u64::MAX,
        bytes: u64::MAX,
    };

    /// The default limits of a suite.
    #[must_use]
    pub const fn of(suite: Suite) -> Self {
        // Each suite is named: a new one must not get a limit by accident.
        let bytes = match suite {
            Suite::Aes128Gcm
            | Suite::Aes256Gcm
            | Suite::EncryptThenMac(Cipher::Aes128Cbc | Cipher::Aes256Cbc, _) => 1 << 52,
            Suite::EncryptThenMac(Cipher::DesCbc | Cipher::TripleDesCbc, _) => 1 << 23,
            Suite::Gost(Gost::MagmaCbcOmac | Gost::MagmaCtr | Gost::MagmaEcb) => 1 << 28,
            Suite::Gost(Gost::MagmaMgm | Gost::MagmaMgmMac) => 1 << 36,
            Suite::ChaCha20Poly1305
            | Suite::EncryptThenMac(Cipher::Null, _)
            | Suite::Gost(Gost::KuznyechikMgm | Gost::KuznyechikMgmMac) => u64::MAX,
        };
        Self {
            packets: Self::PACKETS,
            bytes,
        }
    }

    /// Packets after which an IV or a nonce would repeat: no SA has a higher limit.
    ///
    /// A tree has 2^40 keys ([`Gost::packets_per_key_log2`] packets each), and sequence numbers
    /// begin with 1. The IV of Magma in CTR is the low half of the sequence number.
    #[must_use]
    pub const fn packets_max(suite: Suite) -> u64 {
        match suite {
            Suite::Gost(gost) if gost.has_key_tree() => {
                // One less than the power of two: number 0 is never sent, but has an IV.
                u64::MAX >> (u64::BITS - KEY_BITS - gost.packets_per_key_log2())
            }
            Suite::Gost(Gost::MagmaCtr) => 1 << 32,
            _ => u64::MAX,
        }
    }

    /// These limits, reduced to the suite's maximum, and to that of short sequence numbers, which
    /// never wrap (RFC 4303 §3.3.3).
    pub(crate) fn within(self, suite: Suite, numbers: SequenceNumbers) -> Self {
        let most = match numbers {
            SequenceNumbers::Extended => Self::packets_max(suite),
            SequenceNumbers::Short => Self::packets_max(suite).min(u32::MAX.into()),
        };
        Self {
            packets: self.packets.min(most),
            ..self
        }
    }

    /// The amount after which new keys are due: half of each limit, and at most 2^31 packets.
    pub(crate) const fn due(self) -> Self {
        // The half is rounded up, so that a limit of 1 is not due before its first packet.
        let packets = self.packets - self.packets / 2;
        Self {
            packets: if packets < 1 << 31 { packets } else { 1 << 31 },
            bytes: self.bytes - self.bytes / 2,
        }
    }
}

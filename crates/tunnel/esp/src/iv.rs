//! Initialisation vectors as each suite requires them, without a system call per packet.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Cipher, Gost, Suite};
use zeroize::Zeroizing;

/// Number of bits of a key's number in a tree.
pub(crate) const KEY_BITS: u32 = 40;

/// The source of an SA's IVs.
pub(crate) enum Ivs {
    /// For no cipher, or one whose IV is the sequence number in the header, or one without IV.
    None,
    /// The full sequence number, which never repeats under one key: an AEAD's nonce need not be
    /// unpredictable (RFC 4106 §3.1, RFC 7634 §2).
    Sequence,
    /// The full sequence number too, split: the number of a key in the tree in the first 5 bytes,
    /// and of a packet under that key in the last 3 (RFC 9227 §4). The value is the base-2
    /// logarithm of the number of packets per key. There are 2^40 keys, and an SA's limit
    /// ([`Limits::packets_max`](crate::Limits::packets_max)) ends before they do.
    Tree(u32),
    /// For CBC with 64-bit blocks; as below.
    Random8(Box<ChaCha8Rng>),
    /// For CBC with 128-bit blocks: the IV must be unpredictable until the packet is sealed (RFC
    /// 3602 §3). So it is the key stream of a cipher with a secret key from the operating system.
    Random16(Box<ChaCha8Rng>),
}

impl Ivs {
    /// The source for a new SA. Requests a seed from the operating system if needed.
    pub(crate) fn of(suite: Suite) -> Self {
        match suite {
            Suite::EncryptThenMac(Cipher::Null, _) => Self::None,
            Suite::EncryptThenMac(Cipher::DesCbc | Cipher::TripleDesCbc, _) => {
                Self::Random8(seeded())
            }
            Suite::EncryptThenMac(Cipher::Aes128Cbc | Cipher::Aes256Cbc, _) => {
                Self::Random16(seeded())
            }
            Suite::Gost(Gost::MagmaCbcOmac) => Self::Random8(seeded()),
            // CTR counts from the sequence number in the header; ECB has nothing to start from.
            Suite::Gost(Gost::MagmaCtr | Gost::MagmaEcb) => Self::None,
            Suite::Gost(
                gost @ (Gost::KuznyechikMgm
                | Gost::MagmaMgm
                | Gost::KuznyechikMgmMac
                | Gost::MagmaMgmMac),
            ) => Self::Tree(gost.packets_per_key_log2()),
            // No random part: two random nonces may be equal, two sequence numbers never.
            Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => Self::Sequence,
        }
    }

    /// Writes a packet's IV behind its header.
    ///
    /// # Panics
    /// If the packet is too short, or the tree has no key for the sequence number.
    #[inline]
    pub(crate) fn write(&mut self, sequence: u64, packet: &mut [u8]) {
        let at = ESP_HEADER_BYTES;
        match self {
            Self::Sequence => packet[at..at + 8].copy_from_slice(&sequence.to_be_bytes()),
            Self::Tree(packets_log2) => {
                let (key, number) = (
                    sequence >> *packets_log2,
                    sequence & ((1 << *packets_log2) - 1),
                );
                // From here on keys and nonces would repeat.
                assert!(key < 1 << KEY_BITS, "no key is left for packet {sequence}");
                packet[at..at + 8].copy_from_slice(&(key << 24 | number).to_be_bytes());
            }
            Self::None => {}
            // Unpredictable but not secret: no order of bytes is better than another.
            Self::Random8(rng) => packet[at..at + 8].copy_from_slice(&rng.next_u64().to_le_bytes()),
            Self::Random16(rng) => {
                let iv = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
                packet[at..at + 16].copy_from_slice(&iv.to_le_bytes());
            }
        }
    }
}

fn seeded() -> Box<ChaCha8Rng> {
    let mut seed = Zeroizing::new([0; 32]);
    // Available since Linux 3.17; it waits until the kernel's generator is seeded, and then cannot
    // fail.
    getrandom::fill(&mut *seed).expect("the operating system gives random bytes");
    // On the heap: its state is larger than the rest of the SA, and most suites have none.
    Box::new(ChaCha8Rng::from_seed(*seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_iv_has_its_suites_length_and_bytes_behind_it_are_unchanged() {
        for suite in Suite::ALL {
            let mut packet = [0xaa; 64];
            Ivs::of(suite).write(7, &mut packet);
            let end = ESP_HEADER_BYTES + suite.iv_bytes();
            assert_eq!(packet[..ESP_HEADER_BYTES], [0xaa; ESP_HEADER_BYTES]);
            assert!(packet[end..].iter().all(|&byte| byte == 0xaa), "{suite}");
            let iv = &packet[ESP_HEADER_BYTES..end];
            assert!(iv.is_empty() || iv.iter().any(|&byte| byte != 0xaa));
        }
    }

    #[test]
    fn keys_of_a_tree_change_before_packets_under_one_run_out() {
        for (gost, sequence, iv) in [
            (Gost::KuznyechikMgm, 1, 1),
            (Gost::KuznyechikMgm, 0xff_ffff, 0xff_ffff),
            (Gost::KuznyechikMgm, 0x100_0000, 0x100_0000),
            (Gost::MagmaMgm, 1, 1),
            (Gost::MagmaMgm, 1023, 1023),
            (Gost::MagmaMgm, 1024, 0x100_0000),
            (Gost::MagmaMgm, (1 << 42) - 1, 0x00ff_ffff_ff00_03ff),
            (Gost::MagmaMgmMac, (1 << 50) - 1, 0xffff_ffff_ff00_03ff),
            (Gost::KuznyechikMgmMac, u64::MAX, u64::MAX),
        ] {
            let mut packet = [0; 16];
            Ivs::of(Suite::Gost(gost)).write(sequence, &mut packet);
            assert_eq!(packet[8..], u64::to_be_bytes(iv), "{gost:?} {sequence}");
        }
    }

    #[test]
    #[should_panic(expected = "no key is left for packet 1125899906842624")]
    fn no_iv_repeats_when_a_trees_keys_are_used_up() {
        Ivs::of(Suite::Gost(Gost::MagmaMgm)).write(1 << 50, &mut [0; 16]);
    }

    #[test]
    fn no_two_sas_and_no_two_packets_share_a_random_iv() {
        for suite in Suite::ALL {
            if !matches!(Ivs::of(suite), Ivs::Random8(_) | Ivs::Random16(_)) {
                continue;
            }
            let mut seen = HashSet::new();
            let mut ones = vec![0u32; 8 * suite.iv_bytes()];
            for mut ivs in [Ivs::of(suite), Ivs::of(suite)] {
                for sequence in 1..=2000 {
                    let mut packet = [0; 24];
                    ivs.write(sequence, &mut packet);
                    let iv = &packet[ESP_HEADER_BYTES..ESP_HEADER_BYTES + suite.iv_bytes()];
                    for (bit, ones) in ones.iter_mut().enumerate() {
                        *ones += u32::from(iv[bit / 8] >> (bit % 8) & 1);
                    }
                    assert!(seen.insert(iv.to_vec()), "{suite} repeats an IV");
                }
            }
            // Every bit is set in half of them; 2000 ± 10 standard deviations of 32.
            let fair = 1680..2320;
            assert!(
                ones.iter().all(|ones| fair.contains(ones)),
                "{suite}: {ones:?}"
            );
        }
    }
}

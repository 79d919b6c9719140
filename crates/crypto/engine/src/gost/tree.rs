//! A tree of keys (RFC 9227 §4, RFC 8645 §5.2.2): the root is an SA's key, and every leaf is used
//! for few packets.

use ::gost::KEY_BYTES;
use hmac::{Hmac, KeyInit, Mac};
use streebog::Streebog256;
use zeroize::Zeroizing;

type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The number of a leaf: the first 5 bytes of an IV, which are its indexes on three levels of 8, 16
/// and 16 bits.
pub(super) type Leaf = u64;

/// The root, and a cached branch.
pub(super) struct Tree {
    root: Key,
    branch: Option<Branch>,
}

/// The keys of the first and the second level, each with its number.
pub(super) struct Branch([(Leaf, Key); 2]);

impl Tree {
    pub(super) fn new(root: &[u8; KEY_BYTES]) -> Self {
        Self {
            root: Zeroizing::new(*root),
            branch: None,
        }
    }

    /// Returns the key of a leaf, and its branch if that is not the cached one.
    pub(super) fn leaf(&self, leaf: Leaf) -> (Key, Option<Branch>) {
        // Each number includes those above it: equal second numbers mean the same branch.
        let (first, second) = (leaf >> 32, leaf >> 16);
        let kept = self.branch.as_ref().map(|Branch(keys)| keys);
        // A leaf of the same branch, as 65,535 of 65,536 are: one derivation instead of three.
        if let Some([_, two]) = kept
            && two.0 == second
        {
            return (derive(&two.1, b"level3", leaf), None);
        }
        let one = match kept {
            Some([one, _]) if one.0 == first => one.1.clone(),
            _ => derive(&self.root, b"level1", first),
        };
        let two = derive(&one, b"level2", second);
        // Returned with the branch, not kept: the packet may be forged.
        let key = derive(&two, b"level3", leaf);
        (key, Some(Branch([(first, one), (second, two)])))
    }

    /// Replaces the cached branch.
    pub(super) fn keep(&mut self, branch: Branch) {
        self.branch = Some(branch);
    }
}

/// `KDF_GOSTR3411_2012_256` (RFC 7836 §4.5), with the low 16 bits of a number as seed.
///
/// Uses RustCrypto's Streebog, whose table look-ups depend on the key: unlike the ciphers it is not
/// constant-time. Leaves are derived rarely, so it leaks little.
fn derive(key: &Key, label: &[u8], number: Leaf) -> Key {
    #[cfg(test)]
    DERIVATIONS.set(DERIVATIONS.get() + 1);
    let mut mac = <Hmac<Streebog256> as KeyInit>::new_from_slice(&**key)
        .expect("HMAC takes keys of any length");
    // A counter, the label, a zero byte, the seed, and the output's length of 256 bits.
    for part in [
        &[1][..],
        label,
        &[0],
        &(number as u16).to_be_bytes(),
        &[1, 0],
    ] {
        mac.update(part);
    }
    Zeroizing::new(mac.finalize().into_bytes().into())
}

#[cfg(test)]
thread_local! {
    /// Number of keys that this thread has derived.
    pub(super) static DERIVATIONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

//! Keys of a tree (RFC 9227 §4, RFC 8645 §5.2.2): the root is an SA's key, and every leaf is used for few packets.

use ::gost::KEY_BYTES;
use hmac::{Hmac, KeyInit, Mac};
use streebog::Streebog256;
use zeroize::Zeroizing;

type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The number of a leaf: the first 5 bytes of an IV, which are its place on three levels of 8, 16 and 16 bits.
pub(super) type Leaf = u64;

/// The root, and the branch that was last asked for.
pub(super) struct Tree {
    root: Key,
    /// The key of the first level and that of the second, each with its number.
    branch: Option<[(Leaf, Key); 2]>,
}

impl Tree {
    pub(super) fn new(root: &[u8; KEY_BYTES]) -> Self {
        Self {
            root: Zeroizing::new(*root),
            branch: None,
        }
    }

    /// The key of a leaf.
    pub(super) fn leaf(&mut self, leaf: Leaf) -> Key {
        let (first, second) = (leaf >> 32, leaf >> 16);
        let branch = match self.branch.take() {
            Some([one, two]) if two.0 == second => [one, two],
            Some([one, _]) if one.0 == first => {
                let two = (second, derive(&one.1, b"level2", second));
                [one, two]
            }
            _ => {
                let one = derive(&self.root, b"level1", first);
                let two = derive(&one, b"level2", second);
                [(first, one), (second, two)]
            }
        };
        let key = derive(&branch[1].1, b"level3", leaf);
        self.branch = Some(branch);
        key
    }
}

/// `KDF_GOSTR3411_2012_256` (RFC 7836 §4.4), with the low 16 bits of a number as seed.
fn derive(key: &Key, label: &[u8], number: Leaf) -> Key {
    let mut mac = <Hmac<Streebog256> as KeyInit>::new_from_slice(&**key)
        .expect("HMAC takes keys of any length");
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

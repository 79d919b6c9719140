//! A record of delivered keys, so that no key is used twice: neither a key that the KME delivers
//! again, nor a key that the peer names again.

use crate::error::Failure;
use crate::key::QkdKey;
use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher;

/// Number of remembered keys: nine hours at one key per second, about 2 MB of memory.
const KEYS_MAX: usize = 1 << 15;

/// IDs and keys, each as a keyed 64-bit hash: no key is stored. The probability that a hash
/// collision rejects a good key is less than 10^-14 per key.
pub(crate) struct Ledger {
    hash: RandomState,
    seen: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            hash: RandomState::new(),
            seen: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Whether a key with this ID was delivered.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.seen.contains(&self.of_id(id))
    }

    /// Records delivered keys.
    ///
    /// # Errors
    /// [`Failure::SameId`] and [`Failure::SameKey`]: one of them was recorded before, so none of
    /// them may be used.
    pub(crate) fn enter(&mut self, keys: &[QkdKey]) -> Result<(), Failure> {
        let mut twice = None;
        for QkdKey { id, key } in keys {
            let of_id = self.of_id(id);
            // By value too: a faulty KME may deliver one key under two IDs.
            let of_key = self.hash.hash_one(("key", key.as_slice()));
            // Records all of them, also good keys beside a rejected one: not used now, they never
            // may be.
            if !self.insert(of_id) {
                twice.get_or_insert(Failure::SameId { id: id.clone() });
            }
            if !self.insert(of_key) {
                twice.get_or_insert(Failure::SameKey { id: id.clone() });
            }
        }
        twice.map_or(Ok(()), Err)
    }

    fn of_id(&self, id: &str) -> u64 {
        self.hash.hash_one(("id", id.to_ascii_lowercase()))
    }

    fn insert(&mut self, entry: u64) -> bool {
        if !self.seen.insert(entry) {
            return false;
        }
        // Two entries per key, its ID and its value.
        if self.order.len() == 2 * KEYS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.order.push_back(entry);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::Zeroizing;

    fn key(id: &str, key: u32) -> QkdKey {
        QkdKey {
            id: id.to_owned(),
            key: Zeroizing::new(key.to_be_bytes().to_vec()),
        }
    }

    #[test]
    fn rejects_a_second_delivery_under_any_id() {
        let mut ledger = Ledger::new();
        assert_eq!(ledger.enter(&[key("a", 1), key("b", 2)]), Ok(()));
        let same_id = |id: &str| Err(Failure::SameId { id: id.to_owned() });
        let same_key = |id: &str| Err(Failure::SameKey { id: id.to_owned() });
        assert_eq!(ledger.enter(&[key("A", 3)]), same_id("A"));
        assert_eq!(ledger.enter(&[key("c", 1)]), same_key("c"));
        // Keys delivered beside a rejected key are used up as well.
        assert_eq!(ledger.enter(&[key("d", 4), key("b", 5)]), same_id("b"));
        assert!(ledger.knows("d") && ledger.knows("D") && !ledger.knows("e"));
        assert_eq!(ledger.enter(&[key("e", 4)]), same_key("e"));
        assert_eq!(ledger.enter(&[key("f", 6), key("g", 6)]), same_key("g"));
    }

    #[test]
    fn an_id_and_a_key_of_the_same_bytes_differ() {
        let mut ledger = Ledger::new();
        let text = QkdKey {
            id: "same".to_owned(),
            key: Zeroizing::new(b"same".to_vec()),
        };
        assert_eq!(ledger.enter(&[text]), Ok(()));
    }

    #[test]
    fn forgets_only_the_oldest() {
        let mut ledger = Ledger::new();
        for number in 0..=KEYS_MAX as u32 {
            assert_eq!(ledger.enter(&[key(&number.to_string(), number)]), Ok(()));
        }
        assert!(!ledger.knows("0") && ledger.knows("1"));
        assert_eq!(ledger.seen.len(), 2 * KEYS_MAX);
        assert_eq!(ledger.order.len(), 2 * KEYS_MAX);
    }
}

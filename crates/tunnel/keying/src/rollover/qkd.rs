//! Checks of the keys from a KME, which is not trusted either.

use crate::chain::{Kind, Link, is_id};
use crate::message::LINKS_MAX;
use std::collections::VecDeque;

/// Minimum number of QKD key bytes per epoch: RFC 8784 §1 requires this of a PPK.
const KEY_BYTES_MIN: usize = 32;
/// Maximum length of a key in bytes: the derivation encodes it in two bytes.
const KEY_BYTES_MAX: usize = 65535;
/// Number of remembered IDs, to detect a key that is delivered twice.
const SPENT_MAX: usize = 64;

/// The IDs of the last keys that were accepted.
#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Spent(VecDeque<String>);

impl Spent {
    /// Accepts keys from a KME if they are suitable and were not delivered before, and remembers
    /// their IDs.
    pub(super) fn take(&mut self, keys: Vec<Link>) -> Result<Vec<Link>, String> {
        if keys.is_empty() || keys.len() > LINKS_MAX {
            let count = keys.len();
            return Err(format!("the KME gave {count} keys, not 1 to {LINKS_MAX}"));
        }
        let mut bytes = 0;
        for (at, link) in keys.iter().enumerate() {
            let length = link.key.as_ref().map_or(0, |key| key.len());
            if link.kind != Kind::Qkd || !is_id(&link.id) || !(1..=KEY_BYTES_MAX).contains(&length)
            {
                return Err(format!(
                    "the KME gave a key of {length} bytes with the id {:?}",
                    link.id
                ));
            }
            // A QKD key is for one use. Mixed in twice it would add nothing the second time.
            if keys[..at].iter().any(|other| other.id == link.id) || self.0.contains(&link.id) {
                return Err(format!("the KME gave the key {:?} before", link.id));
            }
            bytes += length;
        }
        if bytes < KEY_BYTES_MIN {
            return Err(format!(
                "the KME gave keys of {bytes} bytes together, {KEY_BYTES_MIN} are needed"
            ));
        }
        // Only after all checks: a refused delivery spends no ID.
        for link in &keys {
            if self.0.len() == SPENT_MAX {
                self.0.pop_front();
            }
            self.0.push_back(link.id.clone());
        }
        Ok(keys)
    }

    /// Accepts keys that were requested by ID. Returns them in the order of `ids`.
    pub(super) fn take_named(
        &mut self,
        keys: Vec<Link>,
        ids: &[String],
    ) -> Result<Vec<Link>, String> {
        // In the peer's order, as the derivation mixes them. A KME may answer in any order.
        let named = |id: &String| keys.iter().find(|link| link.id == *id).cloned();
        match ids.iter().map(named).collect() {
            Some(named) if keys.len() == ids.len() => self.take(named),
            _ => Err("the KME gave other keys than those requested".to_owned()),
        }
    }
}

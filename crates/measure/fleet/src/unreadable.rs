//! Entries of the server that cannot be read: another program wrote them, or another version of
//! this one. One of them must not stop a fleet, so lists leave them out, and say which they left
//! out.

use guard::visible;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use tokio::sync::watch;

/// Entries that are remembered; others are left out of lists all the same.
const REMEMBERED_MAX: usize = 1000;

/// An entry that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableEntry {
    /// The bucket.
    pub bucket: String,
    /// The entry's key there.
    pub key: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for UnreadableEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bucket, key] = [&self.bucket, &self.key].map(|text| visible(text));
        write!(
            f,
            "entry {bucket}/{key} is left out: {}; `cipherbench fleet discard {bucket}/{key}` removes it",
            visible(&self.reason)
        )
    }
}

/// The entries that one connection could not read, by bucket and key, with the reason.
#[derive(Clone)]
pub(crate) struct Unreadable(watch::Sender<BTreeMap<(String, String), String>>);

impl Unreadable {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }

    /// Takes note of how reading an entry ended.
    pub(crate) fn note(&self, bucket: &str, key: &str, reason: Option<String>) {
        if reason.is_none() && self.0.borrow().is_empty() {
            return;
        }
        let entry = (bucket.to_owned(), key.to_owned());
        self.0.send_if_modified(|all| match reason {
            None => all.remove(&entry).is_some(),
            Some(_) if all.len() >= REMEMBERED_MAX && !all.contains_key(&entry) => false,
            Some(reason) => all.insert(entry, reason.clone()).as_ref() != Some(&reason),
        });
    }

    pub(crate) fn all(&self) -> Vec<UnreadableEntry> {
        let all = self.0.borrow();
        let entries = all.iter().map(|((bucket, key), reason)| UnreadableEntry {
            bucket: bucket.clone(),
            key: key.clone(),
            reason: reason.clone(),
        });
        entries.collect()
    }

    /// Changes as [`all`](Self::all) does.
    pub(crate) fn changes(&self) -> watch::Receiver<BTreeMap<(String, String), String>> {
        self.0.subscribe()
    }
}

/// A value of an entry, or why it is none.
pub(crate) fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| visible(&error.to_string()).into_owned())
}

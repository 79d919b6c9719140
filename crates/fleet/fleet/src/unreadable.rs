//! Entries of the server that cannot be read: another program wrote them, or another version of
//! this one. One of them must not stop a fleet, so lists leave them out, and say which they left
//! out.

use guard::{escaped, visible};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use tokio::sync::watch;

/// The most entries that are remembered; lists leave out further ones too.
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
        let entry = format!("{}/{}", self.bucket, self.key);
        write!(
            f,
            "entry {} is left out: {}; `{}` removes it",
            escaped(&entry),
            visible(&self.reason),
            discarding(&entry)
        )
    }
}

/// Returns the shell command that removes an entry, quoted so that no name makes it do anything
/// else.
pub(crate) fn discarding(entry: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./".contains(c);
    let shown = match escaped(entry) {
        plain if plain.chars().all(is_plain) => plain,
        other => Cow::Owned(format!("'{}'", other.replace('\'', r"'\''"))),
    };
    format!("cipherbench fleet discard {shown}")
}

/// The entries that one connection could not read, by bucket and key, with the reason.
#[derive(Clone)]
pub(crate) struct Unreadable(watch::Sender<BTreeMap<(String, String), String>>);

impl Unreadable {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }

    /// Records the result of reading an entry.
    pub(crate) fn note(&self, bucket: &str, key: &str, reason: Option<String>) {
        // Nearly always: no allocation for each entry that is read.
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

    /// Returns a receiver that is notified of changes of [`all`](Self::all).
    pub(crate) fn changes(&self) -> watch::Receiver<BTreeMap<(String, String), String>> {
        self.0.subscribe()
    }
}

/// Parses the value of an entry, or returns why it cannot be read.
pub(crate) fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| visible(&error.to_string()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_is_shown_names_the_entry_and_runs_nothing_else() {
        for (key, command) in [
            ("1", "fleet-jobs/1"),
            ("evil\u{1b}[2J", r"'fleet-jobs/evil\u{1b}[2J'"),
            ("x;reboot", "'fleet-jobs/x;reboot'"),
            ("$(id)", "'fleet-jobs/$(id)'"),
            ("a'b`", r"'fleet-jobs/a'\''b`'"),
        ] {
            let entry = format!("fleet-jobs/{key}");
            let shown = format!("cipherbench fleet discard {command}");
            assert_eq!(discarding(&entry), shown);
        }
    }
}

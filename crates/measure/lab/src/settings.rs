//! The watch on a namespace's settings over a trial: what changed, and when.
//!
//! Settings are read before and after. In between the kernel reports every change to a socket
//! (rtnetlink(7)), so that one that is undone before the end is seen too. Links are compared by
//! value: a report that says nothing new, as when a program enters promiscuous mode or an address
//! is found unique, is no change. Neighbours are left out: they change by themselves.
//!
//! The reports cost one message for each change, and nothing while nothing changes.

mod counters;
mod netlink;
mod objects;
mod reports;
mod snapshot;

use journal::record::{PathSettings, SettingChange};
use reports::Reports;
use snapshot::Snapshot;
use std::collections::BTreeMap;
use std::io;

/// Most changes that one watch lists; the rest is counted.
const CHANGES_MAX: usize = 64;

/// A watch that is on.
pub(crate) struct SettingsWatch {
    reports: Reports,
    queue_drops: BTreeMap<String, u64>,
    stack: BTreeMap<String, u64>,
    policies: String,
}

impl SettingsWatch {
    /// Starts to watch this network namespace. `policies` are the IPsec policies in words.
    ///
    /// # Errors
    /// When the kernel refuses a socket or does not answer.
    pub(crate) fn start(policies: String) -> io::Result<Self> {
        // Reports come from here on: what changes while the settings are read is not missed.
        let reports = Reports::open()?;
        let snapshot = Snapshot::read()?;
        Ok(Self {
            queue_drops: snapshot.queue_drops.clone(),
            stack: counters::stack()?,
            policies,
            reports: reports.follow(snapshot)?,
        })
    }

    /// Ends the watch. Returns the changes, with an empty name for the node, and the growth of the
    /// counters. `policies` are the IPsec policies in words, now.
    ///
    /// # Errors
    /// When the settings cannot be read again.
    pub(crate) fn end(self, policies: &str) -> io::Result<PathSettings> {
        let (known, mut changes) = self.reports.end();
        let after = Snapshot::read()?;
        changes.extend(
            known
                .changes_to(&after)
                .into_iter()
                .map(|what| change(None, what)),
        );
        if policies != self.policies {
            changes.push(change(None, "IPsec policies".to_owned()));
        }
        if changes.len() > CHANGES_MAX {
            let more = changes.len() - CHANGES_MAX;
            changes.truncate(CHANGES_MAX);
            changes.push(change(None, format!("{more} more changes")));
        }
        Ok(PathSettings {
            changes,
            queue_drops: counters::growth(&self.queue_drops, &after.queue_drops),
            stack: counters::growth(&self.stack, &counters::stack()?),
        })
    }
}

fn change(at_ns: Option<u64>, what: String) -> SettingChange {
    SettingChange {
        node: String::new(),
        at_ns,
        what,
    }
}

//! The watch on a namespace's settings over a trial: what changed, and when.
//!
//! Settings are read before and after. In between the kernel reports every change to a socket
//! (rtnetlink(7)), so that one that is undone before the end is seen too. Links are compared by
//! value: a report that says nothing new, as when a program enters promiscuous mode or an address
//! is found unique, is no change. Neighbours are left out: they change by themselves.
//!
//! So it is with kernel parameters ([`parameters`]): they are read before and after, and whenever a
//! program wrote one.
//!
//! The reports cost one message for each change, and nothing while nothing changes.

mod counters;
mod neighbours;
mod netlink;
mod objects;
mod parameters;
mod reports;
mod snapshot;

pub(crate) use parameters::ParameterFiles;

use journal::record::{PathSettings, SettingChange};
use neighbours::Neighbours;
use parameters::Parameters;
use reports::Reports;
use snapshot::Snapshot;
use std::collections::BTreeMap;
use std::io;

/// Table of routes that no packet looks up, unless it has a mark that none has: those of a
/// station's IKE daemon, which changes them whenever the device renews its keys. They are no part
/// of the path.
pub(crate) const UNUSED_TABLE: u32 = 4500;

/// Number of an XFRM interface that no node has: the policies of a station's IKE daemon are for it,
/// which changes them like its routes. An interface with that number is a change of its own.
pub(crate) const UNUSED_INTERFACE: u32 = 4500;

/// Most changes that one watch lists; the rest is counted.
const CHANGES_MAX: usize = 64;

/// A watch that is on.
pub(crate) struct SettingsWatch {
    reports: Reports,
    queue_drops: BTreeMap<String, u64>,
    stack: BTreeMap<String, u64>,
    policies: Vec<String>,
    neighbours: Option<Neighbours>,
}

impl SettingsWatch {
    /// Starts to watch this network namespace. `policies` are the IPsec policies in words,
    /// `machine` the parameters of the machine's own namespace. With `neighbours`, frames of ARP
    /// and neighbour discovery are counted too.
    ///
    /// # Errors
    /// When the kernel refuses a socket or inotify, or does not answer.
    pub(crate) fn start(
        policies: &str,
        machine: &ParameterFiles,
        neighbours: bool,
    ) -> io::Result<Self> {
        // Reports come from here on: what changes while the settings are read is not missed.
        let reports = Reports::open()?;
        let parameters = Parameters::watch(machine)?;
        let snapshot = Snapshot::read()?;
        Ok(Self {
            queue_drops: snapshot.queue_drops.clone(),
            stack: counters::stack()?,
            policies: each_policy(policies),
            neighbours: neighbours.then(Neighbours::count).transpose()?,
            reports: reports.follow(snapshot, parameters)?,
        })
    }

    /// Ends the watch. Returns the changes and the frames of neighbours, with an empty name for the
    /// node, and the growth of the counters. `policies` are the IPsec policies in words, now.
    ///
    /// # Errors
    /// When the settings cannot be read again.
    pub(crate) fn end(self, policies: &str) -> io::Result<PathSettings> {
        let neighbours = self.neighbours.as_ref().map(Neighbours::frames);
        let (known, mut changes) = self.reports.end();
        let after = Snapshot::read()?;
        changes.extend(
            known
                .changes_to(&after)
                .into_iter()
                .map(|what| change(None, what)),
        );
        if each_policy(policies) != self.policies {
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
            neighbour_frames: neighbours
                .transpose()?
                .map(|frames| (String::new(), frames))
                .into_iter()
                .collect(),
        })
    }
}

/// The IPsec policies that `ip xfrm policy` lists, in an order of their own and without the SPIs
/// and the request ids of the SAs that they use now: a renewal of keys changes all of them, and no
/// path. Those for [`UNUSED_INTERFACE`] are none of the path's.
fn each_policy(listed: &str) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for line in listed.lines() {
        if !line.starts_with(char::is_whitespace) {
            policies.push(String::new());
        }
        let Some(policy) = policies.last_mut() else {
            continue;
        };
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "spi" | "reqid" => drop(words.next()),
                word => *policy += &format!("{word} "),
            }
        }
    }
    let unused = format!("if_id {UNUSED_INTERFACE:#x} ");
    policies.retain(|policy| !policy.contains(&unused));
    policies.sort();
    policies
}

fn change(at_ns: Option<u64>, what: String) -> SettingChange {
    SettingChange {
        node: String::new(),
        at_ns,
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_differ_by_what_they_seal_and_not_by_the_keys_in_use() {
        let policy = |network: &str, spi: &str| {
            // An IKE SA that replaces another numbers its SAs in another order.
            let reqid = &spi[spi.len() - 1..];
            format!(
                "src {network} dst 198.18.0.0/16 \n\tdir out priority 391808 ptype main \n\
                 \ttmpl src 192.0.2.2 dst 192.0.2.1\n\t\tproto esp spi {spi} reqid {reqid} mode tunnel\n\
                 \tif_id 0x1\n"
            )
        };
        let (one, two) = ("10.2.0.0/24", "198.19.0.0/16");
        let before = policy(one, "0xcb67fc62") + &policy(two, "0xcb67fc63");
        let renewed = policy(two, "0xc476cf6c") + &policy(one, "0xc476cf6d");
        assert_eq!(each_policy(&before), each_policy(&renewed));
        let other = policy(one, "0xcb67fc62") + &policy("10.0.0.0/8", "0xcb67fc63");
        assert_ne!(each_policy(&before), each_policy(&other));
        assert_ne!(
            each_policy(&before),
            each_policy(&policy(one, "0xcb67fc62"))
        );
        assert_eq!(each_policy(""), Vec::<String>::new());
        // A station's daemon has none for a moment when the device authenticates itself anew.
        let of_station = policy(one, "0xcb67fc62").replace("if_id 0x1", "if_id 0x1194");
        assert_eq!(
            each_policy(&(before.clone() + &of_station)),
            each_policy(&before)
        );
        let other = policy(one, "0xcb67fc62").replace("if_id 0x1", "if_id 0x119");
        assert_ne!(
            each_policy(&(before.clone() + &other)),
            each_policy(&before)
        );
    }
}

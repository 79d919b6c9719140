//! The watch on a namespace's settings over a trial: the changes and their times.
//!
//! Settings are read before and after the trial. In between the kernel reports every change to a
//! socket (rtnetlink(7)), which reveals changes that are undone before the end. Links are compared
//! by value: a report without new values, as when a program enters promiscuous mode or an address
//! is found unique, is no change. Neighbours are left out because they change by themselves.
//!
//! Kernel parameters ([`parameters`]) are also read before and after, and whenever a program writes
//! one.
//!
//! Reports cost one message per change, and nothing while nothing changes.

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

/// A route table that no packet uses, because its rule needs a mark that no packet has. A station's
/// IKE daemon puts its routes there and changes them whenever the device renews its keys. They are
/// not part of the path.
pub(crate) const UNUSED_TABLE: u32 = 4500;

/// Number of an XFRM interface that no node has. The policies of a station's IKE daemon are for it,
/// and change like its routes. Adding an interface with this number is reported as a change.
pub(crate) const UNUSED_INTERFACE: u32 = 4500;

/// Most changes that one watch lists; the others are counted.
const CHANGES_MAX: usize = 64;

/// An active watch.
pub(crate) struct SettingsWatch {
    reports: Reports,
    queue_drops: BTreeMap<String, u64>,
    stack: BTreeMap<String, u64>,
    policies: Vec<String>,
    neighbours: Option<Neighbours>,
}

impl SettingsWatch {
    /// Starts to watch this network namespace. `policies` is the output of `ip xfrm policy`,
    /// `machine` are the parameters of the machine's namespace. With `neighbours`, frames of ARP
    /// and neighbour discovery are counted too.
    ///
    /// # Errors
    /// If the kernel refuses a socket or inotify, or does not answer.
    pub(crate) fn start(
        policies: &str,
        machine: &ParameterFiles,
        neighbours: bool,
    ) -> io::Result<Self> {
        // Opened first, so that changes while the settings are read are reported.
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
    /// node, and the growth of the counters. `policies` is the present output of `ip xfrm policy`.
    ///
    /// # Errors
    /// If the settings cannot be read again.
    pub(crate) fn end(self, policies: &str) -> io::Result<PathSettings> {
        // First, as reading the settings takes a moment in which more frames may come.
        let neighbours = self.neighbours.as_ref().map(Neighbours::frames);
        let (known, mut changes) = self.reports.end();
        let after = Snapshot::read()?;
        // `known` is the state after all reports: another state now means a change without a
        // report.
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
            let noun = if more == 1 { "change" } else { "changes" };
            changes.push(change(None, format!("{more} more {noun}")));
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

/// Parses the output of `ip xfrm policy` into sorted policies, without the SPIs and request ids of
/// the SAs in use: a renewal of keys changes all of these, and no path. Omits policies for
/// [`UNUSED_INTERFACE`], which are not part of the path.
fn each_policy(listed: &str) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for line in listed.lines() {
        // The lines of a policy after its first are indented.
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
    // The space ends the number, which may be the beginning of a longer one.
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
            // An IKE SA that replaces another numbers its SAs in a different order.
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
        // A station's daemon briefly has no policies while the device reauthenticates.
        let of_station = policy(one, "0xcb67fc62").replace("if_id 0x1", "if_id 0x1194");
        assert_eq!(
            each_policy(&(before.clone() + &of_station)),
            each_policy(&before)
        );
        // The beginning of the unused number is the number of another interface.
        let other = policy(one, "0xcb67fc62").replace("if_id 0x1", "if_id 0x119");
        assert_ne!(
            each_policy(&(before.clone() + &other)),
            each_policy(&before)
        );
    }
}

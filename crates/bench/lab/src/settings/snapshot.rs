//! All settings of a network namespace at one instant, and the changes between two snapshots.

use super::netlink::{Message, RouteSocket};
use super::objects::{self, Names, SettingUpdate, Values, said};
use std::collections::BTreeMap;
use std::{fs, io};

/// Settings by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    names: Names,
    settings: BTreeMap<String, Values>,
    pub(super) queue_drops: BTreeMap<String, u64>,
}

impl Snapshot {
    /// Queries the kernel for all settings.
    pub(super) fn read() -> io::Result<Self> {
        let socket = RouteSocket::open(0)?;
        let any = |bytes: usize| vec![0; bytes];
        let of_version = |version: libc::c_int| {
            let mut body = vec![0; objects::CONF_BYTES];
            body[0] = version as u8;
            body
        };
        // Links first: the other messages refer to their names.
        let kinds = [
            (libc::RTM_GETLINK, any(objects::LINK_BYTES)),
            (libc::RTM_GETADDR, any(objects::ADDRESS_BYTES)),
            (libc::RTM_GETROUTE, any(objects::ROUTE_BYTES)),
            (libc::RTM_GETRULE, any(objects::RULE_BYTES)),
            (libc::RTM_GETQDISC, any(objects::QUEUE_BYTES)),
            (libc::RTM_GETNETCONF, of_version(libc::AF_INET)),
            (libc::RTM_GETNETCONF, of_version(libc::AF_INET6)),
        ];
        let mut found = Self::default();
        for (request, body) in kinds {
            match socket.dump(request, &body) {
                Ok(messages) => messages.iter().for_each(|message| found.add(message)),
                // A kernel without IPv6, or without rules.
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
                Err(error) => return Err(error),
            }
        }
        found.add_queues();
        Ok(found)
    }

    fn add(&mut self, message: &Message) {
        if message.kind == libc::RTM_NEWQDISC
            && let Some((interface, drops)) = objects::queue_drops(message, &self.names)
        {
            self.queue_drops.insert(interface, drops);
        }
        // A dump has no removals, and its values replace those of an earlier message about the same
        // object.
        for one in said(message, &mut self.names) {
            if let SettingUpdate::Is(name, values) = one {
                self.settings.insert(name, values);
            }
        }
    }

    /// Adds the numbers of queues in use, set by `ethtool -L`, which the kernel does not report.
    fn add_queues(&mut self) {
        let count = |interface: &str, prefix: &str| {
            let folder = fs::read_dir(format!("/sys/class/net/{interface}/queues")).ok()?;
            let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            Some(names.filter(|name| name.starts_with(prefix)).count())
        };
        for interface in self.names.values() {
            let both = count(interface, "rx-").zip(count(interface, "tx-"));
            let Some((receive, transmit)) = both.filter(|_| interface != "lo") else {
                continue;
            };
            let values = [
                ("receive", receive.to_string()),
                ("transmit", transmit.to_string()),
            ];
            let name = format!("queues in use of {interface}");
            self.settings.insert(name, values.into());
        }
    }

    /// Applies a report of the kernel; returns the changes as text.
    pub(super) fn update(&mut self, message: &Message) -> Vec<String> {
        let all = said(message, &mut self.names).into_iter();
        all.filter_map(|one| match one {
            SettingUpdate::Is(name, values) => {
                let words = differences(&name, self.settings.get(&name), Some(&values));
                self.settings.insert(name, values);
                words
            }
            SettingUpdate::Gone(name) => {
                // The removal of an object that was not among the settings changes none of them.
                let known = self.settings.remove(&name)?;
                differences(&name, Some(&known), None)
            }
            SettingUpdate::Changed(what) => Some(what),
        })
        .collect()
    }

    /// Returns the differences in a later snapshot as text.
    pub(super) fn changes_to(&self, after: &Self) -> Vec<String> {
        let mut names: Vec<&String> = self.settings.keys().collect();
        let new = after.settings.keys();
        names.extend(new.filter(|name| !self.settings.contains_key(*name)));
        let one = |name: &&String| {
            let (before, now) = (self.settings.get(*name), after.settings.get(*name));
            differences(name, before, now)
        };
        names.iter().filter_map(one).collect()
    }
}

/// Long encoded values that messages do not show.
const SILENT: [&str; 3] = ["options", "metrics", "next hops"];

/// Whether a value is a late report of an existing state: the kernel notices a new link's carrier
/// up to a second after it forwards, and only then attaches its queue discipline. A link that goes
/// down shows the opposite first.
fn is_late(key: &str, was: Option<&String>, is: Option<&String>) -> bool {
    let is_word = |value: Option<&String>, word: &str| value.is_some_and(|value| value == word);
    match key {
        "running" => is_word(is, "yes"),
        "queue discipline" => is_word(was, "noop"),
        _ => false,
    }
}

/// Describes how a setting changed; `None` if it did not.
fn differences(name: &str, before: Option<&Values>, after: Option<&Values>) -> Option<String> {
    let (before, after) = match (before, after) {
        (None, None) => return None,
        (Some(_), None) => return Some(format!("{name} removed")),
        (None, Some(after)) => {
            let values = after.iter().filter(|(key, _)| !SILENT.contains(key));
            let values: Vec<String> = values
                .map(|(key, value)| format!("{key} {value}"))
                .collect();
            let values = if values.is_empty() {
                String::new()
            } else {
                format!(" ({})", values.join(", "))
            };
            return Some(format!("{name} added{values}"));
        }
        (Some(before), Some(after)) => (before, after),
    };
    let keys = before
        .keys()
        .chain(after.keys().filter(|key| !before.contains_key(*key)));
    let words = keys.filter_map(|key| {
        let (was, is) = (before.get(key), after.get(key));
        let none = || "none".to_owned();
        match (was, is) {
            (was, is) if was == is => None,
            _ if is_late(key, was, is) => None,
            _ if SILENT.contains(key) => Some(format!("{key} changed")),
            (was, is) => {
                let (was, is) = (was.cloned(), is.cloned());
                let (was, is) = (was.unwrap_or_else(none), is.unwrap_or_else(none));
                Some(format!("{key} {is}, was {was}"))
            }
        }
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("{name}: {}", words.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&'static str, &str)]) -> Values {
        let owned = pairs.iter().map(|(key, value)| (*key, (*value).to_owned()));
        owned.collect()
    }

    fn words(before: Option<&Values>, after: Option<&Values>) -> Option<String> {
        differences("link w0", before, after)
    }

    #[test]
    fn differences_are_named_with_both_values() {
        let before = values(&[("mtu", "1500"), ("up", "yes")]);
        let after = values(&[("mtu", "1000"), ("up", "yes")]);
        assert_eq!(words(Some(&before), Some(&before)), None);
        assert_eq!(
            words(Some(&before), Some(&after)).unwrap(),
            "link w0: mtu 1000, was 1500"
        );
        assert_eq!(words(Some(&before), None).unwrap(), "link w0 removed");
        assert_eq!(
            words(None, Some(&after)).unwrap(),
            "link w0 added (mtu 1000, up yes)"
        );
        let link = |running| values(&[("running", running)]);
        let down = words(Some(&link("yes")), Some(&link("no"))).unwrap();
        assert_eq!(down, "link w0: running no, was yes");
        assert_eq!(words(Some(&link("no")), Some(&link("yes"))), None);
        let queue = values(&[("options", "00ff")]);
        assert_eq!(
            words(Some(&queue), Some(&Values::new())).unwrap(),
            "link w0: options changed"
        );
    }

    #[test]
    fn a_namespace_read_twice_is_the_same_and_has_links_and_routes() {
        let (first, second) = (Snapshot::read().unwrap(), Snapshot::read().unwrap());
        // Other programs may change this machine's settings meanwhile.
        if first.settings == second.settings {
            assert_eq!(first.changes_to(&second), Vec::<String>::new());
        }
        assert!(first.names.values().any(|name| name == "lo"));
        let one = first.settings.keys().next().cloned().unwrap();
        let mut less = first.clone();
        less.settings.remove(&one);
        assert_eq!(first.changes_to(&less), [format!("{one} removed")]);
        assert_eq!(less.changes_to(&first).len(), 1);
    }
}

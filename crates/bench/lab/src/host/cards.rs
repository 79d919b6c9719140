//! Network cards of a lab, and their properties that bear on results.

use super::OUTPUT_BYTES_MAX;
use crate::programs::find;
use crate::scan::field;
use nix::net::if_::if_nametoindex;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use testbed::time_stamps;

/// An interface that a lab uses, and the card behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Card {
    /// Its name.
    pub interface: String,
    /// Whether the interface exists.
    pub exists: bool,
    /// Its driver; empty when unknown.
    pub driver: String,
    /// Speed of its link in Mbit/s; `None` without a link.
    pub speed_mbps: Option<u64>,
    /// Frames that its receive ring holds, now and at most; `None` if the driver does not say.
    pub receive_ring: Option<[u64; 2]>,
    /// Receive queues; 0 when unknown.
    pub queues: usize,
    /// The NUMA node that it is plugged into; `None` on machines with one.
    pub numa_node: Option<u32>,
    /// The card's clock for frame time stamps; `None` if it stamps no frames.
    pub stamped_by: Option<u32>,
    /// The CPUs that its interrupts go to, as lists of the kernel; empty for a virtual one.
    pub interrupts: BTreeSet<String>,
}

impl Card {
    /// Reads it. Nothing is changed.
    #[must_use]
    pub fn read(interface: &str) -> Self {
        let folder = Path::new("/sys/class/net").join(interface);
        let text = |name: &str| {
            let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
            text.trim().to_owned()
        };
        let entries = |name: &str| {
            let entries = fs::read_dir(folder.join(name)).into_iter().flatten();
            entries
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        let affinity = |number: &String| {
            let folder = Path::new("/proc/irq").join(number);
            // An interrupt may have been given up since it was listed.
            let read = |name| fs::read_to_string(folder.join(name)).ok();
            // Not every interrupt controller reports the CPUs in effect.
            let list = read("effective_affinity_list").filter(|list| !list.trim().is_empty());
            Some(
                list.or_else(|| read("smp_affinity_list"))?
                    .trim()
                    .to_owned(),
            )
        };
        Self {
            interface: interface.to_owned(),
            exists: if_nametoindex(interface).is_ok(),
            driver: field(&ethtool("-i", interface), "driver")
                .unwrap_or_default()
                .to_owned(),
            // Without a link it is -1 or cannot be read.
            speed_mbps: text("speed").parse().ok().filter(|&speed| speed > 0),
            receive_ring: receive_ring(&ethtool("-g", interface)),
            queues: entries("queues")
                .iter()
                .filter(|name| name.starts_with("rx-"))
                .count(),
            numa_node: text("device/numa_node").parse().ok(),
            stamped_by: time_stamps::parse(&ethtool("-T", interface)),
            interrupts: entries("device/msi_irqs")
                .iter()
                .filter_map(affinity)
                .collect(),
        }
    }

    /// Whether one CPU has all interrupts.
    pub(super) fn is_on_one_cpu(&self) -> bool {
        let mut lists = self.interrupts.iter();
        // A list of several CPUs leaves the kernel a choice.
        let single = |list: &String| list.parse::<u32>().is_ok();
        matches!((lists.next(), lists.next()), (Some(list), None) if single(list))
    }

    /// In words.
    pub(super) fn describe(&self) -> String {
        let driver = if self.driver.is_empty() {
            "driver unknown"
        } else {
            &self.driver
        };
        let mut words = vec![driver.to_owned()];
        words.extend(self.speed_mbps.map(|speed| format!("{speed} Mbit/s")));
        words.extend(
            self.receive_ring
                .map(|[now, most]| format!("receive ring {now} of {most}")),
        );
        match self.queues {
            // Not shown in this mount namespace.
            0 => {}
            1 => words.push("1 queue".to_owned()),
            queues => words.push(format!("{queues} queues")),
        }
        words.extend(self.numa_node.map(|node| format!("NUMA node {node}")));
        let clock = self.stamped_by;
        words.extend(clock.map(|clock| format!("can stamp frames by its clock ptp{clock}")));
        if !self.interrupts.is_empty() {
            let lists: Vec<_> = self.interrupts.iter().map(String::as_str).collect();
            words.push(format!("interrupts on CPUs {}", lists.join(", ")));
        }
        words.join(", ")
    }
}

/// Returns the output of `ethtool`; empty if it fails: not every driver answers every question.
fn ethtool(question: &str, interface: &str) -> String {
    // The doctor works without it, and then knows less.
    let Some(program) = find("ethtool") else {
        return String::new();
    };
    let mut command = Command::new(program);
    let output = guard::output(command.args([question, interface]), OUTPUT_BYTES_MAX);
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// The receive ring's length, now and at most, as `ethtool -g` prints them: the most first.
pub(super) fn receive_ring(text: &str) -> Option<[u64; 2]> {
    let (most, now) = text.split_once("Current hardware settings")?;
    let length = |part| field(part, "RX")?.parse::<u64>().ok();
    Some([length(now)?, length(most)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_a_length_now_and_at_most() {
        let rings = "Ring parameters for eth2:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t4096\n\
                     Current hardware settings:\nRX:\t\t512\nRX Mini:\tn/a\nTX:\t\t512\n";
        assert_eq!(receive_ring(rings), Some([512, 4096]));
        assert_eq!(
            receive_ring("netlink error: Operation not supported\n"),
            None
        );
    }

    #[test]
    fn an_interface_is_there_or_not() {
        assert!(!Card::read("nowhere0").exists);
        assert!(Card::read("lo").exists);
    }
}

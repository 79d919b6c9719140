//! Settings of nodes, or of external boxes, that are in force while a version of a DUT is measured.

use crate::pinned::PinnedProgram;
use crate::words::on_off;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings of a version, applied before it starts and undone after it has stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionSettings {
    /// Settings of A and B.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub stations: NodeSettings,
    /// Settings of the gateways that are loaded.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub gateways: NodeSettings,
    /// Programs that the stations start in place of installed ones, by their names of
    /// [`STATION_PROGRAMS`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, StationProgram>,
    /// The command that switches external boxes to this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Switch>,
}

/// A program of a station.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationProgram {
    /// Its path, or a name that is searched for.
    pub program: String,
    /// The program that was found when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<PinnedProgram>,
}

/// The tools that a version may replace: those that measure transfers.
pub const STATION_PROGRAMS: [&str; 2] = ["iperf3", "iperf"];

/// Settings of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSettings {
    /// Kernel parameters of its network namespace, by their names in sysctl(8).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// Features of its interfaces at links, by the names that `ethtool -k` prints.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub features: BTreeMap<String, bool>,
}

/// Commands that switch external boxes, for a shell on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Switches to the version.
    pub command: String,
    /// Switches back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// Longest time of each, in nanoseconds.
    pub limit_ns: u64,
}

/// Features that a campaign may set: as `ethtool -K` accepts them, and as `ethtool -k` prints them.
pub const LINK_FEATURES: [(&str, &str); 17] = [
    ("gro", "generic-receive-offload"),
    ("gso", "generic-segmentation-offload"),
    ("lro", "large-receive-offload"),
    ("ntuple", "ntuple-filters"),
    ("rx", "rx-checksumming"),
    ("rx-gro-hw", "rx-gro-hw"),
    ("rx-gro-list", "rx-gro-list"),
    ("rx-udp-gro-forwarding", "rx-udp-gro-forwarding"),
    ("rxvlan", "rx-vlan-offload"),
    ("sg", "scatter-gather"),
    ("tso", "tcp-segmentation-offload"),
    ("tx", "tx-checksumming"),
    ("tx-esp-segmentation", "tx-esp-segmentation"),
    ("tx-udp-segmentation", "tx-udp-segmentation"),
    (
        "tx-udp_tnl-csum-segmentation",
        "tx-udp_tnl-csum-segmentation",
    ),
    ("tx-udp_tnl-segmentation", "tx-udp_tnl-segmentation"),
    ("txvlan", "tx-vlan-offload"),
];

/// Longest value of a kernel parameter.
pub const SYSCTL_CHARS_MAX: usize = 200;

impl VersionSettings {
    /// The settings in words; `as usual` if there are none.
    #[must_use]
    pub fn in_words(&self) -> String {
        // Every field is named, so that the compiler asks for the words of a new one.
        let Self {
            stations,
            gateways,
            programs,
            switch,
        } = self;
        let mut words = Vec::new();
        for (nodes, its) in [("stations", stations), ("gateways", gateways)] {
            words.extend(its.in_words().map(|setting| format!("{nodes} {setting}")));
        }
        for (name, its) in programs {
            let found = its.found.as_ref();
            let found =
                found.map_or_else(String::new, |found| format!(", SHA-256 {}", found.short()));
            words.push(format!("{name} of the stations {}{found}", its.program));
        }
        words.extend(
            switch
                .iter()
                .map(|switch| format!("after `{}`", switch.command)),
        );
        if words.is_empty() {
            "as usual".to_owned()
        } else {
            words.join(", ")
        }
    }

    /// Its demands: key and content.
    pub(crate) fn demands(&self) -> Vec<(String, String)> {
        let commands = self.switch.iter().flat_map(|switch| {
            let undo = switch.undo.iter().map(|undo| ("undo", undo));
            [("command", &switch.command)].into_iter().chain(undo)
        });
        let programs = self.programs.values().map(|its| ("program", &its.program));
        let all = programs.chain(commands);
        all.map(|(key, command)| (format!("settings, {key}"), command.clone()))
            .collect()
    }

    /// The program that stations start in place of an installed one.
    #[must_use]
    pub fn station_program(&self, name: &str) -> Option<&str> {
        self.programs.get(name).map(StationProgram::path)
    }

    /// The first part that no campaign could have given.
    pub(crate) fn mistake(&self) -> Option<String> {
        let mut names = self.programs.keys();
        if let Some(name) = names.find(|name| !STATION_PROGRAMS.contains(&name.as_str())) {
            return Some(format!("the program `{}`", name.escape_debug()));
        }
        let mut found = self.programs.values().filter_map(|its| its.found.as_ref());
        found.find_map(PinnedProgram::mistake).or_else(|| {
            [&self.stations, &self.gateways]
                .into_iter()
                .find_map(NodeSettings::mistake)
        })
    }
}

impl StationProgram {
    /// The program to start: the file that was found when the run began, otherwise the named one.
    #[must_use]
    pub fn path(&self) -> &str {
        let found = self.found.as_ref().map(|found| found.path.as_str());
        found.unwrap_or(&self.program)
    }
}

impl NodeSettings {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sysctls.is_empty() && self.features.is_empty()
    }

    fn in_words(&self) -> impl Iterator<Item = String> {
        let sysctls = self.sysctls.iter();
        let sysctls = sysctls.map(|(name, value)| format!("{name} = {value}"));
        let features = self.features.iter();
        let features = features.map(|(name, on)| format!("{name} {}", on_off(*on)));
        sysctls.chain(features)
    }

    fn mistake(&self) -> Option<String> {
        let quoted = |what: &str, text: &str| Some(format!("{what} `{}`", text.escape_debug()));
        for (name, value) in &self.sysctls {
            if !is_sysctl(name) || !is_sysctl_value(value) {
                return quoted("the kernel parameter", &format!("{name} = {value}"));
            }
        }
        let is_known = |name: &str| LINK_FEATURES.iter().any(|(_, known)| *known == name);
        let mut features = self.features.keys();
        let unknown = features.find(|name| !is_known(name))?;
        quoted("the feature", unknown)
    }
}

/// Whether this can be the name of a kernel parameter of a network namespace: parts separated by
/// dots, the first of which is `net`.
#[must_use]
pub fn is_sysctl(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let mut parts = name.split('.');
    let is_net = parts.next() == Some("net");
    // Without empty parts no path leads out of the folder.
    is_net
        && name.matches('.').count() >= 2
        && parts.all(|part| !part.is_empty() && part.bytes().all(fits))
}

/// Whether a kernel parameter may be set to this: words in one line.
#[must_use]
pub fn is_sysctl_value(value: &str) -> bool {
    let length = value.chars().count();
    (1..=SYSCTL_CHARS_MAX).contains(&length)
        && value.trim() == value
        && !value.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parameters_lead_nowhere_else() {
        for good in [
            "net.ipv4.tcp_rmem",
            "net.ipv6.conf.all.disable_ipv6",
            "net.mptcp.enabled",
        ] {
            assert!(is_sysctl(good), "{good}");
        }
        for bad in [
            "",
            "net",
            "net.ipv4",
            "kernel.panic",
            "vm.overcommit_memory",
            "net.ipv4.../x",
            "net..ipv4.x",
            "net.ipv4.x.",
            "net/ipv4/tcp_rmem",
            "net.ipv4.tcp rmem",
        ] {
            assert!(!is_sysctl(bad), "{bad}");
        }
    }
}

//! The settings of interfaces that the doctor changes, and the commands that change and keep them.

use serde::{Deserialize, Serialize};
use std::fmt;
use testbed::NodeId;

/// A feature of an interface.
#[derive(Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name for `ethtool -K`.
    pub word: &'static str,
    /// Its name in the output of `ethtool -k`.
    pub printed: &'static str,
    /// Its key in a `.link` file of systemd, if it has one (systemd.link(5)).
    link_key: Option<&'static str>,
    /// The features without which the kernel turns it off (`netdev_fix_features`).
    pub needs: &'static [&'static str],
}

const fn feature(
    word: &'static str,
    printed: &'static str,
    link_key: Option<&'static str>,
    needs: &'static [&'static str],
) -> Feature {
    Feature {
        word,
        printed,
        link_key,
        needs,
    }
}

/// The features that the doctor changes: later ones need earlier ones.
pub static FEATURES: [Feature; 14] = [
    feature("rx", "rx-checksumming", Some("ReceiveChecksumOffload"), &[]),
    feature(
        "tx",
        "tx-checksumming",
        Some("TransmitChecksumOffload"),
        &[],
    ),
    feature("sg", "scatter-gather", None, &[]),
    feature(
        "tso",
        "tcp-segmentation-offload",
        Some("TCPSegmentationOffload"),
        &["tx", "sg"],
    ),
    feature(
        "tx-udp-segmentation",
        "tx-udp-segmentation",
        None,
        &["tx", "sg"],
    ),
    feature(
        "gso",
        "generic-segmentation-offload",
        Some("GenericSegmentationOffload"),
        &["sg"],
    ),
    feature(
        "gro",
        "generic-receive-offload",
        Some("GenericReceiveOffload"),
        &[],
    ),
    feature(
        "rx-gro-hw",
        "rx-gro-hw",
        Some("GenericReceiveOffloadHardware"),
        &["rx"],
    ),
    feature(
        "lro",
        "large-receive-offload",
        Some("LargeReceiveOffload"),
        &["rx"],
    ),
    feature("rx-udp-gro-forwarding", "rx-udp-gro-forwarding", None, &[]),
    feature("rx-gro-list", "rx-gro-list", None, &[]),
    feature(
        "tx-udp_tnl-segmentation",
        "tx-udp_tnl-segmentation",
        None,
        &[],
    ),
    feature(
        "tx-udp_tnl-csum-segmentation",
        "tx-udp_tnl-csum-segmentation",
        None,
        &[],
    ),
    feature("tx-esp-segmentation", "tx-esp-segmentation", None, &[]),
];

/// An interface of a lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its node.
    pub node: NodeId,
    /// Its name.
    pub interface: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.node.name(), self.interface)
    }
}

/// A setting with two levels: 0 as it was found, 1 the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A feature of an interface.
    Feature {
        /// The interface.
        at: Place,
        /// The feature.
        feature: &'static Feature,
        /// Whether it was found on.
        found: bool,
    },
    /// The MTU of both ends of a link.
    Mtu {
        /// The ends.
        ends: [Place; 2],
        /// As found, in bytes.
        found: u16,
        /// The other value, in bytes.
        other: u16,
    },
}

impl Setting {
    /// The setting without a value: `tso of gw1/a1`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Feature { at, feature, .. } => format!("{} of {at}", feature.word),
            Self::Mtu { ends: [a, b], .. } => format!("MTU of {a} and {b}"),
        }
    }

    /// The value of a level: `on`, `off`, or bytes.
    #[must_use]
    pub fn value(&self, level: u8) -> String {
        match self {
            Self::Feature { found, .. } => on_or_off(*found == (level == 0)).to_owned(),
            Self::Mtu { found, other, .. } => {
                format!("{} B", if level == 0 { found } else { other })
            }
        }
    }

    /// The commands that set a level, each with its node.
    #[must_use]
    pub fn commands(&self, level: u8) -> Vec<(NodeId, Vec<String>)> {
        match self {
            Self::Feature { at, feature, .. } => {
                let value = self.value(level);
                let words = ["ethtool", "-K", &at.interface, feature.word, &value];
                vec![(at.node, words.map(str::to_owned).to_vec())]
            }
            Self::Mtu { ends, found, other } => {
                let mtu = if level == 0 { found } else { other }.to_string();
                let each = ends.iter().map(|end| {
                    let words = ["ip", "link", "set", &end.interface, "mtu", &mtu];
                    (end.node, words.map(str::to_owned).to_vec())
                });
                each.collect()
            }
        }
    }

    /// How to keep a level over a restart: a file and its content for each interface.
    #[must_use]
    pub fn kept(&self, level: u8) -> Vec<Keep> {
        match self {
            Self::Feature { at, feature, .. } => {
                let interface = &at.interface;
                let value = self.value(level);
                vec![match feature.link_key {
                    Some(key) => {
                        link_file(interface, key, if value == "on" { "yes" } else { "no" })
                    }
                    // systemd has no key for it.
                    None => Keep {
                        file: format!("/etc/udev/rules.d/90-{interface}-offloads.rules"),
                        content: format!(
                            "ACTION==\"add\", SUBSYSTEM==\"net\", NAME==\"{interface}\", \
                             RUN+=\"/usr/sbin/ethtool -K {interface} {} {value}\"",
                            feature.word
                        ),
                    },
                }]
            }
            Self::Mtu { ends, found, other } => {
                let mtu = if level == 0 { found } else { other }.to_string();
                let each = ends.iter();
                each.map(|end| link_file(&end.interface, "MTUBytes", &mtu))
                    .collect()
            }
        }
    }
}

/// A file that keeps a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Its path.
    pub file: String,
    /// Its lines.
    pub content: String,
}

fn link_file(interface: &str, key: &str, value: &str) -> Keep {
    Keep {
        // Before 99-default.link, of which only the first file that matches counts.
        file: format!("/etc/systemd/network/10-{interface}.link"),
        content: format!("[Match]\nOriginalName={interface}\n[Link]\n{key}={value}"),
    }
}

pub(crate) const fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(word: &str, found: bool) -> Setting {
        Setting::Feature {
            at: Place {
                node: NodeId::Gw1,
                interface: "w0".to_owned(),
            },
            feature: FEATURES
                .iter()
                .find(|feature| feature.word == word)
                .unwrap(),
            found,
        }
    }

    #[test]
    fn commands_and_files_set_the_value_of_a_level() {
        let tso = setting("tso", true);
        assert_eq!(tso.name(), "tso of gw1/w0");
        assert_eq!(tso.commands(1)[0].1.join(" "), "ethtool -K w0 tso off");
        assert_eq!(
            tso.kept(1),
            [Keep {
                file: "/etc/systemd/network/10-w0.link".to_owned(),
                content: "[Match]\nOriginalName=w0\n[Link]\nTCPSegmentationOffload=no".to_owned(),
            }]
        );
        let forwarding = setting("rx-udp-gro-forwarding", false).kept(1).remove(0);
        assert_eq!(forwarding.file, "/etc/udev/rules.d/90-w0-offloads.rules");
        assert!(
            forwarding
                .content
                .ends_with("ethtool -K w0 rx-udp-gro-forwarding on\"")
        );
    }

    #[test]
    fn features_need_earlier_ones() {
        for (at, feature) in FEATURES.iter().enumerate() {
            for word in feature.needs {
                let needed = FEATURES.iter().position(|other| other.word == *word);
                assert!(needed.unwrap() < at, "{}", feature.word);
            }
        }
    }
}

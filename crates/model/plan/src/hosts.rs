//! The hosts of a lab with stations on other machines.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Two hosts: station A and gateway gw1 on one, gateway gw2 and station B on the other. A cable
/// joins the gateways, or [`Cables`](super::Cables) lead to external boxes between the stations, or
/// both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hosts {
    /// Of A and gw1.
    pub a: Host,
    /// Of gw2 and B.
    pub b: Host,
    /// How long a run waits for a host that went away, in nanoseconds.
    pub reconnect_ns: u64,
}

impl Hosts {
    /// Both, A's first, each with the key that names it.
    #[must_use]
    pub const fn each(&self) -> [(HostName, &Host); 2] {
        [(HostName::A, &self.a), (HostName::B, &self.b)]
    }

    /// Whether a cable joins the gateways: then each host has its interface.
    #[must_use]
    pub const fn has_cable(&self) -> bool {
        // The reader of labs refuses an interface of one host alone; a changed journal may have it.
        self.a.interface.is_some() && self.b.interface.is_some()
    }

    /// Whether one of them is this machine.
    #[must_use]
    pub fn include_this_machine(&self) -> bool {
        self.each().iter().any(|(_, host)| host.is_this_machine())
    }
}

/// One of the two hosts of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum HostName {
    /// Station A's.
    A,
    /// Station B's.
    B,
}

impl HostName {
    /// Both, in the order of a lab.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// The key that names it in a lab.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A host and its end of the cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The words in front of a command that runs it on the host: `ssh`, `root@left`. Empty: the
    /// host is this machine.
    pub reach: Vec<String>,
    /// The interface at the cable to the other host, which gateway gw1 or gw2 has while a run
    /// lasts; `None` on both hosts: no cable joins the gateways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The CPUs that the tools of its station are assigned, by number; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u16>,
    /// Path of the program on the host; `None`: the one in its search path if that is the same,
    /// else this program is sent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl Host {
    /// Whether it is the machine that the run is on.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.reach.is_empty()
    }

    /// Its `reach` as one text, or `this machine`.
    #[must_use]
    pub fn describe(&self) -> String {
        if self.is_this_machine() {
            "this machine".to_owned()
        } else {
            // For people alone: a blank inside of a word is not marked.
            self.reach.join(" ")
        }
    }
}

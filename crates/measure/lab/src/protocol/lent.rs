//! An interface that a station borrows, with what it is given back with.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An interface of the machine that a station borrows for a run, with its former settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lent {
    /// Its name.
    pub interface: String,
    /// Its name at the station; `None`: the same, which then also what the kernel gives back by
    /// itself has.
    #[serde(default)]
    pub renamed: Option<String>,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Whether it was up.
    pub up: bool,
    /// Offloads as `ethtool -K` takes them: `tso` to `on`.
    pub offloads: BTreeMap<String, String>,
    /// The kernel's parameters of it: path below `/proc/sys/net` to value.
    pub parameters: BTreeMap<String, String>,
    /// Commands of `ip` that add its permanent neighbours and multicast addresses again.
    pub additions: Vec<String>,
}

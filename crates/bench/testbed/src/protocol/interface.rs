//! An interface that a station borrows, with the settings to restore.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An interface of the machine that a station borrows for a run, with its former settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BorrowedInterface {
    /// Its name.
    pub interface: String,
    /// Its name at the station; `None`: unchanged, so it also keeps its name if the kernel returns
    /// it.
    #[serde(default)]
    pub renamed: Option<String>,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Whether it was up.
    pub up: bool,
    /// Offloads in the form of `ethtool -K`: `tso` to `on`.
    pub offloads: BTreeMap<String, String>,
    /// The kernel's parameters of the interface: path below `/proc/sys/net` to value.
    pub parameters: BTreeMap<String, String>,
    /// `ip` commands that restore its permanent neighbours and multicast addresses.
    pub additions: Vec<String>,
}

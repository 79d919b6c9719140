//! Processes that a killed station leaves in its network namespace.

use crate::kill::kill_all;
use crate::{Node, Result, Station, procfs};
use std::fs::File;
use std::time::Duration;

/// How long killed processes may take to be gone.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A station's network namespace, emptied when this is dropped, after the station itself. A station
/// kills all its processes; those found here are daemons whose station was killed.
pub(crate) struct Remains {
    /// Keeps the inode number from being reused for another namespace.
    _file: File,
    id: (u64, u64),
}

impl Remains {
    pub(crate) fn of(station: &Station) -> Result<Self> {
        let node: &dyn Node = station;
        let look = |pid| {
            procfs::network_namespace(pid).map_err(|error| {
                node.error(format!("cannot look at its network namespace: {error}"))
            })
        };
        let (file, id) = look(station.pid())?;
        let (_, own) = look(std::process::id())?;
        // Everything in it will be killed: it must never be the machine's own namespace.
        if id == own {
            return Err(node.error("it is in the same network namespace as the run"));
        }
        Ok(Self { _file: file, id })
    }
}

impl Drop for Remains {
    fn drop(&mut self) {
        kill_all(|| procfs::members(self.id), KILL_LIMIT);
    }
}

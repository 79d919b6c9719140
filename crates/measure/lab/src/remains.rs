//! What a station that was killed leaves in its network namespace.

use crate::kill::kill_all;
use crate::{Node, Result, Station, procfs};
use std::fs::File;
use std::time::Duration;

/// How long it may take to be gone once it was killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A station's network namespace, emptied when this is dropped, after the station itself. A station
/// kills all that it has; what is found here is a daemon whose station was killed.
pub(crate) struct Remains {
    /// Keeps the number from being given to another namespace.
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
        // All that is in it will be killed: not for anything may it be the machine's own.
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

//! The cleanup after a killed station: processes in its network namespace, and borrowed interfaces.

use crate::caller::reap;
use crate::kill::kill_all;
use crate::lent;
use crate::own_children::OwnChild;
use crate::sync::lock;
use crate::{Station, procfs};
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testbed::protocol::{BorrowedInterface, Program};
use testbed::{Node, Result};

/// Time limit for killed processes to disappear.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for each step of returning an interface.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// A station's network namespace, emptied on drop, after the station itself. A station kills its
/// processes and returns its interfaces itself; this cleans up for one that was killed.
pub(crate) struct Remains {
    /// Keeps the namespace, with the interfaces in it, and its inode number.
    file: File,
    id: (u64, u64),
    lent: Arc<Mutex<Vec<BorrowedInterface>>>,
    /// The namespace that the interfaces came from.
    home: File,
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
        let (home, own) = look(std::process::id())?;
        // Everything in it will be killed, so it must never be the machine's own namespace.
        if id == own {
            return Err(node.error("it is in the same network namespace as the run"));
        }
        let lent = station.lent();
        Ok(Self {
            file,
            id,
            lent,
            home,
        })
    }
}

impl Drop for Remains {
    fn drop(&mut self) {
        // Before the interfaces move: a process that is left could still change them.
        kill_all(|| procfs::members(self.id), KILL_LIMIT);
        let all = std::mem::take(&mut *lock(&self.lent));
        for lent in all {
            lent::give_back(&lent, Some(&self.file), &self.home, &run);
        }
    }
}

/// Runs a program to its end or its time limit. No caller is left to report a failure to.
fn run(program: &Program) {
    let Some((name, words)) = program.argv.split_first() else {
        return;
    };
    let mut command = Command::new(name);
    command.args(words).stdin(Stdio::piped());
    // Nobody reads it, and a full pipe would stop the program.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _own = OwnChild::expect();
    let Ok(mut child) = command.spawn() else {
        return;
    };
    if let Some(mut input) = child.stdin.take() {
        // A program that has already ended takes no input.
        let _ = input.write_all(program.stdin.as_bytes());
    }
    if !reap(&mut child, TOOL_LIMIT) {
        // It may end at this moment.
        let _ = child.kill();
        reap(&mut child, TOOL_LIMIT);
    }
}

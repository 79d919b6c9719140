//! One machine's part of a lab: the lab's name there, and the remains of its stations.

use crate::caller::Station;
use crate::cpus;
use crate::mark::MARK;
use crate::remains::Remains;
use crate::state::Hold;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use testbed::protocol::{THIS_PROGRAM, THIS_PROGRAM_NAME};
use testbed::{Interrupt, Node, NodeId, Result};

/// A lab's resources on this machine, except the stations. Drop it after them.
pub(crate) struct Part {
    // Dropped in this order: the name is released last.
    remains: Vec<Remains>,
    hold: Hold,
}

impl Part {
    /// Takes the lab's name on this machine and removes leftovers of a killed run of that name.
    /// Returns a sentence for each removal.
    ///
    /// # Errors
    /// [`testbed::LabError::Taken`] when another run has the name.
    pub(crate) fn take(folder: &Path, lab: &str) -> Result<(Self, Vec<String>)> {
        let (hold, swept) = Hold::take(folder, lab)?;
        let part = Self {
            remains: Vec::new(),
            hold,
        };
        Ok((part, swept))
    }

    /// Records that stations will hold interfaces of the machine, or external boxes to take down.
    pub(crate) fn expect_returns(&mut self) -> Result<()> {
        self.hold.expect_returns()
    }

    /// Starts stations in parallel, since each takes some time to get ready, and waits until all
    /// answer. They assign these CPUs to programs; any CPU if the list is empty.
    ///
    /// # Errors
    /// The station's error, or that the machine lacks one of the CPUs.
    pub(crate) fn start(
        &mut self,
        nodes: &[NodeId],
        cpus: &[u16],
        interrupt: &Interrupt,
    ) -> Result<Vec<Station>> {
        // A missing CPU is reported before any station runs.
        cpus::assignable(cpus)?;
        let words: Vec<_> = cpus.iter().map(u16::to_string).collect();
        let start = |&id: &NodeId| {
            let mut command = self.station_command();
            command.args(["--node", id.name()]);
            if !cpus.is_empty() {
                command.args(["--cpus", &words.join(",")]);
            }
            Station::start(id, command, interrupt)
        };
        // All are started before the first is awaited. They are recorded before that too: if this
        // run is killed while it waits, the next one of its name finds them.
        let stations: Vec<_> = nodes.iter().map(start).collect::<Result<_, _>>()?;
        for station in &stations {
            self.hold.record(station.id(), station.pid())?;
        }
        // A station that answers has entered its namespace.
        for station in &stations {
            station.hello()?;
        }
        for station in &stations {
            self.remains.push(Remains::of(station)?);
        }
        Ok(stations)
    }

    /// Starts a station in the namespace of this process, which is not one of the lab's nodes.
    pub(crate) fn start_host(&mut self) -> Result<Station> {
        // What gives back and takes down runs after an interrupt too.
        let host = Station::start(NodeId::Host, self.station_command(), &Interrupt::new())?;
        self.hold.record(NodeId::Host, host.pid())?;
        // It answers once it is set up, and reports here why it could not be.
        host.hello()?;
        Ok(host)
    }

    /// This program as a station, with the lab's mark in its environment.
    fn station_command(&self) -> Command {
        // The running program: its path may lead to a newer build by now.
        let mut command = Command::new(THIS_PROGRAM);
        command
            .arg0(THIS_PROGRAM_NAME)
            .arg("station")
            .env(MARK, self.hold.mark());
        command
    }
}

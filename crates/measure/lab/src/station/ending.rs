//! The station's last actions, when its input has ended, however the run ended.
//!
//! When a namespace goes, the kernel returns its physical interfaces, but with changed settings,
//! and removes virtual ones. So the station returns borrowed interfaces while its namespace exists.

use super::processes::Processes;
use crate::procfs;
use crate::protocol::{Lent, Program};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// How long giving back may take, at each step.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// The actions at the end.
pub(super) struct Ending {
    /// The network namespace that the station was started in.
    home: File,
    pub(super) lent: Vec<Lent>,
    pub(super) programs: Vec<Program>,
    /// Of each program.
    pub(super) limit: Duration,
}

impl Ending {
    /// No actions yet. Create it before the station moves into a namespace of its own.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            home: File::open("/proc/self/ns/net")?,
            lent: Vec::new(),
            programs: Vec::new(),
            limit: Duration::ZERO,
        })
    }

    /// Runs the actions. No caller is left to report a failure to.
    pub(super) fn come(&mut self, processes: &Processes) {
        // They may be about interfaces that are given back.
        for program in std::mem::take(&mut self.programs) {
            run(&program, self.limit, processes);
        }
        for lent in std::mem::take(&mut self.lent) {
            self.give_back(&lent, processes);
        }
    }

    fn give_back(&self, lent: &Lent, processes: &Processes) {
        let here = procfs::interface_counters().unwrap_or_default();
        let Lent {
            interface,
            renamed,
            mtu,
            up,
            offloads,
        } = lent;
        // It may have been moved here and not yet renamed.
        let names = renamed.iter().chain([interface]);
        let Some(name) = names.into_iter().find(|name| here.contains_key(*name)) else {
            return;
        };
        let home = format!("/proc/{}/fd/{}", std::process::id(), self.home.as_raw_fd());
        if !offloads.is_empty() {
            let words = offloads.iter().flat_map(|(name, state)| [name, state]);
            let argv = ["ethtool", "-K", name].into_iter();
            let argv = argv.chain(words.map(String::as_str));
            run(&Program::new(argv), TOOL_LIMIT, processes);
        }
        let rename = match name == interface {
            true => String::new(),
            false => format!(
                "link property del dev {name} altname {interface}\n\
                 link set {name} name {interface}\n"
            ),
        };
        // A failure does not stop the commands after it.
        let leave = Program {
            stdin: format!(
                "link set {name} down\nlink set {name} mtu {mtu}\n{rename}\
                 link set {interface} netns {home}\n"
            ),
            ..Program::new(["ip", "-force", "-batch", "-"])
        };
        run(&leave, TOOL_LIMIT, processes);
        if *up {
            let net = format!("--net={home}");
            let argv = ["nsenter", &net, "ip", "link", "set", interface, "up"];
            run(&Program::new(argv), TOOL_LIMIT, processes);
        }
    }
}

/// Runs a program to its end, or its limit.
fn run(program: &Program, limit: Duration, processes: &Processes) {
    if let Ok((handle, process)) = processes.spawn(program) {
        // No caller is left to report a failure to.
        let _ = process.wait(limit);
        processes.forget(handle);
    }
}

//! The kernel's reports of changed settings, read by a thread that notes their times.

use super::change;
use super::netlink::{MESSAGES_BYTES, RouteSocket, messages};
use super::parameters::Parameters;
use super::snapshot::Snapshot;
use journal::record::SettingChange;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The groups (`RTNLGRP_*`) of links, queues, addresses, routes, rules and forwarding.
const GROUPS: [u32; 10] = [
    libc::RTNLGRP_LINK,
    libc::RTNLGRP_TC,
    libc::RTNLGRP_IPV4_IFADDR,
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV4_RULE,
    libc::RTNLGRP_IPV6_IFADDR,
    libc::RTNLGRP_IPV6_ROUTE,
    libc::RTNLGRP_IPV6_RULE,
    libc::RTNLGRP_IPV4_NETCONF,
    libc::RTNLGRP_IPV6_NETCONF,
];

/// Most changes that are kept; later ones are ignored.
const KEPT_MAX: usize = 1024;

/// A socket that receives the kernel's reports from now on.
pub(super) struct Opened {
    socket: RouteSocket,
    since: Instant,
}

/// The thread that reads the reports.
pub(super) struct Reports {
    /// Closed to end the thread.
    stop: UnixStream,
    thread: JoinHandle<(Snapshot, Vec<SettingChange>)>,
}

impl Reports {
    /// Opens the socket.
    pub(super) fn open() -> io::Result<Opened> {
        // Groups are numbered from 1, and the address has one bit for each.
        let groups = GROUPS.iter().fold(0, |all, group| all | 1 << (group - 1));
        Ok(Opened {
            socket: RouteSocket::open(groups)?,
            since: Instant::now(),
        })
    }

    /// Ends the thread; returns the settings according to the reports, and the changes.
    pub(super) fn end(self) -> (Snapshot, Vec<SettingChange>) {
        // The thread polls the other end, which becomes readable when this one is closed.
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| {
            let lost = change(None, "the reports of changes broke off".to_owned());
            (Snapshot::default(), vec![lost])
        })
    }
}

impl Opened {
    /// Reads the reports from now on; `known` are the present settings.
    pub(super) fn follow(self, known: Snapshot, parameters: Parameters) -> io::Result<Reports> {
        let (stop, stopped) = UnixStream::pair()?;
        let thread = thread::Builder::new()
            .name("settings".into())
            .spawn(move || self.read(known, parameters, &stopped))?;
        Ok(Reports { stop, thread })
    }

    fn read(
        self,
        mut known: Snapshot,
        mut parameters: Parameters,
        stopped: &UnixStream,
    ) -> (Snapshot, Vec<SettingChange>) {
        let mut changes = Vec::new();
        let mut buffer = vec![0; MESSAGES_BYTES];
        loop {
            let is_over = self.await_report(&parameters, stopped);
            let at_ns = u64::try_from(self.since.elapsed().as_nanos()).ok();
            // Reports from before the end are read even after the stop.
            loop {
                let length = match self.socket.receive(&mut buffer) {
                    Ok(length) => length,
                    // The buffer of the socket was full: which changes are missing is unknown, so
                    // that this counts as one.
                    Err(Errno::ENOBUFS) => {
                        let what = "more settings than the kernel could report".to_owned();
                        changes.push(change(at_ns, what));
                        continue;
                    }
                    // Nothing more is there (EAGAIN).
                    Err(_) => break,
                };
                let new = messages(&buffer[..length]);
                let new = new.iter().flat_map(|message| known.update(message));
                let room = KEPT_MAX.saturating_sub(changes.len());
                changes.extend(new.take(room).map(|what| change(at_ns, what)));
            }
            let new = parameters.changes().into_iter();
            let room = KEPT_MAX.saturating_sub(changes.len());
            // At the end the parameters are read without an event, so the time of a change is
            // unknown.
            let at_ns = at_ns.filter(|_| !is_over);
            changes.extend(new.take(room).map(|what| change(at_ns, what)));
            if is_over {
                return (known, changes);
            }
        }
    }

    /// Waits for a report; returns whether the watch has ended instead.
    fn await_report(&self, parameters: &Parameters, stopped: &UnixStream) -> bool {
        let mut fds = [
            PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(stopped.as_fd(), PollFlags::POLLIN),
            PollFd::new(parameters.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => fds[1].any().unwrap_or(true),
            Err(error) => error != Errno::EINTR,
        }
    }
}

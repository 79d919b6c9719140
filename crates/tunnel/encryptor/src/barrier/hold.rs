//! Keeps the tables in place while a gateway runs.
//!
//! `nft flush ruleset`, often the first command of a firewall's reload, removes the tables of every
//! program. The gateway itself has given up the privilege to look, and to load them again. So it
//! starts a process that keeps CAP_NET_ADMIN for this alone: the holder. It reads the tables once
//! from its standard input and afterwards only the kernel's notices, it exists as long as its
//! gateway, and it writes one line for each event to its standard output.

use super::BarrierError;
use super::table::Rules;
use crate::lines::Lines;
use crate::log;
use caps::{CapSet, Capability, CapsHashSet};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use port::Stop;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The bit of NFNLGRP_NFTABLES among the groups of netlink.
const NFTABLES: u32 = 1 << 6;
/// Longest message that the kernel sends.
const MESSAGE_MAX: usize = 64 * 1024;
/// The holder's line once it would notice a change.
const READY: &str = "ready";
/// How soon it tries again after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// Attempts to load tables that another program removes at the same time.
const ATTEMPTS: usize = 5;
/// The longest event of a holder in bytes.
const LINE_MAX: usize = 4096;

/// A gateway's holder. Ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Holder {
    events: ChildStdout,
}

impl Holder {
    /// Starts `program`, which calls [`hold`], and waits until it holds the tables.
    pub(super) fn start(
        mut program: Command,
        tunnel: Option<&str>,
        rules: &Rules,
    ) -> Result<Self, BarrierError> {
        let failed = |error: io::Error| BarrierError::NotHeld {
            said: error.to_string(),
        };
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // An interrupt at the terminal ends the gateway, which ends its holder.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let Child { stdin, stdout, .. } = &mut child;
        let (Some(mut stdin), Some(mut events)) = (stdin.take(), stdout.take()) else {
            unreachable!("both are pipes");
        };
        let written = write!(stdin, "{}\n{}", tunnel.unwrap_or_default(), rules.text());
        drop(stdin);
        // If it ends early, its message says more than the broken pipe.
        let line = read_line(&mut events).map_err(failed)?;
        if line == READY {
            written.map_err(failed)?;
            return Ok(Self { events });
        }
        // It ends now.
        drop(events);
        let _ = child.wait();
        let said = match &line[..] {
            "" => "it has ended",
            said => said,
        };
        let said = said.to_owned();
        Err(BarrierError::NotHeld { said })
    }

    /// Logs its events in a thread, until the flag is raised.
    pub(crate) fn log(self, stop: &Stop) -> io::Result<()> {
        let stop = stop.clone();
        let thread = std::thread::Builder::new().name("tables".to_owned());
        thread
            .spawn(move || {
                let _ = self.log_until(&stop);
            })
            .map(drop)
    }

    fn log_until(mut self, stop: &Stop) -> io::Result<()> {
        let mut lines = Lines::default();
        loop {
            let mut wanted = [self.events.as_fd(), stop.as_fd()]
                .map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
            match poll(&mut wanted, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            if stop.is_raised() {
                return Ok(());
            }
            if wanted[0].any() != Some(true) {
                continue;
            }
            let line = read_line(&mut self.events)?;
            if line.is_empty() {
                log::warn(format_args!(
                    "the process that keeps the tables of nftables in place has ended: if another program removes \
                     them, clear packets may pass; restart the encryptor"
                ));
                return Ok(());
            }
            lines.log(format_args!("warning: {line}"));
        }
    }
}

/// Reads a line, or until the end of the output. The writer writes a line in one call.
fn read_line(output: &mut ChildStdout) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LINE_MAX && output.read(&mut byte)? == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// The holder: loads the tables on standard input whenever another program has removed or changed
/// them, until the reader of its standard output is gone.
///
/// # Errors
/// [`BarrierError`]: it holds nothing.
pub fn hold() -> Result<(), BarrierError> {
    let failed = |error: io::Error| BarrierError::NotHeld {
        said: error.to_string(),
    };
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).map_err(failed)?;
    let (tunnel, text) = input.split_once('\n').unwrap_or_default();
    let rules = Rules::from_text(text.to_owned());
    // Signals that end the gateway must not end the holder: it stays until the gateway has ended.
    let prepared = SigSet::all().thread_block();
    prepared.map_err(|error| failed(error.into()))?;
    keep_net_admin_only();
    // Before the tables are loaded: a change right after that is then among the notices.
    let notices = subscribe().map_err(|error| failed(error.into()))?;
    // The kernel lists the tables in another form than they were written in, so later lists are
    // compared with this one, not with the text.
    let expected = loaded(&rules)?;
    // A gateway that does not read must not stop it.
    let nonblocking = fcntl(io::stdout(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
    nonblocking.map_err(|error| failed(error.into()))?;
    say(READY);
    let (mut buffer, mut unsure) = (vec![0; MESSAGE_MAX], false);
    loop {
        if has_ended(&notices, unsure).map_err(|error| failed(error.into()))? {
            return Ok(());
        }
        if !has_changed(&notices, rules.name(), &mut buffer) && !unsure {
            continue;
        }
        // The gateway is ending: `--remove` may have followed.
        if !tunnel.is_empty() && if_nametoindex(tunnel).is_err() {
            continue;
        }
        let name = rules.name();
        unsure = false;
        // Most notices are about other tables, or about a load by this process. Both end here.
        if rules.listed().is_ok_and(|listed| listed == expected) {
            continue;
        }
        match rules.load() {
            Ok(()) => say(&format!(
                "another program removed or changed the tables {name} of nftables, which drop clear packets of the \
                 networks behind the peers: they are in place again"
            )),
            Err(error) => {
                unsure = true;
                let error = error.to_string().replace('\n', ", ");
                say(&format!(
                    "another program removed or changed the tables {name} of nftables, and they cannot be put back: \
                     clear packets may pass: {error}"
                ));
            }
        }
    }
}

/// Loads the tables, and returns how the kernel then lists them.
fn loaded(rules: &Rules) -> Result<String, BarrierError> {
    let attempt = || rules.load().and_then(|()| rules.listed());
    // A flush in between makes one fail.
    let listed = (1..ATTEMPTS).find_map(|_| attempt().ok());
    listed.map_or_else(attempt, Ok)
}

/// Waits for notices, or for the next attempt; returns whether the gateway has ended.
fn has_ended(notices: &OwnedFd, unsure: bool) -> nix::Result<bool> {
    let output = io::stdout();
    let mut wanted = [
        PollFd::new(notices.as_fd(), PollFlags::POLLIN),
        // POLLERR is reported without a request, and means that the gateway has closed its end of
        // the pipe.
        PollFd::new(output.as_fd(), PollFlags::empty()),
    ];
    // After a failed load no further notice may come, so the next attempt is made after a while.
    let limit = if unsure {
        PollTimeout::try_from(RETRY).unwrap_or(PollTimeout::MAX)
    } else {
        PollTimeout::NONE
    };
    match poll(&mut wanted, limit) {
        Ok(_) => Ok(wanted[1].any() == Some(true)),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes all notices; returns whether one may be about our tables.
fn has_changed(notices: &OwnedFd, table: &str, buffer: &mut [u8]) -> bool {
    let mut changed = false;
    loop {
        match recv(notices.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => {
                // A message is not parsed: a name that is found by chance costs one comparison of
                // the tables.
                let mut parts = buffer[..length].windows(table.len().max(1));
                changed |= parts.any(|part| part == table.as_bytes());
            }
            Err(Errno::EINTR) => {}
            // Some were lost.
            Err(Errno::ENOBUFS) => changed = true,
            Err(_) => return changed,
        }
    }
}

/// A socket that receives all changes of nftables in this network namespace.
fn subscribe() -> nix::Result<OwnedFd> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkNetFilter,
    )?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, NFTABLES))?;
    Ok(socket)
}

/// Gives up every other capability, for the programs that it runs too.
fn keep_net_admin_only() {
    // A failed call leaves more privileges than needed, but nobody talks to this process.
    for capability in caps::all() {
        if capability != Capability::CAP_NET_ADMIN {
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    for set in [
        CapSet::Ambient,
        CapSet::Inheritable,
        CapSet::Effective,
        CapSet::Permitted,
    ] {
        let held = caps::has_cap(None, set, Capability::CAP_NET_ADMIN).unwrap_or(false);
        let kept: CapsHashSet = held
            .then_some(Capability::CAP_NET_ADMIN)
            .into_iter()
            .collect();
        let _ = caps::set(None, set, &kept);
    }
}

/// Reports an event; nobody may read it.
fn say(event: &str) {
    let mut output = io::stdout();
    let _ = output.write_all(format!("{event}\n").as_bytes());
    let _ = output.flush();
}

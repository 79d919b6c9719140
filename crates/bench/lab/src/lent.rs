//! Giving back the interfaces of the machine that stations borrow.
//!
//! When a namespace goes, the kernel returns its physical interfaces, but with changed settings,
//! and removes virtual ones. So interfaces are returned while the station's namespace exists: by
//! the station at its end, or, if it was killed, by the process that started it, which keeps the
//! namespace ([`crate::remains`]).
//!
//! The kernel keeps an interface's MTU, name and hardware address as it moves to another namespace,
//! and drops its state in the network stack. Of this state, parameters, permanent neighbours and
//! multicast addresses are restored; an interface with a queueing discipline or a route is not
//! taken ([`crate::cables`]).

use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use testbed::protocol::{BorrowedInterface, Program};

/// Folders below `/proc/sys/net` with a folder for each interface.
const PARAMETERS: [&str; 5] = [
    "ipv4/conf",
    "ipv4/neigh",
    "ipv6/conf",
    "ipv6/neigh",
    "mpls/conf",
];

/// Some parameters change others when they are set.
const PASSES: usize = 3;

/// The kernel's parameters of an interface in the namespace of this thread, by their paths below
/// `/proc/sys/net`. Unreadable ones are left out.
pub(crate) fn parameters(interface: &str) -> BTreeMap<String, String> {
    let read = |(name, path): (String, PathBuf)| {
        // Some parameters can only be written, or not by this user; they keep their defaults.
        let value = fs::read_to_string(path).ok()?;
        Some((name, value.trim_end().to_owned()))
    };
    files(interface).filter_map(read).collect()
}

/// The files of an interface's parameters, with their paths below `/proc/sys/net`.
fn files(interface: &str) -> impl Iterator<Item = (String, PathBuf)> {
    PARAMETERS.into_iter().flat_map(move |kind| {
        let folder = format!("{kind}/{interface}");
        let entries = fs::read_dir(Path::new("/proc/sys/net").join(&folder));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(move |entry| {
            let name = entry.file_name();
            (format!("{folder}/{}", name.display()), entry.path())
        })
    })
}

/// Sets the parameters that differ. Those refused by the kernel stay as they are.
fn set_parameters(interface: &str, wanted: &BTreeMap<String, String>) {
    // Again until nothing differs, since one parameter may reset another that was set before.
    for _ in 0..PASSES {
        let mut is_done = true;
        for (name, path) in files(interface) {
            let (Some(value), Ok(now)) = (wanted.get(&name), fs::read_to_string(&path)) else {
                continue;
            };
            if now.trim_end() != value {
                is_done &= fs::write(path, value).is_err();
            }
        }
        if is_done {
            return;
        }
    }
}

/// Gives an interface back to the namespace `home`, from `there` or from the namespace of this
/// process. Does nothing if it is not there (any more). No caller is left to report a failure to;
/// one does not stop the commands after it.
pub(crate) fn give_back(
    lent: &BorrowedInterface,
    there: Option<&File>,
    home: &File,
    run: &dyn Fn(&Program),
) {
    let BorrowedInterface {
        interface,
        renamed,
        mtu,
        up,
        offloads,
        parameters,
        additions,
    } = lent;
    // It may have been moved and not yet renamed.
    let names = || renamed.iter().chain([interface]);
    let find = || names().find(|name| if_nametoindex(name.as_str()).is_ok());
    let found = match there {
        Some(there) => within(there, find).ok().flatten(),
        None => find(),
    };
    let Some(name) = found else {
        return;
    };
    let run_in = |namespace: Option<&File>, words: &[&str], input: String| {
        let enter = namespace.map(|file| format!("--net={}", path_of(file)));
        let enter = enter.iter().flat_map(|net| ["nsenter", net.as_str()]);
        let program = Program::new(enter.chain(words.iter().copied()));
        run(&program.with_input(input));
    };
    // With `-force` a command that fails does not stop those after it.
    let batch = ["ip", "-force", "-batch", "-"];
    if !offloads.is_empty() {
        let words = offloads.iter().flat_map(|(name, state)| [name, state]);
        let argv = ["ethtool", "-K", name.as_str()].into_iter();
        let argv: Vec<_> = argv.chain(words.map(String::as_str)).collect();
        run_in(there, &argv, String::new());
    }
    // The kernel lets no interface have a name that is an alternative name, even of itself: that
    // one goes first.
    let rename = if name == interface {
        String::new()
    } else {
        format!(
            "link property del dev {name} altname {interface}\n\
             link set {name} name {interface}\n"
        )
    };
    // Down before it is renamed, which kernels before 6.2 refuse for an interface that is up.
    let leave = format!(
        "link set {name} down\nlink set {name} mtu {mtu}\n{rename}\
         link set {interface} netns {}\n",
        path_of(home)
    );
    run_in(there, &batch, leave);
    // Before it is up: they decide which addresses it gets. And again: some follow its state.
    let restore = || {
        // The thread that enters the namespace cannot be refused it: this process came from there.
        let _ = within(home, || set_parameters(interface, parameters));
    };
    restore();
    let state = up.then(|| format!("link set {interface} up"));
    let lines = state.iter().chain(additions);
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    if !lines.is_empty() {
        run_in(Some(home), &batch, lines);
        restore();
    }
}

/// A path of an open file of this process that is valid in its child processes.
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Calls `act` on a thread in another network namespace.
fn within<T: Send>(namespace: &File, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let entered = thread::Builder::new().spawn_scoped(scope, || {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            Ok(act())
        })?;
        let ended = entered.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

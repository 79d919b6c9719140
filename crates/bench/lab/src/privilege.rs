//! The privilege to build a lab of namespaces: root, or root in a user namespace.

use crate::mark;
use crate::procfs::sysctl_path;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, getegid, geteuid};
use std::fs;
use std::io;
use testbed::{LabError, Result};

const TUN_DEVICE: &str = "/dev/net/tun";

/// Capability numbers of linux/capability.h.
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

/// The privilege to create network namespaces, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// Root on the machine.
    Root,
    /// Root in a user namespace only; an ordinary user outside.
    UserNamespace {
        /// The user outside.
        uid: u32,
    },
}

impl Privilege {
    /// The privilege that an unprivileged process would acquire.
    pub(crate) fn of_nobody() -> Self {
        Self::UserNamespace {
            uid: geteuid().as_raw(),
        }
    }

    /// Returns the text for a journal's environment.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::UserNamespace { .. } => "root in a user namespace",
        }
    }
}

/// Acquires the privilege to build a lab. Call it first, while the process has one thread: the
/// process of an ordinary user enters a user namespace as its root, and stays there.
///
/// # Errors
/// [`LabError::CannotBuild`] with the command that fixes it: the kernel forbids user namespaces, or
/// `/dev/net/tun` cannot be opened.
pub fn acquire() -> Result<Privilege> {
    let privilege = match current() {
        Some(privilege) => privilege,
        None => enter_user_namespace()?,
    };
    open_tun()?;
    Ok(privilege)
}

/// Returns the privilege that the process already has.
#[must_use]
pub fn current() -> Option<Privilege> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !has_capabilities(&status, &[CAP_NET_ADMIN, CAP_SYS_ADMIN]) {
        return None;
    }
    // Capabilities alone do not show whether this is the root of the machine: a user namespace
    // gives all of them.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    Some(match outer_uid(&map, geteuid()) {
        Some(uid) => Privilege::UserNamespace { uid },
        None => Privilege::Root,
    })
}

fn has_capabilities(status: &str, wanted: &[u32]) -> bool {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0);
    wanted
        .iter()
        .all(|capability| effective & (1 << capability) != 0)
}

/// Returns `uid` outside of the user namespace; `None` if all ids map to themselves, as in the
/// initial namespace.
fn outer_uid(map: &str, uid: Uid) -> Option<u32> {
    let fields: Vec<u32> = map
        .split_ascii_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    if fields == [0, 0, u32::MAX] {
        return None;
    }
    // Each line of the map is the first id inside, the first outside, and how many there are
    // (user_namespaces(7)).
    let mut ranges = fields.chunks_exact(3);
    ranges.find_map(|range| {
        let offset = uid.as_raw().checked_sub(range[0])?;
        (offset < range[2]).then(|| range[1] + offset)
    })
}

fn enter_user_namespace() -> Result<Privilege> {
    mark::look_from_outside();
    // Read before the namespace is entered: inside, both are the overflow ids until they are
    // mapped.
    let (uid, gid) = (geteuid(), getegid());
    let refused = |error: io::Error| {
        // Root in a container may lack a capability that the machine's root has.
        let who = if uid.is_root() {
            "root lacks the capability CAP_SYS_ADMIN here".to_owned()
        } else {
            format!("user {uid} is not root")
        };
        let what = format!(
            "the process may not build a lab: {who}, and entering a user namespace failed ({error})"
        );
        LabError::cannot_build(what, how_to_get_namespaces())
    };
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| match errno {
        Errno::EINVAL => LabError::cannot_build(
            "a process with several threads cannot enter a user namespace",
            "run as root",
        ),
        // The kernel reports this as "no space left on device".
        Errno::ENOSPC => refused(io::Error::other("the limit of user namespaces is reached")),
        errno => refused(errno.into()),
    })?;
    // The kernel lets an ordinary user map a group only without setgroups.
    fs::write("/proc/self/setgroups", "deny").map_err(refused)?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).map_err(refused)?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).map_err(refused)?;
    Ok(Privilege::UserNamespace { uid: uid.as_raw() })
}

fn open_tun() -> Result<()> {
    let open = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(TUN_DEVICE);
    open.map(drop).map_err(|error| {
        let what = format!("cannot open {TUN_DEVICE}, which software encryptors need: {error}");
        LabError::cannot_build(what, how_to_open_tun(error.kind()))
    })
}

/// Returns the remedy if `/dev/net/tun` cannot be opened.
pub(crate) fn how_to_open_tun(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => {
            "run as root, or let all users: sudo chmod 0666 /dev/net/tun"
        }
        _ => "load the driver: sudo modprobe tun; in a container, pass the device through",
    }
}

/// Returns the remedy for the kernel's refusal of namespaces, from the settings that forbid them.
pub(crate) fn how_to_get_namespaces() -> String {
    how_to_allow(|name| fs::read_to_string(sysctl_path(name)).ok())
}

fn how_to_allow(sysctl: impl Fn(&str) -> Option<String>) -> String {
    // Setting, the value that forbids, and the value that allows.
    const FORBIDDING: [(&str, &str, &str); 3] = [
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
    ];
    let commands: Vec<String> = FORBIDDING
        .iter()
        .filter(|(name, forbids, _)| sysctl(name).is_some_and(|value| value.trim() == *forbids))
        .map(|(name, _, allows)| format!("sudo sysctl -w {name}={allows}"))
        .collect();
    if commands.is_empty() {
        "run as root; in a container, run it with `--privileged`".to_owned()
    } else {
        format!(
            "run as root, or allow user namespaces: {}",
            commands.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_very_setting_that_forbids() {
        let ubuntu = |name: &str| match name {
            "kernel.apparmor_restrict_unprivileged_userns" => Some("1\n".to_owned()),
            "user.max_user_namespaces" => Some("63000\n".to_owned()),
            _ => None,
        };
        assert_eq!(
            how_to_allow(ubuntu),
            "run as root, or allow user namespaces: \
             sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        );
        let none_at_all = |name: &str| (name == "user.max_user_namespaces").then(|| "0".to_owned());
        assert!(
            how_to_allow(none_at_all).ends_with("sudo sysctl -w user.max_user_namespaces=15000")
        );
        assert!(how_to_allow(|_| None).starts_with("run as root; in a container"));
    }

    #[test]
    fn capabilities_are_read_from_the_effective_set() {
        let status = "CapPrm:\t0000000000201000\nCapEff:\t0000000000001000\n";
        assert!(has_capabilities(status, &[CAP_NET_ADMIN]));
        assert!(!has_capabilities(status, &[CAP_NET_ADMIN, CAP_SYS_ADMIN]));
        assert!(!has_capabilities("", &[CAP_NET_ADMIN]));
    }

    #[test]
    fn root_in_a_user_namespace_is_not_root_on_the_machine() {
        let root = Uid::from_raw(0);
        assert_eq!(outer_uid("         0          0 4294967295\n", root), None);
        assert_eq!(
            outer_uid("         0       1000          1\n", root),
            Some(1000)
        );
        assert_eq!(
            outer_uid("0 100000 65536\n", Uid::from_raw(7)),
            Some(100_007)
        );
    }
}

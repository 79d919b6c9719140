//! The station's network and mount namespaces. They have no names, so they vanish with their last
//! process.

use crate::privilege;
use crate::procfs::sysctl_path;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::path::{Path, PathBuf};
use testbed::{LabError, NodeId, Result};

/// Kernel parameters of every namespace, with reasons. The host's parameters stay unchanged.
const SYSCTLS: &[(&str, &str)] = &[
    // The path is symmetric; overrides the host's setting, which a new namespace inherits.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // A trial must not start with the slow-start threshold of the one before.
    ("net/ipv4/tcp_no_metrics_save", "1"),
];

/// For a station or a bridge: test frames end here or pass below IP, without an ICMP answer.
const STATION_SYSCTLS: &[(&str, &str)] = &[
    ("net/ipv4/ip_forward", "0"),
    // No neighbour discovery and no later addresses: the links carry only the measurement.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// For a gateway or a router, in this order: setting forwarding changes other parameters.
const ROUTER_SYSCTLS: &[(&str, &str)] = &[
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    // If a station replaces a gateway, no socket listens on its ESP port, and the kernel must not
    // answer with ICMP. Path MTU messages are exempt.
    ("net/ipv4/icmp_msgs_per_sec", "0"),
    ("net/ipv4/icmp_msgs_burst", "0"),
    ("net/ipv4/icmp_ratelimit", "1000000000"),
    // Time exceeded is also exempt, as it shows the hops of a path; no test frame has so low a TTL.
    // This is the default mask without bit 11.
    ("net/ipv4/icmp_ratemask", "4120"),
    ("net/ipv6/conf/all/disable_ipv6", "0"),
    ("net/ipv6/conf/default/disable_ipv6", "0"),
    ("net/ipv6/conf/all/forwarding", "1"),
    // An interface with a separate forwarding setting would join and announce the all-routers
    // group. The line above governs forwarding.
    ("net/ipv6/conf/default/forwarding", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    // No address, so there is nothing to announce either.
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
];

/// Moves this process, still single-threaded, into new namespaces with no interface except `lo`, a
/// matching `/sys`, and an empty `/run` for sockets and pid files.
///
/// # Errors
/// [`LabError::CannotBuild`] with the kernel's refusal and its remedy.
pub(super) fn isolate(node: NodeId) -> Result<()> {
    let refused = |what: &str, errno: Errno| {
        let what = format!("station {} cannot {what}: {}", node.name(), errno.desc());
        LabError::cannot_build(what, privilege::how_to_get_namespaces())
    };
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(|errno| match errno {
        Errno::ENOSPC => no_more_namespaces(node, &limit_of),
        errno => refused("make network and mount namespaces", errno),
    })?;
    // systemd makes `/` a shared mount, through which the mounts below would reach the host.
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|errno| refused("make its mounts private", errno))?;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // sysfs shows the network namespace that mounted it: the inherited one lists the host's
    // interfaces.
    match mount(Some("sysfs"), "/sys", Some("sysfs"), quiet, none) {
        Ok(()) => {}
        Err(errno) if can_do_without_sys(errno) => {}
        Err(errno) => return Err(refused("mount /sys", errno)),
    }
    // Programs of two gateways use the same paths for sockets and PID files, and keys written here
    // vanish with the station.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        "/run",
        Some("tmpfs"),
        flags,
        Some("mode=0755"),
    )
    .map_err(|errno| refused("mount /run", errno))?;
    let of_its_kind = if node.forwards_ip() {
        ROUTER_SYSCTLS
    } else {
        STATION_SYSCTLS
    };
    for (name, value) in SYSCTLS.iter().chain(of_its_kind) {
        set_sysctl(node, Path::new("/proc/sys").join(name), value)?;
    }
    Ok(())
}

/// Limits that the kernel reports as "no space left on device", although no disk is full.
const LIMITS: [&str; 2] = ["user.max_net_namespaces", "user.max_mnt_namespaces"];

fn limit_of(sysctl: &str) -> Option<String> {
    let value = fs::read_to_string(sysctl_path(sysctl)).ok()?;
    Some(value.trim().to_owned())
}

/// The error for exceeding the kernel's namespace limits.
fn no_more_namespaces(node: NodeId, limit_of: &dyn Fn(&str) -> Option<String>) -> LabError {
    let limits = LIMITS.map(|name| {
        format!(
            "{name} is {}",
            limit_of(name).as_deref().unwrap_or("unknown")
        )
    });
    let what = format!(
        "station {} cannot make network and mount namespaces: the kernel allows no more of them ({})",
        node.name(),
        limits.join(", ")
    );
    let help = "end other labs and containers, or raise the limit: sudo sysctl user.max_net_namespaces=1024 \
                user.max_mnt_namespaces=1024";
    LabError::cannot_build(what, help)
}

/// Whether the station can run without a private `/sys`. In a user namespace the kernel refuses to
/// mount it if a container hides parts of it (EPERM), and AppArmor or SELinux may refuse any mount
/// of it (EACCES). Only external programs would read it.
fn can_do_without_sys(errno: Errno) -> bool {
    matches!(errno, Errno::EPERM | Errno::EACCES)
}

fn set_sysctl(node: NodeId, path: PathBuf, value: &str) -> Result<()> {
    match fs::write(&path, value) {
        Ok(()) => Ok(()),
        // A kernel without IPv6 lacks its settings; before 6.12, ICMP limits exist only for the
        // whole machine.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(LabError::cannot_build(
            format!(
                "station {} cannot set {}: {error}",
                node.name(),
                path.display()
            ),
            "in a container, run it with `--privileged`: /proc/sys must be writable",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_sys_is_done_without_and_a_broken_one_is_not() {
        assert!(can_do_without_sys(Errno::EPERM) && can_do_without_sys(Errno::EACCES));
        assert!(!can_do_without_sys(Errno::ENODEV) && !can_do_without_sys(Errno::ENOMEM));
    }

    #[test]
    fn a_limit_of_namespaces_is_not_called_a_full_disk() {
        let limit = |name: &str| (name == "user.max_net_namespaces").then(|| "16".to_owned());
        let error = no_more_namespaces(NodeId::Gw1, &limit).to_string();
        assert!(error.contains("station gw1 cannot make"), "{error}");
        assert!(error.contains("user.max_net_namespaces is 16"), "{error}");
        assert!(
            error.contains("sudo sysctl user.max_net_namespaces=1024"),
            "{error}"
        );
        assert!(!error.contains("space left"), "{error}");
    }
}

//! Kernel features that devices under test need, tried without building a lab.

use super::OUTPUT_BYTES_MAX;
use super::probes::{KERNEL_L2TP, KERNEL_WIREGUARD, kernel_esp_arguments};
use crate::privilege;
use crate::programs::search_path;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use plan::{Adapter, Cell, Overlay, WireGuardProgram};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Time limit of an attempt, which may load a module.
const LIMIT: Duration = Duration::from_secs(10);

/// A feature of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFeature {
    /// ESP (xfrm).
    Esp,
    /// WireGuard.
    WireGuard,
    /// L2TPv3.
    L2tp,
    /// VXLAN interfaces.
    Vxlan,
    /// Geneve interfaces.
    Geneve,
}

impl KernelFeature {
    /// The feature that a device under test is made of; `None` for other devices.
    const fn of(adapter: &Adapter) -> Option<Self> {
        match adapter {
            Adapter::Xfrm(_) => Some(Self::Esp),
            // libipsec has ESP of its own.
            Adapter::StrongSwan(gateway) if gateway.data_path.in_kernel() => Some(Self::Esp),
            Adapter::WireGuard(tunnel) if matches!(tunnel.program, WireGuardProgram::Kernel) => {
                Some(Self::WireGuard)
            }
            Adapter::L2tpv3(_) => Some(Self::L2tp),
            _ => None,
        }
    }

    /// The features that a cell needs.
    pub fn of_cell(cell: &Cell) -> impl Iterator<Item = Self> {
        let overlay = match cell.stations.map(|stations| stations.overlay) {
            Some(Overlay::Vxlan) => Some(Self::Vxlan),
            Some(Overlay::Geneve) => Some(Self::Geneve),
            Some(Overlay::None) | None => None,
        };
        Self::of(&cell.dut.adapter).into_iter().chain(overlay)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Esp => "ESP",
            Self::WireGuard => "WireGuard",
            Self::L2tp => "L2TPv3",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
        }
    }

    /// The kernel's reason if it lacks the feature. `None` if it has the feature, and if this
    /// process cannot try it: the doctor then says why.
    #[must_use]
    pub fn refusal(self) -> Option<String> {
        let arguments = match self {
            Self::Esp => kernel_esp_arguments(),
            Self::WireGuard => KERNEL_WIREGUARD.to_owned(),
            Self::L2tp => KERNEL_L2TP.to_owned(),
            Self::Vxlan => "link add cb-probe1 type vxlan id 1 dstport 4789".to_owned(),
            Self::Geneve => "link add cb-probe1 type geneve id 1 remote 127.0.0.1".to_owned(),
        };
        let mut command = Command::new("ip");
        command
            .args(arguments.split(' '))
            .env("PATH", search_path())
            .env("LC_ALL", "C");
        in_own_namespace(&mut command);
        let ended = guard::output_within(&mut command, OUTPUT_BYTES_MAX, LIMIT).ok()?;
        if ended.status.success() {
            return None;
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let mut lines = said.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty())?;
        (!is_forbidden(line)).then(|| line.to_owned())
    }
}

/// Whether a refusal is of this process. AppArmor may allow a user namespace, and no rights in it.
fn is_forbidden(reason: &str) -> bool {
    reason.contains("not permitted") || reason.contains("ermission denied")
}

/// Has a program run in a network namespace, which ends with it. Unlike the lab's, the namespace is
/// the program's alone: this process may have threads, and keeps its rights.
fn in_own_namespace(command: &mut Command) {
    let is_privileged = privilege::current().is_some();
    let (uid, gid) = (geteuid(), getegid());
    let (users, groups) = (format!("0 {uid} 1"), format!("0 {gid} 1"));
    let enter = move || {
        if is_privileged {
            unshare(CloneFlags::CLONE_NEWNET)?;
            return Ok(());
        }
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
        // Without the map of its user the program would have no rights after exec.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", &users)?;
        fs::write("/proc/self/gid_map", &groups)
    };
    // SAFETY: between fork and exec only system calls are made, with texts made before, and paths
    // that are short enough for the stack: no allocation, no lock.
    unsafe {
        command.pre_exec(enter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Probes;

    /// The doctor tries the same in its own way.
    #[test]
    fn what_is_refused_is_what_the_doctor_finds() {
        if privilege::current().is_none() {
            return;
        }
        let Ok(probes) = Probes::try_out() else {
            return;
        };
        for (feature, probe) in [
            (KernelFeature::Esp, probes.kernel_esp),
            (KernelFeature::WireGuard, probes.kernel_wireguard),
            (KernelFeature::L2tp, probes.kernel_l2tp),
        ] {
            let found = probe.err().filter(|reason| !is_forbidden(reason));
            assert_eq!(feature.refusal(), found, "{}", feature.name());
        }
    }
}

//! Drops privileges once the ports are open: the process keeps as little as the kernel can enforce.
//!
//! 1. No core dumps, and no reading of its memory by other processes of the user (keys are in it).
//! 2. No new privileges through any program that it might execute.
//! 3. No capabilities: the interface, its routes and all sockets already exist.
//! 4. Landlock: only files in the folders of the key files, and new TCP ports or connections only
//!    to the control ports of peers and to the KME, where keys are negotiated.
//! 5. Seccomp: the system calls of a list (`syscalls`), a shorter one for workers. Others fail with
//!    EPERM.
//!
//! Certificates, their keys, and pre-shared keys have been read before and are not read again.
//!
//! Each measure applies to the calling thread and to those that it starts later, so this runs
//! before the first is started. Neither Landlock nor seccomp is in every kernel; the measures in
//! force are reported, not assumed.

mod syscalls;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus,
};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Newest version of Landlock that the rules are written for; older ones enforce less.
const LANDLOCK: ABI = ABI::V5;

/// A measure that the kernel supports, but refused.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot drop privileges: {measure} reports {said}\n\
     help: check whether a container or sandbox forbids it; with `privileges: keep` the service keeps all privileges"
)]
pub struct PrivilegeError {
    measure: &'static str,
    said: String,
}

fn refused<E: std::fmt::Display>(measure: &'static str) -> impl Fn(E) -> PrivilegeError {
    move |error| PrivilegeError {
        measure,
        said: error.to_string(),
    }
}

/// Network access that is still needed, besides packets and metrics, once privileges are dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// TCP ports to connect to: the control ports of peers, and the KME's.
    pub connect: BTreeSet<u16>,
}

/// The restrictions that are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InForce {
    /// No thread of the process has a capability.
    pub no_caps: bool,
    /// Only listed system calls are allowed.
    pub seccomp: bool,
    /// Only files in the key folders are accessible.
    pub landlock: bool,
}

impl InForce {
    /// No restrictions.
    pub const NOTHING: Self = Self {
        no_caps: false,
        seccomp: false,
        landlock: false,
    };

    /// Labels for the ready line and the metrics.
    #[must_use]
    pub fn facts(self) -> [(&'static str, String); 3] {
        let on = |on: bool| if on { "on" } else { "off" }.to_owned();
        let caps = if self.no_caps { "none" } else { "kept" };
        [
            ("caps", caps.to_owned()),
            ("seccomp", on(self.seccomp)),
            ("landlock", on(self.landlock)),
        ]
    }

    /// Restricts the calling thread to a worker's system calls, if seccomp is in force.
    ///
    /// # Errors
    /// [`PrivilegeError`].
    pub fn restrict_worker(self) -> Result<(), PrivilegeError> {
        if !self.seccomp {
            return Ok(());
        }
        let filter = filter(syscalls::OF_A_WORKER, None)?;
        seccompiler::apply_filter(&filter).map_err(refused("seccomp"))
    }
}

/// Drops everything that a running service does not need, irreversibly. The epoch files of
/// `key_files` stay writable; without `network` no new connection is possible.
///
/// # Errors
/// [`PrivilegeError`]; some privileges may be dropped by then.
pub fn give_up(
    key_files: &[PathBuf],
    network: Option<&Network>,
) -> Result<InForce, PrivilegeError> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(refused("setrlimit"))?;
    prctl::set_dumpable(false).map_err(refused("PR_SET_DUMPABLE"))?;
    prctl::set_no_new_privs().map_err(refused("PR_SET_NO_NEW_PRIVS"))?;
    give_up_capabilities()?;
    // Read now: later `/proc` is inaccessible.
    let (no_caps, seccomp) = (no_thread_has_capabilities(), has_seccomp());
    let landlock = restrict(key_files, network)?;
    if seccomp {
        let filter = filter(syscalls::OF_THE_SERVICE, network)?;
        // This restricts threads that were started before, too.
        seccompiler::apply_filter_all_threads(&filter).map_err(refused("seccomp"))?;
    }
    Ok(InForce {
        no_caps,
        seccomp,
        landlock,
    })
}

fn give_up_capabilities() -> Result<(), PrivilegeError> {
    use caps::CapSet;
    // This needs CAP_SETPCAP; without it, the bounding set grants no new privileges anyway.
    let _ = caps::clear(None, CapSet::Bounding);
    for set in [
        CapSet::Ambient,
        CapSet::Inheritable,
        CapSet::Effective,
        CapSet::Permitted,
    ] {
        caps::clear(None, set).map_err(refused("capset"))?;
    }
    Ok(())
}

/// Whether no thread has capabilities, including those that were started before.
fn no_thread_has_capabilities() -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return caps::read(None, caps::CapSet::Permitted).is_ok_and(|set| set.is_empty());
    };
    threads.flatten().all(|thread| {
        let id = thread.file_name().to_string_lossy().parse().ok();
        // A thread that has ended since has none.
        id.is_none_or(|id| {
            caps::read(Some(id), caps::CapSet::Permitted).map_or(true, |set| set.is_empty())
        })
    })
}

/// Restricts file access to the folders of these files, and TCP to these ports; returns whether the
/// kernel enforces it.
fn restrict(key_files: &[PathBuf], network: Option<&Network>) -> Result<bool, PrivilegeError> {
    let folders: BTreeSet<PathBuf> = key_files
        .iter()
        // The folder of the file, not of a link to it.
        .filter_map(|file| fs::canonicalize(file).ok())
        .filter_map(|file| file.parent().map(Path::to_owned))
        .collect();
    let landlock = refused("Landlock");
    let access = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile;
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .map_err(&landlock)?;
    for folder in folders {
        let folder = PathFd::new(folder).map_err(refused("Landlock"))?;
        rules = rules
            .add_rule(PathBeneath::new(folder, access))
            .map_err(&landlock)?;
    }
    for port in network.iter().flat_map(|network| &network.connect) {
        rules = rules
            .add_rule(NetPort::new(*port, AccessNet::ConnectTcp))
            // The local end is bound to `local`, with a port chosen by the kernel.
            .and_then(|rules| rules.add_rule(NetPort::new(0, AccessNet::BindTcp)))
            .map_err(&landlock)?;
    }
    let status = rules.restrict_self().map_err(&landlock)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Whether the kernel filters system calls.
fn has_seccomp() -> bool {
    fs::exists("/proc/sys/kernel/seccomp/actions_avail").unwrap_or(false)
}

/// Builds a filter that allows the listed calls and those that the network needs; others fail.
fn filter(allowed: &[i64], network: Option<&Network>) -> Result<BpfProgram, PrivilegeError> {
    let failed = refused("the filter of system calls");
    let architecture = std::env::consts::ARCH.try_into().map_err(&failed)?;
    let mut rules: BTreeMap<_, _> = allowed.iter().map(|call| (*call, Vec::new())).collect();
    if network.is_some_and(|network| !network.connect.is_empty()) {
        rules.extend(syscalls::TO_CONNECT.iter().map(|call| (*call, Vec::new())));
        rules.insert(syscalls::SOCKET, tcp_sockets().map_err(&failed)?);
    }
    let otherwise = SeccompAction::Errno(Errno::EPERM as u32);
    SeccompFilter::new(rules, otherwise, SeccompAction::Allow, architecture)
        .and_then(TryInto::try_into)
        .map_err(&failed)
}

/// Rules that allow TCP sockets over IPv4 and IPv6.
fn tcp_sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    // Ignores the flags in the type: close on exec, and non-blocking.
    let kind = SeccompCmpOp::MaskedEq(0xf);
    [libc::AF_INET, libc::AF_INET6]
        .into_iter()
        .map(|family| {
            let (word, equal) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
            SeccompRule::new(vec![
                SeccompCondition::new(0, word.clone(), equal, family as u64)?,
                SeccompCondition::new(1, word, kind.clone(), libc::SOCK_STREAM as u64)?,
            ])
        })
        .collect()
}

//! Drops privileges once the ports are open: the process keeps as little as the kernel can enforce.
//!
//! 1. The bounding set of capabilities is emptied, while the process may still do that.
//! 2. The user and group of `user`, if configured, and no supplementary group.
//! 3. No core dumps, and no reading of its memory by other processes of the user (keys are in it).
//! 4. No new privileges through any program that it might execute.
//! 5. No capabilities: the interface, its routes and all sockets already exist.
//! 6. Landlock: only files in the folders of the key files, and for reading in the folders of the
//!    certificates; new TCP ports or connections only to the control ports of peers and to the KME,
//!    if keys are negotiated.
//! 7. Seccomp: the system calls of a list (`syscalls`), a shorter one for workers. Others fail with
//!    EPERM. New threads are possible, but neither processes nor namespaces: in a new namespace a
//!    process would have all capabilities again.
//!
//! Pre-shared keys and the files for the KME have been read before and are not read again.
//!
//! Each measure applies to the calling thread and to threads that it starts later, so this runs
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
use nix::unistd::{User, getpid, setgroups, setresgid, setresuid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Newest version of Landlock that the rules are written for; older ones enforce less.
const LANDLOCK: ABI = ABI::V5;

/// Why privileges could not be dropped.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// A measure that the kernel supports, but refused.
    #[error(
        "cannot drop privileges: {measure} reports {said}\n\
         help: start it as root, and check whether a container or sandbox forbids it; with `privileges: keep` the \
         service keeps all privileges"
    )]
    Refused {
        /// The measure.
        measure: &'static str,
        /// The error.
        said: String,
    },
    /// The user of the service cannot read a file that it reads again later.
    #[error(
        "{} cannot be read by `{user}`, the user of the service: {source}\n\
         help: give it to that user (`chown {user} {}`), in a folder that the user may enter",
        .path.display(), .path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The name of the user.
        user: String,
        /// The kernel's error.
        source: io::Error,
    },
}

fn refused<E: std::fmt::Display>(measure: &'static str) -> impl Fn(E) -> PrivilegeError {
    move |error| PrivilegeError::Refused {
        measure,
        said: error.to_string(),
    }
}

/// The needs of a running service once privileges are dropped.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// The user as which it runs; `None`: the present one.
    pub user: Option<User>,
    /// Key files; epoch files are written in their folders.
    pub key_files: Vec<PathBuf>,
    /// Files that are read again: the certificate, its key, and the authority.
    pub read_again: Vec<PathBuf>,
    /// Network access; without it no new connection is possible.
    pub network: Option<Network>,
}

/// Network access that is still needed, besides packets and metrics, once privileges are dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// TCP ports to connect to: the control ports of peers, and the KME's.
    pub connect: BTreeSet<u16>,
}

/// How much of Landlock the kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Nothing: all files and TCP ports are accessible.
    Off,
    /// A part: the kernel is older than the rules. Before Linux 6.7 TCP is not restricted.
    Partial,
    /// All rules.
    On,
}

impl Confinement {
    const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Partial => "partial",
            Self::On => "on",
        }
    }
}

/// The restrictions that are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InForce {
    /// No thread of the process has a capability.
    pub no_caps: bool,
    /// The bounding set of each thread is empty: no program can give it a capability.
    pub bounded: bool,
    /// Only listed system calls are allowed.
    pub seccomp: bool,
    /// Only files in the folders of keys and certificates, and listed TCP ports, are accessible.
    pub landlock: Confinement,
}

impl InForce {
    /// No restrictions.
    pub const NOTHING: Self = Self {
        no_caps: false,
        bounded: false,
        seccomp: false,
        landlock: Confinement::Off,
    };

    /// Labels for the ready line and the metrics.
    #[must_use]
    pub fn facts(self) -> [(&'static str, String); 4] {
        let caps = if self.no_caps { "none" } else { "kept" };
        let bounding = if self.bounded { "empty" } else { "kept" };
        let seccomp = if self.seccomp { "on" } else { "off" };
        [
            ("caps", caps.to_owned()),
            ("bounding", bounding.to_owned()),
            ("seccomp", seccomp.to_owned()),
            ("landlock", self.landlock.name().to_owned()),
        ]
    }

    /// Each measure, and whether it is completely in force.
    #[must_use]
    pub fn measures(self) -> [(&'static str, bool); 4] {
        [
            ("caps", self.no_caps),
            ("bounding", self.bounded),
            ("seccomp", self.seccomp),
            ("landlock", self.landlock == Confinement::On),
        ]
    }

    /// Missing measures after privileges were dropped, as warnings.
    pub fn warnings(self) -> impl Iterator<Item = &'static str> {
        let caps = "a thread that was started before keeps its capabilities";
        let bounding = "the bounding set of capabilities is not empty: that needs CAP_SETPCAP at start, as root has it";
        let seccomp = "this kernel has no seccomp: the service may make every system call";
        let landlock = match self.landlock {
            Confinement::Off => Some(
                "this kernel has no Landlock, or it is disabled (boot parameter `lsm`): the service may open all files \
                 of its user, and connect to every TCP port",
            ),
            Confinement::Partial => Some(
                "this kernel enforces only a part of our Landlock rules: before Linux 6.7 the service may connect to \
                 every TCP port",
            ),
            Confinement::On => None,
        };
        [
            (!self.no_caps).then_some(caps),
            (!self.bounded).then_some(bounding),
            (!self.seccomp).then_some(seccomp),
            landlock,
        ]
        .into_iter()
        .flatten()
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

/// Drops everything that a running service does not need, irreversibly.
///
/// # Errors
/// [`PrivilegeError`]; some privileges may be dropped by then.
pub fn give_up(needs: &Needs) -> Result<InForce, PrivilegeError> {
    // Not later: it needs CAP_SETPCAP, which is lost with root's user id. Whether it has succeeded
    // is read below.
    let _ = caps::clear(None, caps::CapSet::Bounding);
    if let Some(user) = &needs.user {
        become_user(user)?;
        // Refused at the start with a clear message, not at a reload months later.
        for path in &needs.read_again {
            File::open(path).map_err(|source| PrivilegeError::Unreadable {
                path: path.clone(),
                user: user.name.clone(),
                source,
            })?;
        }
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(refused("setrlimit"))?;
    // Not earlier: a change of the user resets it.
    prctl::set_dumpable(false).map_err(refused("PR_SET_DUMPABLE"))?;
    // Without CAP_SYS_ADMIN the kernel also requires it for Landlock and for a filter of system
    // calls.
    prctl::set_no_new_privs().map_err(refused("PR_SET_NO_NEW_PRIVS"))?;
    give_up_capabilities()?;
    // Read now: later `/proc` is inaccessible.
    let [no_caps, bounded] = ["CapPrm", "CapBnd"].map(is_empty_in_all_threads);
    let seccomp = has_seccomp();
    let landlock = restrict(needs)?;
    if seccomp {
        let service = filter(syscalls::OF_THE_SERVICE, needs.network.as_ref())?;
        // Two filters, because a filter has one answer for all calls that it lists. The kernel asks
        // both, and the stricter answer holds.
        for filter in [absent_calls()?, service] {
            // This restricts threads that were started before, too.
            seccompiler::apply_filter_all_threads(&filter).map_err(refused("seccomp"))?;
        }
    }
    Ok(InForce {
        no_caps,
        bounded,
        seccomp,
        landlock,
    })
}

/// Changes user and group of all threads, for good.
fn become_user(user: &User) -> Result<(), PrivilegeError> {
    // The groups first: they can only be changed with root's privileges.
    setgroups(&[]).map_err(refused("setgroups"))?;
    // All three ids: with a saved id of root the process could return to it.
    setresgid(user.gid, user.gid, user.gid).map_err(refused("setresgid"))?;
    setresuid(user.uid, user.uid, user.uid).map_err(refused("setresuid"))
}

fn give_up_capabilities() -> Result<(), PrivilegeError> {
    use caps::CapSet;
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

/// Whether a set of capabilities, named as in `/proc/PID/status`, is empty in each thread,
/// including threads that were started before.
fn is_empty_in_all_threads(set: &str) -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return false;
    };
    threads.flatten().all(|thread| {
        // A thread that has ended since has none.
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let mut lines = status.lines();
        let value = lines.find_map(|line| line.strip_prefix(set)?.strip_prefix(':'));
        value.is_none_or(|value| value.trim().bytes().all(|digit| digit == b'0'))
    })
}

/// Restricts file access to the folders of the needed files, and TCP to the needed ports.
fn restrict(needs: &Needs) -> Result<Confinement, PrivilegeError> {
    let landlock = refused("Landlock");
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    // Rights that are handled are refused unless a rule grants them. The crate leaves out the ones
    // that an older kernel does not know, and the status at the end shows it.
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .map_err(&landlock)?;
    for (files, access) in [(&needs.key_files, read | write), (&needs.read_again, read)] {
        for folder in folders(files) {
            let folder = PathFd::new(folder).map_err(refused("Landlock"))?;
            rules = rules
                .add_rule(PathBeneath::new(folder, access))
                .map_err(&landlock)?;
        }
    }
    for port in needs.network.iter().flat_map(|network| &network.connect) {
        rules = rules
            .add_rule(NetPort::new(*port, AccessNet::ConnectTcp))
            // The local end is bound to `local`, with a port chosen by the kernel.
            .and_then(|rules| rules.add_rule(NetPort::new(0, AccessNet::BindTcp)))
            .map_err(&landlock)?;
    }
    let status = rules.restrict_self().map_err(&landlock)?;
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => Confinement::Off,
        RulesetStatus::PartiallyEnforced => Confinement::Partial,
        RulesetStatus::FullyEnforced => Confinement::On,
    })
}

/// The folders of files: of the file itself, and of each symbolic link to it, since the link may be
/// replaced.
fn folders(files: &[PathBuf]) -> BTreeSet<PathBuf> {
    files
        .iter()
        .flat_map(|file| [fs::canonicalize(file).ok(), std::path::absolute(file).ok()])
        .flatten()
        .filter_map(|file| file.parent().map(Path::to_owned))
        .collect()
}

/// Whether the kernel filters system calls.
fn has_seccomp() -> bool {
    fs::exists("/proc/sys/kernel/seccomp/actions_avail").unwrap_or(false)
}

/// Builds a filter that allows the calls of these lists and the network's calls; others fail.
fn filter(allowed: &[&[i64]], network: Option<&Network>) -> Result<BpfProgram, PrivilegeError> {
    let failed = refused("the filter of system calls");
    let architecture = std::env::consts::ARCH.try_into().map_err(&failed)?;
    let allowed = allowed.iter().copied().flatten();
    let mut rules: BTreeMap<_, _> = allowed.map(|call| (*call, Vec::new())).collect();
    // The first argument is the thread group: `abort` signals a thread of this process.
    rules.insert(syscalls::TGKILL, own_threads().map_err(&failed)?);
    if let Some(rule) = rules.get_mut(&syscalls::CLONE) {
        *rule = new_threads().map_err(&failed)?;
    }
    if network.is_some_and(|network| !network.connect.is_empty()) {
        rules.extend(syscalls::TO_CONNECT.iter().map(|call| (*call, Vec::new())));
        rules.insert(syscalls::SOCKET, tcp_sockets().map_err(&failed)?);
    }
    let otherwise = SeccompAction::Errno(Errno::EPERM as u32);
    SeccompFilter::new(rules, otherwise, SeccompAction::Allow, architecture)
        .and_then(TryInto::try_into)
        .map_err(&failed)
}

/// Builds a filter of calls that fail as on a kernel that lacks them, so that the C library falls
/// back to an older one: the arguments of `clone3` are in memory, and no filter sees them.
fn absent_calls() -> Result<BpfProgram, PrivilegeError> {
    let failed = refused("the filter of absent system calls");
    let architecture = std::env::consts::ARCH.try_into().map_err(&failed)?;
    let rules = BTreeMap::from([(syscalls::CLONE3, Vec::new())]);
    let absent = SeccompAction::Errno(Errno::ENOSYS as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, absent, architecture)
        .and_then(TryInto::try_into)
        .map_err(&failed)
}

/// Rules that allow new threads of this process, in its namespaces.
fn new_threads() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let namespaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    let (thread, forbidden) = (libc::CLONE_THREAD as u64, namespaces as u64);
    // CLONE_THREAD must be set, and none of the namespaces. CLONE_NEWTIME needs no mention: in the
    // flags of `clone` its bit is part of the signal's number.
    let only = SeccompCmpOp::MaskedEq(thread | forbidden);
    let flags = SeccompCondition::new(0, SeccompCmpArgLen::Qword, only, thread)?;
    Ok(vec![SeccompRule::new(vec![flags])?])
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

/// Rules that allow signals to threads of this process.
fn own_threads() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let own = getpid().as_raw() as u64;
    let is_own = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, own)?;
    Ok(vec![SeccompRule::new(vec![is_own])?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use seccompiler::sock_filter;

    const ALLOWED: u32 = 0x7fff_0000;
    /// SECCOMP_RET_ERRNO with EPERM, and with ENOSYS.
    const REFUSED: u32 = 0x0005_0001;
    const ABSENT: u32 = 0x0005_0000 | libc::ENOSYS as u32;

    /// The verdict of a filter on a call with this first argument: an interpreter of the few
    /// instructions that seccomp filters consist of.
    fn verdict(filter: &[sock_filter], call: i64, argument: u64) -> u32 {
        // As the kernel's `struct seccomp_data`; the architecture is found in the filter itself.
        let architecture = filter[1].k;
        let word = |at: u32| match at {
            0 => call as u32,
            4 => architecture,
            16 => argument as u32,
            20 => (argument >> 32) as u32,
            _ => 0,
        };
        let (mut at, mut value) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter[at];
            let mut jump = |holds: bool| at += usize::from(if holds { jt } else { jf });
            match code {
                0x20 => value = word(k),
                0x05 => at += k as usize,
                0x15 => jump(value == k),
                0x25 => jump(value > k),
                0x35 => jump(value >= k),
                0x54 => value &= k,
                0x06 => return k,
                _ => panic!("an unknown instruction: {code:#x}"),
            }
            at += 1;
        }
    }

    #[test]
    fn a_process_signals_its_own_threads_only() {
        let own = u64::from(std::process::id());
        for list in [syscalls::OF_A_WORKER, syscalls::OF_THE_SERVICE] {
            let filter = filter(list, None).unwrap();
            assert_eq!(verdict(&filter, libc::SYS_read, 0), ALLOWED);
            assert_eq!(verdict(&filter, libc::SYS_execve, 0), REFUSED);
            assert_eq!(verdict(&filter, libc::SYS_kill, own), REFUSED);
            assert_eq!(verdict(&filter, libc::SYS_tgkill, own), ALLOWED);
            for other in [0, 1, own + 1, u64::MAX] {
                assert_eq!(verdict(&filter, libc::SYS_tgkill, other), REFUSED);
            }
        }
    }

    #[test]
    fn a_service_starts_threads_but_no_process_and_no_namespace() {
        let thread = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD;
        let service = filter(syscalls::OF_THE_SERVICE, None).unwrap();
        let worker = filter(syscalls::OF_A_WORKER, None).unwrap();
        let clone = |filter: &[sock_filter], flags: libc::c_int| {
            verdict(filter, libc::SYS_clone, u64::from(flags as u32))
        };
        assert_eq!(clone(&service, thread), ALLOWED);
        assert_eq!(clone(&worker, thread), REFUSED);
        for flags in [
            libc::SIGCHLD,
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            libc::CLONE_NEWUSER | libc::SIGCHLD,
            thread | libc::CLONE_NEWUSER,
            thread | libc::CLONE_NEWNET,
            thread | libc::CLONE_NEWNS,
        ] {
            assert_eq!(clone(&service, flags), REFUSED, "{flags:#x}");
        }
        let absent = absent_calls().unwrap();
        assert_eq!(verdict(&absent, libc::SYS_clone3, 0), ABSENT);
        assert_eq!(verdict(&absent, libc::SYS_clone, 0), ALLOWED);
        for call in [libc::SYS_unshare, libc::SYS_setns] {
            assert_eq!(verdict(&service, call, 0), REFUSED, "{call}");
        }
    }

    #[test]
    fn a_worker_has_no_calls_of_files() {
        let worker = filter(syscalls::OF_A_WORKER, None).unwrap();
        let service = filter(syscalls::OF_THE_SERVICE, None).unwrap();
        for call in [
            libc::SYS_openat,
            libc::SYS_renameat,
            libc::SYS_renameat2,
            libc::SYS_unlinkat,
            libc::SYS_newfstatat,
            libc::SYS_statx,
            libc::SYS_fsync,
        ] {
            assert_eq!(verdict(&worker, call, 0), REFUSED, "{call}");
            assert_eq!(verdict(&service, call, 0), ALLOWED, "{call}");
        }
    }

    #[test]
    fn what_the_kernel_does_not_enforce_is_a_warning() {
        let of = |landlock| {
            let in_force = InForce {
                no_caps: true,
                bounded: true,
                seccomp: true,
                landlock,
            };
            (in_force.warnings().count(), in_force.measures()[3].1)
        };
        assert_eq!(of(Confinement::On), (0, true));
        assert_eq!(of(Confinement::Partial), (1, false));
        assert_eq!(of(Confinement::Off), (1, false));
        assert_eq!(InForce::NOTHING.warnings().count(), 4);
    }
}

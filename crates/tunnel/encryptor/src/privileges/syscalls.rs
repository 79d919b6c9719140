//! The allowed system calls.
//!
//! Only `clone`, `socket` and `tgkill` are filtered by their arguments: for the others the kernel
//! caches the verdict in a table, and the filter costs a few nanoseconds per call.

use libc::{
    SYS_accept4, SYS_bind, SYS_brk, SYS_clock_gettime, SYS_clock_nanosleep, SYS_clone, SYS_clone3,
    SYS_close, SYS_connect, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2,
    SYS_exit, SYS_exit_group, SYS_fcntl, SYS_fdatasync, SYS_fsync, SYS_futex, SYS_getcpu,
    SYS_getpeername, SYS_getpid, SYS_getrandom, SYS_getsockname, SYS_getsockopt, SYS_gettid,
    SYS_ioctl, SYS_lseek, SYS_madvise, SYS_membarrier, SYS_mmap, SYS_mprotect, SYS_mremap,
    SYS_munmap, SYS_nanosleep, SYS_newfstatat, SYS_openat, SYS_ppoll, SYS_prctl, SYS_pread64,
    SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmmsg, SYS_recvmsg, SYS_renameat, SYS_renameat2,
    SYS_restart_syscall, SYS_rseq, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_yield, SYS_sendmmsg, SYS_sendmsg,
    SYS_sendto, SYS_set_robust_list, SYS_setsockopt, SYS_shutdown, SYS_sigaltstack, SYS_socket,
    SYS_statx, SYS_tgkill, SYS_unlinkat, SYS_write, SYS_writev,
};

/// A worker's calls: packets, memory, time, the end of threads. It opens no file.
pub(super) const OF_A_WORKER: &[&[i64]] = &[WORKER, OLD_POLLS];

/// The process's calls: a worker's, file access, and the calls to start threads, serve metrics, and
/// end.
pub(super) const OF_THE_SERVICE: &[&[i64]] = &[WORKER, OLD_POLLS, FILES, OLD_FILES, SERVICE];

const WORKER: &[i64] = &[
    // Packets.
    SYS_read,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_ppoll,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_getsockopt,
    SYS_close,
    // Memory.
    SYS_brk,
    SYS_mmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_munmap,
    SYS_madvise,
    SYS_getrandom,
    // Time, and other threads.
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_restart_syscall,
    SYS_futex,
    SYS_membarrier,
    SYS_sched_yield,
    SYS_getcpu,
    // Signals, and the end of a thread; of the process, when it aborts.
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_getpid,
    SYS_gettid,
    SYS_exit,
    SYS_exit_group,
    // Calls that callers assume cannot fail.
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getppid,
];

/// Calls that renew an epoch file or read a certificate again, which Landlock confines to their
/// folders.
const FILES: &[i64] = &[
    SYS_openat,
    SYS_newfstatat,
    SYS_statx,
    libc::SYS_readlinkat,
    SYS_lseek,
    SYS_pread64,
    SYS_fsync,
    SYS_fdatasync,
    SYS_fcntl,
    SYS_renameat,
    SYS_renameat2,
    SYS_unlinkat,
];

const SERVICE: &[i64] = &[
    // Threads: their start, their names, their CPUs; and a shorter list for each worker.
    CLONE,
    CLONE3,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_prctl,
    libc::SYS_seccomp,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    // Metrics, and the pipe of the signals.
    SYS_eventfd2,
    SYS_accept4,
    SYS_getsockname,
    SYS_setsockopt,
    SYS_shutdown,
    SYS_ioctl,
];

/// Starts a thread; filtered by its arguments.
pub(super) const CLONE: i64 = SYS_clone;
/// The same with arguments in memory, which no filter sees. It is allowed here, and a second filter
/// makes it fail as on a kernel that lacks it.
pub(super) const CLONE3: i64 = SYS_clone3;

/// Calls that a control channel needs besides its listener, which exists: to connect to peers, and
/// to a KME. [`SOCKET`] is allowed separately, for TCP only, so its arguments are checked.
pub(super) const TO_CONNECT: &[i64] = &[SYS_bind, SYS_connect, SYS_getpeername];
/// As [`TO_CONNECT`], filtered by its arguments.
pub(super) const SOCKET: i64 = SYS_socket;
/// Sends a signal: to threads of the process only, for an abort.
pub(super) const TGKILL: i64 = SYS_tgkill;

/// Older calls that wait, which newer architectures lack.
#[cfg(target_arch = "x86_64")]
const OLD_POLLS: &[i64] = &[libc::SYS_poll, libc::SYS_epoll_wait];
#[cfg(not(target_arch = "x86_64"))]
const OLD_POLLS: &[i64] = &[];

/// Older calls of files; newer architectures lack all but the last.
#[cfg(target_arch = "x86_64")]
const OLD_FILES: &[i64] = &[
    libc::SYS_open,
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_readlink,
    libc::SYS_fstat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_FILES: &[i64] = &[libc::SYS_fstat];

//! A veth pair between two network namespaces of this thread.
//!
//! ```text
//! namespace a: v0 10.8.0.1 ══ veth ══ v1 10.8.0.2 :namespace b
//!            fd00:8::1                  fd00:8::2
//! ```

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

pub(crate) const A_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
pub(crate) const B_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

/// Both namespaces; the thread is in the first.
pub(crate) struct Pair {
    a: File,
    b: File,
}

/// The versions of IP that a pair has addresses of.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "tests that count no frames have both")]
pub(crate) enum Ip {
    /// IPv4 only: then the kernel sends no frame of its own. Neighbours are static, no address is
    /// requested, and IPv4 reports no group, while each IPv6 address joins one and reports that
    /// several times (MLD, RFC 3810).
    V4,
    Both,
}

/// Runs `test` on a thread with a new pair, which ends with the thread and the ports opened in it.
///
/// Needs root on this machine or in a user namespace (`unshare -r`); prints a note where it has
/// neither.
pub(crate) fn with_pair(ip: Ip, test: impl FnOnce(&Pair) + Send + 'static) {
    let thread = std::thread::spawn(move || match Pair::new(matches!(ip, Ip::Both)) {
        Ok(pair) => test(&pair),
        Err(error) => eprintln!("SKIPPED: no network namespace here ({error}): run as root"),
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Pair {
    fn new(ipv6: bool) -> nix::Result<Self> {
        let b = new_namespace(ipv6)?;
        let a = new_namespace(ipv6)?;
        let peer = format!("/proc/{}/fd/{}", std::process::id(), b.as_raw_fd());
        ip(&format!(
            "link add v0 address {} type veth peer name v1 address {} netns {peer}",
            text(A_MAC),
            text(B_MAC)
        ));
        let pair = Self { a, b };
        pair.set_up("v0", ipv6, "1", "2", &text(B_MAC));
        pair.in_b(|| pair.set_up("v1", ipv6, "2", "1", &text(A_MAC)));
        wait_until_up("v0");
        pair.in_b(|| wait_until_up("v1"));
        Ok(pair)
    }

    fn set_up(&self, name: &str, ipv6: bool, own: &str, other: &str, other_mac: &str) {
        ip("link set lo up");
        ip(&format!("link set {name} addrgenmode none"));
        ip(&format!("link set {name} mtu 9216 up"));
        ip(&format!("address add 10.8.0.{own}/24 dev {name}"));
        let mut prefixes = vec!["10.8.0."];
        if ipv6 {
            ip(&format!("address add fd00:8::{own}/64 dev {name} nodad"));
            prefixes.push("fd00:8::");
        }
        for address in prefixes {
            ip(&format!(
                "neighbour add {address}{other} lladdr {other_mac} dev {name}"
            ));
        }
    }

    /// Runs `work` in the second namespace.
    pub(crate) fn in_b<T>(&self, work: impl FnOnce() -> T) -> T {
        setns(&self.b, CloneFlags::CLONE_NEWNET).expect("the namespace is open");
        let result = work();
        setns(&self.a, CloneFlags::CLONE_NEWNET).expect("the namespace is open");
        result
    }
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn new_namespace(ipv6: bool) -> nix::Result<File> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    if !ipv6 {
        // Before there is a link: an interface that has IPv6 for a moment reports its groups.
        for name in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            std::fs::write(path, "1").expect("the owner of a namespace may write it");
        }
    }
    Ok(File::open("/proc/thread-self/ns/net").expect("a thread has a network namespace"))
}

/// Runs `ip` with these arguments in the thread's namespace.
pub(crate) fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .expect("ip is installed");
    assert!(status.success(), "ip {arguments}");
}

/// The output of `ip` with these arguments in the thread's namespace.
pub(crate) fn output(arguments: &str) -> String {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .expect("ip is installed");
    assert!(output.status.success(), "ip {arguments}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until the interface has its carrier: before that, frames are lost.
fn wait_until_up(name: &str) {
    let is_up = |_| {
        let up = output(&format!("link show dev {name}")).contains("state UP");
        if !up {
            std::thread::sleep(Duration::from_millis(10));
        }
        up
    };
    assert!((0..1000).any(is_up), "{name} has no carrier");
}

//! Two hosts tuned and restored.

use super::Hosts;
use crate::support::{Ended, Sandbox, end};

/// Kernel parameters that are too small, as files in place of those of the machine, in the mounts
/// of the host alone; the folder of the old values is its own too.
const PARAMETERS: &str = "\
    mount -t tmpfs none /proc/sys/net/core; mount -t tmpfs none /var/lib; cd /proc/sys/net/core; \
    echo 1000 > netdev_max_backlog; echo 212992 > rmem_max; echo 999999999 > wmem_max";

const SHOW: &str = "cd /proc/sys/net/core; for name in netdev_max_backlog rmem_max wmem_max; do echo $(cat $name); done; \
                    ls /var/lib/cipherbench 2>/dev/null || true";

const BEFORE: &str = "1000\n212992\n999999999\n";

pub(crate) fn doctor_tunes_both_hosts_and_restores_them_exactly() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let [left, right] = &hosts.hosts;
    left.run(PARAMETERS);
    right.run(&PARAMETERS.replace("212992", "300000"));
    let doctor = |word: &str| -> Ended {
        end(&mut hosts.program(&sandbox, &["doctor", "--lab", "lab.yaml", word]))
    };
    let ended = doctor("--apply").exits(0);
    for words in [
        "host `a` (ssh",
        "host `b` (ssh",
        "net.core.rmem_max  67108864, was 212992",
        "net.core.rmem_max  67108864, was 300000",
        "net.core.wmem_max  999999999, as it was",
        // A virtual link has no ring.
        "receive ring of cable0  not there, as it was",
    ] {
        assert!(ended.stdout.contains(words), "{words}:\n{}", ended.stdout);
    }
    for host in [left, right] {
        assert_eq!(host.run(SHOW), "10000\n67108864\n999999999\ntuning.json\n");
    }
    // What is applied twice is restored to the first values.
    doctor("--apply").exits(0);
    let ended = doctor("--revert").exits(0);
    assert!(
        ended
            .stdout
            .contains("net.core.rmem_max  300000, was 67108864"),
        "{}",
        ended.stdout
    );
    assert_eq!(left.run(SHOW), BEFORE);
    assert_eq!(right.run(SHOW), BEFORE.replace("212992", "300000"));
    let ended = doctor("--revert").exits(0);
    assert_eq!(ended.stdout.matches("nothing to restore").count(), 2);
    hosts.assert_free(&sandbox);
}

/// The parameters of a network namespace are those of its kernel, and read-only there: each is
/// reported, and nothing is recorded that was not set.
pub(crate) fn what_a_host_does_not_let_be_tuned_is_reported() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let [left, right] = &hosts.hosts;
    left.run(PARAMETERS);
    right.run("mount -t tmpfs none /var/lib; mount -t tmpfs none /proc/sys/net/core; cd /proc/sys/net/core; \
               echo 1000 > rmem_max; mount -o remount,ro /proc/sys/net/core");
    let ended = end(&mut hosts.program(&sandbox, &["doctor", "--lab", "lab.yaml", "--apply"]));
    let ended = ended.exits(3);
    for words in [
        "net.core.rmem_max  67108864, was 212992",
        "net.core.rmem_max  1000, not changed: Read-only file system",
        "net.core.wmem_max  not there, as it was",
    ] {
        assert!(ended.stdout.contains(words), "{words}:\n{}", ended.stdout);
    }
    assert_eq!(right.run("ls -A /var/lib/cipherbench"), "");
    let ended = end(&mut hosts.program(&sandbox, &["doctor", "--lab", "lab.yaml", "--revert"]));
    ended.exits(0);
    assert_eq!(left.run(SHOW), BEFORE);
    hosts.assert_free(&sandbox);
}

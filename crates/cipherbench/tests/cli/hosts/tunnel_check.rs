//! `tunnel-check` with the other end over ssh.

use super::Hosts;
use crate::support::{Sandbox, end, wait_for};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// The folders into which a host is sent the program.
const FOLDERS: &str =
    "ls -d /tmp/cipherbench-?????? /var/tmp/cipherbench-?????? 2>/dev/null || true";

/// The path is the cable of ssh itself: any address of the other host will do.
pub(crate) fn a_tunnel_is_checked_over_ssh_and_nothing_is_left() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let right = &hosts.hosts[1];
    let before = right.run(FOLDERS);
    // The ssh that the command starts has the configuration of this test.
    sandbox.make_folder("bin");
    let config = sandbox.path("ssh_config");
    sandbox.write(
        "bin/ssh",
        &format!(
            "#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n",
            config.display()
        ),
    );
    let ssh = sandbox.path("bin/ssh");
    fs::set_permissions(ssh, fs::Permissions::from_mode(0o755)).expect("our own file");
    let path = format!(
        "{}:/usr/sbin:/usr/bin:/sbin:/bin",
        sandbox.path("bin").display()
    );
    let check_with = |address: &str, host: &str, more: &[&str]| {
        let words = ["tunnel-check", address, "--ssh", host, "--seconds", "2"];
        let words = [&words, more].concat();
        end(hosts.program(&sandbox, &words).env("PATH", &path))
    };
    let check = |address: &str, host: &str| check_with(address, host, &[]);
    let ended = check("10.99.1.2", "right").exits(1);
    let first = ended.stdout.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("10.99.1.2 over t1 (veth), checked in "),
        "{first}"
    );
    assert!(ended.stdout.contains("NO, neither way"), "{}", ended.stdout);
    let is_gone = || {
        let processes = right.processes();
        let is_ours = |words: &str| words.contains("tunnel-check") || words.contains("station");
        let is_free = !processes.iter().any(|(_, words)| is_ours(words));
        // Another test may be sending its program meanwhile.
        let folders = right.run(FOLDERS);
        let is_old = |folder: &str| before.lines().any(|old| old == folder);
        (is_free && folders.lines().all(is_old)).then_some(())
    };
    wait_for("a host without the program", is_gone);
    // The session itself would be cut.
    check_with("10.99.1.2", "right", &["--offloads"])
        .exits(3)
        .says("offloads cannot be tried here: an ssh session with 10.99.1.2 goes over t1");
    wait_for("a host without the program", is_gone);
    // An address that is not of that host: the other end says so, and goes.
    check("10.99.0.2", "right")
        .exits(3)
        .says("cannot listen on 10.99.0.2:8423");
    wait_for("a host without the program", is_gone);
    check("10.99.1.2", "nowhere")
        .exits(3)
        .says("host `b` (ssh nowhere)");
    check("10.99.1.2", "-oProxyCommand=x").exits(2);
}

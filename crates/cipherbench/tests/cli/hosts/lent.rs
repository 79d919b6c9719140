//! The cable's interfaces of two hosts: which are taken, and that they come back.

use super::errors::refused;
use super::{Hosts, LONG_PING, of_lab, wait_for_ping};
use crate::support::{PROGRAM, Sandbox, finish, start};
use nix::sys::signal::{SIGINT, SIGKILL, SIGSTOP, kill};
use nix::unistd::Pid;

/// The address of the ssh session is on an interface above the one that the lab names.
pub(crate) fn an_interface_under_that_of_the_session_is_refused() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let lab = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
    let lab = lab.replacen("interface: cable0", "interface: m0", 1);
    let left = &hosts.hosts[0];
    for (make, place) in [
        (
            "ip link add link m0 up0 type macvlan mode bridge",
            "`m0` is under `up0` (macvlan)",
        ),
        (
            "ip link add up0 type bridge; ip link set m0 master up0",
            "`m0` is a port of `up0`",
        ),
    ] {
        left.run(&format!(
            "ip addr flush dev m0; {make}; ip addr add 10.99.0.2/24 dev up0; ip link set up0 up"
        ));
        // The address has another hardware address now.
        hosts.tester.run("ip neigh flush dev t0");
        let needed =
            format!("{place}, over which 10.99.0.1 is connected to this machine (10.99.0.2)");
        let help = "take another interface: this one would be gone while the run lasts";
        refused(&sandbox, &hosts, &lab, &["`hosts.a`", &needed, help]);
        left.run("ip link delete up0; ip addr add 10.99.0.2/24 dev m0");
        hosts.tester.run("ip neigh flush dev t0");
    }
}

/// Its agent moves the cable's interface out of the namespace that the station leaves.
pub(crate) fn a_stopped_or_killed_station_loses_no_interface() {
    for how in [SIGSTOP, SIGKILL] {
        let sandbox = Sandbox::new();
        let hosts = Hosts::new(&sandbox);
        let left = &hosts.hosts[0];
        left.run("echo 2 > /proc/sys/net/ipv4/conf/cable0/rp_filter; mount -t tmpfs none /mnt");
        let lab = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
        let lab = lab.replacen(" left", " left env TMPDIR=/mnt", 1);
        sandbox.write("lab.yaml", &lab);
        let run = start(&mut hosts.run(&sandbox, LONG_PING));
        wait_for_ping(&sandbox);
        // An agent that is killed leaves no folder, since it makes none.
        assert_eq!(left.run("ls -A /mnt"), "");
        let processes = of_lab(&sandbox).into_iter();
        let mut stations = processes.filter(|(_, words)| words.trim_end().ends_with("--node gw1"));
        let (station, _) = stations.next().expect("a station of gw1");
        kill(Pid::from_raw(station), how).expect("it lives");
        hosts.signal_run(SIGINT);
        finish(run).exits(4);
        hosts.assert_free(&sandbox);
        let kept = left.run("cat /proc/sys/net/ipv4/conf/cable0/rp_filter");
        assert_eq!(kept.trim(), "2", "{how}");
    }
}

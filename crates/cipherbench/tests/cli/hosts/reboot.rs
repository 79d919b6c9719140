//! A host that reboots while a trial runs on it.

use super::{Hosts, LONG_PING, Place, boot, measured, of_lab, processes, wait_for_ping};
use crate::support::{PROGRAM, Sandbox, finish, start, wait_for};
use nix::sys::signal::{SIGKILL, kill};
use nix::unistd::Pid;
use std::fs;

impl Hosts {
    /// Joins the hosts by a switch, on whose ports cables stay when the other end goes.
    fn join_by_switch(&self, sandbox: &Sandbox) -> Place {
        let switch = Place::new(sandbox, &[]);
        self.hosts[0].run("ip link delete cable0");
        switch.run("ip link add sw type bridge; ip link set sw up");
        for number in 0..2 {
            self.plug_in(&switch, number);
        }
        switch
    }

    fn plug_in(&self, switch: &Place, number: usize) {
        let host = &self.hosts[number];
        let up = ["", "ip link set cable0 up"][number];
        switch.run(&format!(
            "ip link add p{number} mtu 1600 type veth peer name cable0 mtu 1480 netns {}; \
             ip link set p{number} master sw up",
            host.pid()
        ));
        host.run(up);
    }

    /// Ends all that runs on the first host at once, with its interfaces and without a word to
    /// anyone, and starts it again once the run has missed it.
    fn reboot(&mut self, sandbox: &Sandbox, switch: &Place) {
        self.tester.run("ip link delete t0");
        switch.run("ip link delete p0");
        let [network, mounts] = ["net", "mnt"];
        let namespace = |pid: i32, kind| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
        let holder = self.hosts[0].pid().cast_signed();
        let is_own = |words: &str| {
            ["--node a", "--node gw1"]
                .iter()
                .any(|it| words.trim_end().ends_with(it))
        };
        let stations = of_lab(sandbox)
            .into_iter()
            .filter(|(_, words)| is_own(words));
        let networks: Vec<_> = stations
            .map(|(pid, _)| pid)
            .chain([holder])
            .filter_map(|pid| namespace(pid, network))
            .collect();
        let host = namespace(holder, mounts);
        let all = processes(|pid| {
            namespace(pid, network).is_some_and(|its| networks.contains(&its))
                || namespace(pid, mounts).is_some_and(|its| Some(its) == host)
        });
        assert!(all.len() > 5, "{all:?}");
        for (pid, _) in all {
            // Some end with others.
            let _ = kill(Pid::from_raw(pid), SIGKILL);
        }
        self.daemons[0].wait().expect("sshd can be waited for");
        // A host that is back before it is missed refuses packets of the old connection.
        wait_for("a trial that failed", || {
            (!sandbox.trial_records().is_empty()).then_some(())
        });
        self.hosts[0] = Place::new(sandbox, &[]);
        self.daemons[0] = boot(sandbox, &self.tester, (0, &self.hosts[0]));
        self.plug_in(switch, 0);
    }
}

pub(crate) fn a_run_waits_for_a_host_that_reboots_and_goes_on() {
    let sandbox = Sandbox::new();
    let mut hosts = Hosts::new(&sandbox);
    let switch = hosts.join_by_switch(&sandbox);
    let lab = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
    sandbox.write(
        "lab.yaml",
        &lab.replace("reconnect: 0 s", "reconnect: 60 s"),
    );
    let run = start(&mut hosts.run(&sandbox, &LONG_PING.replace("count: 3000", "count: 300")));
    wait_for_ping(&sandbox);
    hosts.reboot(&sandbox, &switch);
    let ended = finish(run).says("waiting for the host, 60 s at most");
    ended.says("the lab is up again after");
    assert_eq!(measured(&sandbox).len(), 1);
    let records = sandbox.trial_records();
    let [failed, again] = [0, 1].map(|number| &records[number]["outcome"]);
    assert_eq!((records.len(), &failed["kind"]), (2, &"failed".into()));
    assert_ne!(again["kind"], "failed");
    let reason = failed["reason"].as_str().expect("a reason");
    assert!(reason.contains("did not answer within 4 s"), "{reason}");
    hosts.assert_free(&sandbox);
}

//! The examination of offloads over a cable between two hosts.

use super::errors::only_refused;
use super::{Hosts, Place};
use crate::support::{PROGRAM, Sandbox, end, finish, start};
use nix::sys::signal::{SIGINT, SIGKILL, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};

const EXAMINE: [&str; 4] = ["doctor", "--offloads", "--lab", "lab.yaml"];

/// Everything that the examination changes at a cable.
fn settings(host: &Place) -> String {
    host.run("ethtool -k cable0; cat /sys/class/net/cable0/mtu 2>/dev/null || ip -o link show cable0 | grep -o 'mtu [0-9]*'")
}

pub(crate) fn an_examination_over_the_interface_of_the_session_is_refused() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let lab = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
    let lab = lab.replacen("interface: cable0", "interface: m0", 1);
    sandbox.write("lab.yaml", &lab);
    let ended = end(&mut hosts.program(&sandbox, &EXAMINE)).exits(3);
    only_refused(
        ended
            .says("`hosts.a`")
            .says("10.99.0.1 is connected to this machine over it"),
    );
    hosts.assert_free(&sandbox);
}

/// Ctrl-C ends it in order; a kill leaves it to the stations.
pub(crate) fn an_ended_examination_restores_every_offload() {
    for how in [SIGINT, SIGKILL] {
        let sandbox = Sandbox::new();
        let hosts = Hosts::new(&sandbox);
        let [left, right] = &hosts.hosts;
        left.run("ethtool -K cable0 tso off gro on");
        let before = [settings(left), settings(right)];
        let mut run = start(&mut hosts.program(&sandbox, &EXAMINE));
        let errors = run.stderr.take().expect("its output");
        let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
        let third = lines.find(|line| line.starts_with("combination 3 of "));
        assert!(third.is_some(), "it ended before the third combination");
        for (pid, words) in hosts.tester.processes() {
            if words.contains("--offloads") && !words.starts_with("nsenter") {
                kill(Pid::from_raw(pid), how).expect("it lives");
            }
        }
        // Reads what else it says, so that it can end.
        let rest: Vec<String> = lines.collect();
        let ended = finish(run);
        if how == SIGINT {
            ended.exits(4);
            let rest = rest.join("\n");
            assert!(rest.contains("every setting is as it was found"), "{rest}");
        }
        hosts.assert_free(&sandbox);
        assert_eq!([settings(left), settings(right)], before, "{how}");
    }
}

//! Pods as hosts: a stand-in for `kubectl` enters the pod's namespaces.

use super::{Hosts, measured};
use crate::support::{PROGRAM, Sandbox, end};
use std::fs;
use std::path::Path;

const CAMPAIGN: &str = "\
campaign: pods
repeats: 1
duts: [direct]
trials:
  - ping: { mtu: 1400 B, count: 40, interval: 10 ms }
";

pub(crate) fn pods_are_reached_by_kubectl() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let [a, b] = [0, 1].map(|number: usize| hosts.hosts[number].pid());
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2 $4\" = 'exec -i --' ] || exit 64\n\
         case $3 in cipherbench-0) pid={a};; cipherbench-1) pid={b};; *) exit 65;; esac\n\
         shift 4\nexec nsenter -t $pid -n -m -T \"$@\"\n"
    );
    sandbox.write("kubectl", &script);
    let folder = sandbox.path("");
    let folder = folder.to_str().expect("a plain name");
    // Another process makes what is executed: nothing here may have it open then.
    hosts.tester.run(&format!(
        "mkdir -m 755 {folder}/bin; cp {folder}/kubectl {folder}/bin/kubectl; chmod 755 {folder}/bin/kubectl"
    ));

    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/kubernetes.yaml");
    let lab = fs::read_to_string(shipped).expect("the shipped lab");
    let lab = lab
        .replace("lab: kubernetes", &format!("lab: {}", sandbox.lab()))
        .replace(
            "interface: net1",
            &format!("interface: cable0, program: {PROGRAM}"),
        );
    sandbox.write("lab.yaml", &lab);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut run = hosts.run(&sandbox, CAMPAIGN);
    run.env("PATH", format!("{folder}/bin:{path}"));
    let ended = end(&mut run);
    sandbox.measured(ended);
    assert_eq!(measured(&sandbox).len(), 1);
    hosts.assert_free(&sandbox);
}

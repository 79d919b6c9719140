//! Labs of two hosts: network namespaces with an sshd each, which the tester reaches only by ssh.
//!
//! ```text
//!          tester
//!       t0 |    | t1
//!       m0 |    | m0
//!        left  right
//!          cable0  <- one cable ->
//! ```

mod boxes;
mod clocks;
mod errors;
mod gateway;
mod lent;
mod offloads;
mod pods;
mod readings;
mod reboot;
mod tuned;
mod tunnel_check;

pub(crate) use boxes::{
    a_killed_run_gives_back_both_hosts_and_takes_the_boxes_down,
    a_tap_on_one_of_the_hosts_proves_encryption,
    boxes_between_two_hosts_are_measured_by_tools_and_frames,
    clocks_are_compared_through_the_boxes, ctrl_c_gives_back_both_hosts_and_takes_the_boxes_down,
    the_tester_may_be_one_of_the_two_hosts,
    what_two_hosts_with_boxes_cannot_do_is_refused_in_words,
};
pub(crate) use clocks::{
    a_report_between_two_clocks_says_that_its_latency_is_of_round_trips,
    an_unequal_way_widens_the_bound_and_leads_to_round_trips, doctor_looks_at_both_hosts,
    latency_between_two_clocks_has_a_bound_that_holds,
};
pub(crate) use errors::{
    a_host_of_another_kind_or_version_is_refused_in_words,
    a_host_whose_disk_is_full_is_refused_and_keeps_nothing,
    a_program_that_arrives_damaged_is_refused_and_keeps_nothing,
    a_sudo_that_asks_is_refused_in_words, cpus_of_a_host_are_used_recorded_and_checked,
    more_cores_than_a_host_has_fail_the_cell_with_its_name, what_a_login_shell_prints_is_ignored,
};
pub(crate) use gateway::one_gateway_alone_is_measured_between_two_hosts_of_two_clocks;
pub(crate) use lent::{
    a_stopped_or_killed_station_loses_no_interface,
    an_interface_under_that_of_the_session_is_refused,
};
pub(crate) use offloads::{
    an_ended_examination_restores_every_offload,
    an_examination_over_the_interface_of_the_session_is_refused,
};
pub(crate) use pods::pods_are_reached_by_kubectl;
pub(crate) use readings::each_host_is_read_for_itself;
pub(crate) use reboot::a_run_waits_for_a_host_that_reboots_and_goes_on;
pub(crate) use tuned::{
    doctor_tunes_both_hosts_and_restores_them_exactly,
    what_a_host_does_not_let_be_tuned_is_reported,
};
pub(crate) use tunnel_check::a_tunnel_is_checked_over_ssh_and_nothing_is_left;

use crate::support::{Ended, PROGRAM, Sandbox, end, finish, start, wait_for};
use nix::sys::signal::{SIGINT, SIGKILL, SIGSTOP, Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testing::busy;

/// Why these tests cannot run here, if they cannot.
pub(crate) fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("interfaces can be lent by root only".to_owned());
    }
    let sshd = Path::new(SSHD);
    (!sshd.exists()).then(|| format!("{SSHD} is not installed: sudo apt install openssh-server"))
}

const SSHD: &str = "/usr/sbin/sshd";

/// From the moment a host is on its own until it has its interface back and no tools.
const FREE_LIMIT: Duration = Duration::from_secs(5);

/// A namespace of network and mounts, which goes with its holder.
struct Place {
    holder: Child,
}

impl Place {
    /// `options` are further ones of `unshare`.
    fn new(sandbox: &Sandbox, options: &[&str]) -> Self {
        let script = "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/tmp && mkdir -m 755 /run/sshd && \
                      ip link set lo up && echo ready && exec cat";
        let mut holder = sandbox.command("unshare");
        holder.args(["--net", "--mount", "--propagation", "private"]);
        holder.args(options).args(["sh", "-c", script]);
        let mut holder = holder
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare can be started");
        let mut line = String::new();
        let output = holder.stdout.as_mut().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Self { holder }
    }

    fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// The words in front of a command that run it here.
    fn enter(&self) -> [String; 6] {
        let pid = self.pid().to_string();
        [
            "nsenter".to_owned(),
            "-t".to_owned(),
            pid,
            "-n".to_owned(),
            "-m".to_owned(),
            "-T".to_owned(),
        ]
    }

    /// Runs a shell script here that must succeed; returns what it prints.
    #[track_caller]
    fn run(&self, script: &str) -> String {
        let [program, words @ ..] = self.enter();
        let mut command = Command::new(program);
        let ended: Ended = end(command.args(words).args(["sh", "-ec", script]));
        ended.exits(0).stdout
    }

    /// The processes that have this place's mounts, with their command lines.
    fn processes(&self) -> Vec<(i32, String)> {
        let own = fs::read_link(format!("/proc/{}/ns/mnt", self.pid())).ok();
        processes(|pid| {
            let found = fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
            found.is_some() && found == own
        })
    }
}

/// The processes for which `is_wanted`, with their command lines.
fn processes(is_wanted: impl Fn(i32) -> bool) -> Vec<(i32, String)> {
    let numbers = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let words = |pid: i32| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, words.replace('\0', " "))
    };
    numbers.filter(|pid| is_wanted(*pid)).map(words).collect()
}

/// The processes of a lab: its stations, wherever they are, and all that they started.
fn of_lab(sandbox: &Sandbox) -> Vec<(i32, String)> {
    let mark = format!("CIPHERBENCH_RUN={}/", sandbox.lab());
    processes(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut entries = environment.split(|&byte| byte == 0);
        entries.any(|entry| entry.starts_with(mark.as_bytes()))
    })
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // It ends with its input.
        let _ = self.holder.wait();
    }
}

/// Connects a host to the tester and starts its `sshd`, as its start scripts would.
fn boot(sandbox: &Sandbox, tester: &Place, (number, host): (usize, &Place)) -> Child {
    tester.run(&format!(
        "ip link add t{number} type veth peer name m0 netns {}; \
         ip addr add 10.99.{number}.1/24 dev t{number}; ip link set t{number} up",
        host.pid()
    ));
    host.run(&format!(
        "ip addr add 10.99.{number}.2/24 dev m0; ip link set m0 up"
    ));
    let [program, words @ ..] = host.enter();
    let mut daemon = sandbox.command(&program);
    daemon.args(words).args([SSHD, "-D", "-e", "-f"]);
    daemon.arg(sandbox.path(&format!("sshd{number}")));
    let log = fs::File::create(sandbox.path(&format!("sshd{number}.log"))).expect("a file");
    let daemon = daemon.stderr(log).spawn().expect("sshd can be started");
    wait_for("sshd", || {
        host.run("ss -Hltn").contains(":22 ").then_some(())
    });
    daemon
}

/// Two hosts and a tester.
struct Hosts {
    tester: Place,
    hosts: [Place; 2],
    /// `sshd` of each host, and what a test adds.
    daemons: Vec<Child>,
}

impl Hosts {
    fn new(sandbox: &Sandbox) -> Self {
        Self::with(sandbox, &[])
    }

    /// `options` are further ones of `unshare` for the second host.
    fn with(sandbox: &Sandbox, options: &[&str]) -> Self {
        let tester = Place::new(sandbox, &[]);
        let hosts = [Place::new(sandbox, &[]), Place::new(sandbox, options)];
        let folder = sandbox.path("");
        let folder = folder.display();
        let keys = format!(
            "ssh-keygen -q -t ed25519 -N '' -f {folder}/user; ssh-keygen -q -t ed25519 -N '' -f {folder}/host"
        );
        tester.run(&keys);
        let host_key = fs::read_to_string(sandbox.path("host.pub")).expect("a key");
        let mut known = String::new();
        let mut config = String::new();
        let mut daemons = Vec::new();
        for (number, host) in hosts.iter().enumerate() {
            let name = ["left", "right"][number];
            known += &format!("10.99.{number}.2 {host_key}");
            config += &format!(
                "Host {name}\n HostName 10.99.{number}.2\n User root\n IdentityFile {folder}/user\n \
                 UserKnownHostsFile {folder}/known_hosts\n StrictHostKeyChecking yes\n"
            );
            let sshd = format!(
                "ListenAddress 10.99.{number}.2\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n\
                 StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n\
                 SetEnv GOTATUN={folder}/gotatun{number}\n"
            );
            sandbox.write(&format!("sshd{number}"), &sshd);
            daemons.push(boot(sandbox, &tester, (number, host)));
        }
        let [left, right] = &hosts;
        left.run(&format!(
            "ip link add cable0 mtu 1480 type veth peer name cable0 mtu 1480 netns {}",
            right.pid()
        ));
        right.run("ip link set cable0 up");
        sandbox.write("known_hosts", &known);
        sandbox.write("ssh_config", &config);
        let hosts = Self {
            tester,
            hosts,
            daemons,
        };
        sandbox.write(
            "lab.yaml",
            &hosts.lab(sandbox, &format!(", program: {PROGRAM}")),
        );
        hosts
    }

    /// The lab of both hosts; `more` are further keys of each.
    fn lab(&self, sandbox: &Sandbox, more: &str) -> String {
        let config = sandbox.path("ssh_config");
        let host = |name: &str| {
            format!(
                "{{ reach: ssh -F {} {name}, interface: cable0{more} }}",
                config.display()
            )
        };
        format!(
            "lab: {}\nkind: hosts\nhosts:\n  a: {}\n  b: {}\n  reconnect: 0 s\n",
            sandbox.lab(),
            host("left"),
            host("right")
        )
    }

    /// The program at the tester.
    fn program(&self, sandbox: &Sandbox, arguments: &[&str]) -> Command {
        let [program, words @ ..] = self.tester.enter();
        let mut command = sandbox.command(&program);
        command
            .args(words)
            .args(["env", "-C"])
            .arg(sandbox.path(""))
            .args(["--default-signal=INT", PROGRAM])
            .args(arguments);
        command
    }

    fn run(&self, sandbox: &Sandbox, campaign: &str) -> Command {
        sandbox.write("campaign.yaml", campaign);
        self.program(sandbox, &["run", "campaign.yaml", "--lab", "lab.yaml"])
    }

    /// Sends a signal to the run at the tester.
    fn signal_run(&self, signal: Signal) {
        for (pid, words) in self.tester.processes() {
            if words.contains("campaign.yaml") && !words.starts_with("nsenter") {
                kill(Pid::from_raw(pid), signal).expect("the run lives");
            }
        }
    }

    /// Whether a host has its interface as it was, and no process of ours.
    fn is_free(&self, sandbox: &Sandbox, number: usize) -> bool {
        let host = &self.hosts[number];
        let shown = host.run("ip -o link show; ls /run/cipherbench 2>/dev/null || true");
        let agents = host.processes();
        let nodes = [["--node a", "--node gw1"], ["--node gw2", "--node b"]][number];
        let is_own = |words: &str| nodes.iter().any(|node| words.trim_end().ends_with(node));
        let busy = agents.iter().any(|(_, words)| words.contains("station"))
            || of_lab(sandbox).iter().any(|(_, words)| is_own(words));
        let up = shown.contains("cable0") && shown.contains("mtu 1480");
        up && !busy && !shown.contains(".json")
    }

    #[track_caller]
    fn assert_free(&self, sandbox: &Sandbox) {
        for number in 0..2 {
            wait_for("a host that is free again", || {
                self.is_free(sandbox, number).then_some(())
            });
        }
        let [left, right] = &self.hosts;
        assert!(!left.run("ip -o link show cable0").contains("UP"));
        assert!(right.run("ip -o link show cable0").contains("UP"));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for sshd in &mut self.daemons {
            // It may have been killed.
            let _ = sshd.kill();
            let _ = sshd.wait();
        }
    }
}

/// What each trial of the only run measured, by cell and repeat. None may be invalid for another
/// reason than a busy machine, with which all else can be seen in one attempt.
#[track_caller]
fn measured(sandbox: &Sandbox) -> BTreeMap<(String, u64), Value> {
    let of = |(cell, outcome): ((String, u64), Value)| {
        if outcome["kind"] == "measured" {
            return (cell, outcome);
        }
        let reasons = outcome["reasons"].as_array().into_iter().flatten();
        let is_busy = busy::is_the_cause(reasons.filter_map(Value::as_str));
        assert!(is_busy, "{cell:?}: {outcome}");
        (cell, outcome["measured"].clone())
    };
    sandbox.trials().into_iter().map(of).collect()
}

/// A check in the evidence of what a trial measured.
fn check<'a>(measured: &'a Value, name: &str) -> Option<&'a Value> {
    let checks = measured["evidence"]["checks"].as_array();
    let mut checks = checks.into_iter().flatten();
    checks.find(|check| check["name"] == name)
}

const CAMPAIGN: &str = "\
campaign: hosts
repeats: 1
duts: [direct, cipherbench]
trials:
  - ping: { mtu: 1400 B, count: 60, interval: 10 ms }
  - tcp: { mtu: 1400 B, streams: 1, duration: 1 s, warmup: 0 s }
  - load: { frame: 512 B, rate: 2000 frames/s, duration: 1 s }
";

pub(crate) fn two_hosts_measure_as_one_machine_does() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let ended = end(&mut hosts.run(&sandbox, CAMPAIGN));
    let ended = sandbox.measured(ended);
    assert!(ended.stdout.contains("cipherbench"), "{}", ended.stdout);
    let measured = sandbox.trials();
    assert_eq!(measured.len(), 6, "{measured:?}");
    hosts.assert_free(&sandbox);
}

pub(crate) fn a_host_is_sent_the_program_and_keeps_nothing() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    sandbox.write("lab.yaml", &hosts.lab(&sandbox, ""));
    let folders = "ls -d /tmp/cipherbench-?????? /var/tmp/cipherbench-?????? 2>/dev/null || true";
    let before = hosts.hosts[0].run(folders);
    let ended = end(&mut hosts.run(&sandbox, PING));
    sandbox.measured(ended);
    hosts.assert_free(&sandbox);
    // Tests that run beside this one make folders of this kind too, which go.
    let folders = || hosts.hosts[0].run(folders);
    let now = folders();
    let made = now
        .lines()
        .filter(|folder| !before.lines().any(|it| it == *folder));
    for folder in made {
        wait_for(&format!("the end of {folder}"), || {
            (!folders().lines().any(|it| it == folder)).then_some(())
        });
    }
    // The host's agent awaits the tools that it asks for their versions itself.
    let journal = String::from_utf8(sandbox.run_file("journal.jsonl")).expect("UTF-8");
    let header = journal.lines().next().expect("a header");
    let header: Value = serde_json::from_str(header).expect("JSON");
    for host in ["a", "b"] {
        let tools = &header["environment"]["hosts"][host]["tools"];
        let version = tools["ping"].as_str().expect("ping is there");
        assert_ne!(version, "?", "{host}: {tools}");
    }
}

const PING: &str = "\
campaign: hosts
repeats: 1
duts: [direct]
trials: [ping: { mtu: 1400 B, count: 20, interval: 10 ms }]
";

/// Long enough to be cut.
const LONG_PING: &str = "\
campaign: hosts
repeats: 1
duts: [direct]
trials: [ping: { mtu: 1400 B, count: 3000, interval: 10 ms }]
";

/// Waits until the trial runs.
fn wait_for_ping(sandbox: &Sandbox) {
    wait_for("a trial", || {
        of_lab(sandbox)
            .iter()
            .any(|(_, words)| words.starts_with("ping -n -c") || words.contains("-c 300"))
            .then_some(())
    });
}

/// Cuts a host off by `cut` during a trial: it must be free soon, and the run must say so.
fn cut_off(cut: impl FnOnce(&Hosts), says: &str) {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let run = start(&mut hosts.run(&sandbox, LONG_PING));
    wait_for_ping(&sandbox);
    let began = Instant::now();
    cut(&hosts);
    wait_for("a host that is free again", || {
        hosts.is_free(&sandbox, 0).then_some(())
    });
    let took = began.elapsed();
    assert!(took <= FREE_LIMIT, "{took:?}");
    finish(run).exits(4).says(says);
    hosts.assert_free(&sandbox);
}

pub(crate) fn a_killed_ssh_session_frees_the_host() {
    let kill_session = |hosts: &Hosts| {
        let sessions = hosts.hosts[0].processes();
        let sessions = sessions
            .iter()
            .filter(|(_, words)| words.starts_with("sshd: root"));
        for (pid, _) in sessions {
            kill(Pid::from_raw(*pid), SIGKILL).expect("a session can be killed");
        }
    };
    cut_off(kill_session, "the station ended");
}

pub(crate) fn a_host_that_is_cut_off_frees_itself() {
    let cut = |hosts: &Hosts| {
        hosts.tester.run("ip link set t0 down");
    };
    cut_off(cut, "went away: it did not answer within 4 s");
}

/// As a laptop whose lid is closed.
pub(crate) fn a_tester_that_sleeps_frees_its_hosts() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let mut run = start(&mut hosts.run(&sandbox, LONG_PING));
    wait_for_ping(&sandbox);
    let began = Instant::now();
    hosts.signal_run(SIGSTOP);
    for number in 0..2 {
        wait_for("a host that is free again", || {
            hosts.is_free(&sandbox, number).then_some(())
        });
    }
    let took = began.elapsed();
    assert!(took <= FREE_LIMIT, "{took:?}");
    hosts.signal_run(SIGKILL);
    run.wait().expect("a child can be waited for");
}

pub(crate) fn a_host_that_cannot_be_used_is_refused_in_words() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let refused = |lab: &str, what: &str, help: &str| {
        sandbox.write("lab.yaml", lab);
        let ended = end(&mut hosts.run(&sandbox, PING));
        ended.exits(3).says(what).says(help);
        hosts.assert_free(&sandbox);
    };
    let good = hosts.lab(&sandbox, &format!(", program: {PROGRAM}"));
    refused(
        &good.replacen("interface: cable0", "interface: cable7", 1),
        "the lab's `hosts.a`: there is no interface `cable7` on that machine",
        "cable0; one that a run has borrowed is back when that run ends",
    );
    refused(
        &good.replacen("interface: cable0", "interface: m0", 1),
        "`m0` is in use: it has the address 10.99.0.2",
        "take another interface",
    );
    refused(
        &good.replacen(PROGRAM, "/nowhere/cipherbench", 1),
        "there is no program /nowhere/cipherbench",
        "correct `program`",
    );
    refused(
        &good.replacen(PROGRAM, "/bin/true", 1),
        "the station ended",
        "host `a`",
    );
    let known = sandbox.path("known_hosts");
    let kept = fs::read_to_string(&known).expect("a file");
    sandbox.write("known_hosts", "");
    refused(
        &good,
        "Host key verification failed",
        "compare the host's key",
    );
    // As after a new installation of the host.
    let other = fs::read_to_string(sandbox.path("user.pub")).expect("a key");
    sandbox.write("known_hosts", &format!("10.99.0.2 {other}"));
    refused(
        &good,
        "has changed and you have requested strict checking",
        "forget the old key with `ssh-keygen -R HOST`",
    );
    sandbox.write("known_hosts", &kept);
    fs::rename(sandbox.path("user"), sandbox.path("other")).expect("a key");
    refused(&good, "Permission denied", "ssh-copy-id");
    fs::rename(sandbox.path("other"), sandbox.path("user")).expect("a key");
    refused(
        &good.replacen(" left", " nobody.invalid", 1),
        "Could not resolve",
        "correct the host's name",
    );
}

/// The tester's own programs do not matter: here it has none by that name, and host `a` has one.
pub(crate) fn a_program_that_a_host_lacks_is_named_before_anything_is_measured() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    sandbox.write("gotatun0", "#!/bin/sh\n");
    let script = sandbox.path("gotatun0");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a file");
    let campaign = PING.replacen("duts: [direct]", "duts: [direct, gotatun]", 1);
    assert_ne!(campaign, PING);
    end(&mut hosts.run(&sandbox, &campaign))
        .exits(3)
        .says("a program that this campaign needs is not installed on the hosts")
        .says("gotatun  for DUT gotatun: 1 of 2 cells (not on host b)")
        .says("`--skip-missing`");
    assert!(!sandbox.path("runs").exists());
    hosts.assert_free(&sandbox);
}

pub(crate) fn two_runs_of_one_lab_exclude_each_other_on_its_hosts() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let first = start(&mut hosts.run(&sandbox, LONG_PING));
    wait_for_ping(&sandbox);
    // Another tester, with a state folder of its own.
    let [program, words @ ..] = hosts.tester.enter();
    let mut other = sandbox.command(&program);
    other.args(words).args(["unshare", "--mount", "sh", "-c"]);
    other.arg(format!(
        "mount -t tmpfs tmpfs /run && cd {} && exec {PROGRAM} run campaign.yaml --lab lab.yaml --out other",
        sandbox.path("").display()
    ));
    let lab = sandbox.lab();
    end(&mut other)
        .exits(3)
        .says(&format!("lab `{lab}` is in use"));
    hosts.signal_run(SIGINT);
    finish(first).exits(4);
    hosts.assert_free(&sandbox);
}

//! Sabotage: what other programs do to a lab while its trials run. A figure that it touched is
//! invalid, or a warning names the disturbance; none stands as if nothing had happened.
//!
//! Each test runs one trial of TCP, one of UDP and one of frames, and does the same harm once in
//! the middle of each.

use crate::support::{Sandbox, finish, kill, start};
use nix::sys::signal::Signal::{SIGCONT, SIGKILL, SIGSTOP};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Loads that any machine carries, so that nothing but the harm disturbs them; long enough for
/// harm in their middle.
const CAMPAIGN: &str = "\
campaign: sabotaged
repeats: 1
calibrate: false
duts: [cipherbench]
trials:
  - tcp: { mtu: 1500 B, streams: 2, duration: 2 s, warmup: 0 s }
  - udp: { mtu: 1500 B, datagram: 1000 B, rate: 80 Mbit/s, duration: 2 s, warmup: 0 s }
  - load: { frame: 1024 B, rate: 10 k frames/s, duration: 2 s }
";

/// Trials of the campaign.
const TRIALS: usize = 3;
/// Time from the first packets of a trial to the harm.
const LEAD: Duration = Duration::from_millis(500);
/// How long the harm lasts, unless it is done at once.
const HARM: Duration = Duration::from_millis(1000);
/// Runs to try before a machine is said to be too busy.
const RUNS: usize = 3;
/// More packets than a ping or the keys' exchange.
const TRAFFIC: u64 = 300;

/// The interfaces of the path, from A to B, each in its own namespace or in a gateway's.
const PATH: [&str; 6] = ["a0", "a1", "w0", "w1", "b1", "b0"];

/// The running lab.
struct Lab<'a> {
    sandbox: &'a Sandbox,
    /// The holders found so far: to look for them takes CPU time from the trial.
    holders: std::cell::RefCell<BTreeMap<String, i32>>,
}

impl Lab<'_> {
    /// The process that holds the namespace of an interface.
    fn holder(&self, interface: &str) -> Option<i32> {
        let known = self.holders.borrow().get(interface).copied();
        if let Some(pid) = known.filter(|&pid| packets(pid, interface).is_some()) {
            return Some(pid);
        }
        let stations = self.sandbox.processes().into_iter();
        let mut stations = stations.filter(|(_, line)| line.contains("station --node "));
        let (pid, _) = stations.find(|(pid, _)| packets(*pid, interface).is_some())?;
        self.holders.borrow_mut().insert(interface.to_owned(), pid);
        Some(pid)
    }

    /// A command beside an interface.
    fn beside(&self, interface: &str, words: &[&str]) -> Command {
        let holder = self.holder(interface).expect("the lab is up").to_string();
        let mut wrapper = vec!["--target", &holder, "--net"];
        if !nix::unistd::geteuid().is_root() {
            wrapper.extend(["--user", "--preserve-credentials"]);
        }
        // Without the mark of the test's own processes, which the lab would take for its own.
        let mut command = Command::new("nsenter");
        command.args(wrapper).args(words);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a script beside an interface.
    fn script(&self, interface: &str, script: &str) {
        let output = self.beside(interface, &["sh", "-c", script]).output();
        let output = output.expect("nsenter is there");
        assert!(
            output.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// The tools that run beside an interface.
    fn tools(&self, interface: &str) -> Vec<i32> {
        let network = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let Some(holder) = self.holder(interface) else {
            return Vec::new();
        };
        let here = network(holder);
        let tools = self.sandbox.processes().into_iter();
        let tools = tools.filter(|(pid, line)| {
            (line.contains("iperf3 ") || line.contains("frames")) && network(*pid) == here
        });
        tools.map(|(pid, _)| pid).collect()
    }
}

/// Packets that an interface has received, in the namespace of a process.
fn packets(pid: i32, interface: &str) -> Option<u64> {
    let table = fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    let mut rows = table.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = rows.find(|(name, _)| name.trim() == interface)?;
    numbers.split_whitespace().nth(1)?.parse().ok()
}

/// Something done to a running lab.
type Step<'a> = &'a dyn Fn(&Lab<'_>);

const NOTHING: Step<'_> = &|_| {};

/// What came of one trial.
#[derive(Debug)]
struct Came {
    kind: String,
    reasons: Vec<String>,
    /// Kinds of the warnings about its cell.
    warnings: Vec<String>,
    /// Its record.
    outcome: Value,
}

/// Takes the first step in the middle of every trial of a run and the second after [`HARM`], which
/// undoes it; returns what came of the trials, by their kind: nothing where the machine was so busy
/// that trials passed without harm in several runs.
fn sabotage(begin: Step<'_>, end: Step<'_>) -> BTreeMap<String, Came> {
    sabotage_until(begin, end, &|| true)
}

/// The same, for harm that may turn out too small to be found: the run is repeated until
/// `is_enough`.
fn sabotage_until(
    begin: Step<'_>,
    end: Step<'_>,
    is_enough: &dyn Fn() -> bool,
) -> BTreeMap<String, Came> {
    for _ in 0..RUNS {
        let came = sabotage_once(begin, end);
        if let Some(came) = came.filter(|_| is_enough()) {
            return came;
        }
    }
    eprintln!("SKIPPED: the machine is too busy to disturb each trial in its middle");
    BTreeMap::new()
}

/// What came of one run; `None` if a trial was not harmed.
fn sabotage_once(begin: Step<'_>, end: Step<'_>) -> Option<BTreeMap<String, Came>> {
    let sandbox = Sandbox::new();
    let mut run = start(sandbox.run(CAMPAIGN).arg("--quiet"));
    let lab = Lab {
        sandbox: &sandbox,
        holders: std::cell::RefCell::default(),
    };
    let mut harmed = 0;
    while let Some(trial) = middle_of_trial(&lab, &mut run, harmed) {
        if trial != harmed {
            break;
        }
        begin(&lab);
        let begun = Instant::now();
        while begun.elapsed() < HARM && sandbox.trials_recorded() == trial {
            std::thread::sleep(Duration::from_millis(20));
        }
        end(&lab);
        harmed += 1;
    }
    let ended = finish(run);
    assert!(
        matches!(ended.code, Some(0 | 1)),
        "{:?}\n{}",
        ended.code,
        ended.stderr
    );
    let results: Value = serde_json::from_slice(&sandbox.run_file("results.json")).expect("JSON");
    let warnings = results["warnings"].as_array().expect("warnings");
    let about = |id: &str| -> Vec<String> {
        let about = warnings.iter().filter(|warning| {
            let cells = warning["cells"].as_array().expect("cells");
            cells.is_empty() || cells.iter().any(|cell| cell == id)
        });
        let kinds = about.map(|warning| warning["kind"].as_str().expect("a kind").to_owned());
        kinds.collect()
    };
    let trials = sandbox.trials();
    assert_eq!(trials.len(), TRIALS, "{}", ended.stderr);
    if harmed != TRIALS {
        return None;
    }
    let came = trials.iter().map(|((cell, _), outcome)| {
        let kind = cell.split('/').next().expect("a kind").to_owned();
        let reasons = outcome["reasons"].as_array().into_iter().flatten();
        let came = Came {
            kind: outcome["kind"].as_str().expect("a kind").to_owned(),
            reasons: reasons.map(|reason| reason.to_string()).collect(),
            warnings: about(cell),
            outcome: outcome.clone(),
        };
        (kind, came)
    });
    let came: BTreeMap<_, Came> = came.collect();
    for (kind, came) in &came {
        eprintln!(
            "{kind}: {} {:?} {:?}",
            came.kind, came.reasons, came.warnings
        );
    }
    Some(came)
}

fn is_running(run: &mut Child) -> bool {
    run.try_wait().expect("our child").is_none()
}

/// Packets that station B has received so far, if the lab is up.
fn received(lab: &Lab<'_>) -> Option<u64> {
    packets(lab.holder("b0")?, "b0")
}

/// Waits for the middle of the trial of this number, from 0, or of a later one; returns its number,
/// or `None` when the run has ended.
fn middle_of_trial(lab: &Lab<'_>, run: &mut Child, number: usize) -> Option<usize> {
    let mut first: Option<(Instant, u64)> = None;
    while is_running(run) {
        std::thread::sleep(Duration::from_millis(20));
        let trial = lab.sandbox.trials_recorded();
        let now = received(lab).filter(|_| trial >= number);
        let Some(now) = now else { continue };
        let (since, count) = *first.get_or_insert((Instant::now(), now));
        if since.elapsed() < LEAD {
            continue;
        }
        if now.saturating_sub(count) >= TRAFFIC {
            return Some(trial);
        }
        first = None;
    }
    None
}

/// Asserts that each figure is invalid, or that one of these warnings is about it.
#[track_caller]
fn assert_not_plain(came: &BTreeMap<String, Came>, named: &[&str]) {
    let is_plain = |came: &Came| {
        came.kind == "measured"
            && !(came.warnings.iter()).any(|warning| named.contains(&warning.as_str()))
    };
    let plain = came.iter().filter(|(_, came)| is_plain(came));
    let plain: Vec<_> = plain.map(|(kind, came)| (kind, &came.warnings)).collect();
    assert!(plain.is_empty(), "stands as a plain number: {plain:#?}");
}

/// Bytes that must be dropped in a trial for the loss to be clear, about 80 packets: of 20,000, two
/// counters may differ by 36. A packet that the kernel drops may be several (GRO). TCP slows down
/// by loss, so that it loses fewer, and shows what it sent again.
const CLEAR_LOSS_BYTES: u64 = 80_000;

/// Drops one frame in a hundred where it passes a hook of an interface: `ingress` or `egress`.
fn lose_at(interface: &'static str, hook: &str) -> BTreeMap<String, Came> {
    let fewest = std::cell::Cell::new(u64::MAX);
    let begin = |lab: &Lab<'_>| {
        lab.script(
            interface,
            &format!(
                "nft add table netdev sabotage && \
                 nft 'add chain netdev sabotage lose \
                      {{ type filter hook {hook} device {interface} priority 0; }}' && \
                 nft add rule netdev sabotage lose numgen random mod 100 == 0 counter drop"
            ),
        );
    };
    let end = |lab: &Lab<'_>| {
        if !runs_tcp(lab) {
            fewest.set(fewest.get().min(dropped(lab, interface)));
        }
        remove_table(lab, interface);
    };
    sabotage_until(&begin, &end, &|| {
        fewest.replace(u64::MAX) >= CLEAR_LOSS_BYTES
    })
}

fn runs_tcp(lab: &Lab<'_>) -> bool {
    let mut tools = lab.sandbox.processes().into_iter();
    tools.any(|(_, line)| {
        line.contains("iperf3 ") && line.contains(" -c ") && !line.contains(" -u ")
    })
}

/// Bytes that the rule beside an interface has dropped; 0 if the lab is gone.
fn dropped(lab: &Lab<'_>, interface: &str) -> u64 {
    if lab.holder(interface).is_none() {
        return 0;
    }
    let words = ["nft", "list", "table", "netdev", "sabotage"];
    let output = lab.beside(interface, &words).output();
    let text = output.expect("nsenter is there").stdout;
    let text = String::from_utf8_lossy(&text);
    let mut words = text.split_whitespace();
    let bytes = words.find(|word| *word == "bytes").and(words.next());
    bytes.map_or(0, |bytes| bytes.parse().expect("a number"))
}

fn remove_table(lab: &Lab<'_>, interface: &str) {
    if lab.holder(interface).is_some() {
        lab.script(interface, "nft delete table netdev sabotage");
    }
}

/// Warnings that name a loss that is not the device's, or where it happened.
const LOSS: [&str; 2] = ["lost-at", "unexplained-retransmissions"];

pub(crate) fn loss_on_the_link_of_station_a() {
    assert_not_plain(&lose_at("a1", "ingress"), &LOSS);
}

pub(crate) fn loss_on_the_cipher_link() {
    assert_not_plain(&lose_at("w1", "ingress"), &LOSS);
}

pub(crate) fn loss_on_the_link_of_station_b() {
    // Where b0 receives, packet sockets have seen a frame before it is dropped.
    assert_not_plain(&lose_at("b1", "egress"), &LOSS);
}

pub(crate) fn copies_in_clear_on_the_cipher_link() {
    let begin = |lab: &Lab<'_>| {
        lab.script(
            "a1",
            "nft add table netdev sabotage && \
             nft 'add chain netdev sabotage copy \
                  { type filter hook ingress device a1 priority 0; }' && \
             nft add rule netdev sabotage copy dup to w0",
        );
    };
    let end = |lab: &Lab<'_>| remove_table(lab, "a1");
    let came = sabotage(&begin, &end);
    assert_not_plain(&came, &[]);
}

/// Frames that leave a gateway past its kernel's queue are not shown to packet sockets there.
pub(crate) fn frames_in_clear_past_the_queue() {
    let begin = |lab: &Lab<'_>| {
        lab.script("w0", &format!("python3 -c '{PAST_THE_QUEUE}'"));
    };
    let came = sabotage(&begin, NOTHING);
    assert_not_plain(&came, &[]);
}

/// Sends a few frames of what looks like the stations' traffic with `PACKET_QDISC_BYPASS`.
const PAST_THE_QUEUE: &str = "\
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
sender.setsockopt(263, 20, 1)
sender.bind((\"w0\", 0))
ip = bytes.fromhex(\"4500041c00004000401100000a0100020a020002\")
for _ in range(20):
    sender.send(b\"\\x02\\xcb\\0\\0\\0\\xc1\\x02\\xcb\\0\\0\\0\\xc0\\x08\\0\" + ip + b\"0\" * 1032)
";

pub(crate) fn a_route_past_the_tunnel() {
    let past = |gateway: &'static str, clear: &'static str, next: &'static str| {
        move |lab: &Lab<'_>, add: &str| {
            lab.script(
                clear,
                &format!(
                    "nft delete table ip cipherbench-cb0 2>/dev/null; \
                     ip rule {add} pref 1 iif {clear} lookup 77; \
                     ip route {add} default via {next} dev {gateway} table 77"
                ),
            );
        }
    };
    let there = past("w0", "a1", "192.0.2.2");
    let back = past("w1", "b1", "192.0.2.1");
    let begin = |lab: &Lab<'_>| {
        there(lab, "add");
        back(lab, "add");
    };
    let end = |lab: &Lab<'_>| {
        if lab.holder("a1").is_some() {
            there(lab, "del");
            back(lab, "del");
        }
    };
    let came = sabotage(&begin, &end);
    assert_not_plain(&came, &[]);
}

pub(crate) fn offloads_switched() {
    let switch = |lab: &Lab<'_>, state: &str| {
        for interface in PATH {
            if lab.holder(interface).is_some() {
                let words = format!("ethtool -K {interface} tso {state} gso {state}");
                lab.script(interface, &words);
            }
        }
    };
    let came = sabotage(&|lab| switch(lab, "off"), &|lab| switch(lab, "on"));
    assert_not_plain(&came, &[]);
}

/// How long tools stand still. It may begin just after an interval of 0.2 s did, which then is only
/// 0.1 s too long; the check `tools-kept-time` allows 80 ms.
const STANDSTILL: Duration = Duration::from_millis(300);

/// Stops the tools of a station for a time, or what is left of the trial.
fn stop_tools(interface: &'static str) -> BTreeMap<String, Came> {
    let begin = |lab: &Lab<'_>| {
        let tools = lab.tools(interface);
        tools.iter().for_each(|pid| kill(*pid, SIGSTOP));
        std::thread::sleep(STANDSTILL);
        tools.iter().for_each(|pid| kill(*pid, SIGCONT));
    };
    sabotage(&begin, NOTHING)
}

/// Warnings that name a station that stood still.
const STOOD_STILL: [&str; 4] = [
    "sender-stalled",
    "receiver-stalled",
    "intervals-apart",
    "machine-taken",
];

pub(crate) fn the_sender_stands_still() {
    assert_not_plain(&stop_tools("a0"), &STOOD_STILL);
}

pub(crate) fn the_receiver_stands_still() {
    assert_not_plain(&stop_tools("b0"), &STOOD_STILL);
}

pub(crate) fn every_core_is_taken_by_another_program() {
    let hogs = std::cell::RefCell::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let begin = |_: &Lab<'_>| {
        let hog = || {
            Command::new("sh")
                // It ends by itself should the test be killed.
                .args(["-c", "ulimit -t 10; while :; do :; done"])
                .spawn()
        };
        let new = (0..cores).map(|_| hog().expect("a shell"));
        hogs.borrow_mut().extend(new);
    };
    let end = |_: &Lab<'_>| {
        for mut hog in hogs.borrow_mut().drain(..) {
            hog.kill().expect("our child");
            hog.wait().expect("our child");
        }
    };
    let came = sabotage(&begin, &end);
    assert_not_plain(&came, &["machine-taken"]);
}

/// Broadcasts by a neighbour on the far end of a link.
fn storm(from: &'static str, network: &'static str) -> BTreeMap<String, Came> {
    let begin = |lab: &Lab<'_>| {
        // Broadcasts are not answered, so `ping` fails.
        let storm = format!("ping -b -q -n -l 3000 -c 3000 -s 1000 -W 1 {network} || true");
        lab.script(from, &storm);
    };
    sabotage(&begin, NOTHING)
}

pub(crate) fn a_broadcast_storm_on_the_cipher_link() {
    assert_not_plain(&storm("w1", "192.0.2.255"), &[]);
}

pub(crate) fn a_broadcast_storm_on_the_link_of_station_b() {
    assert_not_plain(&storm("b1", "10.2.0.255"), &[]);
}

pub(crate) fn the_device_is_restarted() {
    let begin = |lab: &Lab<'_>| {
        let processes = lab.sandbox.processes();
        let gateway = processes
            .iter()
            .find(|(_, line)| line.contains("encrypt --config"));
        let (pid, _) = gateway.expect("the device runs");
        let words = fs::read(format!("/proc/{pid}/cmdline")).expect("its words");
        let words: Vec<_> = words.split(|&byte| byte == 0).collect();
        let words: Vec<_> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word))
            .collect();
        let holder = lab.holder("w0").expect("the lab is up").to_string();
        kill(*pid, SIGKILL);
        // It comes up again, as a supervisor would have it.
        let mut again = Command::new("nsenter");
        again
            .args(["--target", &holder, "--all", crate::support::PROGRAM])
            .args(
                words
                    .iter()
                    .skip(1)
                    .filter(|word| !word.is_empty())
                    .map(AsRef::as_ref),
            )
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut again = again.spawn().expect("nsenter is there");
        std::thread::sleep(HARM);
        let _ = again.kill();
        again.wait().expect("our child");
    };
    let came = sabotage(&begin, NOTHING);
    assert_not_plain(&came, &[]);
}

/// The warning that names a clock that was set.
const CLOCK: &str = "clock-stepped";
/// Set to 1, the clock of this machine is set, and set back.
const SET_CLOCK: &str = "CIPHERBENCH_SET_CLOCK";

/// The clock of this machine, moved until this is dropped.
struct MovedClock {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC.
    before: TimeSpec,
}

impl MovedClock {
    fn by(distance: TimeSpec) -> Self {
        let before = now(ClockId::CLOCK_REALTIME) - now(ClockId::CLOCK_MONOTONIC);
        let moved = Self { before };
        set_ahead(before + distance).expect("root may set the clock");
        moved
    }
}

impl Drop for MovedClock {
    fn drop(&mut self) {
        let _ = set_ahead(self.before);
    }
}

fn now(clock: ClockId) -> TimeSpec {
    clock_gettime(clock).expect("the clock exists")
}

/// Sets the clock by the one that cannot be set, so that no time is lost.
fn set_ahead(ahead: TimeSpec) -> nix::Result<()> {
    let time = ahead + now(ClockId::CLOCK_MONOTONIC);
    clock_settime(ClockId::CLOCK_REALTIME, time)
}

/// Asserts that no number of a record is off by an hour.
fn assert_kept_time(value: &Value) {
    const NEARLY_AN_HOUR_NS: std::ops::Range<f64> = 3.5e12..3.7e12;
    match value {
        Value::Array(values) => values.iter().for_each(assert_kept_time),
        Value::Object(values) => values.values().for_each(assert_kept_time),
        Value::Number(number) => {
            let size = number.as_f64().expect("a number").abs();
            assert!(!NEARLY_AN_HOUR_NS.contains(&size), "{number}");
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

pub(crate) fn the_clock_is_set_and_set_back() {
    if std::env::var_os(SET_CLOCK).is_none_or(|value| value != "1") {
        eprintln!("SKIPPED: it sets the clock of this machine: allow that with {SET_CLOCK}=1");
        return;
    }
    let hour = TimeSpec::new(3600, 0);
    for distance in [hour, TimeSpec::new(0, 0) - hour] {
        let moved = std::cell::RefCell::new(None);
        let begin = |_: &Lab<'_>| *moved.borrow_mut() = Some(MovedClock::by(distance));
        let came = sabotage(&begin, &|_| drop(moved.take()));
        for came in came.values() {
            let named = came.warnings.iter().any(|kind| kind == CLOCK);
            assert!(named, "{}: {:?}", came.kind, came.warnings);
            assert_kept_time(&came.outcome);
        }
    }
}

/// The positive control: without harm all three are measured, and no warning speaks of any.
pub(crate) fn without_harm_the_figures_stand() {
    for _ in 0..5 {
        let came = sabotage(NOTHING, NOTHING);
        let is_plain = |came: &Came| {
            let mut named = LOSS.iter().chain(&STOOD_STILL).chain(&[CLOCK]);
            came.kind == "measured" && !named.any(|name| came.warnings.iter().any(|it| it == name))
        };
        if came.values().all(is_plain) {
            return;
        }
    }
    eprintln!("SKIPPED: the machine is too busy for an undisturbed run");
}

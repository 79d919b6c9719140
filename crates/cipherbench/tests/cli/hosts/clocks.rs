//! Two hosts looked at, and their clocks compared.

use super::{Hosts, measured};
use crate::support::{Sandbox, end};
use serde_json::Value;

impl Hosts {
    /// Puts [`DELAY`] into the cable, at the tester's place.
    fn join_by_delay(&mut self, sandbox: &Sandbox) {
        self.hosts[0].run("ip link delete cable0");
        for (number, host) in self.hosts.iter().enumerate() {
            let pid = host.pid();
            self.tester.run(&format!(
                "ip link add p{number} mtu 1480 type veth peer name cable0 mtu 1480 netns {pid}; \
                 ethtool -K p{number} tso off gso off gro off tx off; ip link set p{number} up"
            ));
        }
        self.hosts[1].run("ip link set cable0 up");
        sandbox.write("delay.py", DELAY);
        let [program, words @ ..] = self.tester.enter();
        let mut delay = sandbox.command(&program);
        delay
            .args(words)
            .arg("python3")
            .arg(sandbox.path("delay.py"));
        self.daemons
            .push(delay.spawn().expect("python3 can be started"));
    }
}

pub(crate) fn doctor_looks_at_both_hosts() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::new(&sandbox);
    let doctor = |words: &[&str]| {
        let words: Vec<_> = ["doctor", "--lab", "lab.yaml"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        end(&mut hosts.program(&sandbox, &words))
    };
    let ended = doctor(&[]).exits(0);
    for words in [
        "host `a` (ssh",
        "host `b` (ssh",
        "interface cable0",
        "clock discipline",
        "SMT",
    ] {
        assert!(ended.stdout.contains(words), "{words}:\n{}", ended.stdout);
    }
    let found: Value = serde_json::from_str(&doctor(&["--json"]).stdout).expect("JSON");
    for key in ["a", "b"] {
        let findings = found["hosts"][key]["findings"]
            .as_array()
            .expect("findings");
        let card = findings
            .iter()
            .find(|finding| finding["name"] == "interface cable0");
        let found = card.expect("a finding")["found"].as_str().expect("words");
        assert!(found.starts_with("veth"), "{found}");
    }

    // A host that cannot be reached, and an interface that is not there.
    let wrong = hosts
        .lab(&sandbox, "")
        .replacen("cable0", "cable7", 1)
        .replace("ssh_config right", "ssh_config nowhere");
    sandbox.write("lab.yaml", &wrong);
    let ended = doctor(&[]).exits(3);
    assert!(
        ended.stdout.contains("there is no such interface"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("error: host `b`"), "{}", ended.stdout);
    hosts.assert_free(&sandbox);
}

/// By how far the second host's clock is ahead, in seconds and nanoseconds.
pub(super) const AHEAD_S: &str = "900";
const AHEAD_NS: i64 = 900_000_000_000;

/// Frames both ways between two hosts of two clocks, of which the truth is known.
const OF_TWO_CLOCKS: &str = "\
campaign: clocks
repeats: 1
duts: [direct, bridge]
trials:
  - load: { frame: 512 B, rate: 500 frames/s, duration: 1 s, duplex: [false, true] }
";

/// What a trial between two clocks has.
#[derive(Debug)]
pub(super) struct Timed {
    /// The widest bound of its frame trials.
    pub(super) within_ns: u64,
    /// The shortest latency one way, and the shortest round trip.
    one_way_ns: Option<u64>,
    round_trip_ns: Option<u64>,
    duplex: bool,
}

/// Asserts that each trial's bound holds the truth, on a busy machine too. Returns what the trials
/// have.
pub(super) fn timed_by_two_clocks(sandbox: &Sandbox) -> Vec<Timed> {
    let bound = |(cell, measured): (&(String, u64), &Value)| {
        let frames = &measured["frames"];
        let of_trials = frames["trials"].as_array().expect("frame trials");
        // Round trips are timed by one clock.
        let by_two = of_trials
            .iter()
            .map(|trial| &trial["readings"]["clocks"])
            .filter(|clocks| !clocks.is_null());
        let bounds = by_two.map(|clocks| {
            let ahead_ns = clocks["ahead_ns"].as_i64().expect("an offset");
            let within_ns = clocks["within_ns"].as_u64().expect("a bound");
            // Of the receiver's host, compared with the sender's.
            let truth_ns = if cell.0.contains("direction=decrypt") {
                -AHEAD_NS
            } else {
                AHEAD_NS
            };
            let off_ns = ahead_ns.abs_diff(truth_ns);
            assert!(off_ns <= within_ns, "{off_ns} of {within_ns}");
            within_ns
        });
        let mut found = Timed {
            within_ns: bounds.max().expect("a trial"),
            one_way_ns: None,
            round_trip_ns: None,
            duplex: cell.0.contains("duplex=on"),
        };
        for latency in frames["latency"].as_array().into_iter().flatten() {
            let histogram = latency["histogram"].as_array().expect("buckets");
            // They are those of an idle cable, and not the difference of the clocks.
            let least_ns = histogram[0]["upto_ns"].as_u64().expect("a latency");
            assert!((500..100_000_000).contains(&least_ns), "{least_ns}");
            if latency["round_trip"].is_null() {
                found.one_way_ns = Some(least_ns)
            } else {
                found.round_trip_ns = Some(least_ns)
            }
        }
        found
    };
    measured(sandbox).iter().map(bound).collect()
}

pub(crate) fn latency_between_two_clocks_has_a_bound_that_holds() {
    let sandbox = Sandbox::new();
    let hosts = Hosts::with(&sandbox, &["--time", "--monotonic", AHEAD_S]);
    end(&mut hosts.run(&sandbox, OF_TWO_CLOCKS));
    let all = timed_by_two_clocks(&sandbox);
    assert_eq!(all.len(), 4, "{all:?}");
    for timed in all {
        let within_ns = timed.within_ns;
        eprintln!("clocks are known to {within_ns} ns");
        assert!(
            timed.one_way_ns.is_some() || within_ns > 1000,
            "{within_ns}"
        );
        // On an idle machine 20 us; a busy one delays probes.
        assert!(within_ns < 1_000_000, "{within_ns}");
    }
    hosts.assert_free(&sandbox);
}

/// Frames from the right host take a millisecond longer than those from the left one. So the
/// clocks are known to half of that, and no latency one way is stated; a round trip takes the
/// millisecond, and is, but where both directions are loaded already.
pub(crate) fn an_unequal_way_widens_the_bound_and_leads_to_round_trips() {
    let sandbox = Sandbox::new();
    let mut hosts = Hosts::with(&sandbox, &["--time", "--monotonic", AHEAD_S]);
    hosts.join_by_delay(&sandbox);
    end(&mut hosts.run(&sandbox, OF_TWO_CLOCKS));
    let all = timed_by_two_clocks(&sandbox);
    assert_eq!(all.len(), 4, "{all:?}");
    for timed in all {
        assert!(timed.within_ns > 400_000, "{}", timed.within_ns);
        assert_eq!(timed.one_way_ns, None);
        assert_eq!(timed.round_trip_ns.is_some(), !timed.duplex);
        if let Some(round_trip_ns) = timed.round_trip_ns {
            assert!(
                (DELAY_NS..100_000_000).contains(&round_trip_ns),
                "{round_trip_ns}"
            );
        }
    }
    hosts.assert_free(&sandbox);
}

/// Latency at shares of the throughput, as asked for one way.
const LATENCY: &str = "\
campaign: clocks
repeats: 1
duts: [direct]
trials:
  - latency:
      frame: 512 B
      max_load: 500 frames/s
      min_load: 100 frames/s
      loads: [0 %, 50 %]
      duration: 300 ms
";

/// The whole procedure is there and back, and its report says so.
pub(crate) fn a_report_between_two_clocks_says_that_its_latency_is_of_round_trips() {
    let sandbox = Sandbox::new();
    let mut hosts = Hosts::with(&sandbox, &["--time", "--monotonic", AHEAD_S]);
    hosts.join_by_delay(&sandbox);
    let ended = sandbox.measured(end(&mut hosts.run(&sandbox, LATENCY)));
    let report = String::from_utf8(sandbox.run_file("report.md")).expect("text");
    for words in [
        "Round-trip time under load",
        "the clocks of the two hosts agree too little for latencies one way",
        "in it is the time at the reflector",
    ] {
        assert!(report.contains(words), "{words}:\n{}", ended.stdout);
    }
    assert!(!report.contains("**Latency under load"), "{report}");
    for outcome in sandbox.trials().values() {
        let latency = outcome["frames"]["latency"].as_array().expect("latencies");
        assert_eq!(latency.len(), 2);
        for timed in latency {
            let least_ns = timed["histogram"][0]["upto_ns"].as_u64().expect("a time");
            assert!((DELAY_NS..100_000_000).contains(&least_ns), "{least_ns}");
            assert!(!timed["round_trip"].is_null(), "{timed}");
        }
    }
    hosts.assert_free(&sandbox);
}

/// That of [`DELAY`].
const DELAY_NS: u64 = 1_000_000;

/// Joins two interfaces: what enters `p1` leaves `p0` a millisecond later, the other way at once.
const DELAY: &str = "\
import collections, select, socket, time
def port(name):
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(263, 23, 1)
    opened.bind((name, 3))
    return opened
left, right = port('p0'), port('p1')
waiting = collections.deque()
while True:
    limit = max(0, waiting[0][0] - time.monotonic()) if waiting else None
    try:
        for ready in select.select([left, right], [], [], limit)[0]:
            frame = ready.recv(65536)
            if ready is left:
                right.send(frame)
            else:
                waiting.append((time.monotonic() + 0.001, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            left.send(waiting.popleft()[1])
    except OSError:
        pass  # The cable is down.
";

//! Traffic that another process routes past the tunnel during a frame trial: the evidence of every
//! trial shows it, not only that of the trial with the samples.

use crate::frames::{frames, short};
use crate::trials::{TestLab, encrypting};
use journal::record::{Measured, Outcome};
use plan::{BaseLoad, Direction, Disturbed, Event, Failure, Load, Procedure, Reset};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testbed::NodeId;

const MS: u64 = 1_000_000;
/// So low that a machine which compiles at the same time carries it too.
const FRAMES_PER_S: u64 = 2000;
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for which the device fails open.
const OPEN: Duration = Duration::from_millis(400);
/// Half of the network of B's test addresses: more specific than the tunnel's route.
const PAST: &str = "198.19.0.0/17";

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 3] = [
    (
        "traffic_past_the_tunnel_for_a_part_of_a_load_is_no_figure",
        traffic_past_the_tunnel_for_a_part_of_a_load_is_no_figure,
    ),
    (
        "a_device_that_fails_open_during_a_failover_is_caught",
        a_device_that_fails_open_during_a_failover_is_caught,
    ),
    (
        "a_device_that_fails_open_while_it_restarts_is_caught",
        a_device_that_fails_open_while_it_restarts_is_caught,
    ),
];

/// Runs `ip route` with these words in the network namespace of a process.
fn route(pid: u32, words: &[&str]) {
    let target = pid.to_string();
    let status = Command::new("nsenter")
        .args(["--target", &target, "--net", "ip", "route"])
        .args(words)
        .status();
    assert!(status.unwrap().success(), "{words:?}");
}

/// Removes what our encryptor protects its networks with, as a device has none of it.
pub(crate) fn unprotect(pid: u32) {
    let target = pid.to_string();
    for family in ["ip", "ip6"] {
        let nft = ["--net", "nft", "delete", "table", family, "cipherbench-cb0"];
        let mut command = Command::new("nsenter");
        // Fails where it is removed already.
        let _ = command.args(["--target", &target]).args(nft).output();
    }
}

/// Frames that gw1 has received from station A.
fn came(gateway: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{gateway}/net/dev")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("a1:"));
    let mut fields = line.unwrap().split_ascii_whitespace();
    // Packets received: the second column of `/proc/net/dev`.
    fields.nth(1).unwrap().parse().unwrap()
}

/// Once this many frames have come to gw1, routes all of them past its tunnel for a while.
fn open_after(lab: &TestLab, frames: u64) -> JoinHandle<()> {
    let gateways = [NodeId::Gw1, NodeId::Gw2].map(|node| lab.lab.station_pid(node));
    let [gateway, _] = gateways;
    let before = came(gateway);
    std::thread::spawn(move || {
        let deadline = Instant::now() + PATIENCE;
        while came(gateway) < before + frames {
            assert!(Instant::now() < deadline, "no traffic came");
            std::thread::sleep(Duration::from_millis(2));
        }
        // Through the cipher link to gw2, which forwards to B: frames arrive, in clear.
        let hop = ["via", "192.0.2.2", "dev", "w0", "onlink"];
        route(gateway, &[&["add", PAST], &hop[..]].concat());
        let end = Instant::now() + OPEN;
        // A start installs it again.
        while Instant::now() < end {
            gateways.into_iter().for_each(unprotect);
            std::thread::sleep(Duration::from_millis(2));
        }
        route(gateway, &["del", PAST]);
    })
}

/// The reasons of an invalid trial, and what was read.
fn invalid(outcome: Outcome) -> (Vec<String>, Measured) {
    match outcome {
        Outcome::Invalid { reasons, measured } => (reasons, *measured),
        other => panic!("{other:#?}"),
    }
}

/// Checks that the reasons have both: clear text, and the first trial by its name.
fn assert_caught(reasons: &[String], measured: &Measured) {
    let reason = |check: &str| {
        let mut found = reasons.iter();
        found.find(|reason| reason.starts_with(&format!("{check}: ")))
    };
    assert!(reason("no-foreign-frames").is_some(), "{reasons:#?}");
    let watched = reason("trials-watched").unwrap();
    assert!(
        watched.contains("trial 1 (2000 frames/s): ") && !watched.contains("trial 2"),
        "{watched}"
    );
    // The trial with the samples was as good as any.
    let evidence = &measured.evidence;
    assert_eq!(evidence.cipher_link.marker_frames, 0);
    assert!(evidence.cipher_link.esp_frames > 0);
    let trial = &measured.frames().unwrap().trials[0];
    let watch = trial.readings.as_ref().unwrap().watch.clone().unwrap();
    assert!(watch.foreign_frames > FRAMES_PER_S / 10, "{watch:?}");
    assert!(watch.marker_frames > 0, "{watch:?}");
}

fn traffic_past_the_tunnel_for_a_part_of_a_load_is_no_figure() {
    let mut lab = TestLab::build();
    let procedure = Procedure::Load(Load {
        frames_per_s: Some(FRAMES_PER_S),
        duration_ns: 1500 * MS,
    });
    let sabotage = open_after(&lab, FRAMES_PER_S / 4);
    let record = lab.record(&frames(encrypting(), short(Direction::Both), procedure));
    sabotage.join().unwrap();
    let (reasons, measured) = invalid(record.outcome);
    assert_caught(&reasons, &measured);
    let sealed = reasons
        .iter()
        .find(|reason| reason.starts_with("trials-sealed: "));
    assert!(
        sealed.is_some_and(|reason| reason.contains("trial 1 (2000 frames/s): ")),
        "{reasons:#?}"
    );
}

fn a_device_that_fails_open_during_a_failover_is_caught() {
    assert_fails_open(Event::Failover {
        failure: Failure::Crash,
        times: 1,
        down_ns: 900 * MS,
        watch_ns: 900 * MS,
    });
}

fn a_device_that_fails_open_while_it_restarts_is_caught() {
    assert_fails_open(Event::Reset {
        kind: Reset::Orderly,
        times: 1,
        watch_ns: 1800 * MS,
    });
}

/// The event comes after a second.
fn assert_fails_open(event: Event) {
    let mut lab = TestLab::build();
    let procedure = Procedure::Disturbed(Disturbed {
        load: BaseLoad::Given {
            frames_per_s: FRAMES_PER_S,
        },
        event,
    });
    // A tenth of a second after the event, when the encryptor is down.
    let sabotage = open_after(&lab, FRAMES_PER_S * 11 / 10);
    let record = lab.record(&frames(encrypting(), short(Direction::Both), procedure));
    sabotage.join().unwrap();
    let (reasons, measured) = invalid(record.outcome);
    assert_caught(&reasons, &measured);
}

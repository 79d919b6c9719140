//! Devices under test: started, queried, dying and stopped.

use crate::support::{
    LINKS, MARKER_IN_HEX, PATIENCE, TestLab, await_that, direct, end_watch, install, ping, shell,
    start, this_program, watch,
};
use dispatch::Choice;
use journal::record::CipherWatch;
use plan::{Adapter, Direction, Dut, Encryptor};
use std::process::Command;
use std::time::Instant;
use testbed::protocol::{Program, Request, Response, Sample, SealedPort};
use testbed::{Bench, LabError, NodeId};

/// The encryptor with the engine `auto` or `null`, the stand-in of [`crate::roles`] with any other.
pub(crate) fn encryptor(engine: &str) -> Dut {
    let suite = wire::Suite::Aes256Gcm;
    let adapter = Adapter::Cipherbench(Encryptor {
        workers: 2,
        engine: Choice::Named(engine.to_owned()),
        ..Encryptor::new(suite)
    });
    Dut::new("stand-in", adapter)
}

fn ready_lab() -> TestLab {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    lab
}

fn dut_reason(error: LabError) -> String {
    match error {
        LabError::Dut { dut, reason } => {
            assert_eq!(dut, "stand-in");
            reason
        }
        other => panic!("{other}"),
    }
}

/// Routes of both gateways.
fn routes(lab: &TestLab) -> String {
    let show = |id| {
        lab.lab
            .node(id)
            .run(shell("ip route; ip link"), PATIENCE)
            .unwrap()
            .stdout
    };
    show(NodeId::Gw1) + &show(NodeId::Gw2)
}

pub(crate) fn our_encryptor_carries_the_path_and_the_watch_sees_esp_only() {
    let mut lab = ready_lab();
    let before = routes(&lab);
    let dut = lab
        .lab
        .start_dut(&encryptor("auto"), LINKS, Direction::Both)
        .unwrap();
    assert_eq!(dut.facts["gw1/suite"], "aes-256-gcm");
    let was = lab.lab.dut_counters(&dut).unwrap();
    let target = lab.lab.target().to_string();
    let argv = [
        "ping",
        "-n",
        "-q",
        "-i",
        "0.005",
        "-p",
        MARKER_IN_HEX,
        &target,
    ];
    let a = lab.lab.node(NodeId::A);
    let (process, _) = start(a, Program::new(argv));
    let request = Request::Sample {
        interface: "w0".to_owned(),
        frames: 40,
        packets: 0,
        contents: true,
        received_only: false,
        limit_ms: 30_000,
        markers: vec![b"Cipherbench".to_vec()],
        sealed_ports: dut.sealed_ports.clone(),
        control_ports: Vec::new(),
    };
    let Response::Sample(Sample { link, contents, .. }) =
        lab.lab.node(NodeId::Gw1).call(request).unwrap()
    else {
        panic!()
    };
    let contents = contents.unwrap();
    assert!(contents.packets >= 30, "{contents:?}");
    assert_eq!(contents.repeated_blocks, 0, "{contents:?}");
    // Neighbours may have been resolved meanwhile.
    assert!(link.frames == 40 && link.esp_frames >= 30, "{link:?}");
    assert_eq!((link.marker_frames, link.other_frames), (0, 0), "{link:?}");
    assert!(!link.spis.is_empty(), "{link:?}");
    a.stop(process, PATIENCE).unwrap();
    // The last packets may be on their way from one counter to the next.
    await_that("the same packets in all counters", || {
        let now = lab.lab.dut_counters(&dut).unwrap();
        let moved = |name: &str| now[name] - was[name];
        let sealed = moved("gw1/cipher_tx_packets");
        let others = ["gw2/cipher_rx_packets", "gw2/clear_tx_packets"].map(moved);
        moved("gw1/clear_rx_packets") >= 15 && others == [sealed; 2]
    });
    lab.lab.stop_dut(dut).unwrap();
    assert_eq!(routes(&lab), before);
}

pub(crate) fn a_watch_over_our_encryptor_sees_nothing_but_the_one_ping_in_clear() {
    let mut lab = ready_lab();
    let dut = lab
        .lab
        .start_dut(&encryptor("auto"), LINKS, Direction::Both)
        .unwrap();
    let gw1 = lab.lab.node(NodeId::Gw1);
    let start_watch = || watch(gw1, &dut.sealed_ports);
    let protected = ["-q", "-c", "50", "-i", "0.002", "-p", MARKER_IN_HEX];
    let (quiet, leaky) = (start_watch(), start_watch());
    assert_eq!(ping(&lab.lab, &protected).code, Some(0));
    assert_eq!(end_watch(gw1, quiet), CipherWatch::default());
    // Past the encryptor, from gateway to gateway: a request goes out and its reply comes in.
    let target = lab
        .lab
        .node(NodeId::Gw2)
        .run(shell("hostname -I"), PATIENCE);
    let target = target.unwrap().stdout;
    let cipher = target
        .split_whitespace()
        .find(|a| a.starts_with("192.0.2."));
    let in_clear = Program::new(["ping", "-c1", "-p", MARKER_IN_HEX, cipher.unwrap()]);
    assert_eq!(gw1.run(in_clear, PATIENCE).unwrap().code, Some(0));
    assert_eq!(ping(&lab.lab, &protected).code, Some(0));
    let seen = end_watch(gw1, leaky);
    assert_eq!(
        (seen.foreign_frames, seen.marker_frames),
        (2, 2),
        "{seen:?}"
    );
    assert_eq!(seen.foreign_bytes, 2 * (14 + 20 + 8 + 56));
    assert_eq!(seen.examples.len(), 2);
    assert!(
        seen.examples[0].starts_with("IPv4 ICMP 192.0.2."),
        "{seen:?}"
    );
    assert!(seen.examples[0].ends_with(", 98 B"), "{seen:?}");
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn the_control_that_protects_nothing_carries_the_path_too() {
    let mut lab = ready_lab();
    let control = encryptor(engine::NULL);
    let dut = lab.lab.start_dut(&control, LINKS, Direction::Both).unwrap();
    assert_eq!(dut.facts["gw2/engine"], "null");
    assert_eq!(ping(&lab.lab, &["-c", "3", "-i", "0.01"]).code, Some(0));
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn one_comes_up_reports_facts_and_counters_and_leaves_nothing() {
    let mut lab = ready_lab();
    let before = routes(&lab);
    let dut = lab
        .lab
        .start_dut(&encryptor("well"), LINKS, Direction::Both)
        .unwrap();
    assert_eq!(dut.sealed_ports, [4500, 4501].map(SealedPort::esp));
    assert_eq!(dut.processes.len(), 2);
    for gateway in ["gw1", "gw2"] {
        assert_eq!(dut.facts[&format!("{gateway}/engine")], "well");
        assert_eq!(dut.facts[&format!("{gateway}/mtu")], "1500");
    }
    let counters = lab.lab.dut_counters(&dut).unwrap();
    assert_eq!(counters["gw1/clear_rx_packets"], 5 + 7);
    assert_eq!(counters["gw2/dropped_packets.replayed"], 2);
    // One at a time.
    assert!(
        lab.lab
            .start_dut(&direct(), LINKS, Direction::Both)
            .is_err()
    );
    lab.lab.stop_dut(dut).unwrap();
    assert_eq!(routes(&lab), before);
    assert_ne!(ping(&lab.lab, &["-c", "1", "-w", "1"]).code, Some(0));
}

pub(crate) fn a_run_stays_with_its_program_when_another_one_takes_its_place() {
    let folder = testing::folder().unwrap();
    let program = folder.path().join("program");
    install(&this_program(), &program);
    let output = Command::new(&program)
        .arg("replaced")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub(crate) fn one_that_does_not_start_reports_why_and_leaves_nothing() {
    let mut lab = ready_lab();
    let before = routes(&lab);
    let reason = dut_reason(
        lab.lab
            .start_dut(&encryptor("refuses"), LINKS, Direction::Both)
            .unwrap_err(),
    );
    assert!(reason.starts_with("did not come up on gw1"), "{reason}");
    assert!(
        reason.contains("exit status 2") && reason.ends_with("no such engine"),
        "{reason}"
    );
    assert_eq!(routes(&lab), before);
    // The lab is good for the next.
    let dut = lab
        .lab
        .start_dut(&direct(), LINKS, Direction::Both)
        .unwrap();
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn one_that_dies_is_reported_by_its_counters_and_its_stop() {
    let mut lab = ready_lab();
    let before = routes(&lab);
    let dut = lab
        .lab
        .start_dut(&encryptor("dies-when-asked"), LINKS, Direction::Both)
        .unwrap();
    for _ in 0..2 {
        let reason = dut_reason(lab.lab.dut_counters(&dut).unwrap_err());
        assert_eq!(reason, "died on gw1 (exit status 7): out of luck");
    }
    let reason = dut_reason(lab.lab.stop_dut(dut).unwrap_err());
    assert_eq!(reason, "died on gw1 (exit status 7): out of luck");
    assert_eq!(routes(&lab), before);
}

pub(crate) fn one_that_forwards_nothing_is_taken_down_again() {
    let mut lab = ready_lab();
    let before = routes(&lab);
    let start = Instant::now();
    let reason = dut_reason(
        lab.lab
            .start_dut(&encryptor("deaf"), LINKS, Direction::Both)
            .unwrap_err(),
    );
    assert!(start.elapsed() < PATIENCE);
    assert!(
        reason.contains("A does not reach B (10.2.0.2) through it"),
        "{reason}"
    );
    assert_eq!(routes(&lab), before);
}

//! OpenVPN between the gateways, the real program; skipped, with the reason, where it is not
//! installed.

use crate::frames::{LINKS, cross_both_ways, with_dut};
use crate::support::{
    MARKER_IN_HEX, PATIENCE, TestLab, assert_nothing_is_left, await_that, dump, end_watch,
    is_alive, ping, reason, shell, watch,
};
use journal::record::CipherWatch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plan::{Adapter, Direction, Dut, Form, LinkForm, OpenVpn};
use std::process::Command;
use testbed::protocol::SealedPort;
use testbed::{Bench, LabError, NodeId};
use wire::Suite;

const AEADS: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

const GATEWAYS: [NodeId; 2] = [NodeId::Gw1, NodeId::Gw2];

/// Why these tests cannot run here; `None` when they can.
pub(crate) fn missing() -> Option<String> {
    let lacks = |program: &str| {
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
        let found = Command::new("sh")
            .args(["-c", "command -v \"$0\"", program])
            .env("PATH", path)
            .output();
        !found.is_ok_and(|output| output.status.success())
    };
    let lacking: Vec<_> = ["openvpn", "openssl"]
        .into_iter()
        .filter(|p| lacks(p))
        .collect();
    let reason =
        (!lacking.is_empty()).then(|| format!("no {0} here: apt install {0}", lacking.join(" ")));
    if let Some(reason) = &reason {
        testing::skip("tests of OpenVPN", reason);
    }
    reason
}

fn adapter(suite: Suite) -> Adapter {
    Adapter::OpenVpn(OpenVpn { suite })
}

fn dut(suite: Suite) -> Dut {
    Dut::new("openvpn", adapter(suite))
}

fn ready_lab() -> TestLab {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    lab
}

/// OpenVPN's processes on a gateway: those with its network namespace.
fn processes(lab: &TestLab, gateway: NodeId) -> Vec<u32> {
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let own = namespace(lab.lab.station_pid(gateway));
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name == "openvpn\n" && namespace(pid) == own && is_alive(pid)
    })
    .collect()
}

pub(crate) fn it_carries_the_path_sealed_with_the_suite_asked_for_and_leaves_nothing() {
    let mut lab = ready_lab();
    for suite in AEADS {
        with_dut(
            &mut lab,
            adapter(suite),
            Direction::Both,
            |lab, dut, path| {
                assert_eq!(
                    dut.sealed_ports,
                    [SealedPort {
                        port: 1194,
                        form: LinkForm::Sealed(Form::OpenVpn),
                        control: true,
                    }]
                );
                assert_eq!((path.source.node, path.sink.node), (NodeId::A, NodeId::B));
                for gateway in ["gw1", "gw2"] {
                    let fact = |key: &str| &dut.facts[&format!("{gateway}/{key}")];
                    assert_eq!(fact("suite"), suite.name());
                    assert_eq!(fact("program"), "openvpn");
                    assert!(
                        fact("version").starts_with(char::is_numeric),
                        "{:?}",
                        dut.facts
                    );
                    assert!(fact("library").contains("SSL"), "{:?}", dut.facts);
                }
                carries_pings(lab, dut);
                cross_both_ways(lab, path);
                assert_eq!(GATEWAYS.map(|id| processes(lab, id).len()), [1, 1]);
            },
        );
        assert_eq!(GATEWAYS.map(|id| processes(&lab, id).len()), [0, 0]);
    }
}

/// Pings of the MTU cross whole and are seen sealed only, and its counters move by just these.
fn carries_pings(lab: &TestLab, dut: &testbed::RunningDut) {
    const PINGS: u64 = 20;
    let gw1 = lab.lab.node(NodeId::Gw1);
    let was = lab.lab.dut_counters(dut).unwrap();
    let watched = watch(gw1, &dut.sealed_ports);
    let payload = (LINKS.mtu - 28).to_string();
    let count = PINGS.to_string();
    let ended = ping(
        &lab.lab,
        &[
            "-q",
            "-c",
            &count,
            "-i",
            "0.05",
            "-M",
            "do",
            "-s",
            &payload,
            "-p",
            MARKER_IN_HEX,
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    let seen = end_watch(gw1, watched);
    assert_eq!(seen, CipherWatch::default());
    let now = lab.lab.dut_counters(dut).unwrap();
    for gateway in ["gw1", "gw2"] {
        for counter in ["clear_rx_bytes", "clear_tx_bytes"] {
            let key = format!("{gateway}/{counter}");
            assert_eq!(now[&key] - was[&key], PINGS * u64::from(LINKS.mtu), "{key}");
        }
        assert_eq!(now[&format!("{gateway}/ovpn0_tx_dropped")], 0);
    }
}

pub(crate) fn a_suite_that_it_does_not_have_is_refused_in_words() {
    let mut lab = ready_lab();
    let before = dump(&lab);
    let suite = Suite::ALL.into_iter().find(|suite| !AEADS.contains(suite));
    let refused = lab
        .lab
        .start_dut(&dut(suite.unwrap()), LINKS, Direction::Both);
    let reason = reason(&refused.unwrap_err());
    assert!(reason.starts_with("has no data channel with "), "{reason}");
    assert!(
        reason.ends_with("\nhelp: it has aes-128-gcm, aes-256-gcm, chacha20-poly1305"),
        "{reason}"
    );
    assert_nothing_is_left(&lab, &before, "a suite that was refused");
}

pub(crate) fn one_that_is_killed_is_reported_by_its_counters_and_its_stop_and_leaves_nothing() {
    let mut lab = ready_lab();
    let before = dump(&lab);
    let running = lab
        .lab
        .start_dut(&dut(Suite::Aes256Gcm), LINKS, Direction::Both)
        .unwrap();
    let [killed] = processes(&lab, NodeId::Gw2)[..] else {
        panic!("one process on gw2");
    };
    kill(Pid::from_raw(killed.cast_signed()), Signal::SIGKILL).unwrap();
    await_that("it is dead", || !is_alive(killed));
    let errors = [
        lab.lab.dut_counters(&running).unwrap_err(),
        lab.lab.stop_dut(running).unwrap_err(),
    ];
    for error in errors {
        let LabError::Dut { dut, reason } = error else {
            panic!("{error}");
        };
        assert_eq!(dut, "openvpn");
        assert!(reason.starts_with("died on gw2 (SIGKILL)"), "{reason}");
    }
    assert_eq!(GATEWAYS.map(|id| processes(&lab, id).len()), [0, 0]);
    assert_nothing_is_left(&lab, &before, "one that was killed");
}

pub(crate) fn one_that_comes_up_on_one_gateway_only_is_taken_down_there() {
    let mut lab = ready_lab();
    let before = dump(&lab);
    // gw2 is up when gw1 finds that an interface of another kind has the name.
    let in_the_way = shell("ip tuntap add dev ovpn0 mode tap");
    let gw1 = lab.lab.node(NodeId::Gw1);
    assert_eq!(gw1.run(in_the_way, PATIENCE).unwrap().code, Some(0));
    let refused = lab
        .lab
        .start_dut(&dut(Suite::Aes256Gcm), LINKS, Direction::Both);
    let reason = reason(&refused.unwrap_err());
    assert!(reason.starts_with("did not come up on gw1"), "{reason}");
    assert!(reason.contains("TUNSETIFF ovpn0"), "{reason}");
    assert_eq!(GATEWAYS.map(|id| processes(&lab, id).len()), [0, 0]);
    // What was in the way is no part of the lab and goes too.
    assert_nothing_is_left(&lab, &before, "one that came up half");
}

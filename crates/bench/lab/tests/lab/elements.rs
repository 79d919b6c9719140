//! Boxes between the gateways that are no DUT.
//!
//! ```text
//! A a0 -- a1 gw1 w0 -- p0 bridge1 p1 -- p0 router2 p1 -- w1 gw2 b1 -- b0 B
//!               [       192.0.2.0/24        ]    [ 198.51.100.0/24 ]
//! ```

use crate::devices::encryptor;
use crate::faults::{KillableRun, signal};
use crate::frames::{self, FRAMES, cross_both_ways, seal_and_open, with_dut};
use crate::support::{
    LINKS, PATIENCE, TestLab, assert_nothing_is_left, await_that, direct, dump, install, is_alive,
    ping, plan_with_path, setup, shell, this_program,
};
use journal::record::InterfaceCounters;
use lab::NamespaceLab;
use nix::sys::signal::Signal;
use plan::{Adapter, Direction, Element, IpVersion};
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use testbed::protocol::{Request, Response};
use testbed::{Bench, LabError, Links, NodeId};

const PATHS: [&[Element]; 3] = [
    &[Element::Bridge],
    &[Element::Router],
    &[Element::Bridge, Element::Router],
];

/// As long as a path may be.
const LONGEST: &[Element] = &[
    Element::Router,
    Element::Bridge,
    Element::Bridge,
    Element::Router,
];

fn ready_lab(path: &[Element]) -> TestLab {
    let mut lab = TestLab::with_path(path);
    lab.lab.configure(frames::LINKS).unwrap();
    lab
}

fn routers(path: &[Element]) -> usize {
    let routers = path.iter().filter(|element| **element == Element::Router);
    routers.count()
}

fn counters(lab: &NamespaceLab, id: NodeId) -> BTreeMap<String, InterfaceCounters> {
    match lab.node(id).call(Request::InterfaceCounters).unwrap() {
        Response::InterfaceCounters(counters) => counters,
        other => panic!("{other:?}"),
    }
}

/// Frames that an element has taken in at its two ports.
fn taken_in(lab: &NamespaceLab, element: NodeId) -> [u64; 2] {
    let found = counters(lab, element);
    ["p0", "p1"].map(|port| found[port].rx_packets)
}

pub(crate) fn a_reaches_b_past_bridges_and_routers() {
    for path in PATHS {
        let mut lab = TestLab::with_path(path);
        lab.lab.configure(LINKS).unwrap();
        assert_eq!(lab.lab.elements().len(), path.len());
        let before = dump(&lab);
        for (dut, hops) in [(direct(), 2 + routers(path)), (encryptor("auto"), 2)] {
            let running = lab.lab.start_dut(&dut, LINKS, Direction::Both).unwrap();
            let elements = lab.lab.elements();
            let taken = || elements.iter().map(|&id| taken_in(&lab.lab, id)).collect();
            let was: Vec<_> = taken();
            let ended = ping(&lab.lab, &["-c", "5", "-i", "0.05"]);
            // A tunnel is one hop, whatever it leads through.
            let answer = format!("ttl={} ", 64 - hops);
            assert_eq!(
                ended.stdout.matches(&answer).count(),
                5,
                "{path:?} {ended:?}"
            );
            let now: Vec<_> = taken();
            for (was, now) in was.into_iter().flatten().zip(now.into_iter().flatten()) {
                assert!(now >= was + 5, "{path:?}");
            }
            lab.lab.stop_dut(running).unwrap();
        }
        assert_nothing_is_left(&lab, &before, &format!("{path:?}"));
    }
}

pub(crate) fn frames_cross_bridges_and_routers_both_ways_and_nothing_is_left() {
    for path in PATHS.into_iter().chain([LONGEST]) {
        let mut lab = ready_lab(path);
        for adapter in [Adapter::Direct, encryptor("auto").adapter] {
            with_dut(&mut lab, adapter, Direction::Both, |lab, _, frame_path| {
                let elements = lab.lab.elements();
                let taken = || elements.iter().map(|&id| taken_in(&lab.lab, id)).collect();
                let was: Vec<_> = taken();
                cross_both_ways(lab, frame_path);
                let now: Vec<_> = taken();
                // Of both IP versions, each way, and no frame more.
                for (was, now) in was.into_iter().flatten().zip(now.into_iter().flatten()) {
                    assert_eq!(now - was, 2 * FRAMES, "{path:?}");
                }
            });
        }
    }
}

pub(crate) fn one_gateway_alone_is_loaded_past_bridges_and_routers() {
    for path in PATHS {
        let mut lab = ready_lab(path);
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            with_dut(&mut lab, Adapter::Direct, direction, |lab, _, path| {
                cross_both_ways(lab, path);
            });
            let adapter = encryptor("auto").adapter;
            with_dut(&mut lab, adapter, direction, |lab, _, path| {
                let (clear, cipher) = match direction {
                    Direction::Encrypt => (&path.source, &path.sink),
                    _ => (&path.sink, &path.source),
                };
                for version in [IpVersion::V4, IpVersion::V6] {
                    seal_and_open(lab, clear, cipher, version);
                }
            });
        }
    }
}

pub(crate) fn a_box_of_the_kernel_is_loaded_past_bridges_and_routers() {
    for path in PATHS {
        let mut lab = ready_lab(path);
        for adapter in [Adapter::Router { nat: false }, Adapter::Bridge] {
            with_dut(&mut lab, adapter, Direction::Both, |lab, _, path| {
                cross_both_ways(lab, path);
            });
        }
    }
}

pub(crate) fn mtu_offloads_and_rate_are_set_at_every_end_of_the_cipher_link() {
    let mut lab = TestLab::with_path(&[Element::Bridge, Element::Router]);
    lab.lab.configure(LINKS).unwrap();
    let before = dump(&lab);
    for links in [
        Links {
            mtu: 9000,
            cipher_mtu: 65_535,
            offloads: false,
            rate_bps: Some(1_000_000_000),
        },
        Links {
            mtu: 1500,
            cipher_mtu: 1500,
            offloads: true,
            rate_bps: None,
        },
    ] {
        lab.lab.configure(links).unwrap();
        let dut = lab.lab.start_dut(&direct(), links, Direction::Both);
        let dut = dut.unwrap();
        let payload = |extra: u16| (links.mtu - 28 + extra).to_string();
        let fits = ["-c", "1", "-w", "5", "-M", "do", "-s", &payload(0)];
        assert_eq!(ping(&lab.lab, &fits).code, Some(0), "{links:?}");
        lab.lab.stop_dut(dut).unwrap();
        for id in lab.lab.elements() {
            let node = lab.lab.node(id);
            let Response::Offloads(offloads) = node.call(Request::Offloads).unwrap() else {
                panic!()
            };
            let expected = if links.offloads { "on" } else { "off" };
            for (interface, features) in offloads {
                for feature in [
                    "tcp-segmentation-offload",
                    "generic-segmentation-offload",
                    "tx-udp-segmentation",
                ] {
                    let name = id.name();
                    assert_eq!(features[feature], expected, "{name}/{interface} {feature}");
                }
                assert_eq!(features["generic-receive-offload"], "off");
            }
            let show = "cat /sys/class/net/p?/mtu; tc qdisc | grep -c tbf";
            let ended = node.run(shell(show), PATIENCE).unwrap();
            let (mtu, shapers) = (
                links.cipher_mtu,
                if links.rate_bps.is_some() { 2 } else { 0 },
            );
            assert_eq!(ended.stdout, format!("{mtu}\n{mtu}\n{shapers}\n"));
        }
    }
    lab.lab.configure(LINKS).unwrap();
    assert_nothing_is_left(&lab, &before, "configure");
}

pub(crate) fn a_bridge_is_a_switch_and_no_more() {
    let lab = TestLab::with_path(&[Element::Bridge]);
    let [bridge] = lab.lab.elements()[..] else {
        panic!()
    };
    assert_eq!(bridge.name(), "bridge1");
    let script = "cat /proc/sys/net/ipv4/ip_forward /sys/class/net/br0/bridge/stp_state; \
                  ip -o address | grep -v ': lo '; echo --; ls /sys/class/net";
    let ended = lab.lab.node(bridge).run(shell(script), PATIENCE).unwrap();
    assert_eq!(ended.stdout, "0\n0\n--\nbr0\nlo\np0\np1\n");
    let namespace = |id| {
        let pid = lab.lab.station_pid(id);
        std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap()
    };
    for id in NodeId::ALL {
        assert_ne!(namespace(id), namespace(bridge));
    }
}

pub(crate) fn a_dut_that_fails_leaves_no_route_on_a_router() {
    let mut lab = TestLab::with_path(&[Element::Router]);
    lab.lab.configure(LINKS).unwrap();
    let before = dump(&lab);
    // A route that takes the frames away: A does not reach B.
    let [router] = lab.lab.elements()[..] else {
        panic!()
    };
    let node = lab.lab.node(router);
    let block = "ip rule add to 10.2.0.0/24 blackhole";
    assert_eq!(node.run(shell(block), PATIENCE).unwrap().code, Some(0));
    let error = lab.lab.start_dut(&direct(), LINKS, Direction::Both);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("A does not reach B (10.2.0.2)"), "{error}");
    let unblock = "ip rule del to 10.2.0.0/24 blackhole";
    let node = lab.lab.node(router);
    assert_eq!(node.run(shell(unblock), PATIENCE).unwrap().code, Some(0));
    assert_nothing_is_left(&lab, &before, "a DUT that failed");
    let dut = lab.lab.start_dut(&direct(), LINKS, Direction::Both);
    lab.lab.stop_dut(dut.unwrap()).unwrap();
}

/// A folder with an `ip` in it that does as that of a machine whose kernel has no bridges.
fn ip_without_bridges(folder: &Path) {
    let script = "#!/bin/sh\n\
                  input=$(cat)\n\
                  case \"$input\" in *'type bridge'*)\n\
                  \x20 echo 'Error: Unknown device type.' >&2; exit 1;;\n\
                  esac\n\
                  PATH=${PATH#*:}\n\
                  printf '%s\\n' \"$input\" | ip \"$@\"\n";
    let written = folder.join("ip.sh");
    std::fs::write(&written, script).unwrap();
    install(&written, &folder.join("ip"));
}

pub(crate) fn an_element_that_cannot_be_made_is_explained() {
    // Root runs nothing from a folder that others could change, as a umask may allow.
    let mut folder = tempfile::Builder::new();
    let folder = folder.permissions(Permissions::from_mode(0o755));
    let folder = folder.tempdir().unwrap();
    let bridged = |path: &str| {
        let mut command = Command::new(this_program());
        command.arg("bridged").arg(folder.path()).env("PATH", path);
        command.output().unwrap()
    };
    let path = std::env::var("PATH").unwrap();
    assert!(bridged(&path).status.success());
    ip_without_bridges(folder.path());
    let output = bridged(&format!("{}:{path}", folder.path().display()));
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("station bridge1: "), "{error}");
    assert!(error.contains("Unknown device type"), "{error}");
    assert!(
        error.ends_with("help: this kernel lacks bridges: sudo modprobe bridge\n"),
        "{error}"
    );

    let too_long = plan_with_path("long", &[Element::Router; 5]);
    match NamespaceLab::build(&too_long, &setup(folder.path())).map(drop) {
        Err(LabError::CannotBuild { what, help }) => {
            assert_eq!(what, "the path has 5 elements");
            assert_eq!(help, "write 4 at most");
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_stopped_element_of_a_killed_run_is_removed_by_the_next_run() {
    let folder = testing::folder().unwrap();
    let mut run = KillableRun::start(folder.path());
    let router = run.stations[5];
    signal(router, Signal::SIGSTOP);
    run.kill();
    await_that("the other stations are gone", || {
        run.stations[..5].iter().all(|pid| !is_alive(*pid))
    });
    assert!(is_alive(router));
    let plan = plan_with_path("held", &[]);
    let lab = NamespaceLab::build(&plan, &setup(folder.path())).unwrap();
    let [removed] = lab.swept() else {
        panic!("{:?}", lab.swept())
    };
    assert!(removed.starts_with("removed station router2"), "{removed}");
    assert!(!is_alive(router));
}

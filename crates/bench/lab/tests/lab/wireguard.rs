//! WireGuard by the real programs, each where it is installed.

use crate::frames::{self, cross_both_ways};
use crate::kernel::refused;
use crate::support::{
    LINKS, MARKER_IN_HEX, PATIENCE, TestLab, assert_nothing_is_left, dump, end_watch, is_alive,
    ping, reason, shell, start, watch,
};
use journal::record::CipherWatch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plan::{Adapter, Direction, Dut, Form, LinkForm, WireGuard, WireGuardProgram};
use testbed::protocol::{Program, Request, Response, Sample, SealedPort};
use testbed::{Bench, LabError, Links, NodeId, RunningDut, StationKeys};

const PROGRAMS: [WireGuardProgram; 3] = [
    WireGuardProgram::Go,
    WireGuardProgram::Boringtun,
    WireGuardProgram::Gotatun,
];

fn try_start(lab: &mut TestLab, program: WireGuardProgram) -> Result<RunningDut, LabError> {
    try_start_with(lab, program, LINKS)
}

fn try_start_with(
    lab: &mut TestLab,
    program: WireGuardProgram,
    links: Links,
) -> Result<RunningDut, LabError> {
    lab.lab.configure(links).unwrap();
    let dut = Dut::new(program.name(), Adapter::WireGuard(WireGuard { program }));
    lab.lab.start_dut(&dut, links, Direction::Both)
}

/// Runs an action with each installed program, in a ready lab; reports those not installed.
fn with_each(test: impl Fn(&mut TestLab, WireGuardProgram)) {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    for program in PROGRAMS {
        match try_start(&mut lab, program) {
            Ok(running) => lab.lab.stop_dut(running).unwrap(),
            Err(error) if reason(&error).starts_with("needs the program") => {
                // One of the two in Rust is enough: to build both takes a while.
                match program {
                    WireGuardProgram::Gotatun => eprintln!("SKIPPED: gotatun: {error}"),
                    other => {
                        testing::skip(format_args!("tests of {}", other.name()), reason(&error))
                    }
                }
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        test(&mut lab, program);
    }
}

/// The daemons on a gateway: processes in its network namespace with the interface as an argument.
fn daemons(lab: &TestLab, gateway: NodeId) -> Vec<u32> {
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let own = namespace(lab.lab.station_pid(gateway));
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.ends_with(b"\0wg0\0") && namespace(pid) == own && is_alive(pid)
    })
    .collect()
}

/// What is left where the programs have their sockets.
fn sockets(lab: &TestLab) -> String {
    let show = |id| {
        let ended = lab.lab.node(id).run(shell("find /run -type s"), PATIENCE);
        ended.unwrap().stdout
    };
    show(NodeId::Gw1) + &show(NodeId::Gw2)
}

fn assert_no_daemon_and_no_socket(lab: &TestLab, of: &str) {
    for gateway in [NodeId::Gw1, NodeId::Gw2] {
        assert_eq!(daemons(lab, gateway), [0_u32; 0], "{of}");
    }
    assert_eq!(sockets(lab), "", "{of}");
}

pub(crate) fn traffic_passes_in_wireguard_only_and_nothing_is_left() {
    with_each(|lab, program| {
        let before = dump(lab);
        let running = try_start(lab, program).unwrap();
        let sealed = SealedPort {
            port: 51820,
            form: LinkForm::Sealed(Form::WireGuard),
            control: true,
        };
        assert_eq!(running.sealed_ports, [sealed]);
        assert_eq!(running.processes.len(), 2);
        for gateway in [NodeId::Gw1, NodeId::Gw2] {
            let fact = |name: &str| &running.facts[&format!("{}/{name}", gateway.name())];
            assert_eq!(fact("program"), program.name());
            assert_eq!(fact("suite"), "chacha20-poly1305");
            assert!(fact("version").starts_with(|first: char| first.is_ascii_digit()));
            assert_eq!(daemons(lab, gateway).len(), 1);
        }
        let was = lab.lab.dut_counters(&running).unwrap();
        let gw1 = lab.lab.node(NodeId::Gw1);
        let watched = watch(gw1, &running.sealed_ports);
        // The longest that fits, and none of it in clear.
        let protected = [
            "-c",
            "40",
            "-i",
            "0.05",
            "-M",
            "do",
            "-s",
            "1472",
            "-p",
            MARKER_IN_HEX,
        ];
        let ended = ping(&lab.lab, &protected);
        assert!(ended.stdout.contains(" 40 received"), "{ended:?}");
        assert_eq!(end_watch(gw1, watched), CipherWatch::default());
        let now = lab.lab.dut_counters(&running).unwrap();
        for (sent, received) in [("gw1", "gw2"), ("gw2", "gw1")] {
            let moved = |name: String| now[&name] - was[&name];
            assert!(
                moved(format!("{sent}/transfer_tx_bytes")) >= 40 * 1500,
                "{now:?}"
            );
            assert!(
                moved(format!("{received}/transfer_rx_bytes")) >= 40 * 1500,
                "{now:?}"
            );
        }
        sample(lab, &running);
        lab.lab.stop_dut(running).unwrap();
        assert_nothing_is_left(lab, &before, program.name());
        assert_no_daemon_and_no_socket(lab, program.name());
    });
}

/// Looks at the cipher link while pings cross it.
fn sample(lab: &TestLab, running: &RunningDut) {
    let a = lab.lab.node(NodeId::A);
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
    let (process, _) = start(a, Program::new(argv));
    let request = Request::Sample {
        interface: "w0".to_owned(),
        frames: 40,
        packets: 0,
        contents: false,
        received_only: false,
        limit_ms: 30_000,
        markers: vec![b"Cipherbench".to_vec()],
        sealed_ports: running.sealed_ports.clone(),
        control_ports: Vec::new(),
    };
    let Response::Sample(Sample { link, .. }) = lab.lab.node(NodeId::Gw1).call(request).unwrap()
    else {
        panic!()
    };
    assert!(link.frames == 40 && link.esp_frames >= 30, "{link:?}");
    assert_eq!((link.marker_frames, link.other_frames), (0, 0), "{link:?}");
    a.stop(process, PATIENCE).unwrap();
}

/// Only the device's program runs; the station has the other gateway's keys in a file of its own.
pub(crate) fn a_lone_gateway_and_the_stations_keys_leave_nothing() {
    with_each(|lab, program| {
        for (direction, device, station) in [
            (Direction::Encrypt, NodeId::Gw1, NodeId::Gw2),
            (Direction::Decrypt, NodeId::Gw2, NodeId::Gw1),
        ] {
            let before = dump(lab);
            let dut = Dut::new(program.name(), Adapter::WireGuard(WireGuard { program }));
            let running = lab.lab.start_dut(&dut, LINKS, direction).unwrap();
            assert_eq!(daemons(lab, device).len(), 1);
            assert_eq!(daemons(lab, station), [0_u32; 0]);
            let path = running.frame_path.clone().unwrap();
            let mut ends = [path.source, path.sink].into_iter();
            let end = ends.find(|end| end.node == station).unwrap();
            let Some(StationKeys::WireGuard(file)) = end.peer.map(|peer| peer.keys) else {
                panic!("the station is no peer")
            };
            let on_station = |script: String| {
                let ended = lab.lab.node(station).run(shell(&script), PATIENCE);
                ended.unwrap().stdout
            };
            let shown = on_station(format!("stat -c %a {file}; grep -c PrivateKey {file}"));
            assert_eq!(shown, "600\n1\n");
            lab.lab.stop_dut(running).unwrap();
            let left = lab
                .lab
                .node(station)
                .run(shell(&format!("ls {file}")), PATIENCE);
            assert_eq!(left.unwrap().stdout, "");
            assert_nothing_is_left(lab, &before, program.name());
            assert_no_daemon_and_no_socket(lab, program.name());
        }
    });
}

pub(crate) fn frames_of_both_ip_versions_cross() {
    with_each(|lab, program| {
        // Otherwise wireguard-go's super-packets of UDP would reach B as one frame.
        let running = try_start_with(lab, program, frames::LINKS).unwrap();
        let path = running.frame_path.clone().unwrap();
        let gw1 = lab.lab.node(NodeId::Gw1);
        let watched = watch(gw1, &running.sealed_ports);
        cross_both_ways(lab, &path);
        assert_eq!(end_watch(gw1, watched), CipherWatch::default());
        lab.lab.stop_dut(running).unwrap();
    });
}

pub(crate) fn one_that_is_killed_is_named_and_leaves_nothing() {
    with_each(|lab, program| {
        let before = dump(lab);
        let running = try_start(lab, program).unwrap();
        let killed = daemons(lab, NodeId::Gw2);
        assert_eq!(killed.len(), 1);
        kill(Pid::from_raw(killed[0].cast_signed()), Signal::SIGKILL).unwrap();
        let expected = "died on gw2 (SIGKILL)";
        let error = reason(&lab.lab.dut_counters(&running).unwrap_err());
        assert!(error.starts_with(expected), "{error}");
        let error = reason(&lab.lab.stop_dut(running).unwrap_err());
        assert!(error.starts_with(expected), "{error}");
        assert_nothing_is_left(lab, &before, program.name());
        assert_no_daemon_and_no_socket(lab, program.name());
        // The lab is good for the next.
        let again = try_start(lab, program).unwrap();
        lab.lab.stop_dut(again).unwrap();
    });
}

pub(crate) fn one_that_comes_up_on_one_gateway_only_is_taken_down_there() {
    with_each(|lab, program| {
        let before = dump(lab);
        // No program can make a TUN of that name.
        let taken = shell("ip link add wg0 type veth peer name wg1");
        let ended = lab.lab.node(NodeId::Gw2).run(taken, PATIENCE).unwrap();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let error = reason(&try_start(lab, program).unwrap_err());
        assert!(error.contains("on gw2"), "{error}");
        assert_no_daemon_and_no_socket(lab, program.name());
        assert_nothing_is_left(lab, &before, program.name());
    });
}

pub(crate) fn the_kernels_carries_traffic_or_reports_what_is_missing() {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    let before = dump(&lab);
    match try_start(&mut lab, WireGuardProgram::Kernel) {
        Ok(running) => {
            assert!(running.processes.is_empty());
            let gw1 = lab.lab.node(NodeId::Gw1);
            let watched = watch(gw1, &running.sealed_ports);
            let protected = ["-c", "20", "-i", "0.05", "-M", "do", "-s", "1472"];
            assert_eq!(ping(&lab.lab, &protected).code, Some(0));
            assert_eq!(end_watch(gw1, watched), CipherWatch::default());
            let counters = lab.lab.dut_counters(&running).unwrap();
            assert!(counters["gw2/transfer_rx_bytes"] >= 20 * 1500);
            sample(&lab, &running);
            lab.lab.stop_dut(running).unwrap();
            let running =
                try_start_with(&mut lab, WireGuardProgram::Kernel, frames::LINKS).unwrap();
            cross_both_ways(&lab, &running.frame_path.clone().unwrap());
            lab.lab.stop_dut(running).unwrap();
            lab.lab.configure(LINKS).unwrap();
        }
        Err(error) => refused(
            &error,
            "needs a kernel with WireGuard",
            "\nhelp: sudo modprobe wireguard",
        ),
    }
    assert_nothing_is_left(&lab, &before, "wireguard");
}

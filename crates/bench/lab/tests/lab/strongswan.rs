//! strongSwan between the gateways, the real daemon; skipped, with the reason, where it is not
//! installed.

use crate::frames::{LINKS, cross_both_ways, with_dut};
use crate::kernel::refused;
use crate::support::{
    MARKER_IN_HEX, PATIENCE, TestLab, assert_nothing_is_left, await_that, dump, end_watch,
    is_alive, ping, reason, shell, watch,
};
use journal::record::CipherWatch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plan::{Adapter, DataPath, Direction, Dut, Form, IkeAuth, LinkForm, StrongSwan};
use std::path::Path;
use std::process::Command;
use testbed::protocol::SealedPort;
use testbed::{Bench, LabError, NodeId, RunningDut, StationKeys};
use wire::{Cipher, Hmac, Suite};

const GATEWAYS: [NodeId; 2] = [NodeId::Gw1, NodeId::Gw2];

/// The usual one: one tunnel with a shared secret.
pub(crate) const PLAN: StrongSwan = StrongSwan {
    data_path: DataPath::Libipsec,
    suite: Suite::Aes256Gcm,
    auth: IkeAuth::Psk,
    ppk: false,
    ml_kem: false,
    tunnels: 1,
};

/// Why these tests cannot run here; `None` when they can.
pub(crate) fn missing() -> Option<String> {
    let plugin = Path::new("/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so");
    let needed = [
        ("charon", Path::new("/usr/lib/ipsec/charon").exists()),
        ("kernel-libipsec", plugin.exists()),
        ("swanctl", Path::new("/usr/sbin/swanctl").exists()),
        ("/dev/net/tun", Path::new("/dev/net/tun").exists()),
    ];
    let lacking: Vec<_> = needed
        .iter()
        .filter(|(_, is)| !is)
        .map(|(it, _)| *it)
        .collect();
    let reason = (!lacking.is_empty()).then(|| {
        let lacking = lacking.join(", ");
        format!("no {lacking} here: apt install strongswan-charon strongswan-swanctl libcharon-extra-plugins")
    });
    if let Some(reason) = &reason {
        testing::skip("tests of strongSwan", reason);
    }
    reason
}

fn try_start(lab: &mut TestLab, plan: StrongSwan) -> Result<RunningDut, LabError> {
    let dut = Dut::new("strongswan", Adapter::StrongSwan(plan));
    lab.lab.start_dut(&dut, LINKS, Direction::Both)
}

fn ready_lab() -> TestLab {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    lab
}

/// Its daemons on a gateway: those with its network namespace.
fn daemons(lab: &TestLab, gateway: NodeId) -> Vec<u32> {
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let own = namespace(lab.lab.station_pid(gateway));
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name == "charon\n" && namespace(pid) == own && is_alive(pid)
    })
    .collect()
}

/// Rules and files that it could leave behind on the gateways. The station's own folder appears
/// with its first file and stays until the station ends.
fn rules_and_files(lab: &TestLab) -> String {
    let show = |id| {
        let files = "find /run ! -path '/run/cipherbench-??????' | sort";
        let script = shell(&format!("ip rule; ip -6 rule; {files}"));
        lab.lab.node(id).run(script, PATIENCE).unwrap().stdout
    };
    GATEWAYS.map(show).concat()
}

/// Starts it, checks that it matches the request and leaves nothing.
fn runs(lab: &mut TestLab, plan: StrongSwan, action: impl FnOnce(&TestLab, &RunningDut)) {
    let before = rules_and_files(lab);
    with_dut(
        lab,
        Adapter::StrongSwan(plan),
        Direction::Both,
        |lab, dut, path| {
            assert_eq!((path.source.node, path.sink.node), (NodeId::A, NodeId::B));
            let ports: &[u16] = match plan.data_path {
                // Bare ESP beside it.
                DataPath::Kernel => &[500],
                DataPath::Libipsec | DataPath::KernelUdp => &[500, 4500],
            };
            let sealed = |&port| SealedPort {
                port,
                form: LinkForm::Sealed(Form::Esp),
                control: true,
            };
            let ports: Vec<_> = ports.iter().map(sealed).collect();
            assert_eq!(dut.sealed_ports, ports);
            for gateway in ["gw1", "gw2"] {
                let fact = |key: &str| &dut.facts[&format!("{gateway}/{key}")];
                assert_eq!(fact("suite"), plan.suite.name());
                match plan.data_path {
                    DataPath::Kernel | DataPath::KernelUdp => {
                        assert_eq!(fact("data_path"), "kernel XFRM");
                    }
                    DataPath::Libipsec => {
                        assert_eq!(fact("data_path"), "kernel-libipsec");
                        assert_eq!(*fact("mtu"), MTU.to_string());
                    }
                }
                assert!(fact("program").ends_with("/charon"), "{:?}", dut.facts);
                assert!(
                    fact("version").starts_with(char::is_numeric),
                    "{:?}",
                    dut.facts
                );
                let ike = "AES_GCM_16_256/PRF_HMAC_SHA2_384/CURVE_25519";
                let expected = if plan.ppk {
                    format!("{ike}/PPK")
                } else {
                    ike.to_owned()
                };
                assert_eq!(*fact("ike"), expected);
            }
            carries_pings(lab, dut, plan);
            action(lab, dut);
            cross_both_ways(lab, path);
            assert_eq!(GATEWAYS.map(|id| daemons(lab, id).len()), [1, 1]);
        },
    );
    assert_eq!(GATEWAYS.map(|id| daemons(lab, id).len()), [0, 0]);
    assert_eq!(rules_and_files(lab), before);
}

/// The longest that kernel-libipsec carries, in bytes.
const MTU: u16 = 1400;

/// Pings of the MTU cross whole and are seen sealed only, and its SAs count just these.
fn carries_pings(lab: &TestLab, dut: &RunningDut, plan: StrongSwan) {
    const PINGS: u64 = 20;
    let gw1 = lab.lab.node(NodeId::Gw1);
    let was = lab.lab.dut_counters(dut).unwrap();
    let watched = watch(gw1, &dut.sealed_ports);
    let payload = (MTU - 28).to_string();
    let count = PINGS.to_string();
    let whole = ["-q", "-c", &count, "-i", "0.05", "-M", "do", "-s", &payload];
    let arguments: Vec<&str> = whole.into_iter().chain(["-p", MARKER_IN_HEX]).collect();
    let ended = ping(&lab.lab, &arguments);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    let seen = end_watch(gw1, watched);
    if !matches!(plan.suite, Suite::EncryptThenMac(Cipher::Null, _)) {
        assert_eq!(seen, CipherWatch::default());
    }
    let now = lab.lab.dut_counters(dut).unwrap();
    for gateway in ["gw1", "gw2"] {
        for direction in ["in", "out"] {
            let moved = |what: &str| {
                let key = format!("{gateway}/sa_{direction}_{what}");
                now[&key] - was[&key]
            };
            assert_eq!(moved("packets"), PINGS, "{gateway} {direction}");
            let bytes = PINGS * u64::from(MTU);
            match plan.data_path {
                DataPath::Libipsec => {
                    assert_eq!(moved("bytes"), bytes, "{gateway} {direction}");
                }
                // With the outer header, on the way out.
                DataPath::Kernel | DataPath::KernelUdp => {
                    assert!(moved("bytes") >= bytes, "{gateway} {direction}");
                }
            }
        }
    }
}

pub(crate) fn it_carries_the_path_with_a_pre_shared_key_and_leaves_nothing() {
    runs(&mut ready_lab(), PLAN, |_, _| ());
}

/// The station in the other gateway's place has a daemon too, whose keys only its owner can read
/// and into which nothing is routed.
pub(crate) fn a_lone_gateway_and_the_station_beside_it_leave_nothing() {
    let mut lab = ready_lab();
    for (direction, device, station) in [
        (Direction::Encrypt, NodeId::Gw1, NodeId::Gw2),
        (Direction::Decrypt, NodeId::Gw2, NodeId::Gw1),
    ] {
        let before = rules_and_files(&lab);
        let adapter = Adapter::StrongSwan(PLAN);
        with_dut(&mut lab, adapter, direction, |lab, dut, path| {
            let processes: Vec<_> = dut.processes.iter().map(|(id, _)| *id).collect();
            assert_eq!(
                processes,
                [device],
                "the station's daemon is no part of the device"
            );
            assert_eq!(GATEWAYS.map(|id| daemons(lab, id).len()), [1, 1]);
            let mut ends = [&path.source, &path.sink].into_iter();
            let end = ends.find(|end| end.node == station).unwrap();
            let Some(StationKeys::Ike { log, .. }) = end.peer.as_ref().map(|it| &it.keys) else {
                panic!("{end:?}")
            };
            let on_station = |script: &str| {
                let ended = lab.lab.node(station).run(shell(script), PATIENCE);
                ended.unwrap().stdout
            };
            assert_eq!(on_station(&format!("stat -c %a {log}")), "600\n");
            let keys = on_station(&format!("grep -c ' key => 36 bytes' {log}"));
            assert_eq!(keys, "6\n", "two of each of three pairs of SAs");
            assert_eq!(
                on_station("ip route show dev ipsec0; ip -6 route show dev ipsec0"),
                ""
            );
            let counted = lab.lab.dut_counters(dut).unwrap();
            let is_of_device = |name: &String| name.starts_with(device.name());
            assert!(
                !counted.is_empty() && counted.keys().all(is_of_device),
                "{counted:?}"
            );
        });
        assert_eq!(GATEWAYS.map(|id| daemons(&lab, id).len()), [0, 0]);
        assert_eq!(rules_and_files(&lab), before);
    }
}

pub(crate) fn it_carries_the_path_with_certificates_and_a_ppk_in_its_keys() {
    let mut lab = ready_lab();
    let certificates = StrongSwan {
        auth: IkeAuth::Certificates,
        suite: Suite::Aes128Gcm,
        ..PLAN
    };
    runs(&mut lab, certificates, |_, _| ());
    for plan in [PLAN, certificates] {
        runs(&mut lab, StrongSwan { ppk: true, ..plan }, |_, _| ());
    }
}

pub(crate) fn suites_are_as_asked_for() {
    use Suite::{ChaCha20Poly1305, EncryptThenMac};
    let mut lab = ready_lab();
    for suite in [
        ChaCha20Poly1305,
        EncryptThenMac(Cipher::Null, Hmac::Sha256),
        EncryptThenMac(Cipher::TripleDesCbc, Hmac::Sha1),
        EncryptThenMac(Cipher::Aes128Cbc, Hmac::Sha1),
        EncryptThenMac(Cipher::Aes256Cbc, Hmac::Sha512),
    ] {
        runs(&mut lab, StrongSwan { suite, ..PLAN }, |_, _| ());
    }
}

/// Starts what this machine may not support; if it does not, the error says what is missing and
/// what to do.
fn runs_or_is_refused(plan: StrongSwan, missing: &str, help: &str) {
    let mut lab = ready_lab();
    let before = (dump(&lab), rules_and_files(&lab));
    match try_start(&mut lab, plan) {
        Ok(running) => lab.lab.stop_dut(running).unwrap(),
        Err(error) => {
            let reason = reason(&error);
            assert!(
                reason.contains(missing) && reason.contains(help),
                "{reason}"
            );
        }
    }
    assert_nothing_is_left(&lab, &before.0, missing);
    assert_eq!(rules_and_files(&lab), before.1);
}

pub(crate) fn ml_kem_is_refused_before_strongswan_6() {
    let version = Command::new("/usr/lib/ipsec/charon")
        .arg("--version")
        .output();
    let version = String::from_utf8(version.unwrap().stdout).unwrap();
    let plan = StrongSwan {
        ml_kem: true,
        ..PLAN
    };
    if version.contains("strongSwan 5.") {
        assert!(try_start(&mut ready_lab(), plan).is_err());
    }
    let help = "\nhelp: install ";
    runs_or_is_refused(plan, "cannot add ML-KEM to its key exchange on gw1: ", help);
}

pub(crate) fn the_kernels_esp_carries_the_path_or_is_reported_missing() {
    let plan = StrongSwan {
        data_path: DataPath::Kernel,
        ..PLAN
    };
    let mut lab = ready_lab();
    let before = (dump(&lab), rules_and_files(&lab));
    match try_start(&mut lab, plan) {
        Ok(running) => lab.lab.stop_dut(running).unwrap(),
        Err(error) => {
            let begins = "needs ESP in the kernel, which gw1 does not have";
            refused(&error, begins, "or set `data_path: libipsec`");
            assert_nothing_is_left(&lab, &before.0, "strongSwan");
            assert_eq!(rules_and_files(&lab), before.1);
            return;
        }
    }
    runs(&mut lab, plan, |_, _| ());
    let suite = Suite::EncryptThenMac(Cipher::Aes256Cbc, Hmac::Sha256);
    runs(&mut lab, StrongSwan { suite, ..plan }, |_, _| ());
}

pub(crate) fn one_that_is_killed_is_reported_by_its_counters_and_its_stop_and_leaves_nothing() {
    let mut lab = ready_lab();
    let before = (dump(&lab), rules_and_files(&lab));
    let running = try_start(&mut lab, PLAN).unwrap();
    let [killed] = daemons(&lab, NodeId::Gw2)[..] else {
        panic!("one daemon on gw2");
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
        assert_eq!(dut, "strongswan");
        let expected =
            "died on gw2 (SIGKILL); another process ended it, or the kernel for lack of memory";
        assert_eq!(reason, expected);
    }
    assert_eq!(GATEWAYS.map(|id| daemons(&lab, id).len()), [0, 0]);
    assert_nothing_is_left(&lab, &before.0, "one that was killed");
    assert_eq!(rules_and_files(&lab), before.1);
    // A number and a socket that stayed behind would be in its way.
    let again = try_start(&mut lab, PLAN).unwrap();
    lab.lab.stop_dut(again).unwrap();
}

pub(crate) fn one_that_comes_up_on_one_gateway_only_is_taken_down_there() {
    let mut lab = ready_lab();
    let before = (dump(&lab), rules_and_files(&lab));
    // gw1 is up when gw2 finds that an interface of another kind has the name.
    let taken = shell("ip tuntap add dev ipsec0 mode tap");
    let gw2 = lab.lab.node(NodeId::Gw2);
    assert_eq!(gw2.run(taken, PATIENCE).unwrap().code, Some(0));
    let reason = reason(&try_start(&mut lab, PLAN).unwrap_err());
    assert_eq!(reason, "finds an interface `ipsec0` on gw2 already");
    assert_eq!(GATEWAYS.map(|id| daemons(&lab, id).len()), [0, 0]);
    assert_nothing_is_left(&lab, &before.0, "one that came up half");
    assert_eq!(rules_and_files(&lab), before.1);
}

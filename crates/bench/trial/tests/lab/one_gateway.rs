//! One gateway of another program alone: the station in its peer's place agrees on keys with it,
//! and seals or opens what it opens or seals.

use crate::frames::{
    assert_all_came, assert_nothing_was_lost_on_the_way, frames, load, passes, short, traffic,
};
use crate::trials::{TestLab, child, lab_plan};
use journal::record::{Measured, Outcome};
use plan::{
    Adapter, Cell, DataPath, Direction, IkeAuth, IpVersion, StrongSwan, WireGuard, WireGuardProgram,
};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use testbed::NodeId;
use wire::Suite;
use wire::mix::FrameMix;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 4] = [
    ("the_kernels_esp_alone", the_kernels_esp_alone),
    ("one_wireguard_gateway_alone", one_wireguard_gateway_alone),
    (
        "one_gateway_of_strongswan_alone",
        one_gateway_of_strongswan_alone,
    ),
    (
        "nothing_is_lost_when_a_lone_strongswan_renews_its_keys",
        nothing_is_lost_when_a_lone_strongswan_renews_its_keys,
    ),
];

const ALONE: [(Direction, NodeId); 2] = [
    (Direction::Encrypt, NodeId::Gw1),
    (Direction::Decrypt, NodeId::Gw2),
];

pub(crate) fn strongswan(suite: &str, auth: IkeAuth, tunnels: u16) -> Adapter {
    Adapter::StrongSwan(StrongSwan {
        data_path: DataPath::Libipsec,
        suite: Suite::from_name(suite).unwrap(),
        auth,
        ppk: false,
        ml_kem: false,
        tunnels,
    })
}

/// Every check has passed; the station sealed or opened, and only the device's work is counted as
/// the device's, which is a program.
fn assert_alone(measured: &Measured, direction: Direction, device: NodeId) {
    assert_checked(measured, direction, device);
    assert!(measured.cpu.dut_ns > Some(0), "{:?}", measured.cpu);
}

/// As [`assert_alone`], also of a device in the kernel, whose work is counted as the kernel's.
fn assert_checked(measured: &Measured, direction: Direction, device: NodeId) {
    let result = measured.frames().unwrap();
    let decrypts = direction == Direction::Decrypt;
    assert_eq!(result.sender.engine.is_some(), decrypts);
    assert_eq!(result.receiver.engine.is_some(), !decrypts);
    let link = &measured.evidence.cipher_link;
    assert_eq!(link.marker_frames, 0, "{link:?}");
    for check in [
        "cipher-link-encrypted",
        "no-clear-text",
        "no-foreign-frames",
        "dut-as-asked",
    ] {
        let checks = &measured.evidence.checks;
        assert!(passes(measured, check), "{check}: {checks:?}");
    }
    assert_nothing_was_lost_on_the_way(measured);
    // In the other gateway's place is the station, which is no device and reports nothing.
    let facts = measured.evidence.dut_facts.keys();
    let gateways: Vec<_> = facts.filter_map(|fact| fact.split('/').next()).collect();
    assert!(
        gateways.iter().all(|it| *it == device.name()),
        "{gateways:?}"
    );
}

fn one_gateway_of_strongswan_alone() {
    if is_missing(strongswan("aes-256-gcm", IkeAuth::Psk, 1)) {
        return;
    }
    let mut lab = TestLab::build();
    for (suite, auth, tunnels) in [
        ("aes-256-gcm", IkeAuth::Psk, 1),
        ("aes-128-cbc-hmac-sha256", IkeAuth::Certificates, 3),
        ("chacha20-poly1305", IkeAuth::Psk, 100),
    ] {
        for (direction, device) in ALONE {
            let mut traffic = traffic(direction, FrameMix::fixed(512), IpVersion::V4);
            traffic.frames.tunnels = tunnels.into();
            let adapter = strongswan(suite, auth, tunnels);
            let measured = lab.measured(&frames(adapter, traffic, load(200)));
            assert_all_came(&measured, 200, 1);
            assert_alone(&measured, direction, device);
        }
    }
}

/// The kernel's XFRM. It needs a kernel that has it: `make kernel` runs it on one.
fn the_kernels_esp_alone() {
    if !is_on_kernel() {
        return;
    }
    let adapter = |data_path| {
        let Adapter::StrongSwan(plan) = strongswan("aes-256-gcm", IkeAuth::Psk, 1) else {
            unreachable!("it was made above");
        };
        Adapter::StrongSwan(StrongSwan { data_path, ..plan })
    };
    if is_missing(adapter(DataPath::Kernel)) {
        return;
    }
    let mut lab = TestLab::build();
    for data_path in [DataPath::Kernel, DataPath::KernelUdp] {
        for (direction, device) in ALONE {
            let traffic = traffic(direction, FrameMix::fixed(512), IpVersion::V4);
            let cell = frames(adapter(data_path), traffic, load(200));
            let measured = emulated(&mut lab, &cell);
            assert_checked(&measured, direction, device);
        }
    }
}

/// Whether this is a kernel with ESP; prints a note where it is not.
pub(crate) fn is_on_kernel() -> bool {
    let is_there = std::env::var_os("CIPHERBENCH_KERNEL").is_some();
    if !is_there {
        eprintln!("SKIPPED: one direction of the kernel's ESP is for `make kernel`");
    }
    is_there
}

/// Measures frames on an emulated processor, of which all came. It keeps no pace; whether the
/// frames came does not depend on that.
pub(crate) fn emulated(lab: &mut TestLab, cell: &Cell) -> Box<Measured> {
    let measured = match lab.record(cell).outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Invalid { reasons, measured }
            if reasons
                .iter()
                .all(|it| it.starts_with("offered-as-intended")) =>
        {
            measured
        }
        other => panic!("{other:#?}"),
    };
    let trials = &measured.frames().unwrap().trials;
    let all_came = trials
        .iter()
        .all(|it| it.received == it.sent && it.sent > 0);
    assert!(all_came, "{trials:?}");
    measured
}

fn one_wireguard_gateway_alone() {
    let mut lab = TestLab::build();
    for program in [WireGuardProgram::Go, WireGuardProgram::Boringtun] {
        let adapter = || Adapter::WireGuard(WireGuard { program });
        if is_missing(adapter()) {
            continue;
        }
        for (direction, device) in ALONE {
            for frame_bytes in [64, 1400] {
                let mut traffic = short(direction);
                traffic.frames.mix = FrameMix::fixed(frame_bytes);
                let measured = lab.measured(&frames(adapter(), traffic, load(200)));
                assert_all_came(&measured, 200, 1);
                assert_alone(&measured, direction, device);
            }
        }
    }
}

fn nothing_is_lost_when_a_lone_strongswan_renews_its_keys() {
    if is_missing(strongswan("aes-256-gcm", IkeAuth::Psk, 1)) {
        return;
    }
    let mut lab = TestLab::build();
    for (direction, device) in ALONE {
        let sender = match direction {
            Direction::Decrypt => NodeId::Gw1,
            _ => NodeId::A,
        };
        let [device_pid, sender_pid] = [device, sender].map(|it| lab.lab.station_pid(it));
        let has_ended = AtomicBool::new(false);
        let (measured, renewals) = thread::scope(|scope| {
            let renewing = scope.spawn(|| renew_until(&has_ended, device_pid, sender_pid));
            let adapter = strongswan("aes-256-gcm", IkeAuth::Psk, 1);
            let trial = Ending(&has_ended);
            let measured = lab.measured(&frames(adapter, short(direction), load(2000)));
            drop(trial);
            (measured, renewing.join().unwrap())
        });
        assert!(renewals > 3, "{renewals} renewals");
        assert_all_came(&measured, 2000, 1);
        assert_alone(&measured, direction, device);
        let spis = &measured.evidence.cipher_link.spis;
        // The samples of the evidence saw packets of more than one SA.
        assert!(spis.len() > 1, "{spis:?}");
    }
}

/// Says that the trial has ended, also by a panic.
struct Ending<'e>(&'e AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Renews the keys of test frames on a device, four times a second while a generator runs, until
/// the trial has ended; returns how often.
fn renew_until(has_ended: &AtomicBool, device: u32, sender: u32) -> usize {
    let mut renewals = 0;
    while !has_ended.load(Relaxed) {
        // Before the generator runs, the SAs are being checked.
        let daemon = child(sender, "frames").and_then(|_| child(device, "charon"));
        let Some(daemon) = daemon else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let target = daemon.to_string();
        let environment = fs::read(format!("/proc/{target}/environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        // Only its environment shows the daemon's folder.
        let file = environment.split('\0').find_map(|it| {
            it.strip_prefix("STRONGSWAN_CONF=")?
                .strip_suffix("/strongswan.conf")
        });
        let Some(folder) = file else { continue };
        let uri = format!("unix://{folder}/charon.vici");
        let renewed = Command::new("nsenter")
            .args([
                "-t", &target, "-m", "-n", "--", "swanctl", "--rekey", "--child", "c1",
            ])
            .args(["--uri", &uri])
            .output()
            .unwrap();
        renewals += usize::from(renewed.status.success());
        // A pace: key exchanges without a pause would be the load.
        thread::sleep(Duration::from_millis(250));
    }
    renewals
}

/// Whether a program of that device is missing here, which is said.
pub(crate) fn is_missing(adapter: Adapter) -> bool {
    let cell = frames(adapter, short(Direction::Both), load(200));
    let missing = lab::programs::missing(&lab_plan(), [&cell]);
    for program in &missing {
        let install = program.install.as_deref().unwrap_or("see the campaign");
        testing::lacks("one gateway alone", &program.program, install);
    }
    !missing.is_empty()
}

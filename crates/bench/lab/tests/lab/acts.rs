//! What is done to devices that are up, by the real programs: keys renewed, killed and started
//! again, tunnels taken down and set up.

use crate::frames::LINKS;
use crate::strongswan;
use crate::support::{
    PATIENCE, TestLab, assert_nothing_is_left, await_that, dump, is_alive, ping, reason, shell,
    start,
};
use plan::{
    Ability, Adapter, Direction, Dut, Encryptor, OpenVpn, Reset, StrongSwan, WireGuard,
    WireGuardProgram,
};
use testbed::protocol::Program;
use testbed::{Bench, DutAction, LabError, NodeId, RunningDut};
use wire::Suite;

/// A device, and its interface on a gateway.
struct Device {
    dut: Dut,
    interface: &'static str,
}

fn device(name: &str, adapter: Adapter, interface: &'static str) -> Device {
    Device {
        dut: Dut::new(name, adapter),
        interface,
    }
}

fn ours() -> Device {
    let encryptor = Encryptor {
        workers: 2,
        ..Encryptor::new(Suite::Aes256Gcm)
    };
    device("cipherbench", Adapter::Cipherbench(encryptor), "cb0")
}

fn wireguard(program: WireGuardProgram) -> Device {
    let adapter = Adapter::WireGuard(WireGuard { program });
    device(program.name(), adapter, "wg0")
}

fn openvpn() -> Device {
    let suite = Suite::Aes256Gcm;
    device("openvpn", Adapter::OpenVpn(OpenVpn { suite }), "ovpn0")
}

fn strongswan(tunnels: u16) -> Device {
    let plan = StrongSwan {
        tunnels,
        ..strongswan::PLAN
    };
    device("strongswan", Adapter::StrongSwan(plan), "ipsec0")
}

fn ready_lab() -> TestLab {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    lab
}

fn try_start(lab: &mut TestLab, device: &Device) -> Result<RunningDut, LabError> {
    lab.lab.start_dut(&device.dut, LINKS, Direction::Both)
}

/// Whether A reaches B at once.
fn passes(lab: &TestLab) -> bool {
    ping(&lab.lab, &["-q", "-c", "2", "-i", "0.1", "-W", "0.5"]).code == Some(0)
}

/// Waits until A reaches B; every attempt is traffic.
fn await_passing(lab: &TestLab, what: &str) {
    let limit = PATIENCE.as_secs().to_string();
    let ended = ping(&lab.lab, &["-q", "-c", "1", "-i", "0.02", "-w", &limit]);
    assert_eq!(ended.code, Some(0), "{what}: {}", ended.stdout);
}

/// What is left of everything that could be: interfaces, routes, rules, processes and their files.
fn traces(lab: &TestLab) -> Vec<String> {
    let show = |id| {
        let script = shell("ip rule; ip -6 rule; find /run -type s -o -name '*.pid' | sort");
        lab.lab.node(id).run(script, PATIENCE).unwrap().stdout
    };
    [NodeId::Gw1, NodeId::Gw2].map(show).into()
}

/// Everything that a device can do, one after the other, and traffic over it.
fn goes_through_all(lab: &mut TestLab, device: &Device) {
    let name = &device.dut.name;
    let (before, traces_before) = (dump(lab), traces(lab));
    let mut dut = try_start(lab, device).unwrap();
    let can = |what| device.dut.adapter.profile().abilities.contains(&what);
    if can(Ability::Rekey) {
        for _ in 0..3 {
            lab.lab.act(&mut dut, DutAction::Rekey).unwrap();
            assert!(passes(lab), "{name}");
        }
    } else {
        let error = reason(&lab.lab.act(&mut dut, DutAction::Rekey).unwrap_err());
        assert_eq!(error, "cannot do Rekey", "{name}");
    }
    let processes = dut.processes.clone();
    assert!(can(Ability::Crash) && can(Ability::SetUp), "{name}");

    lab.lab.act(&mut dut, DutAction::Kill(NodeId::Gw2)).unwrap();
    assert_eq!(dut.processes.len(), 1, "{name}");
    assert!(!passes(lab), "{name}");
    let counters = lab.lab.dut_counters(&dut).unwrap();
    assert!(
        counters.keys().all(|key| key.starts_with("gw1/")),
        "{counters:?}"
    );
    lab.lab
        .act(&mut dut, DutAction::Restart(NodeId::Gw2))
        .unwrap();
    assert_eq!(dut.processes.len(), 2, "{name}");
    assert_ne!(dut.processes, processes, "{name}");
    await_passing(lab, name);

    for kind in [Reset::Process, Reset::Orderly] {
        let identity =
            |lab: &TestLab, dut: &RunningDut| lab.lab.dut_identity(dut, NodeId::Gw2).unwrap();
        let before = identity(lab, &dut);
        assert_eq!(before, identity(lab, &dut), "{name}");
        let reset = DutAction::Reset(NodeId::Gw2, kind);
        lab.lab.act(&mut dut, reset).unwrap();
        let after = identity(lab, &dut);
        assert_eq!((before.len(), after.len()), (1, 1), "{name}");
        assert_ne!(before, after, "{name}");
        await_passing(lab, name);
    }
    let reset = DutAction::Reset(NodeId::Gw2, Reset::Command);
    let error = reason(&lab.lab.act(&mut dut, reset).unwrap_err());
    assert_eq!(error, "cannot do Reset(Gw2, Command)", "{name}");

    lab.lab.act(&mut dut, DutAction::TakeDown).unwrap();
    assert!(!passes(lab), "{name}");
    lab.lab.act(&mut dut, DutAction::SetUp).unwrap();
    await_passing(lab, name);
    assert_eq!(dut.processes.len(), 2, "{name}");
    assert!(!lab.lab.dut_counters(&dut).unwrap().is_empty(), "{name}");

    lab.lab.act(&mut dut, DutAction::CutLink).unwrap();
    assert!(!passes(lab), "{name}");
    lab.lab.act(&mut dut, DutAction::JoinLink).unwrap();
    await_passing(lab, name);
    lab.lab.stop_dut(dut).unwrap();
    assert_nothing_is_left(lab, &before, name);
    assert_eq!(traces(lab), traces_before, "{name}");
}

/// Stopped in the middle of anything, also of an action that failed, it leaves nothing.
fn leaves_nothing_midway(lab: &mut TestLab, device: &Device) {
    let name = &device.dut.name;
    let (before, traces_before) = (dump(lab), traces(lab));
    let mut dut = try_start(lab, device).unwrap();
    lab.lab.act(&mut dut, DutAction::TakeDown).unwrap();
    lab.lab.stop_dut(dut).unwrap();
    assert_nothing_is_left(lab, &before, name);

    let mut dut = try_start(lab, device).unwrap();
    lab.lab.act(&mut dut, DutAction::Kill(NodeId::Gw2)).unwrap();
    // It cannot make its interface.
    let interface = device.interface;
    let on_gw2 = |script: &str| {
        let ended = lab.lab.node(NodeId::Gw2).run(shell(script), PATIENCE);
        assert_eq!(ended.unwrap().code, Some(0));
    };
    on_gw2(&format!(
        "ip link add {interface} type veth peer name taken"
    ));
    let error = lab
        .lab
        .act(&mut dut, DutAction::Restart(NodeId::Gw2))
        .unwrap_err();
    assert!(reason(&error).contains("gw2"), "{error}");
    on_gw2(&format!("ip link del {interface}"));
    lab.lab.stop_dut(dut).unwrap();
    assert_nothing_is_left(lab, &before, name);
    assert_eq!(traces(lab), traces_before, "{name}");
}

pub(crate) fn our_encryptor_goes_through_all() {
    goes_through_all(&mut ready_lab(), &ours());
}

pub(crate) fn our_encryptor_loses_nothing_when_its_keys_are_renewed() {
    const PINGS: u32 = 1000;
    let mut lab = ready_lab();
    let mut dut = try_start(&mut lab, &ours()).unwrap();
    let was = lab.lab.dut_counters(&dut).unwrap();
    let target = lab.lab.target().to_string();
    let count = PINGS.to_string();
    let argv = ["ping", "-n", "-q", "-i", "0.002", "-c", &count, &target];
    let a = lab.lab.node(NodeId::A);
    let (process, pid) = start(a, Program::new(argv));
    let mut rekeys = 0;
    while is_alive(pid) {
        lab.lab.act(&mut dut, DutAction::Rekey).unwrap();
        rekeys += 1;
    }
    let ended = a.wait(process, PATIENCE).unwrap();
    let answer = format!("{PINGS} packets transmitted, {PINGS} received");
    assert!(ended.stdout.contains(&answer), "{}", ended.stdout);
    assert!(rekeys > 3, "{rekeys}");
    let counters = lab.lab.dut_counters(&dut).unwrap();
    for gateway in ["gw1", "gw2"] {
        assert_eq!(counters[&format!("{gateway}/rekeys")], rekeys);
        let drops: Vec<_> = counters
            .iter()
            .filter(|(key, _)| key.starts_with(&format!("{gateway}/dropped_packets.")))
            .filter(|(key, value)| **value > was[*key] && !key.ends_with(".no_tunnel"))
            .collect();
        assert!(drops.is_empty(), "{drops:?}");
    }
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn our_encryptor_leaves_nothing_midway() {
    leaves_nothing_midway(&mut ready_lab(), &ours());
}

/// All of it with a program, if it is installed.
fn wireguard_by(program: WireGuardProgram) {
    let mut lab = ready_lab();
    let device = wireguard(program);
    match try_start(&mut lab, &device) {
        Ok(dut) => lab.lab.stop_dut(dut).unwrap(),
        Err(error) if reason(&error).starts_with("needs the program") => {
            return match program {
                WireGuardProgram::Gotatun => eprintln!("SKIPPED: gotatun: {error}"),
                other => testing::skip(format_args!("tests of {}", other.name()), reason(&error)),
            };
        }
        Err(error) => panic!("{error}"),
    }
    goes_through_all(&mut lab, &device);
    leaves_nothing_midway(&mut lab, &device);
}

pub(crate) fn wireguard_go_goes_through_all_and_leaves_nothing_midway() {
    wireguard_by(WireGuardProgram::Go);
}

pub(crate) fn boringtun_goes_through_all_and_leaves_nothing_midway() {
    wireguard_by(WireGuardProgram::Boringtun);
}

pub(crate) fn gotatun_goes_through_all_and_leaves_nothing_midway() {
    wireguard_by(WireGuardProgram::Gotatun);
}

pub(crate) fn openvpn_goes_through_all_and_leaves_nothing_midway() {
    let mut lab = ready_lab();
    goes_through_all(&mut lab, &openvpn());
    leaves_nothing_midway(&mut lab, &openvpn());
}

pub(crate) fn strongswan_goes_through_all_and_leaves_nothing_midway() {
    let mut lab = ready_lab();
    goes_through_all(&mut lab, &strongswan(1));
    leaves_nothing_midway(&mut lab, &strongswan(1));
}

pub(crate) fn strongswan_with_several_tunnels_goes_through_all() {
    let mut lab = ready_lab();
    goes_through_all(&mut lab, &strongswan(10));
}

pub(crate) fn a_gateway_that_is_dead_cannot_be_killed_and_one_that_is_no_dut_cannot_start() {
    let mut lab = ready_lab();
    let mut dut = try_start(&mut lab, &ours()).unwrap();
    let kill = DutAction::Kill(NodeId::Gw2);
    lab.lab.act(&mut dut, kill).unwrap();
    let error = reason(&lab.lab.act(&mut dut, kill).unwrap_err());
    assert_eq!(error, "has no process on gw2 that could be killed");
    let restart = DutAction::Restart(NodeId::A);
    let error = reason(&lab.lab.act(&mut dut, restart).unwrap_err());
    assert_eq!(error, "does not run on a");
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn a_device_that_was_dead_before_it_was_killed_is_reported() {
    let mut lab = ready_lab();
    let mut dut = try_start(&mut lab, &ours()).unwrap();
    let gw2 = lab.lab.node(NodeId::Gw2);
    let (_, process) = *dut
        .processes
        .iter()
        .find(|(id, _)| *id == NodeId::Gw2)
        .unwrap();
    gw2.call(testbed::protocol::Request::Terminate { process })
        .unwrap();
    await_that("it has ended", || {
        let status = testbed::protocol::Request::Status { process };
        !matches!(
            gw2.call(status).unwrap(),
            testbed::protocol::Response::Status(None)
        )
    });
    let kill = DutAction::Kill(NodeId::Gw2);
    let error = reason(&lab.lab.act(&mut dut, kill).unwrap_err());
    assert!(error.starts_with("died on gw2 (exit status 0)"), "{error}");
    lab.lab.stop_dut(dut).unwrap();
}

//! Hostile packets against real encryptors: each is refused, for the reason that it should be, and
//! B sees none of it.
//!
//! ```text
//!  A ─ frames ─► gw1 ══ sealed ══► gw2 ─► B
//!              attacker ═ hostile ═╯
//! ```

use crate::trials::{TestLab, cell, encrypting, ping, plan};
use plan::{
    Adapter, DataPath, Direction, Dut, Encryptor, Form, IkeAuth, LinkForm, OpenVpn, StrongSwan,
    WireGuard, WireGuardProgram,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use testbed::protocol::{Program, Ready, Request, Response, THIS_PROGRAM};
use testbed::{Bench, FramePath, LabError, NodeId, RunningDut};
use traffic_spec::{
    Addresses, Attack, AttackKind, Attacked, READY, Receive, Received, Report, Role, SealedForm,
    Send, Sent, Spec,
};
use trial::links;
use wire::Suite;
use wire::mix::{Contents, FrameMix, TestFrames};

const PATIENCE: Duration = Duration::from_secs(30);
const SECOND_NS: u64 = 1_000_000_000;
/// Frames, and as many hostile packets.
const PER_SECOND: u64 = 2000;
/// Long enough for old packets in its last part.
const SECONDS: u64 = 3;
/// No trial that is wanted lasts so long.
const FOR_EVER_NS: u64 = 3600 * SECOND_NS;
const KINDS: [AttackKind; 3] = [AttackKind::BadIcv, AttackKind::Replay, AttackKind::Garbage];

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 4] = [
    (
        "our_encryptor_counts_each_hostile_packet_by_its_reason",
        our_encryptor_counts_each_hostile_packet_by_its_reason,
    ),
    (
        "hostile_packets_do_not_pass_wireguard",
        hostile_packets_do_not_pass_wireguard,
    ),
    (
        "hostile_packets_do_not_pass_strongswan",
        hostile_packets_do_not_pass_strongswan,
    ),
    (
        "hostile_packets_do_not_pass_openvpn",
        hostile_packets_do_not_pass_openvpn,
    ),
];

/// What came of an attack.
struct Outcome {
    sent: Sent,
    received: Received,
    attacked: Attacked,
    /// By how much the DUT's counters have moved.
    moved: BTreeMap<String, u64>,
}

fn spec(interface: &str, role: Role) -> Program {
    let spec = Spec {
        interface: interface.to_owned(),
        port: None,
        threads: 1,
        tag: 7,
        role,
    };
    Program {
        argv: vec![THIS_PROGRAM.to_owned(), "frames".to_owned()],
        stdin: serde_json::to_string(&spec).unwrap(),
        ready: Ready::Line(READY.to_owned()),
        ..Program::default()
    }
}

fn test_frames() -> TestFrames {
    TestFrames {
        mix: FrameMix::fixed(300),
        flows: 4,
        tunnels: 1,
        contents: Contents::Fixed,
    }
}

fn sender(path: &FramePath) -> Role {
    let (source, sink) = (&path.source, &path.sink);
    Role::Send(Send {
        addresses: Addresses {
            source_mac: source.mac,
            target_mac: source.next_hop_mac,
            source: source.test_address.into(),
            target: sink.test_address.into(),
        },
        frames: test_frames(),
        frames_per_s: Some(PER_SECOND),
        duration_ns: SECONDS * SECOND_NS,
        burst_ns: 0,
        peer: None,
        keep_rate: false,
        then: None,
        start_ns: None,
    })
}

fn attacker(kind: AttackKind, running: &RunningDut) -> Role {
    let form = match running.sealed_ports[0].form {
        LinkForm::Sealed(Form::Esp) => SealedForm::Esp,
        LinkForm::Sealed(Form::WireGuard) => SealedForm::WireGuard,
        LinkForm::Sealed(Form::OpenVpn) => SealedForm::OpenVpn,
        _ => unreachable!("these devices seal packets"),
    };
    let ports = running.sealed_ports.iter().map(|sealed| sealed.port);
    Role::Attack(Attack {
        kind,
        form,
        ports: ports.collect(),
        packets_per_s: PER_SECOND,
        duration_ns: FOR_EVER_NS,
    })
}

/// The report of a program that is about to have one.
fn report(lab: &TestLab, id: NodeId, process: u64) -> Report {
    let request = Request::AwaitLine {
        process,
        prefix: "{".to_owned(),
        limit_ms: PATIENCE.as_millis() as u64,
    };
    match lab.lab.node(id).call(request).unwrap() {
        Response::Line(Some(line)) => serde_json::from_str(&line).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Stops a program and returns its report.
fn stop(lab: &TestLab, id: NodeId, process: u64) -> Report {
    let terminated = lab.lab.node(id).call(Request::Terminate { process });
    assert!(
        matches!(terminated, Ok(Response::Terminated)),
        "{terminated:?}"
    );
    let report = report(lab, id, process);
    lab.lab.node(id).wait(process, PATIENCE).unwrap();
    report
}

/// Loads a DUT and attacks it. `is_through` returns, by the DUT's counters since the beginning,
/// whether it has handled this many packets.
fn attack(
    lab: &TestLab,
    running: &RunningDut,
    kind: AttackKind,
    is_through: impl Fn(&BTreeMap<String, u64>, u64) -> bool,
) -> Outcome {
    let path = running.frame_path.clone().unwrap();
    let start = |id: NodeId, program| lab.lab.node(id).start(program, PATIENCE).unwrap();
    let before = lab.lab.dut_counters(running).unwrap();
    let moved = || {
        let now = lab.lab.dut_counters(running).unwrap();
        let moved = now.into_iter().map(|(name, value)| {
            let was = before.get(&name).copied().unwrap_or(0);
            (name, value.saturating_sub(was))
        });
        moved.collect::<BTreeMap<_, _>>()
    };
    let receive = Role::Receive(Receive::new(test_frames()));
    // The receiver first and the attacker before the sender: attacks are made from the packets that
    // the DUT seals, and none may be missed.
    let receiver = start(path.sink.node, spec(&path.sink.interface, receive));
    let attacker = start(NodeId::Gw1, spec("w0", attacker(kind, running)));
    let sender = start(
        path.source.node,
        spec(&path.source.interface, sender(&path)),
    );

    let sent = report(lab, path.source.node, sender).sent.unwrap();
    lab.lab
        .node(path.source.node)
        .wait(sender, PATIENCE)
        .unwrap();
    let attacked = stop(lab, NodeId::Gw1, attacker).attacked.unwrap();
    let until = Instant::now() + PATIENCE;
    // Packets may still wait in gw2's socket when both programs have ended.
    while !is_through(&moved(), sent.frames + attacked.sent) {
        assert!(Instant::now() < until, "{attacked:?} {:#?}", moved());
    }
    let received = stop(lab, path.sink.node, receiver).received.unwrap();
    Outcome {
        sent,
        received,
        attacked,
        moved: moved(),
    }
}

/// Checks that B received only frames of A, each once. Some may be lost: attacks measure how much
/// time a DUT has left for them.
fn assert_repelled(kind: AttackKind, outcome: &Outcome) {
    let Outcome {
        sent,
        received,
        attacked,
        ..
    } = outcome;
    assert_eq!(sent.frames, SECONDS * PER_SECOND);
    assert!((1..=sent.frames).contains(&received.frames), "{kind:?}");
    let strangers = (received.duplicated, received.corrupted, received.stale);
    assert_eq!(strangers, (0, 0, 0), "{kind:?}");
    assert!(attacked.captured >= sent.frames / 10, "{attacked:?}");
    // It has begun with the first frame.
    let most = sent.frames + PER_SECOND * PATIENCE.as_secs();
    let range = sent.frames / 2..most;
    assert!(range.contains(&attacked.sent), "{attacked:?}");
}

/// A DUT that is up, if it is installed here.
fn start(lab: &mut TestLab, adapter: Adapter) -> Option<RunningDut> {
    let cell = cell(adapter.clone(), 1, false, ping());
    let links = links(&plan(&cell), &cell);
    lab.lab.configure(links).unwrap();
    let dut = Dut::new("dut", adapter);
    match lab.lab.start_dut(&dut, links, Direction::Both) {
        Ok(running) => Some(running),
        Err(LabError::Dut { reason, .. }) if reason.starts_with("needs") => {
            testing::skip("attacks on a device", reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn our_encryptor_counts_each_hostile_packet_by_its_reason() {
    let mut lab = TestLab::build();
    let lanes = Adapter::Cipherbench(Encryptor {
        workers: 2,
        ..Encryptor::new(Suite::ChaCha20Poly1305)
    });
    for adapter in [encrypting(), lanes] {
        let running = start(&mut lab, adapter).unwrap();
        for kind in KINDS {
            let has_come = |moved: &BTreeMap<String, u64>, packets: u64| {
                moved["gw2/cipher_rx_packets"] >= packets
            };
            let outcome = attack(&lab, &running, kind, has_come);
            assert_repelled(kind, &outcome);
            assert_eq!(outcome.received.frames, outcome.sent.frames, "{kind:?}");
            let reason = match kind {
                AttackKind::BadIcv => "integrity_failed",
                AttackKind::Replay => "replayed",
                AttackKind::Garbage => "no_sa",
            };
            let dropped = |reason: &str| outcome.moved[&format!("gw2/dropped_packets.{reason}")];
            // An SPI of one in thousands could be that of a newer epoch: its keys are tried.
            let tried = match kind {
                AttackKind::Garbage => dropped("integrity_failed"),
                _ => 0,
            };
            let sent = outcome.attacked.sent;
            assert!(tried <= sent / 100, "{tried} of {sent}");
            // Every hostile packet has one reason, and below no other packet has any.
            assert_eq!(dropped(reason) + tried, sent, "{kind:?}");
            let drops = outcome.moved.iter();
            let drops = drops.filter(|(name, _)| name.starts_with("gw2/dropped_packets."));
            assert_eq!(
                drops.map(|(_, packets)| packets).sum::<u64>(),
                sent,
                "{kind:?}"
            );
        }
        lab.lab.stop_dut(running).unwrap();
    }
}

/// A DUT that does not count what it refuses.
fn is_repelled_by(adapter: Adapter) {
    let mut lab = TestLab::build();
    let Some(running) = start(&mut lab, adapter) else {
        return;
    };
    for kind in KINDS {
        assert_repelled(kind, &attack(&lab, &running, kind, |_, _| true));
    }
    lab.lab.stop_dut(running).unwrap();
}

fn hostile_packets_do_not_pass_wireguard() {
    for program in [WireGuardProgram::Go, WireGuardProgram::Boringtun] {
        is_repelled_by(Adapter::WireGuard(WireGuard { program }));
    }
}

fn hostile_packets_do_not_pass_strongswan() {
    is_repelled_by(Adapter::StrongSwan(StrongSwan {
        data_path: DataPath::Libipsec,
        suite: Suite::Aes256Gcm,
        auth: IkeAuth::Psk,
        ppk: false,
        ml_kem: false,
        tunnels: 1,
    }));
}

fn hostile_packets_do_not_pass_openvpn() {
    is_repelled_by(Adapter::OpenVpn(OpenVpn {
        suite: Suite::Aes256Gcm,
    }));
}

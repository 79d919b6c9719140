//! Our own encryptor with keys that its gateways agree on: from every source, renewed, lost with a
//! gateway, and with KMEs that fail.

use crate::support::{
    LINKS, MARKER_IN_HEX, PATIENCE, TestLab, assert_nothing_is_left, await_that, dump, ping, reason,
};
use journal::record::CipherWatch;
use plan::{Adapter, Desync, Direction, Dut, Encryptor, KeySource};
use std::collections::BTreeMap;
use testbed::protocol::{ControlPort, Program, Request, Response, Sample};
use testbed::{Bench, DutAction, LabError, NodeId, RunningDut};
use wire::Suite;

/// Asks gw1's address for faults of the KMEs: method and body.
const ASK_FOR_FAULT: &str = r#"
exec 3<>/dev/tcp/127.0.0.1/9480
printf '%s /faults HTTP/1.1\r\nHost: kme\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' \
    "$1" "${#2}" "$2" >&3
cat <&3
"#;

fn with_keys(keys: KeySource) -> Dut {
    let encryptor = Encryptor {
        workers: if keys.is_ike() { 1 } else { 2 },
        ..Encryptor::new(Suite::Aes256Gcm).with_keys(keys)
    };
    Dut::new(keys.name(), Adapter::Cipherbench(encryptor))
}

/// An encryptor with that many tunnels and one lane.
fn with_tunnels(keys: KeySource, tunnels: u16) -> Dut {
    let encryptor = Encryptor {
        tunnels,
        ..Encryptor::new(Suite::Aes256Gcm).with_keys(keys)
    };
    Dut::new(keys.name(), Adapter::Cipherbench(encryptor))
}

fn ready_lab() -> TestLab {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    lab
}

fn start(lab: &mut TestLab, dut: &Dut) -> RunningDut {
    let started: Result<RunningDut, LabError> = lab.lab.start_dut(dut, LINKS, Direction::Both);
    started.unwrap_or_else(|error| panic!("{}: {error}", dut.name))
}

/// Whether A reaches B at once, several times.
fn passes(lab: &TestLab) -> bool {
    let few = ["-q", "-c", "10", "-i", "0.01", "-W", "1"];
    ping(&lab.lab, &few).code == Some(0)
}

fn await_passing(lab: &TestLab, what: &str) {
    let limit = PATIENCE.as_secs().to_string();
    let ended = ping(&lab.lab, &["-q", "-c", "1", "-i", "0.02", "-w", &limit]);
    assert_eq!(ended.code, Some(0), "{what}: {}", ended.stdout);
}

/// A counter of a gateway, over all its labels.
fn count(lab: &TestLab, dut: &RunningDut, counter: &str) -> u64 {
    let counters: BTreeMap<String, u64> = lab.lab.dut_counters(dut).unwrap();
    let is_it = |name: &str| name == counter || name.starts_with(&format!("{counter}."));
    let own = counters.iter().filter(|(name, _)| is_it(name));
    own.map(|(_, count)| count).sum()
}

/// Asks an encryptor for new keys, and does not wait for them.
fn ask_for_rekey(lab: &TestLab, dut: &RunningDut, id: NodeId) {
    let (_, process) = dut.processes.iter().find(|(node, _)| *node == id).unwrap();
    let request = Request::Signal {
        process: *process,
        signal: nix::sys::signal::Signal::SIGUSR1 as i32,
    };
    let response = lab.lab.node(id).call(request).unwrap();
    assert!(matches!(response, Response::Signalled), "{response:?}");
}

/// `POST` starts a fault of the KMEs, `DELETE` ends it.
fn fault(lab: &TestLab, method: &str, body: &str) {
    let argv = ["bash", "-c", ASK_FOR_FAULT, "bash", method, body];
    let gw1 = lab.lab.node(NodeId::Gw1);
    let ended = gw1.run(Program::new(argv), PATIENCE).unwrap();
    let (status, _) = ended.stdout.split_once('\n').unwrap_or_default();
    assert!(status.contains(" 204 "), "{body}: {ended:?}");
}

/// A watch on gw1's end of the cipher link for all that does not belong there.
fn watch(lab: &TestLab, dut: &RunningDut) -> u64 {
    let request = Request::Watch {
        interface: "w0".to_owned(),
        received_only: false,
        sealed_ports: dut.sealed_ports.clone(),
        control_ports: dut.control_ports.clone(),
        markers: vec![b"Cipherbench".to_vec()],
        inside: false,
    };
    match lab.lab.node(NodeId::Gw1).call(request).unwrap() {
        Response::Watching { watch } => watch,
        other => panic!("{other:?}"),
    }
}

fn seen(lab: &TestLab, watch: u64) -> CipherWatch {
    let request = Request::WatchEnd { watch };
    match lab.lab.node(NodeId::Gw1).call(request).unwrap() {
        Response::Watched(seen) => seen,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn every_source_comes_up_is_renewed_beside_sealed_traffic_and_leaves_nothing() {
    let mut lab = ready_lab();
    let before = dump(&lab);
    for keys in KeySource::ALL.into_iter().filter(|keys| keys.is_agreed()) {
        let name = keys.name();
        let mut dut = start(&mut lab, &with_keys(keys));
        for gateway in ["gw1", "gw2"] {
            let fact = |key: &str| dut.facts[&format!("{gateway}/{key}")].as_str();
            assert_eq!(fact("sources"), keys.sources().unwrap(), "{name}");
            if keys.is_ike() {
                assert_eq!(fact("keys"), "ike", "{name}");
                continue;
            }
            assert_eq!(fact("keys"), "handshake", "{name}");
            assert_eq!(fact("policy"), keys.policy().unwrap(), "{name}");
            assert_eq!(fact("kx"), "X25519MLKEM768", "{name}");
        }
        assert!(dut.facts.contains_key("gw1/set_up_ms"), "{name}");
        assert_eq!(dut.processes.len(), 2, "{name}");
        let gateways = [[192, 0, 2, 1], [192, 0, 2, 2]].map(std::net::Ipv4Addr::from);
        let channel = ControlPort {
            listener: gateways[1],
            port: 4500,
            connector: gateways[0],
        };
        let channels = &dut.control_ports;
        assert_eq!(
            channels.first() == Some(&channel),
            keys.has_channel(),
            "{name}"
        );
        let expected = usize::from(keys.has_channel()) + usize::from(keys.has_qkd());
        assert_eq!(channels.len(), expected, "{name}");
        assert!(passes(&lab), "{name}");

        // gw2 may have come up a little later than gw1 tried to reach it.
        let (failures, renewals, renewed) = if keys.is_ike() {
            // The keys of the first child SA replace none.
            ("ike_ended", "ike_rekeys.child", 3)
        } else {
            ("handshakes_failed", "epochs_established", 4)
        };
        let failed = |gateway| count(&lab, &dut, &format!("{gateway}/{failures}"));
        let failed = ["gw1", "gw2"].map(failed);

        // Handshakes and requests to KMEs are not foreign frames; anything in clear is.
        let (quiet, leaky) = (watch(&lab, &dut), watch(&lab, &dut));
        for _ in 0..3 {
            lab.lab.act(&mut dut, DutAction::Rekey).unwrap();
            let marked = ["-q", "-c", "10", "-i", "0.01", "-p", MARKER_IN_HEX];
            assert_eq!(ping(&lab.lab, &marked).code, Some(0), "{name}");
        }
        assert_eq!(seen(&lab, quiet), CipherWatch::default(), "{name}");
        let past_it = ["ping", "-c1", "-p", MARKER_IN_HEX, "192.0.2.2"];
        let gw1 = lab.lab.node(NodeId::Gw1);
        let ended = gw1.run(Program::new(past_it), PATIENCE).unwrap();
        assert_eq!(ended.code, Some(0), "{name}");
        let foreign = seen(&lab, leaky);
        assert_eq!((foreign.foreign_frames, foreign.marker_frames), (2, 2));

        for (gateway, failed) in ["gw1", "gw2"].into_iter().zip(failed) {
            let epochs = count(&lab, &dut, &format!("{gateway}/{renewals}"));
            assert_eq!(epochs, renewed, "{name} {gateway}");
            let now = count(&lab, &dut, &format!("{gateway}/{failures}"));
            assert_eq!(now, failed, "{name} {gateway}");
        }
        lab.lab.stop_dut(dut).unwrap();
        assert_nothing_is_left(&lab, &before, name);
    }
}

pub(crate) fn a_sample_counts_what_gateways_agree_on_apart() {
    const FRAMES: u32 = 60;
    let mut lab = ready_lab();
    let mut dut = start(&mut lab, &with_tunnels(KeySource::Pqc, 20));
    let gw1 = lab.lab.node(NodeId::Gw1);
    let request = Request::Sample {
        interface: "w0".to_owned(),
        frames: FRAMES,
        packets: 0,
        contents: false,
        received_only: false,
        limit_ms: 30_000,
        markers: vec![b"Cipherbench".to_vec()],
        sealed_ports: dut.sealed_ports.clone(),
        control_ports: dut.control_ports.clone(),
    };
    // Twenty handshakes have more frames than that.
    let found = std::thread::scope(|scope| {
        let sampled = scope.spawn(|| gw1.call(request).unwrap());
        while !sampled.is_finished() {
            lab.lab.act(&mut dut, DutAction::Rekey).unwrap();
        }
        sampled.join().unwrap()
    });
    let Response::Sample(Sample { link, .. }) = found else {
        panic!("{found:?}")
    };
    assert_eq!(link.frames, u64::from(FRAMES), "{link:?}");
    assert!(link.channel_frames >= 30, "{link:?}");
    assert_eq!((link.other_frames, link.marker_frames), (0, 0), "{link:?}");
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn a_gateway_that_is_started_again_agrees_on_keys_anew_by_itself() {
    let mut lab = ready_lab();
    for keys in [KeySource::Pqc, KeySource::Both, KeySource::IkePpk] {
        let mut dut = start(&mut lab, &with_keys(keys));
        for id in [NodeId::Gw2, NodeId::Gw1, NodeId::Gw2] {
            let what = format!("{} {}", keys.name(), id.name());
            lab.lab.act(&mut dut, DutAction::Kill(id)).unwrap();
            assert!(!passes(&lab), "{what}");
            lab.lab.act(&mut dut, DutAction::Restart(id)).unwrap();
            await_passing(&lab, &what);
            assert_eq!(dut.processes.len(), 2, "{what}");
        }
        lab.lab.act(&mut dut, DutAction::TakeDown).unwrap();
        assert!(!passes(&lab), "{}", keys.name());
        lab.lab.act(&mut dut, DutAction::SetUp).unwrap();
        assert!(passes(&lab), "{}", keys.name());
        lab.lab.stop_dut(dut).unwrap();
    }
}

pub(crate) fn kmes_that_fail_leave_the_old_keys_in_force_until_they_deliver_again() {
    let mut lab = ready_lab();
    let dut = start(&mut lab, &with_keys(KeySource::Both));
    for body in [
        r#"{"fault": "unavailable"}"#,
        r#"{"fault": "lost_key"}"#,
        r#"{"fault": "wrong_key", "kme": "kme-b"}"#,
        r#"{"fault": "garbage"}"#,
    ] {
        assert!(passes(&lab), "{body}");
        let failed = count(&lab, &dut, "gw1/handshakes_failed");
        let epochs = count(&lab, &dut, "gw2/epochs_established");
        fault(&lab, "POST", body);
        ask_for_rekey(&lab, &dut, NodeId::Gw1);
        await_that(body, || count(&lab, &dut, "gw1/handshakes_failed") > failed);
        assert!(passes(&lab), "{body}");
        assert_eq!(
            count(&lab, &dut, "gw2/epochs_established"),
            epochs,
            "{body}"
        );
        fault(&lab, "DELETE", "");
        // It retries by itself.
        await_that(body, || {
            count(&lab, &dut, "gw2/epochs_established") > epochs
        });
    }
    assert!(passes(&lab));
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn without_the_keys_that_the_policy_requires_nothing_passes() {
    let mut lab = ready_lab();
    for keys in [KeySource::Qkd, KeySource::Both] {
        let name = keys.name();
        let mut dut = start(&mut lab, &with_keys(keys));
        lab.lab.act(&mut dut, DutAction::Kill(NodeId::Gw2)).unwrap();
        fault(&lab, "POST", r#"{"fault": "unavailable"}"#);
        let restart = DutAction::Restart(NodeId::Gw2);
        lab.lab.act(&mut dut, restart).unwrap();
        await_that(name, || count(&lab, &dut, "gw2/handshakes_failed") > 0);
        assert!(!passes(&lab), "{name}");
        assert_eq!(count(&lab, &dut, "gw2/epochs_established"), 0, "{name}");
        fault(&lab, "DELETE", "");
        await_passing(&lab, name);
        lab.lab.stop_dut(dut).unwrap();
    }
}

pub(crate) fn a_hundred_tunnels_come_up_and_are_renewed() {
    const TUNNELS: u16 = 100;
    let mut lab = ready_lab();
    let mut dut = start(&mut lab, &with_tunnels(KeySource::Pqc, TUNNELS));
    assert!(passes(&lab));
    lab.lab.act(&mut dut, DutAction::Rekey).unwrap();
    assert!(passes(&lab));
    for gateway in ["gw1", "gw2"] {
        let epochs = count(&lab, &dut, &format!("{gateway}/epochs_established"));
        assert_eq!(epochs, 2 * u64::from(TUNNELS), "{gateway}");
    }
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn keys_out_of_step_are_found_out_and_mended() {
    let mut lab = ready_lab();
    for kind in Desync::ALL {
        let name = kind.name();
        let mut prepared = with_keys(KeySource::Pqc);
        if let Adapter::Cipherbench(encryptor) = &mut prepared.adapter {
            encryptor.fault = Some(kind);
        }
        let mut dut = start(&mut lab, &prepared);
        for times in 1..=3 {
            lab.lab.act(&mut dut, DutAction::Desync(kind)).unwrap();
            // Packets that cannot be opened are what shows it.
            let (count_before, fast) = (times - 1, ["-q", "-c", "400", "-i", "0.005"]);
            ping(&lab.lab, &fast);
            await_that(name, || count(&lab, &dut, "gw2/desyncs") > count_before);
            await_passing(&lab, name);
            assert!(passes(&lab), "{name}");
        }
        lab.lab.stop_dut(dut).unwrap();
    }
    // Only what was prepared can be done.
    let mut dut = start(&mut lab, &with_keys(KeySource::Pqc));
    let desync = DutAction::Desync(Desync::WrongKeys);
    let error = reason(&lab.lab.act(&mut dut, desync).unwrap_err());
    assert_eq!(error, "cannot do Desync(WrongKeys)");
    lab.lab.stop_dut(dut).unwrap();
}

pub(crate) fn kmes_that_die_are_reported() {
    let mut lab = ready_lab();
    let before = dump(&lab);
    let dut = start(&mut lab, &with_keys(KeySource::Qkd));
    // The listener in gw1's network namespace belongs to this lab.
    let script = "kill -KILL $(ss -Hltnp 'sport = :8443' | sed -n 's/.*pid=\\([0-9]*\\).*/\\1/p')";
    let gw1 = lab.lab.node(NodeId::Gw1);
    let ended = gw1.run(Program::new(["sh", "-c", script]), PATIENCE);
    assert_eq!(ended.unwrap().code, Some(0));
    await_that("the counters report it", || {
        lab.lab.dut_counters(&dut).is_err()
    });
    let error = reason(&lab.lab.stop_dut(dut).unwrap_err());
    assert!(error.starts_with("died on gw1"), "{error}");
    assert_nothing_is_left(&lab, &before, "qkd");
}

//! The encryptor in each of its kinds: suites, tunnels, layer 2, aggregation.

use crate::frames::{assert_all_came, frames, load, passes, short, traffic};
use crate::trials::{TestLab, cell, ping, plan, tcp};
use journal::record::Measured;
use plan::{Adapter, Direction, Encryptor, IpVersion, KeySource, Mode, Traffic};
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{Bench, NodeId};
use trial::links;
use wire::Suite;
use wire::mix::{Contents, FrameMix, TestFrames};

const PATIENCE: Duration = Duration::from_secs(30);

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 7] = [
    (
        "tagged_and_long_frames_of_any_kind_cross_a_bridge",
        tagged_and_long_frames_of_any_kind_cross_a_bridge,
    ),
    (
        "suites_of_each_kind_carry_frames",
        suites_of_each_kind_carry_frames,
    ),
    ("frames_in_many_tunnels", frames_in_many_tunnels),
    (
        "frames_through_bridging_encryptors",
        frames_through_bridging_encryptors,
    ),
    (
        "tools_through_bridging_encryptors",
        tools_through_bridging_encryptors,
    ),
    ("frames_that_share_packets", frames_that_share_packets),
    (
        "keys_that_gateways_agree_on_are_proven_in_every_trial",
        keys_that_gateways_agree_on_are_proven_in_every_trial,
    ),
];

/// New keys all the time, and every check of the evidence passes.
fn keys_that_gateways_agree_on_are_proven_in_every_trial() {
    let mut lab = TestLab::build();
    for keys in KeySource::ALL.into_iter().filter(|keys| keys.is_agreed()) {
        let name = keys.name();
        let encryptor = Encryptor {
            // IKE has one.
            tunnels: if keys.is_ike() { 1 } else { 3 },
            rekey_every_ns: Some(400_000_000),
            ..Encryptor::new(Suite::Aes256Gcm).with_keys(keys)
        };
        let adapter = Adapter::Cipherbench(encryptor.clone());
        for measurement in [ping(), tcp(1)] {
            let measured = lab.measured(&cell(adapter.clone(), 1, true, measurement));
            assert_link(&measured, &encryptor);
            assert!(passes(&measured, "cipher-link-amount"), "{name}");
        }
        let measured = lab.measured(&frames(adapter, short(Direction::Both), load(200)));
        assert_all_came(&measured, 200, 1);
        assert_link(&measured, &encryptor);
        let facts = &measured.evidence.dut_facts;
        assert_eq!(facts["gw2/sources"], keys.sources().unwrap());
    }
}

fn suite(name: &str) -> Encryptor {
    Encryptor::new(Suite::from_name(name).unwrap())
}

fn mode(mode: Mode) -> Encryptor {
    Encryptor {
        mode,
        ..Encryptor::new(Suite::Aes256Gcm)
    }
}

/// What crossed the cipher link was ESP, which can be read or not; without ESP it was not.
fn assert_link(measured: &Measured, encryptor: &Encryptor) {
    let link = &measured.evidence.cipher_link;
    let has_esp = encryptor.mode.has_esp();
    assert_eq!(link.esp_frames > 0, has_esp, "{link:?}");
    assert_eq!(link.marker_frames > 0, encryptor.is_readable(), "{link:?}");
    let checks: &[&str] = if has_esp {
        &[
            "cipher-link-encrypted",
            "no-clear-text",
            "no-foreign-frames",
        ]
    } else {
        &["clear-text-visible", "foreign-frames-visible"]
    };
    for check in checks.iter().chain(&["dut-counters", "dut-as-asked"]) {
        assert!(passes(measured, check), "{check}");
    }
    // The tester opens samples with the keys that it gave out. It has no agreed keys, and the null
    // engine seals nothing.
    let has_known_keys = has_esp && !encryptor.is_null() && !encryptor.keys.is_agreed();
    assert_eq!(passes(measured, "samples-opened"), has_known_keys);
    assert_eq!(link.opened.is_some(), has_known_keys);
    if let Some(opened) = &link.opened {
        assert!(
            opened.packets > 0 && opened.opened == opened.packets,
            "{opened:?}"
        );
        assert!(opened.between_stations > 0, "{opened:?}");
    }
}

fn suites_of_each_kind_carry_frames() {
    let mut lab = TestLab::build();
    for (name, directions) in [
        ("aes-256-cbc-hmac-sha256", &Direction::ALL[..]),
        ("3des-cbc-hmac-sha1", &Direction::ALL[..]),
        ("null-hmac-sha256", &[Direction::Both]),
        ("magma-mgm-mac", &Direction::ALL[..]),
    ] {
        for &direction in directions {
            let encryptor = suite(name);
            let adapter = Adapter::Cipherbench(encryptor.clone());
            let measured = lab.measured(&frames(adapter, short(direction), load(200)));
            assert_all_came(&measured, 200, 1);
            assert_link(&measured, &encryptor);
        }
    }
}

fn frames_in_many_tunnels() {
    let mut lab = TestLab::build();
    let encryptor = Encryptor {
        tunnels: 100,
        workers: 2,
        ..Encryptor::new(Suite::Aes256Gcm)
    };
    let adapter = Adapter::Cipherbench(encryptor.clone());
    for direction in Direction::ALL {
        let traffic = traffic(direction, FrameMix::fixed(128), IpVersion::V6);
        let measured = lab.measured(&frames(adapter.clone(), traffic, load(200)));
        // The first frames begin each tunnel, and none of them is lost.
        assert_all_came(&measured, 200, 1);
        assert_link(&measured, &encryptor);
        // The samples meet only some of the hundred tunnels.
        let spis = measured.evidence.cipher_link.spis.len();
        assert!(spis > 10, "{spis} SPIs");
    }
    // The stations' own networks are in the first tunnel.
    let measured = lab.measured(&cell(adapter, 1, true, ping()));
    assert_link(&measured, &encryptor);
}

fn frames_through_bridging_encryptors() {
    let mut lab = TestLab::build();
    for mode in [Mode::L2, Mode::L2tpv3, Mode::L2tpv3Clear] {
        let encryptor = self::mode(mode);
        let mix = FrameMix::named("imix").unwrap();
        let traffic = traffic(Direction::Both, mix, IpVersion::V4);
        let adapter = Adapter::Cipherbench(encryptor.clone());
        let measured = lab.measured(&frames(adapter, traffic, load(200)));
        assert_all_came(&measured, 200, 1);
        assert_link(&measured, &encryptor);
    }
}

fn tools_through_bridging_encryptors() {
    let mut lab = TestLab::build();
    for mode in [Mode::L2, Mode::L2tpv3, Mode::L2tpv3Clear] {
        let encryptor = self::mode(mode);
        let adapter = Adapter::Cipherbench(encryptor.clone());
        for (measurement, offloads, mtu) in [
            (ping(), false, 1500),
            (tcp(5), true, 1500),
            (tcp(5), false, 9000),
        ] {
            let mut cell = cell(adapter.clone(), 1, offloads, measurement);
            cell.stations.as_mut().unwrap().mtu = mtu;
            assert_link(&lab.measured(&cell), &encryptor);
        }
    }
}

/// Sends one frame of an experimental EtherType (IEEE 802) with a tag of VLAN 5 in front of it.
const SEND: &str = "
import socket, sys
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(('a0', 0))
addresses = bytes.fromhex('02cb000000b0' '02cb000000a0')
port.send(addresses + bytes.fromhex('8100000588b5') + b'x' * int(sys.argv[1]))
";

/// Waits for it. The kernel removes a tag and reports it beside the frame.
const LISTEN: &str = "
import socket, struct, sys
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
port.bind(('b0', 3))
port.setsockopt(263, 8, 1)
while True:
    frame, beside, _, _ = port.recvmsg(65536, 256)
    tags = [struct.unpack('=IIIHHHH', data)[5] for _, kind, data in beside if kind == 8]
    if frame[12:] == bytes.fromhex('88b5') + b'x' * int(sys.argv[1]) and tags == [5]:
        break
";

fn tagged_and_long_frames_of_any_kind_cross_a_bridge() {
    let mut lab = TestLab::build();
    for mode in [Mode::L2, Mode::L2tpv3] {
        let adapter = Adapter::Cipherbench(self::mode(mode));
        let mut cell = cell(adapter, 1, false, ping());
        cell.stations.as_mut().unwrap().mtu = 9000;
        let links = links(&plan(&cell), &cell);
        lab.lab.configure(links).unwrap();
        let dut = lab
            .lab
            .start_dut(&cell.dut, links, Direction::Both)
            .unwrap();
        let (a, b) = (lab.lab.node(NodeId::A), lab.lab.node(NodeId::B));
        // The shortest payload of Ethernet, and one near the MTU of 9000 B.
        for bytes in ["46", "8900"] {
            std::thread::scope(|scope| {
                let listen = Program::new(["python3", "-c", LISTEN, bytes]);
                let heard = scope.spawn(move || b.run(listen, PATIENCE).unwrap());
                // Frames from before the listener is ready are lost, so more are sent until it
                // ends.
                while !heard.is_finished() {
                    let send = Program::new(["python3", "-c", SEND, bytes]);
                    let sent = a.run(send, PATIENCE).unwrap();
                    assert_eq!(sent.code, Some(0), "{sent:?}");
                }
                let heard = heard.join().unwrap();
                assert_eq!(heard.code, Some(0), "{mode:?} {bytes}: {heard:?}");
            });
        }
        lab.lab.stop_dut(dut).unwrap();
    }
}

fn frames_that_share_packets() {
    let mut lab = TestLab::build();
    let encryptor = Encryptor {
        aggregate: true,
        ..Encryptor::new(Suite::Aes256Gcm)
    };
    let adapter = Adapter::Cipherbench(encryptor.clone());
    let traffic = Traffic {
        frames: TestFrames {
            mix: FrameMix::named("imix").unwrap(),
            flows: 8,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        ..short(Direction::Both)
    };
    let measured = lab.measured(&frames(adapter, traffic, load(200)));
    assert_all_came(&measured, 200, 1);
    assert_link(&measured, &encryptor);
}

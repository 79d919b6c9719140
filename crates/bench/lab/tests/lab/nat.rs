//! A NAT between the gateways.
//!
//! ```text
//! A a0 -- a1 gw1 w0 -- p0 nat1 p1 -- w1 gw2 b1 -- b0 B
//!            192.0.2.1          198.51.100.1, for gw2 the address of gw1
//! ```

use crate::devices::encryptor;
use crate::frames::{self, cross_both_ways, seal_and_open, with_dut};
use crate::support::{
    LINKS, PATIENCE, TestLab, assert_nothing_is_left, direct, dump, ping, plan_with_path, reason,
    setup, shell,
};
use crate::{openvpn, strongswan};
use lab::NamespaceLab;
use plan::{
    Adapter, Direction, Dut, Element, Encryptor, IpVersion, KeySource, Mode, OpenVpn, WireGuard,
    WireGuardProgram,
};
use testbed::{Bench, NodeId, RunningDut};
use wire::Suite;

/// Packets that left towards gw2 with the outer address, and with another one, at each NAT.
fn translated(lab: &TestLab, running: &RunningDut) -> Vec<[u64; 2]> {
    let counters = lab.lab.dut_counters(running).unwrap();
    let nats = lab.lab.elements().into_iter();
    let nats = nats.filter(|id| id.name().starts_with("nat"));
    nats.map(|id| {
        ["translated", "untranslated"]
            .map(|which| counters[&format!("{}/{which}_packets", id.name())])
    })
    .collect()
}

fn named(name: &str, adapter: Adapter) -> Dut {
    Dut::new(name, adapter)
}

/// Every kind of tunnel in UDP that is installed here.
fn tunnels() -> Vec<Dut> {
    let ours = |change: fn(&mut Encryptor)| {
        let mut encryptor = Encryptor::new(Suite::Aes256Gcm);
        change(&mut encryptor);
        Adapter::Cipherbench(encryptor)
    };
    let mut tunnels = vec![
        named("static keys", ours(|it| it.workers = 2)),
        named("mode l2", ours(|it| it.mode = Mode::L2)),
    ];
    for keys in KeySource::ALL.into_iter().filter(|keys| keys.is_agreed()) {
        let encryptor = Encryptor::new(Suite::Aes256Gcm).with_keys(keys);
        tunnels.push(named(keys.name(), Adapter::Cipherbench(encryptor)));
    }
    if strongswan::missing().is_none() {
        tunnels.push(named("strongswan", Adapter::StrongSwan(strongswan::PLAN)));
    }
    if openvpn::missing().is_none() {
        let suite = Suite::Aes256Gcm;
        tunnels.push(named("openvpn", Adapter::OpenVpn(OpenVpn { suite })));
    }
    for program in [WireGuardProgram::Go, WireGuardProgram::Boringtun] {
        tunnels.push(named(
            program.name(),
            Adapter::WireGuard(WireGuard { program }),
        ));
    }
    tunnels
}

pub(crate) fn tunnels_cross_it_and_every_packet_has_its_address() {
    for path in [
        &[Element::Nat][..],
        &[Element::Nat, Element::Bridge, Element::Nat],
    ] {
        let mut lab = TestLab::with_path(path);
        lab.lab.configure(LINKS).unwrap();
        let before = dump(&lab);
        for dut in tunnels() {
            let name = &dut.name;
            let running = match lab.lab.start_dut(&dut, LINKS, Direction::Both) {
                Ok(running) => running,
                Err(error) if reason(&error).starts_with("needs the program") => {
                    eprintln!("SKIPPED: {name} across a NAT: {error}");
                    continue;
                }
                Err(error) => panic!("{name}: {error}"),
            };
            let was = translated(&lab, &running);
            let ended = ping(&lab.lab, &["-q", "-c", "20", "-i", "0.02"]);
            assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
            let back = shell("ping -q -c 20 -i 0.02 10.1.0.2");
            let ended = lab.lab.node(NodeId::B).run(back, PATIENCE).unwrap();
            // A busy machine may lose a packet, which is not tested here.
            assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
            let now = translated(&lab, &running);
            assert_eq!(
                now.len(),
                path.iter().filter(|it| **it == Element::Nat).count()
            );
            for ([was, _], [now, others]) in was.into_iter().zip(now) {
                // A train of packets that wait counts once.
                assert!(now > was, "{name} over {path:?}: {was} and {now}");
                assert_eq!(others, 0, "{name} over {path:?}");
            }
            lab.lab.stop_dut(running).unwrap();
            assert_nothing_is_left(&lab, &before, name);
        }
    }
}

pub(crate) fn sealed_frames_cross_it_both_ways_and_to_one_gateway_alone() {
    let mut lab = TestLab::with_path(&[Element::Nat]);
    lab.lab.configure(frames::LINKS).unwrap();
    let ours = || encryptor("auto").adapter;
    with_dut(&mut lab, ours(), Direction::Both, |lab, _, path| {
        cross_both_ways(lab, path);
    });
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        with_dut(&mut lab, ours(), direction, |lab, _, path| {
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

pub(crate) fn in_clear_b_sees_a_at_its_address() {
    let mut lab = TestLab::with_path(&[Element::Router, Element::Nat]);
    lab.lab.configure(LINKS).unwrap();
    let before = dump(&lab);
    let running = lab
        .lab
        .start_dut(&direct(), LINKS, Direction::Both)
        .unwrap();
    // B answers with the address that it sees.
    let seen = "timeout 20 python3 -c 'import socket\n\
                s = socket.create_server((\"10.2.0.2\", 7777))\n\
                c, a = s.accept()\n\
                c.sendall(a[0].encode())'";
    let ask = "for i in $(seq 200); do timeout 5 python3 -c 'import socket\n\
               print(socket.create_connection((\"10.2.0.2\", 7777), 5).recv(99).decode())' 2>/dev/null && break; \
               sleep 0.05; done";
    let answer = std::thread::scope(|scope| {
        let b = lab.lab.node(NodeId::B);
        let server = scope.spawn(|| b.run(shell(seen), PATIENCE).unwrap());
        let a = lab.lab.node(NodeId::A);
        let answer = a.run(shell(ask), PATIENCE).unwrap();
        let served = server.join().unwrap();
        assert_eq!(served.code, Some(0), "{served:?}");
        answer
    });
    assert_eq!(answer.stdout.trim(), "203.0.113.1", "{answer:?}");
    let [[count, _]] = translated(&lab, &running)[..] else {
        panic!()
    };
    assert!(count > 3, "{count}");
    lab.lab.stop_dut(running).unwrap();
    assert_nothing_is_left(&lab, &before, "in clear");
}

pub(crate) fn gateways_that_cannot_agree_on_who_connects_are_refused() {
    let folder = testing::folder().unwrap();
    let mut plan = plan_with_path("above", &[Element::Nat]);
    // Above the network behind the NAT.
    plan.addresses.cipher = [203, 0, 113, 0].into();
    let mut lab = NamespaceLab::build(&plan, &setup(folder.path())).unwrap();
    lab.configure(LINKS).unwrap();
    let keys = KeySource::ALL.into_iter().find(|keys| keys.is_agreed());
    let agreed = Encryptor::new(Suite::Aes256Gcm).with_keys(keys.unwrap());
    let agreed = named("agreed", Adapter::Cipherbench(agreed));
    let error = lab.start_dut(&agreed, LINKS, Direction::Both).unwrap_err();
    let why = reason(&error);
    assert!(
        why.contains("gw1 is 203.0.113.1, and gw2 sees it at a lower address"),
        "{why}"
    );
    // With keys of a file no gateway connects to the other one.
    let of_file = encryptor("auto");
    let running = lab.start_dut(&of_file, LINKS, Direction::Both).unwrap();
    lab.stop_dut(running).unwrap();
}

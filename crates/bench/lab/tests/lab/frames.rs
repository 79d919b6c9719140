//! Test frames through each DUT: raw, and seen where they are to come out.
//!
//! ```text
//! A a0 ---- a1 gw1 w0 ---- w1 gw2 b1 ---- b0 B
//!   c0 --------------------------------- c1
//! ```

use crate::devices::encryptor;
use crate::peer::{
    self, MARKER, datagram, open, packet, received, seal, send_frames, start_to_receive,
};
use crate::support::{self, PATIENCE, TestLab, assert_nothing_is_left, await_that, dump};
use journal::record::{CipherWatch, InterfaceCounters};
use plan::{Adapter, Direction, Dut, IpVersion};
use std::net::IpAddr;
use testbed::protocol::{Request, Response, SealedPort};
use testbed::{Bench, FrameEnd, FramePath, LabError, Links, NodeId, RunningDut};

/// Every frame for itself: an encryptor would join those of one flow for a link that takes
/// super-packets.
pub(crate) const LINKS: Links = Links {
    offloads: false,
    ..support::LINKS
};

/// Frames of each kind.
pub(crate) const FRAMES: u64 = 10;

fn ready_lab() -> TestLab {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    lab
}

fn dut(adapter: Adapter) -> Dut {
    Dut::new("under test", adapter)
}

/// Starts a DUT, uses it, stops it, and sees that nothing of it is left.
pub(crate) fn with_dut(
    lab: &mut TestLab,
    adapter: Adapter,
    direction: Direction,
    action: impl FnOnce(&TestLab, &RunningDut, &FramePath),
) {
    let before = dump(lab);
    let running = lab
        .lab
        .start_dut(&dut(adapter.clone()), LINKS, direction)
        .unwrap_or_else(|error| panic!("{adapter:?} {direction:?}: {error}"));
    // Only the path past the gateways needs nothing.
    assert_eq!(dump(lab) == before, adapter.is_straight());
    let path = running.frame_path.clone().unwrap();
    action(lab, &running, &path);
    lab.lab.stop_dut(running).unwrap();
    assert_nothing_is_left(lab, &before, &format!("{adapter:?} {direction:?}"));
}

pub(crate) fn counters(lab: &TestLab, end: &FrameEnd) -> InterfaceCounters {
    match lab
        .lab
        .node(end.node)
        .call(Request::InterfaceCounters)
        .unwrap()
    {
        Response::InterfaceCounters(counters) => counters[&end.interface],
        other => panic!("{other:?}"),
    }
}

fn start_watch(lab: &TestLab, end: &FrameEnd, sealed_ports: &[SealedPort]) -> u64 {
    let request = Request::Watch {
        interface: end.interface.clone(),
        received_only: false,
        sealed_ports: sealed_ports.to_vec(),
        control_ports: Vec::new(),
        markers: vec![MARKER.to_vec()],
        inside: false,
    };
    match lab.lab.node(end.node).call(request).unwrap() {
        Response::Watching { watch } => watch,
        other => panic!("{other:?}"),
    }
}

fn end_watch(lab: &TestLab, end: &FrameEnd, watch: u64) -> CipherWatch {
    support::end_watch(lab.lab.node(end.node), watch)
}

fn addresses(path: &FramePath, version: IpVersion) -> (IpAddr, IpAddr) {
    match version {
        IpVersion::V4 => (
            path.source.test_address.into(),
            path.sink.test_address.into(),
        ),
        IpVersion::V6 => (
            path.source.test_address_v6.into(),
            path.sink.test_address_v6.into(),
        ),
    }
}

/// Sends frames along a path that protects nothing: they all come out, first of all the first one,
/// and neither end answers them. Returns what the sink's watch saw.
fn cross_in_clear(lab: &TestLab, path: &FramePath, version: IpVersion) -> CipherWatch {
    let (source, target) = addresses(path, version);
    let watches = [&path.source, &path.sink].map(|end| start_watch(lab, end, &[]));
    let before = counters(lab, &path.sink);
    let taken_in = || peer::taken_in(lab.lab.node(path.sink.node));
    let taken_before = taken_in();
    let node = lab.lab.node(path.source.node);
    send_frames(node, &path.source, &packet(source, target), FRAMES);
    await_that("all frames are there", || {
        counters(lab, &path.sink).rx_packets - before.rx_packets >= FRAMES
    });
    // The analyser's frames only: the stack gets at most what nodes of IPv6 say of their own.
    let taken = taken_in() - taken_before;
    assert!(taken < FRAMES / 2, "the stack took in {taken} packets");
    let sent = end_watch(lab, &path.source, watches[0]);
    let seen = end_watch(lab, &path.sink, watches[1]);
    assert_eq!(
        (sent.foreign_frames, sent.marker_frames),
        (FRAMES, FRAMES),
        "{sent:?}"
    );
    assert_eq!(
        (seen.foreign_frames, seen.marker_frames),
        (FRAMES, FRAMES),
        "{seen:?}"
    );
    seen
}

pub(crate) fn cross_both_ways(lab: &TestLab, path: &FramePath) {
    for path in [path.clone(), path.reversed()] {
        for version in [IpVersion::V4, IpVersion::V6] {
            let seen = cross_in_clear(lab, &path, version);
            let (source, _) = addresses(&path, version);
            assert!(seen.examples[0].contains(&source.to_string()), "{seen:?}");
        }
    }
}

pub(crate) fn frames_cross_what_does_not_encrypt_unanswered_and_nothing_is_left() {
    use Direction::{Both, Decrypt, Encrypt};
    let mut lab = ready_lab();
    let router = Adapter::Router { nat: false };
    for (adapter, direction, ends) in [
        (Adapter::Direct, Both, ["a0", "b0"]),
        (Adapter::Direct, Encrypt, ["a0", "w1"]),
        (Adapter::Direct, Decrypt, ["w0", "b0"]),
        (Adapter::STRAIGHT, Both, ["c0", "c1"]),
        (router, Both, ["a0", "w1"]),
        (Adapter::Bridge, Both, ["a0", "w1"]),
    ] {
        with_dut(&mut lab, adapter, direction, |lab, _, path| {
            assert_eq!([&*path.source.interface, &*path.sink.interface], ends);
            // Nodes beyond a station in a gateway's place receive nothing.
            let beyond = lab.lab.station_interfaces();
            let stations = [(NodeId::A, beyond.0), (NodeId::B, beyond.1)];
            let received = || {
                let found =
                    stations.map(|(id, _)| lab.lab.node(id).call(Request::InterfaceCounters));
                found.map(|response| match response.unwrap() {
                    Response::InterfaceCounters(counters) => counters
                        .into_iter()
                        .filter(|(name, _)| !ends.contains(&name.as_str()))
                        .map(|(_, counters)| counters.rx_packets)
                        .sum::<u64>(),
                    other => panic!("{other:?}"),
                })
            };
            let before = received();
            cross_both_ways(lab, path);
            assert_eq!(received(), before, "{ends:?}");
        });
    }
}

pub(crate) fn a_router_with_nat_translates_the_source_and_tracks_the_flow() {
    let mut lab = ready_lab();
    with_dut(
        &mut lab,
        Adapter::Router { nat: true },
        Direction::Both,
        |lab, running, path| {
            assert_eq!(running.facts["gw1/nat"], "IPv4 masquerade");
            assert!(running.facts["gw1/conntrack"].starts_with("on, up to "));
            assert_eq!(running.facts["gw1/forwarding"], "IPv4 IPv6");
            let seen = cross_in_clear(lab, path, IpVersion::V4);
            assert!(
                seen.examples[0].starts_with("IPv4 UDP 192.0.2.1"),
                "{seen:?}"
            );
            cross_in_clear(lab, path, IpVersion::V6);
            // What comes from outside is routed as it is.
            cross_in_clear(lab, &path.reversed(), IpVersion::V4);
            let counters = lab.lab.dut_counters(running).unwrap();
            assert_eq!(counters["gw1/a1_rx_packets"], 2 * FRAMES);
            assert_eq!(counters["gw1/w0_tx_packets"], 2 * FRAMES);
            assert_eq!(counters["gw1/a1_tx_packets"], FRAMES);
            assert_eq!(counters["gw1/w0_tx_dropped"], 0);
        },
    );
}

pub(crate) fn one_encryptor_alone_seals_what_the_station_opens_and_the_other_way_round() {
    let mut lab = ready_lab();
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        with_dut(
            &mut lab,
            encryptor("auto").adapter,
            direction,
            |lab, running, path| {
                assert_eq!(running.processes.len(), 1);
                let (clear, cipher) = match direction {
                    Direction::Encrypt => (&path.source, &path.sink),
                    _ => (&path.sink, &path.source),
                };
                assert_eq!(clear.peer, None);
                for version in [IpVersion::V4, IpVersion::V6] {
                    seal_and_open(lab, clear, cipher, version);
                }
            },
        );
    }
}

/// From the clear end to the station that opens, and back from the station that seals.
pub(crate) fn seal_and_open(
    lab: &TestLab,
    clear: &FrameEnd,
    cipher: &FrameEnd,
    version: IpVersion,
) {
    let esp = cipher.peer.as_ref().unwrap();
    let (near, far) = (lab.lab.node(clear.node), lab.lab.node(cipher.node));
    let forth = FramePath {
        source: clear.clone(),
        sink: cipher.clone(),
    };
    let (source, target) = addresses(&forth, version);
    let inner = packet(source, target);
    // Whatever lane the flow takes.
    let port = esp.port.unwrap();
    let receivers =
        (0..esp.lanes).map(|lane| start_to_receive(far, &format!("{}:{}", esp.local, port + lane)));
    let receivers: Vec<_> = receivers.collect();
    send_frames(near, clear, &inner, 1);
    let mut sealed = None;
    await_that("a receiver has ended", || {
        let ended = receivers.iter().find(|&&process| {
            let status = far.call(Request::Status { process }).unwrap();
            matches!(status, Response::Status(Some(_)))
        });
        sealed = ended.map(|&receiver| received(far, receiver));
        sealed.is_some()
    });
    let mut expected = inner;
    // One hop: the gateway has forwarded it.
    let hop_limit = if version == IpVersion::V4 { 8 } else { 7 };
    expected[hop_limit] -= 1;
    let mut opened = open(far, esp, &sealed.unwrap());
    if version == IpVersion::V4 {
        // The header's checksum has followed.
        opened[10..12].copy_from_slice(&expected[10..12]);
    }
    assert_eq!(opened, expected);
    for receiver in receivers {
        // The one that has ended is forgotten.
        let _ = far.stop(receiver, PATIENCE);
    }
    // No socket listens there now, and the encryptor must not get an ICMP error.
    let before = counters(lab, cipher);
    send_frames(near, clear, &packet(source, target), FRAMES);
    await_that("they are there", || {
        counters(lab, cipher).rx_packets - before.rx_packets >= FRAMES
    });
    assert_eq!(counters(lab, cipher).tx_packets, before.tx_packets);

    let watch = start_watch(lab, clear, &[]);
    let before = counters(lab, clear);
    let outer = datagram(
        esp.local.into(),
        esp.remote.into(),
        [port; 2],
        &seal(far, esp, &packet(target, source)),
    );
    send_frames(far, cipher, &outer, 1);
    await_that("it is opened", || {
        counters(lab, clear).rx_packets > before.rx_packets
    });
    let seen = end_watch(lab, clear, watch);
    assert_eq!(
        (seen.foreign_frames, seen.marker_frames),
        (1, 1),
        "{seen:?}"
    );
}

pub(crate) fn a_pair_of_encryptors_carries_frames_of_both_ip_versions() {
    let mut lab = ready_lab();
    with_dut(
        &mut lab,
        encryptor("auto").adapter,
        Direction::Both,
        |lab, running, path| {
            let w0 = FrameEnd {
                node: NodeId::Gw1,
                interface: "w0".to_owned(),
                ..path.source.clone()
            };
            let watch = start_watch(lab, &w0, &running.sealed_ports);
            cross_both_ways(lab, path);
            assert_eq!(end_watch(lab, &w0, watch), CipherWatch::default());
        },
    );
}

pub(crate) fn stations_joined_straight_seal_and_open_each_others_packets() {
    let mut lab = ready_lab();
    with_dut(
        &mut lab,
        Adapter::STRAIGHT,
        Direction::Encrypt,
        |lab, _, path| {
            for path in [path.clone(), path.reversed()] {
                let (source, target) = addresses(&path, IpVersion::V4);
                let inner = packet(source, target);
                let ends = [&path.source, &path.sink];
                let [sealer, opener] = ends.map(|end| end.peer.as_ref().unwrap());
                let [from, to] = ends.map(|end| lab.lab.node(end.node));
                assert_eq!((sealer.local, sealer.remote), (opener.remote, opener.local));
                let sealed = seal(from, sealer, &inner);
                assert_eq!(open(to, opener, &sealed), inner);
            }
        },
    );
}

pub(crate) fn what_a_dut_cannot_do_is_refused_in_words() {
    let mut lab = ready_lab();
    let router = dut(Adapter::Router { nat: false });
    match lab.lab.start_dut(&router, LINKS, Direction::Decrypt) {
        Err(LabError::Dut { dut, reason }) => {
            assert_eq!(dut, "under test");
            assert_eq!(reason, "cannot be loaded in direction `decrypt`");
        }
        other => panic!("{other:?}"),
    }
    let small = Links { mtu: 1279, ..LINKS };
    assert!(lab.lab.check_ip(IpVersion::V4, small).is_ok());
    assert!(lab.lab.check_ip(IpVersion::V6, LINKS).is_ok());
    let error = lab
        .lab
        .check_ip(IpVersion::V6, small)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("1279 B is too small for IPv6, which needs 1280 B"),
        "{error}"
    );
}

pub(crate) fn ipv6_is_back_after_an_mtu_that_was_too_small_for_it() {
    let mut lab = ready_lab();
    let small = Links {
        mtu: 1000,
        cipher_mtu: 1100,
        ..LINKS
    };
    lab.lab.configure(small).unwrap();
    let adapters = [Adapter::Direct, encryptor("auto").adapter];
    for adapter in adapters.clone() {
        let running = lab
            .lab
            .start_dut(&dut(adapter), small, Direction::Both)
            .unwrap();
        cross_in_clear(&lab, running.frame_path.as_ref().unwrap(), IpVersion::V4);
        lab.lab.stop_dut(running).unwrap();
    }
    lab.lab.configure(LINKS).unwrap();
    for adapter in adapters {
        with_dut(&mut lab, adapter, Direction::Both, |lab, _, path| {
            cross_both_ways(lab, path);
        });
    }
}

//! Frames that the station seals and opens by itself.

use crate::wire_tap::{KeyPair, Player, Still, Tap, all_frames, esp, receive, send};
use etherparse::{IpNumber, NetSlice, SlicedPacket};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use tempfile::TempDir;
use traffic::{Analyser, Generator, KeyUse, Keys, Step, TrafficError, sender_threads};
use traffic_spec::{IkeKeys, KeySource, Part, Peer, Receive, Received, Send};
use wire::Suite;
use wire::mix::FrameMix;

const TAG: u16 = 3;

fn sealing(keys: &KeyPair, outer_ipv6: bool, inner_ipv6: bool, lanes: u16) -> Send {
    let mut spec = send(inner_ipv6, FrameMix::named("imix2").unwrap());
    spec.frames.flows = 12;
    spec.frames.tunnels = 5;
    spec.peer = Some(esp(&keys.a, outer_ipv6, lanes));
    spec
}

fn opening(keys: &KeyPair, outer_ipv6: bool, lanes: u16) -> Receive {
    Receive {
        peer: Some(esp(&keys.b, outer_ipv6, lanes)),
        ..receive(12)
    }
}

fn open_keys(esp: &Option<Peer>) -> Keys {
    Keys::open(esp.as_ref().unwrap(), KeyUse::Seal).unwrap()
}

fn analyse(spec: &Receive, keys: &Keys, frames: Vec<(Vec<u8>, u64)>) -> Received {
    let mut player = Player(frames.into());
    let mut analyser = Analyser::new(spec, TAG, Some(keys)).unwrap();
    while analyser.poll(&mut player, &Still::default()).unwrap() > 0 {}
    analyser.received()
}

fn refused(reasons: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let owned = |&(name, count): &(&str, u64)| (name.to_owned(), count);
    reasons.iter().map(owned).collect()
}

#[test]
fn what_is_sealed_is_opened_over_any_ip_version_and_number_of_lanes() {
    for (outer, inner) in [(false, false), (false, true), (true, false), (true, true)] {
        for lanes in [1, 5, 40] {
            let keys = KeyPair::new();
            let (send, receive) = (
                sealing(&keys, outer, inner, lanes),
                opening(&keys, outer, lanes),
            );
            let frames = all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
            let received = analyse(&receive, &open_keys(&receive.peer), frames);
            assert_eq!(received.frames, 1000, "{outer} {inner} {lanes}");
            // Sizes are those of the clear side: ten rounds of the mix.
            assert_eq!(received.frame_bytes, 10 * send.frames.mix.round_bytes());
            let others = received.foreign + received.corrupted + received.stale;
            assert_eq!((others, received.refused), (0, BTreeMap::new()));
        }
    }
}

#[test]
fn each_lane_of_each_tunnel_has_keys_of_its_own() {
    for lanes in [1, 3] {
        let keys = KeyPair::new();
        let (mut send, mut receive) = (
            sealing(&keys, false, false, lanes),
            opening(&keys, false, lanes),
        );
        for esp in [&mut send.peer, &mut receive.peer] {
            esp.as_mut().unwrap().tunnels = 5;
        }
        let mut frames = all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
        // Behind 42 bytes the SPI, whose low bits are the slot; flow i has tunnel i mod 5 and lane
        // i mod `lanes`.
        let slots = frames.iter().map(|(frame, _)| frame[45]).take(12);
        let expected = (0..12u8).map(|flow| flow % 5 * lanes as u8 + flow % lanes as u8);
        assert!(slots.eq(expected));
        // A sixth tunnel has no keys, and a lane's SPI at another lane's port matches no SA.
        frames[100].0[45] = 5 * lanes as u8;
        if lanes > 1 {
            frames[102].0[37] ^= 1;
        }
        let received = analyse(&receive, &open_keys(&receive.peer), frames);
        let lost = if lanes > 1 { 2 } else { 1 };
        assert_eq!(received.frames, 1000 - lost);
        assert_eq!(received.refused, refused(&[("no_sa", lost)]));
    }
}

#[test]
fn refused_packets_are_counted_by_reason() {
    let keys = KeyPair::new();
    let (send, receive) = (sealing(&keys, false, false, 1), opening(&keys, false, 1));
    let mut frames = all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
    // ESP begins behind 42 bytes: damaged ciphertext, a replay, another lane's SPI, a runt, a
    // keepalive.
    frames[10].0[70] ^= 1;
    frames[20] = frames[19].clone();
    frames[30].0[45] ^= 1;
    let short = |frame: &mut Vec<u8>, payload: &[u8]| {
        frame.truncate(42);
        frame.extend(payload);
        frame[17] = 28 + payload.len() as u8;
        frame[16] = 0;
        frame[38..40].copy_from_slice(&[0, 8 + payload.len() as u8]);
    };
    short(&mut frames[40].0, &[1, 2]);
    short(&mut frames[50].0, &[0xff]);
    // In clear, and to another port: foreign.
    frames[60] = all_frames(
        &crate::wire_tap::send(false, FrameMix::fixed(64)),
        TAG,
        Part::WHOLE,
        None,
    )
    .swap_remove(0);
    frames[70].0[37] ^= 0x40;
    let received = analyse(&receive, &open_keys(&receive.peer), frames);
    let reasons = [
        ("integrity_failed", 1),
        ("keepalive", 1),
        ("no_sa", 1),
        ("replayed", 1),
        ("runt", 1),
    ];
    assert_eq!(received.refused, refused(&reasons));
    assert_eq!((received.frames, received.foreign), (993, 2));
}

fn bare(peer: Option<Peer>) -> Option<Peer> {
    peer.map(|peer| Peer { port: None, ..peer })
}

#[test]
fn bare_esp_is_sealed_and_opened_and_8_bytes_shorter_than_in_udp() {
    for (outer, inner) in [(false, false), (false, true), (true, false), (true, true)] {
        let keys = KeyPair::new();
        let (mut send, mut receive) = (sealing(&keys, outer, inner, 1), opening(&keys, outer, 1));
        let in_udp = all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
        (send.peer, receive.peer) = (bare(send.peer), bare(receive.peer));
        let frames = all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
        for ((frame, _), (in_udp, _)) in frames.iter().zip(&in_udp) {
            assert_eq!(frame.len() + 8, in_udp.len());
            let packet = SlicedPacket::from_ethernet(frame).unwrap();
            let Some(net) = packet.net else {
                panic!("{frame:?}")
            };
            let payload = net.ip_payload_ref().unwrap();
            assert_eq!(payload.ip_number, IpNumber(50));
            assert_eq!(
                payload.payload.len(),
                frame.len() - if outer { 54 } else { 34 }
            );
            if let NetSlice::Ipv4(ip) = net {
                let header = ip.header().to_header();
                assert_eq!(header.header_checksum, header.calc_header_checksum());
            }
        }
        let received = analyse(&receive, &open_keys(&receive.peer), frames);
        assert_eq!(received.frames, 1000, "{outer} {inner}");
        assert_eq!(received.frame_bytes, 10 * send.frames.mix.round_bytes());
        let others = received.foreign + received.corrupted + received.stale;
        assert_eq!((others, received.refused), (0, BTreeMap::new()));
    }
}

#[test]
fn what_only_resembles_the_peers_bare_esp_is_foreign_or_refused() {
    let keys = KeyPair::new();
    let (mut send, mut receive) = (sealing(&keys, false, false, 1), opening(&keys, false, 1));
    let in_udp = all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
    (send.peer, receive.peer) = (bare(send.peer), bare(receive.peer));
    let mut frames = all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
    // AH, a first and a later fragment, and ESP in UDP.
    frames[10].0[23] = 51;
    frames[20].0[20] = 0x20;
    frames[30].0[21] = 1;
    frames[40] = in_udp[40].clone();
    // ESP begins behind 34 bytes: another SPI, 0 as in front of IKE's messages, damaged ciphertext,
    // a replay, and a packet longer than its frame.
    frames[50].0[37] ^= 1;
    frames[60].0[34..38].fill(0);
    frames[70].0[70] ^= 1;
    frames[80] = frames[79].clone();
    frames[90].0[16] = 0xff;
    let received = analyse(&receive, &open_keys(&receive.peer), frames);
    let reasons = [
        ("integrity_failed", 1),
        ("no_sa", 2),
        ("replayed", 1),
        ("runt", 1),
    ];
    assert_eq!(received.refused, refused(&reasons));
    assert_eq!((received.frames, received.foreign), (991, 4));
}

#[test]
fn a_flood_of_forged_spis_does_not_keep_the_peer_out() {
    let keys = KeyPair::new();
    let (send, receive) = (sealing(&keys, false, false, 40), opening(&keys, false, 40));
    let good = all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
    let mut frames = Vec::new();
    for (index, frame) in good.into_iter().enumerate() {
        let mut forged = frame.clone();
        // An epoch that the peer may use later.
        forged.0[42] = index as u8 % 100 + 1;
        frames.push(frame);
        frames.push(forged);
    }
    let received = analyse(&receive, &open_keys(&receive.peer), frames);
    // Seven frames make a batch, and two forgeries are tried in each: the peer's frames are never
    // refused twice.
    assert!(received.frames > 950, "{received:?}");
    assert_eq!(
        received.refused.values().sum::<u64>(),
        2000 - received.frames
    );
}

#[test]
fn copies_of_an_epoch_that_is_over_are_not_opened() {
    let keys = KeyPair::new();
    let (send, receive) = (sealing(&keys, false, false, 1), opening(&keys, false, 1));
    // Keys are opened twice, as by a restarted peer.
    let epoch = || all_frames(&send, TAG, Part::WHOLE, Some(&open_keys(&send.peer)));
    let (mut old, new) = (epoch(), epoch());
    old.truncate(300);
    let frames = [old.clone(), new, old].concat();
    let received = analyse(&receive, &open_keys(&receive.peer), frames);
    // The new epoch's first frames repeat the old one's, which is distinguished from a replay.
    assert_eq!((received.frames, received.duplicated), (1000, 300));
    assert_eq!(received.refused, refused(&[("no_sa", 300)]));
}

#[test]
fn each_lane_belongs_to_one_thread() {
    let keys = KeyPair::new();
    let spec = sealing(&keys, false, false, 6);
    for (asked, used) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3), (6, 6), (200, 6)] {
        assert_eq!(sender_threads(&spec, asked), used);
    }
    let opened = open_keys(&spec.peer);
    let mut frames = Vec::new();
    let mut owners = BTreeSet::new();
    for index in 0..3 {
        let part = all_frames(&spec, TAG, Part { index, of: 3 }, Some(&opened));
        for (frame, _) in &part {
            owners.insert((frame[36..38].to_vec(), index));
        }
        frames.extend(part);
    }
    assert_eq!(owners.len(), 6);
    let receive = opening(&keys, false, 6);
    let received = analyse(&receive, &open_keys(&receive.peer), frames);
    assert_eq!((received.frames, received.refused), (1000, BTreeMap::new()));
}

#[test]
fn each_tunnel_belongs_to_one_thread() {
    let keys = KeyPair::new();
    let mut spec = sealing(&keys, false, false, 1);
    let peer = spec.peer.as_mut().unwrap();
    (spec.frames.tunnels, peer.tunnels) = (6, 6);
    for (asked, used) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3), (6, 6), (200, 6)] {
        assert_eq!(sender_threads(&spec, asked), used);
    }
    let opened = open_keys(&spec.peer);
    let mut owners = BTreeSet::new();
    for index in 0..3 {
        for (frame, _) in all_frames(&spec, TAG, Part { index, of: 3 }, Some(&opened)) {
            // The low bits of the SPI are the tunnel.
            owners.insert((frame[45], index));
        }
    }
    let expected = (0..6u8).map(|tunnel| (tunnel, u32::from(tunnel) % 3));
    assert_eq!(owners, expected.collect());
}

#[test]
fn what_cannot_be_sealed_is_refused_with_a_reason() {
    let keys = KeyPair::new();
    let good = esp(&keys.a, false, 1);
    let error = |esp: Peer| {
        Keys::open(&esp, KeyUse::Seal)
            .err()
            .expect("it must be refused")
    };
    let lanes = Peer {
        lanes: 4096,
        tunnels: 2,
        ..good.clone()
    };
    assert!(matches!(error(lanes), TrafficError::Lanes { .. }));
    let ports = Peer {
        lanes: 2,
        port: Some(65_535),
        ..good.clone()
    };
    assert!(matches!(error(ports), TrafficError::Lanes { .. }));
    let bare = Peer {
        lanes: 2,
        port: None,
        ..good.clone()
    };
    assert!(matches!(error(bare), TrafficError::Lanes { .. }));
    let wireguard = Peer {
        keys: KeySource::WireGuard("/nowhere/wg.conf".to_owned()),
        suite: Suite::ChaCha20Poly1305,
        port: None,
        ..good.clone()
    };
    assert!(matches!(error(wireguard), TrafficError::WireGuardPort));
    let engine = Peer {
        engine: "abacus".to_owned(),
        ..good.clone()
    };
    assert!(matches!(error(engine), TrafficError::Engine(_)));
    let file = Peer {
        keys: KeySource::File("/nowhere/a.key".to_owned()),
        ..good.clone()
    };
    assert!(matches!(error(file), TrafficError::Keys(_)));
    let versions = Peer {
        remote: "2001:db8::1".parse().unwrap(),
        ..good
    };
    assert!(matches!(
        error(versions),
        TrafficError::MixedVersions { .. }
    ));
}

#[test]
#[should_panic(expected = "a sender of sealed packets has keys")]
fn nothing_leaves_in_clear_that_should_be_sealed() {
    let spec = sealing(&KeyPair::new(), false, false, 1);
    let _ = all_frames(&spec, TAG, Part::WHOLE, None);
}

#[test]
#[should_panic(expected = "parts divide lanes")]
fn no_lane_is_shared_by_two_threads() {
    let keys = KeyPair::new();
    let spec = sealing(&keys, false, false, 3);
    let opened = open_keys(&spec.peer);
    let _ = all_frames(&spec, TAG, Part { index: 0, of: 2 }, Some(&opened));
}

/// Logs of two strongSwan daemons with four pairs of SAs, two of which replace the others.
const IKE_LOGS: [&str; 2] = [
    include_str!("../../src/keys/fixtures/gw1-rekeys.log"),
    include_str!("../../src/keys/fixtures/gw2-rekeys.log"),
];

fn ike(folder: &TempDir, gateway: &str, log: &str) -> Peer {
    let path = |name: &str| folder.path().join(format!("{gateway}.{name}"));
    fs::write(path("log"), log).unwrap();
    let ike = IkeKeys {
        log: path("log").display().to_string(),
        sequences: path("sequences").display().to_string(),
    };
    Peer {
        keys: KeySource::Ike(ike),
        ..esp(&path("none"), false, 1)
    }
}

/// Where a log begins to renew both pairs of SAs.
fn renewal(log: &str) -> usize {
    log.find("establishing CHILD_SA c0{3}").unwrap() - "14[IKE] ".len()
}

/// Where a log still has all pairs.
fn in_service(log: &str) -> usize {
    let end = log.find("INSTALLED => DESTROYING").unwrap();
    log[..end].rfind('\n').unwrap() + 1
}

/// Adds lines to the log of a sender's daemon.
fn log_more(sending: &Send, lines: &str) {
    let Some(KeySource::Ike(ike)) = sending.peer.as_ref().map(|esp| &esp.keys) else {
        panic!()
    };
    let mut file = File::options().append(true).open(&ike.log).unwrap();
    file.write_all(lines.as_bytes()).unwrap();
}

/// SPI and sequence number of each packet.
fn numbers(frames: &[Vec<u8>]) -> BTreeSet<(u32, u32)> {
    let word = |frame: &[u8], at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
    let frames = frames.iter();
    frames.map(|it| (word(it, 42), word(it, 46))).collect()
}

/// Both threads learn of the renewal, though only one of them reads it from the log.
#[test]
fn each_thread_seals_with_the_agreed_keys_of_its_own_tunnels_and_changes_them() {
    let folder = testing::folder().unwrap();
    // The second tunnel's addresses follow those of the first.
    let [peer_log, log] = IKE_LOGS.map(|log| {
        let ends = [
            ("198.18.1.1/32", "198.18.0.2/32"),
            ("198.18.1.2/32", "198.18.0.3/32"),
        ];
        ends.iter()
            .fold(log.to_owned(), |log, (from, to)| log.replace(from, to))
    });
    let mut sending = send(false, FrameMix::named("imix2").unwrap());
    sending.addresses.source = [198, 18, 0, 2].into();
    sending.addresses.target = [198, 18, 0, 1].into();
    (sending.frames.flows, sending.frames.tunnels) = (4, 2);
    let two = |peer: Peer| Some(Peer { tunnels: 2, ..peer });
    sending.peer = two(ike(&folder, "gw2", &log[..renewal(&log)]));
    let receiving = Receive {
        peer: two(ike(&folder, "gw1", &peer_log[..in_service(&peer_log)])),
        frames: sending.frames.clone(),
        ..receive(4)
    };
    assert_eq!(
        [1, 2, 3].map(|threads| sender_threads(&sending, threads)),
        [1, 2, 2]
    );
    let keys = open_keys(&sending.peer);
    let mut threads: Vec<_> = (0..2)
        .map(|index| Generator::new(&sending, TAG, Part { index, of: 2 }, Some(&keys)).unwrap())
        .map(|generator| (generator, Tap::new()))
        .collect();
    for now_ns in (0..1_000_000_000).step_by(1_000_000) {
        if now_ns == 300_000_000 {
            log_more(&sending, &log[renewal(&log)..in_service(&log)]);
        }
        for (generator, tap) in &mut threads {
            while generator.step(tap, now_ns).unwrap() == Step::Sent {}
        }
    }
    let [first, second] = [0, 1].map(|thread| numbers(&threads[thread].1.frames));
    assert_eq!(first.len() + second.len(), 1000, "no number is used twice");
    let spis = |numbers: &BTreeSet<(u32, u32)>| numbers.iter().map(|(spi, _)| *spi).collect();
    let of_tunnel: [BTreeSet<u32>; 2] = [spis(&first), spis(&second)];
    let expected = [[0x66b3_3c00, 0xbc3c_123f], [0x9740_f3b7, 0xf7a1_ef9a]];
    assert_eq!(of_tunnel, expected.map(BTreeSet::from));
    let frames = threads.into_iter().flat_map(|(_, tap)| tap.frames);
    let frames = frames.map(|frame| (frame, 0)).collect();
    let received = analyse(&receiving, &open_keys(&receiving.peer), frames);
    assert_eq!((received.frames, received.refused), (1000, BTreeMap::new()));
}

#[test]
fn nothing_is_lost_when_agreed_keys_change_in_mid_trial() {
    let folder = testing::folder().unwrap();
    let [peer_log, log] = IKE_LOGS;
    let (renewal, end) = (renewal(log), in_service(log));
    let mut sending = send(false, FrameMix::named("imix2").unwrap());
    sending.addresses.source = [198, 18, 1, 2].into();
    sending.addresses.target = [198, 18, 1, 1].into();
    sending.peer = Some(ike(&folder, "gw2", &log[..renewal]));
    let receiving = Receive {
        peer: Some(ike(&folder, "gw1", &peer_log[..in_service(peer_log)])),
        ..receive(1)
    };
    let keys = open_keys(&sending.peer);
    let mut generator = Generator::new(&sending, TAG, Part::WHOLE, Some(&keys)).unwrap();
    let mut tap = Tap::new();
    let mut now_ns = 0;
    let mut renewed = false;
    loop {
        match generator.step(&mut tap, now_ns).unwrap() {
            Step::Early(time_ns) => now_ns = time_ns,
            Step::Done => break,
            _ => {}
        }
        if now_ns > 300_000_000 && !renewed {
            log_more(&sending, &log[renewal..end]);
            renewed = true;
        }
    }
    let numbers = numbers(&tap.frames);
    assert_eq!(numbers.len(), 1000, "no number is used twice");
    let of = |spi| numbers.iter().filter(|(it, _)| *it == spi).count();
    let (old, new) = (of(0x9740_f3b7), of(0xf7a1_ef9a));
    // How soon it looks depends on how long a look took.
    assert!(old >= 300 && new > 0 && old + new == 1000, "{old} {new}");
    let frames = tap.frames.into_iter().map(|frame| (frame, 0)).collect();
    let received = analyse(&receiving, &open_keys(&receiving.peer), frames);
    assert_eq!((received.frames, received.refused), (1000, BTreeMap::new()));
}

//! The reflector: what it sends back, what it does not, and round trips over a veth pair.

use crate::stations::{Station, in_namespace, paced, veth_pair};
use crate::wire_tap::{Player, Tap, Timed, addresses, all_frames, receive, send};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use port::{FramePortKind, Stop};
use proptest::prelude::*;
use std::net::IpAddr;
use traffic::{ServeError, TrafficError, analysers, exchange_ends, reflect_all};
use traffic_spec::{Part, READY, Receive, Received, Reflect, Reflected, Role, Sent, Spec};
use wire::mix::{Contents, FrameMix};

const TAG: u16 = 500;

/// Source and target of a frame at each layer, as an independent dissector reads them.
type Ends = [(Vec<u8>, IpAddr, u16); 2];

/// The ends of a frame. Its checksums must be right.
fn ends(frame: &[u8]) -> Ends {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(etherparse::LinkSlice::Ethernet2(link)) = &packet.link else {
        panic!("{packet:?}");
    };
    let Some(TransportSlice::Udp(udp)) = &packet.transport else {
        panic!("{packet:?}");
    };
    let header = udp.to_header();
    let (source, target) = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let ip = ip.header().to_header();
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            let checksum = header.calc_checksum_ipv4(&ip, udp.payload()).unwrap();
            assert_eq!(header.checksum, checksum);
            (IpAddr::from(ip.source), IpAddr::from(ip.destination))
        }
        Some(NetSlice::Ipv6(ip)) => {
            let ip = ip.header().to_header();
            let checksum = header.calc_checksum_ipv6(&ip, udp.payload()).unwrap();
            assert_eq!(header.checksum, checksum);
            (IpAddr::from(ip.source), IpAddr::from(ip.destination))
        }
        other => panic!("{other:?}"),
    };
    [
        (link.source().to_vec(), source, header.source_port),
        (link.destination().to_vec(), target, header.destination_port),
    ]
}

/// The bytes of a frame that are no address and no port.
fn rest(frame: &[u8]) -> Vec<u8> {
    let mut rest = frame.to_vec();
    let tag = if frame[12..14] == [0x81, 0] { 4 } else { 0 };
    let addresses = match frame[14 + tag] >> 4 {
        4 => 26..38,
        _ => 22..58,
    };
    rest.drain(addresses.start + tag..addresses.end + tag);
    rest.drain(..12);
    rest
}

fn frames(ipv6: bool, bytes: u16, contents: Contents) -> Vec<Timed> {
    let mut send = send(ipv6, FrameMix::fixed(bytes));
    send.frames.flows = 20;
    send.frames.contents = contents;
    send.duration_ns = 40_000_000;
    all_frames(&send, TAG, Part::WHOLE, None)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_ends_of_a_frame_are_exchanged(
        ipv6: bool,
        bytes in 84u16..3000,
        is_random: bool,
        tagged: bool,
    ) {
        let contents = if is_random { Contents::Random } else { Contents::Fixed };
        for (mut frame, _) in frames(ipv6, bytes, contents) {
            if tagged {
                frame.splice(12..12, [0x81, 0, 0, 7]);
            }
            let mut back = frame.clone();
            prop_assert!(exchange_ends(&mut back));
            let [source, target] = ends(&frame);
            prop_assert_eq!(ends(&back), [target, source]);
            prop_assert_eq!(rest(&back), rest(&frame));
            prop_assert!(exchange_ends(&mut back));
            prop_assert_eq!(back, frame);
        }
    }

    #[test]
    fn bytes_that_are_no_whole_datagram_are_left_as_they_are(
        ipv6: bool,
        cut in 1usize..60,
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut other = bytes.clone();
        if !exchange_ends(&mut other) {
            prop_assert_eq!(&other, &bytes);
        }
        let (frame, _) = frames(ipv6, 100, Contents::Fixed).remove(0);
        let mut short = frame[..frame.len() - cut].to_vec();
        prop_assert!(!exchange_ends(&mut short));
        prop_assert_eq!(&short[..], &frame[..frame.len() - cut]);
    }
}

/// What a reflector does with these frames, which include all of its 40.
fn reflect(arriving: Vec<Timed>, room: usize) -> (Vec<Vec<u8>>, Received, Sent, Reflected) {
    let receive = Receive {
        expected: Some(40),
        ..receive(20)
    };
    let analysers = analysers(&receive, TAG, 1, None).unwrap();
    let mut receivers = [Player(arriving.into())];
    let mut senders = [Tap { room, ..Tap::new() }];
    let ports = (&mut receivers[..], &mut senders[..]);
    let stop = Stop::new().unwrap();
    let (received, sent, reflected) = reflect_all(&receive, analysers, ports, &stop).unwrap();
    let [tap] = senders;
    (tap.frames, received, sent, reflected)
}

#[test]
fn every_intact_new_frame_of_the_trial_goes_back_once_and_no_other() {
    let own = frames(false, 200, Contents::Fixed);
    assert_eq!(own.len(), 40);
    let mut other_trial = send(false, FrameMix::fixed(200));
    other_trial.duration_ns = 5_000_000;
    let stale = all_frames(&other_trial, TAG + 1, Part::WHOLE, None);
    let mut damaged = own[3].clone();
    damaged.0[150] ^= 1;
    let mut reflected = own[2].clone();
    assert!(exchange_ends(&mut reflected.0));
    let foreign = (vec![0x66; 80], 7);

    let mut arriving = stale;
    arriving.extend([damaged, foreign, reflected.clone()]);
    for frame in &own[..39] {
        arriving.extend([frame.clone(), frame.clone(), reflected.clone()]);
    }
    arriving.push(own[39].clone());
    for room in [1, 3, usize::MAX] {
        let (back, received, sent, reflected) = reflect(arriving.clone(), room);
        let expected = own.iter().map(|(frame, _)| {
            let mut frame = frame.clone();
            assert!(exchange_ends(&mut frame));
            frame
        });
        assert!(back.iter().eq(expected.collect::<Vec<_>>().iter()));
        assert_eq!((received.frames, received.duplicated), (40, 39));
        assert_eq!((received.stale, received.corrupted), (5, 1));
        // The foreign one, and those that are on their way back already.
        assert_eq!(received.foreign, 41);
        assert_eq!((sent.intended, sent.frames), (40, 40));
        assert_eq!(sent.frame_bytes, received.frame_bytes);
        assert!(received.latency.is_empty() && received.delays.is_empty());
        let timed: u64 = reflected.residence.iter().map(|(_, frames)| frames).sum();
        assert_eq!(timed, 40);
        assert!(reflected.is_from_arrival);
    }
}

#[test]
fn a_station_times_round_trips_over_a_veth_pair() {
    in_namespace(|| {
        veth_pair();
        for (contents, ipv6) in [(Contents::Fixed, false), (Contents::Random, true)] {
            let mut send = paced(20_000);
            if ipv6 {
                (send.addresses.source, send.addresses.target) = addresses(true);
                send.frames.mix = FrameMix::fixed(128);
            }
            send.frames.contents = contents;
            let attempt = || {
                let send = send.clone();
                let reflect = Reflect {
                    frames: send.frames.clone(),
                    expected: Some(6000),
                    send_port: None,
                };
                let receive = Receive {
                    expected: Some(6000),
                    reflected: true,
                    ..Receive::new(send.frames.clone())
                };
                let reflector = Station::start("p1", None, 1, Role::Reflect(reflect));
                assert_eq!(reflector.line(), READY);
                let receiver = Station::start("p0", None, 1, Role::Receive(receive));
                assert_eq!(receiver.line(), READY);
                let sender = Station::start("p0", None, 1, Role::Send(send));
                assert_eq!(sender.line(), READY);
                let (sender, receiver) = (sender.report(), receiver.report());
                let reflector = reflector.report();

                assert_eq!(sender.sent.unwrap().frames, 6000);
                let (there, back) = (reflector.received.unwrap(), reflector.sent.unwrap());
                assert_eq!((there.frames, back.frames), (6000, 6000));
                let received = receiver.received.unwrap();
                assert_eq!(received.frames, 6000);
                assert_eq!(received.frame_bytes, sender.sent.unwrap().frame_bytes);
                assert_eq!(received.corrupted + received.duplicated + received.stale, 0);
                assert_eq!(reflector.port, Some(FramePortKind::Packet));
                let residence = reflector.reflected.unwrap();
                assert!(residence.is_from_arrival);
                // Each round trip includes the frame's time at the reflector: sorted, no trip is
                // shorter than the residence at the same place. A pause of the machine between
                // sending a batch and reading the clock after it shifts that whole batch.
                let sorted = |buckets: &[(u64, u64)]| -> Vec<u64> {
                    let times = buckets
                        .iter()
                        .map(|&(ns, frames)| vec![ns; frames as usize]);
                    times.collect::<Vec<_>>().concat()
                };
                let (trips, stays) = (sorted(&received.latency), sorted(&residence.residence));
                assert_eq!((trips.len(), stays.len()), (6000, 6000));
                // 20 us: the offset of two clocks of the kernel is read for each batch.
                let slack_ns = 20_000;
                let is_shorter =
                    |(trip, stay): &(&u64, &u64)| *trip + slack_ns < *stay - *stay / 1000;
                trips.iter().zip(&stays).filter(is_shorter).count()
            };
            // A busy machine shifts a few batches of the 6000 frames; a wrong clock would shift
            // nearly all frames.
            let mut shorter = Vec::new();
            while shorter.last().is_none_or(|&frames| frames > 600) {
                assert!(shorter.len() < 10, "{shorter:?} of 6000");
                shorter.push(attempt());
            }
        }
    });
}

#[test]
fn a_reflector_by_plain_sockets_is_refused() {
    let role = || {
        Role::Reflect(Reflect {
            frames: send(false, FrameMix::fixed(64)).frames,
            expected: Some(1),
            send_port: Some(FramePortKind::Packet),
        })
    };
    in_namespace(move || {
        veth_pair();
        let spec = Spec {
            interface: "p1".to_owned(),
            port: Some(FramePortKind::Socket),
            threads: 1,
            tag: TAG,
            role: role(),
        };
        let input = serde_json::to_string(&spec).unwrap();
        let refused = traffic::serve(&input, Vec::new(), &Stop::new().unwrap()).unwrap_err();
        let ServeError::Traffic(TrafficError::ReflectPort { kind }) = &refused else {
            panic!("{refused}");
        };
        assert_eq!(*kind, FramePortKind::Socket);
        assert!(refused.to_string().contains("use AF_PACKET or AF_XDP"));
    });
}

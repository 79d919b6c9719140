//! The generator: on time and exact to the frame with any behaviour of the port.

use crate::wire_tap::{Still, Tap, all_frames, send};
use etherparse::{SlicedPacket, TransportSlice};
use port::Stop;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use traffic::{Generator, SOURCE_PORT_MIN, Step, TrafficError, sender_threads};
use traffic_spec::{Part, TEST_PORT, Then};
use wire::mix::FrameMix;
use wire::stamp::Stamp;

/// The stamp of an IPv4 frame.
fn stamp(frame: &[u8]) -> Stamp {
    Stamp::read(&frame[42..]).expect("the stamp is intact")
}

#[test]
fn a_paced_second_has_every_frame_in_its_place() {
    let mut spec = send(false, FrameMix::named("imix").unwrap());
    spec.frames.flows = 7;
    spec.frames_per_s = Some(12_000);
    let mut tap = Tap::new();
    let clock = Still::default();
    clock.0.set(5_000_000_000);
    let sent = traffic::send(&mut tap, &spec, 9, &clock, &Stop::new().unwrap()).unwrap();
    assert_eq!((sent.intended, sent.frames), (12_000, 12_000));
    assert_eq!((sent.late_frames, sent.late_ns_max), (0, 0));
    assert_eq!(sent.frame_bytes, 1000 * (7 * 64 + 4 * 594 + 1518));
    assert_eq!(sent.elapsed_ns, 11_999 * 1_000_000_000 / 12_000);
    for (index, frame) in (0u64..).zip(&tap.frames) {
        let expected = Stamp {
            tag: 9,
            flow: (index % 7) as u16,
            sequence: (index / 7) as u32,
            intended_ns: 5_000_000_000 + index * 1_000_000_000 / 12_000,
        };
        assert_eq!(stamp(frame), expected);
    }
}

#[test]
fn flows_differ_by_port_within_a_tunnel_and_tunnels_by_address() {
    let mut spec = send(false, FrameMix::fixed(64));
    spec.frames.flows = 10;
    spec.frames.tunnels = 4;
    let frames = all_frames(&spec, 1, Part::WHOLE, None);
    for (flow, (frame, _)) in (0u8..10).zip(&frames) {
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = &packet.net else {
            panic!("not IPv4")
        };
        let Some(TransportSlice::Udp(udp)) = &packet.transport else {
            panic!("not UDP")
        };
        // The tunnel's number is added to the whole address: 10.1.0.254 is followed by .255 and
        // 10.1.1.0.
        let address =
            |net: u8| Ipv4Addr::from(u32::from_be_bytes([10, net, 0, 254]) + u32::from(flow % 4));
        assert_eq!(ip.header().source_addr(), address(1));
        assert_eq!(ip.header().destination_addr(), address(2));
        assert_eq!(udp.source_port(), SOURCE_PORT_MIN + u16::from(flow / 4));
        assert_eq!(udp.destination_port(), TEST_PORT);
    }
}

#[test]
fn a_port_without_room_makes_frames_late_and_loses_none() {
    let spec = send(false, FrameMix::fixed(64));
    let mut generator = Generator::new(&spec, 1, Part::WHOLE, None).unwrap();
    let mut tap = Tap::new();
    tap.room = 0;
    // The port has no room for 100 ms: then 101 frames are due, the first of them late by all that.
    for now_ns in (0..100_000_000).step_by(1_000_000) {
        assert_eq!(generator.step(&mut tap, now_ns).unwrap(), Step::Full);
    }
    tap.room = 10;
    let mut now_ns = 100_000_000;
    loop {
        match generator.step(&mut tap, now_ns).unwrap() {
            Step::Sent => {}
            Step::Early(time_ns) => now_ns = time_ns,
            Step::Full => unreachable!("there is room again"),
            Step::Done => break,
        }
    }
    let sent = generator.finish(now_ns);
    assert_eq!((sent.intended, sent.frames), (1000, 1000));
    assert_eq!(sent.late_ns_max, 100_000_000);
    // Frames of the last millisecond were at most that late.
    assert_eq!(sent.late_frames, 99);
    for (index, frame) in (0u64..).zip(&tap.frames) {
        assert_eq!(stamp(frame).intended_ns, index * 1_000_000);
    }
}

#[test]
fn after_a_stall_the_rate_is_kept_and_the_schedule_moves() {
    let mut spec = send(false, FrameMix::fixed(64));
    spec.keep_rate = true;
    let mut generator = Generator::new(&spec, 1, Part::WHOLE, None).unwrap();
    let mut tap = Tap::new();
    let mut left_ns = Vec::new();
    let mut now_ns = 0;
    loop {
        // Two stalls: a long one of the port, a short one of the generator.
        tap.room = if (200_000_000..300_000_000).contains(&now_ns) {
            0
        } else {
            64
        };
        match generator.step(&mut tap, now_ns).unwrap() {
            Step::Sent => left_ns.resize(tap.frames.len(), now_ns),
            Step::Full => now_ns += 100_000,
            Step::Early(600_000_000) => now_ns = 600_900_000,
            Step::Early(time_ns) => now_ns = time_ns,
            Step::Done => break,
        }
    }
    let sent = generator.finish(now_ns);
    assert_eq!((sent.intended, sent.frames), (1000, 1000));
    // In no time did more frames leave than the rate has, but for a millisecond's.
    for (first, from_ns) in left_ns.iter().enumerate() {
        for (last, to_ns) in left_ns.iter().enumerate().skip(first) {
            let frames = (last - first + 1) as u64;
            assert!(frames <= (to_ns - from_ns) / 1_000_000 + 2, "{frames}");
        }
    }
    // The stall makes the trial longer, and the frames of the burst after it late; those that
    // follow keep to the schedule that has moved. A stall short of a millisecond does neither.
    assert_eq!(sent.elapsed_ns, 999_000_000 + 99_000_000);
    assert_eq!((sent.late_ns_max, sent.late_frames), (100_000_000, 2));
    // Latency counts from the schedule as it is: the receiver is not to blame for the stall.
    for (frame, left_ns) in tap.frames.iter().zip(left_ns) {
        assert!(left_ns - stamp(frame).intended_ns <= 1_000_000);
    }
}

#[test]
fn without_a_rate_it_sends_until_the_time_is_up() {
    let mut spec = send(false, FrameMix::fixed(128));
    spec.frames_per_s = None;
    let mut generator = Generator::new(&spec, 1, Part::WHOLE, None).unwrap();
    generator.begin_at(500);
    let mut tap = Tap::new();
    assert_eq!(generator.step(&mut tap, 499).unwrap(), Step::Early(500));
    for now_ns in [500, 600, 1_000_000_499] {
        assert_eq!(generator.step(&mut tap, now_ns).unwrap(), Step::Sent);
        assert_eq!(stamp(tap.frames.last().unwrap()).intended_ns, now_ns);
    }
    assert_eq!(generator.step(&mut tap, 1_000_000_500).unwrap(), Step::Done);
    let sent = generator.finish(1_000_000_600);
    assert_eq!((sent.frames, sent.intended), (192, 192));
    assert_eq!(sent.elapsed_ns, 1_000_000_100);
}

#[test]
fn a_second_part_follows_without_a_pause() {
    let mut spec = send(false, FrameMix::fixed(64));
    spec.frames.flows = 3;
    spec.then = Some(Then {
        frames_per_s: 100,
        duration_ns: 2_000_000_000,
    });
    let mut tap = Tap::new();
    let clock = Still::default();
    let sent = traffic::send(&mut tap, &spec, 1, &clock, &Stop::new().unwrap()).unwrap();
    assert_eq!(
        (sent.intended, sent.frames, sent.then_frames),
        (1200, 1200, 200)
    );
    assert_eq!(sent.then_ns, 999_000_000);
    let stamps: Vec<_> = tap.frames.iter().map(|frame| stamp(frame)).collect();
    for (index, stamp) in (0u32..).zip(&stamps) {
        assert_eq!(u32::from(stamp.flow), index % 3);
        assert_eq!(stamp.sequence, index / 3);
    }
    assert_eq!(stamps[999].intended_ns, 999_000_000);
    assert_eq!(stamps[1000].intended_ns, 1_000_000_000);
    assert_eq!(stamps[1001].intended_ns, 1_010_000_000);
}

#[test]
fn the_stop_flag_ends_it_early() {
    let stop = Stop::new().unwrap();
    stop.raise();
    let spec = send(false, FrameMix::fixed(64));
    let sent = traffic::send(&mut Tap::new(), &spec, 1, &Still::default(), &stop).unwrap();
    assert_eq!((sent.intended, sent.frames), (1000, 0));
}

#[test]
fn frames_that_cannot_be_are_refused() {
    let refused = |ipv6, frame_bytes| {
        let spec = send(ipv6, FrameMix::fixed(frame_bytes));
        Generator::new(&spec, 1, Part::WHOLE, None).err()
    };
    for (ipv6, frame_bytes) in [(false, 63), (true, 83), (false, 9217), (true, 0)] {
        let error = refused(ipv6, frame_bytes).expect("it must be refused");
        assert!(matches!(error, TrafficError::FrameSize { .. }), "{error}");
    }
    for (ipv6, frame_bytes) in [(false, 64), (true, 84), (false, 9216), (true, 9216)] {
        assert!(refused(ipv6, frame_bytes).is_none());
    }
    let mut mixed = send(false, FrameMix::fixed(64));
    mixed.addresses.target = "2001:db8::1".parse().unwrap();
    let error = Generator::new(&mixed, 1, Part::WHOLE, None).err();
    assert!(matches!(error, Some(TrafficError::MixedVersions { .. })));
    let mut empty = send(false, FrameMix::fixed(64));
    empty.frames.mix.shares.clear();
    let error = Generator::new(&empty, 1, Part::WHOLE, None).err();
    assert!(matches!(error, Some(TrafficError::EmptyMix)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn threads_divide_the_frames_of_one(
        flows in 1u32..30,
        tunnels in 1u32..6,
        threads in 1u16..6,
        frames_per_s in 1u64..3000,
        relief in 1u64..3000,
    ) {
        let mut spec = send(false, FrameMix::fixed(64));
        spec.frames.flows = flows;
        spec.frames.tunnels = tunnels;
        spec.frames_per_s = Some(frames_per_s);
        spec.then = Some(Then { frames_per_s: relief, duration_ns: 100_000_000 });
        let of = sender_threads(&spec, threads) as u32;
        prop_assert!(of == u32::from(threads) || of == flows);
        let key = |frame: &[u8]| {
            let stamp = stamp(frame);
            (stamp.flow, stamp.sequence)
        };
        // Flow and sequence, and addresses and ports.
        let whole: BTreeMap<_, _> = all_frames(&spec, 1, Part::WHOLE, None)
            .iter()
            .map(|(frame, _)| (key(frame), frame[26..36].to_vec()))
            .collect();
        let mut divided = BTreeMap::new();
        let mut owners = BTreeSet::new();
        for index in 0..of {
            for (frame, _) in all_frames(&spec, 1, Part { index, of }, None) {
                owners.insert((stamp(&frame).flow, index));
                prop_assert!(divided.insert(key(&frame), frame[26..36].to_vec()).is_none());
            }
        }
        prop_assert_eq!(owners.len(), whole.keys().map(|(flow, _)| flow).collect::<BTreeSet<_>>().len());
        prop_assert_eq!(divided, whole);
    }
}

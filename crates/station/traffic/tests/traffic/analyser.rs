//! The analyser on a wire with loss, duplication, delay and damage: its counts match the truth.

use crate::wire_tap::{Player, Still, Timed, all_frames, receive, send};
use port::{FramePortStats, FrameReceiver, Stop};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use traffic::{Analyser, DELAY_SLICES, RANDOM_SOURCE_PORT_MIN};
use traffic_spec::{Part, RANDOM_TEST_PORTS, Receive, Received, Send};
use wire::mix::{Contents, FrameMix};
use wire::stamp::{Stamp, payload_offset};

pub(crate) const TAG: u16 = 77;

/// Time that advances with each look at it, and by 300 ms at the fiftieth: a program that was
/// stopped.
#[derive(Default)]
struct Stopped {
    looks: Cell<u64>,
}

impl traffic_spec::Clock for Stopped {
    fn now_ns(&self) -> u64 {
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        looks * 1000 + if looks >= 50 { 300_000_000 } else { 0 }
    }

    fn wait_until(&self, _: u64, _: &Stop) {}
}

#[test]
fn a_receiver_that_stood_still_says_for_how_long() {
    let send = send(false, FrameMix::fixed(128));
    let frames = all_frames(&send, TAG, Part::WHOLE, None);
    let of = frames.len() as u64;
    let mut wanted = receive(1);
    let mut received_until = |expected: u64, clock: &Stopped| {
        wanted.expected = Some(expected);
        let mut port = Player(frames.iter().cloned().collect());
        let stop = Stop::new().unwrap();
        traffic::receive(&mut port, &wanted, TAG, clock, &stop).unwrap()
    };
    let whole = received_until(of, &Stopped::default());
    assert_eq!(whole.frames, of);
    assert!((300_000_000..300_100_000).contains(&whole.stood_still_ns_max));
    // At the end of the trial it has not happened yet.
    let part = received_until(of / 10, &Stopped::default());
    assert!(part.stood_still_ns_max < 100_000, "{part:?}");
}

/// The fate of one frame on the wire.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Passes,
    IsLost,
    /// Also arrives again after this many others.
    ComesTwice(usize),
    /// Arrives after this many others.
    IsLate(usize),
    /// One byte of the UDP payload (index modulo length) is XORed with a value.
    IsDamaged(usize, u8),
    /// A foreign frame precedes it.
    FollowsForeign(usize),
    /// A frame of another trial precedes it.
    FollowsStale,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        10 => Just(Fate::Passes),
        2 => Just(Fate::IsLost),
        1 => (0usize..40).prop_map(Fate::ComesTwice),
        2 => (1usize..30).prop_map(Fate::IsLate),
        1 => (any::<usize>(), 1u8..).prop_map(|(at, change)| Fate::IsDamaged(at, change)),
        1 => (0usize..5).prop_map(Fate::FollowsForeign),
        1 => Just(Fate::FollowsStale),
    ]
}

/// A frame on the wire, with the truth about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Intact,
    Damaged,
    Foreign,
    Stale,
}

struct Wire {
    ipv6: bool,
    tagged: bool,
    /// Frames by order of arrival.
    frames: Vec<(usize, Kind, Vec<u8>)>,
}

impl Wire {
    fn put(&mut self, place: usize, kind: Kind, frame: &[u8]) {
        let mut frame = frame.to_vec();
        if self.tagged && frame.len() > 12 {
            // An 802.1Q tag, VLAN 5, between the addresses and the EtherType.
            frame.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
        }
        self.frames.push((place, kind, frame));
    }

    /// All arrivals in order, one each microsecond.
    fn arrivals(mut self) -> Vec<(Kind, Timed)> {
        self.frames.sort_by_key(|(place, ..)| *place);
        let times = (2_000_000_000u64..).step_by(1000);
        let frames = self.frames.into_iter().zip(times);
        frames
            .map(|((_, kind, frame), time_ns)| (kind, (frame, time_ns)))
            .collect()
    }

    fn carry(&mut self, index: usize, frame: &[u8], fate: Fate, stale: &[u8]) {
        // Places are spaced so that others fit between.
        let place = |later: usize| (index + later) * 4 + 2;
        match fate {
            Fate::Passes => self.put(place(0), Kind::Intact, frame),
            Fate::IsLost => {}
            Fate::ComesTwice(later) => {
                self.put(place(0), Kind::Intact, frame);
                self.put(place(later) + 1, Kind::Intact, frame);
            }
            Fate::IsLate(later) => self.put(place(later) + 1, Kind::Intact, frame),
            Fate::IsDamaged(at, change) => {
                let mut frame = frame.to_vec();
                let payload = payload_offset(self.ipv6);
                let at = payload + at % (frame.len() - payload);
                frame[at] ^= change;
                self.put(place(0), Kind::Damaged, &frame);
            }
            Fate::FollowsForeign(which) => {
                self.put(place(0) - 1, Kind::Foreign, &self.foreign(which, frame));
                self.put(place(0), Kind::Intact, frame);
            }
            Fate::FollowsStale => {
                self.put(place(0) - 1, Kind::Stale, stale);
                self.put(place(0), Kind::Intact, frame);
            }
        }
    }

    /// A frame that is not test traffic.
    fn foreign(&self, which: usize, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        let udp = payload_offset(self.ipv6) - 8;
        match which {
            // Another target port, TCP, ARP.
            0 => frame[udp + 3] ^= 1,
            1 => frame[if self.ipv6 { 20 } else { 23 }] = 6,
            2 => frame[12..14].copy_from_slice(&[0x08, 0x06]),
            // No whole header; an empty frame.
            3 => frame.truncate(udp + 3),
            _ => frame.truncate(5),
        }
        frame
    }
}

/// Counts from the definitions, with complete knowledge of all frames.
#[derive(Default)]
struct Truth {
    received: Received,
    latencies: Vec<u64>,
    came: BTreeMap<u16, Vec<u32>>,
}

impl Truth {
    fn of(spec: &Receive, ipv6: bool, tagged: bool, arrivals: &[(Kind, Timed)]) -> Self {
        let mut truth = Self::default();
        for (kind, (frame, time_ns)) in arrivals {
            let received = &mut truth.received;
            match kind {
                Kind::Damaged => received.corrupted += 1,
                Kind::Foreign => received.foreign += 1,
                Kind::Stale => received.stale += 1,
                Kind::Intact => {
                    let tag = if tagged { 4 } else { 0 };
                    let stamp = Stamp::read(&frame[payload_offset(ipv6) + tag..]).unwrap();
                    truth.intact(spec, stamp, frame.len() - tag, *time_ns);
                }
            }
        }
        truth
    }

    fn intact(&mut self, spec: &Receive, stamp: Stamp, bytes: usize, now_ns: u64) {
        let received = &mut self.received;
        let came = self.came.entry(stamp.flow).or_default();
        if came.contains(&stamp.sequence) {
            received.duplicated += 1;
            return;
        }
        if let Some(first_later) = came.iter().position(|later| *later > stamp.sequence) {
            received.reordered += 1;
            let extent = (came.len() - first_later) as u64;
            received.reordering_extent_max = received.reordering_extent_max.max(extent);
        } else if stamp.sequence > came.iter().max().map_or(0, |highest| highest + 1) {
            received.last_loss_ns = received.last_loss_ns.max(stamp.intended_ns);
        }
        came.push(stamp.sequence);
        let number =
            u64::from(stamp.sequence) * u64::from(spec.frames.flows) + u64::from(stamp.flow);
        received.then_frames += u64::from(spec.first_frames.is_some_and(|first| number >= first));
        received.frames += 1;
        received.frame_bytes += bytes as u64 + 4;
        received.last_ns = now_ns;
        received.last_intended_ns = received.last_intended_ns.max(stamp.intended_ns);
        self.latencies.push(now_ns - stamp.intended_ns);
    }
}

/// Each latency is in a bucket that is at most 0.1 % away.
fn check_latency(mut truth: Vec<u64>, buckets: &[(u64, u64)]) {
    truth.sort_unstable();
    assert!(buckets.is_sorted_by(|a, b| a.0 < b.0));
    let upto = buckets
        .iter()
        .flat_map(|&(upto_ns, frames)| std::iter::repeat_n(upto_ns, frames as usize));
    let upto: Vec<_> = upto.collect();
    assert_eq!(upto.len(), truth.len());
    for (upto_ns, latency_ns) in upto.iter().zip(truth) {
        assert!((latency_ns..=latency_ns + latency_ns / 1000 + 1).contains(upto_ns));
    }
}

pub(crate) fn analyse(spec: &Receive, arrivals: impl IntoIterator<Item = Timed>) -> Received {
    let mut player = Player(arrivals.into_iter().collect());
    let mut analyser = Analyser::new(spec, TAG, None).unwrap();
    while analyser.poll(&mut player, &Still::default()).unwrap() > 0 {}
    analyser.received()
}

pub(crate) fn traffic(ipv6: bool, flows: u32, tunnels: u32) -> Send {
    let mut mix = FrameMix::named("imix").unwrap();
    mix.shares[0].frame_bytes = if ipv6 { 84 } else { 64 };
    let mut spec = send(ipv6, mix);
    spec.frames.flows = flows;
    spec.frames.tunnels = tunnels;
    spec
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn counts_are_exact_whatever_the_wire_does(
        ipv6: bool,
        tagged: bool,
        flows in prop_oneof![Just(1u32), 2u32..5, 100u32..2000],
        tunnels in 1u32..4,
        first_frames in prop::option::of(0u64..1200),
        fates in prop::collection::vec(fate(), 1000),
    ) {
        let spec = traffic(ipv6, flows, tunnels);
        let (stale, _) = all_frames(&spec, TAG + 1, Part::WHOLE, None).swap_remove(3);
        let mut wire = Wire { ipv6, tagged, frames: Vec::new() };
        let sent = all_frames(&spec, TAG, Part::WHOLE, None);
        prop_assert_eq!(sent.len(), fates.len());
        for (index, ((frame, _), fate)) in sent.iter().zip(fates).enumerate() {
            wire.carry(index, frame, fate, &stale);
        }
        let arrivals = wire.arrivals();
        let spec = Receive { first_frames, ..receive(flows) };
        let truth = Truth::of(&spec, ipv6, tagged, &arrivals);
        let mut received = analyse(&spec, arrivals.into_iter().map(|(_, timed)| timed));

        check_latency(truth.latencies, &received.latency);
        received.latency.clear();
        received.elapsed_ns = 0;
        prop_assert_eq!(received, truth.received);
    }
}

#[test]
fn random_contents_are_checked_to_the_last_byte() {
    for (ipv6, tunnels) in [(false, 1), (true, 3)] {
        let mut sending = traffic(ipv6, 50, tunnels);
        sending.frames.contents = Contents::Random;
        let mut frames = all_frames(&sending, TAG, Part::WHOLE, None);
        for (frame, _) in &frames {
            let packet = etherparse::SlicedPacket::from_ethernet(frame).unwrap();
            let Some(etherparse::TransportSlice::Udp(udp)) = &packet.transport else {
                panic!("not UDP")
            };
            assert!(udp.source_port() >= RANDOM_SOURCE_PORT_MIN);
            assert!(RANDOM_TEST_PORTS.contains(&udp.destination_port()));
            let header = udp.to_header();
            let checksum = match &packet.net {
                Some(etherparse::NetSlice::Ipv4(ip)) => {
                    header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload())
                }
                Some(etherparse::NetSlice::Ipv6(ip)) => {
                    header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
                }
                _ => panic!("not IP"),
            };
            assert_eq!(checksum.unwrap(), udp.checksum());
        }
        let mut receiving = receive(50);
        receiving.frames.contents = Contents::Random;
        let received = analyse(&receiving, frames.clone());
        assert_eq!(
            (received.frames, received.corrupted, received.foreign),
            (1000, 0, 0)
        );
        // The last byte of the 594 B frames.
        let damaged = frames.iter_mut().filter(|(frame, _)| frame.len() == 590);
        let damaged = damaged
            .map(|(frame, _)| *frame.last_mut().unwrap() ^= 1)
            .count() as u64;
        let received = analyse(&receiving, frames);
        assert!(damaged > 100);
        assert_eq!(
            (received.frames, received.corrupted),
            (1000 - damaged, damaged)
        );
    }
}

#[test]
fn a_clean_wire_gives_back_what_was_sent() {
    for (ipv6, flows) in [(false, 1), (true, 1), (false, 1000), (true, 65_535)] {
        let frames = all_frames(&traffic(ipv6, flows, 3), TAG, Part::WHOLE, None);
        let bytes = frames
            .iter()
            .map(|(frame, _)| frame.len() as u64 + 4)
            .sum::<u64>();
        let received = analyse(&receive(flows), frames);
        let expected = Received {
            frames: 1000,
            frame_bytes: bytes,
            elapsed_ns: 999_000_000,
            last_ns: 999_000_000,
            last_intended_ns: 999_000_000,
            latency: vec![(1, 1000)],
            ..Received::default()
        };
        assert_eq!(received, expected);
    }
}

#[test]
fn the_delay_of_every_part_of_a_trial_is_known_whatever_the_clock_of_the_receiver() {
    for (flows, clock_ns) in [(1, 0_i64), (7, 5_000_000_000), (1000, -30_000_000)] {
        let mut frames = all_frames(&traffic(false, flows, 3), TAG, Part::WHOLE, None);
        frames.remove(500);
        for (_, now_ns) in &mut frames {
            // A queue that grows by 20 % of the time, behind a path of 40 ms.
            let sent_ns = *now_ns;
            *now_ns = (sent_ns + sent_ns / 5 + 40_000_000).saturating_add_signed(clock_ns);
        }
        let expecting = Receive {
            expected: Some(1000),
            ..receive(flows)
        };
        let received = analyse(&expecting, frames);
        assert_eq!(received.delays.len(), DELAY_SLICES);
        let frames: u64 = received.delays.iter().map(|(frames, _)| frames).sum();
        assert_eq!(frames, 999);
        for (slice, (frames, mean_ns)) in (0_i64..).zip(received.delays) {
            assert!((65..=67).contains(&frames), "{frames}");
            // The middle of a slice of 66.7 ms.
            let grown_ns = (2 * slice + 1) * 1_000_000_000 / 30 / 5;
            let expected_ns = 40_000_000 + clock_ns + grown_ns;
            assert!(
                (mean_ns - expected_ns).abs() < 500_000,
                "{slice}: {mean_ns}"
            );
        }
    }
    // Without a schedule there are no parts, and in two parts no one rate.
    let frames = || all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
    assert_eq!(analyse(&receive(1), frames()).delays, []);
    let in_two = Receive {
        expected: Some(1000),
        first_frames: Some(500),
        ..receive(1)
    };
    assert_eq!(analyse(&in_two, frames()).delays, []);
}

#[test]
fn bytes_behind_the_packet_do_not_count() {
    let mut frames = all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
    for (frame, _) in &mut frames {
        frame.extend([0; 6]);
    }
    let received = analyse(&receive(1), frames);
    assert_eq!((received.frames, received.corrupted), (1000, 0));
    assert_eq!(received.frame_bytes, mean_bytes(&traffic(false, 1, 1)));
}

/// Bytes of a thousand frames.
fn mean_bytes(spec: &Send) -> u64 {
    let frames = all_frames(spec, TAG, Part::WHOLE, None);
    frames.iter().map(|(frame, _)| frame.len() as u64 + 4).sum()
}

#[test]
fn a_frame_that_was_cut_is_damaged() {
    let frames = all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
    for cut in [1, 5, 18] {
        let mut frame = frames[0].0.clone();
        frame.truncate(frame.len() - cut);
        let received = analyse(&receive(1), [(frame, 1)]);
        assert_eq!((received.corrupted, received.frames), (1, 0));
    }
}

#[test]
fn fragments_are_foreign() {
    let frames = all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
    for (at, value) in [(20, 0x20), (21, 1)] {
        let mut frame = frames[0].0.clone();
        frame[at] = value;
        let received = analyse(&receive(1), [(frame, 1)]);
        assert_eq!((received.foreign, received.frames), (1, 0));
    }
}

#[test]
fn flows_that_the_trial_has_not_are_stale() {
    let frames = all_frames(&traffic(false, 4, 1), TAG, Part::WHOLE, None);
    let received = analyse(&receive(3), frames);
    assert_eq!((received.frames, received.stale), (750, 250));
}

#[test]
fn a_frame_from_before_the_window_is_too_late_and_not_received() {
    let mut spec = traffic(false, 1, 1);
    spec.frames_per_s = Some(2000);
    // The number of flows that gives each the smallest window; frames of one of them.
    let many = receive(65_535);
    let window = Analyser::new(&many, TAG, None).unwrap().window();
    assert_eq!(window, 8128);
    spec.frames_per_s = Some(window + 10);
    let mut frames: VecDeque<_> = all_frames(&spec, TAG, Part::WHOLE, None).into();
    let first = frames.pop_front().unwrap();
    let second = frames.pop_front().unwrap();
    let at_the_edge = frames.remove(window as usize - 2).unwrap();
    frames.truncate(window as usize - 2);
    // All up to number `window - 1`, then number 0, which is just in time. After number `window`,
    // the oldest number in time is 1.
    frames.extend([first.clone(), at_the_edge, second.clone(), second, first]);
    let received = analyse(&many, frames);
    assert_eq!((received.reordered, received.duplicated), (2, 1));
    assert_eq!(received.too_late, 1);
    assert_eq!(received.frames, window + 1);
}

fn expecting(frames: u64) -> Receive {
    Receive {
        expected: Some(frames),
        ..receive(1)
    }
}

/// The counts of a receiver that ends by itself.
fn received_to_the_end(spec: &Receive, port: &mut impl FrameReceiver) -> Received {
    let stop = Stop::new().unwrap();
    let received = traffic::receive(port, spec, TAG, &Still::default(), &stop).unwrap();
    assert!(!stop.is_raised());
    received
}

#[test]
fn damaged_copies_do_not_end_a_trial() {
    let mut frames = VecDeque::new();
    for (index, frame) in all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None)
        .into_iter()
        .enumerate()
    {
        if index % 10 == 0 {
            let mut damaged = frame.clone();
            damaged.0[50] ^= 1;
            frames.push_back(damaged);
        }
        frames.push_back(frame);
    }
    let received = received_to_the_end(&expecting(1000), &mut Player(frames));
    assert_eq!((received.frames, received.corrupted), (1000, 100));
}

#[test]
fn copies_count_though_all_that_is_expected_has_come() {
    let sent = all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
    let copies = sent.iter().enumerate().map(|(at, frame)| (at + 500, frame));
    let mut wire: Vec<_> = sent.iter().enumerate().chain(copies).collect();
    wire.sort_by_key(|(place, _)| *place);
    let mut player = Player(wire.into_iter().map(|(_, frame)| frame.clone()).collect());
    let received = received_to_the_end(&expecting(1000), &mut player);
    assert_eq!((received.frames, received.duplicated), (1000, 1000));
}

/// Frames of a trial, then endless copies of one frame, all without timestamps.
struct Endless(Player, Vec<u8>);

impl FrameReceiver for Endless {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        self.0.recv(&mut read).or_else(|_| {
            // At the rate of frames, not as fast as a core can poll.
            std::thread::sleep(std::time::Duration::from_millis(1));
            read(&mut self.1.clone());
            Ok(1)
        })
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

#[test]
fn foreign_frames_do_not_keep_a_trial_from_its_end() {
    let frames = all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
    let mut port = Endless(Player(frames.into()), vec![0; 60]);
    let received = received_to_the_end(&expecting(1000), &mut port);
    assert_eq!((received.frames, received.duplicated), (1000, 0));
    assert!(received.foreign > 0);
}

fn received_when_stopped(port: &mut impl FrameReceiver, now_ns: u64) -> Received {
    let stop = Stop::new().unwrap();
    stop.raise();
    let clock = Still(Cell::new(now_ns));
    traffic::receive(port, &receive(1), TAG, &clock, &stop).unwrap()
}

#[test]
fn when_stopped_it_counts_later_arrivals_separately() {
    let frames = all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
    for (stop_ns, came) in [(0, 1), (499_000_000, 500), (2_000_000_000, 1000)] {
        let mut player = Player(frames.clone().into());
        let received = received_when_stopped(&mut player, stop_ns);
        let expected = (came, (came - 1) * 1_000_000);
        assert_eq!((received.frames, received.last_ns), expected);
        let others = received.too_late + received.foreign + received.stale;
        assert_eq!(others, 0, "what comes later is in no count of the trial");
        assert_eq!(received.after_end, 1000 - came);
    }
}

#[test]
fn when_stopped_it_ends_though_frames_continue() {
    let frames = all_frames(&traffic(false, 1, 1), TAG, Part::WHOLE, None);
    let last = frames[999].0.clone();
    let mut port = Endless(Player(frames.into()), last);
    let received = received_when_stopped(&mut port, 0);
    assert_eq!(received.frames, 1000);
    // Those of the first 20 ms count, since the port has no timestamps.
    assert!(received.duplicated > 0 && received.after_end > 0);
}

#[test]
fn delay_variation_counts_each_frame_once_against_the_one_before_it() {
    let frames = all_frames(&traffic(false, 2, 1), TAG, Part::WHOLE, None);
    // Every fourth frame of a flow is 50 ns slower; copies and a lost frame make no pair.
    let delays = |index: usize| if index / 2 % 4 == 3 { 150 } else { 100 };
    let mut arrivals = Vec::new();
    for (index, (frame, due_ns)) in frames.into_iter().enumerate() {
        if index != 100 {
            arrivals.push((frame.clone(), due_ns + delays(index)));
        }
        if index == 200 {
            arrivals.push((frame, due_ns + 9_000));
        }
    }
    let spec = Receive {
        variation: true,
        sender_clock: None,
        ..receive(2)
    };
    let found = analyse(&spec, arrivals.clone()).variation.unwrap();
    let pdv = found.pdv;
    assert_eq!((pdv.p50_ns, pdv.p90_ns, pdv.max_ns), (0, Some(50), 50));
    let ipdv = found.ipdv.unwrap();
    // 499 pairs per flow, and two fewer around the lost frame.
    assert_eq!(ipdv.pairs, 2 * 499 - 2);
    assert_eq!((ipdv.min_ns, ipdv.p50_ns, ipdv.max_ns), (-50, 0, 50));
    assert_eq!((ipdv.p1_ns, ipdv.p99_ns), (Some(-50), Some(50)));
    assert_eq!(analyse(&receive(2), arrivals).variation, None);
}

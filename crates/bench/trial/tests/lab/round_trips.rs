//! Round trips by reflection at station B, beside latencies one way of the same machine and clock.

use crate::frames::{frames, passes, search, short, traffic};
use crate::trials::{TestLab, encrypting};
use journal::record::{FrameResult, LatencyBucket, LatencyTrial, Measured};
use plan::{
    Adapter, Direction, IpVersion, LatencyPath, LatencyTest, PortKind, Ports, Procedure, Traffic,
};
use testing::busy;
use wire::mix::{Contents, FrameMix, TestFrames};

const MS: u64 = 1_000_000;
/// So low that a machine which compiles at the same time carries it there and back.
const FRAMES_PER_S: u64 = 2000;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 3] = [
    (
        "frames_come_back_through_each_kind_of_device",
        frames_come_back_through_each_kind_of_device,
    ),
    (
        "frames_come_back_by_each_kind_of_port",
        frames_come_back_by_each_kind_of_port,
    ),
    (
        "a_round_trip_is_the_sum_of_both_ways",
        a_round_trip_is_the_sum_of_both_ways,
    ),
];

fn latency(path: LatencyPath) -> Procedure {
    Procedure::Latency(LatencyTest {
        search: search(Some(FRAMES_PER_S)),
        percents: vec![50],
        trial_ns: 300 * MS,
        trials: 1,
        path,
    })
}

fn timed(measured: &Measured) -> (&FrameResult, &LatencyTrial) {
    let result = measured.frames().unwrap();
    match &result.latency[..] {
        [timed] => (result, timed),
        others => panic!("{others:?}"),
    }
}

/// The trial of the times: every frame came back, once and intact. Its evidence includes both ways.
fn assert_all_came_back(measured: &Measured) {
    let (result, timed) = timed(measured);
    let trial = result
        .trials
        .iter()
        .rfind(|trial| trial.load == timed.load && trial.duration_ns == 300 * MS);
    let trial = trial.expect("the trial that was timed");
    let [there, back] = &trial.directions[..] else {
        panic!("{trial:?}");
    };
    assert_eq!((there.received, back.intended), (there.sent, there.sent));
    assert_eq!((back.sent, back.received), (there.sent, there.sent));
    assert_eq!((trial.duplicated, trial.corrupted), (0, 0));
    assert_eq!(timed.frames, there.sent);
    assert!(trial.delay.is_some());
    let reflection = timed.round_trip.as_ref().expect("round trips");
    let reflected = reflection.residence.iter().map(|bucket| bucket.frames);
    assert_eq!(reflected.sum::<u64>(), there.sent);
    assert_eq!(timed.variation.len(), 1);
    assert!(result.trials.iter().all(|trial| trial.loads_both()));
    assert!(passes(measured, "interfaces-agree"));
}

fn frames_come_back_through_each_kind_of_device() {
    let mut lab = TestLab::build();
    let imix = || FrameMix::named("imix").unwrap();
    let random = Traffic {
        frames: TestFrames {
            contents: Contents::Random,
            ..short(Direction::Both).frames
        },
        ..short(Direction::Both)
    };
    for (adapter, traffic) in [
        (Adapter::STRAIGHT, short(Direction::Both)),
        // Addresses and ports are translated there, and back only if those of a reply match.
        (Adapter::Router { nat: true }, short(Direction::Both)),
        (Adapter::Bridge, random),
        (
            encrypting(),
            traffic(Direction::Both, imix(), IpVersion::V4),
        ),
        (
            Adapter::Direct,
            traffic(Direction::Both, FrameMix::fixed(1518), IpVersion::V6),
        ),
    ] {
        let is_sealed = adapter == encrypting();
        let cell = frames(adapter, traffic, latency(LatencyPath::RoundTrip));
        let measured = lab.measured(&cell);
        assert_all_came_back(&measured);
        if is_sealed {
            for check in ["no-clear-text", "dut-counters", "trials-sealed"] {
                assert!(passes(&measured, check), "{check}");
            }
        }
    }
}

fn frames_come_back_by_each_kind_of_port() {
    let mut lab = TestLab::build();
    for (tx, rx) in [
        (PortKind::Packet, PortKind::Packet),
        (PortKind::Xdp, PortKind::Packet),
        (PortKind::Packet, PortKind::Xdp),
    ] {
        let traffic = Traffic {
            ports: Ports {
                tx: Some(tx),
                rx: Some(rx),
            },
            ..short(Direction::Both)
        };
        let cell = frames(Adapter::Direct, traffic, latency(LatencyPath::RoundTrip));
        let measured = lab.measured(&cell);
        assert_all_came_back(&measured);
        let (_, timed) = timed(&measured);
        let reflection = timed.round_trip.as_ref().expect("round trips");
        // A packet socket has the kernel's time of arrival. AF_XDP has none, so the time from
        // reading the frame counts.
        assert_eq!(reflection.from_arrival, rx == PortKind::Packet);
    }
}

/// The smallest value of a histogram, and its median.
fn least_and_median(histogram: &[LatencyBucket]) -> [u64; 2] {
    let all: u64 = histogram.iter().map(|bucket| bucket.frames).sum();
    let mut seen = 0;
    let median = histogram.iter().find(|bucket| {
        seen += bucket.frames;
        2 * seen >= all
    });
    [histogram[0].upto_ns, median.expect("frames").upto_ns]
}

/// Both ways are loaded alike in each case. Of a machine that does other things meanwhile the
/// bounds are wide, and the comparison is repeated.
fn a_round_trip_is_the_sum_of_both_ways() {
    let mut lab = TestLab::build();
    let mut compare = || {
        let mut times = |path, duplex| {
            let traffic = Traffic {
                duplex,
                ..short(Direction::Both)
            };
            let cell = frames(Adapter::Router { nat: false }, traffic, latency(path));
            timed(&lab.measured(&cell)).1.clone()
        };
        let one_way = least_and_median(&times(LatencyPath::OneWay, true).histogram);
        let found = times(LatencyPath::RoundTrip, false);
        let round_trip = least_and_median(&found.histogram);
        let reflection = found.round_trip.expect("round trips");
        let reflector = least_and_median(&reflection.residence);
        // Twice the fastest way is no upper bound, and no frame takes less than the fastest.
        assert!(round_trip[0] > one_way[0], "{round_trip:?}, {one_way:?}");
        let sum = 2 * one_way[1] + reflector[1];
        let is_near = (sum / 3..=sum * 3).contains(&round_trip[1]);
        if !is_near {
            busy::too_busy(format!(
                "a median round trip of {} ns is not one of {sum} ns",
                round_trip[1]
            ));
        }
        eprintln!("round trips: {round_trip:?}, one way: {one_way:?}, reflector: {reflector:?} ns");
    };
    let compared = busy::repeated(busy::REPEATS, &mut compare);
    compared.unwrap_or_else(|why| busy::too_busy(why));
}

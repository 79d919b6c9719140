//! Latencies over different paths have no ratio.

use crate::made::{SECOND_NS, cell, journal, record};
use compare::{Comparison, Options, Run, compare};
use journal::Journal;
use journal::record::*;
use plan::{
    Cell, Criteria, Direction, FrameTest, Goal, IpVersion, LatencyPath, LatencyTest, Measurement,
    Ports, Procedure, Profile, ThroughputSearch, Traffic,
};
use wire::mix::{Contents, FrameMix, TestFrames};

fn latency_cell() -> Cell {
    let search = ThroughputSearch {
        profile: Profile::Fast,
        goals: vec![Goal {
            name: "ndr".into(),
            criteria: Criteria {
                loss_ratio_ppm: 0,
                exceed_ratio_ppm: 500_000,
                initial_trial_ns: SECOND_NS,
                final_trial_ns: SECOND_NS,
                duration_sum_ns: SECOND_NS,
                width_ppm: 5_000,
            },
        }],
        max_load: None,
        min_load: 1_000,
        drain_ns: 0,
        timeout_ns: 60 * SECOND_NS,
    };
    Cell {
        measurement: Measurement::Frames(FrameTest {
            traffic: Traffic {
                frames: TestFrames {
                    mix: FrameMix::fixed(64),
                    flows: 1,
                    tunnels: 1,
                    contents: Contents::Fixed,
                },
                ip: IpVersion::V4,
                direction: Direction::Both,
                duplex: false,
                ports: Ports::default(),
            },
            procedure: Procedure::Latency(LatencyTest {
                search,
                percents: vec![0],
                trial_ns: SECOND_NS,
                trials: 1,
                path: LatencyPath::OneWay,
            }),
        }),
        ..cell("latency/frame=64", "x")
    }
}

/// Repeats with that latency, and perhaps with a throughput; round trips if `reflected`.
fn run(second: u64, median_ns: u64, reflected: bool, searched: bool) -> Journal {
    let cell = latency_cell();
    let mut run = journal(vec![cell.clone()], 3, second);
    let buckets = |upto_ns| {
        let frames = 1000;
        vec![LatencyBucket { upto_ns, frames }]
    };
    let trial = |load, received| FrameTrial {
        load,
        duration_ns: SECOND_NS,
        elapsed_ns: SECOND_NS,
        intended: load,
        sent: load,
        received,
        ..FrameTrial::default()
    };
    for repeat in 1..=3 {
        let found = FrameResult {
            trials: vec![trial(400_000, 400_000), trial(402_000, 401_000)],
            throughput: searched.then(|| SearchRecord {
                max_load: 1_500_000,
                max_load_by: "line-rate".into(),
                goals: vec![GoalBounds {
                    goal: "ndr".into(),
                    lower: Some(400_000),
                    upper: Some(402_000),
                    conditional_throughput: 400_000.0,
                    lower_trials: 1,
                    upper_trials: 1,
                    outcome: None,
                }],
                end: SearchEnd::Reached,
                took_ns: SECOND_NS,
            }),
            latency: vec![LatencyTrial {
                percent: Some(0),
                load: 1_000,
                frames: 1000,
                histogram: buckets(median_ns + u64::from(repeat)),
                directions: Vec::new(),
                variation: Vec::new(),
                clocks: None,
                round_trip: reflected.then(|| Reflection {
                    residence: buckets(100),
                    from_arrival: true,
                }),
            }],
            evidence_trial: Some(0),
            ..FrameResult::default()
        };
        let outcome = Outcome::Measured(Box::new(Measured {
            figures: Figures::Frames(Box::new(found)),
            ..Measured::default()
        }));
        record(&mut run, &cell.id, repeat, outcome);
    }
    run
}

fn compared(base: &Journal, other: &Journal) -> Comparison {
    let runs = [("runs/a", base), ("runs/b", other)];
    let runs = runs.map(|(name, journal)| Run { name, journal });
    compare(&runs, &Options::default()).unwrap()
}

#[test]
fn round_trips_are_not_divided_by_figures_of_one_way() {
    let has = |found: &Comparison, word: &str| {
        let mut changes = found.pairs[0].changes.iter();
        changes.any(|change| change.quantity.word() == word)
    };
    let one_way = run(1, 20_000, false, true);
    let alike = compared(&one_way, &run(2, 20_000, false, true));
    assert!(has(&alike, "p50") && alike.pairs[0].without_ratio.is_empty());
    assert!(has(&alike, "throughput"));
    // A reflected load loads both ways, so its rate is another figure too.
    for searched in [true, false] {
        let one_way = run(1, 20_000, false, searched);
        let found = compared(&one_way, &run(2, 40_000, true, searched));
        assert!(found.pairs[0].changes.is_empty(), "{found:?}");
        let [without] = found.pairs[0].without_change.as_slice() else {
            panic!("{:?}", found.pairs[0]);
        };
        let said = "runs/a has its one-way figure, and runs/b its round-trip one";
        assert!(without.reason.ends_with(said), "{}", without.reason);
    }
    let round_trips = run(1, 40_000, true, true);
    let alike = compared(&round_trips, &run(2, 40_000, true, true));
    assert!(has(&alike, "p50") && has(&alike, "throughput"));
}

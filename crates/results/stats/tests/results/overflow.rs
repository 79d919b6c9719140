//! Counts of changed journals: no sum of them panics, and none wraps around to a small number.

use crate::fixture::{SECOND_NS, journal, measured, ping, record, round_trips, tcp, transfer};
use crate::frame_fixture::*;
use journal::record::*;
use plan::*;
use stats::Results;

/// The largest count that a reader of journals lets pass.
const MOST: u64 = 100_000_000_000_000_000;

#[test]
fn events_with_the_largest_times_and_losses_have_figures() {
    let failover = Procedure::Disturbed(Disturbed {
        load: BaseLoad::Given {
            frames_per_s: 10_000,
        },
        event: Event::Failover {
            failure: Failure::Crash,
            times: 1,
            down_ns: SECOND_NS,
            watch_ns: SECOND_NS,
        },
    });
    let rekey = Procedure::Disturbed(Disturbed {
        load: BaseLoad::Given {
            frames_per_s: 10_000,
        },
        event: Event::Rekey {
            every_ns: SECOND_NS,
            duration_ns: SECOND_NS,
            throughput: false,
        },
    });
    let event = |name: &str, at_ns| DutEvent {
        name: name.into(),
        at_ns,
        took_ns: u64::MAX,
        lost: u64::MAX,
        first_ns: Some(u64::MAX),
        outage_ns: Some(u64::MAX),
        slowest_ns: Some(u64::MAX),
        reset: None,
    };
    let with = |events| Disturbance {
        events,
        timeline: Timeline {
            bin_ns: u64::MAX,
            bins: vec![
                TimeBin {
                    intended: 1,
                    received: 1,
                    ..TimeBin::default()
                };
                3
            ],
        },
        ..Disturbance::default()
    };
    let events = vec![event("crash", 1), event("restart", u64::MAX)];
    let quiet = with(vec![]);
    let rekeys = Disturbance {
        trial: 1,
        ..with(vec![event("rekey", u64::MAX)])
    };
    for (procedure, disturbances) in [(failover, vec![with(events)]), (rekey, vec![quiet, rekeys])]
    {
        let cell = cell("auto", 64, procedure);
        let mut run = journal(vec![cell.clone()], 1, 8);
        let found = FrameResult {
            trials: disturbances.iter().map(|_| trial(10_000, 9_000)).collect(),
            found: ProcedureRecord::Disturbed(DisturbedTrials {
                disturbances,
                ..DisturbedTrials::default()
            }),
            ..FrameResult::default()
        };
        add(&mut run, &cell, 1, found);
        let results = Results::of(&run);
        assert!(results.cells[0].frames().unwrap().disturbance().is_some());
    }
}

#[test]
fn counts_of_many_repeats_have_the_largest_sum() {
    let repeats = 200;
    let pings = ping("direct");
    let load = cell(
        "auto",
        64,
        Procedure::Load(Load {
            frames_per_s: Some(MOST),
            duration_ns: SECOND_NS,
        }),
    );
    let mut run = journal(vec![pings.clone(), load.clone()], repeats, 8);
    for repeat in 1..=repeats {
        let mut counts = round_trips(0, &[5]);
        let Figures::Latency(latency) = &mut counts.figures else {
            panic!("other figures")
        };
        latency.sent = u64::MAX;
        record(&mut run, &pings.id, repeat, measured(counts));
        let found = FrameResult {
            trials: vec![FrameTrial {
                duplicated: MOST,
                corrupted: MOST,
                ..trial(MOST, MOST)
            }],
            evidence_trial: Some(0),
            ..FrameResult::default()
        };
        add(&mut run, &load, repeat, found);
    }
    let results = Results::of(&run);
    let latency = results.cells[0].latency().unwrap();
    assert_eq!(latency.requests_sent, u64::MAX);
    let account = results.cells[1].frames().unwrap().loads()[0].account;
    assert_eq!((account.intended, account.lost), (u64::MAX, 0));
}

#[test]
fn boxes_without_a_tunnel_are_no_negative_number_of_further_ones() {
    let mut cell = tcp("boxes");
    cell.dut.adapter = Adapter::External(External {
        boxes: Vec::new(),
        carrier: None,
        format: None,
        ports: Vec::new(),
        bump: false,
        gateway: None,
        tunnels: 0,
        suite_word: None,
        limit_ns: 0,
        ready_ns: 0,
    });
    let mut run = journal(vec![cell.clone()], 1, 8);
    record(&mut run, &cell.id, 1, measured(transfer(1)));
    assert!(Results::of(&run).cells[0].bulk().is_some());
}

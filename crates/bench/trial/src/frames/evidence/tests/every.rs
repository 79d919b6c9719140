//! What the readings around each frame trial are there to catch: in any trial, not only in the one
//! with the samples.

use super::*;
use journal::record::{
    ClockAgreement, Disturbance, DutEvent, GoalBounds, LatencyBucket, LatencyTrial, SearchRecord,
};
use plan::{BoxFormat, External};

fn fixture(engine: &str) -> Fixture {
    Fixture::new(encrypting(engine), Direction::Both, false)
}

impl Fixture {
    /// The readings of the first trial, which is the figure's.
    fn first(&mut self) -> &mut TrialReadings {
        self.result.trials[0].readings.as_mut().unwrap()
    }
}

#[test]
fn frames_in_clear_in_any_trial_are_found_and_the_trial_named() {
    let mut fixture = fixture("auto");
    let watch = fixture.first().watch.as_mut().unwrap();
    (watch.foreign_frames, watch.marker_frames) = (4000, 60);
    watch.examples = vec!["IPv4 UDP 198.18.0.1:1 > 198.19.0.1:2, 110 B".to_owned()];
    assert_eq!(fixture.failing(), ["trials-watched"]);
    let detail = fixture.detail("trials-watched");
    assert!(
        detail.contains("trial 1 (100000 frames/s): frames not sealed: 4000, 60 of the first"),
        "{detail}"
    );
    assert!(
        detail.contains("2 of 2 trials, 200000 of 200000 frames"),
        "{detail}"
    );
}

#[test]
fn a_trial_of_many_that_fails_is_explained_with_its_number_and_size() {
    let mut fixture = fixture("auto");
    let cipher = fixture.first().cipher.as_mut().unwrap();
    cipher.bytes *= 3;
    let found = fixture.explanation("cipher-link-amount");
    let words = &found.difference;
    assert!(
        words.starts_with("in frame trial 1 (100 kpps) the gateways exchanged "),
        "{words}"
    );
    assert!(words.contains(" MB ("), "{words}");
    assert!(words.ends_with(" more than the frames explain"), "{words}");
    let watch = fixture.first().watch.as_mut().unwrap();
    (watch.foreign_frames, watch.marker_frames) = (4000, 60);
    assert_eq!(
        fixture.explanation("trials-watched").difference,
        "in frame trial 1 (100 kpps) between the gateways crossed 4000 frames not sealed, some with the stations' \
         data in clear"
    );
    let trial = &mut fixture.result.trials[0];
    trial.late_frames = trial.sent / 5;
    trial.late_ns_max = 30 * MS;
    assert_eq!(
        fixture.explanation("offered-as-intended").difference,
        "20000 frames (20 %) of those sent at 100 kpps left over 1 ms late, the latest by 30 ms, so the load came in \
         bursts"
    );
}

#[test]
fn frames_past_the_link_are_missing_on_it() {
    let mut fixture = fixture("auto");
    // A third of the time.
    let cipher = fixture.first().cipher.as_mut().unwrap();
    cipher.bytes = cipher.bytes * 2 / 3;
    assert_eq!(fixture.failing(), ["cipher-link-amount"]);
    assert!(
        fixture
            .detail("cipher-link-amount")
            .contains("trial 1 (100000 frames/s): the link")
    );
    // A copy of each frame in the form of sealed packets is too much.
    let cipher = fixture.first().cipher.as_mut().unwrap();
    cipher.bytes *= 3;
    assert_eq!(fixture.failing(), ["cipher-link-amount"]);
}

#[test]
fn a_device_that_forwards_some_frames_without_sealing_them_counts_too_little() {
    let mut fixture = fixture("auto");
    *fixture
        .first()
        .dut
        .as_mut()
        .unwrap()
        .taken_in_bytes
        .as_mut()
        .unwrap() -= 1;
    assert_eq!(fixture.failing(), ["trials-sealed"]);
    fixture.first().dut = None;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    assert!(
        fixture
            .detail("trials-sealed")
            .contains("1 of 2 trials, 100000 of 200000")
    );
    fixture.first().dut = Some(DutWork {
        lost_between_packets: Some(0),
        taken_in_bytes: Some(FRAMES * FRAME_BYTES),
        put_out_bytes: None,
        unaccounted_packets: 65,
    });
    assert_eq!(fixture.failing(), ["trials-sealed"]);
}

#[test]
fn a_device_that_counts_more_than_was_sent_counts_wrongly() {
    let all = FRAMES * (FRAME_BYTES - 18);
    let counting = |bytes: [u64; 2]| {
        let mut fixture = fixture("auto");
        for (trial, bytes) in fixture.result.trials.iter_mut().zip(bytes) {
            let work = trial.readings.as_mut().unwrap().dut.as_mut().unwrap();
            work.put_out_bytes = Some(bytes);
        }
        fixture
    };
    // A gateway's own packets are allowed for.
    assert_eq!(
        counting([all + 50_000, all]).failing(),
        Vec::<String>::new()
    );
    let found = counting([all, 2 * all]);
    assert_eq!(found.failing(), ["trials-sealed"]);
    let detail = found.detail("trials-sealed");
    assert!(
        detail.contains(
            "trial 2 (100000 frames/s): the device counts 22000000 B in clear that it put out, of"
        ),
        "{detail}"
    );
    // What a queue held until the next trial is counted there: here a tenth of the frames.
    let mut late = counting([all, all + all / 10]);
    let first = &mut late.result.trials[0];
    first.received -= FRAMES / 10;
    first.received_bytes -= FRAMES / 10 * FRAME_BYTES;
    let work = first.readings.as_mut().unwrap().dut.as_mut().unwrap();
    work.put_out_bytes = Some(all - all / 10);
    assert_eq!(late.failing(), Vec::<String>::new());
}

/// Packets of 107 B have three bytes of padding.
#[test]
fn padding_is_no_room_for_packets_that_are_missing() {
    let mut fixture = fixture("auto");
    fixture.test.traffic.frames.mix = FrameMix::fixed(125);
    let profile = fixture.cell.dut.adapter.profile();
    let crossed = FRAMES * (14 + profile.cipher_packet_bytes(107) as u64);
    for trial in &mut fixture.result.trials {
        (trial.sent_bytes, trial.received_bytes) = (FRAMES * 125, FRAMES * 125);
        let readings = trial.readings.as_mut().unwrap();
        readings.cipher.as_mut().unwrap().bytes = crossed;
        readings.dut = None;
    }
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture.first().cipher.as_mut().unwrap().bytes -= 1;
    assert_eq!(fixture.failing(), ["cipher-link-amount"]);
}

#[test]
fn a_trial_without_readings_is_not_covered() {
    let mut fixture = fixture("auto");
    fixture.result.trials[0].readings = None;
    assert_eq!(fixture.failing(), ["cipher-link-amount", "trials-watched"]);
    assert!(fixture.detail("trials-watched").contains("1 of 2 trials"));
}

#[test]
fn a_link_that_was_down_is_no_gap_where_the_procedure_took_it_down() {
    let mut fixture = fixture("auto");
    fixture.first().watch.as_mut().unwrap().interrupted = true;
    assert_eq!(fixture.failing(), ["trials-watched"]);
    let cut = DutEvent {
        name: "link-down".to_owned(),
        ..DutEvent::default()
    };
    fixture.result.found =
        journal::record::ProcedureRecord::Disturbed(journal::record::DisturbedTrials {
            disturbances: vec![Disturbance {
                trial: 0,
                events: vec![cut],
                ..Disturbance::default()
            }],
            rekeyed_throughput: None,
        });
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

#[test]
fn a_filter_that_sees_less_than_was_received_in_clear_would_miss_it_elsewhere() {
    let mut fixture = Fixture::new(Adapter::Direct, Direction::Both, false);
    fixture.first().watch.as_mut().unwrap().foreign_frames = FRAMES - 1;
    assert_eq!(fixture.failing(), ["trials-watched"]);
}

#[test]
fn loss_with_a_full_queue_of_the_machine_is_nobodys_unless_it_is_accounted_for() {
    let mut fixture = fixture("auto");
    fixture.first().drops.unattributed = 5;
    // Nothing was lost.
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let lossy = &mut fixture.result.trials[0];
    (lossy.received, lossy.received_bytes) = (FRAMES - 20, (FRAMES - 20) * FRAME_BYTES);
    assert_eq!(fixture.failing(), ["losses-attributed"]);
    assert!(
        fixture
            .detail("losses-attributed")
            .contains("of 20 lost frames up to 5 may be")
    );
    // The station is known to have lost all of them, or the device.
    fixture.first().drops.station = 20;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture.first().drops.station = 0;
    fixture.first().drops.unattributed = 0;
    fixture.first().drops.device = 20;
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

fn search(exceed_ratio_ppm: u32) -> plan::ThroughputSearch {
    plan::ThroughputSearch {
        profile: plan::Profile::Fast,
        goals: vec![plan::Goal {
            name: "ndr".to_owned(),
            criteria: plan::Criteria {
                loss_ratio_ppm: 0,
                exceed_ratio_ppm,
                initial_trial_ns: 50 * MS,
                final_trial_ns: 500 * MS,
                duration_sum_ns: 1000 * MS,
                width_ppm: 5000,
            },
        }],
        max_load: None,
        min_load: 100,
        drain_ns: 0,
        timeout_ns: 1000 * MS,
    }
}

/// A search that found the load of the trials, the second of which has the samples.
fn searched(exceed_ratio_ppm: u32) -> Fixture {
    let mut fixture = fixture("auto");
    fixture.test.procedure = Procedure::Throughput(search(exceed_ratio_ppm));
    fixture.result.throughput = Some(SearchRecord {
        goals: vec![GoalBounds {
            lower: Some(FRAMES),
            ..GoalBounds::default()
        }],
        ..SearchRecord::default()
    });
    fixture
}

fn lose(trial: &mut FrameTrial, frames: u64) {
    trial.received -= frames;
    trial.received_bytes -= frames * FRAME_BYTES;
}

#[test]
fn a_throughput_whose_load_is_not_carried_again_is_none() {
    let mut fixture = searched(500_000);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    lose(&mut fixture.result.trials[1], 100);
    assert_eq!(fixture.failing(), ["throughput-confirmed"]);
    let detail = fixture.detail("throughput-confirmed");
    assert_eq!(
        detail,
        "after the search, 0 of 1 trials at its load met the goal `ndr`: 100 of 100000 lost"
    );
    // Half of the time may exceed it.
    let more = fixture.result.trials[0].clone();
    fixture.result.trials.push(more);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture.test.procedure = Procedure::Throughput(search(0));
    assert_eq!(fixture.failing(), ["throughput-confirmed"]);
}

#[test]
fn a_throughput_that_the_tester_could_not_offer_again_says_how_long_it_took() {
    let mut fixture = searched(0);
    let trial = &mut fixture.result.trials[1];
    trial.elapsed_ns = trial.duration_ns / 100 * 115;
    assert_eq!(fixture.failing(), ["throughput-confirmed"]);
    let detail = fixture.detail("throughput-confirmed");
    assert!(detail.contains(": 0 of 100000 lost (sent in "), "{detail}");
    let found = fixture.explanation("throughput-confirmed");
    assert!(
        found.difference.starts_with("the tester took "),
        "{found:?}"
    );
    assert!(
        found.cause.starts_with("the tester lacked CPU time"),
        "{found:?}"
    );
}

#[test]
fn a_confirming_trial_that_the_tester_disturbed_does_not_count_if_it_was_repeated() {
    let mut fixture = searched(500_000);
    let good = fixture.result.trials[1].clone();
    let mut late = good.clone();
    late.elapsed_ns = late.duration_ns / 100 * 115;
    // Half of the time may exceed the goal: by the first trial, but not by the late one too.
    lose(&mut fixture.result.trials[1], 100);
    fixture.result.trials.extend([late.clone(), good.clone()]);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("throughput-confirmed");
    assert!(detail.contains(" 1 of 2 trials "), "{detail}");
    // The last one counts, and so does the third in sequence: a tester that is always late does not
    // offer the load.
    fixture.result.trials.truncate(3);
    assert_eq!(fixture.failing(), ["throughput-confirmed"]);
    let late = std::iter::repeat_n(late, 2);
    fixture.result.trials.extend(late);
    fixture.result.trials.push(good);
    let detail = fixture.detail("throughput-confirmed");
    assert!(detail.contains(" 1 of 3 trials "), "{detail}");
}

/// What a soak finds at its load is its verdict.
#[test]
fn a_soak_at_a_load_that_is_not_carried_any_more_is_judged_by_the_soak() {
    let mut fixture = searched(500_000);
    fixture.test.procedure = Procedure::Soak(plan::Soak {
        load: plan::BaseLoad::Share {
            percent: 100,
            search: search(500_000),
        },
        duration_ns: 1000 * MS,
        point_ns: 100 * MS,
        segment_ns: 1000 * MS,
        probe_ns: None,
        loss_ppm: 0,
        drift: plan::DriftBounds {
            rate_ppm: 10_000,
            latency_ppm: 500_000,
            memory_ppm: 100_000,
            cpu_ppm: None,
            capacity_ppm: None,
        },
    });
    lose(&mut fixture.result.trials[1], 100);
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

#[test]
fn latencies_between_two_hosts_need_clocks_that_agree() {
    let clocks = |within_ns| ClockAgreement {
        within_ns,
        ..ClockAgreement::default()
    };
    let with = |within_ns, least_ns| {
        let mut fixture = fixture("auto");
        fixture.first().clocks = Some(clocks(within_ns));
        fixture.result.latency = vec![LatencyTrial {
            histogram: vec![LatencyBucket {
                upto_ns: least_ns,
                frames: 10,
            }],
            clocks: Some(clocks(within_ns)),
            ..LatencyTrial::default()
        }];
        fixture
    };
    for (within_ns, least_ns) in [(4000, 40_000), (1000, 200)] {
        assert!(with(within_ns, least_ns).failing().is_empty());
    }
    let fixture = with(4001, 40_000);
    assert_eq!(fixture.failing(), ["clocks-compared"]);
    let words = fixture.explanation("clocks-compared").difference;
    assert!(
        words.contains("known to 4 µs, and the smallest latency is 40 µs"),
        "{words}"
    );
    let detail = with(ClockAgreement::UNKNOWN_NS, 40_000).detail("clocks-compared");
    assert!(detail.contains("not known"), "{detail}");
}

#[test]
fn frames_of_a_format_of_their_own_are_counted_in_every_trial() {
    let adapter = Adapter::External(External {
        boxes: Vec::new(),
        carrier: None,
        format: Some(BoxFormat::Opaque {
            expands_bytes: 64,
            aggregate: false,
        }),
        ports: Vec::new(),
        bump: true,
        gateway: None,
        tunnels: 1,
        suite_word: Some("AES-256-GCM".to_owned()),
        limit_ns: 0,
        ready_ns: 0,
    });
    let mut fixture = Fixture::new(adapter, Direction::Both, false);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    assert!(
        fixture
            .detail("cipher-link-frames")
            .contains("200000 of 200000 frames")
    );
    let packets = fixture.first().cipher.unwrap().packets;
    for (crossed, verb) in [(packets / 2, "fewer"), (packets * 2, "more")] {
        fixture.first().cipher.as_mut().unwrap().packets = crossed;
        assert_eq!(fixture.failing(), ["cipher-link-frames"]);
        let words = fixture.explanation("cipher-link-frames").difference;
        assert!(
            words.starts_with("in frame trial 1 (100 kpps) ") && words.contains(verb),
            "{words}"
        );
    }
}

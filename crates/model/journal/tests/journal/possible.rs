//! Records that contradict themselves have no figure, whatever the version of their journal.

mod devices;
mod largest;
mod plans;
mod soaks;

use crate::fixture::{cell_id, header, trial};
use journal::record::*;
use journal::{FILE_NAME, Journal, Record, Warning, read};
use plan::{Direction, FrameTest, IpVersion, Load, Measurement, Ports, Procedure, Traffic};
use soaks::{SEGMENTS, segment};
use std::fs;
use wire::mix::{FrameMix, TestFrames};

/// Reasons for which a trial with this outcome is invalid when it is read from a journal of a
/// version without checksums; empty if it is measured.
fn reasons(measurement: &Measurement, outcome: Outcome) -> Vec<String> {
    let mut header = Header {
        format: 5,
        ..header()
    };
    header.plan.cells[0].measurement = measurement.clone();
    let mut record = trial(0, 1, outcome);
    if let Record::Trial(trial) = &mut record {
        // Longer than all good figures of these tests, so that each change is the only
        // contradiction.
        trial.duration_ns = 3_000_000_000;
    }
    let journal = journal_of(&header, &record);
    match &journal.trials[0].outcome {
        Outcome::Measured(_) => Vec::new(),
        Outcome::Invalid { reasons, .. } => reasons.clone(),
        Outcome::Failed { reason } => panic!("{reason}"),
    }
}

fn journal_of(header: &Header, record: &Record) -> Journal {
    let dir = tempfile::tempdir().unwrap();
    let lines = [&Record::Header(Box::new(header.clone())), record];
    // Not by a writer: a version without checksums can be changed by hand.
    let lines = lines.map(|line| serde_json::to_string(line).unwrap() + "\n");
    fs::write(dir.path().join(FILE_NAME), lines.concat()).unwrap();
    read(dir.path()).unwrap()
}

fn measured(figures: Figures) -> Measured {
    Measured {
        figures,
        ..Measured::default()
    }
}

/// A change of a record, and the contradiction that it leads to.
type Change<'c, T> = (&'c dyn Fn(&mut T), &'c str);

/// Asserts that good figures stay, and that each change leads to its contradiction.
#[track_caller]
fn contradicts<T: Clone>(
    measurement: &Measurement,
    good: &T,
    outcome: impl Fn(T) -> Measured,
    changes: &[Change<'_, T>],
) {
    let reasons = |value: T| {
        let outcome = Outcome::Measured(Box::new(outcome(value)));
        reasons(measurement, outcome)
    };
    // The good figures must be free of contradictions, or a change could find one that is not
    // its.
    assert_eq!(reasons(good.clone()), Vec::<String>::new());
    for (change, problem) in changes {
        let mut bad = good.clone();
        change(&mut bad);
        let found = reasons(bad);
        let wanted = format!("record-is-possible: {problem}");
        assert!(found.contains(&wanted), "{wanted}\n{found:#?}");
        assert_eq!(in_brief(&found[0]), "record-is-possible");
    }
}

fn tcp() -> Measurement {
    header().plan.cells[0].measurement.clone()
}

#[test]
fn transfers() {
    let good = Transfer {
        parameters: ToolParameters {
            datagram_bytes: Some(100),
            ..ToolParameters::default()
        },
        duration_ns: 2_000_000_000,
        sent_bytes: 400_000,
        received_bytes: 390_000,
        retransmits: None,
        datagrams: Some(Datagrams {
            sent: 4_000,
            lost: 100,
            station_lost: 10,
            ..Datagrams::default()
        }),
        intervals: vec![
            Interval {
                start_ns: 0,
                end_ns: 1_000_000_000,
                bytes: 200_000,
            },
            Interval {
                start_ns: 1_000_000_000,
                end_ns: 2_000_000_000,
                bytes: 190_000,
            },
        ],
        tcp: None,
        reverse: None,
    };
    let datagrams = |transfer: &mut Transfer, change: &dyn Fn(&mut Datagrams)| {
        change(transfer.datagrams.as_mut().unwrap());
    };
    contradicts(
        &tcp(),
        &good,
        |transfer| measured(Figures::Transfer(transfer)),
        &[
            (&|t| t.duration_ns = 0, "a transfer of no duration"),
            (
                &|t| t.duration_ns = 9_000_000_000,
                "9000000000 ns of transfer of 3030000000 ns of the trial",
            ),
            (
                &|t| {
                    datagrams(t, &|d| {
                        d.drain = Some(Drain {
                            time_ns: 2_000_000_001,
                            offered: 1,
                            offered_ns: 1,
                        });
                    });
                },
                "2000000001 ns in which a queue drained of 2000000000 ns of transfer",
            ),
            (
                &|t| t.received_bytes = 490_000,
                "490000 B received, but 390000 B in the intervals",
            ),
            (
                &|t| t.intervals[1].bytes = 990_000,
                "390000 B received, but 1190000 B in the intervals",
            ),
            (
                &|t| t.duration_ns = 1_000_000_000,
                "intervals of 2000000000 ns in a transfer of 1000000000 ns",
            ),
            (
                &|t| t.intervals[0].end_ns = 3_000_000_000,
                "intervals' ends in ns: 2000000000 after 3000000000",
            ),
            (
                &|t| datagrams(t, &|d| d.lost = 5_000),
                "5000 lost of 4000 datagrams sent",
            ),
            (
                &|t| datagrams(t, &|d| d.station_lost = 900),
                "900 lost by the station of 100 datagrams lost",
            ),
            (
                &|t| datagrams(t, &|d| d.sent = 5_000),
                "5000 datagrams of 100 B sent, which are 500000 B, not 400000",
            ),
        ],
    );
}

#[test]
fn round_trips() {
    let good = Latency {
        sent: 4,
        received: 3,
        round_trips_ns: vec![10, 20, 30],
        ..Latency::default()
    };
    let ping = Measurement::Ping {
        count: 4,
        interval_ns: 1,
        payload_bytes: 56,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
    };
    contradicts(
        &ping,
        &good,
        |latency| measured(Figures::Latency(latency)),
        &[
            (&|l| l.sent = 2, "3 replies of 2 requests"),
            (&|l| l.received = 4, "4 replies, but 3 round-trip times"),
            (
                &|l| l.round_trips_ns[1] = 4_000_000_000,
                "4000000000 ns of a round trip of 3030000000 ns of the trial",
            ),
        ],
    );
}

#[test]
fn cpu_time_evidence_and_kind() {
    let good = Measured {
        figures: Figures::None,
        cpu: Cpu {
            wall_ns: 10,
            stations_ns: 8,
            station_a_ns: 5,
            station_b_ns: 3,
            busy_ns: 12,
            ..Cpu::default()
        },
        evidence: Evidence {
            checks: vec![Check::new("no-clear-text", None, "")],
            cipher_link: CipherLink {
                frames: 10,
                esp_frames: 8,
                other_frames: 2,
                opened: Some(OpenedPackets::default()),
                ..CipherLink::default()
            },
            ..Evidence::default()
        },
        ..Measured::default()
    };
    contradicts(
        &tcp(),
        &good,
        |measured| measured,
        &[
            (
                &|m| m.cpu.station_b_ns = 9,
                "14 ns of both of 8 ns of the stations' CPU time",
            ),
            (&|m| m.cpu.wall_ns = 0, "12 ns of CPU time in no time"),
            (
                &|m| m.evidence.checks[0].passed = false,
                "a figure although `no-clear-text` failed",
            ),
            (
                &|m| m.evidence.cipher_link.esp_frames = 9,
                "11 recognised of 10 frames sampled on the cipher link",
            ),
            (
                &|m| m.evidence.cipher_link.opened.as_mut().unwrap().opened = 1,
                "1 opened of 0 sealed packets sampled whole",
            ),
            (
                &|m| m.figures = Figures::Device(Box::default()),
                "figures of another kind than `tcp`",
            ),
        ],
    );
}

fn frames() -> Measurement {
    let traffic = Traffic {
        frames: TestFrames {
            mix: FrameMix::fixed(64),
            flows: 1,
            tunnels: 1,
            contents: wire::mix::Contents::Fixed,
        },
        ip: IpVersion::V4,
        direction: Direction::Both,
        duplex: false,
        ports: Ports::default(),
    };
    let load = Load {
        frames_per_s: None,
        duration_ns: 1,
    };
    Measurement::Frames(FrameTest {
        traffic,
        procedure: Procedure::Load(load),
    })
}

fn frame_trial() -> FrameTrial {
    FrameTrial {
        load: 4_000,
        duration_ns: 1_000_000_000,
        elapsed_ns: 1_000_000_000,
        intended: 4_000,
        sent: 4_000,
        sent_bytes: 64 * 4_000,
        received: 3_900,
        received_bytes: 64 * 3_900,
        late_ns_max: 2_000_000,
        late_frames: 5,
        ..FrameTrial::default()
    }
}

/// Both directions loaded: the one lost all that was lost.
fn duplex_trial() -> FrameTrial {
    let there = frame_trial();
    let back = FrameTrial {
        received: 4_000,
        received_bytes: 64 * 4_000,
        late_frames: 0,
        ..frame_trial()
    };
    FrameTrial {
        intended: 8_000,
        sent: 8_000,
        sent_bytes: 64 * 8_000,
        received: 7_900,
        received_bytes: 64 * 7_900,
        directions: vec![there, back],
        ..frame_trial()
    }
}

fn histogram() -> Vec<LatencyBucket> {
    let bucket = |upto_ns, frames| LatencyBucket { upto_ns, frames };
    vec![bucket(100, 3_000), bucket(200, 900)]
}

fn frame_result() -> FrameResult {
    FrameResult {
        trials: vec![frame_trial()],
        throughput: Some(SearchRecord {
            max_load: 10_000,
            goals: vec![GoalBounds {
                goal: "ndr".into(),
                lower: Some(3_900),
                upper: Some(4_000),
                conditional_throughput: 3_900.0,
                lower_trials: 1,
                upper_trials: 1,
                outcome: None,
            }],
            ..SearchRecord::default()
        }),
        latency: vec![LatencyTrial {
            frames: 3_900,
            histogram: histogram(),
            ..LatencyTrial::default()
        }],
        evidence_trial: Some(0),
        ..FrameResult::default()
    }
}

#[test]
fn frame_trials_searches_and_latencies() {
    let goal = |result: &mut FrameResult, change: &dyn Fn(&mut GoalBounds)| {
        change(&mut result.throughput.as_mut().unwrap().goals[0]);
    };
    contradicts(
        &frames(),
        &frame_result(),
        |result| measured(Figures::Frames(Box::new(result))),
        &[
            (
                &|r| r.trials[0].received = 5_000,
                "5000 received of 4000 frames sent",
            ),
            (
                &|r| r.trials[0].sent = 4_001,
                "4001 sent of 4000 frames intended",
            ),
            (
                &|r| r.trials[0].reordered = 4_000,
                "4000 out of order of 3900 frames received",
            ),
            (
                &|r| r.trials[0].sent_bytes = 356_000,
                "356000 B sent in 4000 frames of 64 to 64 B",
            ),
            (
                &|r| r.trials[0].duration_ns = 0,
                "4000 frames intended in no time",
            ),
            (
                &|r| r.trials[0].elapsed_ns = 0,
                "4000 frames sent in no time",
            ),
            (
                &|r| r.trials[0].late_ns_max = 9,
                "5 frames more than 1 ms late, the latest of them 9 ns",
            ),
            (
                &|r| goal(r, &|g| g.lower = Some(4_900)),
                "`ndr` has the lower bound 4900 and the upper bound 4000 frames/s",
            ),
            (
                &|r| goal(r, &|g| g.upper = Some(94_000)),
                "94000 frames/s, a bound, of 10000 frames/s, the highest load",
            ),
            (
                &|r| goal(r, &|g| g.conditional_throughput = 5_900.0),
                "`ndr` has a throughput of 5900 frames/s at a load of 3900",
            ),
            (
                &|r| goal(r, &|g| g.conditional_throughput = -1.0),
                "`ndr` has a throughput of -1 frames/s at a load of 3900",
            ),
            (
                &|r| goal(r, &|g| g.lower_trials = 0),
                "no trial at the lower bound of `ndr`",
            ),
            (
                &|r| r.latency[0].histogram[0].upto_ns = 900,
                "latencies in ns: 200 after 900",
            ),
            (
                &|r| r.latency[0].histogram[0].frames = 9_000,
                "3900 frames timed, but 9900 in the histogram",
            ),
            (
                &|r| r.evidence_trial = Some(1),
                "the trial of the evidence is number 1 of 1 frame trials",
            ),
        ],
    );
}

#[test]
fn both_directions() {
    let good = FrameResult {
        trials: vec![duplex_trial()],
        ..frame_result()
    };
    contradicts(
        &frames(),
        &good,
        |result| measured(Figures::Frames(Box::new(result))),
        &[(
            &|r| r.trials[0].directions[0].reordered = 1,
            "0 out of order, but 1 in its directions",
        )],
    );
}

fn disturbed() -> FrameResult {
    let bin = |intended, received| TimeBin {
        intended,
        received,
        latency_ns_max: 1,
    };
    let event = |at_ns| DutEvent {
        at_ns,
        ..DutEvent::default()
    };
    let disturbance = Disturbance {
        events: vec![event(1), event(2)],
        timeline: Timeline {
            bin_ns: 1,
            bins: vec![bin(10, 10), bin(10, 9)],
        },
        histogram: histogram(),
        ..Disturbance::default()
    };
    FrameResult {
        found: ProcedureRecord::Disturbed(DisturbedTrials {
            disturbances: vec![disturbance],
            rekeyed_throughput: None,
        }),
        ..frame_result()
    }
}

#[test]
fn disturbances_and_bursts() {
    fn first(result: &mut FrameResult) -> &mut Disturbance {
        match &mut result.found {
            ProcedureRecord::Disturbed(found) => &mut found.disturbances[0],
            _ => panic!("not disturbed"),
        }
    }
    let outcome = |result| measured(Figures::Frames(Box::new(result)));
    contradicts(
        &frames(),
        &disturbed(),
        outcome,
        &[
            (
                &|r| first(r).trial = 4,
                "a trial with events is number 4 of 1 frame trials",
            ),
            (
                &|r| first(r).timeline.bins[1].received = 19,
                "29 received of 20 frames intended in the timeline",
            ),
            (&|r| first(r).events[0].at_ns = 9, "events in ns: 2 after 9"),
            (&|r| first(r).timeline.bin_ns = 0, "bins of no width"),
        ],
    );
    let burst = |lost| BurstTrial {
        frames: 10,
        lost,
        confirming: true,
    };
    let bursts = |lost| FrameResult {
        found: ProcedureRecord::Bursts(vec![burst(lost)]),
        ..frame_result()
    };
    contradicts(
        &frames(),
        &bursts(10),
        outcome,
        &[(&|r| *r = bursts(11), "11 lost of 10 frames of a burst")],
    );
}

#[test]
fn an_intermediate_record_that_contradicts_itself_is_not_used() {
    let mut header = Header {
        format: 5,
        ..header()
    };
    header.plan.cells[0].measurement = frames();
    let soaked = |segment| {
        Record::Soaked(Box::new(SoakProgress {
            cell: cell_id(0),
            repeat: 1,
            load: 1,
            throughput: None,
            trial: frame_trial(),
            segment,
        }))
    };
    assert_eq!(journal_of(&header, &soaked(segment())).soaked.len(), 1);
    for (change, problem) in SEGMENTS {
        let mut bad = segment();
        change(&mut bad);
        let journal = journal_of(&header, &soaked(bad));
        assert!(journal.soaked.is_empty());
        let warning = &journal.warnings[0];
        assert!(matches!(
            warning,
            Warning::Contradiction {
                record: "soaked",
                ..
            }
        ));
        assert!(warning.to_string().contains(problem), "{warning}");
    }
    let attempt = TuneAttempt {
        parameters: ToolParameters::default(),
        payload_bps: 1,
        lost_ppm: Some(2_000_000),
        error: None,
    };
    let tuned = Record::Tuned(Tuned {
        cell: cell_id(0),
        best: ToolParameters::default(),
        attempts: vec![attempt],
    });
    let journal = journal_of(&header, &tuned);
    assert!(journal.tuned.is_empty());
    let warning = journal.warnings[0].to_string();
    assert!(
        warning.contains("2000000 lost of 1000000 parts per million"),
        "{warning}"
    );
}

#[test]
fn of_many_contradictions_the_first_are_reported() {
    let trials = (0..9).map(|_| FrameTrial {
        received: 5_000,
        received_bytes: 64 * 4_000,
        ..frame_trial()
    });
    let result = FrameResult {
        trials: trials.collect(),
        ..frame_result()
    };
    let found = measured(Figures::Frames(Box::new(result)));
    let found = reasons(&frames(), Outcome::Measured(Box::new(found)));
    // Three are written out, and the last one counts the others.
    assert_eq!(found.len(), 4);
    assert!(
        found[3].ends_with("and 15 more contradictions"),
        "{found:#?}"
    );
}

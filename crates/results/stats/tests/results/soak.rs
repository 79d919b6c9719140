//! Soaks: from points to a verdict, with known truths.

use crate::fixture::{SECOND_NS, journal};
use crate::frame_fixture::{add, cell};
use journal::record::*;
use journal::{Journal, Record};
use plan::*;
use stats::{DriftJudgement, Results, SoakResult, SoakRun, SoakVerdict, Status};

const MS: u64 = 1_000_000;
const LOAD: u64 = 1_000;
const POINTS: u64 = 60;

fn soak() -> Procedure {
    Procedure::Soak(Soak {
        load: BaseLoad::Given { frames_per_s: LOAD },
        duration_ns: 2 * POINTS * SECOND_NS,
        point_ns: SECOND_NS,
        segment_ns: POINTS * SECOND_NS,
        probe_ns: None,
        loss_ppm: 0,
        drift: DriftBounds {
            rate_ppm: 10_000,
            latency_ppm: 100_000,
            memory_ppm: 50_000,
            cpu_ppm: Some(200_000),
            capacity_ppm: Some(100_000),
        },
    })
}

/// What a point is to be, by its number from the first of the soak.
type Made = fn(u64, &mut SoakPoint);

/// Small noise without a trend.
fn wiggle(number: u64, to: u64) -> u64 {
    number * 7 % 11 * to / 10
}

/// Two segments of a steady device but for what `made` changes.
fn result(made: Made) -> FrameResult {
    let mut found = FrameResult::default();
    let mut segments = Vec::new();
    for segment in 0..2 {
        let points = (0..POINTS).map(|number| {
            let whole = segment * POINTS + number;
            let mut point = SoakPoint {
                at_ns: number * SECOND_NS,
                intended: LOAD,
                received: LOAD,
                p50_ns: Some(50_000 + wiggle(whole, 500)),
                p99_ns: Some(90_000),
                max_ns: 400_000,
                device: Some(DevicePoint {
                    wall_ns: SECOND_NS,
                    cpu_ns: Some(SECOND_NS / 4),
                    resident_bytes: Some(40_000_000 + wiggle(whole, 8192)),
                    rekeys: Some(u64::from(number % 10 == 0)),
                    desyncs: Some(0),
                }),
                ..SoakPoint::default()
            };
            made(whole, &mut point);
            point
        });
        let points: Vec<SoakPoint> = points.collect();
        let received: u64 = points.iter().map(|point| point.received).sum();
        segments.push(SoakSegment {
            trial: found.trials.len(),
            start: 1,
            started_unix_ns: 1_000 * SECOND_NS + segment * (POINTS * SECOND_NS + 200 * MS),
            point_ns: SECOND_NS,
            points,
            histogram: vec![LatencyBucket {
                upto_ns: 50_000,
                frames: received,
            }],
            probes: Vec::new(),
        });
        found.trials.push(FrameTrial {
            load: LOAD,
            duration_ns: POINTS * SECOND_NS,
            elapsed_ns: POINTS * SECOND_NS,
            intended: POINTS * LOAD,
            sent: POINTS * LOAD,
            received,
            late_ns_max: MS,
            ..FrameTrial::default()
        });
    }
    found.found = ProcedureRecord::Soak(segments);
    found
}

fn segments(found: &mut FrameResult) -> &mut Vec<SoakSegment> {
    match &mut found.found {
        ProcedureRecord::Soak(segments) => segments,
        other => panic!("{other:?}"),
    }
}

fn results(found: Vec<FrameResult>) -> Results {
    let cell = cell("auto", 512, soak());
    let mut run = journal(vec![cell.clone()], found.len() as u32, 8);
    for (repeat, found) in (1..).zip(found) {
        add(&mut run, &cell, repeat, found);
    }
    Results::of(&run)
}

fn figure(results: &Results) -> &SoakResult {
    results.cells[0].frames().unwrap().soak().unwrap()
}

fn judged(found: FrameResult) -> SoakRun {
    figure(&results(vec![found])).runs[0].clone()
}

/// Why it is not stable, in one text.
fn why(found: FrameResult, verdict: SoakVerdict) -> String {
    let run = judged(found);
    assert_eq!(run.verdict, verdict, "{:?}", run.reasons);
    run.reasons.join("; ")
}

#[test]
fn a_steady_device_is_stable_with_all_its_evidence() {
    let run = judged(result(|_, _| ()));
    assert_eq!(
        (run.verdict, run.reasons.len()),
        (SoakVerdict::Stable, 0),
        "{:?}",
        run.reasons
    );
    assert_eq!((run.measured_ns, run.points), (2 * POINTS * SECOND_NS, 120));
    assert_eq!((run.segments, run.starts), (2, 1));
    assert_eq!((run.pauses_ns, run.longest_pause_ns), (200 * MS, 200 * MS));
    assert_eq!((run.lost, run.stalls, run.longest_silence_ns), (0, 0, 0));
    assert!((run.frames_per_s - LOAD as f64).abs() < 1e-6);
    assert_eq!((run.rekeys, run.desyncs), (Some(12), Some(0)));
    assert!((run.cpu_cores.unwrap() - 0.25).abs() < 1e-9);
    for drift in [&run.rate_drift, &run.latency_drift, &run.memory_drift] {
        assert_eq!(drift.unwrap().judged, DriftJudgement::Steady);
    }
    let results = results(vec![result(|_, _| ())]);
    assert!(results.cells[0].verdict().is_none());
    assert_eq!(figure(&results).load.account.lost, 0);
}

#[test]
fn one_lost_frame_is_too_many_where_none_may_be() {
    let found = result(|number, point| point.received -= u64::from(number == 70));
    let why = why(found, SoakVerdict::Unstable);
    assert!(
        why.contains("1 of 120000 frames was lost on the way, of 0 allowed"),
        "{why}"
    );
}

#[test]
fn losses_of_the_receiving_station_neither_blame_nor_clear_the_device() {
    let mut found = result(|number, point| point.received -= u64::from(number == 70));
    found.trials[1].receiver_dropped = 1;
    let why = why(found, SoakVerdict::Inconclusive);
    assert!(
        why.contains("the receiving station lost 1 frame itself"),
        "{why}"
    );
}

#[test]
fn a_stall_is_found_whether_frames_are_lost_or_held_back() {
    let lost = result(|number, point| {
        if number == 30 || number == 31 {
            point.silent_ns = if number == 30 { 400 * MS } else { 900 * MS };
            point.received -= 400;
        }
    });
    let run = judged(lost);
    // One silence over two points is one stall.
    assert_eq!((run.stalls, run.longest_silence_ns), (1, 900 * MS));
    assert_eq!(run.first_stalls[0].ns, 900 * MS);
    assert_eq!(run.first_stalls[0].at_ns, 30 * SECOND_NS);
    let held: Made = |number, point| {
        if number == 90 {
            point.max_ns = 250 * MS;
        }
    };
    let why = why(result(held), SoakVerdict::Unstable);
    assert!(why.contains("it stalled once"), "{why}");
    // Unless the generator itself was that late.
    let mut late = result(held);
    late.trials[1].late_ns_max = 240 * MS;
    assert_eq!(judged(late).verdict, SoakVerdict::Stable);
}

#[test]
fn memory_that_grows_is_found_and_so_is_latency() {
    let leaks = why(
        result(|number, point| {
            if let Some(device) = &mut point.device {
                device.resident_bytes = device.resident_bytes.map(|bytes| bytes + 100_000 * number);
            }
        }),
        SoakVerdict::Unstable,
    );
    assert!(
        leaks.contains("the device's memory drifted by +26 %"),
        "{leaks}"
    );
    assert!(!leaks.contains("latency"), "{leaks}");
    let slows = why(
        result(|number, point| point.p50_ns = point.p50_ns.map(|ns| ns + 100 * number)),
        SoakVerdict::Unstable,
    );
    assert!(
        slows.contains("the median latency drifted by +2"),
        "{slows}"
    );
}

#[test]
fn memory_that_fills_first_and_then_stays_is_steady() {
    let run = judged(result(|number, point| {
        if let Some(device) = point.device.as_mut().filter(|_| number < 5) {
            device.resident_bytes = Some(1_000_000 * (1 + number));
        }
    }));
    assert_eq!(run.verdict, SoakVerdict::Stable, "{:?}", run.reasons);
}

#[test]
fn too_little_of_anything_is_inconclusive() {
    let mut half = result(|_, _| ());
    segments(&mut half).truncate(1);
    half.trials.truncate(1);
    let time = why(half, SoakVerdict::Inconclusive);
    assert!(
        time.contains("only 60 s of 2 min has been measured"),
        "{time}"
    );
    let mut few = result(|_, _| ());
    for segment in segments(&mut few) {
        segment.points.truncate(14);
    }
    let few = why(few, SoakVerdict::Inconclusive);
    assert!(
        few.contains("28 points are too few to decide whether the rate drifts"),
        "{few}"
    );
    let noisy = why(
        result(|number, point| point.p50_ns = Some(50_000 + wiggle(number, 90_000))),
        SoakVerdict::Inconclusive,
    );
    assert!(
        noisy.contains("the median latency may have drifted"),
        "{noisy}"
    );
    // Memory may be unknown.
    let silent = judged(result(|_, point| point.device = None));
    assert_eq!(silent.verdict, SoakVerdict::Stable, "{:?}", silent.reasons);
    assert_eq!((silent.rekeys, silent.memory_drift), (None, None));
}

#[test]
fn keys_out_of_step_are_no_stable_soak_even_when_nothing_is_lost() {
    let found = result(|number, point| {
        if let Some(device) = point.device.as_mut().filter(|_| number == 44) {
            device.desyncs = Some(1);
        }
    });
    let why = why(found, SoakVerdict::Unstable);
    assert!(why.contains("its keys fell out of step once"), "{why}");
}

#[test]
fn the_worst_repeat_counts() {
    let lossy = result(|number, point| point.received -= u64::from(number == 70));
    let results = results(vec![result(|_, _| ()), lossy, result(|_, _| ())]);
    let found = figure(&results);
    assert_eq!(found.verdict, SoakVerdict::Unstable);
    let verdicts: Vec<SoakVerdict> = found.runs.iter().map(|run| run.verdict).collect();
    let (stable, unstable) = (SoakVerdict::Stable, SoakVerdict::Unstable);
    assert_eq!(verdicts, [stable, unstable, stable]);
}

#[test]
fn memory_of_a_device_that_was_started_again_is_no_drift() {
    let mut found = result(|number, point| {
        if let Some(device) = point.device.as_mut().filter(|_| number >= POINTS) {
            device.resident_bytes = device.resident_bytes.map(|bytes| bytes / 2);
        }
    });
    // It cannot be decided whether such a step is a drift.
    assert_ne!(judged(found.clone()).verdict, SoakVerdict::Stable);
    segments(&mut found)[1].start = 2;
    let run = judged(found);
    assert_eq!(
        (run.verdict, run.starts),
        (SoakVerdict::Stable, 2),
        "{:?}",
        run.reasons
    );
}

#[test]
fn an_interrupted_soak_reports_its_progress() {
    let cell = cell("auto", 512, soak());
    let mut run: Journal = journal(vec![cell.clone()], 1, 8);
    let found = result(|_, _| ());
    let progress = SoakProgress {
        cell: cell.id.clone(),
        repeat: 1,
        load: LOAD,
        throughput: None,
        trial: found.trials[0].clone(),
        segment: found.soak()[0].clone(),
    };
    run.accept(Record::Soaked(Box::new(progress))).unwrap();
    let results = Results::of(&run);
    assert_eq!(results.cells[0].status, Status::NotRun);
    let reason = &results.cells[0].reasons[0].text;
    assert!(
        reason.contains("it broke off after 60 s, with 0 frames lost"),
        "{reason}"
    );
}

/// A probe before each segment and one after the last, with these capacities of 100,000 frames/s
/// offered.
fn probed(capacities: &[u64]) -> FrameResult {
    let mut found = result(|_, _| ());
    let own = segments(&mut found);
    // Six segments of 20 points.
    let points: Vec<SoakPoint> = own.iter().flat_map(|one| one.points.clone()).collect();
    let count = capacities.len() - 1;
    let each = points.len() / count;
    let first = own[0].clone();
    let trial = found.trials[0].clone();
    let segment = |number: usize| {
        let begin = 1_000 * SECOND_NS + number as u64 * (each as u64 + 2) * SECOND_NS;
        let mut points = points[number * each..(number + 1) * each].to_vec();
        (0..)
            .zip(&mut points)
            .for_each(|(place, point)| point.at_ns = place * SECOND_NS);
        let last = number + 1 == count;
        let probes = (number..=number + usize::from(last)).map(|place| SoakProbe {
            at_unix_ns: begin - SECOND_NS + (place - number) as u64 * (each as u64 + 2) * SECOND_NS,
            trial: FrameTrial {
                duration_ns: SECOND_NS,
                elapsed_ns: SECOND_NS,
                sent: 100_000,
                received: capacities[place],
                ..FrameTrial::default()
            },
        });
        SoakSegment {
            trial: number,
            started_unix_ns: begin,
            probes: probes.collect(),
            points,
            ..first.clone()
        }
    };
    let made: Vec<SoakSegment> = (0..count).map(segment).collect();
    found.trials = (0..count)
        .map(|_| FrameTrial {
            duration_ns: each as u64 * SECOND_NS,
            elapsed_ns: each as u64 * SECOND_NS,
            intended: each as u64 * LOAD,
            sent: each as u64 * LOAD,
            received: each as u64 * LOAD,
            ..trial.clone()
        })
        .collect();
    found.found = ProcedureRecord::Soak(made);
    found
}

/// The load is carried without loss all the time, so that received by offered shows nothing.
#[test]
fn a_capacity_that_falls_is_found_by_probes() {
    let run = judged(probed(&[
        90_000, 84_000, 79_000, 73_000, 68_000, 62_000, 57_000,
    ]));
    assert_eq!((run.verdict, run.lost), (SoakVerdict::Unstable, 0));
    assert!(
        run.reasons[0].starts_with("the capacity drifted by"),
        "{:?}",
        run.reasons
    );
    assert_eq!(run.capacity.len(), 7);
    assert!(run.capacity[0].at_s < 0.0 && (run.capacity[6].frames_per_s - 57_000.0).abs() < 1e-6);
    let drift = run.capacity_drift.expect("probes");
    assert!((drift.change_ratio + 0.42).abs() < 0.1, "{drift:?}");
    let rate = run.rate_drift.expect("a rate");
    assert_eq!(rate.judged, DriftJudgement::Steady);
}

#[test]
fn a_steady_capacity_is_stable_and_few_probes_show_nothing() {
    let steady = judged(probed(&[
        90_000, 90_500, 89_800, 90_200, 90_100, 89_900, 90_300,
    ]));
    assert_eq!(steady.verdict, SoakVerdict::Stable, "{:?}", steady.reasons);
    let few = judged(probed(&[90_000, 80_000, 70_000]));
    assert_eq!(few.verdict, SoakVerdict::Inconclusive);
    assert!(
        few.reasons[0].contains("3 probes are too few"),
        "{:?}",
        few.reasons
    );
}

#[test]
fn a_device_that_carries_all_that_the_tester_sends_has_no_capacity_to_drift() {
    let run = judged(probed(&[100_000; 7]));
    assert!(run.capacity_at_least && run.capacity_drift.is_none());
    assert_eq!(run.verdict, SoakVerdict::Stable, "{:?}", run.reasons);
}

#[test]
fn cpu_time_that_grows_is_a_drift() {
    let why = why(
        result(|number, point| {
            if let Some(device) = &mut point.device {
                device.cpu_ns = Some(SECOND_NS / 4 + number * 2 * MS);
            }
        }),
        SoakVerdict::Unstable,
    );
    assert!(why.contains("the device's CPU time drifted by"), "{why}");
}

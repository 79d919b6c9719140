//! What each procedure asks of a rig, and what it records.

use crate::rig::{CEILING, MS, SECOND, Simulated, cell, search, test, trial};
use journal::record::{LatencyBucket, Reflection};
use plan::{
    BackToBack, LatencyPath, LatencyTest, Load, LossCurve, Mrr, Procedure, Recovery, ServiceStep,
    ServiceTest, ThroughputSearch,
};
use search::simulate::Behaviour;
use testbed::{Interrupt, LabError};
use trial::frames::{FrameRun, Rig, RigLoad, carry_out, take_evidence};
use trial::{TrialError, TrialEvent};

const CAPACITY: u64 = 500_000;

fn hard() -> Simulated {
    Simulated::new(Behaviour::Hard { capacity: CAPACITY })
}

#[test]
fn a_load_is_one_trial_with_its_counts_and_latency() {
    let load = Load {
        frames_per_s: Some(CAPACITY * 2),
        duration_ns: 100 * MS,
    };
    let found = hard().carry_out(Procedure::Load(load)).unwrap();
    let [trial] = &found.result.trials[..] else {
        panic!("one trial")
    };
    assert_eq!(
        (trial.load, trial.sent, trial.received),
        (1_000_000, 100_000, 50_000)
    );
    let [latency] = &found.result.latency[..] else {
        panic!("one latency")
    };
    assert_eq!(
        (latency.percent, latency.load, latency.frames),
        (None, 1_000_000, 50_000)
    );
    assert_eq!(found.evidence_load.frames_per_s, Some(1_000_000));
}

#[test]
fn a_load_as_fast_as_can_be_is_recorded_as_load_0() {
    let load = Load {
        frames_per_s: None,
        duration_ns: 100 * MS,
    };
    let found = hard().carry_out(Procedure::Load(load)).unwrap();
    assert_eq!(found.result.trials[0].load, 0);
    assert_eq!(found.result.trials[0].sent, CEILING / 10);
    assert_eq!(found.evidence_load.frames_per_s, None);
}

#[test]
fn a_search_ends_with_the_trial_of_the_evidence_and_others_are_followed_by_it() {
    let found = hard().carry_out(Procedure::Throughput(search())).unwrap();
    let lower = found.result.throughput.as_ref().unwrap().goals[0].lower;
    let last = found.result.trials.len() - 1;
    assert_eq!(found.result.evidence_trial, Some(last));
    assert_eq!(Some(found.result.trials[last].load), lower);
    assert_eq!(found.result.latency[0].load, lower.unwrap());

    let mut rig = hard();
    let load = Load {
        frames_per_s: Some(CAPACITY),
        duration_ns: 100 * MS,
    };
    let mut found = rig.carry_out(Procedure::Load(load.clone())).unwrap();
    assert_eq!(found.result.evidence_trial, None);
    let test = test(Procedure::Load(load));
    take_evidence(&mut found, &test, &mut rig, &Interrupt::new()).unwrap();
    assert_eq!(found.result.evidence_trial, Some(1));
    assert_eq!(found.result.trials.len(), 2);
}

#[test]
fn the_maximum_receive_rate_is_measured_at_the_highest_load_several_times() {
    let plan = Mrr {
        max_load: None,
        trials: 3,
        trial_ns: 100 * MS,
        drain_ns: MS,
    };
    let mut rig = hard();
    rig.line_rate = Some(CAPACITY * 2);
    let found = rig.carry_out(Procedure::Mrr(plan)).unwrap();
    assert_eq!(found.result.flood_trial, Some(0));
    let trials = found.result.trials[1..].iter();
    let counts: Vec<_> = trials.map(|trial| (trial.load, trial.received)).collect();
    assert_eq!(counts, [(1_000_000, 50_000); 3]);
    assert_eq!(found.evidence_load.frames_per_s, Some(1_000_000));
}

#[test]
fn a_service_is_tested_in_steps_up_to_its_rates_and_above() {
    let plan = ServiceTest {
        cir: 400_000,
        eir: 100_000,
        loss_ppm: 0,
        delay_ns: None,
        variation_ns: None,
        policing: true,
        step_ns: 100 * MS,
        drain_ns: MS,
    };
    let found = hard().carry_out(Procedure::Service(plan)).unwrap();
    let trials = &found.result.trials;
    let steps = found.result.service().iter();
    let steps: Vec<_> = steps
        .map(|step| {
            (
                step.step,
                trials[step.trial].load,
                trials[step.trial].received,
            )
        })
        .collect();
    let expected = [
        (ServiceStep::Cir(25), 100_000, 10_000),
        (ServiceStep::Cir(50), 200_000, 20_000),
        (ServiceStep::Cir(75), 300_000, 30_000),
        (ServiceStep::Cir(100), 400_000, 40_000),
        (ServiceStep::Eir, 500_000, 50_000),
        (ServiceStep::Policing, 525_000, 50_000),
    ];
    assert_eq!(steps, expected);
    assert!(
        found
            .result
            .service()
            .iter()
            .all(|step| step.latency.variation.len() == 1)
    );
    assert_eq!(found.evidence_load.frames_per_s, Some(400_000));
}

#[test]
fn a_loss_curve_falls_until_two_loads_in_a_row_lose_nothing() {
    let curve = LossCurve {
        max_load: Some(1_000_000),
        step_percent: 20,
        trial_ns: 100 * MS,
        drain_ns: MS,
    };
    let found = hard().carry_out(Procedure::LossCurve(curve)).unwrap();
    // The first trial warms the device up.
    assert_eq!(found.result.flood_trial, Some(0));
    let trials = found.result.trials[1..].iter();
    let points: Vec<(u64, u64)> = trials.map(|trial| (trial.load, trial.lost())).collect();
    let expected = [
        (1_000_000, 50_000),
        (800_000, 30_000),
        (600_000, 10_000),
        (400_000, 0),
        (200_000, 0),
    ];
    assert_eq!(points, expected);
    assert_eq!(found.evidence_load.frames_per_s, Some(400_000));
}

#[test]
fn the_longest_burst_without_loss_is_confirmed() {
    let mut rig = Simulated::new(Behaviour::Queue {
        capacity: CAPACITY,
        frames: 1000,
    });
    rig.line_rate = Some(2 * CAPACITY);
    let plan = BackToBack {
        burst_ns_max: 100 * MS,
        bursts: 5,
        drain_ns: MS,
    };
    let found = rig.carry_out(Procedure::BackToBack(plan)).unwrap();
    let bursts = found.result.bursts();
    // Half of a burst leaves while it comes.
    let longest = bursts
        .iter()
        .filter(|burst| burst.lost == 0)
        .map(|burst| burst.frames)
        .max();
    assert!((1998..=2001).contains(&longest.unwrap()), "{longest:?}");
    let confirming = bursts.iter().filter(|burst| burst.confirming);
    assert_eq!(confirming.filter(|burst| burst.lost == 0).count(), 5);
    // Every burst had the requested number of frames, at the line rate.
    for (burst, load) in bursts.iter().zip(&rig.loads[1..]) {
        assert_eq!(
            (load.intended(), load.frames_per_s),
            (burst.frames, Some(2 * CAPACITY))
        );
    }
}

#[test]
fn a_burst_has_exactly_the_frames_asked_for_at_any_rate() {
    for rate in [1, 3, 999, 1_488_095, 14_880_952, 99_999_999] {
        for frames in [1, 2, 7, 1000, 12_345] {
            assert_eq!(
                RigLoad::burst(frames, rate, 0).intended(),
                frames,
                "{rate} frames/s"
            );
        }
    }
}

#[test]
fn latency_is_measured_in_as_many_trials_as_asked_with_their_delay_variation() {
    let plan = LatencyTest {
        search: search(),
        percents: vec![10, 50],
        trial_ns: 300 * MS,
        trials: 20,
        path: LatencyPath::OneWay,
    };
    let mut rig = hard();
    let found = rig.carry_out(Procedure::Latency(plan)).unwrap();
    let latency = &found.result.latency;
    let of = |percent| {
        latency
            .iter()
            .filter(move |trial| trial.percent == Some(percent))
    };
    assert_eq!(
        (latency.len(), of(10).count(), of(50).count()),
        (40, 20, 20)
    );
    assert!(latency.iter().all(|trial| trial.variation.len() == 1));
    // A search needs no delay variation.
    let searched = rig.loads.len() - 40;
    assert!(rig.loads.iter().take(searched).all(|load| !load.variation));
}

#[test]
fn latency_is_measured_at_shares_of_the_throughput() {
    let plan = LatencyTest {
        search: search(),
        percents: vec![0, 10, 50, 90],
        trial_ns: 300 * MS,
        trials: 1,
        path: LatencyPath::OneWay,
    };
    let mut rig = hard();
    let found = rig.carry_out(Procedure::Latency(plan)).unwrap();
    let throughput = found.result.throughput.as_ref().unwrap().goals[0]
        .lower
        .unwrap();
    let latency = found.result.latency.iter();
    let loads: Vec<(Option<u8>, u64)> = latency.map(|trial| (trial.percent, trial.load)).collect();
    let share = |percent: u64| throughput * percent / 100;
    let expected = [
        (Some(0), 1000),
        (Some(10), share(10)),
        (Some(50), share(50)),
        (Some(90), share(90)),
    ];
    assert_eq!(loads, expected);
    assert!(
        found
            .result
            .latency
            .iter()
            .all(|trial| trial.frames == trial.load * 3 / 10)
    );
    // The trial with the evidence is watched, so its latency is no figure.
    let mut found = found;
    let run = rig.run(&found.evidence_load, &Interrupt::new()).unwrap();
    found.add_evidence(&run);
    assert_eq!(found.result.latency.len(), 4);
}

fn recovery() -> Recovery {
    Recovery {
        search: search(),
        overload_percent: 110,
        relief_percent: 50,
        overload_ns: SECOND,
        relief_ns: SECOND,
    }
}

#[test]
fn recovery_is_the_time_from_the_overloads_end_to_the_last_loss() {
    let mut rig = hard();
    rig.recovers_in_ns = 40 * MS;
    let found = rig.carry_out(Procedure::Recovery(recovery())).unwrap();
    let throughput = found.result.throughput.as_ref().unwrap().goals[0]
        .lower
        .unwrap();
    let recovery = found.result.recovery().unwrap();
    assert_eq!(recovery.overload, throughput * 110 / 100);
    assert_eq!(recovery.relief, throughput / 2);
    assert_eq!((recovery.recovery_ns, recovery.recovered), (40 * MS, true));
    assert_eq!(recovery.overload_lost, recovery.overload - CAPACITY);
    // 40 ms of the second of relief.
    assert_eq!(recovery.relief_lost, recovery.relief * 4 / 100);
}

#[test]
fn a_device_that_still_loses_at_the_end_has_not_recovered() {
    let mut rig = hard();
    rig.recovers_in_ns = SECOND;
    let found = rig.carry_out(Procedure::Recovery(recovery())).unwrap();
    assert!(!found.result.recovery().unwrap().recovered);
}

#[test]
fn a_device_that_forwards_nothing_any_more_has_not_recovered() {
    let mut rig = hard();
    rig.dies = true;
    let found = rig.carry_out(Procedure::Recovery(recovery())).unwrap();
    let recovery = found.result.recovery().unwrap();
    assert!(recovery.relief_lost > 0 && !recovery.recovered);
}

#[test]
fn an_overload_is_no_more_than_the_line_carries() {
    let mut rig = hard();
    rig.line_rate = Some(CAPACITY + 1000);
    let found = rig.carry_out(Procedure::Recovery(recovery())).unwrap();
    assert_eq!(found.result.recovery().unwrap().overload, CAPACITY + 1000);
}

#[test]
fn without_a_throughput_there_are_no_shares_of_it_and_the_reason_is_recorded() {
    let latency = LatencyTest {
        search: search(),
        percents: vec![50],
        trial_ns: 100 * MS,
        trials: 1,
        path: LatencyPath::OneWay,
    };
    for procedure in [Procedure::Latency(latency), Procedure::Recovery(recovery())] {
        let mut rig = Simulated::new(Behaviour::Hard { capacity: 10 });
        let found = rig.carry_out(procedure).unwrap();
        let reason = found.objection.unwrap();
        assert!(
            reason.contains("not even the lowest of 1000 frames/s"),
            "{reason}"
        );
        assert!(found.result.latency.is_empty() && found.result.recovery().is_none());
    }
}

#[test]
fn each_trial_is_reported_before_it_begins_with_the_bounds_so_far() {
    let test = test(Procedure::Throughput(search()));
    let cell = cell(&test);
    let (mut numbers, mut last_bounds, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    let mut rig = hard();
    let mut events = |event: TrialEvent<'_>| {
        let TrialEvent::FrameTrial(step) = event else {
            panic!("no search has segments")
        };
        numbers.push(step.number);
        last_bounds = step.bounds.to_vec();
        losses.push(step.last.map(journal::record::FrameTrial::lost));
    };
    let found = carry_out(
        &trial(&cell),
        &test,
        &mut rig,
        &mut events,
        &Interrupt::new(),
    )
    .unwrap();
    assert_eq!(numbers, (1..=found.result.trials.len()).collect::<Vec<_>>());
    let bounds = &last_bounds[0];
    assert!(bounds.lower.unwrap() <= CAPACITY && CAPACITY <= bounds.upper.unwrap());
    assert_eq!(losses[0], None);
    assert_eq!(losses[1], Some(found.result.trials[0].lost()));
}

#[test]
fn an_interrupt_ends_a_search_at_once() {
    let test = test(Procedure::Throughput(search()));
    let mut rig = hard();
    rig.interrupt_in = Some(3);
    let cell = cell(&test);
    let ended = carry_out(
        &trial(&cell),
        &test,
        &mut rig,
        &mut |_| (),
        &Interrupt::new(),
    );
    assert!(matches!(ended, Err(TrialError::Lab(LabError::Interrupted))));
    assert_eq!(rig.loads.len(), 3);
}

#[test]
fn a_plan_that_cannot_be_searched_fails_with_its_reason() {
    let plan = ThroughputSearch {
        goals: Vec::new(),
        ..search()
    };
    let error = hard().carry_out(Procedure::Throughput(plan)).unwrap_err();
    assert!(error.to_string().contains("no goal"), "{error}");
}

#[test]
fn latencies_of_two_directions_are_pooled_and_kept_apart() {
    let run = |upto_ns, frames| FrameRun {
        latency: vec![LatencyBucket { upto_ns, frames }],
        ..FrameRun::default()
    };
    let (there, back) = (run(10, 3), run(20, 4));
    let both = there.clone().and(&back);
    assert_eq!(both.latency, [&there.latency[..], &back.latency].concat());
    assert_eq!(both.latency_each, [there.latency, back.latency.clone()]);
    // Of reflected frames the second is the way there and back.
    let reflected = FrameRun {
        reflection: Some(Reflection::default()),
        ..back
    };
    assert!(run(10, 3).and(&reflected).latency_each.is_empty());
}

//! Soaks: their segments, the records of each, and the resume of an interrupted one.

use crate::rig::{MS, SECOND, Simulated, cell, check, search, test, trial};
use journal::record::SoakProgress;
use plan::{BaseLoad, DriftBounds, Procedure, Soak};
use search::simulate::Behaviour;
use testbed::{Interrupt, LabError};
use trial::TrialError;
use trial::frames::{ProcedureResult, Rig, carry_out};
use trial::{Checkpoint, Trial, TrialEvent};

const CAPACITY: u64 = 500_000;

fn soak(load: BaseLoad) -> Procedure {
    Procedure::Soak(Soak {
        load,
        duration_ns: 100 * SECOND,
        point_ns: SECOND,
        segment_ns: 30 * SECOND,
        probe_ns: None,
        loss_ppm: 0,
        drift: DriftBounds {
            rate_ppm: 10_000,
            latency_ppm: 500_000,
            memory_ppm: 100_000,
            cpu_ppm: None,
            capacity_ppm: None,
        },
    })
}

fn given() -> Procedure {
    soak(BaseLoad::Given {
        frames_per_s: 10_000,
    })
}

fn shared() -> Procedure {
    soak(BaseLoad::Share {
        percent: 90,
        search: search(),
    })
}

fn rig() -> Simulated {
    Simulated::new(Behaviour::Hard { capacity: CAPACITY })
}

/// The result, and the segments reported before.
fn carried_out(
    rig: &mut Simulated,
    procedure: Procedure,
    earlier: &[SoakProgress],
) -> (Result<ProcedureResult, TrialError>, Vec<SoakProgress>) {
    let test = test(procedure);
    let cell = cell(&test);
    let checkpoints: Vec<Checkpoint> = earlier.iter().cloned().map(Checkpoint::from).collect();
    let trial = Trial {
        checkpoints: &checkpoints,
        ..trial(&cell)
    };
    let mut kept = Vec::new();
    let mut events = |event: TrialEvent<'_>| {
        if let TrialEvent::Checkpoint(Checkpoint::Soak(soak)) = event {
            kept.push((**soak).clone());
        }
    };
    let found = carry_out(&trial, &test, rig, &mut events, &Interrupt::new());
    (found, kept)
}

fn seconds(rig: &Simulated) -> Vec<u64> {
    rig.loads
        .iter()
        .map(|load| load.duration_ns / SECOND)
        .collect()
}

#[test]
fn a_soak_is_made_in_segments_and_each_is_reported_at_its_end() {
    let mut rig = rig();
    let (found, kept) = carried_out(&mut rig, given(), &[]);
    let mut found = found.unwrap();
    assert_eq!(seconds(&rig), [30, 30, 30, 10]);
    assert_eq!(kept.len(), 4);
    let segments = found.result.soak();
    assert!(kept.iter().map(|kept| &kept.segment).eq(segments));
    assert!(segments.iter().all(|segment| segment.start == 1));
    assert!(segments.iter().map(|segment| segment.trial).eq(0..4));
    let run = rig.run(&found.evidence_load, &Interrupt::new()).unwrap();
    found.add_evidence(&run);
    assert!(check(given(), &found, "offered-as-intended").passed);
}

#[test]
fn a_soak_that_broke_off_goes_on_with_the_rest_at_the_same_load() {
    let mut first = rig();
    let (found, _) = carried_out(&mut first, shared(), &[]);
    let searched = first.loads.len() - 4;
    let load = found.unwrap().result.soak()[0].points[0].intended / 30;
    // Ctrl-C in the third segment.
    let mut broken = rig();
    broken.interrupt_in = Some(searched + 3);
    let (ended, kept) = carried_out(&mut broken, shared(), &[]);
    assert!(matches!(ended, Err(TrialError::Lab(LabError::Interrupted))));
    assert_eq!(kept.len(), 2);
    assert!(
        kept.iter()
            .all(|kept| kept.throughput.is_some() && kept.load == load)
    );

    let mut again = rig();
    let (found, rest) = carried_out(&mut again, shared(), &kept);
    let found = found.unwrap().result;
    // No search, and neither of the first two.
    assert_eq!(seconds(&again), [30, 10]);
    assert!(
        again
            .loads
            .iter()
            .all(|made| made.frames_per_s == Some(load))
    );
    assert_eq!(rest.len(), 2);
    let starts: Vec<u32> = found.soak().iter().map(|segment| segment.start).collect();
    assert_eq!(starts, [1, 1, 2, 2]);
    assert!(found.soak().iter().map(|segment| segment.trial).eq(0..4));
    let time: u64 = found.trials.iter().map(|trial| trial.duration_ns).sum();
    assert_eq!(time, 100 * SECOND);
    assert_eq!(found.throughput, kept[0].throughput);
}

#[test]
fn a_load_that_was_not_offered_in_one_segment_is_recorded() {
    let mut slow = rig();
    slow.flaws.slow_sender = Some(9_000);
    let (found, _) = carried_out(&mut slow, given(), &[]);
    let mut found = found.unwrap();
    let run = slow.run(&found.evidence_load, &Interrupt::new()).unwrap();
    found.add_evidence(&run);
    assert!(!check(given(), &found, "offered-as-intended").passed);
}

#[test]
fn nothing_to_take_a_share_of_is_no_soak() {
    let mut dead = Simulated::new(Behaviour::Hard { capacity: 100 });
    let (found, kept) = carried_out(&mut dead, shared(), &[]);
    let found = found.unwrap();
    assert!(found.objection.is_some() && kept.is_empty() && found.result.soak().is_empty());
    assert!(
        dead.loads
            .iter()
            .all(|load| load.duration_ns <= SECOND + 300 * MS)
    );
}

#[test]
fn the_capacity_is_probed_around_segments_and_its_losses_are_not_the_soaks() {
    let mut rig = rig();
    let Procedure::Soak(mut plan) = given() else {
        unreachable!("it is a soak")
    };
    plan.probe_ns = Some(SECOND);
    let (found, kept) = carried_out(&mut rig, Procedure::Soak(plan), &[]);
    let found = found.unwrap().result;
    assert_eq!(seconds(&rig), [1, 30, 1, 30, 1, 30, 1, 10, 1]);
    let probes: Vec<usize> = found.soak().iter().map(|one| one.probes.len()).collect();
    assert_eq!(probes, [1, 1, 1, 2]);
    // The last one is in the trial's record only.
    assert!(kept.iter().all(|kept| kept.segment.probes.len() == 1));
    let overload = &found.soak()[0].probes[0].trial;
    let rate = overload.received as f64 / (overload.elapsed_ns as f64 / 1e9);
    assert!((rate / CAPACITY as f64 - 1.0).abs() < 0.01, "{rate}");
    assert!(overload.lost() > 0);
    assert_eq!(found.trials.len(), 4);
    assert!(found.trials.iter().all(|trial| trial.lost() == 0));
}

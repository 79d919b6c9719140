//! Latency there and back, where it is asked for and where clocks leave no other.

use crate::rig::{MS, Simulated, search};
use journal::record::LatencyTrial;
use plan::{LatencyPath, LatencyTest, Load, Procedure};
use search::simulate::Behaviour;
use trial::frames::{ProcedureResult, RigLoad};

/// Latencies of the simulated device are just above 1 us, so a bound of that is as good as none.
const EXACT_NS: u64 = 1000;
const INEXACT_NS: u64 = 1001;

fn rig(clocks_within_ns: &[u64]) -> Simulated {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: 500_000 });
    rig.clocks_within_ns = clocks_within_ns.to_vec();
    rig
}

fn latency(path: LatencyPath) -> Procedure {
    Procedure::Latency(LatencyTest {
        search: search(),
        percents: vec![0, 50],
        trial_ns: 100 * MS,
        trials: 2,
        path,
    })
}

/// Whether each of the timed trials is a round trip.
fn paths(found: &ProcedureResult) -> Vec<bool> {
    let is_round_trip = |trial: &LatencyTrial| trial.round_trip.is_some();
    found.result.latency.iter().map(is_round_trip).collect()
}

fn reflected(loads: &[RigLoad]) -> usize {
    loads.iter().filter(|load| load.reflected).count()
}

#[test]
fn round_trips_that_are_asked_for_are_of_loads_there_and_back() {
    let mut rig = rig(&[]);
    let found = rig
        .carry_out(latency(LatencyPath::RoundTrip))
        .expect("a result");
    assert_eq!(paths(&found), [true; 4]);
    assert_eq!(reflected(&rig.loads), rig.loads.len());
    assert!(found.evidence_load.reflected);
    assert!(found.result.trials.iter().all(|trial| trial.loads_both()));
}

#[test]
fn clocks_that_agree_well_enough_time_one_way() {
    for within_ns in [&[][..], &[EXACT_NS]] {
        let mut rig = rig(within_ns);
        let found = rig
            .carry_out(latency(LatencyPath::OneWay))
            .expect("a result");
        assert_eq!(paths(&found), [false; 4]);
        assert_eq!(reflected(&rig.loads), 0);
        assert!(!found.evidence_load.reflected);
    }
}

#[test]
fn clocks_that_agree_too_little_are_noticed_before_the_search() {
    let mut rig = rig(&[INEXACT_NS]);
    let found = rig
        .carry_out(latency(LatencyPath::OneWay))
        .expect("a result");
    assert_eq!(paths(&found), [true; 4]);
    assert_eq!(reflected(&rig.loads), rig.loads.len() - 1);
    assert!(found.result.trials.iter().all(|trial| trial.loads_both()));
    assert!(found.evidence_load.reflected);
}

#[test]
fn a_bound_that_widens_in_the_middle_leaves_round_trips_only() {
    // The first trial, and the first of those that are timed.
    let mut known = rig(&[EXACT_NS]);
    known
        .carry_out(latency(LatencyPath::OneWay))
        .expect("a result");
    let until_last = known.loads.len() - 1;
    let mut rig = rig(&[&vec![EXACT_NS; until_last][..], &[INEXACT_NS]].concat());
    let found = rig
        .carry_out(latency(LatencyPath::OneWay))
        .expect("a result");
    assert_eq!(paths(&found), [true; 4]);
    let one_way = rig.loads.len() - reflected(&rig.loads);
    assert_eq!(one_way, known.loads.len());
    let alike = found.result.trials_on_path().count();
    assert_eq!(alike, reflected(&rig.loads));
    assert!(found.evidence_load.reflected);
}

#[test]
fn a_load_is_timed_there_and_back_beside_its_trial() {
    let load = |frames_per_s| {
        Procedure::Load(Load {
            frames_per_s,
            duration_ns: 100 * MS,
        })
    };
    let mut rig = rig(&[INEXACT_NS]);
    let found = rig.carry_out(load(Some(1000))).expect("a result");
    assert_eq!(paths(&found), [true]);
    let made: Vec<bool> = rig.loads.iter().map(|load| load.reflected).collect();
    assert_eq!(made, [false, true]);
    assert!(!found.evidence_load.reflected);

    // An unpaced load back would be another one.
    rig.loads.clear();
    let found = rig.carry_out(load(None)).expect("a result");
    assert_eq!(paths(&found), [false]);
    assert!(found.result.latency[0].is_inexact());
}

#[test]
fn where_nothing_reflects_latencies_stay_as_they_are() {
    let mut rig = rig(&[INEXACT_NS]);
    rig.reflects = false;
    let found = rig
        .carry_out(latency(LatencyPath::OneWay))
        .expect("a result");
    assert_eq!(paths(&found), [false; 4]);
    assert!(found.result.latency.iter().all(LatencyTrial::is_inexact));
    assert_eq!(reflected(&rig.loads), 0);
}

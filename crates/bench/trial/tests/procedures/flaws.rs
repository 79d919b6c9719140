//! Records of devices with other faults than loss, and of testers that are too slow.

use crate::rig::{Damage, Flaws, MS, Simulated, check, checks};
use plan::{Load, LossCurve, Procedure};
use search::simulate::Behaviour;
use trial::frames::ProcedureResult;

const CAPACITY: u64 = 500_000;

fn load(frames_per_s: Option<u64>) -> Procedure {
    Procedure::Load(Load {
        frames_per_s,
        duration_ns: 1000 * MS,
    })
}

fn damaged(damage: Damage) -> ProcedureResult {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    rig.damage = damage;
    rig.carry_out(load(Some(100_000))).unwrap()
}

fn flawed(flaws: Flaws, procedure: Procedure) -> ProcedureResult {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    rig.flaws = flaws;
    rig.carry_out(procedure).unwrap()
}

#[test]
fn nothing_speaks_against_a_trial_without_flaws() {
    let found = damaged(Damage::default());
    let checks = checks(load(Some(100_000)), &found);
    let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    let expected = [
        "offered-as-intended",
        "receiver-kept-up",
        "frames-intact",
        "only-test-frames",
    ];
    assert_eq!(names, expected);
    assert!(checks.iter().all(|check| check.passed), "{checks:?}");
}

#[test]
fn doubled_and_overtaken_frames_are_facts_of_the_device() {
    let found = damaged(Damage {
        duplicated_ppm: 20_000,
        reordered_ppm: 10_000,
        corrupted_ppm: 0,
    });
    let trial = &found.result.trials[0];
    assert_eq!(
        (trial.duplicated, trial.reordered, trial.lost()),
        (2000, 1000, 0)
    );
    let check = check(load(Some(100_000)), &found, "frames-intact");
    assert!(check.passed);
    assert!(
        check
            .detail
            .contains("2000 were doubled and 1000 overtaken"),
        "{}",
        check.detail
    );
}

#[test]
fn a_damaged_frame_is_lost_and_a_fact_of_the_device() {
    let found = damaged(Damage {
        corrupted_ppm: 10,
        ..Damage::default()
    });
    assert_eq!(found.result.trials[0].lost(), 1);
    let check = check(load(Some(100_000)), &found, "frames-intact");
    assert!(check.passed);
    assert!(
        check.detail.starts_with("1 frames were damaged"),
        "{}",
        check.detail
    );
}

#[test]
fn a_set_load_that_was_not_offered_speaks_against_the_trial() {
    let slow = Flaws {
        slow_sender: Some(90_000),
        ..Flaws::default()
    };
    let lossy = Flaws {
        lossy_sender: Some(90_000),
        ..Flaws::default()
    };
    for flaws in [slow, lossy] {
        let found = flawed(flaws, load(Some(100_000)));
        let check = check(load(Some(100_000)), &found, "offered-as-intended");
        assert!(!check.passed);
        let advice = check.explanation.unwrap().advice;
        assert!(advice.contains("ask for less"), "{advice}");
    }
}

#[test]
fn a_load_at_full_speed_is_whatever_was_offered() {
    let flaws = Flaws {
        slow_sender: Some(90_000),
        ..Flaws::default()
    };
    let found = flawed(flaws, load(None));
    assert!(check(load(None), &found, "offered-as-intended").passed);
}

#[test]
fn loads_of_a_curve_that_the_tester_cannot_offer_are_recorded() {
    let curve = || {
        Procedure::LossCurve(LossCurve {
            max_load: Some(1_000_000),
            step_percent: 10,
            trial_ns: 100 * MS,
            drain_ns: MS,
        })
    };
    let flaws = Flaws {
        slow_sender: Some(750_000),
        ..Flaws::default()
    };
    let found = flawed(flaws, curve());
    let offered = check(curve(), &found, "offered-as-intended");
    assert!(offered.passed, "{}", offered.detail);
    let expected = "the least load that it did not offer was 800000 frames/s";
    assert!(offered.detail.contains(expected), "{}", offered.detail);
}

#[test]
fn what_the_receiver_loses_speaks_against_a_set_load_but_not_against_full_speed() {
    let flaws = || Flaws {
        lossy_receiver: Some(90_000),
        ..Flaws::default()
    };
    let found = flawed(flaws(), load(Some(100_000)));
    let kept_up = check(load(Some(100_000)), &found, "receiver-kept-up");
    assert!(!kept_up.passed);
    assert!(
        kept_up.detail.contains("not the DUT's loss"),
        "{}",
        kept_up.detail
    );
    let found = flawed(flaws(), load(None));
    assert!(check(load(None), &found, "receiver-kept-up").passed);
}

#[test]
fn strangers_and_what_cannot_be_opened_speak_against_the_trial_in_numbers_only() {
    let mut found = damaged(Damage::default());
    found.strays.foreign = 64;
    found.strays.refused.insert("integrity".to_owned(), 100);
    found.strays.stale = 5000;
    assert!(check(load(Some(100_000)), &found, "only-test-frames").passed);
    found.strays.foreign = 165;
    assert!(!check(load(Some(100_000)), &found, "only-test-frames").passed);
    found.strays.foreign = 0;
    found.strays.refused.insert("integrity".to_owned(), 101);
    let check = check(load(Some(100_000)), &found, "only-test-frames");
    assert!(
        !check.passed && check.detail.contains("integrity 101"),
        "{}",
        check.detail
    );
}

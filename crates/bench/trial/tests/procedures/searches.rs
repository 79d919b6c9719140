//! Searches end within their width of the truth, whatever the device does and whatever the tester
//! does to it.

use crate::rig::{CEILING, Flaws, MS, SECOND, Simulated, check, checks, search, test};
use journal::record::{GoalBounds, GoalOutcome, SearchEnd, SearchRecord};
use plan::{BackToBack, LossCurve, Procedure, Profile, ThroughputSearch};
use search::simulate::Behaviour;
use testbed::Interrupt;
use trial::frames::{ProcedureResult, take_evidence};

const CAPACITY: u64 = 777_777;

fn throughput(rig: &mut Simulated, plan: ThroughputSearch) -> SearchRecord {
    let found = rig.carry_out(Procedure::Throughput(plan)).unwrap();
    found.result.throughput.unwrap()
}

fn bounds(goal: &GoalBounds) -> (u64, u64) {
    (goal.lower.unwrap(), goal.upper.unwrap())
}

fn assert_within_width(goal: &GoalBounds) {
    let (lower, upper) = bounds(goal);
    assert!(
        lower < upper && (upper - lower) * 1_000_000 <= upper * 5000 + 1_000_000,
        "{goal:?}"
    );
}

/// Of both directions together less is lost than the second goal allows, and of one more.
#[test]
fn the_worse_direction_is_held_to_the_goal() {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    rig.duplex = true;
    rig.back_lost_ppm = 8000;
    // Every trial has frames enough to lose some of.
    let plan = ThroughputSearch {
        min_load: CAPACITY / 4,
        ..search()
    };
    let procedure = Procedure::Throughput(plan.clone());
    let found = rig.carry_out(procedure).unwrap();
    let goals = &found.result.throughput.as_ref().unwrap().goals;
    let bounds: Vec<Option<u64>> = goals.iter().map(|goal| goal.lower).collect();
    assert_eq!(bounds, [None, None]);
    for trial in &found.result.trials {
        let [there, back] = trial.directions.as_slice() else {
            panic!("{trial:?}")
        };
        assert_eq!(there.lost() + back.lost(), trial.lost());
        assert!(back.lost() > there.lost(), "{trial:?}");
        assert_eq!(trial.counts().lost(), back.counts().lost());
    }
    // With as little loss each way as both directions had on average it would have passed.
    rig.back_lost_ppm = 4000;
    let found = throughput(&mut rig, plan);
    assert!(found.goals[0].lower.is_none() && found.goals[1].lower.is_some());
}

#[test]
fn a_hard_limit_lies_between_bounds_that_are_as_close_as_asked() {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    let found = throughput(&mut rig, search());
    assert_eq!(
        (found.max_load, found.max_load_by.as_str()),
        (CEILING, "generator")
    );
    assert_eq!(found.end, SearchEnd::Reached);
    let [ndr, pdr] = &found.goals[..] else {
        panic!("two goals")
    };
    assert_within_width(ndr);
    assert_within_width(pdr);
    let (lower, upper) = bounds(ndr);
    assert!(lower <= CAPACITY && CAPACITY < upper, "{ndr:?}");
    // Half a per cent may be lost, so that this much more may be offered.
    let most = CAPACITY * 1_000_000 / (1_000_000 - 5000);
    let (lower, upper) = bounds(pdr);
    assert!(lower <= most && most <= upper, "{pdr:?}");
    assert!(ndr.lower_trials > 0 && ndr.upper_trials > 0);
    let took: u64 = rig.loads[1..]
        .iter()
        .map(|load| load.duration_ns + load.drain_ns)
        .sum();
    assert_eq!(found.took_ns, took);
}

/// A search that would have ended with what the device carried once.
fn weakening(profile: Profile, timeout_ns: u64, capacities: &[u64]) -> (ProcedureResult, bool) {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    rig.when_sampled = capacities.to_vec();
    let plan = ThroughputSearch {
        profile,
        timeout_ns,
        goals: search().goals[..1].to_vec(),
        ..search()
    };
    let procedure = Procedure::Throughput(plan);
    let mut found = rig.carry_out(procedure.clone()).unwrap();
    let test = test(procedure.clone());
    take_evidence(&mut found, &test, &mut rig, &Interrupt::new()).unwrap();
    let checks = checks(procedure, &found);
    let mut confirming = checks
        .iter()
        .filter(|check| check.name == "throughput-confirmed");
    let confirmed = confirming.any(|check| check.passed);
    (found, confirmed)
}

#[test]
fn a_search_goes_on_with_the_trials_that_contradict_what_it_found() {
    for profile in [Profile::Fast, Profile::Rfc2544, Profile::Tst009] {
        let twice = [CAPACITY * 99 / 100, CAPACITY * 98 / 100];
        let (found, confirmed) = weakening(profile, 600 * SECOND, &twice);
        let goal = &found.result.throughput.as_ref().unwrap().goals[0];
        assert_within_width(goal);
        let (lower, upper) = bounds(goal);
        assert!(
            lower <= twice[1] && twice[1] < upper,
            "{profile:?} {goal:?}"
        );
        assert!(confirmed, "{profile:?}");
        let trials = &found.result.trials;
        let at = found.result.evidence_trial.unwrap();
        assert!(trials[at..].iter().all(|trial| trial.load == lower));
        assert_eq!(found.evidence_load.frames_per_s, Some(lower));
        assert_eq!(found.result.latency.len(), 1);
        assert_eq!(found.result.latency[0].load, lower);
    }
}

#[test]
fn a_search_that_is_contradicted_until_its_time_is_up_has_no_figure() {
    let falling: Vec<u64> = (1..9)
        .map(|step| CAPACITY * (100 - 9 * step) / 100)
        .collect();
    let (found, confirmed) = weakening(Profile::Fast, 8 * SECOND, &falling);
    assert_eq!(found.result.throughput.unwrap().end, SearchEnd::TimedOut);
    assert!(!confirmed);
}

#[test]
fn the_highest_load_is_what_is_given_else_the_line_rate_else_what_the_generator_reaches() {
    let of = |given, line_rate| {
        let mut rig = Simulated::new(Behaviour::Hard { capacity: u64::MAX });
        rig.line_rate = line_rate;
        let plan = ThroughputSearch {
            max_load: given,
            ..search()
        };
        let found = throughput(&mut rig, plan);
        assert_eq!(found.goals[0].lower, Some(found.max_load));
        assert_eq!(found.goals[0].upper, None);
        (found.max_load, found.max_load_by)
    };
    assert_eq!(of(Some(5000), Some(9000)), (5000, "given".to_owned()));
    assert_eq!(of(None, Some(9000)), (9000, "line-rate".to_owned()));
    assert_eq!(of(None, None), (CEILING, "generator".to_owned()));
    // A generator that is slower than the line.
    let mut rig = Simulated::new(Behaviour::Hard { capacity: u64::MAX });
    rig.line_rate = Some(1_000_000);
    rig.flaws.slow_sender = Some(CAPACITY);
    let found = throughput(&mut rig, search());
    assert_eq!(
        (found.max_load, found.max_load_by.as_str()),
        (CAPACITY, "generator")
    );
}

#[test]
fn a_trial_that_counts_for_nothing_warms_the_device_up_at_a_given_load_too() {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    let plan = ThroughputSearch {
        max_load: Some(CEILING),
        ..search()
    };
    let found = rig.carry_out(Procedure::Throughput(plan)).unwrap();
    assert_eq!(found.result.flood_trial, Some(0));
    assert_eq!(rig.loads[0].frames_per_s, Some(CEILING));
    let own = found.result.trials[1..].iter();
    let own: u64 = own.map(|trial| trial.duration_ns + search().drain_ns).sum();
    assert_eq!(found.result.throughput.unwrap().took_ns, own);
}

#[test]
fn what_the_generators_of_both_directions_reach_is_a_load_of_one() {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: u64::MAX });
    rig.duplex = true;
    let found = throughput(&mut rig, search());
    assert_eq!(
        (found.max_load, found.max_load_by.as_str()),
        (CEILING, "generator")
    );
}

#[test]
fn a_noisy_device_is_found_in_its_noise() {
    let band_ppm = 50_000;
    let mut rig = Simulated::new(Behaviour::Noisy {
        capacity: CAPACITY,
        band_ppm,
    });
    let found = throughput(&mut rig, search());
    let (lower, upper) = bounds(&found.goals[0]);
    let noise_begins = CAPACITY - CAPACITY * u64::from(band_ppm) / 1_000_000;
    assert!(noise_begins <= upper && lower <= CAPACITY, "{found:?}");
    // Noise is far less than half a per cent.
    assert_within_width(&found.goals[1]);
}

#[test]
fn a_device_of_two_bands_is_found_in_one_of_them() {
    let (low, high) = (600_000, 900_000);
    let mut rig = Simulated::new(Behaviour::TwoBands {
        low,
        high,
        low_ppm: 300_000,
    });
    let found = throughput(&mut rig, search());
    let (lower, upper) = bounds(&found.goals[0]);
    assert!(low <= upper && lower <= high, "{found:?}");
}

#[test]
fn a_deep_buffer_raises_no_bound() {
    let frames = 50_000;
    let mut rig = Simulated::new(Behaviour::Queue {
        capacity: CAPACITY,
        frames,
    });
    let found = throughput(&mut rig, search());
    for goal in &found.goals {
        let (lower, upper) = bounds(goal);
        let goal = found.goals.iter().position(|other| other == goal);
        // Half a per cent may be lost by the second goal.
        let most = CAPACITY * 1000 / [1000, 995][goal.unwrap()];
        // Delay that grows by less than a hundredth of the time may be noise.
        assert!(most <= upper && lower <= most * 101 / 100, "{found:?}");
    }
    let queued = rig.loads.len();
    assert!(queued < 40, "{queued} trials");
}

#[test]
fn a_drifting_device_is_found_where_it_was_during_the_search() {
    let per_second = -1000;
    let mut rig = Simulated::new(Behaviour::Drifting {
        capacity: CAPACITY,
        per_second,
    });
    let found = throughput(&mut rig, search());
    let seconds: u64 = rig.loads.iter().map(|load| load.duration_ns).sum::<u64>() / SECOND + 1;
    let least = CAPACITY - seconds * per_second.unsigned_abs();
    let (lower, upper) = bounds(&found.goals[0]);
    assert!(least <= upper && lower <= CAPACITY, "{found:?}");
}

#[test]
fn a_load_that_the_tester_cannot_offer_is_no_load_that_was_carried() {
    let (tester, slack) = (500_000, 500_000 * 3 / 100);
    let slow = Flaws {
        slow_sender: Some(tester),
        ..Flaws::default()
    };
    let lossy = Flaws {
        lossy_sender: Some(tester),
        ..Flaws::default()
    };
    for flaws in [slow, lossy] {
        let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
        rig.flaws = flaws;
        let plan = ThroughputSearch {
            max_load: Some(CEILING),
            ..search()
        };
        let found = rig.carry_out(Procedure::Throughput(plan.clone())).unwrap();
        let goal = &found.result.throughput.as_ref().unwrap().goals[0];
        let (lower, upper) = bounds(goal);
        assert!(
            lower <= tester + slack && upper >= tester - slack,
            "{goal:?}"
        );
        let check = check(Procedure::Throughput(plan), &found, "offered-as-intended");
        assert!(
            check.passed
                && check
                    .detail
                    .contains("the least load that it did not offer was")
        );
    }
}

/// A receiver at half of what the device carries: the rest is not counted.
fn slow_receiver() -> Simulated {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    rig.flaws.lossy_receiver = Some(CAPACITY / 2);
    rig
}

#[test]
fn no_bound_is_above_what_was_received_and_the_receivers_part_of_the_loss_is_recorded() {
    let received = CAPACITY / 2;
    let plan = search();
    let found = slow_receiver()
        .carry_out(Procedure::Throughput(plan.clone()))
        .unwrap();
    let goal = &found.result.throughput.as_ref().unwrap().goals[0];
    assert_within_width(goal);
    let (lower, upper) = bounds(goal);
    assert!(lower <= received && received < upper, "{goal:?}");
    // By this the verdict knows that it was the tester who failed the load.
    let failed = found.result.trials.iter().filter(|made| made.load == upper);
    for trial in failed.clone() {
        assert!(trial.lost() > 0, "{trial:?}");
        assert_eq!(trial.lost(), trial.receiver_dropped);
    }
    assert!(failed.count() > 0);
    let check = check(Procedure::Throughput(plan), &found, "receiver-kept-up");
    assert!(
        check
            .detail
            .contains("at the upper bound of `ndr`, which counts them as lost"),
        "{}",
        check.detail
    );
}

#[test]
fn a_loss_curve_has_no_lossless_load_that_was_not_received() {
    let curve = LossCurve {
        max_load: Some(CAPACITY),
        step_percent: 20,
        trial_ns: 100 * MS,
        drain_ns: MS,
    };
    let found = slow_receiver()
        .carry_out(Procedure::LossCurve(curve))
        .unwrap();
    // The first trial warms the device up.
    let trials = found.result.trials[1..].iter();
    let lossless: Vec<bool> = trials.map(|made| made.lost() == 0).collect();
    // 100, 80 and 60 % lose, 40 and 20 % do not: there the curve ends.
    assert_eq!(lossless, [false, false, false, true, true]);
    assert_eq!(found.evidence_load.frames_per_s, Some(CAPACITY * 40 / 100));
}

#[test]
fn a_burst_that_was_not_received_is_a_burst_with_loss() {
    let mut rig = slow_receiver();
    rig.line_rate = Some(CAPACITY);
    let plan = BackToBack {
        burst_ns_max: 100 * MS,
        bursts: 2,
        drain_ns: MS,
    };
    let found = rig.carry_out(Procedure::BackToBack(plan)).unwrap();
    // Its port holds nothing, so not even the shortest is slow enough.
    let bursts = found.result.bursts().iter();
    assert!(bursts.clone().all(|burst| burst.lost > 0), "{bursts:?}");
}

#[test]
fn a_search_whose_time_is_up_says_so() {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    let plan = ThroughputSearch {
        timeout_ns: 400 * MS,
        ..search()
    };
    let found = throughput(&mut rig, plan);
    assert_eq!(found.end, SearchEnd::TimedOut);
    assert!(found.took_ns <= 420 * MS, "{found:?}");
}

#[test]
fn a_device_that_carries_not_even_the_lowest_load_has_no_lower_bound() {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: 10 });
    let found = rig.carry_out(Procedure::Throughput(search())).unwrap();
    let goal = &found.result.throughput.as_ref().unwrap().goals[0];
    assert_eq!((goal.lower, goal.upper), (None, Some(1000)));
    assert_eq!(found.objection, None);
    // The evidence is still read, at the lowest load.
    assert_eq!(found.evidence_load.frames_per_s, Some(1000));
}

#[test]
fn the_outcome_of_every_goal_is_recorded() {
    let of = |capacity| {
        let mut rig = Simulated::new(Behaviour::Hard { capacity });
        let found = throughput(&mut rig, search());
        found
            .goals
            .iter()
            .map(|goal| goal.outcome.unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(CAPACITY), [GoalOutcome::Regular; 2]);
    assert_eq!(of(u64::MAX), [GoalOutcome::MaxLoadMeets; 2]);
    assert_eq!(of(10), [GoalOutcome::MinLoadFails; 2]);
}

/// A sender that catches up would have offered the whole load, part of it at a higher rate.
#[test]
fn a_trial_that_took_too_long_is_refused_however_few_frames_were_lost() {
    let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
    rig.flaws.slow_sender = Some(CAPACITY / 100 * 97);
    let plan = ThroughputSearch {
        max_load: Some(CEILING),
        ..search()
    };
    let found = throughput(&mut rig, plan);
    let (lower, upper) = bounds(&found.goals[0]);
    // Each such trial was made three times: the device might not have been to blame.
    let made = rig.loads[1..].iter();
    let tries = made.filter(|made| made.frames_per_s == Some(upper)).count();
    assert!(tries > 0 && tries % 3 == 0, "{tries}");
    // Two per cent of lateness are allowed.
    let offered = CAPACITY / 100 * 97;
    assert!(
        lower <= offered * 1025 / 1000 && offered <= upper,
        "{found:?}"
    );
}

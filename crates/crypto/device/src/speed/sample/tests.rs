//! What the sample finds, and that it is random.

use super::*;
use crate::cpu;
use catalog::sample::results_needed;

const SECOND_NS: u64 = 1_000_000_000;

fn cases(name: &str) -> (Operation, Keys, Vec<Case>) {
    let operation = Operation::parse(name).expect("it is known");
    let (keys, cpu) = (Keys::new(7), cpu::open(None).expect("our own engines"));
    let maker = cpu.session().expect("a session");
    let made = |variant| Case::valid(operation, 64, variant, &keys, &*maker).expect("an input");
    let cases = (0..4).map(made).collect();
    (operation, keys, cases)
}

/// Right results of the cases.
fn results(operation: Operation, keys: &Keys, cases: &[Case]) -> Vec<Vec<u8>> {
    let cpu = cpu::open(None).expect("our own engines");
    let session = cpu.session().expect("a session");
    let mut job = session.job(operation, keys).expect("it is offered");
    let run = |case: &Case| {
        let mut output = Vec::new();
        job.run(case.input(), &mut output).expect("a result");
        output
    };
    cases.iter().map(run).collect()
}

/// A second of a device with an operation every `operation_ns`, of which `is_wrong` ones are wrong,
/// as a thread of the trial examines it.
fn simulated(
    plan: &Plan<'_>,
    right: &[Vec<u8>],
    operation_ns: u64,
    mut is_wrong: impl FnMut(u64) -> bool,
) -> Verified {
    let mut sampler = Sampler::new(plan, 0);
    let wrong: Vec<Vec<u8>> = right.iter().map(|one| vec![one[0] ^ 1]).collect();
    let mut place = 0;
    let operations = SECOND_NS / operation_ns;
    let enough = plan.needed.min(operations);
    while place < operations || plan.examined() < enough {
        let case = (place % right.len() as u64) as usize;
        let output = if is_wrong(place) { &wrong } else { right };
        let is_measured = place < operations;
        sampler.look(case, &Ok(true), &output[case], is_measured);
        place += 1 + sampler.gap(operation_ns, is_measured);
    }
    sampler.verified
}

/// One in a thousand results is wrong, by chance or at regular places. Before there was a sample, a
/// trial looked at 65 results, and found that in 6 % of its runs.
#[test]
fn one_wrong_result_in_a_thousand_is_found_in_99_percent_of_runs() {
    const RUNS: u64 = 400;
    let (operation, keys, cases) = cases("sha-256");
    let right = results(operation, &keys, &cases);
    for operation_ns in [100, 3_000, 90_000] {
        for is_periodic in [false, true] {
            let found = |seed: u64| {
                let plan = Plan::new(&cases, &[], results_needed(), 1, SECOND_NS, seed);
                let mut random = !seed;
                let mut at = |place: u64| {
                    if is_periodic {
                        (place + seed).is_multiple_of(1000)
                    } else {
                        split_mix(&mut random).is_multiple_of(1000)
                    }
                };
                let verified = simulated(&plan, &right, operation_ns, &mut at);
                assert!(verified.checked >= results_needed(), "{verified:?}");
                assert!(verified.measured <= verified.checked);
                verified.wrong > 0
            };
            let found = (0..RUNS).filter(|&seed| found(seed)).count() as u64;
            assert!(
                100 * found >= 99 * RUNS,
                "{operation_ns} ns, {is_periodic}: {found}"
            );
        }
    }
}

#[test]
fn all_results_of_a_slow_device_are_examined() {
    let (operation, keys, cases) = cases("sha-256");
    let right = results(operation, &keys, &cases);
    let plan = Plan::new(&cases, &[], results_needed(), 1, SECOND_NS, 1);
    let verified = simulated(&plan, &right, 1_000_000, |place| place == 537);
    let expected = Verified {
        checked: 1000,
        measured: 1000,
        wrong: 1,
        ..Verified::default()
    };
    assert_eq!(verified, expected);
}

#[test]
fn places_are_independent_of_each_other() {
    let (_, _, cases) = cases("sha-256");
    let plan = Plan::new(&cases, &[], results_needed(), 1, SECOND_NS, 5);
    let mut sampler = Sampler::new(&plan, 0);
    let gaps: Vec<u64> = (0..20_000).map(|_| sampler.gap(100, true)).collect();
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    assert!((950.0..1050.0).contains(&mean), "{mean}");
    // Geometric: 1/e of the gaps are longer than the mean, and as many of these than twice.
    let longer = |than: f64| gaps.iter().filter(|&&gap| gap as f64 > than).count() as f64;
    let (once, twice) = (longer(mean), longer(2.0 * mean));
    assert!((0.34..0.40).contains(&(once / gaps.len() as f64)), "{once}");
    assert!((0.33..0.41).contains(&(twice / once)), "{twice}");
    // Another thread, and another seed, select others.
    let other = Sampler::new(&plan, 1).gap(100, true);
    assert_ne!(gaps[0], other);
}

#[test]
fn examining_takes_little_of_the_measured_time() {
    let (_, _, cases) = cases("sha-256");
    let plan = Plan::new(&cases, &[], results_needed(), 1, SECOND_NS / 50, 5);
    let mut sampler = Sampler::new(&plan, 0);
    // A result of a megabyte.
    sampler.cost_ns = 100_000;
    let operations: u64 = (0..2000).map(|_| sampler.gap(200_000, true) + 1).sum();
    let share = 2000.0 * 100_000.0 / (operations as f64 * 200_000.0);
    assert!(share < 1.1 / COST_PART as f64, "{share}");
    assert_eq!(sampler.gap(200_000, false), 0);
}

#[test]
fn results_that_differ_each_time_are_kept_and_verified() {
    let (operation, keys, cases) = cases("ecdsa-p256 sign");
    let right = results(operation, &keys, &cases);
    let plan = Plan::new(&cases, &[], 20, 1, SECOND_NS, 5);
    let mut sampler = Sampler::new(&plan, 0);
    for place in 0..1000 {
        let mut output = right[place % 4].clone();
        // Every tenth.
        output[40] ^= u8::from(place % 10 == 3);
        sampler.look(place % 4, &Ok(true), &output, place < 500);
    }
    assert_eq!(sampler.verified, Verified::default());
    assert_eq!((plan.examined(), sampler.kept.len()), (1000, plan.kept_max));
    // Those kept are spread over all.
    let measured = sampler.kept.iter().filter(|kept| kept.is_measured).count();
    assert!(
        (20..=60).contains(&measured),
        "{measured} of {}",
        plan.kept_max
    );
    let cpu = cpu::open(None).expect("our own engines");
    sampler
        .kept
        .iter_mut()
        .for_each(|kept| kept.output[40] ^= 1);
    let all_wrong = verify(
        &plan,
        std::mem::take(&mut sampler.kept),
        operation,
        &cpu,
        &keys,
    );
    // All but every tenth.
    assert_eq!(all_wrong.checked, 20);
    assert!((12..=20).contains(&all_wrong.wrong), "{all_wrong:?}");
}

/// Refusing may take another time than accepting, and the rate is that of accepting.
#[test]
fn few_operations_of_the_measured_time_have_invalid_inputs() {
    let (_, _, cases) = cases("ed25519 verify");
    let plan = Plan::new(&cases, &cases, results_needed(), 1, SECOND_NS, 5);
    for (operation_ns, most) in [(100, 0.002), (20_000, 0.07), (1_000_000, 0.07)] {
        let mut sampler = Sampler::new(&plan, 0);
        let (mut operations, mut invalid) = (0, 0);
        for _ in 0..10_000 {
            operations += 1 + sampler.gap(operation_ns, true);
            invalid += u64::from(sampler.invalid(true).is_some());
        }
        let share = invalid as f64 / operations as f64;
        assert!(share > 0.0 && share < most, "{operation_ns} ns: {share}");
        let later = (0..10_000).filter(|_| sampler.invalid(false).is_some());
        assert!((4500..5500).contains(&later.count()));
    }
}

#[test]
fn inputs_fit_the_first_cache() {
    let lengths = [0, 16, 1024, 1408, 8192, 1 << 20].map(ring_length);
    assert_eq!(lengths, [16, 16, 16, 8, 2, 2]);
}

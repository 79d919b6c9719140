//! The model against theory: every statistic has a known truth.

use impair::{
    Delivery, Direction, Distribution, Fate, Impairment, Jitter, Loss, Model, Profile, Queue, Rate,
    Reorder, SPARED_BYTES,
};
use proptest::prelude::*;
use strum::VariantArray;

const FRAMES: u64 = 400_000;
/// Frames this far apart do not wait for one another.
const APART_NS: u64 = 1_000_000_000;

fn profile(seed: u64, a_to_b: Impairment) -> Profile {
    Profile {
        seed,
        a_to_b,
        ..Profile::none()
    }
}

fn model(impairment: Impairment) -> Model {
    Model::new(&profile(7, impairment), Direction::AToB)
}

fn fates(mut model: Model, frames: u64, apart_ns: u64) -> Vec<Fate> {
    (0..frames)
        .map(|at| model.next(1000, at * apart_ns))
        .collect()
}

fn deliveries(fates: &[Fate]) -> impl Iterator<Item = Delivery> {
    fates.iter().filter_map(|fate| match fate {
        Fate::Delivered(delivery) => Some(*delivery),
        Fate::LostByModel | Fate::LostByQueue => None,
    })
}

/// Asserts that a count of independent events is within five standard deviations of its mean.
fn assert_binomial(found: usize, of: u64, share: f64) {
    let (mean, deviation) = (
        of as f64 * share,
        (of as f64 * share * (1.0 - share)).sqrt(),
    );
    let off = (found as f64 - mean).abs();
    assert!(
        off <= 5.0 * deviation + 1.0,
        "{found} of {of}, expected {mean} ± {deviation}"
    );
}

#[test]
fn a_profile_that_does_nothing_changes_nothing() {
    for (at, fate) in (0..).zip(fates(model(Impairment::default()), 1000, 13)) {
        let Fate::Delivered(delivery) = fate else {
            panic!("{fate:?}");
        };
        let untouched = Delivery {
            at_ns: at * 13,
            is_doubled: false,
            is_held_back: false,
            flip: None,
        };
        assert_eq!(delivery, untouched);
    }
}

#[test]
fn random_loss_duplication_and_corruption_have_their_shares_and_are_independent() {
    let impairment = Impairment {
        loss: Some(Loss::Random { ppm: 100_000 }),
        duplicate_ppm: 20_000,
        corrupt_ppm: 30_000,
        ..Impairment::default()
    };
    let fates = fates(model(impairment), FRAMES, 1);
    let lost = fates.iter().filter(|fate| **fate == Fate::LostByModel);
    let lost = lost.count();
    assert_binomial(lost, FRAMES, 0.1);
    let left = FRAMES - lost as u64;
    let count = |is: fn(&Delivery) -> bool| deliveries(&fates).filter(is).count();
    assert_binomial(count(|it| it.is_doubled), left, 0.02);
    assert_binomial(count(|it| it.flip.is_some()), left, 0.03);
    assert_binomial(
        count(|it| it.is_doubled && it.flip.is_some()),
        left,
        0.02 * 0.03,
    );
    // A lost frame does not make the next one's loss more likely.
    let pairs = fates
        .windows(2)
        .filter(|pair| pair == &[Fate::LostByModel; 2]);
    assert_binomial(pairs.count(), FRAMES, 0.01);
}

#[test]
fn loss_in_bursts_has_the_mean_and_the_burst_length_of_the_two_states() {
    let (p, r) = (0.002, 0.1);
    let loss = Loss::Bursts {
        to_bad_ppm: 2_000,
        to_good_ppm: 100_000,
        bad_ppm: 1_000_000,
        good_ppm: 0,
    };
    let impairment = Impairment {
        loss: Some(loss),
        ..Impairment::default()
    };
    let frames = 4_000_000;
    let fates = fates(model(impairment), frames, 1);
    let is_lost = |fate: &Fate| *fate == Fate::LostByModel;
    let lost = fates.iter().filter(|fate| is_lost(fate)).count() as f64;
    let bursts = fates.chunk_by(|one, next| is_lost(one) == is_lost(next));
    let bursts = bursts.filter(|burst| is_lost(&burst[0])).count() as f64;
    assert!((loss.mean() - p / (p + r)).abs() < 1e-12);
    // The length of a burst is geometric with the mean 1 / r and a variance of (1 - r) / r².
    let mean_error = ((1.0 - r) / (r * r) / bursts).sqrt();
    assert!((lost / bursts - 1.0 / r).abs() < 5.0 * mean_error);
    assert!(
        (lost / frames as f64 / loss.mean() - 1.0).abs() < 0.08,
        "{lost} lost"
    );
}

#[test]
fn jitter_has_the_mean_and_the_spread_of_its_distribution() {
    let (delay_ns, time_ns) = (50_000_000, 4_000_000);
    let (time, delay) = (time_ns as f64, delay_ns as f64);
    // Mean beyond the delay, standard deviation, and the share above the mean.
    let truths = [
        (Distribution::Normal, 0.0, time, 0.5),
        (Distribution::Uniform, 0.0, time / 3.0_f64.sqrt(), 0.5),
        (Distribution::Exponential, time, time, (-1.0_f64).exp()),
        (
            Distribution::Pareto,
            time,
            time * 3.0_f64.sqrt(),
            (2.0_f64 / 3.0).powi(3),
        ),
    ];
    for (distribution, beyond, deviation, above) in truths {
        let impairment = Impairment {
            delay_ns,
            jitter: Some(Jitter {
                time_ns,
                distribution,
            }),
            ..Impairment::default()
        };
        let fates = fates(model(impairment), FRAMES, APART_NS);
        let delays: Vec<f64> = (0..)
            .zip(deliveries(&fates))
            .map(|(at, delivery)| (delivery.at_ns - at * APART_NS) as f64)
            .collect();
        let mean = delays.iter().sum::<f64>() / FRAMES as f64;
        let error = 5.0 * deviation / (FRAMES as f64).sqrt();
        assert!(
            (mean - delay - beyond).abs() < error,
            "{distribution:?}: {mean}"
        );
        let higher = delays.iter().filter(|one| **one > delay + beyond).count();
        assert_binomial(higher, FRAMES, above);
        // The fourth moment of the heavy tail is infinite: its spread is not estimated well.
        if distribution != Distribution::Pareto {
            let squares = delays.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
            let found = (squares / FRAMES as f64).sqrt();
            assert!(
                (found / deviation - 1.0).abs() < 0.02,
                "{distribution:?}: {found}"
            );
        }
    }
}

#[test]
fn a_rate_spaces_frames_by_their_time_on_the_wire_and_nothing_is_lost_to_rounding() {
    let impairment = Impairment {
        rate: Some(Rate {
            bps: 10_000_000_000,
            queue: Queue::TimeNs(u64::MAX),
        }),
        ..Impairment::default()
    };
    let mut model = model(impairment);
    let mut last = 0;
    for _ in 0..1_000_000 {
        let Fate::Delivered(delivery) = model.next(60, 0) else {
            panic!("an endless queue loses nothing");
        };
        last = delivery.at_ns;
    }
    // 84 B on the wire are 67.2 ns at 10 Gbit/s.
    assert_eq!(last, 67_200_000);
}

#[test]
fn a_queue_takes_what_it_is_long_in_frames_bytes_or_time() {
    // 1000 B without FCS are 1024 B on the wire: 8192 ns at 1 Gbit/s.
    let accepted = |queue| {
        let impairment = Impairment {
            rate: Some(Rate {
                bps: 1_000_000_000,
                queue,
            }),
            ..Impairment::default()
        };
        let mut model = model(impairment);
        let at_once = (0..100).filter(|_| model.next(1000, 5) != Fate::LostByQueue);
        let at_once = at_once.count();
        // When the first has left there is room for one more.
        let later = (0..100).filter(|_| model.next(1000, 5 + 8192) != Fate::LostByQueue);
        (at_once, later.count())
    };
    assert_eq!(accepted(Queue::Packets(10)), (10, 1));
    assert_eq!(accepted(Queue::Bytes(10 * 1024)), (10, 1));
    assert_eq!(accepted(Queue::TimeNs(9 * 8192)), (10, 1));
}

#[test]
fn held_back_frames_are_overtaken_by_those_that_follow_within_the_time() {
    let impairment = Impairment {
        delay_ns: 1_000_000,
        reorder: Some(Reorder {
            ppm: 50_000,
            by_ns: 250,
        }),
        ..Impairment::default()
    };
    let fates = fates(model(impairment), FRAMES, 100);
    let held = deliveries(&fates).filter(|it| it.is_held_back).count();
    assert_binomial(held, FRAMES, 0.05);
    for (at, delivery) in (0..).zip(deliveries(&fates)) {
        let held_ns = if delivery.is_held_back { 250 } else { 0 };
        assert_eq!(delivery.at_ns, at * 100 + 1_000_000 + held_ns);
    }
}

fn any_impairment() -> impl Strategy<Value = Impairment> {
    let jitter = (0_u64..5_000_000, 0..Distribution::VARIANTS.len());
    let jitter = jitter.prop_map(|(time_ns, at)| Jitter {
        time_ns,
        distribution: Distribution::VARIANTS[at],
    });
    let loss = prop_oneof![
        (0_u32..=1_000_000).prop_map(|ppm| Loss::Random { ppm }),
        (0_u32..=1_000_000, 0_u32..=1_000_000).prop_map(|(p, r)| Loss::Bursts {
            to_bad_ppm: p,
            to_good_ppm: r,
            bad_ppm: 900_000,
            good_ppm: 10,
        }),
    ];
    let queue = prop_oneof![
        (1_u32..100).prop_map(Queue::Packets),
        (10_000_u64..100_000).prop_map(Queue::Bytes),
        (0_u64..1_000_000).prop_map(Queue::TimeNs),
    ];
    let rate = (1_000_u64..100_000_000_000, queue).prop_map(|(bps, queue)| Rate { bps, queue });
    let reorder = (0_u32..=1_000_000, 0_u64..1_000_000);
    let reorder = reorder.prop_map(|(ppm, by_ns)| Reorder { ppm, by_ns });
    (
        0_u64..10_000_000,
        prop::option::of(jitter),
        prop::option::of(loss),
        prop::option::of(reorder),
        (0_u32..=1_000_000, 0_u32..=1_000_000),
        prop::option::of(rate),
    )
        .prop_map(
            |(delay_ns, jitter, loss, reorder, (duplicate, corrupt), rate)| Impairment {
                delay_ns,
                jitter,
                loss,
                reorder,
                duplicate_ppm: duplicate,
                corrupt_ppm: corrupt,
                rate,
            },
        )
}

proptest! {
    /// Same frames in, same fates; a frame leaves no earlier than it came, in order unless it is
    /// held back and then no faster than the rate, and a flipped bit is in the frame, behind the
    /// headers.
    #[test]
    fn fates_repeat_and_are_possible(
        impairment in any_impairment(),
        seed in any::<u64>(),
        frames in prop::collection::vec((14_usize..9_500, 0_u64..100_000), 1..300),
    ) {
        let bps = impairment.rate.map(|rate| rate.bps);
        let profile = profile(seed, impairment);
        let mut one = Model::new(&profile, Direction::AToB);
        let mut same = Model::new(&profile, Direction::AToB);
        let (mut now_ns, mut last_ns) = (0, 0);
        for (bytes, apart_ns) in frames {
            now_ns += apart_ns;
            let fate = one.next(bytes, now_ns);
            prop_assert_eq!(fate, same.next(bytes, now_ns));
            let Fate::Delivered(delivery) = fate else { continue };
            prop_assert!(delivery.at_ns >= now_ns);
            if !delivery.is_held_back {
                let wire_bits = (bytes as u64 + 24) * 8;
                let wire_ns = bps.map_or(0, |bps| wire_bits * 1_000_000_000 / bps);
                prop_assert!(delivery.at_ns >= last_ns + wire_ns);
                last_ns = delivery.at_ns;
            }
            if let Some(bit) = delivery.flip {
                prop_assert!(bit / 8 < bytes);
                prop_assert!(bit / 8 >= SPARED_BYTES.min(bytes - 1));
            }
        }
    }

    /// Which frames are lost depends on nothing but the loss and the seed.
    #[test]
    fn other_impairments_do_not_change_which_frames_are_lost(
        impairment in any_impairment(),
        seed in any::<u64>(),
    ) {
        let bare = Impairment { loss: impairment.loss, ..Impairment::default() };
        let mut one = Model::new(&profile(seed, impairment), Direction::AToB);
        let mut other = Model::new(&profile(seed, bare), Direction::AToB);
        for at in 0..300 {
            let lost = [one.next(100, at), other.next(100, at)].map(|fate| fate == Fate::LostByModel);
            prop_assert_eq!(lost[0], lost[1]);
        }
    }
}

#[test]
fn directions_and_repeats_meet_different_fates() {
    let impairment = Impairment {
        loss: Some(Loss::Random { ppm: 500_000 }),
        ..Impairment::default()
    };
    let profile = Profile {
        b_to_a: impairment.clone(),
        ..profile(1, impairment)
    };
    let of = |profile: &Profile, direction| fates(Model::new(profile, direction), 100, 1);
    let (there, back) = (of(&profile, Direction::AToB), of(&profile, Direction::BToA));
    let second = of(&profile.for_repeat(2), Direction::AToB);
    assert_ne!(there, back);
    assert_ne!(there, second);
}

use super::*;
use crate::figures::noise::Noise;

/// Ranks devices by intervals: one device is surely better if its interval is beyond the other's.
fn ranks(spans: &[(f64, f64)], higher_is_better: bool) -> Vec<Rank> {
    let better = |a: &(f64, f64), b: &(f64, f64)| {
        if higher_is_better {
            a.0 > b.1
        } else {
            a.1 < b.0
        }
    };
    let row = |a| spans.iter().map(|b| better(a, b)).collect();
    super::ranks(spans.iter().map(row).collect())
}

fn rank(first: u32, last: u32) -> Rank {
    Rank { first, last }
}

#[test]
fn a_device_apart_from_all_others_has_one_rank() {
    let spans = [(7.0, 8.0), (9.0, 10.0), (1.0, 2.0)];
    assert_eq!(ranks(&spans, true), [rank(2, 2), rank(1, 1), rank(3, 3)]);
    assert_eq!(ranks(&spans, false), [rank(2, 2), rank(3, 3), rank(1, 1)]);
}

#[test]
fn overlapping_devices_share_a_rank_and_the_next_is_behind_both() {
    let spans = [(8.0, 10.0), (9.0, 11.0), (1.0, 2.0)];
    assert_eq!(ranks(&spans, true), [rank(1, 2), rank(1, 2), rank(3, 3)]);
}

#[test]
fn a_chain_of_overlaps_does_not_make_its_ends_equal() {
    // The middle one overlaps both, but the ends are apart.
    let spans = [(10.0, 12.0), (8.0, 11.0), (7.0, 9.0)];
    assert_eq!(ranks(&spans, true), [rank(1, 2), rank(1, 3), rank(2, 3)]);
}

#[test]
fn a_device_that_overlaps_all_others_could_have_any_rank() {
    let spans = [(9.0, 10.0), (7.0, 8.0), (1.0, 20.0)];
    assert_eq!(ranks(&spans, true), [rank(1, 2), rank(2, 3), rank(1, 3)]);
}

#[test]
fn ends_that_touch_overlap() {
    assert_eq!(
        ranks(&[(1.0, 2.0), (2.0, 3.0)], true),
        [rank(1, 2), rank(1, 2)]
    );
}

/// Up to nine intervals with ends from few numbers, so that many touch or are equal.
fn random_spans(random: &mut Noise) -> Vec<(f64, f64)> {
    let count = 1 + random.below(9);
    let mut end = || 1.0 + random.below(24) as f64;
    let spans = (0..count).map(|_| {
        let (one, other) = (end(), end());
        (one.min(other), one.max(other))
    });
    spans.collect()
}

fn each(mut property: impl FnMut(&[(f64, f64)], &mut Noise)) {
    let mut random = Noise(5);
    for _ in 0..4000 {
        let spans = random_spans(&mut random);
        property(&spans, &mut random);
    }
}

#[test]
fn a_surely_better_device_has_the_better_rank_and_never_the_reverse() {
    each(|spans, _| {
        let found = ranks(spans, true);
        for (a, rank_a) in spans.iter().zip(&found) {
            for (b, rank_b) in spans.iter().zip(&found) {
                if a.0 > b.1 {
                    assert!(rank_a.first < rank_b.first, "{spans:?}");
                    assert!(rank_a.last < rank_b.last, "{spans:?}");
                }
                // A surely worse device never has a better rank.
                assert!(rank_a.first >= rank_b.first || a.1 >= b.0, "{spans:?}");
            }
        }
    });
}

#[test]
fn ranks_are_within_the_number_of_devices_and_one_is_first() {
    each(|spans, _| {
        let found = ranks(spans, true);
        let all = spans.len() as u32;
        let within = |rank: &Rank| (1..=rank.last).contains(&rank.first) && rank.last <= all;
        assert!(found.iter().all(within), "{spans:?}");
        assert!(found.iter().any(|rank| rank.first == 1), "{spans:?}");
        assert!(found.iter().any(|rank| rank.last == all), "{spans:?}");
    });
}

#[test]
fn the_order_of_devices_does_not_matter() {
    each(|spans, random| {
        let order = random.order(spans.len());
        let shuffled: Vec<_> = order.iter().map(|&place| spans[place]).collect();
        let (found, after) = (ranks(spans, true), ranks(&shuffled, true));
        for (&place, rank) in order.iter().zip(after) {
            assert_eq!(rank, found[place], "{spans:?} as {shuffled:?}");
        }
    });
}

#[test]
fn a_device_that_all_others_surely_beat_changes_no_other_rank() {
    each(|spans, _| {
        let mut more = spans.to_vec();
        more.push((0.1, 0.2));
        let (found, after) = (ranks(spans, true), ranks(&more, true));
        assert_eq!(after[..spans.len()], found[..], "{spans:?}");
        let all = more.len() as u32;
        assert_eq!(after[spans.len()], rank(all, all));
    });
}

#[test]
fn times_rank_like_their_inverses_as_rates() {
    each(|spans, _| {
        let rates: Vec<_> = spans
            .iter()
            .map(|(low, high)| (1.0 / high, 1.0 / low))
            .collect();
        assert_eq!(ranks(spans, false), ranks(&rates, true), "{spans:?}");
    });
}

#[test]
fn another_unit_changes_no_rank() {
    each(|spans, _| {
        let bits: Vec<_> = spans
            .iter()
            .map(|(low, high)| (8.0 * low, 8.0 * high))
            .collect();
        assert_eq!(ranks(spans, true), ranks(&bits, true), "{spans:?}");
    });
}

#[test]
fn what_is_better_than_a_better_one_is_better() {
    // Two are not distinguished from one another, but the first from the third over the second.
    let better = vec![
        vec![false, true, false],
        vec![false, false, true],
        vec![false, false, false],
    ];
    assert_eq!(super::ranks(better), [rank(1, 1), rank(2, 2), rank(3, 3)]);
}

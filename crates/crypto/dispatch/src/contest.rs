//! Comparison of engines: which ones are worth a key, and their crossovers by packet size.

use wire::Suite;
use wire::overhead::esp_bytes;

use crate::curve::{Direction, Load};

/// A batch changes engines only if that is expected to be faster by a tenth. Smaller differences
/// are within measurement error, and alternating would cost more in caches than it gains.
pub(crate) const fn is_worth_a_change(from_ps: u64, to_ps: u64) -> bool {
    to_ps < from_ps - from_ps / 10
}

/// Batch sizes for which engines are compared.
const BATCHES: [u64; 5] = [1, 4, 16, 32, 64];
/// Batch size of the crossovers in reports.
pub(crate) const REPORTED_BATCH: u64 = 32;
/// Lengths of inner packets, from a bare IPv4 header to the longest packet.
const INNER_BYTES_MIN: usize = 20;
const INNER_BYTES_MAX: usize = 65_535;

/// A packet size from which on the contender with this index is the fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crossover {
    pub(crate) from_inner_bytes: usize,
    pub(crate) winner: usize,
}

/// Predicts a contender's time for a batch, in picoseconds.
pub(crate) type Cost<'a> = &'a dyn Fn(Load) -> u64;

/// Returns the contenders that are worth a key in these directions: first the best overall, then
/// those to which some batch would change from it. `cost` predicts a contender's time in a
/// direction.
pub(crate) fn worth_a_key(
    contenders: usize,
    suite: Suite,
    directions: &[Direction],
    cost: impl Fn(usize, Direction, Load) -> u64,
) -> Vec<usize> {
    let loads: Vec<_> = directions
        .iter()
        .flat_map(|&direction| grid(suite, direction))
        .collect();
    let costs: Vec<Vec<u64>> = loads
        .iter()
        .map(|&(direction, load)| {
            (0..contenders)
                .map(|contender| cost(contender, direction, load))
                .collect()
        })
        .collect();
    // How much slower than the fastest on average over all sizes: a ratio, since sizes differ by a
    // factor of a thousand.
    let handicap = |contender: usize| {
        let ratio = |costs: &Vec<u64>| {
            let fastest = costs.iter().copied().min().unwrap_or(0);
            // The sum of logarithms is a mean of ratios: twice as slow at one size and twice as
            // fast at another cancel out.
            (costs[contender].max(1) as f64 / fastest.max(1) as f64).ln()
        };
        costs.iter().map(ratio).sum::<f64>()
    };
    let best = (0..contenders).min_by(|&a, &b| handicap(a).total_cmp(&handicap(b)));
    let Some(best) = best else {
        return Vec::new();
    };
    // The same margin as for a batch at run time: an engine with a smaller lead would never be
    // selected.
    let wins = |contender: usize| {
        costs.iter().any(|costs| {
            let fastest = costs.iter().copied().min() == Some(costs[contender]);
            fastest && is_worth_a_change(costs[best], costs[contender])
        })
    };
    let others = (0..contenders).filter(|&contender| contender != best && wins(contender));
    std::iter::once(best).chain(others).collect()
}

/// Batches of equal packets, over all sizes.
fn grid(suite: Suite, direction: Direction) -> impl Iterator<Item = (Direction, Load)> {
    let batches: &[u64] = match direction {
        Direction::SealFrom => &BATCHES[..1],
        Direction::Seal | Direction::Open => &BATCHES,
    };
    sizes().flat_map(move |inner_bytes| {
        let bytes = esp_bytes(suite, inner_bytes) as u64;
        batches
            .iter()
            .map(move |&packets| (direction, Load::uniform(packets, bytes)))
    })
}

/// Lengths of inner packets, in steps of about a tenth.
fn sizes() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(INNER_BYTES_MIN), |bytes| {
        // ESP pads to 4 bytes: a smaller step would give the same packet.
        Some(bytes + (bytes / 10).max(4))
    })
    .take_while(|&bytes| bytes <= INNER_BYTES_MAX)
    .chain([INNER_BYTES_MAX])
}

/// Returns the fastest contender by packet size, for batches of `packets` packets of one length.
/// The first entry starts at the shortest packet.
pub(crate) fn crossovers(suite: Suite, packets: u64, costs: &[Cost<'_>]) -> Vec<Crossover> {
    let fastest = |inner_bytes: usize, before: Option<usize>| {
        let load = Load::uniform(packets, esp_bytes(suite, inner_bytes) as u64);
        let times: Vec<_> = costs.iter().map(|cost| cost(load)).collect();
        // Among equals the previous one, so that a tie is not a crossover.
        let least = times.iter().copied().min();
        let still = before.filter(|&before| Some(times[before]) == least);
        still.or_else(|| times.iter().position(|&time| Some(time) == least))
    };
    let mut found: Vec<Crossover> = Vec::new();
    let mut below = INNER_BYTES_MIN;
    for inner_bytes in sizes() {
        let before = found.last().map(|crossover| crossover.winner);
        let Some(winner) = fastest(inner_bytes, before) else {
            continue;
        };
        if before != Some(winner) {
            // Bisects between this size and the one below for the first with another winner. Lines
            // cross once.
            let (mut low, mut high) = (below, inner_bytes);
            while before.is_some() && high - low > 1 {
                let middle = low.midpoint(high);
                if fastest(middle, before) == before {
                    low = middle
                } else {
                    high = middle
                }
            }
            found.push(Crossover {
                from_inner_bytes: high,
                winner,
            });
        }
        below = inner_bytes;
    }
    found
}

/// Formats crossovers: `one-engine below 96 B, another`.
pub(crate) fn in_words(crossovers: &[Crossover], names: &[&str]) -> String {
    let mut parts = Vec::new();
    for (at, crossover) in crossovers.iter().enumerate() {
        let name = names[crossover.winner];
        parts.push(match crossovers.get(at + 1) {
            Some(next) => format!("{name} below {} B", next.from_inner_bytes),
            None => name.to_owned(),
        });
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use proptest::prelude::*;

    const SUITE: Suite = Suite::Aes256Gcm;

    fn line(per_packet_ps: u64, per_byte_ps: u64) -> Curve {
        Curve {
            per_packet_ps,
            per_byte_ps,
            ..Curve::default()
        }
    }

    fn cross(curves: &[Curve]) -> Vec<Crossover> {
        let costs: Vec<_> = curves
            .iter()
            .map(|curve| |load| curve.predict_ps(load))
            .collect();
        let costs: Vec<Cost<'_>> = costs.iter().map(|cost| cost as Cost<'_>).collect();
        crossovers(SUITE, REPORTED_BATCH, &costs)
    }

    fn worth(curves: &[Curve]) -> Vec<usize> {
        worth_a_key(
            curves.len(),
            SUITE,
            &Direction::ALL,
            |contender, _, load| curves[contender].predict_ps(load),
        )
    }

    #[test]
    fn two_lines_cross_at_their_intersection() {
        // 10 ns + 250 ps/B and 40 ns + 75 ps/B meet at 171.4 B of ESP: 137 B inside are 172 of it.
        let short = line(10_000, 250);
        let long = line(40_000, 75);
        let found = cross(&[long, short]);
        assert_eq!(
            in_words(&found, &["long", "short"]),
            "short below 135 B, long"
        );
        assert!(esp_bytes(SUITE, 135) == 172 && esp_bytes(SUITE, 134) == 168);
        assert_eq!(worth(&[long, short]).len(), 2);
    }

    #[test]
    fn an_engine_that_wins_everywhere_gets_the_only_key() {
        let curves = [line(50_000, 200), line(40_000, 75), line(45_000, 80)];
        assert_eq!(worth(&curves), [1]);
        assert_eq!(in_words(&cross(&curves), &["a", "b", "c"]), "b");
    }

    #[test]
    fn a_few_per_cent_are_not_worth_a_key() {
        let curves = [line(40_000, 75), line(37_000, 80)];
        assert_eq!(worth(&curves).len(), 1);
        assert_eq!(worth(&[curves[0]]), [0]);
        assert_eq!(worth(&[]), [0; 0]);
    }

    #[test]
    fn three_engines_alternate_by_size() {
        let curves = [line(10_000, 1_000), line(60_000, 250), line(400_000, 75)];
        let found = cross(&curves);
        let winners: Vec<_> = found.iter().map(|crossover| crossover.winner).collect();
        assert_eq!(winners, [0, 1, 2]);
        assert_eq!(worth(&curves).len(), 3);
    }

    proptest! {
        #[test]
        fn the_predicted_winner_is_never_slower(
            lines in proptest::collection::vec((1_000u64..500_000, 30u64..5_000), 1..5),
            size in 20usize..65_535,
        ) {
            let curves: Vec<_> = lines.iter().map(|&(packet, byte)| line(packet, byte)).collect();
            let found = cross(&curves);
            prop_assert_eq!(found[0].from_inner_bytes, 20);
            let winner = found.iter().rev().find(|at| at.from_inner_bytes <= size).unwrap().winner;
            let load = Load::uniform(REPORTED_BATCH, esp_bytes(SUITE, size) as u64);
            let least = curves.iter().map(|curve| curve.predict_ps(load)).min().unwrap();
            prop_assert!(curves[winner].predict_ps(load) as f64 <= least as f64 * 1.02);
        }

        #[test]
        fn a_contender_without_a_key_would_gain_too_little(
            lines in proptest::collection::vec((1_000u64..500_000, 30u64..5_000), 1..5),
        ) {
            let curves: Vec<_> = lines.iter().map(|&(packet, byte)| line(packet, byte)).collect();
            let kept = worth(&curves);
            for (_, load) in Direction::ALL.into_iter().flat_map(|way| grid(SUITE, way)) {
                let cost = |contender: usize| curves[contender].predict_ps(load);
                let least = (0..curves.len()).map(cost).min().unwrap();
                let best = kept.iter().copied().map(cost).min().unwrap();
                prop_assert!(!is_worth_a_change(best, least));
            }
        }
    }
}

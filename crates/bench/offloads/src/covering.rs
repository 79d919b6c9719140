//! Covering arrays of strength two: rows of settings in which every pair of levels of any two
//! factors occurs.
//!
//! Greedy, as AETG (Cohen et al., IEEE TSE 23(7), 1997): each row begins with a pair that no row
//! has yet, and takes the level that covers the most further pairs, factor by factor. Of several
//! orders of the factors the best row is kept. A pair that contradicts the constraints is reported.

use std::collections::BTreeSet;

/// A factor at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Level {
    /// Index of the factor.
    pub factor: usize,
    /// Its level, from 0.
    pub level: u8,
}

/// Two levels of different factors.
pub type Pair = (Level, Level);

/// Orders tried for each row.
const ORDERS: usize = 6;

/// A covering array.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Covering {
    /// A level for each factor.
    pub rows: Vec<Vec<u8>>,
    /// Pairs that no row can have.
    pub impossible: Vec<Pair>,
}

/// The factors' numbers of levels, and the pairs that must not occur together.
#[derive(Debug, Clone, Copy)]
pub struct Factors<'a> {
    /// Levels of each factor; at least 1.
    pub levels: &'a [u8],
    /// Pairs that must not occur.
    pub forbidden: &'a [Pair],
}

impl Factors<'_> {
    /// Returns rows that cover all possible pairs, after the given first ones. The same input gives
    /// the same rows.
    #[must_use]
    pub fn covering(self, first: &[Vec<u8>]) -> Covering {
        let mut missing: BTreeSet<Pair> = self.pairs().collect();
        let mut rows = first.to_vec();
        for row in first {
            remove(&mut missing, row);
        }
        let mut impossible = Vec::new();
        while let Some(&pair) = missing.first() {
            let best = (0..ORDERS)
                .filter_map(|order| self.row(pair, &missing, order))
                .max_by_key(|row| missing.iter().filter(|pair| has(row, pair)).count());
            let Some(row) = best else {
                missing.remove(&pair);
                impossible.push(pair);
                continue;
            };
            remove(&mut missing, &row);
            rows.push(row);
        }
        Covering { rows, impossible }
    }

    /// All pairs of levels of two factors.
    pub fn pairs(self) -> impl Iterator<Item = Pair> {
        let levels =
            move |factor: usize| (0..self.levels[factor]).map(move |level| Level { factor, level });
        let count = self.levels.len();
        (0..count).flat_map(move |a| {
            (a + 1..count).flat_map(move |b| {
                levels(a).flat_map(move |one| levels(b).map(move |other| (one, other)))
            })
        })
    }

    /// Whether a whole row has no forbidden pair.
    #[must_use]
    pub fn allows(self, row: &[u8]) -> bool {
        !self.forbidden.iter().any(|pair| has(row, pair))
    }

    /// A row with that pair and as many missing ones as a greedy choice finds; `None` if no row can
    /// have it.
    fn row(self, (a, b): Pair, missing: &BTreeSet<Pair>, order: usize) -> Option<Vec<u8>> {
        let mut row: Vec<Option<u8>> = vec![None; self.levels.len()];
        row[a.factor] = Some(a.level);
        row[b.factor] = Some(b.level);
        if !self.is_consistent(&row, a) || !self.is_consistent(&row, b) || !self.completes(&row) {
            return None;
        }
        let count = self.levels.len();
        for step in 0..count {
            // Rotations, half of them backwards.
            let at = (step + order * (count / ORDERS + 1)) % count;
            let factor = if order.is_multiple_of(2) {
                at
            } else {
                count - 1 - at
            };
            if row[factor].is_some() {
                continue;
            }
            let gain = |level: u8| {
                let own = Level { factor, level };
                let others = row.iter().enumerate();
                others
                    .filter_map(|(factor, level)| {
                        Some(Level {
                            factor,
                            level: (*level)?,
                        })
                    })
                    .filter(|other| missing.contains(&(own.min(*other), own.max(*other))))
                    .count()
            };
            let mut levels: Vec<(usize, u8)> = (0..self.levels[factor])
                .map(|level| (gain(level), level))
                .collect();
            // The most pairs first; among equals alternate, so that rows differ.
            levels.sort_by_key(|&(gain, level)| {
                (
                    usize::MAX - gain,
                    (usize::from(level) + order + factor) % 2,
                    level,
                )
            });
            let fitting = levels.into_iter().find(|&(_, level)| {
                row[factor] = Some(level);
                let fits = self.is_consistent(&row, Level { factor, level });
                fits && self.completes(&row)
            });
            // The row could be completed before, so some level fits.
            fitting?;
        }
        row.into_iter().collect()
    }

    /// Whether a level contradicts no assigned one.
    fn is_consistent(self, row: &[Option<u8>], own: Level) -> bool {
        let is_in = |level: Level| row[level.factor] == Some(level.level);
        let mut about = self
            .forbidden
            .iter()
            .filter(|(a, b)| *a == own || *b == own);
        !about.any(|(a, b)| is_in(*a) && is_in(*b))
    }

    /// Whether the free factors have levels that contradict nothing, by search with backtracking.
    /// Constraints of offloads are few implications, so that the first attempt succeeds.
    fn completes(self, row: &[Option<u8>]) -> bool {
        let Some(factor) = row.iter().position(Option::is_none) else {
            return true;
        };
        let mut row = row.to_vec();
        (0..self.levels[factor]).any(|level| {
            row[factor] = Some(level);
            self.is_consistent(&row, Level { factor, level }) && self.completes(&row)
        })
    }
}

/// Whether a row has both levels of a pair.
#[must_use]
pub fn has(row: &[u8], (a, b): &Pair) -> bool {
    row[a.factor] == a.level && row[b.factor] == b.level
}

fn remove(missing: &mut BTreeSet<Pair>, row: &[u8]) {
    missing.retain(|pair| !has(row, pair));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn level(factor: usize, level: u8) -> Level {
        Level { factor, level }
    }

    /// All rows, as an oracle: small inputs only.
    fn all_rows(levels: &[u8]) -> Vec<Vec<u8>> {
        levels.iter().fold(vec![Vec::new()], |rows, &count| {
            let each = rows.iter();
            each.flat_map(|row| (0..count).map(|level| [&row[..], &[level]].concat()))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn every_possible_pair_is_covered_and_no_forbidden_one(
            levels in prop::collection::vec(1u8..4, 2..8),
            forbidden in prop::collection::vec((0usize..8, 0u8..3, 0usize..8, 0u8..3), 0..8),
        ) {
            let count = levels.len();
            let forbidden: Vec<Pair> = forbidden
                .into_iter()
                .map(|(a, i, b, j)| (level(a % count, i), level(b % count, j)))
                .filter(|(a, b)| a.factor != b.factor)
                .collect();
            let factors = Factors { levels: &levels, forbidden: &forbidden };
            let covering = factors.covering(&[]);
            let allowed: Vec<_> =
                all_rows(&levels).into_iter().filter(|row| factors.allows(row)).collect();
            for row in &covering.rows {
                prop_assert!(allowed.contains(row), "{row:?}");
            }
            for pair in factors.pairs() {
                let possible = allowed.iter().any(|row| has(row, &pair));
                let covered = covering.rows.iter().any(|row| has(row, &pair));
                prop_assert_eq!(possible, covered, "{:?}", pair);
                prop_assert_eq!(possible, !covering.impossible.contains(&pair));
            }
        }

        #[test]
        fn first_rows_are_kept_and_count(
            levels in prop::collection::vec(2u8..4, 2..8),
            seed in prop::collection::vec(0u8..2, 8),
        ) {
            let first = vec![seed[..levels.len()].to_vec()];
            let factors = Factors { levels: &levels, forbidden: &[] };
            let covering = factors.covering(&first);
            prop_assert_eq!(&covering.rows[0], &first[0]);
            for pair in factors.pairs() {
                prop_assert!(covering.rows.iter().any(|row| has(row, &pair)));
            }
        }
    }

    #[test]
    fn rows_grow_with_the_logarithm_of_the_number_of_factors() {
        // The least for binary factors: 10 rows for 126 factors (Kleitman and Spencer, 1973).
        for (count, rows_max) in [(10, 10), (30, 14), (64, 17)] {
            let levels = vec![2; count];
            let factors = Factors {
                levels: &levels,
                forbidden: &[],
            };
            let rows = factors.covering(&[vec![0; count]]).rows.len();
            assert!(rows <= rows_max, "{rows} rows for {count} factors");
        }
    }

    #[test]
    fn implications_of_offloads_are_kept() {
        // TSO (0) requires scatter-gather (1) and checksums (2); level 0 is on.
        let forbidden = [(level(0, 0), level(1, 1)), (level(0, 0), level(2, 1))];
        let factors = Factors {
            levels: &[2; 6],
            forbidden: &forbidden,
        };
        let covering = factors.covering(&[vec![0; 6]]);
        assert!(covering.rows.iter().all(|row| factors.allows(row)));
        assert_eq!(covering.impossible, forbidden);
    }
}

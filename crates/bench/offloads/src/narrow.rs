//! From a combination of settings that fails to the few of them that make it fail.
//!
//! Adaptive, as FIC-BS (Zhang and Zhang, ISSTA 2011): between a combination that passes and one
//! that fails, the last setting that turns one into the other is found by bisection and kept. The
//! search continues without those behind it, until the kept ones suffice. This takes about log₂ n
//! tests for each setting found.
//!
//! The result is then tested among opposite settings: if it passes there, settings that both
//! combinations shared belong to the cause, and are found in the same way.

/// Most factors of a cause: more are a failure that comes and goes.
const CAUSES_MAX: usize = 4;

/// The result of narrowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Narrowed {
    /// These factors at the levels of the failing combination make it fail, and a change of any one
    /// of them makes it pass.
    Causes(Vec<usize>),
    /// The same combination failed and then passed.
    Unstable,
}

/// Finds the factors that make `failing` fail and `passing` pass. `is_protected` names a factor
/// that the causes need at its level in `failing`, such as scatter-gather for TSO. `fails` makes a
/// test.
///
/// # Errors
/// The levels of `fails`.
///
/// # Panics
/// If the combinations differ in length.
pub fn narrow<E>(
    failing: &[u8],
    passing: &[u8],
    levels: &[u8],
    is_protected: impl Fn(&[usize], usize) -> bool,
    mut fails: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<Narrowed, E> {
    assert_eq!(failing.len(), passing.len());
    let (differing, shared): (Vec<usize>, Vec<usize>) =
        (0..failing.len()).partition(|&at| failing[at] != passing[at]);
    let mut causes = Vec::new();
    // A cause always includes the levels that it needs.
    let with = |base: &[u8], causes: &[usize], candidates: &[usize]| {
        let is_set = |at: usize| {
            causes.contains(&at) || candidates.contains(&at) || is_protected(causes, at)
        };
        (0..base.len())
            .map(|at| if is_set(at) { failing[at] } else { base[at] })
            .collect::<Vec<u8>>()
    };
    let mut suffices = |base: &[u8], causes: &[usize], candidates: &[usize]| {
        fails(&with(base, causes, candidates))
    };
    if !search(passing, differing, &mut causes, &mut suffices)? {
        return Ok(Narrowed::Unstable);
    }
    // The opposite of the failing combination in all that it shares with the passing one.
    let free: Vec<usize> = shared
        .into_iter()
        .filter(|&at| levels[at] > 1 && !is_protected(&causes, at))
        .collect();
    let mut opposite = passing.to_vec();
    for &at in &free {
        opposite[at] = (failing[at] + 1) % levels[at];
    }
    if !search(&opposite, free, &mut causes, &mut suffices)? {
        return Ok(Narrowed::Unstable);
    }
    causes.sort_unstable();
    Ok(Narrowed::Causes(causes))
}

/// Adds to `causes` the candidates at whose levels in the failing combination the base fails. False
/// if it passes with none and with all of them.
fn search<E>(
    base: &[u8],
    mut candidates: Vec<usize>,
    causes: &mut Vec<usize>,
    fails: &mut impl FnMut(&[u8], &[usize], &[usize]) -> Result<bool, E>,
) -> Result<bool, E> {
    loop {
        // The passing combination itself needs no test.
        if !causes.is_empty() && fails(base, causes, &[])? {
            return Ok(true);
        }
        if candidates.is_empty() || causes.len() == CAUSES_MAX {
            return Ok(false);
        }
        // The fewest candidates, from the first on, that make it fail.
        let (mut passes, mut suffices) = (0, candidates.len());
        while suffices - passes > 1 {
            let middle = passes.midpoint(suffices);
            if fails(base, causes, &candidates[..middle])? {
                suffices = middle;
            } else {
                passes = middle;
            }
        }
        causes.push(candidates[suffices - 1]);
        candidates.truncate(suffices - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    const NEVER: fn(&[usize], usize) -> bool = |_, _| false;

    proptest! {
        /// A hidden cause of one to three levels is found exactly, whatever the two combinations
        /// share of it, in few tests.
        #[test]
        fn the_hidden_cause_is_found(
            failing in prop::collection::vec(0u8..2, 4..70),
            passing in prop::collection::vec(0u8..2, 70),
            cause in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
            broken in any::<prop::sample::Index>(),
        ) {
            let count = failing.len();
            let cause: std::collections::BTreeSet<usize> =
                cause.iter().map(|index| index.index(count)).collect();
            let mut passing = passing[..count].to_vec();
            // At least one level of the cause is missing in the passing one.
            let at = *cause.iter().nth(broken.index(cause.len())).unwrap();
            passing[at] = 1 - failing[at];
            let mut tests = 0;
            let fails = |row: &[u8]| -> Result<bool, Infallible> {
                tests += 1;
                Ok(cause.iter().all(|&at| row[at] == failing[at]))
            };
            let levels = vec![2; count];
            let found = narrow(&failing, &passing, &levels, NEVER, fails).unwrap();
            prop_assert_eq!(found, Narrowed::Causes(cause.iter().copied().collect()));
            let each = count.ilog2() as usize + 2;
            prop_assert!(tests <= (cause.len() + 1) * each + 1, "{} tests", tests);
        }
    }

    #[test]
    fn what_the_cause_needs_is_not_part_of_it() {
        // 1 takes effect only with 0, as TSO does with scatter-gather.
        let fails = |row: &[u8]| -> Result<bool, Infallible> { Ok(row[0] == 0 && row[1] == 0) };
        let failing = [0, 0, 0];
        let needs = |causes: &[usize], at: usize| causes.contains(&1) && at == 0;
        // Whether the passing combination has it or not.
        for passing in [[0, 1, 0], [1, 1, 1], [1, 0, 1]] {
            let found = narrow(&failing, &passing, &[2; 3], NEVER, fails).unwrap();
            assert_eq!(found, Narrowed::Causes(vec![0, 1]));
        }
        for passing in [[0, 1, 0], [1, 1, 1]] {
            let found = narrow(&failing, &passing, &[2; 3], needs, fails).unwrap();
            assert_eq!(found, Narrowed::Causes(vec![1]));
        }
    }

    #[test]
    fn a_failure_that_does_not_repeat_is_unstable() {
        let fails = |_: &[u8]| -> Result<bool, Infallible> { Ok(false) };
        let found = narrow(&[0, 0], &[1, 1], &[2; 2], NEVER, fails).unwrap();
        assert_eq!(found, Narrowed::Unstable);
    }
}

//! The state of a bisection, and its next step.

use crate::ask::{Ask, Config, Entry, LogRatio, Order, Step, Test};
use crate::evidence::{Evidence, Expected, Shown};
use crate::posterior::Posterior;
use crate::random::SplitMix64;
use crate::{BisectError, Estimate, LocatedChange, Outcome, Rest, Undecided};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// A candidate is left when its probability of being changed is this near to 0 or 1.
const DECIDED: f64 = 0.01;
/// The same for the first [`FEW`] pairs: where few pairs decide, a few more cost less than a wrong
/// turn.
const DECIDED_BY_FEW: f64 = 0.003;
const FEW: usize = 20;
/// Lowest probability of a result.
const PROBABLE: f64 = 0.975;
/// Error of *no change* between the ends: 1 %, as a logarithm. A change that is missed there is
/// missed for good.
const NO_CHANGE: f64 = 4.605_170_185_988_091;
/// Error of a change between the ends, of each direction: 2 %.
const CHANGE: f64 = 3.912_023_005_428_146;
/// Error of the first result, 2 %; each further one has half of the one before, so that all
/// together have at most 4 %.
const CONFIRMED: f64 = CHANGE;
/// Error of another change, on each side and of each direction, 1 %: 4 % together.
const OTHER: f64 = NO_CHANGE;
/// Error of *no other change*, 5 %.
const NO_OTHER: f64 = 2.995_732_273_553_991;
/// Fewest pairs of a test whose interval is reported: fewer bound nothing.
const PAIRS_MIN: usize = 10;
/// Pairs of one candidate after which it counts as neither changed nor unchanged, if the ends were
/// not as hard to distinguish: several times what a candidate with or without the change takes.
const STUCK: usize = 300;
/// The same, in pairs of the ends.
const STUCK_BY_ENDS: usize = 8;
/// Results that are tried before the change counts as spread over many candidates.
const ATTEMPTS: usize = 4;

/// A bisection.
#[derive(Debug, Clone)]
pub struct Bisection {
    config: Config,
    size: f64,
    entries: Vec<Entry>,
    pairs: usize,
    skipped: BTreeSet<usize>,
    measured: BTreeSet<usize>,
    expected: Expected,
    /// The same for changes of any size, as known after the test of the ends.
    others: Expected,
    ends: Evidence,
    /// Whether the ends were found to differ.
    differs: bool,
    searched: BTreeMap<usize, Evidence>,
    /// The candidate that the search measures until it is decided.
    current: Option<usize>,
    /// Results on trial: the one before the change, the changed one, new pairs of both.
    confirms: Vec<(usize, usize, Evidence)>,
    found: Option<LocatedChange>,
    before: Option<Evidence>,
    after: Option<Evidence>,
    step: Step,
}

impl Bisection {
    /// Begins a bisection.
    ///
    /// # Errors
    ///
    /// A parameter is out of range.
    pub fn new(config: Config) -> Result<Self, BisectError> {
        config.check()?;
        let ratio = 1.0 - config.sign() * f64::from(config.size_ppm) / 1e6;
        // A drop and a rise of the same per cent differ as logarithms: ln 0.98 is not −ln 1.02.
        let size = ratio.ln().abs();
        let expected = Expected::anything();
        let mut bisection = Self {
            size,
            entries: Vec::new(),
            pairs: 0,
            skipped: BTreeSet::new(),
            measured: BTreeSet::new(),
            ends: Evidence::new(size, &expected),
            others: expected.clone(),
            expected,
            differs: false,
            searched: BTreeMap::new(),
            current: None,
            confirms: Vec::new(),
            found: None,
            before: None,
            after: None,
            step: Step::Measure(Ask {
                test: Test::Ends,
                candidate: 0,
                reference: 0,
                pairs: Vec::new(),
            }),
            config,
        };
        bisection.advance();
        Ok(bisection)
    }

    /// Continues a bisection from its entries.
    ///
    /// # Errors
    ///
    /// A parameter is out of range, or an entry is not what this bisection asks for.
    pub fn resume(config: Config, entries: &[Entry]) -> Result<Self, BisectError> {
        let mut bisection = Self::new(config)?;
        for (at, entry) in entries.iter().enumerate() {
            // Each entry must answer the question of its place: the orders of pairs were drawn by
            // place, and pairs of another question would count for the wrong candidate.
            let asked = match &bisection.step {
                Step::Measure(ask) => Some((ask.candidate, ask.reference)),
                Step::Done(_) => None,
            };
            let (found, matches) = match entry {
                Entry::Pairs {
                    candidate,
                    reference,
                    ..
                } => (
                    (*candidate, *reference),
                    asked == Some((*candidate, *reference)),
                ),
                Entry::Skipped { candidate } => {
                    // Either side of a pair may fail to build, and the entry names one of them.
                    let of_asked = |(one, other)| *candidate == one || *candidate == other;
                    ((*candidate, *candidate), asked.is_some_and(of_asked))
                }
            };
            if !matches {
                let asked = asked.map_or_else(
                    || "the bisection has ended there".to_owned(),
                    |asked| format!("{asked:?} were asked for there"),
                );
                let entry = at + 1;
                return Err(BisectError::Replay {
                    entry,
                    found,
                    asked,
                });
            }
            match entry {
                Entry::Pairs { log_ratios_e9, .. } => bisection.record(log_ratios_e9)?,
                Entry::Skipped { candidate } => bisection.skip(*candidate)?,
            }
        }
        Ok(bisection)
    }

    /// What to do next.
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.step
    }

    /// All records so far, for [`Bisection::resume`].
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Pairs measured so far.
    #[must_use]
    pub const fn pairs(&self) -> usize {
        self.pairs
    }

    /// The candidates that were measured, other than the good end: the versions to build.
    #[must_use]
    pub const fn measured(&self) -> &BTreeSet<usize> {
        &self.measured
    }

    /// The candidates that could not be measured.
    #[must_use]
    pub const fn skipped(&self) -> &BTreeSet<usize> {
        &self.skipped
    }

    /// The result, as soon as it is confirmed: tests for other changes may follow.
    #[must_use]
    pub const fn found(&self) -> Option<&LocatedChange> {
        self.found.as_ref()
    }

    /// The candidates that may have changed the figure: the smallest range around the most
    /// probable one that has a probability of 97.5 %.
    #[must_use]
    pub fn suspects(&self) -> RangeInclusive<usize> {
        let posterior = self.posterior();
        let last = self.config.last();
        let tail = (1.0 - PROBABLE) / 2.0;
        let first = (1..last).find(|at| posterior.changed(*at) > tail);
        let first = first.unwrap_or(last);
        let end = (first..last).find(|at| posterior.changed(*at) >= 1.0 - tail);
        first..=end.unwrap_or(last)
    }

    /// Records the pairs that were measured as asked, in their order: all of them, or the first
    /// ones.
    ///
    /// # Errors
    ///
    /// None, or more than were asked for.
    pub fn record(&mut self, ratios: &[LogRatio]) -> Result<(), BisectError> {
        let Step::Measure(ask) = self.step.clone() else {
            return Err(BisectError::Ended);
        };
        if ratios.is_empty() || ratios.len() > ask.pairs.len() {
            return Err(BisectError::NotAsked {
                found: ratios.len(),
                asked: ask.pairs.len(),
            });
        }
        let sign = self.config.sign();
        let evidence = self.evidence_of(&ask);
        for ratio in ratios {
            // A loss is positive if the candidate is worse: a lower rate, or a longer delay.
            evidence.add(-sign * ratio.value());
        }
        self.pairs += ratios.len();
        self.measured.extend([ask.candidate, ask.reference]);
        self.measured.remove(&0);
        self.entries.push(Entry::Pairs {
            candidate: ask.candidate,
            reference: ask.reference,
            log_ratios_e9: ratios.to_vec(),
        });
        self.advance();
        Ok(())
    }

    /// Records that a candidate cannot be measured, such as a version that does not build.
    ///
    /// # Errors
    ///
    /// The candidate is an end, or was not asked for.
    pub fn skip(&mut self, candidate: usize) -> Result<(), BisectError> {
        let Step::Measure(ask) = &self.step else {
            return Err(BisectError::Ended);
        };
        // Only an asked version was tried: another one may build.
        if candidate != ask.candidate && candidate != ask.reference {
            return Err(BisectError::SkippedOther { candidate });
        }
        if candidate == 0 {
            return Err(BisectError::EndSkipped("good"));
        }
        if candidate == self.config.last() {
            return Err(BisectError::EndSkipped("bad"));
        }
        self.skipped.insert(candidate);
        self.entries.push(Entry::Skipped { candidate });
        self.advance();
        Ok(())
    }

    /// The evidence that an ask adds to.
    fn evidence_of(&mut self, ask: &Ask) -> &mut Evidence {
        let new = || Evidence::new(self.size, &self.expected);
        let other = || Evidence::new(self.size, &self.others);
        match ask.test {
            Test::Ends => &mut self.ends,
            Test::Search => self.searched.entry(ask.candidate).or_insert_with(new),
            Test::Confirm => {
                let is_own = |one: &(usize, usize, Evidence)| {
                    (one.0, one.1) == (ask.reference, ask.candidate)
                };
                let at = self.confirms.iter().position(is_own);
                let at = at.unwrap_or_else(|| {
                    let evidence = Evidence::new(self.size, &self.expected);
                    self.confirms.push((ask.reference, ask.candidate, evidence));
                    self.confirms.len() - 1
                });
                &mut self.confirms[at].2
            }
            Test::Before => self.before.get_or_insert_with(other),
            Test::After => self.after.get_or_insert_with(other),
        }
    }

    /// Decides on the next step.
    fn advance(&mut self) {
        let next = self.next();
        let left = (self.config.pairs_max as usize).saturating_sub(self.pairs);
        self.step = match next {
            Next::Done(outcome) => Step::Done(Box::new(outcome)),
            // What was found is not lost by tests for other changes that take too long.
            Next::Measure(..) if left == 0 => {
                let found = self
                    .found
                    .clone()
                    .map(|found| Outcome::Found(Box::new(found)));
                let outcome = found.unwrap_or_else(|| {
                    let suspects = self.differs.then(|| self.suspects());
                    self.undecided(Undecided::Limit, suspects)
                });
                Step::Done(Box::new(outcome))
            }
            Next::Measure(test, candidate, reference) => {
                let count = left.min(self.config.batch as usize);
                // By the number of pairs so far, so that a resumed bisection draws the same orders.
                let orders = (self.pairs..self.pairs + count).map(|pair| self.order(pair));
                Step::Measure(Ask {
                    test,
                    candidate,
                    reference,
                    pairs: orders.collect(),
                })
            }
        };
    }

    fn next(&mut self) -> Next {
        let last = self.config.last();
        if !self.differs {
            match shown(&self.ends, CHANGE, NO_CHANGE) {
                None => return Next::Measure(Test::Ends, last, 0),
                Some(Shown::Equal) => return Next::Done(Outcome::NoChange(self.total())),
                Some(Shown::Better) => return Next::Done(Outcome::Swapped(self.total())),
                Some(Shown::Worse) => {}
            }
            self.differs = true;
            // The ends show the size of the change and the noise. Tests for other changes take the
            // noise only: another change may have any size.
            self.expected = self.ends.expected(&self.expected).cautious();
            self.others = self.expected.with_any_shift();
        }
        let search = match self.found {
            None => self.search(),
            Some(_) => None,
        };
        search.unwrap_or_else(|| self.others())
    }

    /// The next step of the search; `None` once a result is confirmed.
    fn search(&mut self) -> Option<Next> {
        let posterior = self.posterior();
        let last = self.config.last();
        if let Some(candidate) = self.choose(&posterior) {
            let pairs = self.searched.get(&candidate).map(|one| one.losses().len());
            let most = STUCK.max(STUCK_BY_ENDS * self.ends.losses().len());
            if pairs.is_some_and(|pairs| pairs >= most) {
                let suspects = self.suspects();
                return Some(Next::Done(
                    self.undecided(Undecided::Spread, Some(suspects)),
                ));
            }
            if self.current != Some(candidate) {
                self.learn();
                self.current = Some(candidate);
            }
            // Against the good end, which is unchanged: the loss is then the whole change or none.
            // A neighbour may have the change itself.
            return Some(Next::Measure(Test::Search, candidate, 0));
        }
        if self.current.is_some() {
            self.learn();
            self.current = None;
        }
        let is_open = |at: &usize| !self.skipped.contains(at);
        // No candidate between these two can be measured, or is undecided.
        let changed = (1..last)
            .filter(is_open)
            .find(|at| posterior.changed(*at) >= 0.5);
        let changed = changed.unwrap_or(last);
        let unchanged = (1..changed).rev().find(is_open).unwrap_or(0);
        let probability = posterior.between(unchanged, changed);
        let of = self
            .confirms
            .iter()
            .position(|one| (one.0, one.1) == (unchanged, changed));
        let attempt = of.unwrap_or(self.confirms.len());
        // The search insists on what new pairs refute: there are many small steps.
        let is_refuted = of
            .is_some_and(|at| shown(&self.confirms[at].2, CHANGE, NO_CHANGE) == Some(Shown::Equal));
        if attempt == ATTEMPTS || is_refuted {
            let suspects = self.suspects();
            return Some(Next::Done(
                self.undecided(Undecided::Spread, Some(suspects)),
            ));
        }
        // Each attempt has half of the error, so the sum of all stays below twice the first: 4 %.
        let error = CONFIRMED + attempt as f64 * std::f64::consts::LN_2;
        let is_confirmed = of.is_some_and(|at| {
            let evidence = &self.confirms[at].2;
            evidence.losses().len() >= PAIRS_MIN && evidence.against_equal() >= error
        });
        // New pairs can confirm a small part of the change, so the likelihoods of the search must
        // agree. More pairs of the same two shift both.
        if !is_confirmed || probability < PROBABLE {
            return Some(Next::Measure(Test::Confirm, changed, unchanged));
        }
        let own = of.map(|at| self.confirms[at].2.losses());
        self.found = Some(LocatedChange {
            first: unchanged + 1,
            last: changed,
            change: self.estimate(own.unwrap_or_default())?.of_change(),
            probability,
            total: self.total(),
            before: if unchanged == 0 {
                Rest::Adjacent
            } else {
                Rest::Undecided
            },
            after: if changed == last {
                Rest::Adjacent
            } else {
                Rest::Undecided
            },
        });
        // The search has compared the same two, and expected the whole change or none of it.
        self.before = self.searched.get(&unchanged).map(|searched| {
            let mut before = Evidence::new(self.size, &self.others);
            searched.losses().iter().for_each(|loss| before.add(*loss));
            before
        });
        None
    }

    /// Tests for changes other than the result.
    fn others(&mut self) -> Next {
        let Some(mut found) = self.found.clone() else {
            unreachable!("the search ends with a result or a step")
        };
        let last = self.config.last();
        let asks = [
            (Test::Before, found.first - 1, 0),
            (Test::After, last, found.last),
        ];
        for (test, candidate, reference) in asks {
            let (rest, evidence) = match test {
                Test::Before => (&mut found.before, &self.before),
                _ => (&mut found.after, &self.after),
            };
            if *rest != Rest::Undecided {
                continue;
            }
            let shown = evidence
                .as_ref()
                .and_then(|one| shown(one, OTHER, NO_OTHER));
            // A version that can be measured no more leaves its side open.
            let is_skipped = |at| self.skipped.contains(at);
            if shown.is_none() && [candidate, reference].iter().any(is_skipped) {
                continue;
            }
            let Some(shown) = shown else {
                return Next::Measure(test, candidate, reference);
            };
            let losses = evidence.as_ref().map_or(&[][..], Evidence::losses);
            let Some(estimate) = self.estimate(losses) else {
                return Next::Measure(test, candidate, reference);
            };
            *rest = match shown {
                Shown::Worse | Shown::Better => Rest::Change(estimate.of_change()),
                Shown::Equal => Rest::Excluded(estimate),
            };
            // Kept at each step: if the limit on pairs ends the second side, the first one is
            // reported.
            self.found = Some(found.clone());
        }
        Next::Done(Outcome::Found(Box::new(found)))
    }

    /// The next candidate of the search; `None` if all that can be measured are decided.
    fn choose(&self, posterior: &Posterior) -> Option<usize> {
        let is_undecided = |at: usize| {
            let changed = posterior.changed(at);
            let pairs = self.searched.get(&at).map(|one| one.losses().len());
            let decided = match pairs {
                Some(few) if few < FEW => DECIDED_BY_FEW,
                _ => DECIDED,
            };
            !self.skipped.contains(&at) && changed > decided && changed < 1.0 - decided
        };
        // A version that is built is measured until it is decided.
        if let Some(current) = self.current.filter(|at| is_undecided(*at)) {
            return Some(current);
        }
        let worth = |at: usize| {
            let changed = posterior.changed(at);
            // `is_undecided` keeps `changed` away from 0 and 1, so both logarithms are finite.
            let bits = -changed * changed.log2() - (1.0 - changed) * (1.0 - changed).log2();
            // Neighbours of a version that does not build rarely build.
            let builds = if self.measured.contains(&at) {
                1.0
            } else {
                let skipped = self.skipped.iter();
                let chances =
                    skipped.map(|skipped| 1.0 - 1.0 / (1.0 + skipped.abs_diff(at) as f64));
                chances.product()
            };
            bits * builds
        };
        let open = (1..self.config.last()).filter(|at| is_undecided(*at));
        open.map(|at| (at, worth(at)))
            // Of equals the first, on every machine: a resumed bisection must choose the same one.
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
            .map(|(at, _)| at)
    }

    /// The scale of the noise, learnt from the candidate that the search leaves.
    fn learn(&mut self) {
        let left = self.current.and_then(|at| self.searched.get(&at));
        if let Some(left) = left {
            self.expected = left.expected(&self.expected);
        }
    }

    fn posterior(&self) -> Posterior {
        let searched = self.searched.iter();
        let searched = searched.map(|(candidate, evidence)| (*candidate, evidence.likelihood()));
        let confirms = self.confirms.iter();
        let confirms = confirms.map(|(unchanged, changed, evidence)| {
            (unchanged + 1..=*changed, evidence.likelihood())
        });
        Posterior::of(self.config.last(), searched, confirms)
    }

    fn estimate(&self, losses: &[f64]) -> Option<Estimate> {
        Estimate::of(losses, self.config.sign())
    }

    /// The change between the ends. A test that has ended has pairs.
    fn total(&self) -> Estimate {
        let none = Estimate {
            ratio: 1.0,
            low: 0.0,
            high: f64::INFINITY,
            pairs: 0,
        };
        self.estimate(self.ends.losses()).unwrap_or(none)
    }

    fn undecided(&self, why: Undecided, suspects: Option<RangeInclusive<usize>>) -> Outcome {
        Outcome::Undecided {
            why,
            suspects,
            total: self.total(),
        }
    }

    /// The order of a pair: bits of SplitMix64, which need no state.
    fn order(&self, pair: usize) -> Order {
        let mut bits = SplitMix64(self.config.seed ^ (pair as u64) << 20);
        bits.next();
        if bits.next() & 1 == 0 {
            Order::CandidateFirst
        } else {
            Order::ReferenceFirst
        }
    }
}

/// A step before its pairs are drawn.
enum Next {
    Measure(Test, usize, usize),
    Done(Outcome),
}

/// What a test shows, once it has enough pairs for an interval.
fn shown(evidence: &Evidence, change: f64, none: f64) -> Option<Shown> {
    let is_long = evidence.losses().len() >= PAIRS_MIN;
    evidence.shown(change, none).filter(|_| is_long)
}

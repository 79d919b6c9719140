//! Throughput: the bounds found by searches.

use super::loss::LossAccount;
use super::rates::{LayerRates, Lengths};
use super::{Repeats, distinct};
use crate::figures::estimate::Estimate;
use journal::record::{FrameResult, FrameTrial, GoalBounds, GoalOutcome, SearchEnd, SearchRecord};
use plan::{Criteria, Goal, ThroughputSearch};
use schemars::JsonSchema;
use serde::Serialize;
use units::human::{duration_ns, frame_rate};

/// The result of the searches of a cell (RFC 9971). Loads are in frames/s of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ThroughputResult {
    /// Source of the goals: `fast`, `rfc2544`, `tst009`; `custom`: the campaign lists them.
    pub profile: String,
    /// Each goal, in the plan's order. The first is the cell's figure.
    pub goals: Vec<GoalResult>,
    /// Highest possible load.
    pub max_load_frames_per_s: Estimate,
    /// Its limit: `line-rate`, `given` or `generator`; several if repeats differ.
    pub max_load_by: Vec<String>,
    /// Lowest possible load.
    pub min_load_frames_per_s: u64,
    /// Duration of a search, including drains.
    pub search_ns: Estimate,
    /// Frame trials made, over all repeats.
    pub frame_trials: u64,
    /// Repeats that timed out before the bounds were within the configured width.
    pub timed_out: u32,
}

/// One goal's throughput over the repeats.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GoalResult {
    /// Its name in the plan.
    pub goal: String,
    /// Its parameters.
    pub parameters: Criteria,
    /// Relevant lower bound; `null` when a repeat has none.
    pub lower: Option<LayerRates>,
    /// Relevant upper bound; `null` when a repeat has none.
    pub upper: Option<LayerRates>,
    /// Lower bound of the repeats that have one, if others have none; `null` otherwise. It is no
    /// figure of the cell, as the repeats that lack it may be the worse ones.
    pub lower_of_some: Option<LayerRates>,
    /// Upper bound of the repeats that have one, if others have none; `null` otherwise.
    pub upper_of_some: Option<LayerRates>,
    /// Conditional throughput: forwarding rate at the lower bound; `null` when a repeat has none.
    pub conditional_throughput: Option<LayerRates>,
    /// Trials at the lower bounds, over all repeats.
    pub lower_trials: u64,
    /// Trials at the upper bounds, over all repeats.
    pub upper_trials: u64,
    /// Duration of the longest trial at the lower bound that met the goal, minimum over the
    /// repeats; `null` if a repeat has none. Whether the device sustains the figure for longer is
    /// not known.
    pub held_ns: Option<u64>,
    /// Losses in the trials at the upper bounds, by place; if both directions are loaded, in the
    /// direction that lost the larger share. `null` without an upper bound.
    pub upper_account: Option<LossAccount>,
    /// Outcomes of the repeats' searches (RFC 9971, Goal Result): every one that occurred. The
    /// result is regular only if all of them are.
    pub outcomes: Vec<OutcomeRepeats>,
    /// Why the result is not regular: why a bound is missing, or too far from the other, as
    /// sentences.
    pub irregular: Vec<String>,
    /// Repeats that lack a bound because the search timed out.
    pub time_was_up: u32,
}

/// An outcome and the number of repeats that had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutcomeRepeats {
    /// The outcome: `regular`; `max-load-meets`: no upper bound; `min-load-fails`: no lower bound;
    /// `unfinished`: the search timed out.
    pub outcome: GoalOutcome,
    /// Repeats.
    pub repeats: u32,
}

/// One repeat's search with its whole frame result.
type RepeatSearch<'a> = (u32, &'a FrameResult, &'a SearchRecord);

impl ThroughputResult {
    /// Whether the figure, the first goal's lower bound, may be too low: in some repeat the highest
    /// load met the goal, and the line rate was not what bounded it, or the search ended before its
    /// bounds were close.
    #[must_use]
    pub fn is_only_lower_bound(&self) -> bool {
        let by_line = self.is_bounded_by_line();
        self.goals.first().is_some_and(|goal| {
            goal.outcomes.iter().any(|found| match found.outcome {
                GoalOutcome::Regular | GoalOutcome::MinLoadFails => false,
                GoalOutcome::MaxLoadMeets => !by_line,
                GoalOutcome::Unfinished => true,
            })
        })
    }

    /// Whether the line rate was the highest load of every repeat.
    pub(crate) fn is_bounded_by_line(&self) -> bool {
        self.max_load_by.iter().all(|by| by == "line-rate")
    }

    /// `None` if a repeat has no search.
    pub(super) fn of(
        search: &ThroughputSearch,
        lengths: &Lengths,
        repeats: &Repeats<'_>,
    ) -> Option<Self> {
        let found: Vec<RepeatSearch<'_>> = repeats
            .iter()
            .map(|&(repeat, found)| Some((repeat, found, found.throughput.as_ref()?)))
            // A repeat without a search has no bound, and a mean over the others would flatter.
            .collect::<Option<_>>()?;
        let estimate = |value: fn(&SearchRecord) -> u64| {
            let found = found.iter();
            Estimate::of_all(found.map(|&(repeat, _, found)| (repeat, Some(value(found) as f64))))
        };
        let goals = search.goals.iter();
        Some(Self {
            profile: search.profile.name().into(),
            goals: goals
                .map(|goal| GoalResult::of(goal, search, lengths, &found))
                .collect(),
            max_load_frames_per_s: estimate(|found| found.max_load)?,
            max_load_by: distinct(found.iter().map(|(_, _, found)| found.max_load_by.as_str())),
            min_load_frames_per_s: search.min_load,
            search_ns: estimate(|found| found.took_ns)?,
            frame_trials: found
                .iter()
                .map(|(_, all, _)| all.trials.len() as u64)
                .sum(),
            timed_out: found
                .iter()
                .filter(|(_, _, found)| found.end == SearchEnd::TimedOut)
                .count() as u32,
        })
    }
}

impl GoalResult {
    /// Whether the tester failed at the upper bound, so that this one is not the device's.
    #[must_use]
    pub fn upper_is_testers(&self) -> bool {
        self.upper_account.as_ref().is_some_and(is_testers)
    }

    /// The lower bound of all repeats, or else of the ones that have it; its estimate has their
    /// number.
    #[must_use]
    pub fn known_lower(&self) -> Option<&LayerRates> {
        self.lower.as_ref().or(self.lower_of_some.as_ref())
    }

    /// The upper bound of all repeats, or else of the ones that have it; `None` if the tester
    /// failed there, which is no finding about the device.
    #[must_use]
    pub fn known_upper(&self) -> Option<&LayerRates> {
        let known = self.upper.as_ref().or(self.upper_of_some.as_ref());
        known.filter(|_| !self.upper_is_testers())
    }

    /// Number of repeats with an outcome.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.outcomes.iter().map(|found| found.repeats).sum()
    }

    /// Whether some repeat ended in an outcome.
    #[must_use]
    pub fn has_outcome(&self, outcome: GoalOutcome) -> bool {
        self.outcomes.iter().any(|found| found.outcome == outcome)
    }

    /// Whether the result of every repeat is regular (RFC 9971, Goal Result): both bounds are known
    /// and as close as the goal's width. A report must mark results that are not.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        let mut outcomes = self.outcomes.iter();
        outcomes.all(|found| found.outcome == GoalOutcome::Regular)
    }

    fn of(
        goal: &Goal,
        search: &ThroughputSearch,
        lengths: &Lengths,
        found: &[RepeatSearch<'_>],
    ) -> Self {
        let found: Vec<GoalRepeat<'_>> = found
            .iter()
            .map(|found| GoalRepeat::of(goal, search, *found))
            .collect();
        let values = |value: fn(&GoalBounds) -> Option<f64>| {
            let values = found.iter();
            values.map(move |own| (own.repeat, own.bounds.and_then(value)))
        };
        let rates = |value: fn(&GoalBounds) -> Option<f64>| {
            // When one repeat lacks a bound, the cell has none: the repeats that failed are the
            // ones missing.
            Some(lengths.rates(Estimate::of_all(values(value))?))
        };
        // A bound that was proven in one repeat stays proven, so it is kept apart from the figure.
        let of_some = |value: fn(&GoalBounds) -> Option<f64>| {
            let known = Estimate::of_known(values(value))?;
            ((known.n as usize) < found.len()).then(|| lengths.rates(known))
        };
        let lower = |bounds: &GoalBounds| bounds.lower.map(|load| load as f64);
        let upper = |bounds: &GoalBounds| bounds.upper.map(|load| load as f64);
        let sum = |count: fn(&GoalBounds) -> u32| -> u64 {
            let known = found.iter().filter_map(|own| own.bounds);
            known.map(|bounds| u64::from(count(bounds))).sum()
        };
        Self {
            goal: goal.name.clone(),
            parameters: goal.criteria,
            lower: rates(lower),
            upper: rates(upper),
            lower_of_some: of_some(lower),
            upper_of_some: of_some(upper),
            conditional_throughput: rates(|bounds| {
                bounds.lower.map(|_| bounds.conditional_throughput)
            }),
            lower_trials: sum(|bounds| bounds.lower_trials),
            upper_trials: sum(|bounds| bounds.upper_trials),
            held_ns: held_ns(goal, &found),
            upper_account: upper_account(&found),
            outcomes: outcomes(&found),
            irregular: irregular(search, &found),
            time_was_up: numbers(&found, GoalRepeat::lacks_a_bound).len() as u32,
        }
    }
}

/// A goal in the search of one repeat.
struct GoalRepeat<'a> {
    repeat: u32,
    all: &'a FrameResult,
    search: &'a SearchRecord,
    /// `None` if the record has nothing of the goal; then there is no outcome either.
    bounds: Option<&'a GoalBounds>,
    /// One for each repeat, so that the sentences about them name each repeat once.
    outcome: Option<GoalOutcome>,
}

impl<'a> GoalRepeat<'a> {
    fn of(goal: &Goal, plan: &ThroughputSearch, (repeat, all, search): RepeatSearch<'a>) -> Self {
        let named = |bounds: &&GoalBounds| bounds.goal == goal.name;
        let bounds = search.goals.iter().find(named);
        let outcome = |bounds: &GoalBounds| {
            // Older journals record no outcome: it follows from the bounds and the end of the
            // search.
            bounds
                .outcome
                .unwrap_or_else(|| match (bounds.lower, bounds.upper) {
                    (None, Some(upper)) if upper <= plan.min_load => GoalOutcome::MinLoadFails,
                    (Some(lower), None) if lower >= search.max_load => GoalOutcome::MaxLoadMeets,
                    (Some(lower), Some(upper))
                        if search.end == SearchEnd::Reached || is_narrow(goal, lower, upper) =>
                    {
                        GoalOutcome::Regular
                    }
                    _ => GoalOutcome::Unfinished,
                })
        };
        Self {
            repeat,
            all,
            search,
            bounds,
            outcome: bounds.map(outcome),
        }
    }

    fn ended(&self, outcome: GoalOutcome) -> bool {
        self.outcome == Some(outcome)
    }

    fn has(&self, bound: fn(&GoalBounds) -> Option<u64>) -> bool {
        self.bounds.and_then(bound).is_some()
    }

    /// Whether it lacks a bound because the search timed out.
    fn lacks_a_bound(&self) -> bool {
        // With both bounds the search was out of time, too, but its figure exists and is only
        // less exact.
        let has_both = self.has(|bounds| bounds.lower) && self.has(|bounds| bounds.upper);
        self.ended(GoalOutcome::Unfinished) && !has_both
    }

    /// The trials at a load.
    fn at(&self, load: u64) -> impl Iterator<Item = &'a FrameTrial> + use<'a> {
        let trials = self.all.trials_on_path();
        trials.filter(move |trial| trial.load == load)
    }
}

/// The numbers of some repeats.
fn numbers<'f>(found: &[GoalRepeat<'f>], is: impl Fn(&GoalRepeat<'f>) -> bool) -> Vec<u32> {
    let some = found.iter().filter(|own| is(own));
    some.map(|own| own.repeat).collect()
}

/// Returns the duration of the longest trial at the lower bound that met the goal, minimum over the
/// repeats.
fn held_ns(goal: &Goal, found: &[GoalRepeat<'_>]) -> Option<u64> {
    let longest = |own: &GoalRepeat<'_>| {
        let at_lower = own.at(own.bounds?.lower?);
        let met = at_lower.filter(|trial| trial.meets(goal.criteria.loss_ratio_ppm));
        met.map(|trial| trial.duration_ns).max()
    };
    // The longest trial of a repeat shows how long it held the rate. Of several repeats the
    // shortest time is certain.
    let held = found.iter().map(longest);
    held.collect::<Option<Vec<u64>>>()?.into_iter().min()
}

/// All trials of each repeat at its upper bound; of two directions the worse, to which the goal is
/// held.
fn upper_account(found: &[GoalRepeat<'_>]) -> Option<LossAccount> {
    let upper = found
        .iter()
        .filter_map(|own| Some((own, own.bounds?.upper?)));
    let at_upper: Vec<&FrameTrial> = upper.flat_map(|(own, upper)| own.at(upper)).collect();
    let all = at_upper.iter().copied();
    (!at_upper.is_empty()).then(|| {
        // The direction that failed the goal decided the bound, so the sum of both could excuse the
        // tester or the device wrongly.
        LossAccount::of_worse_direction(all.clone(), LossAccount::not_forwarded)
            .unwrap_or_else(|| LossAccount::of(all))
    })
}

fn is_narrow(goal: &Goal, lower: u64, upper: u64) -> bool {
    let distance = u128::from(upper.saturating_sub(lower));
    // Two neighbouring loads in whole frames per second have nothing between them, for any width.
    distance <= 1 || distance * 1_000_000 <= u128::from(upper) * u128::from(goal.criteria.width_ppm)
}

/// Every outcome that occurred, the regular one first.
fn outcomes(found: &[GoalRepeat<'_>]) -> Vec<OutcomeRepeats> {
    let all = [
        GoalOutcome::Regular,
        GoalOutcome::MaxLoadMeets,
        GoalOutcome::MinLoadFails,
        GoalOutcome::Unfinished,
    ];
    let counted = all.map(|outcome| OutcomeRepeats {
        outcome,
        repeats: numbers(found, |own| own.ended(outcome)).len() as u32,
    });
    let mut counted = counted.to_vec();
    counted.retain(|found| found.repeats > 0);
    counted
}

/// Whether the tester lost more of these trials' frames than the path between the stations.
fn is_testers(account: &LossAccount) -> bool {
    account.lost_by_tester() > account.not_carried()
}

/// Explains, in sentences, which repeats are not regular and why.
fn irregular(search: &ThroughputSearch, found: &[GoalRepeat<'_>]) -> Vec<String> {
    let mut reasons = Vec::new();
    let unknown = numbers(found, |own| own.bounds.is_none());
    if !unknown.is_empty() {
        reasons.push(format!(
            "{} holds nothing of this goal.",
            repeats(&unknown, found.len())
        ));
    }
    let lowest_failed = numbers(found, |own| own.ended(GoalOutcome::MinLoadFails));
    if !lowest_failed.is_empty() {
        let lowest = frame_rate(search.min_load as f64);
        let reached = found.iter().map(|own| own.search.max_load).min();
        let reached = reached.filter(|load| *load < search.min_load);
        let account = upper_account(found);
        // The lowest load is above the tester's highest: the search could not try it, which is no
        // finding about the device.
        let why = match reached {
            Some(load) => format!(
                "the tester reaches {} only, less than the lowest load, {lowest}",
                frame_rate(load as f64)
            ),
            None if account.as_ref().is_some_and(is_testers) => {
                format!("the tester did not keep up with the lowest load, {lowest}")
            }
            None => format!("even the lowest load, {lowest}, does not meet the goal"),
        };
        reasons.push(format!(
            "No lower bound in {}: {why}.",
            repeats_without(&lowest_failed, found.len())
        ));
    }
    // Not an error of the search: the device may carry more than it was ever offered.
    let passed = |own: &GoalRepeat<'_>| own.ended(GoalOutcome::MaxLoadMeets);
    // The highest load may differ between repeats; the first one is the example.
    if let Some(first) = found.iter().find(|own| passed(own)) {
        reasons.push(format!(
            "No upper bound in {}: the highest load, {} ({}), meets the goal.",
            repeats_without(&numbers(found, passed), found.len()),
            frame_rate(first.search.max_load as f64),
            bounded_by(&first.search.max_load_by)
        ));
    }
    let lacking = numbers(found, GoalRepeat::lacks_a_bound);
    if !lacking.is_empty() {
        let has = |bound: fn(&GoalBounds) -> Option<u64>| {
            let mut own = found.iter().filter(|own| own.lacks_a_bound());
            own.any(|own| own.has(bound))
        };
        // Over several repeats both kinds may be missing.
        let what = match (has(|bounds| bounds.lower), has(|bounds| bounds.upper)) {
            (true, false) => "No upper bound",
            (false, true) => "No lower bound",
            (false, false) => "Neither bound",
            (true, true) => "One bound only",
        };
        reasons.push(format!(
            "{what} in {}: the search's time, {}, was up.",
            repeats_without(&lacking, found.len()),
            duration_ns(search.timeout_ns as f64)
        ));
    }
    // The search has both bounds, and they are too far apart: this is not the sentence about a
    // missing bound.
    let wide = numbers(found, |own| {
        own.ended(GoalOutcome::Unfinished) && !own.lacks_a_bound()
    });
    if !wide.is_empty() {
        reasons.push(format!(
            "The bounds are farther apart than the goal's width in {}: the search's time was up.",
            repeats(&wide, found.len())
        ));
    }
    reasons
}

/// The limit of the highest load, for people.
pub(super) fn bounded_by(by: &str) -> &str {
    match by {
        "line-rate" => "the line rate",
        "given" => "as the campaign says",
        "generator" => "the generator's rate",
        other => other,
    }
}

/// `every repeat`, `repeat 2`, `repeats 2, 3`.
fn repeats(some: &[u32], all: usize) -> String {
    those("every", some, all)
}

/// `any repeat`, `repeat 2`, `repeats 2, 3`: the repeats that lack something.
fn repeats_without(some: &[u32], all: usize) -> String {
    those("any", some, all)
}

fn those(whole: &str, some: &[u32], all: usize) -> String {
    let numbers: Vec<String> = some.iter().map(u32::to_string).collect();
    match some {
        _ if some.len() == all => format!("{whole} repeat"),
        [one] => format!("repeat {one}"),
        _ => format!("repeats {}", numbers.join(", ")),
    }
}

//! Limits of a campaign, and gates on the figures of one run.
//!
//! A limit is *met* or *violated* only if the whole interval of the figure is on one side of it:
//! Student's t on logarithms, of a search from its lower to its upper bound, of a ratio within the
//! repeats. All limits of a run in all of their cells are one question ([`super::significance`]).
//! It is *undecided*
//!
//! 1. if a planned repeat has no figure, or if there is one repeat only, or two bands of repeats
//!    that are not both far from the limit: farther than they are from each other;
//! 2. if repeats are all equal, which does not show how they scatter;
//! 3. if the interval contains the limit.
//!
//! A run that adds repeats until limits are decided looks at its figures several times, and each
//! look could be the one that errs. So look *k* has 5 % / (*k* (*k* + 1)) of the chance of a false
//! answer, which sums up to 5 % for any number of looks. Runs without added repeats have one look,
//! at 5 %. A limit keeps the answer of the first look that decided it.
//!
//! Unlike a claim, a limit is about the figure in this lab, whatever limits it; the reason names
//! the tester, link or machine if it was that.

mod loads;
mod loss;
mod question;
mod round;
mod words;

pub use round::Round;
pub use words::machine;

use crate::Results;
use crate::analysis::compare::Comparison;
use crate::analysis::gate::{Gate, LimitOutcome};
use crate::analysis::scaling;
use crate::analysis::significance::Level;
use crate::cell::CellResult;
use crate::figures::student::ALPHA;
use journal::Journal;
use plan::{Expectation, StoredRun};
use question::{Answer, Question};
use schemars::JsonSchema;
use serde::Serialize;

/// The limits of a campaign with their outcomes, and the repeats that were added to decide them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Expected {
    /// The worst outcome.
    pub outcome: LimitOutcome,
    /// In the order of the campaign.
    pub limits: Vec<ExpectResult>,
    /// Measuring time for added repeats; `null`: none were to be added.
    pub until_decided_ns: Option<u64>,
    /// Rounds of added repeats.
    pub rounds: u32,
    /// Trials of these rounds that were made.
    pub trials_added: u64,
    /// Their time, in nanoseconds.
    pub added_ns: u64,
}

/// A limit with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExpectResult {
    /// As written.
    pub limit: String,
    /// The worst outcome of its cells; undecided without cells.
    pub outcome: LimitOutcome,
    /// Each figure that it limits.
    pub cells: Vec<ExpectedCell>,
}

/// The outcome of a limit for one figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExpectedCell {
    /// Id of the cell.
    pub cell: String,
    /// The DUT's name.
    pub dut: String,
    /// The quantity, with its load.
    pub quantity: String,
    /// The figure: geometric mean, of losses arithmetic; a ratio if it is limited by another one.
    /// `null` without one.
    pub figure: Option<f64>,
    /// Lower end of the interval that decides; `null` without one.
    pub low: Option<f64>,
    /// Upper end; `null` without one, and if a search found no upper bound.
    pub high: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// Unit of these four: `bps`, `l1_bps`, `l2_bps`, `ip_bps`, `frames_per_s`, `per_s`, `ns`,
    /// `frames`, or `ratio`.
    pub unit: &'static str,
    /// The other figure: a cell's id, or the folder of a stored run; `null` without one.
    pub reference: Option<String>,
    /// Repeats that decided, or that did not suffice.
    pub repeats: u32,
    /// The outcome.
    pub outcome: LimitOutcome,
    /// Rounds of added repeats until it was decided; `null` while it is undecided.
    pub decided_after_rounds: Option<u32>,
    /// Further repeats that would probably decide; `null` if decided, unknown, or more than 100.
    pub more_repeats: Option<u32>,
    /// Why: the numbers, and what to do, in sentences.
    pub reason: String,
    /// Whether further repeats may decide it.
    #[serde(skip)]
    pub(crate) is_repeatable: bool,
}

/// The chance of a false answer at a look, from 0.
fn alpha(look: usize, looks_again: bool) -> f64 {
    let place = (look + 1) as f64;
    if looks_again {
        ALPHA / (place * (place + 1.0))
    } else {
        ALPHA
    }
}

/// What a limit is, or why the text is none.
type ParsedLimit<'a> = (&'a str, Result<Gate, String>, Option<&'a StoredRun>);

/// Decides the campaign's limits; `None` without limits.
pub(crate) fn expected(
    journal: &Journal,
    cells: &[CellResult],
    comparisons: &[Comparison],
) -> Option<Expected> {
    let expect = &journal.header.plan.expect;
    if expect.is_empty() {
        return None;
    }
    let asked = expect.limits.iter().map(|one: &Expectation| {
        // A changed journal, or one of a later version, may have a text that is no gate here.
        let gate = one
            .limit
            .parse()
            .map_err(|error: crate::GateError| error.problem().to_owned());
        (one.limit.as_str(), gate, one.stored.as_ref())
    });
    let asked: Vec<ParsedLimit<'_>> = asked.collect();
    let limits = Judge::of(journal, cells, comparisons).judge(&asked);
    let base = journal.header.plan.repeats;
    let added = journal.latest_trials().into_iter();
    let added: Vec<u64> = added
        .filter(|((_, repeat), _)| *repeat > base)
        .map(|(_, trial)| trial.duration_ns)
        .collect();
    Some(Expected {
        outcome: worst(limits.iter().map(|limit| limit.outcome)),
        limits,
        until_decided_ns: expect.until_decided_ns,
        rounds: u32::try_from(journal.added.len()).unwrap_or(u32::MAX),
        trials_added: added.len() as u64,
        added_ns: added.into_iter().fold(0, u64::saturating_add),
    })
}

/// Decides gates on the figures of one run: all but ratios without a reference. All of them are one
/// question.
#[must_use]
pub fn judge_gates(journal: &Journal, results: &Results, gates: &[Gate]) -> Vec<ExpectResult> {
    let asked = gates
        .iter()
        .map(|gate| (gate.text.as_str(), Ok(gate.clone()), None));
    let asked: Vec<ParsedLimit<'_>> = asked.collect();
    Judge::of(journal, &results.cells, &results.comparisons).judge(&asked)
}

fn worst(outcomes: impl Iterator<Item = LimitOutcome>) -> LimitOutcome {
    outcomes.max().unwrap_or(LimitOutcome::Undecided)
}

/// Everything that the outcomes of a run's limits depend on.
pub(super) struct Judge<'a> {
    journal: &'a Journal,
    cells: &'a [CellResult],
    comparisons: &'a [Comparison],
    /// Whether the run may look at its figures again, with more repeats.
    looks_again: bool,
}

impl<'a> Judge<'a> {
    fn of(journal: &'a Journal, cells: &'a [CellResult], comparisons: &'a [Comparison]) -> Self {
        let is_planned = journal.header.plan.expect.until_decided_ns.is_some();
        Self {
            journal,
            cells,
            comparisons,
            looks_again: is_planned || !journal.added.is_empty(),
        }
    }

    fn judge(&self, asked: &[ParsedLimit<'_>]) -> Vec<ExpectResult> {
        let questions = asked
            .iter()
            .enumerate()
            .flat_map(|(at, (_, gate, stored))| {
                let gate = gate.as_ref().ok();
                gate.map_or_else(Vec::new, |gate| Question::all(self, at, gate, *stored))
            });
        let questions: Vec<Question> = questions.collect();
        let mut answers: Vec<Option<ExpectedCell>> = vec![None; questions.len()];
        for look in 0..=self.journal.added.len() {
            let (alpha, next) = (
                alpha(look, self.looks_again),
                alpha(look + 1, self.looks_again),
            );
            let open = (0..questions.len()).filter(|at| {
                let answer = &answers[*at];
                answer
                    .as_ref()
                    .is_none_or(|answer| answer.outcome == LimitOutcome::Undecided)
            });
            let found = open.map(|at| (at, questions[at].answer(self, look)));
            let found: Vec<(usize, Answer)> = found.collect();
            // Decided limits are left out: only the others can still be answered falsely.
            let level = Level::at(
                alpha,
                found
                    .iter()
                    .filter_map(|(at, answer)| questions[*at].p(self, answer)),
            );
            for (at, answer) in found {
                let scale = next / alpha;
                let result = questions[at].result(self, answer, (level, scale));
                answers[at] = Some(ExpectedCell {
                    decided_after_rounds: (result.outcome != LimitOutcome::Undecided)
                        .then(|| u32::try_from(look).unwrap_or(u32::MAX)),
                    ..result
                });
            }
        }
        let mut results: Vec<ExpectResult> = asked
            .iter()
            .map(|(text, ..)| ExpectResult {
                limit: (*text).to_owned(),
                outcome: LimitOutcome::Undecided,
                cells: Vec::new(),
            })
            .collect();
        for (question, answer) in questions.iter().zip(answers) {
            results[question.gate].cells.extend(answer);
        }
        for result in &mut results {
            result.outcome = worst(result.cells.iter().map(|cell| cell.outcome));
        }
        results
    }

    /// Repeats of a cell at a look, from 0.
    fn repeats(&self, cell: &str, look: usize) -> u32 {
        let rounds = self.journal.added.iter().take(look);
        let mut own = rounds.filter(|round| round.cells.iter().any(|id| id == cell));
        let last = own.next_back().map(|round| round.repeats);
        last.unwrap_or(self.journal.header.plan.repeats)
    }

    /// What limits the rate of a cell, other than the device.
    fn other_limit(&self, place: usize) -> Option<String> {
        let found = scaling::limit(self.journal, place, self.cells, self.comparisons);
        found.map(|limit| limit.reason)
    }
}

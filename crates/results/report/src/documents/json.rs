//! The result for programs: `results.json`, by the published schema `docs/schema/result-1.json`.
//!
//! These types and the types in `stats` are the schema's source. Adding a key keeps the version;
//! renaming or removing a key, or changing its meaning, requires a new one, independently of the
//! journal's format. Keys include units.

use crate::layout::evidence::of_trial;
use journal::Journal;
use journal::record::{Check, Environment, Outcome, TrialRecord};
use journal::time::utc;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use stats::Results;

/// Result of a cipherbench run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "cipherbench-result/1")]
pub(super) struct RunResult<'a> {
    /// Name and version of this format.
    schema: SchemaVersion,
    /// The run that was measured.
    run: RunInfo<'a>,
    /// The machine at the start of the run.
    environment: &'a Environment,
    /// The figures.
    #[serde(flatten)]
    results: &'a Results,
    /// The final records of all trials, in the order of measurement.
    trials: Vec<TrialInfo<'a>>,
}

/// Name and version of the format.
#[derive(Debug, Serialize, JsonSchema)]
enum SchemaVersion {
    /// The first version.
    #[serde(rename = "cipherbench-result/1")]
    V1,
}

/// The run that was measured.
#[derive(Debug, Serialize, JsonSchema)]
struct RunInfo<'a> {
    /// Name of the campaign.
    name: &'a str,
    /// Its title; may be empty.
    title: &'a str,
    /// Name of the lab.
    lab: &'a str,
    /// Repeats of each cell.
    repeats: u32,
    /// Command line that started the run, word by word.
    command: &'a [String],
    /// Version and revision of the program.
    program: &'a str,
    /// Start of the run, ISO 8601.
    started_utc: String,
    /// Times of its resumes, ISO 8601.
    resumed_utc: Vec<String>,
    /// End of the run, ISO 8601; `null` until it ends.
    ended_utc: Option<String>,
}

/// One trial, without its raw counters, which are in the journal.
#[derive(Debug, Serialize, JsonSchema)]
struct TrialInfo<'a> {
    /// Id of the cell.
    cell: &'a str,
    /// Number of the repeat, from 1.
    repeat: u32,
    /// Start of the trial, ISO 8601.
    started_utc: String,
    /// Wall time of the whole trial, including the start of the DUT.
    duration_ns: u64,
    /// Outcome.
    outcome: OutcomeKind,
    /// Why it is invalid or failed; empty if measured.
    reasons: &'a [String],
    /// Commands run on the stations, word by word.
    commands: &'a [Vec<String>],
    /// Checks of the evidence.
    checks: &'a [Check],
}

/// Outcome of a trial.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum OutcomeKind {
    /// Measured, and all checks passed.
    Measured,
    /// Measured, but a check of the evidence failed, so no mean includes its figure.
    Invalid,
    /// Could not be measured.
    Failed,
}

impl<'a> RunResult<'a> {
    /// Uses the results before names are marked: DUTs have their names in the plan here.
    pub(crate) fn of(journal: &'a Journal, results: &'a Results) -> Self {
        Self {
            schema: SchemaVersion::V1,
            run: RunInfo::of(journal),
            environment: &journal.header.environment,
            results,
            trials: trials(journal),
        }
    }
}

impl<'a> RunInfo<'a> {
    fn of(journal: &'a Journal) -> Self {
        let (header, plan) = (&journal.header, &journal.header.plan);
        let resumed = journal.resumed.iter();
        Self {
            name: &plan.name,
            title: &plan.title,
            lab: &plan.lab.name,
            repeats: plan.repeats,
            command: &header.command,
            program: &header.program,
            started_utc: utc(header.started_unix_ns),
            resumed_utc: resumed.map(|resumed| utc(resumed.at_unix_ns)).collect(),
            ended_utc: journal.end.as_ref().map(|end| utc(end.at_unix_ns)),
        }
    }
}

/// Returns these types' JSON Schema, with the first paragraph of each doc comment as description.
pub(crate) fn json_schema() -> String {
    let mut schema = schemars::schema_for!(RunResult<'_>);
    let fields = schema.ensure_object();
    // `schemars` keeps the line breaks of doc comments.
    fields.values_mut().for_each(unwrap_descriptions);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

/// Joins the lines of doc comments and keeps their first paragraph.
fn unwrap_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    // A property of this name would be an object, not a string.
                    Value::String(text) if key == "description" => {
                        let first = text.split("\n\n").next().unwrap_or_default();
                        *text = first.replace('\n', " ");
                    }
                    other => unwrap_descriptions(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unwrap_descriptions),
        _ => {}
    }
}

fn trials(journal: &Journal) -> Vec<TrialInfo<'_>> {
    // A trial has several records if it was repeated after a resume; the last one counts.
    let latest = journal.latest_trials();
    let counts = |trial: &&TrialRecord| {
        let latest = latest.get(&(trial.cell.as_str(), trial.repeat));
        // By address, as an earlier record may have the same content.
        latest.is_some_and(|latest| std::ptr::eq(*latest, *trial))
    };
    let counted = journal.trials.iter().filter(counts);
    counted
        .map(|trial| {
            let (outcome, reasons) = match &trial.outcome {
                Outcome::Measured(_) => (OutcomeKind::Measured, &[][..]),
                Outcome::Invalid { reasons, .. } => (OutcomeKind::Invalid, reasons.as_slice()),
                Outcome::Failed { reason } => (OutcomeKind::Failed, std::slice::from_ref(reason)),
            };
            TrialInfo {
                cell: &trial.cell,
                repeat: trial.repeat,
                started_utc: utc(trial.started_unix_ns),
                duration_ns: trial.duration_ns,
                outcome,
                reasons,
                commands: &trial.commands,
                checks: of_trial(trial).map_or(&[], |evidence| &evidence.checks),
            }
        })
        .collect()
}

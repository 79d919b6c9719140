//! The result for machines: `results.json`, by the published schema `docs/schema/result-1.json`.
//!
//! These types are the schema's source. A key that is added keeps the version; one that is renamed,
//! removed or changes its meaning makes a new one, whatever the journal's format does. Keys carry
//! their units.

mod cell;

pub(crate) use cell::CellInfo;

use crate::evidence;
use crate::layout::Run;
use journal::record::{Environment, Outcome};
use journal::time::utc;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use stats::{
    ClaimResult, Comparison, DeviceSeries, FatigueBatch, HybridGain, KeyCost, Progress,
    PublishedResult, Ranking, Results, Scaling, SuiteMatrix, ToolCheck, Warning,
};

/// Result of a cipherbench run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "cipherbench-result/1")]
pub struct RunResult {
    /// Name and version of this format.
    pub schema: SchemaVersion,
    /// What was run.
    pub run: RunInfo,
    /// The machine at the start of the run.
    pub environment: Environment,
    /// Progress of the run.
    pub progress: Progress,
    /// Result of each cell, in the plan's order.
    pub cells: Vec<CellInfo>,
    /// Each DUT against the baseline of its group.
    pub comparisons: Vec<Comparison>,
    /// Each measurement that was made with several suites of one device.
    pub suites: Vec<SuiteMatrix>,
    /// The devices of each group in order.
    pub rankings: Vec<Ranking>,
    /// What more workers, cores, streams, flows or tunnels bring.
    pub scalings: Vec<Scaling>,
    /// Claims about the devices beside measured figures.
    pub claims: Vec<ClaimResult>,
    /// Cost of key sources against static keys.
    pub key_costs: Vec<KeyCost>,
    /// What hybrids of engines gain over each of them alone, in the plan's order.
    pub hybrid_gains: Vec<HybridGain>,
    /// The same transfers by several tools.
    pub tool_checks: Vec<ToolCheck>,
    /// Published figures of other systems beside measured ones.
    pub published: Vec<PublishedResult>,
    /// Crypto devices over sizes, concurrency or queue depths, side by side.
    pub device_series: Vec<DeviceSeries>,
    /// Crypto devices that went through one fatigue trial.
    pub fatigue_batches: Vec<FatigueBatch>,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
    /// The trials that count, in the order made.
    pub trials: Vec<TrialInfo>,
}

/// Name and version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum SchemaVersion {
    /// The first.
    #[serde(rename = "cipherbench-result/1")]
    V1,
}

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunInfo {
    /// Name of the campaign.
    pub name: String,
    /// Its title; may be empty.
    pub title: String,
    /// Name of the lab.
    pub lab: String,
    /// Times that each cell is measured.
    pub repeats: u32,
    /// Command line that started the run, word by word.
    pub command: Vec<String>,
    /// Version and revision of the program.
    pub program: String,
    /// Moment at which the run began, ISO 8601.
    pub started_utc: String,
    /// Moments at which it was resumed.
    pub resumed_utc: Vec<String>,
    /// Moment at which it ended; `null` while it has not.
    pub ended_utc: Option<String>,
}

/// One trial, without its raw counters: those are in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialInfo {
    /// Id of the cell.
    pub cell: String,
    /// From 1.
    pub repeat: u32,
    /// Moment at which it began, ISO 8601.
    pub started_utc: String,
    /// Wall time of the whole trial, bringing the DUT up included.
    pub duration_ns: u64,
    /// Outcome.
    pub outcome: OutcomeKind,
    /// Why it is invalid or failed; empty when measured.
    pub reasons: Vec<String>,
    /// Commands run on the stations, word by word.
    pub commands: Vec<Vec<String>>,
    /// Checks of the evidence.
    pub checks: Vec<CheckInfo>,
}

/// Outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// Measured, all checks passed.
    Measured,
    /// Measured, but a check of the evidence failed: it has no figure.
    Invalid,
    /// Could not be measured.
    Failed,
}

/// One check of the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckInfo {
    /// Short name.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// A sentence with the numbers that decided it.
    pub detail: String,
}

impl RunResult {
    /// Takes the unmarked results: DUTs have the names of the plan here.
    pub(crate) fn of(run: &Run<'_>, results: Results) -> Self {
        Self {
            schema: SchemaVersion::V1,
            run: RunInfo::of(run),
            environment: run.journal.header.environment.clone(),
            progress: results.progress,
            cells: results.cells.into_iter().map(CellInfo::of).collect(),
            comparisons: results.comparisons,
            suites: results.suites,
            rankings: results.rankings,
            scalings: results.scalings,
            claims: results.claims,
            key_costs: results.key_costs,
            hybrid_gains: results.hybrid_gains,
            tool_checks: results.tool_checks,
            published: results.published,
            device_series: results.device_series,
            fatigue_batches: results.fatigue_batches,
            warnings: results.warnings,
            trials: trials(run),
        }
    }
}

impl RunInfo {
    fn of(run: &Run<'_>) -> Self {
        let (header, plan) = (&run.journal.header, run.plan());
        Self {
            name: plan.name.clone(),
            title: plan.title.clone(),
            lab: plan.lab.name.clone(),
            repeats: plan.repeats,
            command: header.command.clone(),
            program: header.program.clone(),
            started_utc: utc(header.started_unix_ns),
            resumed_utc: run
                .journal
                .resumed
                .iter()
                .map(|resumed| utc(resumed.at_unix_ns))
                .collect(),
            ended_utc: run.journal.end.as_ref().map(|end| utc(end.at_unix_ns)),
        }
    }
}

/// The JSON Schema of these types, with the first paragraph of each doc comment as its description.
pub(crate) fn json_schema() -> String {
    let mut schema = schemars::schema_for!(RunResult);
    let fields = schema.ensure_object();
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

fn trials(run: &Run<'_>) -> Vec<TrialInfo> {
    let counted = run.journal.trials.iter().filter(|trial| run.counts(trial));
    counted
        .map(|trial| {
            let (outcome, reasons) = match &trial.outcome {
                Outcome::Measured(_) => (OutcomeKind::Measured, vec![]),
                Outcome::Invalid { reasons, .. } => (OutcomeKind::Invalid, reasons.clone()),
                Outcome::Failed { reason } => (OutcomeKind::Failed, vec![reason.clone()]),
            };
            let checks = evidence::of_trial(trial).map_or(&[][..], |evidence| &evidence.checks);
            TrialInfo {
                cell: trial.cell.clone(),
                repeat: trial.repeat,
                started_utc: utc(trial.started_unix_ns),
                duration_ns: trial.duration_ns,
                outcome,
                reasons,
                commands: trial.commands.clone(),
                checks: checks
                    .iter()
                    .map(|check| CheckInfo {
                        name: check.name.clone(),
                        passed: check.passed,
                        detail: check.detail.clone(),
                    })
                    .collect(),
            }
        })
        .collect()
}

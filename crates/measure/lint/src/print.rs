//! Findings as text, JSON and SARIF (OASIS SARIF 2.1.0).

use crate::Checked;
use crate::finding::{Finding, Rule, Severity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::human::counted;
use yaml::Place;

/// The findings for readers, with what was checked, and counts by severity and rule.
#[must_use]
pub fn text(files: &[Checked]) -> String {
    let mut text = String::new();
    for finding in all(files) {
        let severity = finding.rule.severity().name();
        let _ = writeln!(
            text,
            "{severity}: {}: {}\n  --> {}\n  {}\n  {}\n",
            finding.rule.id(),
            finding.subject,
            place(&finding.place),
            finding.arithmetic,
            finding.meaning,
        );
    }
    for file in files {
        let (tables, figures) = (file.tables as u64, file.figures as u64);
        let _ = writeln!(
            text,
            "{}: {}, {}, {}",
            file.file,
            counted(tables, "table"),
            counted(figures, "figure"),
            counted(file.findings.len() as u64, "finding"),
        );
    }
    let of = |severity: Severity| {
        let of_it = all(files).filter(|it| it.rule.severity() == severity);
        counted(of_it.count() as u64, severity.name())
    };
    let severities = [Severity::Error, Severity::Warning, Severity::Note].map(of);
    let _ = writeln!(text, "{}", severities.join(", "));
    for (rule, count) in counts(files) {
        let _ = writeln!(text, "{count:>5}  {}", rule.id());
    }
    text
}

fn all(files: &[Checked]) -> impl Iterator<Item = &Finding> {
    files.iter().flat_map(|file| &file.findings)
}

/// `file:line:column`, or the file and the path of keys.
fn place(place: &Place) -> String {
    match place.path.is_empty() {
        true => place.to_string(),
        false => format!("{place} ({})", place.path),
    }
}

fn counts(files: &[Checked]) -> BTreeMap<Rule, usize> {
    let mut counts = BTreeMap::new();
    for finding in all(files) {
        *counts.entry(finding.rule).or_insert(0) += 1;
    }
    counts
}

/// The findings, what was checked, and counts by rule, as one JSON object (`cipherbench-lint/1`).
#[must_use]
pub fn json(files: &[Checked]) -> String {
    let list: Vec<Value> = all(files)
        .map(|finding| {
            let spot = finding.place.spot.as_ref();
            json!({
                "rule": finding.rule,
                "severity": finding.rule.severity(),
                "file": *finding.place.file,
                "line": spot.map(|spot| spot.line),
                "column": spot.map(|spot| spot.column),
                "path": finding.place.path,
                "subject": finding.subject,
                "arithmetic": finding.arithmetic,
                "meaning": finding.meaning,
            })
        })
        .collect();
    let counts: BTreeMap<&str, usize> = counts(files)
        .into_iter()
        .map(|(rule, count)| (rule.id(), count))
        .collect();
    let checked: Vec<Value> = files
        .iter()
        .map(|it| json!({ "file": it.file, "tables": it.tables, "figures": it.figures }))
        .collect();
    pretty(&json!({
        "schema": "cipherbench-lint/1",
        "files": checked,
        "findings": list,
        "counts": counts,
    }))
}

/// The findings as a SARIF 2.1.0 log, which code hosts show beside the lines.
#[must_use]
pub fn sarif(files: &[Checked], version: &str) -> String {
    let rules: Vec<Value> = Rule::ALL
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id(),
                "shortDescription": { "text": rule.summary() },
                "defaultConfiguration": { "level": rule.severity() },
            })
        })
        .collect();
    let results: Vec<Value> = all(files).map(result).collect();
    pretty(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "cipherbench lint", "version": version, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    }))
}

fn result(finding: &Finding) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": *finding.place.file } });
    if let Some(spot) = &finding.place.spot {
        physical["region"] = json!({
            "startLine": spot.line,
            "startColumn": spot.column,
            "endColumn": spot.column + spot.length,
        });
    }
    json!({
        "ruleId": finding.rule.id(),
        "level": finding.rule.severity(),
        "message": {
            "text": format!("{}: {}. {}", finding.subject, finding.arithmetic, finding.meaning),
        },
        "locations": [{
            "physicalLocation": physical,
            "logicalLocations": [{ "fullyQualifiedName": finding.subject }],
        }],
    })
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("keys are texts");
    text.push('\n');
    text
}

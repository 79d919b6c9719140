//! Findings as text, JSON and SARIF (OASIS SARIF 2.1.0).

use crate::finding::{Finding, Rule, Severity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::human::counted;
use yaml::Place;

/// The findings for readers, and their counts by severity and rule.
#[must_use]
pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
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
    let counts = counts(findings);
    let of = |severity| {
        let of_it = findings.iter().filter(|it| it.rule.severity() == severity);
        counted(of_it.count() as u64, severity.name())
    };
    let severities = [Severity::Error, Severity::Warning, Severity::Note].map(of);
    let _ = writeln!(text, "{}", severities.join(", "));
    for (rule, count) in counts {
        let _ = writeln!(text, "{count:>5}  {}", rule.id());
    }
    text
}

/// `file:line:column`, or the file and the path of keys.
fn place(place: &Place) -> String {
    match place.path.is_empty() {
        true => place.to_string(),
        false => format!("{place} ({})", place.path),
    }
}

fn counts(findings: &[Finding]) -> BTreeMap<Rule, usize> {
    let mut counts = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.rule).or_insert(0) += 1;
    }
    counts
}

/// The findings and their counts by rule, as one JSON object (`cipherbench-lint/1`).
#[must_use]
pub fn json(findings: &[Finding]) -> String {
    let list: Vec<Value> = findings
        .iter()
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
    let counts: BTreeMap<&str, usize> = counts(findings)
        .into_iter()
        .map(|(rule, count)| (rule.id(), count))
        .collect();
    pretty(&json!({ "schema": "cipherbench-lint/1", "findings": list, "counts": counts }))
}

/// The findings as a SARIF 2.1.0 log, which code hosts show beside the lines.
#[must_use]
pub fn sarif(findings: &[Finding], version: &str) -> String {
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
    let results: Vec<Value> = findings.iter().map(result).collect();
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

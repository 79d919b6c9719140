//! Findings as text, JSON and SARIF (OASIS SARIF 2.1.0).

use crate::Checked;
use crate::finding::{Finding, Rule, Severity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use units::human::counted;
use yaml::{Mistake, Mistakes, Place};

/// Returns the findings for readers, with the checked files, and counts by severity and rule. Files
/// that cannot be read are only counted, with their mistakes: the caller prints these.
#[must_use]
pub fn text(files: &[Checked], unreadable: &[Mistakes]) -> String {
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
    for cause in files.iter().flat_map(|file| &file.causes) {
        let _ = writeln!(
            text,
            "common cause: {} findings of {} against {}\n  --> {}\n  {}\n",
            cause.findings,
            cause.rule.id(),
            cause.against,
            place(&cause.place),
            cause.says,
        );
    }
    for remark in files.iter().flat_map(|file| &file.remarks) {
        let _ = writeln!(
            text,
            "remark: {}\n  --> {}\n",
            remark.what,
            place(&remark.place)
        );
    }
    for file in files {
        let (tables, figures) = (file.tables as u64, file.figures as u64);
        let read = if file.tables < file.all_tables {
            format!("{tables} of {}", counted(file.all_tables as u64, "table"))
        } else {
            counted(tables, "table")
        };
        let _ = writeln!(
            text,
            "{}: {}, {}, {}",
            file.file,
            read,
            counted(figures, "figure"),
            counted(file.findings.len() as u64, "finding"),
        );
    }
    let severities = [Severity::Error, Severity::Warning, Severity::Note];
    let of = |severity: Severity| {
        all(files)
            .filter(|it| it.rule.severity() == severity)
            .count()
    };
    let severities = severities.map(|severity| (of(severity) as u64, severity.name()));
    let shown = |with_none: bool| {
        let kept = severities
            .iter()
            .filter(|(count, _)| with_none || *count > 0);
        let kept: Vec<String> = kept.map(|(count, name)| counted(*count, name)).collect();
        kept.join(", ")
    };
    if unreadable.is_empty() {
        let _ = writeln!(text, "{}", shown(true));
    }
    for (rule, count) in counts(files) {
        let _ = writeln!(text, "{count:>5}  {}", rule.id());
    }
    if !unreadable.is_empty() {
        let places: usize = unreadable.iter().map(Mistakes::count).sum();
        let others = match (files.len(), all(files).count()) {
            (0, _) => String::new(),
            (_, 0) => "; no finding in the others".to_owned(),
            _ => format!("; in the others: {}", shown(false)),
        };
        let _ = writeln!(
            text,
            "not checked: {} of {}, for {} that cannot be read{others}",
            unreadable.len(),
            counted((files.len() + unreadable.len()) as u64, "file"),
            counted(places as u64, "place"),
        );
    }
    text
}

fn all(files: &[Checked]) -> impl Iterator<Item = &Finding> {
    files.iter().flat_map(|file| &file.findings)
}

/// `file:line:column`, or the file and the path of keys.
fn place(place: &Place) -> String {
    if place.path.is_empty() {
        place.to_string()
    } else {
        format!("{place} ({})", place.path)
    }
}

fn counts(files: &[Checked]) -> BTreeMap<Rule, usize> {
    let mut counts = BTreeMap::new();
    for finding in all(files) {
        *counts.entry(finding.rule).or_insert(0) += 1;
    }
    counts
}

/// Returns the findings, their causes, the checked files, the assumptions, the places that cannot
/// be read, and counts by rule, as one JSON object (`cipherbench-lint/1`).
#[must_use]
pub fn json(files: &[Checked], unreadable: &[Mistakes]) -> String {
    let list: Vec<Value> = all(files)
        .map(|finding| {
            at(
                &finding.place,
                json!({
                    "rule": finding.rule,
                    "severity": finding.rule.severity(),
                    "subject": finding.subject,
                    "arithmetic": finding.arithmetic,
                    "meaning": finding.meaning,
                }),
            )
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
    let causes = files.iter().flat_map(|file| &file.causes);
    let causes: Vec<Value> = causes.map(|it| at(&it.place, json!(it))).collect();
    let remarks = files.iter().flat_map(|file| &file.remarks);
    let remarks = remarks.map(|it| at(&it.place, json!({ "what": it.what })));
    let mistakes = unreadable.iter().flatten();
    let mistakes = mistakes.map(|it| at(&it.place, json!({ "what": it.what, "help": it.help })));
    pretty(&json!({
        "schema": "cipherbench-lint/1",
        "files": checked,
        "unreadable": mistakes.collect::<Vec<Value>>(),
        "findings": list,
        "causes": causes,
        "remarks": remarks.collect::<Vec<Value>>(),
        "counts": counts,
    }))
}

/// An object with its place.
fn at(place: &Place, mut object: Value) -> Value {
    let spot = place.spot.as_ref();
    object["file"] = json!(*place.file);
    object["line"] = json!(spot.map(|spot| spot.line));
    object["column"] = json!(spot.map(|spot| spot.column));
    object["path"] = json!(place.path);
    object
}

/// The SARIF rule of places that cannot be read.
const UNREADABLE: &str = "unreadable";

/// Returns the findings and the places that cannot be read as a SARIF 2.1.0 log, which code hosts
/// show next to the lines.
#[must_use]
pub fn sarif(files: &[Checked], unreadable: &[Mistakes], version: &str) -> String {
    let rule = |id: &str, text: &str, level: Severity| {
        json!({
            "id": id,
            "shortDescription": { "text": text },
            "defaultConfiguration": { "level": level },
        })
    };
    let known = Rule::ALL.iter();
    let mut rules: Vec<Value> = known
        .map(|it| rule(it.id(), it.summary(), it.severity()))
        .collect();
    let summary = "A place cannot be read, so that its file is not checked.";
    rules.push(rule(UNREADABLE, summary, Severity::Error));
    let mut results: Vec<Value> = all(files).map(result).collect();
    results.extend(unreadable.iter().flatten().map(mistake));
    let causes = files.iter().flat_map(|file| &file.causes).map(|it| {
        let text = format!(
            "common cause of {} findings of {} against {}: {}.",
            it.findings,
            it.rule.id(),
            it.against,
            it.says
        );
        notification(&it.place, &text)
    });
    let remarks = files.iter().flat_map(|file| &file.remarks);
    let remarks = remarks.map(|it| notification(&it.place, &format!("{}.", it.what)));
    pretty(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "cipherbench lint", "version": version, "rules": rules } },
            "invocations": [{
                "executionSuccessful": unreadable.is_empty(),
                "toolExecutionNotifications": causes.chain(remarks).collect::<Vec<Value>>(),
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    }))
}

fn mistake(mistake: &Mistake) -> Value {
    let help = if mistake.help.is_empty() {
        String::new()
    } else {
        format!(". Help: {}", mistake.help)
    };
    json!({
        "ruleId": UNREADABLE,
        "level": Severity::Error,
        "message": { "text": format!("{}{help}", mistake.what) },
        "locations": [{ "physicalLocation": physical(&mistake.place) }],
    })
}

fn notification(place: &Place, text: &str) -> Value {
    json!({
        "level": Severity::Note,
        "message": { "text": text },
        "locations": [{ "physicalLocation": physical(place) }],
    })
}

fn physical(place: &Place) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": *place.file } });
    if let Some(spot) = &place.spot {
        physical["region"] = json!({
            "startLine": spot.line,
            "startColumn": spot.column,
            "endColumn": spot.column + spot.length,
        });
    }
    physical
}

fn result(finding: &Finding) -> Value {
    json!({
        "ruleId": finding.rule.id(),
        "level": finding.rule.severity(),
        "message": {
            "text": format!("{}: {}. {}", finding.subject, finding.arithmetic, finding.meaning),
        },
        "locations": [{
            "physicalLocation": physical(&finding.place),
            "logicalLocations": [{ "fullyQualifiedName": finding.subject }],
        }],
    })
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("keys are texts");
    text.push('\n');
    text
}

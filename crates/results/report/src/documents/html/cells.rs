//! Every cell with its commands, trials and evidence, folded.

use crate::kit::cells::reason_cell;
use crate::kit::format::{bit_rate, command_line, counted, percent, time};
use crate::kit::html::{breakable, rich, table};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::evidence::{form, key_name, of_trial, outcome_name};
use crate::order::grouped;
use crate::topic::device;
use crate::topic::frames;
use journal::record::{Evidence, Outcome, ToolParameters, TrialRecord, Tuned, in_brief};
use maud::{Markup, html};
use plan::LinkForm;
use stats::{CellResult, Status};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn all(run: &Run<'_>) -> Markup {
    html! {
        p.note {
            @if run.only_devices() { "Unfold a cell for the commands run, each check, and counters." }
            @else { "Unfold a cell for the commands run, each check, the frames seen between the \
                     gateways, and counters." }
        }
        @for cell in &run.results.cells { (one(run, cell)) }
    }
}

fn one(run: &Run<'_>, cell: &CellResult) -> Markup {
    let trials: Vec<&TrialRecord> = run.trials(cell).collect();
    html! {
        details.cell {
            summary { code { (breakable(&cell.id)) } " " span class=(class(cell)) { (verdict(cell)) }
                @if cell.insecure.is_some() { " " span.verdict.bad { "insecure" } }
            }
            @if let Some(why) = &cell.insecure { p.small { b { "insecure" } ": " (rich(why)) } }
            @if let Some(tuned) = run.journal.tuned(&cell.id) { (table(&attempts(tuned))) }
            @if let Some(found) = cell.verdict() {
                p.small { b { (found.limit.name()) } ": " (rich(&found.reason)) }
            }
            (commands(&trials))
            @for trial in &trials { (one_trial(trial, form(run, cell))) }
            @if trials.is_empty() { p.note { "Not run." } }
            (last_evidence(&trials))
        }
    }
}

fn class(cell: &CellResult) -> &'static str {
    match cell.status {
        Status::Measured => "verdict good",
        Status::Partly | Status::NotRun => "verdict",
        Status::Invalid | Status::Failed => "verdict bad",
    }
}

fn verdict(cell: &CellResult) -> String {
    // The main figure of frame tests and crypto devices is neither a payload rate nor a round trip.
    if let Some(figure) = frames::figure(cell) {
        return figure;
    }
    if let Some(figure) = device::figure(cell) {
        return figure;
    }
    match (cell.status, cell.bulk(), cell.latency()) {
        (Status::Measured | Status::Partly, Some(bulk), _) => {
            bit_rate(&bulk.payload_throughput_bps)
        }
        (Status::Measured | Status::Partly, _, Some(latency)) => {
            format!("p50 {}", time(&latency.p50_ns))
        }
        _ => reason_cell(cell).text,
    }
}

/// Each distinct list of commands once, with the repeats that ran it.
fn commands(trials: &[&TrialRecord]) -> Markup {
    let ran = trials.iter().filter(|trial| !trial.commands.is_empty());
    // Repeats usually run the same commands, so most cells have one list.
    let different = grouped(ran.map(|trial| (&trial.commands, trial.repeat.to_string())));
    html! {
        @for (commands, repeats) in different {
            p.small { "Commands of repeat " (repeats.join(", ")) }
            pre { code { @for words in commands { (command_line(words)) "\n" } } }
        }
    }
}

fn one_trial(trial: &TrialRecord, form: LinkForm) -> Markup {
    let began = journal::time::utc(trial.started_unix_ns);
    let took = units::human::duration_ns(trial.duration_ns as f64);
    html! {
        h4 {
            "Repeat " (trial.repeat) ": " (outcome_name(trial))
            span.note { " began " (began) ", took " (took) }
        }
        @match &trial.outcome {
            Outcome::Measured(_) => {},
            Outcome::Invalid { reasons, .. } => ul.reasons {
                @for reason in reasons {
                    li {
                        @match trial.outcome.explanation(reason) {
                            // The counters are below, next to the check.
                            Some(found) => (rich(&Cell::explained(in_brief(reason), found, "").text)),
                            None => (rich(reason)),
                        }
                    }
                }
            },
            Outcome::Failed { reason } => ul.reasons { li { (rich(reason)) } },
        }
        @if let Some(evidence) = of_trial(trial) { (checks(evidence, form)) }
    }
}

fn checks(evidence: &Evidence, form: LinkForm) -> Markup {
    let link = &evidence.cipher_link;
    html! {
        ul.checks {
            @for check in &evidence.checks {
                li class=(if check.passed { "passed" } else { "not-passed" }) {
                    span.mark { (if check.passed { "✓" } else { "✗" }) }
                    // A screen reader may skip the marks.
                    @let verdict = if check.passed { "passed: " } else { "not passed: " };
                    span.visually-hidden { (verdict) }
                    b { (check.name) } " " (rich(&check.detail))
                }
            }
        }
        // Crypto devices have no link between gateways, so nothing was sampled.
        @if link.frames > 0 {
            p.small {
                "Between the gateways: " (counted(link.frames, "frame")) " sampled, "
                (link.esp_frames) " " (form.name()) ", "
                (link.marker_frames) " with the marker in clear, " (link.other_frames) " other"
                @if let Some(key) = key_name(form) && !link.spis.is_empty() {
                    "; " (key) " " (link.spis.join(", "))
                }
                "."
            }
        }
    }
}

/// Facts and offloads of the last trial with evidence, and all repeats' counters side by side.
fn last_evidence(trials: &[&TrialRecord]) -> Markup {
    let found: Vec<(u32, &Evidence)> = trials
        .iter()
        .filter_map(|trial| Some((trial.repeat, of_trial(trial)?)))
        .collect();
    let Some((_, last)) = found.last() else {
        return html! {};
    };
    let all = [
        facts(&last.dut_facts),
        offloads(&last.offloads),
        dut_counters(&found),
        interfaces(&found),
    ];
    html! {
        @for one in all.iter().filter(|one| !one.rows.is_empty()) { (table(one)) }
    }
}

fn facts(facts: &BTreeMap<String, String>) -> Table {
    let rows = facts
        .iter()
        .map(|(name, value)| [name.clone(), value.clone()]);
    pairs("Facts reported by the device", ["Fact", "Value"], rows)
}

/// A table with a name and a text in each row.
fn pairs(caption: &str, [name, text]: [&str; 2], rows: impl Iterator<Item = [String; 2]>) -> Table {
    let mut table = Table::new(caption, "").labels([name]).texts([text]);
    for [name, text] in rows {
        table.push(vec![Cell::label(name), Cell::plain(text)]);
    }
    table
}

/// One row for all interfaces with the same offloads.
fn offloads(offloads: &BTreeMap<String, BTreeMap<String, String>>) -> Table {
    // Most interfaces of a lab have the same offloads.
    let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (interface, features) in offloads {
        let features = features.iter();
        let features = features.map(|(name, state)| format!("{name} {state}"));
        let features: Vec<String> = features.collect();
        let same = alike.entry(features.join(", ")).or_default();
        same.push(interface);
    }
    let rows = alike.into_iter();
    let rows = rows.map(|(features, interfaces)| [interfaces.join(", "), features]);
    pairs("Offloads in force", ["Interfaces", "Features"], rows)
}

/// One row per counter, one column per repeat.
fn dut_counters(found: &[(u32, &Evidence)]) -> Table {
    let mut table = Table::new("The device's counters", "differences over each trial")
        .labels(["Counter"])
        .figures(found.iter().map(|(repeat, _)| format!("Repeat {repeat}")));
    // A repeat may lack counters of the others.
    let names: BTreeSet<&String> = found
        .iter()
        .flat_map(|(_, evidence)| evidence.dut_counters.keys())
        .collect();
    for name in names {
        let counts = found.iter().map(|(_, evidence)| {
            Cell::or_missing(evidence.dut_counters.get(name).map(u64::to_string))
        });
        table.push([Cell::label(name)].into_iter().chain(counts).collect());
    }
    table
}

fn interfaces(found: &[(u32, &Evidence)]) -> Table {
    let mut table = Table::new(
        "Interface counters",
        "differences over each trial; packets may be super-packets",
    )
    .labels(["Interface", "Repeat"])
    .figures(["Sent, B", "Sent, packets", "Received, B"])
    .figures(["Received, packets", "Dropped", "Errors"]);
    let names: BTreeSet<&String> = found
        .iter()
        .flat_map(|(_, evidence)| evidence.interfaces.keys())
        .collect();
    for name in names {
        for (repeat, evidence) in found {
            let Some(counters) = evidence.interfaces.get(name) else {
                continue;
            };
            let counts = [
                counters.tx_bytes,
                counters.tx_packets,
                counters.rx_bytes,
                counters.rx_packets,
                // Either direction lost packets, and the table has no room for both.
                counters.rx_dropped + counters.tx_dropped,
                counters.rx_errors + counters.tx_errors,
            ];
            let labels = [Cell::label(name), Cell::label(repeat.to_string())];
            let counts = counts.map(|count| Cell::plain(count.to_string()));
            table.push(labels.into_iter().chain(counts).collect());
        }
    }
    table
}

/// The attempts of the search for tool parameters, and its choice.
fn attempts(tuned: &Tuned) -> Table {
    let mut table = Table::new(
        "Search for the tool's parameters",
        format!("best: {}", parameters(&tuned.best)),
    )
    .labels(["Parameters"])
    .figures(["Payload received", "Lost"])
    .texts(["Error"]);
    for attempt in &tuned.attempts {
        let lost = attempt.lost_ppm.map(|ppm| percent(ppm as f64 / 1e4));
        table.push(vec![
            Cell::label(parameters(&attempt.parameters)),
            Cell::plain(units::human::bit_rate(attempt.payload_bps as f64)),
            Cell::or_missing(lost),
            attempt
                .error
                .as_ref()
                .map_or_else(|| Cell::plain(""), Cell::reason),
        ]);
    }
    table
}

fn parameters(found: &ToolParameters) -> String {
    let parts = [
        found.streams.map(|streams| format!("-P {streams}")),
        found.window_bytes.map(|bytes| format!("-w {bytes}")),
        found.rate_bps.map(|bps| format!("-b {bps}")),
        found.datagram_bytes.map(|bytes| format!("-l {bytes}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "the tool's defaults".into()
    } else {
        parts.join(" ")
    }
}

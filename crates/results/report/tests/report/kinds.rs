//! Every kind of trial that a campaign can have: a headline figure and a chart.

use crate::fixture;
use crate::html::{parse, select, text};
use campaign::HostFacts;
use journal::Journal;
use std::collections::BTreeSet;

/// One trial of each kind that a campaign alone can describe.
const TRIALS: &str = "\
campaign: kinds
repeats: 3
duts: [cipherbench]
calibrate: off
trials:
  - tcp: { mtu: 1500 B }
  - udp: { mtu: 1500 B, datagram: 1400 B }
  - ping: { mtu: 1500 B }
  - load: { frame: 64 B, rate: 100 k frames/s }
  - throughput: { frame: 64 B }
  - mrr: { frame: 64 B }
  - service: { frame: 64 B, cir: 100 k frames/s }
  - loss-curve: { frame: 64 B, max_load: 1000 k frames/s }
  - back-to-back: { frame: 64 B }
  - latency: { frame: 64 B }
  - recovery: { frame: 64 B }
";

fn campaigns() -> Vec<Journal> {
    let host = HostFacts { cores: 8 };
    let campaign = campaign::from_text("kinds.yaml", TRIALS).unwrap();
    let lab = campaign::lab_from_text("l.yaml", "lab: l\nlink_rate: 2.5 Gbit/s\n").unwrap();
    let plan = campaign.plan(&lab, &host).unwrap();
    vec![
        fixture::Maker::new(plan).finish(),
        fixture::http(),
        fixture::ike(),
        fixture::disturbed(),
        fixture::soak(),
        fixture::cards(),
    ]
}

/// The kinds that campaigns may have, from the help for one that is not known.
fn known(key: &str) -> BTreeSet<String> {
    let text = format!("campaign: c\nduts: [direct]\n{key}\n");
    let error = campaign::from_text("c.yaml", &text)
        .unwrap_err()
        .to_string();
    let list = error.lines().find_map(|line| {
        let (_, list) = line.split_once("help:")?;
        Some(list.to_owned())
    });
    let list = list.unwrap_or_else(|| panic!("no list of kinds: {error}"));
    let words = list.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    words.map(str::to_owned).collect()
}

/// The journal with the cells of one kind only.
fn only(journal: &Journal, kind: &str) -> Option<Journal> {
    let mut journal = journal.clone();
    let plan = &mut journal.header.plan;
    plan.cells.retain(|cell| cell.measurement.name() == kind);
    let kept: BTreeSet<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    journal
        .trials
        .retain(|trial| kept.contains(trial.cell.as_str()));
    (!journal.header.plan.cells.is_empty()).then_some(journal)
}

#[test]
fn every_kind_of_trial_has_a_headline_figure_and_a_chart() {
    let help = known("trials: [none-such: {}]");
    let campaigns = campaigns();
    let kinds: BTreeSet<&str> = campaigns
        .iter()
        .flat_map(|journal| &journal.header.plan.cells)
        .map(|cell| cell.measurement.name())
        .collect();
    let is_kind = |word: &&String| !["", "known", "trials", "are"].contains(&word.as_str());
    let untried = help.iter().filter(is_kind);
    let untried: Vec<_> = untried
        .filter(|kind| !kinds.contains(kind.as_str()))
        .collect();
    assert!(
        untried.is_empty() && help.contains("mrr"),
        "not tried: {untried:?}"
    );
    assert!(
        kinds.is_superset(&["kat", "speed", "fatigue"].into()),
        "{kinds:?}"
    );
    let mut faults = Vec::new();
    for kind in &kinds {
        let mut found = campaigns.iter().filter_map(|journal| only(journal, kind));
        let journal = found.next().unwrap();
        let (_, page) = parse(&journal);
        let summary = select(&page, "#summary")
            .into_iter()
            .map(text)
            .collect::<String>();
        if summary.contains("No figure") || select(&page, "#summary strong").is_empty() {
            faults.push(format!("{kind}: no headline: {summary}"));
        }
        if select(&page, "figure svg").is_empty() {
            faults.push(format!("{kind}: no chart"));
        }
        let brief = crate::brief(&journal, None, 100, false);
        if brief.contains("No figure") {
            faults.push(format!("{kind}: no figure in the terminal: {brief}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

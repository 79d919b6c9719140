//! What else differs between runs: machine, programs, lab, settings, devices, offloads.
//!
//! Two records are compared as JSON, key by key, so keys added to the journal later are included.

use crate::cells::{Pairs, Side};
use journal::Journal;
use journal::record::{Evidence, Outcome};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Something that is not the same in both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Path of keys as in the journal: `environment.kernel`; for a device `gw1: version`.
    pub what: String,
    /// Value in the base; empty if absent.
    pub base: String,
    /// Value in the other run; empty if absent.
    pub other: String,
    /// Number of compared cells with this difference; `null` for a difference of the runs.
    pub cells: Option<usize>,
}

/// Returns the machine, the program and the lab of a run, as JSON.
#[must_use]
pub fn surroundings(journal: &Journal) -> Value {
    let (header, lab) = (&journal.header, &journal.header.plan.lab);
    json!({
        "program": header.program,
        "environment": header.environment,
        "lab": lab,
        "repeats": header.plan.repeats,
        "order": match header.plan.order {
            plan::Order::File => "file",
            plan::Order::Random { .. } => "random",
        },
    })
}

/// Differences of the [`surroundings`] of two runs.
#[must_use]
pub fn of_surroundings(base: &Value, other: &Value) -> Vec<Difference> {
    let mut found = BTreeMap::new();
    differing("", base, other, &mut |what, base, other| {
        found.insert(what, (base, other));
    });
    let all = found.into_iter().map(|(what, (base, other))| Difference {
        what,
        base,
        other,
        cells: None,
    });
    all.collect()
}

/// Differences in the settings of shared cells, in the facts that their devices reported about
/// themselves, and in the offloads in force; each with the number of cells.
pub(crate) fn of_cells(pairs: &Pairs<'_>) -> Vec<Difference> {
    let mut counts: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    let mut count = |what, base, other| *counts.entry((what, base, other)).or_default() += 1;
    let (base_evidence, other_evidence) = (
        Latest::of(pairs, |pair| pair.base),
        Latest::of(pairs, |pair| pair.other),
    );
    for pair in &pairs.both {
        let (base, other) = (pair.base.planned, pair.other.planned);
        // The whole cells are converted to JSON only if one of these differs: a campaign has
        // thousands of cells.
        if settings_differ(pair.base, pair.other) {
            differing("", &settings(pair.base), &settings(pair.other), &mut count);
        }
        let evidence = (base_evidence.get(&base.id), other_evidence.get(&other.id));
        if let (Some(base_evidence), Some(other_evidence)) = evidence {
            let name = &base.dut.name;
            for (key, of) in facts(base_evidence, other_evidence, |found| &found.dut_facts) {
                count(format!("{name}: {key}"), of.0, of.1);
            }
            for (port, features) in &base_evidence.offloads {
                // Ports of only one lab are a difference of the labs, which the environment lists.
                let Some(others) = other_evidence.offloads.get(port) else {
                    continue;
                };
                for (feature, on) in features {
                    if let Some(other) = others.get(feature).filter(|other| *other != on) {
                        count(
                            format!("offloads: {port} {feature}"),
                            on.clone(),
                            other.clone(),
                        );
                    }
                }
            }
        }
    }
    let all = counts
        .into_iter()
        .map(|((what, base, other), cells)| Difference {
            what,
            base,
            other,
            cells: Some(cells),
        });
    all.collect()
}

fn settings_differ(base: Side<'_>, other: Side<'_>) -> bool {
    let (base, other) = (base.planned, other.planned);
    base.measurement != other.measurement
        || base.stations != other.stations
        || base.impair != other.impair
        || base.tune != other.tune
        || base.dut.adapter != other.dut.adapter
        || base.dut.software != other.dut.software
}

/// The settings without id and name, which distinguish nothing.
fn settings(side: Side<'_>) -> Value {
    let mut value = json!(side.planned);
    if let Value::Object(keys) = &mut value {
        // Ids and coordinates depend on the axes that a campaign varies, and the estimate follows
        // from the settings.
        for key in ["id", "group", "coordinates", "estimate_ns"] {
            keys.remove(key);
        }
        if let Some(Value::Object(dut)) = keys.get_mut("dut") {
            dut.remove("name");
        }
    }
    value
}

/// The evidence of the last measured trial of each compared cell of a run.
struct Latest<'a>(BTreeMap<&'a str, &'a Evidence>);

impl<'a> Latest<'a> {
    fn of(pairs: &Pairs<'a>, side: fn(&crate::cells::Pair<'a>) -> Side<'a>) -> Self {
        let journal = pairs.both.first().map(|pair| side(pair).journal);
        let trials = journal.into_iter().flat_map(|journal| &journal.trials);
        let measured = trials.filter_map(|trial| match &trial.outcome {
            Outcome::Measured(measured) => Some((trial.cell.as_str(), &measured.evidence)),
            Outcome::Invalid { .. } | Outcome::Failed { .. } => None,
        });
        // Later trials of a cell replace earlier ones in the map.
        Self(measured.collect())
    }

    fn get(&self, id: &str) -> Option<&'a Evidence> {
        self.0.get(id).copied()
    }
}

type Facts = BTreeMap<String, String>;

/// Facts that differ, with both values; an absent value is empty.
fn facts<'e>(
    base: &'e Evidence,
    other: &'e Evidence,
    of: fn(&Evidence) -> &Facts,
) -> impl Iterator<Item = (&'e str, (String, String))> {
    let (base, other) = (of(base), of(other));
    let added = other.keys().filter(|key| !base.contains_key(*key));
    // A fact that one side does not report counts as empty there.
    let value = |facts: &Facts, key: &str| facts.get(key).cloned().unwrap_or_default();
    base.keys().chain(added).filter_map(move |key| {
        let (base, other) = (value(base, key), value(other, key));
        (base != other).then_some((key.as_str(), (base, other)))
    })
}

/// Reports each path of keys with different values. Lists are compared as a whole.
fn differing(
    path: &str,
    base: &Value,
    other: &Value,
    report: &mut impl FnMut(String, String, String),
) {
    match (base, other) {
        (Value::Object(base), Value::Object(other)) => {
            let added = other.keys().filter(|key| !base.contains_key(*key));
            for key in base.keys().chain(added) {
                let at = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                let of = |keys: &serde_json::Map<String, Value>| {
                    keys.get(key).cloned().unwrap_or_default()
                };
                differing(&at, &of(base), &of(other), report);
            }
        }
        _ if base == other => {}
        _ => report(path.to_owned(), plain(base), plain(other)),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

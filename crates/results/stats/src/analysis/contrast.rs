//! DUTs compared with twins: DUTs in the same group with all settings but one in common.
//!
//! A comparison is one declaration in [`CONTRASTS`], and nothing else. Its figures, its section
//! with the table in every document, its sentence in the summary and its rows in `results.json`
//! follow from it.

use super::metric::Metric;
use super::pairs::{Pair, paired, quotients};
use crate::cell::CellResult;
use crate::figures::estimate::Estimate;
use journal::Journal;
use plan::{Adapter, Cell, Encryptor, KeySource, Setting, Value};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;
use units::human::duration_ns;

/// A comparison of DUTs with twins that differ in one setting.
pub struct Contrast {
    /// Its name in `results.json`, and the anchor of its section.
    pub id: &'static str,
    /// Title of its section and table: `Sources of keys compared with static keys`.
    pub title: &'static str,
    /// Name of its section in the navigation.
    pub name: &'static str,
    /// The start of its sentence in the summary.
    pub subject: &'static str,
    /// The twin in the table's note, behind `the same device with`.
    pub twin: &'static str,
    /// Heading of the ratios: `Ratio to static keys`.
    pub ratio: &'static str,
    /// The columns that name a DUT and its twin.
    pub columns: Columns,
    /// The meaning of a difference.
    pub meaning: Meaning,
    /// The setting that differs.
    setting: Setting,
    /// Which DUTs are the twins.
    twins: Twins,
    /// Whether the question is what changed at all: then all quantities together are one question,
    /// and the cells that surely differ come first, the largest difference at the top.
    pub is_search: bool,
    /// The DUT's value of that setting in words.
    words: fn(&Adapter, &Value) -> String,
}

/// The twins of a DUT, among those that differ from it in the setting only.
#[derive(Clone, Copy)]
enum Twins {
    /// Those with one of these values. A DUT with such a value is no twin of itself.
    With(fn(&Adapter) -> Vec<Value>),
    /// The first one of the group, in the order of the plan.
    First,
}

/// The columns of a comparison that name a DUT and its twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// One with this heading and the setting in words: all twins are alike.
    Setting(&'static str),
    /// The names of both.
    Names([&'static str; 2]),
}

/// The meaning of a difference from the twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The cost or the effect of a setting, in either direction.
    Difference,
    /// A gain or a loss, as one direction is the purpose of the setting.
    Gain,
    /// An improvement or a regression since the twin.
    Change,
}

/// All comparisons, in the order of every document.
pub const CONTRASTS: &[Contrast] = &[
    Contrast {
        id: KEYS,
        title: "Sources of keys compared with static keys",
        name: "Sources of keys",
        subject: "Sources of keys compared with static keys",
        twin: "static keys",
        ratio: "Ratio to static keys",
        columns: Columns::Setting("Keys"),
        meaning: Meaning::Difference,
        setting: Setting::Keys,
        twins: Twins::With(|_| vec![Value::Word(KeySource::Static.name().to_owned())]),
        is_search: false,
        words: |adapter, source| {
            // Two DUTs may have one source and different lifetimes: both have the same twin, and
            // only the lifetime distinguishes their rows.
            let every_ns = adapter.encryptor().and_then(|ours| ours.rekey_every_ns);
            let every = duration_ns(every_ns.unwrap_or_default() as f64);
            format!("{}, new ones every {every}", source.plain())
        },
    },
    Contrast {
        id: HYBRIDS,
        title: "Hybrids of engines compared with each engine alone",
        name: "Hybrids",
        subject: "Hybrids compared with each engine alone",
        twin: "that engine alone",
        ratio: "Ratio to the engine alone",
        columns: Columns::Names(["Hybrid", "Engine alone"]),
        meaning: Meaning::Gain,
        setting: Setting::Engine,
        twins: Twins::With(|adapter| {
            let parts = adapter.encryptor().map(|ours| ours.engine.parts());
            // An engine alone has no parts, so only hybrids get pairs.
            let alone = parts.into_iter().flatten();
            alone
                .map(|engine| Value::Word(engine.to_string()))
                .collect()
        }),
        is_search: false,
        words: |_, engine| engine.plain(),
    },
    Contrast {
        id: "versions",
        title: "Versions compared with the first one",
        name: "Versions",
        subject: "Versions compared with the first one",
        twin: "the first version",
        ratio: "Ratio to the first version",
        columns: Columns::Names(["Version", "Compared with"]),
        meaning: Meaning::Change,
        setting: Setting::Version,
        twins: Twins::First,
        is_search: true,
        words: |_, version| version.plain(),
    },
];

/// These two have older keys in `results.json` too.
const KEYS: &str = "keys";
const HYBRIDS: &str = "hybrids";

/// One quantity of a DUT, relative to its twin.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ContrastResult {
    /// The comparison, such as `keys`.
    pub contrast: &'static str,
    /// The group that both cells belong to.
    pub group: String,
    /// Id of the DUT's cell.
    pub cell: String,
    /// Id of the twin's cell.
    pub twin_cell: String,
    /// Name of the DUT.
    pub dut: String,
    /// Name of the twin.
    pub twin: String,
    /// The DUT's value of the setting in which both differ, in words.
    pub setting: String,
    /// The compared quantity.
    pub metric: Metric,
    /// Ratio to the twin's figure in the same repeat.
    pub ratio: Estimate,
    /// Whether there surely is a difference, corrected (Holm) over all cells of the run by this
    /// quantity, of versions by all quantities; `null` with fewer than two repeats.
    pub differs: Option<bool>,
}

/// The results of all comparisons, in their order and the plan's.
pub(crate) fn results(journal: &Journal, cells: &[CellResult]) -> Vec<ContrastResult> {
    let of = |contrast: &Contrast| contrast.results(&journal.header.plan.cells, cells);
    CONTRASTS.iter().flat_map(of).collect()
}

/// Whether `results.json` has all of these by other keys.
pub(crate) fn have_other_keys(results: &[ContrastResult]) -> bool {
    // Programs that read the older keys would otherwise find each of these rows twice.
    let has = |one: &ContrastResult| [KEYS, HYBRIDS].contains(&one.contrast);
    results.iter().all(has)
}

impl Contrast {
    /// All pairs by one quantity are one question, or all pairs.
    fn results(&self, planned: &[Cell], cells: &[CellResult]) -> Vec<ContrastResult> {
        let question = |metric| (!self.is_search).then_some(metric);
        let found = paired(self.pairs(planned, cells), question, quotients).into_iter();
        let found = found.filter_map(|found| {
            let Pair { cell, other } = found.pair;
            let dut = &planned.iter().find(|one| one.id == cell.id)?.dut;
            let (value, _) = dut.apart(self.setting)?;
            Some(ContrastResult {
                contrast: self.id,
                group: cell.group.clone(),
                cell: cell.id.clone(),
                twin_cell: other.id.clone(),
                dut: cell.dut.clone(),
                twin: other.dut.clone(),
                setting: (self.words)(&dut.adapter, &value),
                metric: found.metric,
                ratio: found.ratio,
                differs: found.differs,
            })
        });
        let mut found: Vec<_> = found.collect();
        if self.is_search {
            // A stable sort: equal ones stay in the order of the plan.
            found.sort_by(|one, other| {
                let is_same = |result: &ContrastResult| result.differs != Some(true);
                let size = |result: &ContrastResult| result.ratio.mean.ln().abs();
                let of_both = is_same(one).cmp(&is_same(other));
                of_both.then_with(|| match one.differs {
                    Some(true) => size(other).total_cmp(&size(one)),
                    _ => Ordering::Equal,
                })
            });
        }
        found
    }

    fn pairs<'c>(&self, planned: &'c [Cell], results: &'c [CellResult]) -> Vec<Pair<'c>> {
        let apart: Vec<_> = planned
            .iter()
            .map(|cell| cell.dut.apart(self.setting))
            .collect();
        let mut pairs = Vec::new();
        for ((cell, result), own) in planned.iter().zip(results).zip(&apart) {
            let Some((own_value, common)) = own else {
                continue;
            };
            let mut values = match self.twins {
                Twins::With(values) => values(&cell.dut.adapter),
                Twins::First => {
                    let alike = planned.iter().zip(&apart).find_map(|(other, apart)| {
                        let (value, others) = apart.as_ref()?;
                        (other.group == cell.group && others == common).then_some(value)
                    });
                    alike.cloned().into_iter().collect()
                }
            };
            // Compared with itself a DUT would show no difference, and widen the other findings.
            values.retain(|value| value != own_value);
            for value in values {
                // Of several DUTs with that value the first of the plan is the twin, as further
                // ones would give one cell several ratios for one question.
                let twin = results.iter().zip(&apart).find(|(other, apart)| {
                    let is_alike = apart
                        .as_ref()
                        .is_some_and(|(known, others)| *known == value && others == common);
                    other.group == cell.group && is_alike
                });
                pairs.extend(twin.map(|(other, _)| Pair {
                    cell: result,
                    other,
                }));
            }
        }
        pairs
    }
}

/// One quantity of a device with agreed keys, relative to its twin with static keys.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeyCost {
    /// The group that both cells belong to.
    pub group: String,
    /// Id of the cell with agreed keys.
    pub cell: String,
    /// Id of the twin's cell.
    pub static_cell: String,
    /// The device's name.
    pub dut: String,
    /// Source of its keys: `pqc`, `ppk`, `qkd`, `both`, `ike`, `ike-classic`, `ike-ppk`.
    pub keys: String,
    /// Lifetime of a key, in nanoseconds.
    pub rekey_every_ns: u64,
    /// The compared quantity.
    pub metric: Metric,
    /// Ratio to the static twin's figure in the same repeat.
    pub ratio: Estimate,
    /// Whether there surely is a difference, corrected (Holm) over all cells of the run by this
    /// quantity; `null` with fewer than two repeats.
    pub differs: Option<bool>,
}

/// A quantity of a device with several engines, relative to its twin with one of them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HybridGain {
    /// The group that both cells belong to.
    pub group: String,
    /// Id of the hybrid's cell.
    pub cell: String,
    /// Id of the cell with one engine alone.
    pub alone_cell: String,
    /// The hybrid's name.
    pub dut: String,
    /// The other's name.
    pub alone: String,
    /// Suite of both.
    pub suite: String,
    /// The compared quantity.
    pub metric: Metric,
    /// Ratio to the single engine's figure in the same repeat.
    pub ratio: Estimate,
    /// Whether there surely is a difference, corrected (Holm) over all cells of the run by this
    /// quantity; `null` with fewer than two repeats.
    pub differs: Option<bool>,
}

/// The results of one comparison, each with the planned encryptor.
fn of<'c>(
    id: &'static str,
    journal: &'c Journal,
    results: &'c [ContrastResult],
) -> impl Iterator<Item = (&'c ContrastResult, &'c Encryptor)> {
    let own = results.iter().filter(move |one| one.contrast == id);
    own.filter_map(|one| {
        let mut cells = journal.header.plan.cells.iter();
        let planned = cells.find(|cell| cell.id == one.cell)?;
        Some((one, planned.dut.adapter.encryptor()?))
    })
}

pub(crate) fn key_costs(journal: &Journal, results: &[ContrastResult]) -> Vec<KeyCost> {
    let costs = of(KEYS, journal, results).map(|(found, ours)| KeyCost {
        group: found.group.clone(),
        cell: found.cell.clone(),
        static_cell: found.twin_cell.clone(),
        dut: found.dut.clone(),
        keys: ours.keys.name().to_owned(),
        rekey_every_ns: ours.rekey_every_ns.unwrap_or_default(),
        metric: found.metric,
        ratio: found.ratio.clone(),
        differs: found.differs,
    });
    costs.collect()
}

pub(crate) fn hybrid_gains(journal: &Journal, results: &[ContrastResult]) -> Vec<HybridGain> {
    let gains = of(HYBRIDS, journal, results).map(|(found, ours)| HybridGain {
        group: found.group.clone(),
        cell: found.cell.clone(),
        alone_cell: found.twin_cell.clone(),
        dut: found.dut.clone(),
        alone: found.twin.clone(),
        suite: ours.suite.name().to_owned(),
        metric: found.metric,
        ratio: found.ratio.clone(),
        differs: found.differs,
    });
    gains.collect()
}

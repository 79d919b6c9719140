//! Matches the cells of two runs.
//!
//! A cell is identified by its kind of trial, its device, and its value on each axis. Ids contain
//! only the axes that a campaign varies, so cells are first looked up by the id of their group,
//! then by all values in force, which finds them across different campaigns.

use journal::Journal;
use plan::{Axis, Cell};
use stats::{CellResult, Pairing, Ranking, Reading, Results};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Two devices that are compared although their names differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Name of the base's device.
    pub old: String,
    /// Name of the other run's device.
    pub new: String,
}

impl FromStr for Match {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok(Self {
                old: old.to_owned(),
                new: new.to_owned(),
            }),
            _ => Err("expected OLD=NEW, the names of two devices".to_owned()),
        }
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.old, self.new)
    }
}

/// A cell of a run: as planned, and its result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) planned: &'a Cell,
    pub(crate) result: &'a CellResult,
}

/// The same cell of two runs, or the same measurement of two devices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) base: Side<'a>,
    pub(crate) other: Side<'a>,
}

/// The cells of two runs.
#[derive(Debug)]
pub(crate) struct Pairs<'a> {
    /// In the order of the base's plan.
    pub(crate) both: Vec<Pair<'a>>,
    pub(crate) only_in_base: Vec<String>,
    pub(crate) only_in_other: Vec<String>,
    pub(crate) pairing: Pairing,
    /// Rankings of the run if its devices are compared; empty with two runs.
    rankings: &'a [Ranking],
}

/// Names of a run's devices, in the order of its cells.
pub(crate) fn devices(journal: &Journal) -> impl Iterator<Item = &str> {
    let cells = journal.header.plan.cells.iter();
    cells.map(|cell| cell.dut.name.as_str())
}

impl<'a> Pairs<'a> {
    /// Pairs the cells. Within one run only matched devices are compared, and no cell is missing.
    pub(crate) fn of(
        base: (&'a Journal, &'a Results),
        other: (&'a Journal, &'a Results),
        matches: &[Match],
        within_one_run: bool,
    ) -> Self {
        // Indexed, because each cell of the base is looked up and a journal may have thousands.
        let index = Index::of(sides(other));
        let (mut both, mut only_in_base) = (Vec::new(), Vec::new());
        for side in sides(base) {
            let own = side.planned.dut.name.as_str();
            let matched = matches.iter().filter(|one| one.old == own);
            let mut names: Vec<&str> = matched.map(|one| one.new.as_str()).collect();
            // Without a match a device is compared with its namesake. Within one run that would be
            // the cell itself.
            if names.is_empty() && !within_one_run {
                names.push(own);
            }
            for name in names {
                match index.find(side.planned, name) {
                    Some(other) => both.push(Pair { base: side, other }),
                    None => only_in_base.push(side.planned.id.clone()),
                }
            }
        }
        let mut found: Vec<&str> = both.iter().map(|pair| &*pair.other.planned.id).collect();
        // Sorted for the binary search below.
        found.sort_unstable();
        let others = sides(other).map(|side| side.planned.id.as_str());
        // Devices of a single run that no match names are no omission.
        let missing = others.filter(|id| !within_one_run && found.binary_search(id).is_err());
        Self {
            only_in_other: missing.map(str::to_owned).collect(),
            both,
            only_in_base,
            // A block of a run measures each cell once, one after the other. Repeats of two runs
            // have only their numbers in common.
            pairing: if within_one_run {
                Pairing::Blocks
            } else {
                Pairing::None
            },
            rankings: if within_one_run {
                &base.1.rankings
            } else {
                &[]
            },
        }
    }

    /// The level of the run's ranking that contains both devices of a pair for this quantity. With
    /// it, a report and a comparison of the same two devices agree.
    pub(crate) fn ranked_alpha(&self, pair: &Pair<'_>, reading: &Reading) -> Option<f64> {
        let has = |ranking: &&Ranking| {
            let is_placed = |id: &str| ranking.places.iter().any(|place| place.cell == id);
            ranking.by.quantity() == (reading.quantity, reading.load_percent)
                && is_placed(&pair.base.planned.id)
                && is_placed(&pair.other.planned.id)
        };
        let found = self.rankings.iter().find(has);
        found.map(|ranking| ranking.alpha)
    }
}

fn sides<'a>((journal, results): (&'a Journal, &'a Results)) -> impl Iterator<Item = Side<'a>> {
    let cells = journal.header.plan.cells.iter().zip(&results.cells);
    cells.map(move |(planned, result)| Side {
        journal,
        planned,
        result,
    })
}

/// The kind of trial, whether it measures the tester, and the value on each axis.
type Conditions = (&'static str, bool, BTreeMap<&'static str, String>);

/// The cells of a run, indexed by group and by conditions, each with the device's name.
struct Index<'a> {
    by_group: BTreeMap<(&'a str, &'a str), Side<'a>>,
    /// `None` if two cells have the same values: neither is found then.
    by_conditions: BTreeMap<(Conditions, &'a str), Option<Side<'a>>>,
}

impl<'a> Index<'a> {
    fn of(sides: impl Iterator<Item = Side<'a>>) -> Self {
        let (mut by_group, mut by_conditions) = (BTreeMap::new(), BTreeMap::new());
        for side in sides {
            let name = side.planned.dut.name.as_str();
            by_group.insert((side.planned.group.as_str(), name), side);
            by_conditions
                .entry((conditions(side.planned), name))
                // A guess between two cells with equal conditions could pair different settings.
                .and_modify(|found| *found = None)
                .or_insert(Some(side));
        }
        Self {
            by_group,
            by_conditions,
        }
    }

    fn find(&self, cell: &Cell, device: &str) -> Option<Side<'a>> {
        // The id first: cells with one id and different settings are compared, and the settings are
        // listed.
        let by_group = self.by_group.get(&(cell.group.as_str(), device));
        by_group.copied().or_else(|| {
            let found = self.by_conditions.get(&(conditions(cell), device));
            found.copied().flatten()
        })
    }
}

/// Returns a cell's conditions. A coordinate may be the only place of a value not in force.
fn conditions(cell: &Cell) -> Conditions {
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    // Coordinates first: a value in force of the same axis replaces them below.
    for at in &cell.coordinates {
        values.insert(at.axis.key(), at.value.plain());
    }
    // Workers belong to a device, so they do not distinguish conditions.
    for axis in Axis::all().filter(|axis| *axis != Axis::Workers) {
        if let Some(value) = cell.value(axis) {
            values.insert(axis.key(), value.plain());
        }
    }
    (cell.measurement.name(), cell.calibration, values)
}

//! The changes of the quantities of cells, and how sure they are.

use crate::cells::{Pair, Pairs, Side};
use serde::Serialize;
use stats::{CellResult, Change, Needed, Pairing, Quantity, Reading, Status};
use std::cmp::Ordering;

/// The direction of a change, as far as its interval shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The whole interval is worse than no change.
    Regression,
    /// The whole interval is better.
    Improvement,
    /// The interval contains both no change and changes beyond the margin, or is absent.
    Undecided,
    /// The interval contains no change, and none beyond the margin.
    Unchanged,
}

/// A quantity of a cell in the base and in the other run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellChange {
    /// Id of the base's cell.
    pub cell: String,
    /// Id of the other run's cell, if it differs.
    pub other_cell: Option<String>,
    /// The quantity.
    pub quantity: Quantity,
    /// Of latency under several loads: the load in per cent of the throughput; 0 is the lowest one.
    pub load_percent: Option<u8>,
    /// Geometric mean of the compared repeats of the base, in the unit of the quantity.
    pub base: f64,
    /// The same of the other run. [`Self::ratio`] is this divided by [`Self::base`].
    pub other: f64,
    /// Compared repeats of the base; if paired, only repeats that both runs have.
    pub base_repeats: u32,
    /// Compared repeats of the other run.
    pub other_repeats: u32,
    /// Planned repeats of the base.
    pub base_planned: u32,
    /// Planned repeats of the other run.
    pub other_planned: u32,
    /// Whether repeats form pairs.
    pub paired: bool,
    /// Ratio of the geometric means, the other run's to the base's.
    pub ratio: f64,
    /// Lower end of its simultaneous interval; `null` if the scatter is unknown, 0 if a search
    /// found no upper bound of the base.
    pub low: Option<f64>,
    /// Upper end; infinite (`null` in JSON) if a search found no upper bound of the other run.
    pub high: Option<f64>,
    /// The probability that the interval misses the true ratio.
    pub alpha: f64,
    /// Whether `alpha` is the level of the run's ranking of devices by this quantity.
    pub ranked: bool,
    /// The direction shown by the interval.
    pub direction: Direction,
    /// Whether the cell measures the tester: no gate applies to it.
    pub calibration: bool,
    #[serde(skip)]
    pub(crate) statistics: Statistics,
}

/// The statistics that a change was computed from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statistics {
    change: Change,
    /// Coefficient of variation of the repeats, of the base and of the other run.
    scatter: [f64; 2],
    /// Which invalid repeats are left out, and what to do. A gate must not pass on a cell with
    /// evidence against it.
    pub(crate) invalid: Option<String>,
}

/// A cell that both runs have but that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithoutChange {
    /// Id of the base's cell.
    pub cell: String,
    /// Which run, or which device of a single run, lacks the cell, and why.
    pub reason: String,
    /// What to do.
    pub help: String,
}

/// A quantity of a compared cell that has no ratio: only one side has a figure of it, or both have
/// one without a ratio, such as 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithoutRatio {
    /// Id of the base's cell.
    pub cell: String,
    /// The quantity.
    pub quantity: Quantity,
    /// The load, as in [`CellChange::load_percent`].
    pub load_percent: Option<u8>,
    /// Which run, or which device of a single run, has no figure of the quantity.
    pub reason: String,
    /// What to do.
    pub help: String,
}

/// A compared cell with a figure in only some of its repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Partly {
    /// Index of the run in [`crate::Comparison::runs`].
    pub run: usize,
    /// Id of its cell.
    pub cell: String,
    /// Repeats with a figure, which are compared.
    pub measured: u32,
    /// Planned repeats.
    pub planned: u32,
    /// How many of the others are invalid, failed or were not run, and why.
    pub reason: String,
    /// What to do.
    pub help: String,
}

/// Why a run has no figure of a cell, or of some of its repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// The settings make every attempt fail.
    Settings,
    /// Evidence speaks against a repeat.
    Invalid,
    /// A repeat failed.
    Failed,
    /// It was not measured yet.
    NotRun,
}

impl CellChange {
    /// Returns the quantity with its load: `p99 at 50 %`.
    #[must_use]
    pub fn quantity_in_words(&self) -> String {
        in_words(self.quantity, self.load_percent)
    }

    /// Returns the interval, if known.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Returns the repeats, or the other remedy, that would decide on which side of a ratio the
    /// change is.
    pub(crate) fn needed(&self, bound: f64) -> Needed {
        self.trusted(self.statistics.change.needed(bound, self.alpha))
    }

    /// Returns the repeats, or the other remedy, that would show a change or exclude one beyond the
    /// margin.
    pub(crate) fn needed_within(&self, margin_percent: f64) -> Needed {
        let margin = margin_percent / 100.0;
        self.trusted(self.statistics.change.needed_within(margin, self.alpha))
    }

    /// The scatter of two repeats is a single difference, from which no small number of further
    /// ones follows.
    fn trusted(&self, needed: Needed) -> Needed {
        const LEAST: u32 = 5;
        match needed {
            Needed::Repeats(repeats) if self.base_repeats.min(self.other_repeats) <= 2 => {
                Needed::Repeats(repeats.max(LEAST))
            }
            needed => needed,
        }
    }

    /// The larger scatter of both runs' repeats, in per cent of their mean.
    pub(crate) fn scatter_percent(&self) -> f64 {
        let [base, other] = self.statistics.scatter;
        100.0 * base.max(other)
    }

    /// Distance from no change, on a logarithmic scale.
    fn size(&self) -> f64 {
        self.ratio.ln().abs()
    }
}

/// Returns a quantity with its load: `p99 at 50 %`.
pub(crate) fn in_words(quantity: Quantity, load_percent: Option<u8>) -> String {
    match load_percent {
        None => quantity.word().to_owned(),
        Some(0) => format!("{} at the lowest load", quantity.word()),
        Some(percent) => format!("{} at {percent} %", quantity.word()),
    }
}

/// How messages name both sides: by their runs, or within one run by their devices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides<'a> {
    /// Indices of the runs in [`crate::Comparison::runs`].
    pub(crate) places: [usize; 2],
    /// Their names.
    pub(crate) runs: [&'a str; 2],
}

impl<'a> Sides<'a> {
    fn named(self, pair: Pair<'a>) -> [(Side<'a>, &'a str, usize, &'a str); 2] {
        let ([first, second], [a, b]) = (self.runs, self.places);
        // Both sides of one run have its name, so that their devices distinguish them.
        let name = |side: Side<'a>, run| {
            if a == b {
                side.planned.dut.name.as_str()
            } else {
                run
            }
        };
        [
            (pair.base, first, a, name(pair.base, first)),
            (pair.other, second, b, name(pair.other, second)),
        ]
    }
}

/// The changes of two runs before their level is known.
pub(crate) struct ChangeSet<'a> {
    changes: Vec<Counted<'a>>,
    pairing: Pairing,
    pub(crate) without: Vec<WithoutChange>,
    pub(crate) without_ratio: Vec<WithoutRatio>,
    pub(crate) partly: Vec<Partly>,
}

/// A change before its level is known.
struct Counted<'a> {
    pair: Pair<'a>,
    base: Reading,
    other: Reading,
    change: Change,
    /// The level of the ranking; a change with one does not use the comparison's level.
    ranked_alpha: Option<f64>,
    invalid: Option<String>,
}

pub(crate) fn found<'a>(pairs: &Pairs<'a>, sides: Sides<'a>) -> ChangeSet<'a> {
    let pairing = pairs.pairing;
    let (mut changes, mut without_change, mut partly) = (Vec::new(), Vec::new(), Vec::new());
    let mut without_ratio = Vec::new();
    for &pair in &pairs.both {
        let bases = pair.base.result.readings();
        let others = pair.other.result.readings();
        // First the missing repeats of both sides: the evidence against them is attached to every
        // change of the pair, because a gate must not pass on it.
        let lacking = sides.named(pair).map(|(side, run, place, name)| {
            let lack = Lack::first(side.result)?;
            Some((side, lack, lack.help(run), place, name))
        });
        let lacking: Vec<_> = lacking.into_iter().flatten().collect();
        let invalid = lacking
            .iter()
            .filter(|(_, lack, ..)| *lack == Lack::Invalid)
            .map(|(side, _, help, _, name)| {
                format!("{name}: {}; {help}", missing_repeats(side.result))
            });
        let invalid: Vec<String> = invalid.collect();
        let invalid = (!invalid.is_empty()).then(|| invalid.join("; "));
        let before = changes.len();
        let [base_name, other_name] = sides.named(pair).map(|(.., name)| name);
        let lacks = |reading: &Reading, reason: String, help: String| WithoutRatio {
            cell: pair.base.planned.id.clone(),
            quantity: reading.quantity,
            load_percent: reading.load_percent,
            reason,
            help,
        };
        let absent = |reading: &Reading, name: &str| {
            let reason = format!("{name} has no figure of it");
            lacks(
                reading,
                reason,
                format!("its row in the report of {name} states why"),
            )
        };
        // Collected apart, since a cell without any ratio is listed once as a cell and not once for
        // each quantity.
        let mut without: Vec<WithoutRatio> = Vec::new();
        let mut apart: Option<String> = None;
        for base in &bases {
            let Some(other) = others.iter().find(|other| is_same(base, other)) else {
                let path = path_of(base, &others);
                without.push(match path {
                    Some([own, theirs]) => {
                        let reason = format!(
                            "{base_name} has its {own} figure, and {other_name} its {theirs} one"
                        );
                        // A cell without any ratio is listed without its quantities, so the
                        // reason is kept for it.
                        apart.get_or_insert_with(|| reason.clone());
                        let help = "choose a quantity that both have over the same path";
                        lacks(base, reason, help.to_owned())
                    }
                    None => absent(base, other_name),
                });
                continue;
            };
            let Some(change) = Change::of(base, other, pairing) else {
                let zero = [(base_name, base), (other_name, other)]
                    .into_iter()
                    .find(|(_, reading)| reading.value.min <= 0.0);
                let name = zero.map_or(base_name, |(name, _)| name);
                let word = base.quantity.word();
                let reason = format!("a repeat of {name} is 0, which has no ratio");
                apart.get_or_insert_with(|| reason.clone());
                without.push(lacks(
                    base,
                    reason,
                    format!(
                        "set a limit on the figure of each run, such as `{word} > 0` with its unit"
                    ),
                ));
                continue;
            };
            changes.push(Counted {
                ranked_alpha: pairs.ranked_alpha(&pair, base),
                pair,
                base: base.clone(),
                other: other.clone(),
                change,
                invalid: invalid.clone(),
            });
        }
        let is_new = |other: &&Reading| {
            // Of another path the base's reading already says why there is no ratio.
            let is_said = |said: &WithoutRatio| {
                (said.quantity, said.load_percent) == (other.quantity, other.load_percent)
            };
            !bases.iter().any(|base| is_same(base, other)) && !without.iter().any(is_said)
        };
        let new = others.iter().filter(is_new);
        let new = new.map(|other| absent(other, base_name));
        // Collected first, since the filter reads the list that is extended.
        let new: Vec<_> = new.collect();
        without.extend(new);
        // No quantity of the cell has a ratio: the cell is reported as a whole, with the reason
        // from its status.
        if changes.len() == before {
            without_change.push(WithoutChange::of(pair, sides, apart));
            continue;
        }
        without_ratio.extend(without);
        for (side, _, help, run, _) in lacking {
            let repeats = &side.result.repeats;
            let found = Partly {
                run,
                cell: side.planned.id.clone(),
                measured: repeats.measured,
                planned: repeats.planned,
                reason: missing_repeats(side.result),
                help,
            };
            // One cell may be in several pairs, as when it is matched with two devices.
            if !partly.contains(&found) {
                partly.push(found);
            }
        }
    }
    ChangeSet {
        changes,
        pairing,
        without: without_change,
        without_ratio,
        partly,
    }
}

/// Whether two readings are of the same quantity at the same load, over the same path.
fn is_same(a: &Reading, b: &Reading) -> bool {
    (a.quantity, a.load_percent, a.path) == (b.quantity, b.load_percent, b.path)
}

/// The paths of a figure and of the other run's at the same load, if they differ: a round trip
/// divided by a one-way latency, or the rates of their loads, would look like a change.
fn path_of(own: &Reading, others: &[Reading]) -> Option<[&'static str; 2]> {
    let alike =
        |other: &&Reading| (own.quantity, own.load_percent) == (other.quantity, other.load_percent);
    let other = others.iter().find(alike)?.path?;
    Some([own.path?.name(), other.name()])
}

/// `1 of 3 repeats is invalid: machine-was-ours: other programs had 40 % of it`.
fn missing_repeats(cell: &CellResult) -> String {
    let repeats = &cell.repeats;
    let of = |count: u32, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {several}")),
    };
    let counts = [
        of(repeats.invalid, "is invalid", "are invalid"),
        of(repeats.failed, "failed", "failed"),
        of(
            repeats.not_run + repeats.skipped,
            "was not run",
            "were not run",
        ),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let reason = cell.reasons.first().map(stats::Reason::in_short);
    let reason = reason.map(|reason| format!(": {reason}"));
    format!(
        "of {} repeats {}{}",
        repeats.planned,
        counts.join(", "),
        reason.unwrap_or_default()
    )
}

impl Lack {
    /// The most severe reason of the missing repeats.
    fn first(cell: &CellResult) -> Option<Self> {
        let repeats = &cell.repeats;
        match () {
            () if cell.reasons.first().is_some_and(stats::Reason::recurs) => Some(Self::Settings),
            () if repeats.invalid > 0 => Some(Self::Invalid),
            () if repeats.failed > 0 => Some(Self::Failed),
            // Neither invalid nor failed, so the others were not run, or skipped for lack of cores.
            () if repeats.measured < repeats.planned => Some(Self::NotRun),
            () => None,
        }
    }

    /// What to do, as a clause with the run's name.
    fn help(self, run: &str) -> String {
        let words = match self {
            Self::Settings => {
                return "change its settings as its row in the report says, in a new run"
                    .to_owned();
            }
            Self::Invalid => "repeat it while nothing else uses the machine",
            Self::Failed => "remove the cause and repeat it",
            Self::NotRun => "finish the run",
        };
        // A run in a fleet's archive is never written to again.
        if run.starts_with("fleet:") {
            return format!("{words}, in a new run");
        }
        let invalid = match self {
            Self::Invalid => " --invalid",
            Self::Settings | Self::Failed | Self::NotRun => "",
        };
        format!("{words}: `cipherbench resume {run}{invalid}`")
    }
}

impl WithoutChange {
    /// `apart`: why figures that both have cannot be divided.
    fn of(pair: Pair<'_>, sides: Sides<'_>, apart: Option<String>) -> Self {
        let (mut reasons, mut helps) = (Vec::new(), Vec::new());
        for (side, run, _, name) in sides.named(pair) {
            let cell = side.result;
            let found = match cell.status {
                Status::Measured | Status::Partly => continue,
                Status::Invalid => "every repeat is invalid",
                Status::Failed => "it failed",
                Status::NotRun => "it was not run",
            };
            let first = cell.reasons.first().map(stats::Reason::in_short);
            let reason = first.map(|reason| format!(": {reason}"));
            reasons.push(format!("{name}: {found}{}", reason.unwrap_or_default()));
            let help = Lack::first(cell).map(|lack| lack.help(run));
            helps.extend(help.filter(|help| !helps.contains(help)));
        }
        // Both have figures, and none in common.
        let is_measured = reasons.is_empty();
        Self {
            cell: pair.base.planned.id.clone(),
            reason: if is_measured {
                let none = "it has no quantity whose ratio is known in both";
                apart.map_or_else(|| none.to_owned(), |apart| format!("{none}: {apart}"))
            } else {
                reasons.join("; ")
            },
            help: if is_measured {
                "choose a quantity that both runs have".to_owned()
            } else {
                helps.join(", and ")
            },
        }
    }
}

impl ChangeSet<'_> {
    /// Returns the number of intervals that count towards the level of all runs together.
    pub(crate) fn intervals(&self) -> usize {
        let changes = self.changes.iter();
        // Intervals of a ranking have their level already. Counting them would widen the others for
        // nothing.
        let own = changes.filter(|found| found.ranked_alpha.is_none());
        own.filter(|found| found.change.has_interval()).count()
    }

    /// Returns the changes in the order of [`crate::RunPair::changes`]. Their intervals miss with
    /// probability `alpha`, or with that of a ranking.
    pub(crate) fn changes(&self, alpha: f64, margin_percent: f64) -> Vec<CellChange> {
        let all = self.changes.iter().map(|found| {
            let (base, other, change) = (&found.base, &found.other, found.change);
            let [base_cell, other_cell] = [found.pair.base, found.pair.other];
            let alpha = found.ranked_alpha.unwrap_or(alpha);
            let interval = change.interval(alpha);
            let id = &other_cell.planned.id;
            let same = base_cell.planned.id == *id;
            let ((base_mean, other_mean), repeats) = (change.means(), change.repeats());
            CellChange {
                cell: base_cell.planned.id.clone(),
                other_cell: (!same).then(|| id.clone()),
                quantity: base.quantity,
                load_percent: base.load_percent,
                base: base_mean,
                other: other_mean,
                base_repeats: repeats.0,
                other_repeats: repeats.1,
                base_planned: base_cell.result.repeats.planned,
                other_planned: other_cell.result.repeats.planned,
                paired: self.pairing == Pairing::Blocks,
                ratio: change.ratio(),
                low: interval.map(|(low, _)| low),
                high: interval.map(|(_, high)| high),
                alpha,
                ranked: found.ranked_alpha.is_some(),
                direction: direction(interval, base.quantity, margin_percent),
                calibration: base_cell.planned.calibration,
                statistics: Statistics {
                    change,
                    scatter: [scatter(base), scatter(other)],
                    invalid: found.invalid.clone(),
                },
            }
        });
        let mut all: Vec<CellChange> = all.collect();
        all.sort_by(order);
        all
    }
}

fn scatter(reading: &Reading) -> f64 {
    let deviation = reading.value.standard_deviation.unwrap_or_default();
    // A mean of 0 has no relative scatter.
    if reading.value.mean > 0.0 {
        deviation / reading.value.mean
    } else {
        0.0
    }
}

fn direction(interval: Option<(f64, f64)>, quantity: Quantity, margin_percent: f64) -> Direction {
    let Some((low, high)) = interval else {
        return Direction::Undecided;
    };
    let margin = margin_percent / 100.0;
    let worse = if quantity.higher_is_better() {
        high < 1.0
    } else {
        low > 1.0
    };
    if worse {
        Direction::Regression
    } else if high < 1.0 || low > 1.0 {
        Direction::Improvement
    } else if low > 1.0 - margin && high < 1.0 + margin {
        Direction::Unchanged
    } else {
        Direction::Undecided
    }
}

/// By direction, then the largest change first. A stable sort keeps the plan's order of equals.
fn order(a: &CellChange, b: &CellChange) -> Ordering {
    let by_size = b.size().total_cmp(&a.size());
    a.direction.cmp(&b.direction).then(by_size)
}

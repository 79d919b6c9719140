//! Devices of a group in order, with ties between devices that their repeats do not distinguish.
//!
//! The rule. A device is *surely better* than another when the ratio of the two within the same
//! repeats shows it, at a level that counts all pairs of devices of the run's rankings by the same
//! quantity ([`super::significance`]). The relation is made transitive: if A is surely better than
//! B, and B than C, then A is surely better than C. A device's *rank* is 1 plus the number of
//! devices that are surely better. Not being distinguished is not transitive (A and B, B and C, but
//! not A and C), so devices do not form groups: each is ranked separately, from its rank to the
//! *last* rank that it could have, which is the number of devices minus the number of surely worse
//! ones. `2–4` is a span of this kind; a device that varies much gets a wide span, not a good rank.
//!
//! It follows that a surely better device has the better rank, and that the order of the campaign
//! does not matter. One repeat distinguishes nothing.
//!
//! The ratio of two devices is a [`Change`], as in a comparison of the two within the run, which
//! uses the level of the ranking ([`Ranking::alpha`]). So both agree: an interval of the ratio that
//! excludes 1 puts one device above the other.

use crate::analysis::change::{Change, Pairing};
use crate::analysis::quantity::Reading;
use crate::analysis::ranked_by::RankedBy;
use crate::analysis::significance::{Level, Questions, p_differ};
use crate::analysis::sittings::Sittings;
use crate::cell::{CellResult, Control};
use crate::figures::series::Series;
use journal::Journal;
use plan::{Adapter, Cell};
use schemars::JsonSchema;
use serde::Serialize;

/// The devices of one group ordered by one quantity.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ranking {
    /// The group.
    pub group: String,
    /// The quantity.
    pub by: RankedBy,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// Name of the DUT that [`Standing::ratio_to_yardstick`] refers to: our first encryptor with a
    /// figure, else the first device with a figure.
    pub yardstick: String,
    /// At least two, by rank, then by mean.
    pub places: Vec<Standing>,
    /// DUTs that are not ranked: the baseline, forwarders, controls; in the plan's order.
    pub references: Vec<Standing>,
    /// Names of the DUTs that are not ranked because they have no figure; in the plan's order.
    pub without_figure: Vec<String>,
    /// The chance that the interval of the ratio of two devices misses: 5 % over all pairs of
    /// devices of all rankings by this quantity (Holm). A device is surely better than another if
    /// the interval of their ratio excludes 1.
    pub alpha: f64,
    /// Longest time between the repeats of a pair of devices that were measured in different
    /// sittings of the run (before and after a resume), in nanoseconds; `null` if each pair shares
    /// a sitting.
    pub apart_ns: Option<u64>,
}

/// A DUT in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Standing {
    /// Id of its cell.
    pub cell: String,
    /// Its name.
    pub dut: String,
    /// Its place; `null` for a reference.
    pub rank: Option<Rank>,
    /// Mean, in the unit of the quantity.
    pub value: f64,
    /// Lower end of its 95 % interval; `null` for a single repeat. Ranks do not follow from
    /// intervals: the repeats of two devices form pairs.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
    /// Ratio to the device with the best mean: geometric mean of the ratios within the same
    /// repeats.
    pub ratio_to_best: Option<f64>,
    /// Lower end of its interval, which misses with the chance [`Ranking::alpha`]; `null` for the
    /// best, for references, and if the repeats do not show the ratio's scatter.
    pub ratio_to_best_low: Option<f64>,
    /// Upper end.
    pub ratio_to_best_high: Option<f64>,
    /// Ratio to [`Ranking::yardstick`], as [`Self::ratio_to_best`].
    pub ratio_to_yardstick: Option<f64>,
    /// The kind of control, if it is one.
    pub control: Option<Control>,
    /// Why it must not protect data; `null` if it may, or is not meant to.
    pub insecure: Option<String>,
}

/// A place in a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Rank {
    /// 1 plus the number of surely better devices.
    pub first: u32,
    /// The number of devices minus the number of surely worse ones. At least `first`.
    pub last: u32,
}

/// All rankings of groups with at least two devices to rank, in the plan's order.
pub(crate) fn rankings(
    journal: &Journal,
    cells: &[CellResult],
    sittings: &Sittings<'_>,
) -> Vec<Ranking> {
    let both = journal.header.plan.cells.iter().zip(cells);
    // The calibration measures the tester, which is no entrant.
    let ranked = both.filter(|(_, cell)| !cell.calibration);
    let groups = Series::all(ranked.map(|own| (own.1.group.as_str(), own)));
    // Each group is ranked by every quantity that at least two of its devices have.
    let fields: Vec<Field<'_>> = groups
        .iter()
        .flat_map(|group| {
            let all = RankedBy::ALL.into_iter();
            all.filter_map(move |by| Field::of(by, &group.members))
        })
        .collect();
    // All groups by one quantity are one question, so the level is computed over all fields before
    // any of them is ranked.
    let pairs = fields
        .iter()
        .flat_map(|field| field.p_values().map(|p| (field.by, p)));
    let questions = Questions::of(pairs);
    let ranked = fields.iter();
    ranked
        .filter_map(|field| field.ranking(questions.level(&field.by), sittings))
        .collect()
}

/// A cell, and its figure by the quantity.
struct Entrant<'a> {
    planned: &'a Cell,
    cell: &'a CellResult,
    figure: Reading,
}

impl Entrant<'_> {
    /// The ratio to another, paired by repeat; `None` unless all values are positive.
    fn by(&self, other: &Self) -> Option<Change> {
        Change::of(&other.figure, &self.figure, Pairing::Blocks)
    }

    /// p-value of a difference.
    fn p_differs(&self, other: &Self) -> Option<f64> {
        match self.by(other) {
            Some(change) => change.p_differs(),
            // A latency of 0 has no logarithm, and so no ratio: the differences decide.
            None => p_differ(&self.figure.value, &other.figure.value),
        }
    }

    fn is_above(&self, other: &Self, level: Level) -> bool {
        match self.by(other) {
            Some(change) => change.p_above().is_some_and(|p| level.allows(p)),
            None => level.is_above(&self.figure.value, &other.figure.value, 1.0),
        }
    }

    /// The sort key of devices: the geometric mean, as for ratios.
    fn middle(&self) -> f64 {
        let found = &self.figure.value;
        if found.min > 0.0 {
            let logs = found.values.iter().map(|sample| sample.value.ln());
            (logs.sum::<f64>() / found.values.len() as f64).exp()
        } else {
            found.mean
        }
    }
}

/// The members of a group by one quantity.
struct Field<'a> {
    by: RankedBy,
    group: &'a str,
    /// At least two.
    devices: Vec<Entrant<'a>>,
    references: Vec<Entrant<'a>>,
    without_figure: Vec<String>,
}

impl<'a> Field<'a> {
    /// `None` with fewer than two devices to rank.
    fn of(by: RankedBy, members: &[(&'a Cell, &'a CellResult)]) -> Option<Self> {
        let (devices, others): (Vec<_>, Vec<_>) = members
            .iter()
            .partition(|(planned, cell)| is_ranked(&planned.dut.adapter, cell));
        let entrants = |members: &[(&'a Cell, &'a CellResult)]| -> Vec<Entrant<'a>> {
            let found = members.iter().filter_map(|&(planned, cell)| {
                // With the bounds of its search: the true figure is between them, and a ratio
                // too.
                let figure = by.reading(cell)?;
                Some(Entrant {
                    planned,
                    cell,
                    figure,
                })
            });
            found.collect()
        };
        let without = devices.iter().filter(|(_, cell)| by.of(cell).is_none());
        let without_figure = without.map(|(_, cell)| cell.dut.clone()).collect();
        let field = Self {
            by,
            group: &members.first()?.1.group,
            devices: entrants(&devices),
            references: entrants(&others),
            without_figure,
        };
        (field.devices.len() > 1).then_some(field)
    }

    /// p-value of a difference, for each pair of devices.
    fn p_values(&self) -> impl Iterator<Item = Option<f64>> {
        self.devices.iter().enumerate().flat_map(|(place, own)| {
            let others = self.devices[place + 1..].iter();
            others.map(|other| own.p_differs(other))
        })
    }

    /// Which device is surely better than which, by their places.
    fn surely_better(&self, level: Level) -> Vec<Vec<bool>> {
        let is_better = |own: &Entrant<'_>, other: &Entrant<'_>| {
            let (high, low) = if self.by.higher_is_better() {
                (own, other)
            } else {
                (other, own)
            };
            // With repeats missing, pairs may point elsewhere than the means, and in a circle.
            high.middle() > low.middle() && high.is_above(low, level)
        };
        let row = |own| {
            let others = self.devices.iter();
            others.map(|other| is_better(own, other)).collect()
        };
        self.devices.iter().map(row).collect()
    }

    /// The longest time between two repeats that are compared.
    fn apart_ns(&self, sittings: &Sittings<'_>) -> Option<u64> {
        let pairs = self.devices.iter().enumerate().flat_map(|(place, own)| {
            let others = self.devices[place + 1..].iter();
            others.map(|other| (&own.cell.id, &other.cell.id))
        });
        pairs
            .filter_map(|(own, other)| sittings.apart_ns(own, other))
            .max()
    }

    fn ranking(&self, level: Level, sittings: &Sittings<'_>) -> Option<Ranking> {
        let mut places: Vec<Standing> = self.devices.iter().map(Standing::of).collect();
        let mut references: Vec<Standing> = self.references.iter().map(Standing::of).collect();
        let higher = self.by.higher_is_better();
        let own = |entrant: &&Entrant<'_>| entrant.planned.dut.adapter.encryptor().is_some();
        // Our encryptor, if it is in the group, so that the tables of all groups have one
        // yardstick.
        let yardstick = self.devices.iter().find(own).or(self.devices.first())?;
        let better = |a: f64, b: f64| {
            if higher {
                b.total_cmp(&a)
            } else {
                a.total_cmp(&b)
            }
        };
        let best = self.devices.iter();
        // By the mean that is printed, so that the table's best row is the reference.
        let best = best.min_by(|a, b| better(a.figure.value.mean, b.figure.value.mean))?;
        for (standing, own) in places.iter_mut().zip(&self.devices) {
            standing.set_ratios(own, best, yardstick);
            let change = own.by(best).filter(|_| own.cell.id != best.cell.id);
            let interval = change.and_then(|change| change.interval(level.alpha()));
            // A search without an upper bound bounds no ratio.
            let interval = interval.filter(|(low, high)| *low > 0.0 && high.is_finite());
            standing.ratio_to_best_low = interval.map(|(low, _)| low);
            standing.ratio_to_best_high = interval.map(|(_, high)| high);
        }
        // References have ratios, but no intervals: they are in no question of the ranking.
        for (standing, own) in references.iter_mut().zip(&self.references) {
            standing.set_ratios(own, best, yardstick);
        }
        for (place, rank) in places.iter_mut().zip(ranks(self.surely_better(level))) {
            place.rank = Some(rank);
        }
        // A stable sort: equal devices stay in the plan's order.
        places.sort_by(|a, b| a.rank.cmp(&b.rank).then(better(a.value, b.value)));
        Some(Ranking {
            group: self.group.to_owned(),
            by: self.by,
            higher_is_better: higher,
            yardstick: yardstick.cell.dut.clone(),
            without_figure: self.without_figure.clone(),
            apart_ns: self.apart_ns(sittings),
            alpha: level.alpha(),
            places,
            references,
        })
    }
}

/// Baselines and forwarders are not encryptors, and a control is not usable as one.
fn is_ranked(adapter: &Adapter, cell: &CellResult) -> bool {
    !adapter.profile().is_clear() && cell.control.is_none()
}

impl Standing {
    fn of(entrant: &Entrant<'_>) -> Self {
        let (cell, figure) = (entrant.cell, &entrant.figure.value);
        let ends = figure.interval_95.ends();
        Self {
            cell: cell.id.clone(),
            dut: cell.dut.clone(),
            rank: None,
            value: figure.mean,
            low: ends.map(|(low, _)| low),
            high: ends.map(|(_, high)| high),
            ratio_to_best: None,
            ratio_to_best_low: None,
            ratio_to_best_high: None,
            ratio_to_yardstick: None,
            control: cell.control,
            insecure: cell.insecure.clone(),
        }
    }

    fn set_ratios(&mut self, own: &Entrant<'_>, best: &Entrant<'_>, yardstick: &Entrant<'_>) {
        let by = |whole: &Entrant<'_>| match own.by(whole) {
            Some(change) => Some(change.ratio()),
            None => {
                let whole = whole.figure.value.mean;
                (whole > 0.0).then(|| own.figure.value.mean / whole)
            }
        };
        (self.ratio_to_best, self.ratio_to_yardstick) = (by(best), by(yardstick));
    }
}

/// Ranks devices by the relation *surely better*, which this function makes transitive.
fn ranks(mut better: Vec<Vec<bool>>) -> Vec<Rank> {
    let all = better.len();
    // Transitive closure (Warshall).
    // The device `over` is the outer loop: only then one pass finds chains of any length.
    for over in 0..all {
        let beaten = better[over].clone();
        for row in better.iter_mut().filter(|row| row[over]) {
            row.iter_mut()
                .zip(&beaten)
                .for_each(|(own, other)| *own |= other);
        }
    }
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let rank = |own: usize| Rank {
        first: number(1 + better.iter().filter(|other| other[own]).count()),
        last: number(all - better[own].iter().filter(|beaten| **beaten).count()),
    };
    (0..all).map(rank).collect()
}

#[cfg(test)]
mod tests;

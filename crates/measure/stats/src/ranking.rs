//! Devices of a group in order, with ties where their intervals do not distinguish them.
//!
//! The rule. A device is *surely better* than another when its whole interval lies on the better
//! side of the other's. Its *rank* is 1 plus the number of devices that are surely better: devices
//! whose intervals overlap share a rank unless a third is surely better than only one of them.
//! Overlap is not transitive (A and B, B and C, but not A and C), so devices do not form groups:
//! each is ranked by itself, and has beside its rank the *last* rank that it could have, the number
//! of devices less those that it is surely better than. `2–4` is such a span; a device that varies
//! much gets a wide span, not a good rank.
//!
//! It follows that a surely better device has the better rank, that the order of the campaign does
//! not matter, and that adding a device that all others surely beat changes no other rank.
//!
//! The interval is the bootstrap's with enough repeats, else the range of the repeats. A single
//! repeat has none: then any difference counts, and the ranking says so.

use crate::cell::{CellResult, Control};
use crate::compare::Metric;
use crate::estimate::{Estimate, Interval95, Sample};
use crate::frames::FrameOutcome;
use campaign::plan::{Adapter, Cell};
use journal::Journal;
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
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Kind of the interval.
    pub interval: IntervalKind,
    /// Ratio of the mean to the best mean of a device.
    pub ratio_to_best: Option<f64>,
    /// Ratio of the mean to that of [`Ranking::yardstick`].
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
    /// The number of devices, less those that are surely worse. At least `first`.
    pub last: u32,
}

/// The quantity of a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankedBy {
    /// Payload received, of `tcp` and `udp`, in bit/s.
    PayloadThroughput,
    /// Median round-trip time, of `ping`, in nanoseconds.
    RoundTripP50,
    /// Frame rate, of `throughput`, `mrr` and `loss-curve`, in frames/s: the relevant lower bound
    /// of the first goal, or the highest forwarding rate.
    FrameRate,
    /// Median one-way latency at the search's lowest load, of `latency`, in nanoseconds.
    LatencyP50,
    /// Payload bits received per CPU-second of the whole machine, of `tcp` and `udp`.
    PayloadBitsPerCpuSecond,
    /// IP bits forwarded per CPU-second of the whole machine, of `throughput`, `mrr` and
    /// `loss-curve`, in the trials whose evidence is recorded.
    IpBitsPerCpuSecond,
}

/// Kind of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalKind {
    /// 95 % bootstrap interval of the mean.
    #[serde(rename = "bootstrap-95")]
    Bootstrap95,
    /// Smallest to largest repeat: too few for a bootstrap.
    Range,
    /// The single value.
    Single,
}

impl RankedBy {
    const ALL: [Self; 6] = [
        Self::PayloadThroughput,
        Self::RoundTripP50,
        Self::FrameRate,
        Self::LatencyP50,
        Self::PayloadBitsPerCpuSecond,
        Self::IpBitsPerCpuSecond,
    ];

    /// Whether more is better.
    #[must_use]
    pub const fn higher_is_better(self) -> bool {
        !matches!(self, Self::RoundTripP50 | Self::LatencyP50)
    }

    /// Whether it is the cost of the work, not its amount or rate.
    #[must_use]
    pub const fn is_efficiency(self) -> bool {
        matches!(
            self,
            Self::PayloadBitsPerCpuSecond | Self::IpBitsPerCpuSecond
        )
    }

    /// The quantity of a cell, if it has it.
    #[must_use]
    pub fn of(self, cell: &CellResult) -> Option<Estimate> {
        let found = cell.frames().map(|frames| &frames.found);
        let searched = matches!(
            found,
            Some(FrameOutcome::Throughput | FrameOutcome::Mrr(_) | FrameOutcome::LossCurve(_))
        );
        match self {
            Self::PayloadThroughput => Metric::PayloadThroughput.of(cell).cloned(),
            Self::RoundTripP50 => Metric::LatencyP50.of(cell).cloned(),
            Self::FrameRate if searched => Metric::FrameRate.of(cell).cloned(),
            Self::LatencyP50 => {
                let mut loads = cell.frames()?.latency.iter();
                let lowest = loads.find(|load| load.percent == Some(0))?;
                Some(lowest.p50_each_ns.clone())
            }
            Self::PayloadBitsPerCpuSecond => Metric::PayloadBitsPerCpuSecond.of(cell).cloned(),
            Self::IpBitsPerCpuSecond if searched => ip_bits_per_cpu_s(cell),
            Self::FrameRate | Self::IpBitsPerCpuSecond => None,
        }
    }
}

/// CPU time is read only in the trial of the evidence, so it is divided by that trial's frames.
fn ip_bits_per_cpu_s(cell: &CellResult) -> Option<Estimate> {
    let carried = &cell.frames()?.at_evidence.as_ref()?.forwarded.ip_bps;
    let busy = &cell.cpu.as_ref()?.busy_cores;
    let directions = match cell.traffic()?.duplex {
        true => 2.0,
        false => 1.0,
    };
    let samples = carried.values.iter().map(|sample| {
        let cores = busy.at(sample.repeat).filter(|cores| *cores > 0.0)?;
        Some(Sample {
            value: directions * sample.value / cores,
            ..*sample
        })
    });
    Estimate::of(samples.collect::<Option<Vec<_>>>()?)
}

/// All rankings of groups with at least two devices to rank, in the plan's order.
pub(crate) fn rankings(journal: &Journal, cells: &[CellResult]) -> Vec<Ranking> {
    let mut groups: Vec<(&str, Vec<(&Cell, &CellResult)>)> = Vec::new();
    for (planned, cell) in journal.header.plan.cells.iter().zip(cells) {
        if cell.calibration {
            continue;
        }
        // The DUT varies fastest, so a cell belongs to the last group or a new one.
        match groups
            .iter_mut()
            .rev()
            .find(|(group, _)| *group == cell.group)
        {
            Some((_, members)) => members.push((planned, cell)),
            None => groups.push((&cell.group, vec![(planned, cell)])),
        }
    }
    groups
        .iter()
        .flat_map(|(_, members)| {
            RankedBy::ALL
                .into_iter()
                .filter_map(move |by| ranking(by, members))
        })
        .collect()
}

fn ranking(by: RankedBy, members: &[(&Cell, &CellResult)]) -> Option<Ranking> {
    let (devices, others): (Vec<_>, Vec<_>) = members
        .iter()
        .partition(|(planned, cell)| is_ranked(&planned.dut.adapter, cell));
    let standings = |members: &[&(&Cell, &CellResult)]| -> Vec<Standing> {
        let found = members
            .iter()
            .filter_map(|(_, cell)| Some(Standing::of(cell, &by.of(cell)?)));
        found.collect()
    };
    let mut places = standings(&devices);
    let mut references = standings(&others);
    if places.len() < 2 {
        return None;
    }
    let higher = by.higher_is_better();
    let own = |standing: &Standing| {
        devices.iter().any(|(planned, _)| {
            planned.id == standing.cell && planned.dut.adapter.encryptor().is_some()
        })
    };
    let yardstick = places.iter().find(|place| own(place)).or(places.first())?;
    let (yardstick, unit) = (yardstick.dut.clone(), yardstick.value);
    let better = |a: f64, b: f64| {
        if higher {
            b.total_cmp(&a)
        } else {
            a.total_cmp(&b)
        }
    };
    let best = places.iter().map(|place| place.value);
    let best = best.min_by(|a, b| better(*a, *b))?;
    let spans: Vec<(f64, f64)> = places.iter().map(|place| (place.low, place.high)).collect();
    for (place, rank) in places.iter_mut().zip(ranks(&spans, higher)) {
        place.rank = Some(rank);
    }
    // A stable sort: equal devices stay in the plan's order.
    places.sort_by(|a, b| a.rank.cmp(&b.rank).then(better(a.value, b.value)));
    for standing in places.iter_mut().chain(&mut references) {
        let by = |whole: f64| (whole > 0.0).then(|| standing.value / whole);
        (standing.ratio_to_best, standing.ratio_to_yardstick) = (by(best), by(unit));
    }
    let has_figure = |cell: &CellResult| places.iter().any(|place| place.cell == cell.id);
    let without = devices.iter().filter(|(_, cell)| !has_figure(cell));
    Some(Ranking {
        group: members.first()?.1.group.clone(),
        by,
        higher_is_better: higher,
        yardstick,
        without_figure: without.map(|(_, cell)| cell.dut.clone()).collect(),
        places,
        references,
    })
}

/// Baselines and forwarders are not encryptors, and a control is not usable as one.
fn is_ranked(adapter: &Adapter, cell: &CellResult) -> bool {
    !adapter.profile().is_clear() && cell.control.is_none()
}

impl Standing {
    fn of(cell: &CellResult, estimate: &Estimate) -> Self {
        let (low, high, interval) = match estimate.interval_95 {
            Interval95::Bootstrap { low, high } => (low, high, IntervalKind::Bootstrap95),
            Interval95::TooFewRepeats { .. } => {
                let kind = match estimate.n {
                    1 => IntervalKind::Single,
                    _ => IntervalKind::Range,
                };
                (estimate.min, estimate.max, kind)
            }
        };
        Self {
            cell: cell.id.clone(),
            dut: cell.dut.clone(),
            rank: None,
            value: estimate.mean,
            low,
            high,
            interval,
            ratio_to_best: None,
            ratio_to_yardstick: None,
            control: cell.control,
            insecure: cell.insecure.clone(),
        }
    }
}

/// Ranks each interval (low, high), by the rule of this module.
fn ranks(spans: &[(f64, f64)], higher_is_better: bool) -> Vec<Rank> {
    let surely_better = |a: &(f64, f64), b: &(f64, f64)| match higher_is_better {
        true => a.0 > b.1,
        false => a.1 < b.0,
    };
    let count = |which: &dyn Fn(&(f64, f64)) -> bool| {
        let found = spans.iter().filter(|other| which(other)).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let all = count(&|_| true);
    let rank = |own: &(f64, f64)| Rank {
        first: 1 + count(&|other| surely_better(other, own)),
        last: all - count(&|other| surely_better(own, other)),
    };
    spans.iter().map(rank).collect()
}

#[cfg(test)]
mod tests;

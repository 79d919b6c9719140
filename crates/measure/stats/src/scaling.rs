//! How figures scale with the number of workers, cores, streams, flows or tunnels.
//!
//! 1. Cells that differ only in one of these numbers form a [`Scaling`], a series in rising order.
//! 2. Each figure is compared with that of the smallest number: speed-up by pairs of repeats, and
//!    efficiency.
//! 3. Two laws are fitted if there are enough points ([`fit`]).
//! 4. The points are found where the curve stops rising and where it falls ([`shape`]).
//! 5. If it stops though cores are idle and neither tester nor link is the limit, something caps it
//!    ([`SilentCap`]).
//!
//! Tests at a configured load are left out: their figure cannot rise above it.

mod cap;
mod fit;
mod point;
mod series;
mod shape;
mod words;

pub use cap::SilentCap;
pub use fit::{FIT_MIN_POINTS, Fit, Law, POOR_FIT_PERCENT};
pub use point::{RatioRange, ScalingAxis, ScalingPoint};
pub use shape::GAIN_MIN_PERCENT;

pub(crate) use cap::{OtherWorkers, other_workers};
pub(crate) use shape::{Point as ShapePoint, Shape, is_above};

use crate::cell::CellResult;
use crate::compare::{Comparison, Metric};
use crate::cores::cores_wanted;
use crate::estimate::Estimate;
use crate::verdict::{Limit, TESTER_LIMITED_RATIO};
use journal::Journal;
use schemars::JsonSchema;
use serde::Serialize;
use series::Series;

/// Unit of the figures of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingUnit {
    /// Payload received, of tools.
    PayloadBps,
    /// Relevant lower bound of the first goal, or the highest forwarding rate.
    FramesPerS,
}

/// Cells that differ in one number only, and how their figures scale with it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scaling {
    /// The number that varies.
    pub axis: ScalingAxis,
    /// The cells' group without that number.
    pub series: String,
    /// The DUT's name, without the number.
    pub dut: String,
    /// Unit of the figures.
    pub unit: ScalingUnit,
    /// In rising order.
    pub points: Vec<ScalingPoint>,
    /// The smallest number with a figure, the base of speed-up and efficiency.
    pub base_n: u32,
    /// Number with the highest figure.
    pub peak_n: u32,
    /// The smallest number that no larger one exceeds by more than the spread; `null` if the curve
    /// rises to the largest.
    pub stop_n: Option<u32>,
    /// The smallest number from which on all are worse than the peak by more than the spread.
    pub falls_from_n: Option<u32>,
    /// The same in words.
    pub verdict: String,
    /// Amdahl's law and the Universal Scalability Law; empty if they are not fitted.
    pub fits: Vec<Fit>,
    /// Why they are not fitted.
    pub no_fit: Option<String>,
    /// Something that caps the device while cores are idle.
    pub cap: Option<SilentCap>,
}

/// A cell's point, without its ratios.
fn point(
    journal: &Journal,
    (n, place): (u32, usize),
    cells: &[CellResult],
    comparisons: &[Comparison],
) -> ScalingPoint {
    let cell = &cells[place];
    let cpus = journal.header.environment.cpus;
    let cpu = cell.cpu.as_ref();
    ScalingPoint {
        n,
        cell: cell.id.clone(),
        figure: cell.rate().cloned(),
        speedup: None,
        efficiency: None,
        dut_cores: cpu.and_then(|cpu| Some(cpu.dut_cores.as_ref()?.mean)),
        idle_cores: cpu
            .filter(|_| cpus > 0)
            .map(|cpu| (f64::from(cpus) - cpu.busy_cores.mean).max(0.0)),
        limited_by: limited_by(cell, comparisons).map(str::to_owned),
        crowded: cpus > 0 && cores_wanted(&journal.header.plan.cells[place]) > cpus,
    }
}

/// Returns the known limit of a cell other than the device.
pub(crate) fn limited_by(cell: &CellResult, comparisons: &[Comparison]) -> Option<&'static str> {
    match cell.verdict().map(|verdict| verdict.limit) {
        Some(Limit::TesterLimited) => return Some("tester"),
        Some(Limit::LinkLimited) => return Some("link"),
        _ => {}
    }
    let of_baseline = comparisons
        .iter()
        .find(|found| found.cell == cell.id && found.metric == Metric::PayloadThroughput);
    let as_fast = of_baseline.is_some_and(|found| found.ratio >= TESTER_LIMITED_RATIO);
    // Tools whose cores are always busy.
    let stations = cell.cpu.as_ref().filter(|_| cell.bulk().is_some());
    let is_full = stations.is_some_and(|cpu| {
        let streams = cell.parameters.streams.unwrap_or(u16::MAX);
        let cores = cell.stations.map_or(0, |stations| stations.cores);
        let cores = f64::from(cores.min(streams));
        let fuller = cpu.station_a_cores.mean.max(cpu.station_b_cores.mean);
        fuller >= TESTER_LIMITED_RATIO * cores
    });
    (as_fast || is_full).then_some("tester")
}

/// All series with at least two figures, in the plan's order.
pub(crate) fn scalings(
    journal: &Journal,
    cells: &[CellResult],
    comparisons: &[Comparison],
) -> Vec<Scaling> {
    series::all(&journal.header.plan)
        .into_iter()
        .filter_map(|series| Scaling::of(journal, series, cells, comparisons))
        .collect()
}

impl Scaling {
    fn of(
        journal: &Journal,
        series: Series<'_>,
        cells: &[CellResult],
        comparisons: &[Comparison],
    ) -> Option<Self> {
        let dut = series.dut();
        let places = series.places.iter();
        let points = places.map(|place| point(journal, *place, cells, comparisons));
        let unit = match cells[series.places.first()?.1].traffic() {
            Some(_) => ScalingUnit::FramesPerS,
            None => ScalingUnit::PayloadBps,
        };
        let mut adapters = series
            .places
            .iter()
            .map(|(_, place)| &journal.header.plan.cells[*place].dut.adapter);
        let is_baseline = adapters.clone().all(|adapter| !adapter.encrypts());
        // A number of workers that the campaign sets is not a silent cap.
        let is_configured = series.axis != ScalingAxis::Workers
            && adapters.any(|adapter| adapter.encryptor().is_some());
        let mut found = Self::of_points(series.axis, points.collect(), unit)?;
        // Without a device there is nothing to correct.
        if is_baseline || is_configured {
            found.cap = None;
        }
        Some(Self {
            series: series.common,
            dut,
            ..found
        })
    }

    /// Analyses points in rising order, without a journal; `None` with fewer than two figures.
    fn of_points(
        axis: ScalingAxis,
        mut points: Vec<ScalingPoint>,
        unit: ScalingUnit,
    ) -> Option<Self> {
        let figures: Vec<(u32, Estimate)> = points
            .iter()
            .filter_map(|point| Some((point.n, point.figure.clone()?)))
            .collect();
        let (base_n, base) = figures.first()?.clone();
        for point in &mut points {
            let speedup = point
                .figure
                .as_ref()
                .and_then(|figure| RatioRange::of(figure, &base));
            let share = f64::from(base_n) / f64::from(point.n);
            point.speedup = speedup;
            point.efficiency = speedup
                .filter(|_| axis.adds())
                .map(|found| found.scaled(share));
        }
        let curve: Vec<shape::Point> = figures
            .iter()
            .map(|(n, figure)| shape::Point {
                n: *n,
                mean: figure.mean,
                spread: figure.largest_distance,
            })
            .collect();
        let shape = Shape::of(&curve)?;
        let positive = figures.iter().filter(|(_, figure)| figure.mean > 0.0);
        let fitted: Vec<(f64, f64)> = positive
            .map(|(n, figure)| (f64::from(*n), figure.mean))
            .collect();
        let no_fit = words::no_fit(axis, fitted.len());
        let fits = match no_fit {
            Some(_) => Vec::new(),
            None => [Law::Amdahl, Law::Usl]
                .into_iter()
                .filter_map(|law| Fit::of(law, &fitted))
                .collect(),
        };
        let cap = SilentCap::of(axis, &points, &shape);
        Some(Self {
            axis,
            series: String::new(),
            dut: String::new(),
            unit,
            base_n,
            peak_n: shape.peak,
            stop_n: shape.stop,
            falls_from_n: shape.falls_from,
            verdict: words::verdict(axis, &points, &shape),
            fits,
            no_fit,
            cap,
            points,
        })
    }
}

#[cfg(test)]
mod tests;

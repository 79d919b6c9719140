//! How figures scale with the number of workers, cores, streams, flows or tunnels.
//!
//! 1. Cells that differ only in one of these numbers form a [`Scaling`], a series in rising order.
//! 2. Each figure is compared with the figure of the smallest number: speed-up by pairs of repeats
//!    with its interval, and efficiency.
//! 3. Two laws are fitted if there are enough points ([`fit`]).
//! 4. The number past which the curve surely stops rising, and the start of a sure decline, are
//!    found ([`shape`]).
//! 5. If it stops though cores are idle and nothing else is the limit, something caps it
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
pub use point::{ScalingAxis, ScalingPoint};
pub use shape::{FLAT_MAX_PERCENT, GAIN_MIN_PERCENT};

pub(crate) use cap::{OtherWorkers, other_workers};
pub(crate) use shape::{Point as ShapePoint, Shape, Top, is_above, p_values};

use crate::analysis::compare::Comparison;
use crate::analysis::cores::{Contention, machines_of};
use crate::analysis::metric::Metric;
use crate::analysis::significance::{Level, Questions, Ratio};
use crate::analysis::verdict::TESTER_LIMITED_RATIO;
use crate::cell::CellResult;
use crate::figures::bulk::CpuResult;
use crate::figures::frames::Limit;
use journal::Journal;
use journal::record::Header;
use plan::{HostName, Measurement};
use schemars::JsonSchema;
use serde::Serialize;
use series::Numbered;

/// Unit of the figures of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingUnit {
    /// Payload received, of tools.
    PayloadBps,
    /// Relevant lower bound of the first goal, or the highest forwarding rate.
    FramesPerS,
}

/// Cells that differ in one number only, and the scaling of their figures.
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
    /// The smallest number that no larger one surely exceeds by more than 2 %, if the repeats also
    /// exclude a gain of more than 10 % past it. `null` if they do not, or the curve rises to the
    /// largest.
    pub stop_n: Option<u32>,
    /// The same number, if the repeats do not exclude a gain of more than 10 % past it.
    pub no_sure_gain_past_n: Option<u32>,
    /// The start of the decline: from this number on, all are surely worse than the peak, by more
    /// than 2 %.
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
    let cpu = cell.cpu.as_ref();
    ScalingPoint {
        n,
        cell: cell.id.clone(),
        figure: cell.rate().cloned(),
        speedup: None,
        efficiency: None,
        dut_cores: cpu.and_then(|cpu| Some(cpu.dut_cores.as_ref()?.mean)),
        idle_cores: cpu.and_then(|cpu| idle_cores(&journal.header, cpu)),
        limited_by: limit(journal, place, cells, comparisons).map(|limit| limit.by.to_owned()),
    }
}

/// Idle cores of the machine; of two hosts those of the busier one, as a gateway cannot use the
/// other's.
fn idle_cores(header: &Header, cpu: &CpuResult) -> Option<f64> {
    let on_b = cpu.host_b_cores.as_ref().map(|busy| busy.mean);
    let idle = machines_of(header).map(|machine| {
        let busy = match machine.host {
            None => cpu.busy_cores.mean,
            Some(HostName::A) => cpu.busy_cores.mean - on_b?,
            Some(HostName::B) => on_b?,
        };
        let cpus = machine.environment.cpus;
        // Rounding of the kernel's counters may exceed the number of cores a little.
        (cpus > 0).then(|| (f64::from(cpus) - busy).max(0.0))
    });
    // An unknown host may be the busy one, so all of them must be known.
    let idle = idle.collect::<Option<Vec<f64>>>()?;
    idle.into_iter().reduce(f64::min)
}

/// A known limit of a figure other than the device.
pub(crate) struct OtherLimit {
    /// `tester`, `link` or `machine`.
    pub(crate) by: &'static str,
    /// Why, as a sentence.
    pub(crate) reason: String,
}

/// Returns the known limit of a cell other than the device.
pub(crate) fn limit(
    journal: &Journal,
    place: usize,
    cells: &[CellResult],
    comparisons: &[Comparison],
) -> Option<OtherLimit> {
    let cell = &cells[place];
    // A frame test has a verdict by the rig. The rules below are for tools, which have none.
    if let Some(verdict) = cell.verdict() {
        let by = match verdict.limit {
            Limit::TesterLimited => "tester",
            Limit::LinkLimited => "link",
            Limit::MachineLimited => "machine",
            Limit::DutLimited | Limit::Inconclusive => return None,
        };
        let reason = format!("It is {}: {}", verdict.limit.name(), verdict.reason);
        return Some(OtherLimit { by, reason });
    }
    let contention = contention(journal, place, cell);
    if let Some(why) = contention {
        return Some(OtherLimit {
            by: "machine",
            reason: format!("The machine is the limit: {}.", why.reason()),
        });
    }
    let of_baseline = comparisons
        .iter()
        .find(|found| found.cell == cell.id && found.metric == Metric::PayloadThroughput);
    // Tools have no calibration. A device as fast as the path without it may be as fast as the
    // tester.
    let as_fast = of_baseline.is_some_and(|found| found.ratio >= TESTER_LIMITED_RATIO);
    as_fast.then(|| OtherLimit {
        by: "tester",
        reason: "The tester is the limit: the device may do more.".into(),
    })
}

/// Why a cell's figure is one of the whole machine.
pub(crate) fn contention(journal: &Journal, place: usize, cell: &CellResult) -> Option<Contention> {
    let header = &journal.header;
    let streams = cell.bulk().and(cell.parameters.streams);
    Contention::of(
        header,
        &header.plan.cells[place],
        cell.cpu.as_ref(),
        streams,
    )
}

/// All series with at least two figures, in the plan's order.
pub(crate) fn scalings(
    journal: &Journal,
    cells: &[CellResult],
    comparisons: &[Comparison],
) -> Vec<Scaling> {
    let drafts: Vec<(Numbered, Vec<ScalingPoint>)> = series::all(&journal.header.plan)
        .into_iter()
        .map(|series| {
            let places = series.members.iter();
            let points = places.map(|place| point(journal, *place, cells, comparisons));
            let points = points.collect();
            (series, points)
        })
        .collect();
    // All series of one axis are one question, so drafts are made of all before any is analysed.
    // Each pair of points of a curve is a comparison, as its stop and its decline follow from
    // all of them.
    let pairs = drafts.iter().flat_map(|(series, points)| {
        let found: Vec<Option<f64>> = p_values(&curve(points)).collect();
        found.into_iter().map(|p| (series.key.0, p))
    });
    let questions = Questions::of(pairs);
    drafts
        .into_iter()
        .filter_map(|(series, points)| {
            let level = questions.level(&series.key.0);
            Scaling::of(journal, series, points, level)
        })
        .collect()
}

/// Points with a figure.
fn curve(points: &[ScalingPoint]) -> Vec<ShapePoint<'_>> {
    let with_figure = points.iter().filter_map(|point| {
        let figure = point.figure.as_ref()?;
        Some(ShapePoint { n: point.n, figure })
    });
    with_figure.collect()
}

impl Scaling {
    fn of(
        journal: &Journal,
        series: Numbered,
        points: Vec<ScalingPoint>,
        level: Level,
    ) -> Option<Self> {
        let dut = series::dut(&journal.header.plan, &series);
        let (axis, common) = series.key;
        let first = series.members.first()?.1;
        let unit = match journal.header.plan.cells[first].measurement {
            Measurement::Frames(_) => ScalingUnit::FramesPerS,
            _ => ScalingUnit::PayloadBps,
        };
        let mut adapters = series
            .members
            .iter()
            .map(|(_, place)| &journal.header.plan.cells[*place].dut.adapter);
        let is_baseline = adapters.clone().all(|adapter| !adapter.encrypts());
        // A number of workers that the campaign sets is not a silent cap.
        let is_configured =
            axis != ScalingAxis::Workers && adapters.any(|adapter| adapter.encryptor().is_some());
        let mut found = Self::of_points(axis, points, unit, level)?;
        // Without a device there is nothing to correct.
        if is_baseline || is_configured {
            found.cap = None;
        }
        Some(Self {
            series: common.group,
            dut,
            ..found
        })
    }

    /// Analyses points in rising order, without a journal; `None` with fewer than two figures.
    fn of_points(
        axis: ScalingAxis,
        mut points: Vec<ScalingPoint>,
        unit: ScalingUnit,
        level: Level,
    ) -> Option<Self> {
        let figures = curve(&points);
        let shape = Shape::of(&figures, level)?;
        let (base_n, base) = figures.first().map(|base| (base.n, base.figure.clone()))?;
        // The laws are fitted by relative errors, and 0 has none.
        let positive = figures.iter().filter(|point| point.figure.mean > 0.0);
        let fitted: Vec<(f64, f64)> = positive
            .map(|point| (f64::from(point.n), point.figure.mean))
            .collect();
        for point in &mut points {
            let speedup = point
                .figure
                .as_ref()
                .and_then(|figure| Ratio::of(figure, &base));
            let share = f64::from(base_n) / f64::from(point.n);
            point.speedup = speedup;
            // More of a number that adds nothing to the device has no efficiency.
            point.efficiency = speedup
                .filter(|_| axis.adds())
                .map(|found| found.scaled(share));
        }
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
            stop_n: shape.stop(),
            no_sure_gain_past_n: shape.top.filter(|top| !top.is_shown()).map(|top| top.n),
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

//! Groups speed cells into series and compares their devices.

use super::{
    DeviceAxis, DeviceComparison, DeviceCurve, DeviceGain, DevicePointResult, DeviceSeries,
    DeviceUnit, words,
};
use crate::analysis::device::curve::{self, Crossover, Figure};
use crate::analysis::scaling::{Shape, ShapePoint, is_above, p_values};
use crate::analysis::significance::{Level, Questions, Ratio, p_differ};
use crate::cell::CellResult;
use crate::figures::device::{DeviceTestInfo, TOGETHER_MIN_RATIO};
use crate::figures::series::Series;
use journal::Journal;
use journal::record::Proof;
use plan::{Adapter, Cell, Device, DeviceKind};

/// Everything that the cells of a series have in common.
#[derive(PartialEq)]
struct Key {
    axis: DeviceAxis,
    operation: String,
    bytes: Option<u32>,
    concurrency: Option<u32>,
    depth: Option<u32>,
    workers: String,
}

/// A cell of a series: its number on the axis, its index in the plan, and its test.
type Member<'a> = (u32, usize, &'a DeviceTestInfo);

/// The axes of a speed cell, each with its series and the cell's number in it.
fn keys(info: &DeviceTestInfo) -> Vec<(Key, u32)> {
    let (Some(operation), Some(concurrency), Some(depth)) =
        (&info.operation, info.concurrency, info.depth)
    else {
        return Vec::new();
    };
    // Each axis gets the key of all settings, from which its number is taken out below.
    let key = |axis| Key {
        axis,
        operation: operation.clone(),
        bytes: info.input_bytes,
        concurrency: Some(concurrency),
        depth: Some(depth),
        workers: info.workers.clone().unwrap_or_default(),
    };
    let mut found = Vec::new();
    if let Some(bytes) = info.input_bytes {
        // The number of the axis is left out of the key, so that cells along the axis share it.
        let key = Key {
            bytes: None,
            ..key(DeviceAxis::Bytes)
        };
        found.push((key, bytes));
    }
    let at_once = Key {
        concurrency: None,
        ..key(DeviceAxis::AtOnce)
    };
    let deep = Key {
        depth: None,
        ..key(DeviceAxis::Depth)
    };
    found.extend([(at_once, concurrency), (deep, depth)]);
    found
}

/// Every series with two numbers, in the plan's order.
pub(crate) fn all(journal: &Journal, cells: &[CellResult]) -> Vec<DeviceSeries> {
    let infos = cells.iter().enumerate();
    let infos = infos.filter_map(|(place, cell)| Some((place, cell.device_test()?)));
    let found = Series::all(infos.flat_map(|(place, info)| {
        let keys = keys(info).into_iter();
        keys.map(move |(key, n)| (key, (n, place, info)))
    }));
    // A series has at least one member, since a key comes from one.
    let varies = |members: &[Member<'_>]| members.iter().any(|(n, ..)| *n != members[0].0);
    let drafts: Vec<Draft<'_>> = found
        .iter()
        .filter(|series| varies(&series.members))
        .map(|series| {
            let planned = &journal.header.plan.cells;
            Draft::of(planned, cells, &series.key, &series.members)
        })
        .collect();
    let comparisons = drafts.iter().flat_map(|draft| {
        let found = draft.comparisons();
        found
            .into_iter()
            .map(|(finding, p)| ((draft.key.axis, finding), p))
    });
    // The levels need the p-values of all series, so the verdicts are made in a second pass over
    // the drafts.
    let questions = Questions::of(comparisons);
    drafts
        .into_iter()
        .map(|draft| draft.series(cells, &questions))
        .collect()
}

/// Kinds of findings; each kind is one question per axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Finding {
    /// The end of a curve's rise.
    Shape,
    /// The range over which a device is faster than a CPU.
    Crossover,
    /// The gain of several devices over fewer.
    Gain,
}

/// A series before the comparison of its curves.
struct Draft<'a> {
    key: &'a Key,
    members: &'a [Member<'a>],
    unit: DeviceUnit,
    curves: Vec<(DeviceCurve, &'a [Device])>,
}

impl<'a> Draft<'a> {
    fn of(plan: &'a [Cell], cells: &[CellResult], key: &'a Key, members: &'a [Member<'a>]) -> Self {
        // An operation without a meaningful input size, as a signature, is counted in
        // operations.
        let unit = if members.iter().any(|(.., info)| info.input_bytes.is_some()) {
            DeviceUnit::BytesPerS
        } else {
            DeviceUnit::OperationsPerS
        };
        let by_dut = members
            .iter()
            .map(|member| (cells[member.1].dut.as_str(), *member));
        let curves = Series::all(by_dut).into_iter().filter_map(|mut own| {
            // Members are in the order of the plan, and a curve rises along its axis.
            own.members.sort_by_key(|(n, ..)| *n);
            let (_, place, _) = own.members.first()?;
            let Adapter::Device(devices) = &plan[*place].dut.adapter else {
                return None;
            };
            let curve = DeviceCurve::of(cells, &own, &devices.members)?;
            Some((curve, devices.members.as_slice()))
        });
        Self {
            key,
            members,
            unit,
            curves: curves.collect(),
        }
    }

    /// Each comparison of the series, with the p-value of a difference.
    fn comparisons(&self) -> Vec<(Finding, Option<f64>)> {
        let mut found = Vec::new();
        // Curves over sizes have no shape to find, so their pairs must not weaken the level of the
        // others.
        if self.key.axis != DeviceAxis::Bytes {
            for (curve, _) in &self.curves {
                let pairs: Vec<_> = p_values(&curve.shape_points()).collect();
                found.extend(pairs.into_iter().map(|p| (Finding::Shape, p)));
            }
        }
        let mut both = |finding, own: &DeviceCurve, other: &DeviceCurve| {
            let numbers = curve::p_values(&own.figures(), &other.figures());
            found.extend(numbers.into_iter().map(|p| (finding, p)));
        };
        for (own, cpu) in beside_cpus(&self.curves) {
            both(Finding::Crossover, own, cpu);
        }
        for (more, fewer) in more_and_fewer(&self.curves) {
            both(Finding::Gain, more, fewer);
        }
        // The ratio of the peaks is a finding too, and the two peaks may be at different numbers.
        let peaks = more_and_fewer(&self.curves).into_iter();
        found.extend(peaks.filter_map(|(more, fewer)| {
            let (high, low) = (more.peak_figure()?, fewer.peak_figure()?);
            Some((Finding::Gain, p_differ(high.estimate, low.estimate)))
        }));
        found
    }

    fn series(
        self,
        cells: &[CellResult],
        questions: &Questions<(DeviceAxis, Finding)>,
    ) -> DeviceSeries {
        let Self {
            key,
            members,
            unit,
            mut curves,
        } = self;
        let level = |finding| questions.level(&(key.axis, finding));
        for (curve, _) in &mut curves {
            curve.judge(key.axis, unit, level(Finding::Shape));
        }
        // Operations that a device counted are proven to be its work, even at the CPU's speed.
        let unproven = |name: &str| {
            let proof = |place: usize| cells[place].device()?.speed()?.proof;
            let mut own = members
                .iter()
                .filter(|(_, place, _)| cells[*place].dut == name);
            own.any(|(_, place, info)| info.offloads && proof(*place) != Some(Proof::Counted))
        };
        let comparisons = beside_cpus(&curves).into_iter().filter_map(|(curve, cpu)| {
            let level = level(Finding::Crossover);
            let crossover = Crossover::of(&curve.figures(), &cpu.figures(), level)?;
            let equals_cpu = unproven(&curve.dut) && crossover.is_equal();
            Some(DeviceComparison {
                dut: curve.dut.clone(),
                cpu: cpu.dut.clone(),
                verdict: words::crossover(key.axis, &cpu.dut, &crossover, equals_cpu),
                equals_cpu,
                crossover,
            })
        });
        let gains = more_and_fewer(&curves).into_iter();
        let gains = gains.filter_map(|(more, fewer)| {
            DeviceGain::of(key.axis, more, fewer, level(Finding::Gain))
        });
        DeviceSeries {
            axis: key.axis,
            operation: key.operation.clone(),
            common: words::common(key.bytes, key.concurrency, key.depth, &key.workers),
            unit,
            comparisons: comparisons.collect(),
            gains: gains.collect(),
            curves: curves.into_iter().map(|(curve, _)| curve).collect(),
        }
    }
}

impl DeviceSeries {
    /// A device's curve.
    #[must_use]
    pub fn curve(&self, dut: &str) -> Option<&DeviceCurve> {
        self.curves.iter().find(|curve| curve.dut == dut)
    }
}

impl DeviceCurve {
    /// A curve before the analysis of its shape.
    fn of(
        cells: &[CellResult],
        own: &Series<&str, Member<'_>>,
        devices: &[Device],
    ) -> Option<Self> {
        let (.., info) = own.members.first()?;
        let points = own.members.iter();
        let is_model = |device: &Device| matches!(device.kind, DeviceKind::Model(_));
        let mut found = Self {
            dut: own.key.to_owned(),
            devices: u32::try_from(info.members.len()).unwrap_or(u32::MAX),
            is_cpu: info.is_cpu,
            is_model: devices.iter().any(is_model),
            points: points
                .map(|(n, place, _)| DevicePointResult::of(*n, &cells[*place]))
                .collect(),
            peak_n: None,
            peak: None,
            saturates_at_n: None,
            no_sure_gain_past_n: None,
            falls_from_n: None,
            verdict: String::new(),
        };
        let peak = found.peak_figure().map(|peak| (peak.n, peak.estimate.mean));
        found.peak_n = peak.map(|(n, _)| n);
        found.peak = peak.map(|(_, figure)| figure);
        Some(found)
    }

    fn judge(&mut self, axis: DeviceAxis, unit: DeviceUnit, level: Level) {
        // Larger inputs are not more work in parallel: a curve over sizes does not saturate, it
        // approaches a rate.
        let shape = match axis {
            DeviceAxis::Bytes => None,
            DeviceAxis::AtOnce | DeviceAxis::Depth => Shape::of(&self.shape_points(), level),
        };
        let top = shape.and_then(|shape| shape.top);
        self.saturates_at_n = shape.and_then(|shape| shape.stop());
        self.no_sure_gain_past_n = top.filter(|top| !top.is_shown()).map(|top| top.n);
        self.falls_from_n = shape.and_then(|shape| shape.falls_from);
        self.verdict = words::curve(axis, unit, self, top);
    }

    fn shape_points(&self) -> Vec<ShapePoint<'_>> {
        figures(&self.points)
            .map(|Figure { n, estimate }| ShapePoint {
                n,
                figure: estimate,
            })
            .collect()
    }

    /// Numbers that have a figure to compare.
    pub(in crate::analysis::device) fn figures(&self) -> Vec<Figure<'_>> {
        figures(&self.points).collect()
    }

    fn peak_figure(&self) -> Option<Figure<'_>> {
        // `max_by` returns the last of equal ones: in reverse the smallest number with the highest
        // figure.
        let figures = self.figures().into_iter().rev();
        figures.max_by(|a, b| a.estimate.mean.total_cmp(&b.estimate.mean))
    }
}

fn figures(points: &[DevicePointResult]) -> impl Iterator<Item = Figure<'_>> {
    // Workers that ran alone for a part of the time may show half of the rate, so nothing is
    // derived from these points.
    let compared = points.iter().filter(|point| point.is_compared);
    compared.filter_map(|point| {
        Some(Figure {
            n: point.n,
            estimate: point.figure.as_ref()?,
        })
    })
}

impl DevicePointResult {
    fn of(n: u32, cell: &CellResult) -> Self {
        let speed = cell.device().and_then(|found| found.speed());
        Self {
            n,
            cell: cell.id.clone(),
            figure: speed.map(|speed| speed.figure().clone()),
            is_compared: speed.is_some_and(|speed| speed.together_ratio >= TOGETHER_MIN_RATIO),
            cpu_ns_per_operation: speed.map(|speed| speed.cpu_ns_per_operation.mean),
            latency_p99_ns: speed.map(|speed| speed.latency_p99_ns.mean),
        }
    }
}

/// Pairs each device with each CPU, and the other CPUs with the first.
fn beside_cpus<'c>(
    curves: &'c [(DeviceCurve, &[Device])],
) -> Vec<(&'c DeviceCurve, &'c DeviceCurve)> {
    let cpus: Vec<&DeviceCurve> = curves
        .iter()
        .map(|(curve, _)| curve)
        .filter(|curve| curve.is_cpu)
        .collect();
    let mut found = Vec::new();
    for (curve, _) in curves {
        // Of several CPUs the first is the yardstick of the others; no pair is compared in both
        // directions.
        let others: &[&DeviceCurve] = if curve.is_cpu {
            cpus.get(..1).unwrap_or_default()
        } else {
            &cpus
        };
        let others = others.iter().filter(|cpu| cpu.dut != curve.dut);
        found.extend(others.map(|cpu| (curve, *cpu)));
    }
    found
}

/// Pairs several devices with fewer of the same kind.
fn more_and_fewer<'c>(
    curves: &'c [(DeviceCurve, &[Device])],
) -> Vec<(&'c DeviceCurve, &'c DeviceCurve)> {
    let mut found = Vec::new();
    for (more, all) in curves {
        for (fewer, some) in curves {
            // Both must be of one kind throughout, or the gain would mix more devices with other
            // devices.
            let same_kind = || {
                let mut both = all.iter().chain(some.iter());
                both.all(|device| alike(&device.kind, &all[0].kind))
            };
            if all.len() > some.len() && !some.is_empty() && same_kind() {
                found.push((more, fewer));
            }
        }
    }
    found
}

/// Whether devices are of one kind, and differ at most in their slot.
fn alike(one: &DeviceKind, other: &DeviceKind) -> bool {
    match (one, other) {
        (DeviceKind::Pkcs11 { module: one, .. }, DeviceKind::Pkcs11 { module: other, .. }) => {
            one == other
        }
        (one, other) => one == other,
    }
}

impl DeviceGain {
    fn of(axis: DeviceAxis, more: &DeviceCurve, fewer: &DeviceCurve, level: Level) -> Option<Self> {
        let (high, low) = (more.peak_figure()?, fewer.peak_figure()?);
        let points = Crossover::of(&more.figures(), &fewer.figures(), level)?.points;
        let mut found = Self {
            dut: more.dut.clone(),
            devices: more.devices,
            of: fewer.dut.clone(),
            of_devices: fewer.devices,
            peak_ratio: Ratio::of(high.estimate, low.estimate)?.ratio,
            gains: is_above(high.estimate, low.estimate, level),
            points,
            verdict: String::new(),
        };
        found.verdict = words::gain(axis, &found, more, fewer);
        Some(found)
    }
}

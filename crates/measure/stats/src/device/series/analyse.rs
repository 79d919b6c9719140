//! Groups speed cells into series and compares their devices.

use super::{
    DeviceAxis, DeviceComparison, DeviceCurve, DeviceGain, DevicePointResult, DeviceSeries,
    DeviceUnit,
};
use crate::cell::CellResult;
use crate::device::curve::{Crossover, Figure, spread};
use crate::device::{DeviceTestInfo, TOGETHER_MIN_RATIO, words};
use crate::scaling::{Shape, ShapePoint, is_above};
use campaign::plan::{Adapter, Cell, Device, DeviceKind};
use journal::Journal;
use journal::record::Proof;

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
    let mut found: Vec<(Key, Vec<Member<'_>>)> = Vec::new();
    for (place, cell) in cells.iter().enumerate() {
        let Some(info) = cell.device_test() else {
            continue;
        };
        for (key, n) in keys(info) {
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, members)) => members.push((n, place, info)),
                None => found.push((key, vec![(n, place, info)])),
            }
        }
    }
    let varies = |members: &[Member<'_>]| members.iter().any(|(n, ..)| *n != members[0].0);
    found
        .iter()
        .filter(|(_, members)| varies(members))
        .map(|(key, members)| DeviceSeries::of(&journal.header.plan.cells, cells, key, members))
        .collect()
}

impl DeviceSeries {
    fn of(plan: &[Cell], cells: &[CellResult], key: &Key, members: &[Member<'_>]) -> Self {
        let unit = match members.iter().any(|(.., info)| info.input_bytes.is_some()) {
            true => DeviceUnit::BytesPerS,
            false => DeviceUnit::OperationsPerS,
        };
        let mut names: Vec<&str> = Vec::new();
        for (_, place, _) in members {
            let name = cells[*place].dut.as_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let own = |name: &str| -> Vec<Member<'_>> {
            let mut own: Vec<Member<'_>> = members
                .iter()
                .copied()
                .filter(|(_, place, _)| cells[*place].dut == name)
                .collect();
            own.sort_by_key(|(n, ..)| *n);
            own
        };
        let curves: Vec<(DeviceCurve, &[Device])> = names
            .iter()
            .filter_map(|name| {
                let own = own(name);
                let (_, place, _) = own.first()?;
                let Adapter::Device(devices) = &plan[*place].dut.adapter else {
                    return None;
                };
                let curve = DeviceCurve::of(key.axis, unit, cells, &own);
                Some((curve, devices.members.as_slice()))
            })
            .collect();
        // Operations that a device counted are its own work, at any speed of the CPU.
        let unproven = |name: &str| {
            let proof = |place: usize| cells[place].device()?.speed()?.proof;
            own(name)
                .iter()
                .any(|(_, place, info)| info.offloads && proof(*place) != Some(Proof::Counted))
        };
        let mut series = Self {
            axis: key.axis,
            operation: key.operation.clone(),
            common: words::common(key.bytes, key.concurrency, key.depth, &key.workers),
            unit,
            comparisons: comparisons(key.axis, &curves, unproven),
            gains: gains(key.axis, &curves),
            curves: Vec::new(),
        };
        series.curves = curves.into_iter().map(|(curve, _)| curve).collect();
        series
    }

    /// A device's curve.
    #[must_use]
    pub fn curve(&self, dut: &str) -> Option<&DeviceCurve> {
        self.curves.iter().find(|curve| curve.dut == dut)
    }
}

impl DeviceCurve {
    fn of(axis: DeviceAxis, unit: DeviceUnit, cells: &[CellResult], own: &[Member<'_>]) -> Self {
        let points: Vec<DevicePointResult> = own
            .iter()
            .map(|(n, place, _)| DevicePointResult::of(*n, &cells[*place]))
            .collect();
        let curve: Vec<ShapePoint> = figures(&points)
            .map(|figure| ShapePoint {
                n: figure.n,
                mean: figure.estimate.mean,
                spread: figure.spread,
            })
            .collect();
        // Larger inputs are not more work in parallel: a curve over sizes does not saturate, it
        // approaches a rate.
        let shape = match axis {
            DeviceAxis::Bytes => None,
            DeviceAxis::AtOnce | DeviceAxis::Depth => Shape::of(&curve),
        };
        let peak = curve
            .iter()
            .rev()
            .max_by(|a, b| a.mean.total_cmp(&b.mean))
            .copied();
        let (first, info) = own
            .first()
            .map_or((0, None), |(_, place, info)| (*place, Some(*info)));
        let mut found = Self {
            dut: cells
                .get(first)
                .map_or_else(String::new, |cell| cell.dut.clone()),
            devices: info.map_or(0, |info| {
                u32::try_from(info.members.len()).unwrap_or(u32::MAX)
            }),
            is_cpu: info.is_some_and(|info| info.is_cpu),
            points,
            peak_n: peak.map(|peak| peak.n),
            peak: peak.map(|peak| peak.mean),
            saturates_at_n: shape.and_then(|shape| shape.stop),
            falls_from_n: shape.and_then(|shape| shape.falls_from),
            verdict: String::new(),
        };
        found.verdict = words::curve(axis, unit, &found);
        found
    }

    /// Numbers that have a figure to compare.
    pub(in crate::device) fn figures(&self) -> Vec<Figure<'_>> {
        figures(&self.points).collect()
    }

    fn peak_figure(&self) -> Option<Figure<'_>> {
        let figures = self.figures().into_iter().rev();
        figures.max_by(|a, b| a.estimate.mean.total_cmp(&b.estimate.mean))
    }
}

fn figures(points: &[DevicePointResult]) -> impl Iterator<Item = Figure<'_>> {
    let compared = points.iter().filter(|point| point.is_compared);
    compared.filter_map(|point| {
        Some(Figure {
            n: point.n,
            estimate: point.figure.as_ref()?,
            spread: point.spread?,
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
            spread: speed.map(|speed| spread(speed.figure(), speed.slice_distance_percent)),
            is_compared: speed.is_some_and(|speed| speed.together_ratio >= TOGETHER_MIN_RATIO),
            cpu_ns_per_operation: speed.map(|speed| speed.cpu_ns_per_operation.mean),
            latency_p99_ns: speed.map(|speed| speed.latency_p99_ns.mean),
        }
    }
}

/// Each device beside each CPU; where there are several CPUs, the others beside the first.
fn comparisons(
    axis: DeviceAxis,
    curves: &[(DeviceCurve, &[Device])],
    unproven: impl Fn(&str) -> bool,
) -> Vec<DeviceComparison> {
    let cpus: Vec<&DeviceCurve> = curves
        .iter()
        .map(|(curve, _)| curve)
        .filter(|curve| curve.is_cpu)
        .collect();
    let beside = |curve: &DeviceCurve, cpu: &DeviceCurve| {
        let crossover = Crossover::of(&curve.figures(), &cpu.figures())?;
        let equals_cpu = unproven(&curve.dut) && crossover.is_equal();
        Some(DeviceComparison {
            dut: curve.dut.clone(),
            cpu: cpu.dut.clone(),
            verdict: words::crossover(axis, &cpu.dut, &crossover, equals_cpu),
            equals_cpu,
            crossover,
        })
    };
    let mut found = Vec::new();
    for (curve, _) in curves {
        let others: &[&DeviceCurve] = match curve.is_cpu {
            true => cpus.get(..1).unwrap_or_default(),
            false => &cpus,
        };
        let others = others.iter().filter(|cpu| cpu.dut != curve.dut);
        found.extend(others.filter_map(|cpu| beside(curve, cpu)));
    }
    found
}

/// Several devices beside fewer of the same kind.
fn gains(axis: DeviceAxis, curves: &[(DeviceCurve, &[Device])]) -> Vec<DeviceGain> {
    let mut found = Vec::new();
    for (more, all) in curves {
        for (fewer, some) in curves {
            let same_kind = || {
                let mut both = all.iter().chain(some.iter());
                both.all(|device| alike(&device.kind, &all[0].kind))
            };
            if all.len() > some.len() && !some.is_empty() && same_kind() {
                found.extend(DeviceGain::of(axis, more, fewer));
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
    fn of(axis: DeviceAxis, more: &DeviceCurve, fewer: &DeviceCurve) -> Option<Self> {
        let (high, low) = (more.peak_figure()?, fewer.peak_figure()?);
        let points = Crossover::of(&more.figures(), &fewer.figures())?.points;
        let mut found = Self {
            dut: more.dut.clone(),
            devices: more.devices,
            of: fewer.dut.clone(),
            of_devices: fewer.devices,
            peak_ratio: (low.estimate.mean > 0.0)
                .then(|| high.estimate.mean / low.estimate.mean)?,
            gains: is_above(
                (high.estimate.mean, high.spread),
                (low.estimate.mean, low.spread),
            ),
            points,
            verdict: String::new(),
        };
        found.verdict = words::gain(axis, &found, more, fewer);
        Some(found)
    }
}

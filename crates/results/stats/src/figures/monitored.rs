//! Readings of boxes and machines during the traffic of a figure, and the energy that it took.
//!
//! A reading counts if it began and ended under the figure's load: the transfer, or the load of the
//! frame trial with recorded evidence. Energy per traffic is the mean power divided by the rate
//! that was carried meanwhile, over all loaded directions: of payload for a transfer, of frames
//! with their FCS (L2) for a frame test.

use crate::figures::bulk::received_bps;
use crate::figures::estimate::Estimate;
use crate::figures::repeats::{Total, estimate, per_second};
use crate::figures::series;
use journal::record::{LoadReading, Measured, MonitoredDevice, Series};
use plan::{Cell, Measurement, ReadingKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

const MILLI: f64 = 1e3;
const BITS_PER_GBIT: f64 = 1e9;

/// One value of a box or a machine under the load of the cell's figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MonitoredValue {
    /// `gw1` or `gw2` for a box; `machine`, `host a` or `host b`.
    pub device: String,
    /// Whether it is a machine, with the stations on it.
    pub is_machine: bool,
    /// `cpu`, `temperature`, `power`, or the campaign's name.
    pub name: String,
    /// `cpu`, `temperature`, `power`, `gauge` or `counter`.
    pub kind: String,
    /// Unit of all its values; of a counter, of its rate.
    pub unit: String,
    /// Mean of the readings of each repeat that has some; `null` without any.
    pub mean: Option<Estimate>,
    /// Highest reading of all repeats; `null` without any.
    pub max: Option<f64>,
    /// How many readings these are, over all repeats.
    pub readings: u64,
    /// Readings of the whole trials that failed or were not made in time.
    pub missed: u64,
    /// Why the first of those is missing; `null` without any.
    pub missed_because: Option<String>,
    /// CPU time on the tester of all readings of this device over the whole trials, with the
    /// commands that they started, over all repeats.
    pub tester_cpu_ns: u64,
    /// The same under each load of the cell's trials, the lowest first.
    pub loads: Vec<MonitoredLoad>,
}

/// One value under one load, over all repeats.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MonitoredLoad {
    /// In frames/s of one direction; 0: as fast as the generator can. `null` for other tools.
    pub frames_per_s: Option<u64>,
    /// Mean of the readings.
    pub mean: f64,
    /// Highest reading.
    pub max: f64,
    /// How many they are.
    pub readings: u64,
}

/// Power of boxes, or of machines, and the energy that the traffic took.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EnergyResult {
    /// Boxes or machines with a power reading; their power is added.
    pub devices: Vec<String>,
    /// Whether they are machines, with the stations on them.
    pub is_machine: bool,
    /// Mean power in W.
    pub power_w: Estimate,
    /// Energy in the time of that traffic, in J; of a frame test over all trials at that load.
    pub energy_j: Estimate,
    /// The rate carried meanwhile over all directions, in bit/s; `null` for a ping.
    pub carried_bps: Option<Estimate>,
    /// Layer of that rate: `payload` or `l2`; `null` for a ping.
    pub layer: Option<String>,
    /// Energy by traffic in J per Gbit; `null` for a ping.
    pub joules_per_gbit: Option<Estimate>,
}

/// The energy of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialEnergy {
    /// Boxes or machines with a power reading.
    pub devices: Vec<String>,
    /// Their mean power in W, added.
    pub power_w: f64,
    /// In the time of the traffic, in J.
    pub energy_j: f64,
    /// Rate carried meanwhile in bit/s; `None` for a ping.
    pub carried_bps: Option<f64>,
}

impl TrialEnergy {
    /// The energy of boxes, or of machines, in a trial; `None` if their power was not read under
    /// the figure's load.
    #[must_use]
    pub fn of(cell: &Cell, measured: &Measured, is_machine: bool) -> Option<Self> {
        // Power while other loads ran, as during a search, has nothing to do with the rate of the
        // figure.
        let load = figure_load(measured);
        let own = measured.monitored.devices.iter();
        let own = own.filter(|device| device.is_machine == is_machine);
        let powers = own.filter_map(|device| {
            let mut series = device.series.iter();
            let power = series.find(|series| series.kind == ReadingKind::Power)?;
            Some((device, power))
        });
        let (mut devices, mut power_w) = (Vec::new(), 0.0);
        for (device, power) in powers {
            // A sum lacks none of its parts.
            power_w += under(power, load)?.mean_milli as f64 / MILLI;
            devices.push(device.name.clone());
        }
        let windows = measured.monitored.windows.iter();
        let time_ns = windows
            .filter(|window| window.load == load)
            .map(|window| window.end_ns.saturating_sub(window.start_ns))
            .total();
        (!devices.is_empty()).then(|| Self {
            devices,
            power_w,
            energy_j: power_w * time_ns as f64 / 1e9,
            carried_bps: carried_bps(cell, measured),
        })
    }

    /// Energy by traffic in J per Gbit.
    #[must_use]
    pub fn joules_per_gbit(&self) -> Option<f64> {
        let bps = self.carried_bps.filter(|bps| *bps > 0.0)?;
        Some(self.power_w * BITS_PER_GBIT / bps)
    }
}

/// A reading of a trial under the load of its figure: of a box (`gw1`, `gw2`) by its name; the mean
/// and the highest.
#[must_use]
pub fn monitored_in(measured: &Measured, device: &str, name: &str) -> Option<(f64, f64)> {
    let mut devices = measured.monitored.devices.iter();
    let device = devices.find(|own| own.name == device)?;
    let series = device.series.iter().find(|series| series.name == name)?;
    let found = under(series, figure_load(measured))?;
    Some((
        found.mean_milli as f64 / MILLI,
        found.max_milli as f64 / MILLI,
    ))
}

/// The figure's load, from the trial with recorded evidence; `None` for other tools.
fn figure_load(measured: &Measured) -> Option<u64> {
    let frames = measured.frames()?;
    Some(frames.trials.get(frames.evidence_trial?)?.load)
}

fn under(series: &Series, load: Option<u64>) -> Option<&LoadReading> {
    let mut loads = series.loads.iter();
    loads.find(|found| found.load == load && found.readings > 0)
}

/// The rate carried under the load of the figure, over all directions.
fn carried_bps(cell: &Cell, measured: &Measured) -> Option<f64> {
    if let Some(transfer) = measured.transfer() {
        return received_bps(transfer);
    }
    let test = cell.measurement.frames()?;
    let frames = measured.frames()?;
    let trial = frames.trials.get(frames.evidence_trial?)?;
    // The count is over all loaded directions, as the power serves both.
    let per_s = per_second(trial.received, trial.elapsed_ns.max(trial.duration_ns))?;
    Some(per_s * 8.0 * test.traffic.frames.mix.mean_bytes())
}

/// The layer of [`carried_bps`].
const fn layer(cell: &Cell) -> Option<&'static str> {
    match cell.measurement {
        Measurement::Tcp { .. } | Measurement::Udp { .. } => Some("payload"),
        Measurement::Frames(_) => Some("l2"),
        // `carried_bps` reads no other figures.
        _ => None,
    }
}

impl EnergyResult {
    /// Of boxes and of machines, as far as their power was read.
    pub(crate) fn of(cell: &Cell, measured: &[(u32, &Measured)]) -> Vec<Self> {
        let of = |is_machine| {
            let trials: Vec<(u32, TrialEnergy)> = measured
                .iter()
                .filter_map(|&(repeat, found)| {
                    Some((repeat, TrialEnergy::of(cell, found, is_machine)?))
                })
                .collect();
            let estimate = |value: &dyn Fn(&TrialEnergy) -> Option<f64>| estimate(&trials, value);
            Some(Self {
                devices: trials.first()?.1.devices.clone(),
                is_machine,
                power_w: estimate(&|trial| Some(trial.power_w))?,
                energy_j: estimate(&|trial| Some(trial.energy_j))?,
                carried_bps: estimate(&|trial| trial.carried_bps),
                layer: layer(cell).map(str::to_owned),
                joules_per_gbit: estimate(&TrialEnergy::joules_per_gbit),
            })
        };
        [false, true].into_iter().filter_map(of).collect()
    }
}

/// Every value of a cell that was read, in the order of the records.
pub(crate) fn values(measured: &[(u32, &Measured)]) -> Vec<MonitoredValue> {
    let all = measured.iter().flat_map(|&(repeat, trial)| {
        let devices = trial.monitored.devices.iter();
        devices.flat_map(move |device| {
            device.series.iter().map(move |series| {
                let key = (device.name.as_str(), series.name.as_str());
                (key, (repeat, figure_load(trial), series, device))
            })
        })
    });
    let all = series::Series::all(all).into_iter();
    all.filter_map(|own| value(&own.members)).collect()
}

/// A repeat, the load of its figure, a series of values, and the device that it is of.
type Collected<'a> = (u32, Option<u64>, &'a Series, &'a MonitoredDevice);

/// The value that these series of all repeats are of.
fn value(own: &[Collected<'_>]) -> Option<MonitoredValue> {
    let (.., first, first_device) = own.first()?;
    let trials = own.iter();
    // Readings under other loads, as of a search, say nothing about the figure.
    let at_figure: Vec<(u32, &LoadReading)> = trials
        .filter_map(|&(repeat, load, series, _)| Some((repeat, under(series, load)?)))
        .collect();
    let series = || own.iter().map(|(_, _, series, _)| *series);
    // The mean is over the repeats, but the maximum is of all readings: a peak must not be
    // averaged.
    let max_milli = at_figure.iter().map(|(_, found)| found.max_milli).max();
    Some(MonitoredValue {
        device: first_device.name.clone(),
        is_machine: first_device.is_machine,
        name: first.name.clone(),
        kind: first.kind.name().to_owned(),
        unit: first.unit.clone(),
        mean: estimate(&at_figure, |found| Some(found.mean_milli as f64 / MILLI)),
        max: max_milli.map(|milli| milli as f64 / MILLI),
        readings: at_figure.iter().map(|(_, found)| found.readings).total(),
        missed: series().map(|series| series.missed).total(),
        missed_because: series().find_map(|series| Some(series.gaps.first()?.reason.clone())),
        tester_cpu_ns: own.iter().map(|(.., device)| device.cpu_ns).total(),
        loads: by_load(series()),
    })
}

/// Groups the readings of all repeats by load.
fn by_load<'s>(series: impl Iterator<Item = &'s Series>) -> Vec<MonitoredLoad> {
    let mut loads: BTreeMap<Option<u64>, (i128, i64, u64)> = BTreeMap::new();
    for found in series.flat_map(|series| &series.loads) {
        let sum = loads.entry(found.load).or_insert((0, i64::MIN, 0));
        // Weighted by readings, so that the mean is over all of them. In `i128`, as a counter's
        // rate may be large.
        let own = i128::from(found.mean_milli).saturating_mul(i128::from(found.readings));
        sum.0 = sum.0.saturating_add(own);
        sum.1 = sum.1.max(found.max_milli);
        sum.2 = sum.2.saturating_add(found.readings);
    }
    // A load without a reading has no mean.
    let loads = loads
        .into_iter()
        .filter(|(_, (.., readings))| *readings > 0);
    loads
        .map(|(frames_per_s, (sum, max, readings))| MonitoredLoad {
            frames_per_s,
            mean: sum as f64 / readings as f64 / MILLI,
            max: max as f64 / MILLI,
            readings,
        })
        .collect()
}

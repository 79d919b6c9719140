//! Values of devices and machines that were read at an interval while a trial ran.

use plan::ReadingKind;
use serde::{Deserialize, Serialize};

/// What was read at an interval while a trial ran. Times are from the start of the readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitored {
    /// When traffic was to flow, in order; at most [`Monitored::WINDOWS_MAX`].
    pub windows: Vec<TrafficWindow>,
    /// Boxes, and machines with energy counters.
    pub devices: Vec<MonitoredDevice>,
}

impl Monitored {
    /// Most times of traffic in a record: those after them are only in [`Series::loads`].
    pub const WINDOWS_MAX: usize = 600;
}

/// A time in which traffic was to flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficWindow {
    /// Frames per second in one direction; 0: as fast as the generator can. `None` for other
    /// tools.
    pub load: Option<u64>,
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// The readings of one box or machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitoredDevice {
    /// `gw1` or `gw2` for a box; `machine` or, on two hosts, `host a` and `host b` for machines.
    pub name: String,
    /// Whether it is a machine, with the stations on it.
    pub is_machine: bool,
    /// From one round of readings to the next.
    pub interval_ns: u64,
    /// CPU time of the readings on the tester, with the commands that it started.
    pub cpu_ns: u64,
    /// One for each reading.
    pub series: Vec<Series>,
}

/// One value over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// `cpu`, `temperature`, `power`, or the name that the campaign gave it.
    pub name: String,
    /// What it is.
    pub kind: ReadingKind,
    /// Unit: of a counter, of its rate.
    pub unit: String,
    /// Time that one point stands for: the interval, or a power of two times it.
    pub point_ns: u64,
    /// At most [`Series::POINTS_MAX`].
    pub points: Vec<SeriesPoint>,
    /// What is missing and why; at most [`Series::GAPS_MAX`].
    pub gaps: Vec<SeriesGap>,
    /// Readings that failed or were not made in time, those beyond `gaps` included.
    pub missed: u64,
    /// What was read while traffic flowed, by load, from all readings.
    pub loads: Vec<LoadReading>,
}

impl Series {
    /// Most points. A longer series gets points of twice the time, and again.
    pub const POINTS_MAX: usize = 600;
    /// Most gaps.
    pub const GAPS_MAX: usize = 100;
}

/// The readings of one point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// The first one's time.
    pub at_ns: u64,
    /// Their mean in thousandths of the unit.
    pub mean_milli: i64,
    /// The highest, likewise.
    pub max_milli: i64,
    /// How many they are.
    pub readings: u64,
}

/// Readings one after the other that failed for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesGap {
    /// The first one's time.
    pub at_ns: u64,
    /// How many they are.
    pub readings: u64,
    /// Why, in words.
    pub reason: String,
}

/// The readings under one load: those that began and ended while it lasted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReading {
    /// As [`TrafficWindow::load`].
    pub load: Option<u64>,
    /// Their mean in thousandths of the unit.
    pub mean_milli: i64,
    /// The highest, likewise.
    pub max_milli: i64,
    /// How many they are.
    pub readings: u64,
}

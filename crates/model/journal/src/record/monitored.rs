//! Values of devices and machines that were read at an interval while a trial ran.

use plan::ReadingKind;
use serde::{Deserialize, Serialize};

/// Values read at an interval while a trial ran. Times are from the start of the readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitored {
    /// Planned times of traffic, in order; at most [`Monitored::WINDOWS_MAX`].
    pub windows: Vec<TrafficWindow>,
    /// Boxes, and machines with energy counters.
    pub devices: Vec<MonitoredDevice>,
}

impl Monitored {
    /// Most times of traffic in a record: later ones are only in [`Series::loads`].
    pub const WINDOWS_MAX: usize = 600;
}

/// A planned time of traffic.
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
    /// Kind of the value.
    pub kind: ReadingKind,
    /// Unit; for a counter, the unit of its rate.
    pub unit: String,
    /// Time of one point: the interval, or a power of two times it.
    pub point_ns: u64,
    /// At most [`Series::POINTS_MAX`].
    pub points: Vec<SeriesPoint>,
    /// Missing readings with the reason; at most [`Series::GAPS_MAX`].
    pub gaps: Vec<SeriesGap>,
    /// Readings that failed or were not made in time, those beyond `gaps` included.
    pub missed: u64,
    /// The readings during traffic, by load, from all rounds.
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
    /// The highest reading, in the same unit.
    pub max_milli: i64,
    /// Number of readings.
    pub readings: u64,
}

/// Consecutive readings that failed for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesGap {
    /// The first one's time.
    pub at_ns: u64,
    /// Number of readings.
    pub readings: u64,
    /// The reason, in words.
    pub reason: String,
}

/// The readings that began and ended during one load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReading {
    /// As [`TrafficWindow::load`].
    pub load: Option<u64>,
    /// Their mean in thousandths of the unit.
    pub mean_milli: i64,
    /// The highest reading, in the same unit.
    pub max_milli: i64,
    /// Number of readings.
    pub readings: u64,
}

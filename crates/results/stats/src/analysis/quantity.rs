//! The quantities that are compared between cells of different runs and exported.
//!
//! Only quantities with a value above 0 in every repeat of a sound cell are here: changes are
//! ratios. Counts of losses, outages and verdicts are in `results.json`.

use crate::analysis::ranked_by::RankedBy;
use crate::cell::CellResult;
use crate::figures::estimate::Estimate;
use crate::figures::frames::LoadLatency;
use crate::figures::ike::IkeFigures;
use plan::LatencyPath;
use schemars::JsonSchema;
use serde::Serialize;
use units::human::{Pair, Scales};

/// A quantity of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Payload received, of `tcp` and `udp`, in bit/s.
    PayloadThroughput,
    /// Bits of objects received, of `http`, in bit/s.
    ObjectThroughput,
    /// Frame rate of a search, `mrr`, `load` or `loss-curve`, in frames/s: the relevant lower bound
    /// of the first goal, or the highest forwarding rate.
    FrameRate,
    /// Transactions with the whole object, of `http`, per second.
    Transactions,
    /// Set-ups of IKEv2 per second: completed ones at a fixed rate, or the highest rate of a
    /// search.
    SetUps,
    /// Operations of crypto devices per second.
    Operations,
    /// Payload bits per CPU-second of the machine, of `tcp` and `udp`.
    PayloadBitsPerCpuSecond,
    /// IP bits forwarded per CPU-second of the machine, of `throughput`, `mrr` and `loss-curve`.
    IpBitsPerCpuSecond,
    /// Median round-trip time of `ping`, latency of frames under a load, or time of a set-up of
    /// IKEv2 at a fixed rate, in nanoseconds.
    LatencyP50,
    /// 99th percentile of the same, in nanoseconds.
    LatencyP99,
    /// Longest burst without loss, of `back-to-back`, in frames.
    Burst,
    /// From the end of an overload to the last loss, of `recovery`, in nanoseconds.
    Recovery,
}

impl Quantity {
    /// All.
    pub const ALL: [Self; 12] = [
        Self::PayloadThroughput,
        Self::ObjectThroughput,
        Self::FrameRate,
        Self::Transactions,
        Self::SetUps,
        Self::Operations,
        Self::PayloadBitsPerCpuSecond,
        Self::IpBitsPerCpuSecond,
        Self::LatencyP50,
        Self::LatencyP99,
        Self::Burst,
        Self::Recovery,
    ];

    /// In tables and gates. Quantities of different kinds of trial share a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::PayloadThroughput | Self::ObjectThroughput | Self::FrameRate => "throughput",
            Self::Transactions => "transactions",
            Self::SetUps => "set-ups",
            Self::Operations => "operations",
            Self::PayloadBitsPerCpuSecond | Self::IpBitsPerCpuSecond => "efficiency",
            Self::LatencyP50 => "p50",
            Self::LatencyP99 => "p99",
            Self::Burst => "burst",
            Self::Recovery => "recovery",
        }
    }

    /// Key of a value in exports, with its unit.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::PayloadThroughput => "payload_throughput_bps",
            Self::ObjectThroughput => "object_throughput_bps",
            Self::FrameRate => "frames_per_s",
            Self::Transactions => "transactions_per_s",
            Self::SetUps => "set_ups_per_s",
            Self::Operations => "operations_per_s",
            Self::PayloadBitsPerCpuSecond => "payload_bits_per_cpu_s",
            Self::IpBitsPerCpuSecond => "ip_bits_per_cpu_s",
            Self::LatencyP50 => "latency_p50_ns",
            Self::LatencyP99 => "latency_p99_ns",
            Self::Burst => "burst_frames",
            Self::Recovery => "recovery_ns",
        }
    }

    /// Whether more is better.
    #[must_use]
    pub const fn higher_is_better(self) -> bool {
        !self.is_time()
    }

    /// Whether it is in nanoseconds.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(self, Self::LatencyP50 | Self::LatencyP99 | Self::Recovery)
    }

    /// A value for people: `7.11 Gbit/s`.
    #[must_use]
    pub fn print(self, value: f64) -> String {
        use units::human::{bit_rate, duration_ns, frame_rate, number};
        match self {
            Self::PayloadThroughput | Self::ObjectThroughput => bit_rate(value),
            Self::FrameRate => frame_rate(value),
            Self::Transactions | Self::SetUps | Self::Operations => format!("{}/s", number(value)),
            Self::PayloadBitsPerCpuSecond | Self::IpBitsPerCpuSecond => {
                format!("{} per CPU", bit_rate(value))
            }
            Self::LatencyP50 | Self::LatencyP99 | Self::Recovery => duration_ns(value),
            Self::Burst => format!("{} frames", number(value)),
        }
    }

    /// Two values in one unit and with equal decimals, the smaller one with this many significant
    /// digits: `7.11` and `6.84`, `Gbit/s`.
    #[must_use]
    pub fn print_pair(self, values: [f64; 2], digits: usize) -> Pair {
        use units::human::pair;
        let with = |of: Pair, suffix: &str| Pair {
            unit: format!("{}{suffix}", of.unit),
            ..of
        };
        match self {
            Self::PayloadThroughput | Self::ObjectThroughput => {
                pair(values, Scales::BitRate, digits)
            }
            Self::FrameRate => pair(values, Scales::FrameRate, digits),
            Self::Transactions | Self::SetUps | Self::Operations => {
                with(pair(values, Scales::Number, digits), "per s")
            }
            Self::PayloadBitsPerCpuSecond | Self::IpBitsPerCpuSecond => {
                with(pair(values, Scales::BitRate, digits), " per CPU")
            }
            Self::LatencyP50 | Self::LatencyP99 | Self::Recovery => {
                pair(values, Scales::Time, digits)
            }
            Self::Burst => with(pair(values, Scales::Number, digits), "frames"),
        }
    }
}

/// A quantity of a cell over its repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The quantity.
    pub quantity: Quantity,
    /// Of latency under several loads: the load in per cent of the throughput; 0 is the lowest one.
    pub load_percent: Option<u8>,
    /// Of latency under several loads, and of frame rates: the path. Without clocks that agree,
    /// trials between two hosts fall back to round trips, which take longer than one way, and load
    /// both ways.
    pub path: Option<LatencyPath>,
    /// The figure.
    pub value: Estimate,
    /// Of a search: the relevant upper bound. The true value is between the figure and this.
    pub upper: Option<Estimate>,
    /// Of a search: no upper bound is known, so the true value is the figure or any above it.
    pub is_open: bool,
}

impl Reading {
    /// A figure without a load, and without the bounds of a search.
    #[must_use]
    pub const fn new(quantity: Quantity, value: Estimate) -> Self {
        Self {
            quantity,
            load_percent: None,
            path: None,
            value,
            upper: None,
            is_open: false,
        }
    }

    /// The geometric mean of the repeats, of which changes are ratios; `None` if one is not above
    /// 0.
    #[must_use]
    pub fn geometric_mean(&self) -> Option<f64> {
        let logs = self.value.values.iter().map(|repeat| repeat.value.ln());
        let mean = logs.sum::<f64>() / f64::from(self.value.n);
        // The logarithm of 0 is infinite, that of a negative value is no number.
        mean.is_finite().then(|| mean.exp())
    }
}

impl RankedBy {
    /// The same quantity in comparisons, with the load that it is measured under.
    #[must_use]
    pub const fn quantity(self) -> (Quantity, Option<u8>) {
        match self {
            Self::PayloadThroughput => (Quantity::PayloadThroughput, None),
            Self::RoundTripP50 => (Quantity::LatencyP50, None),
            Self::FrameRate => (Quantity::FrameRate, None),
            Self::LatencyP50 | Self::ReflectedP50 => (Quantity::LatencyP50, Some(0)),
            Self::PayloadBitsPerCpuSecond => (Quantity::PayloadBitsPerCpuSecond, None),
            Self::IpBitsPerCpuSecond => (Quantity::IpBitsPerCpuSecond, None),
        }
    }

    /// Returns the quantity with the bounds of its search.
    pub(crate) fn reading(self, cell: &CellResult) -> Option<Reading> {
        let value = self.of(cell)?;
        let searched = match self {
            Self::FrameRate => cell.frame_rate_reading(),
            _ => None,
        };
        let (quantity, load_percent) = self.quantity();
        Some(Reading {
            load_percent,
            is_open: searched.as_ref().is_some_and(|found| found.is_open),
            upper: searched.and_then(|found| found.upper),
            ..Reading::new(quantity, value)
        })
    }
}

impl CellResult {
    /// Its quantities that can be compared with the same cell in another run; empty without a
    /// figure, and for events, services, soaks and known answers.
    #[must_use]
    pub fn readings(&self) -> Vec<Reading> {
        // By the rule of rankings, so that a ranking and a comparison of runs read one figure.
        let ranked = [
            RankedBy::PayloadThroughput,
            RankedBy::PayloadBitsPerCpuSecond,
            RankedBy::IpBitsPerCpuSecond,
        ];
        let ranked = ranked.into_iter().filter_map(|by| by.reading(self));
        let mut found: Vec<Reading> = ranked.collect();
        let mut add = |quantity, value: Option<&Estimate>| {
            found.extend(value.map(|value| Reading::new(quantity, value.clone())));
        };
        let http = self.http();
        add(
            Quantity::ObjectThroughput,
            http.map(|http| &http.object_throughput_bps),
        );
        add(
            Quantity::Transactions,
            http.map(|http| &http.transactions_per_s),
        );
        // The times of a search are those at its highest rate, which two devices do not share.
        let set_ups = self.ike().filter(|ike| !ike.is_searched);
        add(Quantity::SetUps, set_ups.map(|ike| &ike.completed_per_s));
        let times = |of: fn(&IkeFigures) -> Option<&Estimate>| set_ups.and_then(of);
        add(Quantity::LatencyP50, times(|ike| ike.p50_ns.as_ref()));
        add(Quantity::LatencyP99, times(|ike| ike.p99_ns.as_ref()));
        let device = self.device().and_then(|device| device.speed());
        add(
            Quantity::Operations,
            device.map(|speed| &speed.operations_per_s),
        );
        let times = self.latency();
        add(Quantity::LatencyP50, times.map(|times| &times.p50_ns));
        add(
            Quantity::LatencyP99,
            times.and_then(|times| times.p99_ns.as_ref()),
        );
        let frames = self.frames();
        let burst = frames.and_then(|frames| frames.back_to_back());
        add(Quantity::Burst, burst.map(|found| &found.burst_frames));
        let recovery = frames.and_then(|frames| frames.recovery());
        add(
            Quantity::Recovery,
            recovery.and_then(|found| found.recovery_ns.as_ref()),
        );
        found.extend(self.frame_rate_reading());
        found.extend(self.set_up_rate_reading());
        found.extend(self.latency_readings());
        found
    }

    /// Its quantities under one key each, for exports: of latencies over two paths, which have one
    /// key, the first.
    #[must_use]
    pub fn exported(&self) -> Vec<Reading> {
        let mut found: Vec<Reading> = Vec::new();
        let key = |reading: &Reading| (reading.quantity.key(), reading.load_percent);
        for reading in self.readings() {
            if !found.iter().any(|known| key(known) == key(&reading)) {
                found.push(reading);
            }
        }
        found
    }

    fn frame_rate_reading(&self) -> Option<Reading> {
        let frames = self.frames()?;
        let goal = frames
            .throughput
            .as_ref()
            .and_then(|found| found.goals.first());
        let upper = goal.and_then(|goal| goal.upper.as_ref());
        let upper = upper.map(|rates| rates.frames_per_s.clone());
        let value = frames.frame_rate()?.clone();
        let is_open = frames.is_only_lower_bound();
        Some(Reading {
            // Without one, the line rate is the bound.
            upper: upper.or_else(|| goal.filter(|_| !is_open).map(|_| value.clone())),
            is_open,
            path: Some(if frames.is_reflected {
                LatencyPath::RoundTrip
            } else {
                LatencyPath::OneWay
            }),
            ..Reading::new(Quantity::FrameRate, value)
        })
    }

    /// The highest rate of set-ups, between the bounds of its search.
    fn set_up_rate_reading(&self) -> Option<Reading> {
        let ike = self.ike().filter(|ike| ike.is_searched)?;
        Some(Reading {
            upper: ike.refused_per_s.clone(),
            is_open: ike.refused_per_s.is_none(),
            ..Reading::new(Quantity::SetUps, ike.offered_per_s.clone())
        })
    }

    /// Latency under the loads of `latency`. Other procedures measure latency under a load that
    /// depends on the device, so two runs have no common load.
    fn latency_readings(&self) -> Vec<Reading> {
        let loads = self.frames().map_or(&[][..], |frames| &frames.latency);
        let of_load = |load: &LoadLatency, quantity, value: &Estimate| Reading {
            load_percent: load.percent,
            path: Some(load.path()),
            ..Reading::new(quantity, value.clone())
        };
        loads
            .iter()
            .filter(|load| load.percent.is_some())
            .flat_map(|load| {
                let p99 = load.p99_each_ns.as_ref();
                let p50 = of_load(load, Quantity::LatencyP50, &load.p50_each_ns);
                let p99 = p99.map(|value| of_load(load, Quantity::LatencyP99, value));
                std::iter::once(p50).chain(p99)
            })
            .collect()
    }
}

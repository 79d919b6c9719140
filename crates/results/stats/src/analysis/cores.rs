//! Cores that a cell needs, and whether its stations and its device had them.

use crate::figures::bulk::CpuResult;
use crate::figures::estimate::Estimate;
use plan::{Cell, Direction, Measurement};

/// A station that uses at least this share of its cores has no idle time.
const FULL_RATIO: f64 = 0.95;

/// Cores that the tools and the DUT of a cell would use without sharing.
pub(crate) fn cores_wanted(cell: &Cell) -> u32 {
    // Crypto devices have no stations, and are meant to work in parallel beyond the number of
    // cores.
    let Some(stations) = cell.stations else {
        return 0;
    };
    // With one loaded gateway, a station replaces the other one.
    let gateways = match &cell.measurement {
        Measurement::Frames(test) if test.traffic.direction != Direction::Both => 1,
        _ => 2,
    };
    2 * u32::from(stations.cores) + gateways * cell.dut.adapter.profile().gateway_cores
}

/// Why a figure is one of the whole machine, and not of the device alone. The only rule for this:
/// verdicts of frame tests, claims and series of scaling share it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Contention {
    /// Stations and device take time from one another.
    Shared {
        /// Cores that they want.
        wanted: u32,
        /// Cores of the machine.
        cpus: u32,
    },
    /// A station had no idle time.
    Full {
        /// `A` sends, `B` receives.
        station: char,
        /// Cores that it kept busy.
        busy: f64,
        /// Cores that it could use.
        cores: u16,
    },
}

impl Contention {
    /// `cpus`: cores of the machine, 0 if unknown; `cpu`: the busy CPU time; `streams`: of a tool
    /// that cannot use more cores than it has streams.
    pub(crate) fn of(
        cpus: u32,
        planned: &Cell,
        cpu: Option<&CpuResult>,
        streams: Option<u16>,
    ) -> Option<Self> {
        let wanted = cores_wanted(planned);
        // Shared cores come first: they follow from the plan alone, without any reading.
        if cpus > 0 && wanted > cpus {
            return Some(Self::Shared { wanted, cpus });
        }
        // One request at a time leaves a station idle; spinning between requests is not work.
        if matches!(planned.measurement, Measurement::Ping { .. }) {
            return None;
        }
        // A tool drives each stream from one thread, so that further cores stay idle.
        let cores = planned.stations?.cores.min(streams.unwrap_or(u16::MAX));
        let full = |(station, busy): &(char, &Estimate)| {
            (busy.mean >= FULL_RATIO * f64::from(cores)).then_some(Self::Full {
                station: *station,
                busy: busy.mean,
                cores,
            })
        };
        let cpu = cpu?;
        [('A', &cpu.station_a_cores), ('B', &cpu.station_b_cores)]
            .iter()
            .find_map(full)
    }

    /// Whether stations and device take time from one another.
    pub(crate) const fn is_shared(&self) -> bool {
        matches!(self, Self::Shared { .. })
    }

    /// A clause with the numbers.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Shared { wanted, cpus } => format!(
                "stations and device want {wanted} cores of a machine that has {cpus}: they take \
                 time from one another"
            ),
            Self::Full {
                station,
                busy,
                cores,
            } => {
                let role = match station {
                    'A' => "generator",
                    _ => "receiver",
                };
                format!(
                    "station {station}, the {role}, had no idle time: {busy:.2} of {cores} cores busy"
                )
            }
        }
    }
}

//! Cores that a cell needs, and whether its stations and its device had them.

use crate::figures::bulk::CpuResult;
use crate::figures::estimate::Estimate;
use journal::record::{Environment, Header};
use plan::{Cell, Direction, HostName, LabPlan, Measurement};

/// A station that uses at least this share of its cores has no idle time.
const FULL_RATIO: f64 = 0.95;

/// A machine that stations and gateways are on.
#[derive(Clone, Copy)]
pub(crate) struct Machine<'j> {
    /// Its name in a lab of two hosts; `None`: the machine of the run.
    pub(crate) host: Option<HostName>,
    pub(crate) environment: &'j Environment,
}

/// The machines that measure in a lab, as far as the record of a start or a resume describes them.
///
/// A run in a lab of two hosts may be on a third machine, which measures nothing. So hosts that the
/// record does not describe are left out, and nothing is judged by the machine of the run instead.
pub(crate) fn machines<'j>(
    lab: &LabPlan,
    environment: &'j Environment,
) -> impl Iterator<Item = Machine<'j>> + use<'j> {
    // The names of a lab, not the keys of the record: a changed journal may have more of them.
    let names = match lab.hosts {
        Some(_) => HostName::ALL.map(Some).to_vec(),
        None => vec![None],
    };
    names.into_iter().filter_map(|host| {
        let environment = match host {
            Some(name) => environment.hosts.get(name.name())?,
            None => environment,
        };
        Some(Machine { host, environment })
    })
}

/// The machines of a run at its start.
pub(crate) fn machines_of(header: &Header) -> impl Iterator<Item = Machine<'_>> {
    machines(&header.plan.lab, &header.environment)
}

impl Machine<'_> {
    /// Cores that the tools and the DUT of a cell would use on it without sharing.
    pub(crate) fn cores_wanted(&self, cell: &Cell) -> u32 {
        // Crypto devices have no stations, and are meant to work in parallel beyond the number of
        // cores.
        let Some(stations) = cell.stations else {
            return 0;
        };
        let direction = match &cell.measurement {
            Measurement::Frames(test) => test.traffic.direction,
            _ => Direction::Both,
        };
        // With one loaded gateway, a station replaces the other one, on the same host.
        let (gw1, gw2) = match direction {
            Direction::Encrypt => (1, 0),
            Direction::Decrypt => (0, 1),
            Direction::Both => (1, 1),
        };
        // Stations and gateways take time only from those on the same machine.
        let (ends, gateways) = match self.host {
            Some(HostName::A) => (1, gw1),
            Some(HostName::B) => (1, gw2),
            None => (2, gw1 + gw2),
        };
        ends * u32::from(stations.cores) + gateways * cell.dut.adapter.profile().gateway_cores
    }

    /// `this machine`, `host a`.
    pub(crate) fn name(&self) -> String {
        self.host.map_or_else(
            || "this machine".into(),
            |host| format!("host {}", host.name()),
        )
    }
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
        /// The machine, in a lab of two hosts.
        host: Option<HostName>,
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
    /// `cpu`: the busy CPU time; `streams`: of a tool that cannot use more cores than it has
    /// streams.
    pub(crate) fn of(
        header: &Header,
        planned: &Cell,
        cpu: Option<&CpuResult>,
        streams: Option<u16>,
    ) -> Option<Self> {
        // Shared cores come first: they follow from the plan alone, without any reading.
        let shared = machines_of(header).find_map(|machine| {
            let (wanted, cpus) = (machine.cores_wanted(planned), machine.environment.cpus);
            // 0 means that the number could not be read.
            (cpus > 0 && wanted > cpus).then_some(Self::Shared {
                wanted,
                cpus,
                host: machine.host,
            })
        });
        if shared.is_some() {
            return shared;
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
            Self::Shared { wanted, cpus, host } => format!(
                "stations and device want {wanted} cores of {} {cpus}: they take time from one \
                 another",
                match host {
                    Some(host) => format!("host {}, which has", host.name()),
                    None => "a machine that has".to_owned(),
                }
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

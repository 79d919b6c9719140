//! The thread that reads one box or one machine.

use super::query::TimedAnswers;
use super::series::SeriesBuilder;
use super::{Answer, BoxCommand, Count, Queries, rapl};
use journal::record::MonitoredDevice;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use plan::{Reading, ReadingKind, Source};
use std::time::{Duration, Instant};
use testbed::protocol::{EnergyZone, Request, Response};
use testbed::{Interrupt, Node, Poller, Result, TrafficLog};

/// Interval of energy counters, which cost a read of a file each.
const ENERGY_INTERVAL: Duration = Duration::from_millis(250);
/// Microjoules in a joule, as the inverse in millionths.
const JOULES_PPM: u64 = 1;

/// A box or a machine with its readings.
pub(crate) struct DevicePoller<'a> {
    name: String,
    is_machine: bool,
    interval: Duration,
    readings: Vec<Reading>,
    readers: Vec<Reader<'a>>,
    /// The CPUs that it may use; `None`: all.
    cpus: Option<CpuSet>,
}

/// One way to read values, each by its number among the readings.
pub(crate) enum Reader<'a> {
    Command(usize, BoxCommand<'a>),
    Queries(Queries),
    Energy(Energy<'a>),
}

/// The energy counters of a machine as one.
pub(crate) struct Energy<'a> {
    node: &'a dyn Node,
    folder: String,
    zones: Vec<Count>,
}

impl<'a> DevicePoller<'a> {
    /// A box of that name.
    pub(crate) const fn of_box(
        name: String,
        interval: Duration,
        readings: Vec<Reading>,
        readers: Vec<Reader<'a>>,
    ) -> Self {
        Self {
            name,
            is_machine: false,
            interval,
            readings,
            readers,
            cpus: None,
        }
    }

    /// The machine of a node; `None` if it has no energy counters. `folder` contains them, in the
    /// kernel's file system.
    pub(crate) fn of_machine(
        name: String,
        node: &'a dyn Node,
        folder: &str,
    ) -> Result<Option<Self>> {
        let mut energy = Energy {
            node,
            folder: folder.to_owned(),
            zones: Vec::new(),
        };
        let zones = energy.zones()?;
        energy.zones = vec![Count::default(); zones.len()];
        let power = Reading {
            name: "power".to_owned(),
            kind: ReadingKind::Power,
            unit: "W".to_owned(),
            scale_ppm: JOULES_PPM,
            // Never run: the only reader of a machine reads its counters.
            source: Source::Command(String::new()),
        };
        Ok((!zones.is_empty()).then(|| Self {
            name,
            is_machine: true,
            interval: ENERGY_INTERVAL,
            readings: vec![power],
            readers: vec![Reader::Energy(energy)],
            cpus: None,
        }))
    }

    /// The box's or machine's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Moves the readings off the busy CPUs, positions among the CPUs that this program may use, if
    /// any other remains.
    pub(crate) fn beside(mut self, busy: &[u16]) -> Self {
        let (cpus, positions) = free_cpus(busy);
        for reader in &mut self.readers {
            if let Reader::Command(_, command) = reader {
                command.program.cores.clone_from(&positions);
            }
        }
        self.cpus = cpus;
        self
    }

    /// Reads every value once.
    ///
    /// # Errors
    /// The first value that could not be read: its name and why.
    pub(crate) fn check(&mut self) -> Result<(), (String, String)> {
        let never = Interrupt::new();
        let mut first_error = None;
        for reader in &mut self.readers {
            reader.read(&never, |found| {
                for (number, answer) in found.answers {
                    let reading = &self.readings[number];
                    let value = answer.and_then(|answer| match reading.kind {
                        ReadingKind::Counter => answer.count().map(drop),
                        _ => answer.milli(reading.scale_ppm).map(drop),
                    });
                    if let Err(error) = value {
                        first_error.get_or_insert((reading.name.clone(), error));
                    }
                }
            });
            if let Some(error) = first_error {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Reads every value. Returns the CPU time of commands.
    fn round(&mut self, log: &TrafficLog, series: &mut [SeriesBuilder]) -> u64 {
        let mut commands_ns = 0;
        for reader in &mut self.readers {
            if log.over().is_set() {
                break;
            }
            commands_ns += reader.read(log.over(), |TimedAnswers { from, to, answers }| {
                let load = |since| log.load(since, to);
                for (number, answer) in answers {
                    // A reading that failed because the trial ended is no gap.
                    if answer.is_ok() || !log.over().is_set() {
                        series[number].add(log.at_ns(from), (from, to), answer, load);
                    }
                }
            });
        }
        commands_ns
    }
}

impl Poller for DevicePoller<'_> {
    fn run(mut self: Box<Self>, log: &TrafficLog) -> MonitoredDevice {
        if let Some(cpus) = &self.cpus {
            // A CPU may be offline by now; the thread then runs on any CPU.
            let _ = sched_setaffinity(Pid::from_raw(0), cpus);
        }
        let began_ns = thread_cpu_ns();
        let is_rate = self.is_machine;
        let readings = self.readings.iter();
        let mut series: Vec<_> = readings
            .map(|reading| SeriesBuilder::new(reading, self.interval, is_rate))
            .collect();
        let (mut due, mut seen, mut commands_ns) = (Instant::now(), 0, 0);
        while log.wait(due, self.interval, &mut seen) {
            let from = Instant::now();
            commands_ns += self.round(log, &mut series);
            // From the beginning of the round, so that slow answers do not stretch the interval.
            due = from + self.interval;
            // Zero while `due` is in the future, for which `elapsed` returns no time.
            let late = due.elapsed().as_nanos() / self.interval.as_nanos().max(1);
            // Skipped rounds count as missed, and the later ones stay on the grid of the interval.
            let missed = u32::try_from(late).unwrap_or(u32::MAX);
            if missed > 0 {
                let at_ns = log.at_ns(due);
                for series in &mut series {
                    series.miss(at_ns, missed.into(), LATE);
                }
                due += self.interval * missed;
            }
        }
        MonitoredDevice {
            name: self.name,
            is_machine: self.is_machine,
            interval_ns: u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX),
            cpu_ns: thread_cpu_ns().saturating_sub(began_ns) + commands_ns,
            series: series.into_iter().map(SeriesBuilder::build).collect(),
        }
    }
}

/// Why readings were not made in time.
const LATE: &str = "the readings before took longer than the interval";

impl Reader<'_> {
    /// Hands over the values as they come. Returns the CPU time of a command.
    fn read(&mut self, over: &Interrupt, mut put: impl FnMut(TimedAnswers)) -> u64 {
        let from = Instant::now();
        let mut put_one = |number, answer| {
            let to = Instant::now();
            let answers = vec![(number, answer)];
            put(TimedAnswers { from, to, answers });
        };
        match self {
            Self::Command(number, command) => match command.run(over) {
                Ok((answer, cpu_ns)) => {
                    put_one(*number, Ok(answer));
                    return cpu_ns;
                }
                Err(error) => put_one(*number, Err(error)),
            },
            Self::Energy(energy) => put_one(0, energy.read()),
            Self::Queries(queries) => {
                for found in queries.read() {
                    put(found);
                    if over.is_set() {
                        break;
                    }
                }
            }
        }
        0
    }
}

impl Energy<'_> {
    fn zones(&self) -> Result<Vec<EnergyZone>> {
        let folder = self.folder.clone();
        match self.node.call(Request::Energy { folder })? {
            Response::Energy(zones) => Ok(zones),
            other => Err(self.node.unexpected(&other)),
        }
    }

    /// Energy of all packages and their memory in microjoules.
    fn read(&mut self) -> Result<Answer, String> {
        let zones = self.zones().map_err(|error| error.to_string())?;
        if zones.len() != self.zones.len() {
            return Err("the machine's energy counters are not the same any more".to_owned());
        }
        let mut total = 0_u64;
        for (zone, count) in zones.iter().zip(&mut self.zones) {
            // A counter of unknown range that falls was reset: a wrap would add 2^64 microjoules,
            // and the sum would stay at its limit from then on, as if no more power were drawn.
            let range = Some(zone.range_uj).filter(|range| *range != rapl::UNKNOWN_RANGE);
            count.advance(zone.energy_uj, range)?;
            total = total.saturating_add(count.total());
        }
        Ok(Answer::Count(total))
    }
}

/// Returns this program's CPUs that are not at these positions, and their positions; `None` and an
/// empty list if no CPU remains.
fn free_cpus(busy: &[u16]) -> (Option<CpuSet>, Vec<u16>) {
    let Ok(own) = sched_getaffinity(Pid::from_raw(0)) else {
        return (None, Vec::new());
    };
    let present = (0..CpuSet::count()).filter(|&cpu| own.is_set(cpu).unwrap_or(false));
    let (mut cpus, mut positions) = (CpuSet::new(), Vec::new());
    for (position, cpu) in (0_u16..).zip(present) {
        // Positions, because programs of stations are assigned by them.
        if !busy.contains(&position) && cpus.set(cpu).is_ok() {
            positions.push(position);
        }
    }
    if positions.is_empty() {
        (None, positions)
    } else {
        (Some(cpus), positions)
    }
}

/// CPU time of this thread in nanoseconds.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use testbed::NodeId;

    /// A machine with one counter.
    struct Machine {
        energy_uj: AtomicU64,
        range_uj: u64,
    }

    impl Node for Machine {
        fn id(&self) -> NodeId {
            NodeId::A
        }

        fn call(&self, _: Request) -> Result<Response> {
            Ok(Response::Energy(vec![EnergyZone {
                energy_uj: self.energy_uj.load(Ordering::Relaxed),
                range_uj: self.range_uj,
                ..EnergyZone::default()
            }]))
        }
    }

    /// Reads the counter at these values.
    fn readings(range_uj: u64, values: &[u64]) -> Vec<Result<Answer, String>> {
        let machine = Machine {
            energy_uj: AtomicU64::new(0),
            range_uj,
        };
        let mut energy = Energy {
            node: &machine,
            folder: String::new(),
            zones: vec![Count::default()],
        };
        let read = |value: &u64| {
            machine.energy_uj.store(*value, Ordering::Relaxed);
            energy.read()
        };
        values.iter().map(read).collect()
    }

    #[test]
    fn a_counter_that_fell_has_wrapped_only_if_its_range_is_known() {
        let counts = |found: Vec<Result<Answer, String>>| -> Vec<Option<u64>> {
            let count = |found: Result<Answer, String>| Some(found.ok()?.count().ok()?.0);
            found.into_iter().map(count).collect()
        };
        let known = counts(readings(1000, &[900, 990, 40, 50]));
        assert_eq!(known, [Some(900), Some(990), Some(1040), Some(1050)]);
        let unknown = counts(readings(rapl::UNKNOWN_RANGE, &[900, 990, 40, 50]));
        assert_eq!(unknown, [Some(900), Some(990), None, Some(50)]);
    }
}

//! One frame test on a lab of stations.
//!
//! 1. Set the links and check that they carry the IP version; start the DUT; wait until earlier
//!    connections are closed.
//! 2. Carry out the procedure, trial by trial. A kernel filter sees every frame of the cipher link,
//!    and after each trial counters of links, queues, device and machine are read. Every node's
//!    settings are watched until the end, unless the procedure changes them itself.
//! 3. Make one more trial at the load of its figures, with samples of the cipher link and CPU time
//!    by role. If it does not confirm the figure, the search goes on, or further trials decide
//!    ([`super::confirm`]).
//! 4. Check whether a device outside of the lab still carries frames.
//! 5. Stop the DUT and make every check.

use super::carry_out;
use super::clocks::{self, HostClocks};
use super::confirm::take_evidence;
use super::evidence::{FrameObserved, FrameReadings, frame_checks};
use super::presence;
use super::procedure;
use super::receive_queues::ReceiveQueues;
use super::spec::FrameStream;
use super::station::{Sampled, StationRig};
use crate::command::{CommandError, Cores};
use crate::counters::offloads;
use crate::error::TrialError;
use crate::event::EventSink;
use crate::impaired::ImpairedPath;
use crate::measurer::{Trial, machines, with_dut};
use crate::path_readings::PathReadings;
use crate::quiet;
use crate::settings::{SettingsWatch, lost_tunnels};
use crate::watch::WatchPoint;
use journal::record::{Figures, Measured, Outcome};
use plan::{FrameTest, IpVersion, PortKind, Role, Traffic};
use testbed::{Bench, FramePath, Interrupt, LabError, NodeId, RunningDut, TrafficLog};

/// Makes a frame test.
pub(crate) fn attempt(
    bench: &mut dyn Bench,
    (trial, test): (&Trial<'_>, &FrameTest),
    events: EventSink<'_>,
    interrupt: &Interrupt,
    words: &mut Vec<Vec<String>>,
) -> Result<Outcome, TrialError> {
    let stations = trial.cell.stations.ok_or(CommandError::NoStations)?;
    // Mistakes of the campaign come first: they need no lab, and bringing a DUT up may take a
    // minute.
    expect_addresses(&test.traffic)?;
    bench.configure(trial.links)?;
    expect_ip(bench, trial, test.traffic.ip)?;
    // Read before the DUT adds interfaces.
    let link_ends: Vec<String> = offloads(bench)?.into_keys().collect();
    let cores = Cores::assign(stations.cores, machines(bench)?)?;
    with_dut(bench, trial, test.traffic.direction, |bench, dut| {
        let path = dut.frame_path.clone().ok_or_else(|| {
            TrialError::frames(format!(
                "`{}` has no interfaces where frames enter and leave; choose another measurement for it",
                trial.cell.dut.name
            ))
        })?;
        let impaired = ImpairedPath::begin(bench, trial, dut)?;
        let attempt = Attempt {
            bench,
            trial,
            test,
            link_ends: ends(link_ends, &path),
            path,
            cores,
            impaired: impaired.as_ref(),
            interrupt,
        };
        let measured = attempt.run(dut, events, words);
        measured.map_err(|error| match &impaired {
            Some(impaired) => impaired.explain(error),
            None => error,
        })
    })
}

/// Checks that the links carry the IP version. Its error is one sentence, as a reason must be.
fn expect_ip(bench: &dyn Bench, trial: &Trial<'_>, version: IpVersion) -> Result<(), TrialError> {
    bench
        .check_ip(version, trial.links)
        .map_err(|error| match error {
            LabError::CannotBuild { what, help } => TrialError::frames(format!("{what}: {help}")),
            other => other.into(),
        })
}

/// Checks the addresses of sockets: their headers come from the kernel, with the addresses of the
/// lab's interfaces.
fn expect_addresses(traffic: &Traffic) -> Result<(), TrialError> {
    let socket = Some(PortKind::Socket);
    let sockets = traffic.ports.tx == socket || traffic.ports.rx == socket;
    if sockets && traffic.ip == IpVersion::V6 {
        return Err(TrialError::frames(
            "plain sockets carry IPv4 only in this lab: write `ip: 4`, or `ports: packet`",
        ));
    }
    Ok(())
}

/// Adds the path's ends, which belong to the DUT if that is a link itself.
fn ends(mut link_ends: Vec<String>, path: &FramePath) -> Vec<String> {
    for end in [&path.source, &path.sink] {
        let name = format!("{}/{}", end.node.name(), end.interface);
        if !link_ends.contains(&name) {
            link_ends.push(name);
        }
    }
    link_ends
}

/// A frame test on a running path.
struct Attempt<'a> {
    bench: &'a dyn Bench,
    trial: &'a Trial<'a>,
    test: &'a FrameTest,
    path: FramePath,
    link_ends: Vec<String>,
    cores: Cores,
    impaired: Option<&'a ImpairedPath<'a>>,
    interrupt: &'a Interrupt,
}

impl Attempt<'_> {
    /// Measures while the DUT is monitored.
    fn run(
        &self,
        dut: &mut RunningDut,
        events: EventSink<'_>,
        words: &mut Vec<Vec<String>>,
    ) -> Result<(Measured, Option<String>), TrialError> {
        // The monitor's programs run on other CPUs, if there are any.
        let busy = [&self.cores.a[..], &self.cores.b].concat();
        let monitor = self.bench.monitor(dut, &busy)?;
        let (found, monitored) = monitor.during(|log| self.measure(dut, log, events, words));
        let (measured, objection) = found?;
        let measured = Measured {
            monitored,
            ..measured
        };
        Ok((measured, objection))
    }

    fn measure(
        &self,
        dut: &mut RunningDut,
        log: &TrafficLog,
        events: EventSink<'_>,
        words: &mut Vec<Vec<String>>,
    ) -> Result<(Measured, Option<String>), TrialError> {
        let offloads_before = offloads(self.bench)?;
        quiet::await_quiet(self.bench, self.interrupt)?;
        // Clocks are compared on a quiet path, before any frame is sent: a queue on the way would
        // widen the bounds.
        let has_two_clocks = clocks::are_two(self.bench, &self.path)?;
        self.expect_one_clock_where_needed(has_two_clocks)?;
        let clocks =
            has_two_clocks.then(|| HostClocks::compared(self.bench, &self.path, self.interrupt));
        let clocks = clocks.transpose()?;
        if let Some(clocks) = &clocks {
            let stamps = clocks.stamps_in_words()?;
            dut.facts.insert("tester/clock-stamps".to_owned(), stamps);
        }
        // Held until the end of this function: dropping them restores the cards.
        let queues = self.divide_receive_queues()?;
        dut.facts.extend(queues.iter().map(|(name, queues)| {
            let fact = format!("tester/receive-queues-{name}");
            (fact, queues.in_words.clone())
        }));
        let markers = self.markers();
        let beside_station = [&self.path.source, &self.path.sink]
            .iter()
            .any(|end| matches!(end.node, NodeId::Gw1 | NodeId::Gw2));
        let look = self
            .watched_gateway()
            .and_then(|gateway| WatchPoint::at(self.bench, gateway, beside_station, &markers));
        // A disturbance is a change.
        let is_disturbed = self.test.procedure.event().is_some();
        let settings = (!is_disturbed).then(|| SettingsWatch::start(self.bench, false));
        let settings = settings.transpose()?;
        let mut rig = StationRig::new(
            self.bench,
            dut,
            (self.trial.cell, &self.test.traffic),
            &self.path,
            (self.cores.clone(), self.trial.links.rate_bps),
            (look, log),
            clocks,
        )?;
        let mut found = carry_out(self.trial, self.test, &mut rig, events, self.interrupt)?;
        take_evidence(&mut found, self.test, &mut rig, self.interrupt)?;
        // Nothing else shows the end of an external device. After a disturbance, the figure itself
        // has whether frames came again.
        if rig.dut().elsewhere && !is_disturbed {
            let name = &self.trial.cell.dut.name;
            presence::expect_carries(name, &mut rig, &found.evidence_load, self.interrupt)?;
        }
        // A procedure that asks for latency has no figure without it.
        if !procedure::of(&self.test.procedure).needs_latency() {
            found.result.latency.retain(|latency| !latency.is_inexact());
        }
        // Of the trial with the evidence only: a search makes hundreds of them with other loads.
        words.extend(rig.commands());
        let sampled = rig.sampled.take();
        let Sampled {
            before,
            after,
            seen,
        } = sampled.expect("the trial with the evidence is sampled");
        let mut readings = PathReadings {
            look,
            offloads: offloads_before.clone(),
            before,
            watch: rig.watched.clone(),
            after,
            seen,
            settings: None,
            impaired: None,
        };
        if let Some(settings) = settings {
            let after = offloads(self.bench)?;
            let mut settings = settings.end_of_frames(&offloads_before, &after)?;
            settings.changes.extend(lost_tunnels(self.bench)?);
            readings.settings = Some(settings);
        }
        readings.impaired = self.impaired.map(ImpairedPath::end).transpose()?;
        let mut evidence = readings.evidence(rig.dut());
        let observed = FrameObserved {
            test: self.test,
            result: &found.result,
            strays: &found.strays,
            seen: Some(FrameReadings {
                path: readings.observed(self.trial, &self.link_ends, &evidence),
                ends: &self.path,
                cores: &self.cores,
            }),
        };
        let (checks, lost_at) = (frame_checks(&observed), observed.lost_at());
        (evidence.checks, evidence.lost_at) = (checks, lost_at);
        let measured = Measured {
            figures: Figures::Frames(Box::new(found.result)),
            cpu: readings.seen.cpu,
            evidence,
            ..Measured::default()
        };
        Ok((measured, found.objection))
    }

    /// Gives each thread of a receiver by AF_XDP a receive queue: cards must use these and no
    /// others, until the result is dropped.
    fn divide_receive_queues(&self) -> Result<Vec<(&'static str, ReceiveQueues<'_>)>, LabError> {
        if self.test.traffic.ports.rx != Some(PortKind::Xdp) {
            return Ok(Vec::new());
        }
        let threads = self
            .trial
            .cell
            .stations
            .map_or(1, |stations| stations.cores);
        let ends = [&self.path.source, &self.path.sink].map(|end| (end.node, &*end.interface));
        let cards = self.bench.cards().into_iter();
        // Only cards at the ends of the frames' path: other ones have no AF_XDP port.
        let cards = cards.filter(|card| ends.contains(card));
        cards
            .map(|(id, interface)| {
                let node = self.bench.node(id);
                let divided = ReceiveQueues::divide(node, interface, threads)?;
                Ok((id.name(), divided))
            })
            .collect()
    }

    /// A disturbance and a soak relate times of this program to times of the stations.
    fn expect_one_clock_where_needed(&self, has_two: bool) -> Result<(), TrialError> {
        if has_two && procedure::of(&self.test.procedure).compares_times() {
            Err(TrialError::frames(
                "this trial compares the times of events with those of frames, and the stations are on hosts with two \
                 clocks: measure it with both stations on one host",
            ))
        } else {
            Ok(())
        }
    }

    /// Byte strings that the frames of the first tunnel show in clear.
    fn markers(&self) -> Vec<Vec<u8>> {
        let way = FrameStream {
            cell: self.trial.cell,
            traffic: &self.test.traffic,
            path: self.path.clone(),
        };
        way.markers()
    }

    /// Returns the gateway at the watched end of the cipher link, the end at which the DUT's kernel
    /// sends or receives. Frames of a station in a gateway's place bypass its kernel and are not
    /// visible there.
    fn watched_gateway(&self) -> Option<NodeId> {
        let role = self.trial.cell.dut.adapter.profile().role;
        match (role, self.path.source.node) {
            (Role::Rig, _) => None,
            (_, NodeId::Gw1) => Some(NodeId::Gw2),
            _ => Some(NodeId::Gw1),
        }
    }
}

//! Frame trials with a disturbance of the DUT: actions at their times, and hostile packets from a
//! third program, on gw1.

use super::{Running, StationRig, report};
use crate::disturbance::{HostileLoad, PlannedAction, PlannedDisturbance};
use crate::error::TrialError;
use crate::evidence::counted_since;
use crate::frames::outage::{Bins, ExecutedAction, bins_for};
use crate::frames::points::bins_of;
use crate::frames::{FrameRun, RigLoad};
use journal::record::{AttackTrial, Disturbance};
use plan::{Attack, Form};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use testbed::protocol::Program;
use testbed::{DutAction, Interrupt, NodeId};
use traffic_spec::{AttackKind, Clock, Monotonic, Report, Role, SealedForm, Spec};

impl StationRig<'_> {
    /// Makes a trial with a disturbance.
    pub(super) fn disturb(
        &mut self,
        load: &RigLoad,
        planned: &PlannedDisturbance,
        interrupt: &Interrupt,
    ) -> Result<(FrameRun, Disturbance), TrialError> {
        let bins = bins_for(load.duration_ns);
        let load = RigLoad {
            bins: Some(bins),
            ..*load
        };
        // The device's counters are compared with the measurement.
        let is_counted = |planned: &PlannedAction| matches!(planned.action, DutAction::Desync(_));
        let is_counted = planned.actions.iter().any(is_counted);
        let before = is_counted.then(|| self.bench.dut_counters(self.dut));
        let before = before.transpose()?;
        let mut running = self.start(&load, planned.hostile.as_ref())?;
        running.restarts = planned.actions.iter().any(|it| restarts(it.action));
        running.exposed = planned.exposed;
        // The load runs in other processes, so an action that takes seconds does not delay frames.
        let (done, mut identities) = self.carry_out(&running, &planned.actions, interrupt)?;
        let reports = self.collect(&mut running, interrupt)?;
        if !identities.is_empty() {
            // The identity of the processes that the last reset has started.
            identities.push(self.bench.dut_identity(self.dut, NodeId::Gw2)?);
        }
        let attack = match (planned.hostile, running.attacker) {
            (Some(hostile), Some(attacker)) => {
                let late = Instant::now() + ATTACKER_LIMIT;
                let line = self.await_report_or_stop(attacker, late)?;
                let attacked = report(&mut running.tools, attacker, line)?.attacked;
                let attacked = attacked.unwrap_or_default();
                Some(AttackTrial {
                    percent: hostile.percent,
                    sent: attacked.sent,
                    elapsed_ns: attacked.elapsed_ns,
                })
            }
            _ => None,
        };
        let bins = self.bins(&load, bins.width_ns, &reports);
        let run = self.leave(running, &reports)?;
        let mut events = bins.events(&done);
        bins.complete_resets(&mut events, &done, &identities);
        let disturbance = Disturbance {
            // The caller knows the trial's place in the result.
            trial: 0,
            events,
            attack,
            timeline: bins.timeline(),
            histogram: run.latency.clone(),
            dut_counters: match before {
                Some(before) => counted_since(&self.bench.dut_counters(self.dut)?, &before),
                None => BTreeMap::new(),
            },
        };
        Ok((run, disturbance))
    }

    /// Carries out the planned actions, each at its time or, if that has passed, immediately; none
    /// begins after the load. Returns also the identity, just before each reset, of the processes
    /// that it was to restart.
    fn carry_out(
        &mut self,
        running: &Running<'_>,
        actions: &[PlannedAction],
        interrupt: &Interrupt,
    ) -> Result<(Vec<ExecutedAction>, Vec<Vec<String>>), TrialError> {
        let clock = Monotonic::new();
        let end = running.started + running.load.time();
        let mut done = Vec::with_capacity(actions.len());
        let mut identities = Vec::new();
        let mut last_done = running.started;
        for planned in actions {
            let at = running.started + Duration::from_nanos(planned.at_ns);
            // An action that took long moves the following ones, so that the pause is kept in any
            // case.
            let at = at.max(last_done + Duration::from_nanos(planned.pause_ns));
            self.sleep_until(running, at.min(end), interrupt)?;
            if Instant::now() >= end {
                break;
            }
            // Right before the reset: an earlier reading could be of a process that has ended by
            // itself since.
            if let DutAction::Reset(on, _) = planned.action {
                identities.push(self.bench.dut_identity(self.dut, on)?);
            }
            // The clock of the bins, which `Instant` does not show.
            let at_ns = clock.now_ns();
            self.bench.act(self.dut, planned.action)?;
            done.push(ExecutedAction {
                name: name(planned.action),
                at_ns,
                took_ns: clock.now_ns() - at_ns,
            });
            last_done = Instant::now();
        }
        Ok((done, identities))
    }

    /// Carries out actions one after the other. Returns their total duration in nanoseconds.
    pub(super) fn act_now(&mut self, actions: &[DutAction]) -> Result<u64, TrialError> {
        let began = Instant::now();
        for action in actions {
            self.bench.act(self.dut, *action)?;
            if restarts(*action) {
                self.reader.forget_dut();
            }
        }
        Ok(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the frames sent and received by intended time, over all ways.
    fn bins(&self, load: &RigLoad, width_ns: u64, reports: &[(Report, Report)]) -> Bins {
        let ways = self.ways.iter().zip(reports);
        let bins = ways.filter_map(|(way, (sender, receiver))| {
            bins_of(way, load, width_ns, (sender, receiver))
        });
        let sum = bins.reduce(|mut sum, bins| {
            sum.add(&bins);
            sum
        });
        sum.unwrap_or_default()
    }

    /// The program that sends hostile packets from gw1's end of the link between the gateways.
    pub(super) fn attacker(
        &self,
        load: &RigLoad,
        hostile: &HostileLoad,
    ) -> Result<(NodeId, Program), TrialError> {
        let adapter = &self.ways[0].cell.dut.adapter;
        let form = adapter.carrier().ok_or_else(|| {
            TrialError::frames(
                "hostile packets are made from sealed packets, which this device does not send",
            )
        })?;
        let attack = traffic_spec::Attack {
            kind: match hostile.attack {
                Attack::BadIcv => AttackKind::BadIcv,
                Attack::Replay => AttackKind::Replay,
                Attack::Garbage => AttackKind::Garbage,
            },
            form: match form.form {
                Form::Esp => SealedForm::Esp,
                Form::WireGuard => SealedForm::WireGuard,
                Form::OpenVpn => SealedForm::OpenVpn,
                Form::MacSec => {
                    return Err(TrialError::frames("hostile packets are of UDP or ESP"));
                }
            },
            ports: self
                .dut
                .sealed_ports
                .iter()
                .map(|sealed| sealed.port)
                .collect(),
            packets_per_s: hostile.packets_per_s,
            duration_ns: load.duration_ns,
        };
        let spec = Spec {
            interface: self.bench.cipher_interfaces().0.to_owned(),
            port: None,
            threads: 1,
            tag: self.tag,
            role: Role::Attack(attack),
        };
        Ok((NodeId::Gw1, self.program(NodeId::Gw1, &spec)))
    }
}

/// Time for an attacker beyond the load's end: it began with the first packet that the DUT sealed.
const ATTACKER_LIMIT: Duration = Duration::from_millis(500);

/// Whether an action stops or starts processes of the device, which then count from zero.
const fn restarts(action: DutAction) -> bool {
    match action {
        DutAction::Kill(_)
        | DutAction::Restart(_)
        | DutAction::Reset(..)
        | DutAction::TakeDown
        | DutAction::SetUp => true,
        DutAction::Rekey
        | DutAction::CutLink
        | DutAction::JoinLink
        | DutAction::OpenBypass
        | DutAction::CloseBypass
        | DutAction::Desync(_) => false,
    }
}

/// Returns the name in records.
fn name(action: DutAction) -> &'static str {
    match action {
        DutAction::Rekey => "rekey",
        DutAction::Kill(_) => "crash",
        DutAction::Restart(_) => "restart",
        DutAction::Reset(..) => "reset",
        DutAction::TakeDown => "take-down",
        DutAction::SetUp => "set-up",
        DutAction::Desync(cause) => cause.name(),
        DutAction::CutLink => "link-down",
        DutAction::JoinLink => "link-up",
        DutAction::OpenBypass => "bypass-open",
        DutAction::CloseBypass => "bypass-closed",
    }
}

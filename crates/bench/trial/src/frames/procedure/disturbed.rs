//! Disturbances of a DUT under a constant load: `rekey`, `failover`, `reset`, `setup`,
//! `desync` and `hostile`.

use super::ProcedureTrials;
use crate::disturbance::{HostileLoad, PlannedAction, PlannedDisturbance};
use crate::error::TrialError;
use crate::frames::RigLoad;
use crate::frames::basis::{Basis, searched, share};
use crate::frames::throughput::{Confirm, throughput_by};
use crate::frames::trials::{DRAIN_NS, Trials};
use journal::record::{FrameResult, FrameTrial, ProcedureRecord};
use plan::{
    Attack, BaseLoad, Desync, Disturbed, Event, Failure, Reset, ThroughputSearch, estimate,
};
use testbed::{DutAction, NodeId};

/// Load before the first event, which shows the undisturbed state.
const LEAD_NS: u64 = estimate::LEAD_RUN.as_nanos() as u64;
/// Time for a set-up, as a multiple of its time without a load.
const SETUP_TIMES: u64 = 3;
/// Load of the trial with the evidence, in per cent of the others' load: low for a DUT that has
/// recovered.
const QUIET_PERCENT: u64 = 50;

impl ProcedureTrials for Disturbed {
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        let drain_ns = drain_ns(&self.load);
        let load = match base_load(trials, &self.load)? {
            Ok(load) => load,
            Err(basis) => return Ok(basis),
        };
        let load_for = |duration_ns| RigLoad::new(Some(load), duration_ns, drain_ns);
        match &self.event {
            Event::Rekey {
                every_ns,
                duration_ns,
                throughput,
            } => {
                let load = load_for(*duration_ns);
                // First alone, for comparison: a loss without any event is none of the event's.
                trials.disturb(&load, &PlannedDisturbance::default())?;
                trials.disturb(&load, &rekeys(*every_ns, *duration_ns))?;
                if let Some(search) = self.load.search().filter(|_| *throughput) {
                    search_with_rekeys(trials, search, *every_ns)?;
                }
            }
            Event::Failover {
                failure,
                times,
                down_ns,
                watch_ns,
            } => {
                let (mut planned, duration_ns) = failures(*failure, *times, *down_ns, *watch_ns);
                planned.exposed = self.event.opens_bypass();
                if planned.exposed {
                    trials.rig.act(&[DutAction::OpenBypass])?;
                }
                let made = trials.disturb(&load_for(duration_ns), &planned);
                if planned.exposed {
                    trials.rig.act(&[DutAction::CloseBypass])?;
                }
                // After the route is removed: a failed trial must not leave a way past the device
                // to the next cell.
                made?;
            }
            Event::Reset {
                kind,
                times,
                watch_ns,
            } => {
                let (planned, duration_ns) = resets(*kind, *times, *watch_ns);
                trials.disturb(&load_for(duration_ns), &planned)?;
            }
            Event::Setup { times, watch_ns } => {
                // Once without a load, to learn how long this device takes.
                let once_ns = trials.rig.act(&[DutAction::TakeDown, DutAction::SetUp])?;
                let (planned, duration_ns) = set_ups(*times, once_ns, *watch_ns);
                trials.disturb(&load_for(duration_ns), &planned)?;
            }
            Event::Desync {
                cause,
                times,
                watch_ns,
            } => {
                let (planned, duration_ns) = desyncs(*cause, *times, *watch_ns);
                trials.disturb(&load_for(duration_ns), &planned)?;
            }
            Event::Hostile {
                attack,
                percents,
                trial_ns,
            } => {
                trials.disturb(&load_for(*trial_ns), &PlannedDisturbance::default())?;
                for &percent in percents {
                    let planned = hostile(*attack, percent, load);
                    trials.disturb(&load_for(*trial_ns), &planned)?;
                }
            }
        }
        let found = std::mem::take(&mut trials.disturbed);
        trials.result.found = ProcedureRecord::Disturbed(found);
        Ok(Basis::on(share(load, QUIET_PERCENT), drain_ns))
    }

    fn figure_trials<'r>(
        &self,
        result: &'r FrameResult,
        trials: &'r [FrameTrial],
    ) -> Vec<&'r FrameTrial> {
        let disturbed = result.disturbances().iter();
        disturbed.filter_map(|one| trials.get(one.trial)).collect()
    }

    fn compares_times(&self) -> bool {
        true
    }
}

/// Returns the load in frames/s, or the basis with the reason for its lack.
pub(super) fn base_load(
    trials: &mut Trials<'_>,
    load: &BaseLoad,
) -> Result<Result<u64, Basis>, TrialError> {
    Ok(match load {
        BaseLoad::Given { frames_per_s } => Ok(*frames_per_s),
        BaseLoad::Share { percent, search } => {
            let throughput = searched(trials, search)?;
            throughput.map(|throughput| share(throughput, (*percent).into()))
        }
    })
}

/// Returns the time for stragglers under that load.
pub(super) fn drain_ns(load: &BaseLoad) -> u64 {
    load.search().map_or(DRAIN_NS, |search| search.drain_ns)
}

/// Repeats the search with keys renewed in each trial, up to the same highest load.
fn search_with_rekeys(
    trials: &mut Trials<'_>,
    search: &ThroughputSearch,
    every_ns: u64,
) -> Result<(), TrialError> {
    let known = trials.result.throughput.as_ref();
    let again = ThroughputSearch {
        // Both searches then divide the same range of loads, and differ by the rekeys alone.
        max_load: known.map(|found| found.max_load).or(search.max_load),
        ..search.clone()
    };
    let found = throughput_by(trials, &again, Confirm::Plain, |trials, load| {
        // At least one rekey per trial, in the middle of a short one.
        let every_ns = every_ns.min(load.duration_ns.div_ceil(2)).max(1);
        let made = trials.make_disturbed(load, &rekeys(every_ns, load.duration_ns))?;
        Ok(made.0)
    })?;
    trials.disturbed.rekeyed_throughput = Some(found);
    Ok(())
}

/// Plans rekeys except at the very beginning and end: their effect would not be visible there.
fn rekeys(every_ns: u64, duration_ns: u64) -> PlannedDisturbance {
    let times = (1..).map(|number| number * every_ns);
    let times = times.take_while(|at_ns| *at_ns < duration_ns);
    planned(times.map(|at_ns| PlannedAction {
        at_ns,
        pause_ns: 0,
        action: DutAction::Rekey,
    }))
}

fn failures(
    failure: Failure,
    times: u32,
    down_ns: u64,
    watch_ns: u64,
) -> (PlannedDisturbance, u64) {
    let crash = |gateway| (DutAction::Kill(gateway), DutAction::Restart(gateway));
    let (breaks, mends) = match failure {
        Failure::Crash => crash(NodeId::Gw2),
        // The gateway that gets the load in clear, whether it has two directions or one.
        Failure::Bypass => crash(NodeId::Gw1),
        Failure::Link => (DutAction::CutLink, DutAction::JoinLink),
    };
    let actions = [(0, breaks), (down_ns, mends)];
    rounds(times, down_ns.saturating_add(watch_ns), actions)
}

fn resets(kind: Reset, times: u32, watch_ns: u64) -> (PlannedDisturbance, u64) {
    rounds(times, watch_ns, [(0, DutAction::Reset(NodeId::Gw2, kind))])
}

fn desyncs(cause: Desync, times: u32, watch_ns: u64) -> (PlannedDisturbance, u64) {
    rounds(times, watch_ns, [(0, DutAction::Desync(cause))])
}

/// Plans to take all tunnels down and set them up immediately.
fn set_ups(times: u32, once_ns: u64, watch_ns: u64) -> (PlannedDisturbance, u64) {
    let round_ns = once_ns.saturating_mul(SETUP_TIMES).saturating_add(watch_ns);
    let actions = [(0, DutAction::TakeDown), (0, DutAction::SetUp)];
    rounds(times, round_ns, actions)
}

/// Repeats `actions` in rounds of `round_ns`, each after its pause since the action before it.
/// Returns the plan and the time of all rounds.
fn rounds<const N: usize>(
    times: u32,
    round_ns: u64,
    actions: [(u64, DutAction); N],
) -> (PlannedDisturbance, u64) {
    let begin = |number: u64| LEAD_NS.saturating_add(round_ns.saturating_mul(number));
    let all = (0..u64::from(times)).flat_map(|number| {
        actions.map(|(pause_ns, action)| PlannedAction {
            at_ns: begin(number).saturating_add(pause_ns),
            pause_ns,
            action,
        })
    });
    (planned(all), begin(times.into()))
}

fn planned(actions: impl Iterator<Item = PlannedAction>) -> PlannedDisturbance {
    PlannedDisturbance {
        actions: actions.collect(),
        hostile: None,
        exposed: false,
    }
}

fn hostile(attack: Attack, percent: u16, load: u64) -> PlannedDisturbance {
    PlannedDisturbance {
        actions: Vec::new(),
        hostile: Some(HostileLoad {
            attack,
            percent,
            packets_per_s: share(load, percent.into()),
        }),
        exposed: false,
    }
}

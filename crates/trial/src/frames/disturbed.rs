//! What is done to a DUT under a constant load: `rekey`, `failover`, `setup` and `hostile`.

use super::RigLoad;
use super::procedures::{Stand, searched, share};
use super::rig::{Happening, HostileLoad, PlannedAction};
use super::trials::{DRAIN_NS, Trials};
use crate::error::TrialError;
use campaign::estimate;
use campaign::plan::{Attack, BaseLoad, Disturbed, Event, Failure};
use lab::{DutAction, NodeId};

/// Load before the first event, so that it is seen what was normal.
const LEAD_NS: u64 = estimate::LEAD_RUN.as_nanos() as u64;
/// Time that a set-up is given, as a multiple of what it took without a load.
const SETUP_TIMES: u64 = 3;
/// The load of the trial whose evidence is read, in per cent of the load of the others: a DUT that has
/// recovered carries it with ease.
const QUIET_PERCENT: u64 = 50;

/// Carries one of them out.
pub(super) fn disturbed(trials: &mut Trials<'_>, plan: &Disturbed) -> Result<Stand, TrialError> {
    let (load, drain_ns) = match &plan.load {
        BaseLoad::Given { frames_per_s } => (*frames_per_s, DRAIN_NS),
        BaseLoad::Share { percent, search } => match searched(trials, search)? {
            Ok(throughput) => (share(throughput, (*percent).into()), search.drain_ns),
            Err(stand) => return Ok(stand),
        },
    };
    let load_for = |duration_ns| RigLoad::new(Some(load), duration_ns, drain_ns);
    match &plan.event {
        Event::Rekey {
            every_ns,
            duration_ns,
        } => {
            let load = load_for(*duration_ns);
            trials.disturb(&load, &Happening::default())?;
            trials.disturb(&load, &rekeys(*every_ns, *duration_ns))?;
        }
        Event::Failover {
            failure,
            times,
            down_ns,
            watch_ns,
        } => {
            let (happening, duration_ns) = failures(*failure, *times, *down_ns, *watch_ns);
            trials.disturb(&load_for(duration_ns), &happening)?;
        }
        Event::Setup { times, watch_ns } => {
            let once_ns = trials.rig.act(&[DutAction::TakeDown, DutAction::SetUp])?;
            let (happening, duration_ns) = set_ups(*times, once_ns, *watch_ns);
            trials.disturb(&load_for(duration_ns), &happening)?;
        }
        Event::Hostile {
            attack,
            percents,
            trial_ns,
        } => {
            trials.disturb(&load_for(*trial_ns), &Happening::default())?;
            for &percent in percents {
                let happening = hostile(*attack, percent, load);
                trials.disturb(&load_for(*trial_ns), &happening)?;
            }
        }
    }
    Ok(Stand::on(share(load, QUIET_PERCENT), drain_ns))
}

/// None at the very beginning, and none at the very end, of which nothing could be seen.
fn rekeys(every_ns: u64, duration_ns: u64) -> Happening {
    let times = (1..).map(|number| number * every_ns);
    let times = times.take_while(|at_ns| *at_ns < duration_ns);
    let actions = times.map(|at_ns| PlannedAction {
        at_ns,
        pause_ns: 0,
        action: DutAction::Rekey,
    });
    Happening {
        actions: actions.collect(),
        hostile: None,
    }
}

fn failures(failure: Failure, times: u32, down_ns: u64, watch_ns: u64) -> (Happening, u64) {
    let (breaks, mends) = match failure {
        Failure::Crash => (
            DutAction::Kill(NodeId::Gw2),
            DutAction::Restart(NodeId::Gw2),
        ),
        Failure::Link => (DutAction::CutLink, DutAction::JoinLink),
    };
    pairs((breaks, mends), times, (down_ns, watch_ns))
}

/// They are set up as soon as they are down.
fn set_ups(times: u32, once_ns: u64, watch_ns: u64) -> (Happening, u64) {
    let both = (DutAction::TakeDown, DutAction::SetUp);
    pairs(
        both,
        times,
        (
            0,
            once_ns.saturating_mul(SETUP_TIMES).saturating_add(watch_ns),
        ),
    )
}

/// One action and then the other, so much later than the first was done, so many times; and how long all of it
/// takes.
fn pairs(
    (first, second): (DutAction, DutAction),
    times: u32,
    (between_ns, after_ns): (u64, u64),
) -> (Happening, u64) {
    let round_ns = between_ns.saturating_add(after_ns);
    let begin = |number: u64| LEAD_NS.saturating_add(round_ns.saturating_mul(number));
    let actions = (0..u64::from(times)).flat_map(|number| {
        let at_ns = begin(number);
        let then_ns = at_ns.saturating_add(between_ns);
        [(at_ns, 0, first), (then_ns, between_ns, second)].map(|(at_ns, pause_ns, action)| {
            PlannedAction {
                at_ns,
                pause_ns,
                action,
            }
        })
    });
    let happening = Happening {
        actions: actions.collect(),
        hostile: None,
    };
    (happening, begin(times.into()))
}

fn hostile(attack: Attack, percent: u16, load: u64) -> Happening {
    Happening {
        actions: Vec::new(),
        hostile: Some(HostileLoad {
            attack,
            percent,
            packets_per_s: share(load, percent.into()),
        }),
    }
}

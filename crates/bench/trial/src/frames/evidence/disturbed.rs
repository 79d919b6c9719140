//! Checks of the actions on a DUT under a load, and of its recovery.

use super::{FrameObserved, Objection, load};
use crate::evidence::failure::count;
use crate::evidence::{check, then_repeat, then_repeat_or};
use journal::record::{Check, Disturbance, Explanation, FrameTrial, ResetRecord};
use plan::Event;
use units::human::duration_ns;

/// A recovered DUT loses at most one of this many frames at half the load: a tunnel of a hundred
/// that stayed down would lose ten times that.
const QUIET_LOST_ONE_IN: u64 = 1000;
/// Share of the configured hostile packets that must have been sent, in per cent; with fewer the
/// trial is a different one.
const HOSTILE_SENT_PERCENT: u64 = 50;

/// The longest stall of a sender, as a part of a failure, one in this many: it sends frames of the
/// stall after the failure, so that an outage seems shorter by that time.
const STALLED_ONE_IN: u64 = 4;

/// Describes a sender that may have missed a failure.
pub(super) fn stalled(observed: &FrameObserved<'_>, figures: &[&FrameTrial]) -> Option<Objection> {
    let (what, down_ns, remedy) = match *observed.test.procedure.event()? {
        Event::Failover { down_ns, .. } => (
            "failure",
            down_ns,
            "ask for longer failures or give the stations more cores",
        ),
        Event::Reset { .. } => (
            "reset",
            shortest_silence_ns(observed)?,
            "give the stations more cores",
        ),
        _ => return None,
    };
    let latest_ns = figures.iter().map(|trial| trial.late_ns_max).max()?;
    (latest_ns > down_ns / STALLED_ONE_IN).then(|| {
        let numbers = format!(
            "the sender stood still for {} us, and may have missed as much of a {what} of {} us",
            latest_ns / 1000,
            down_ns / 1000
        );
        let explanation = Explanation::new(
            format!(
                "the sender stood still for {}, and may have missed as much of a {what} of {}",
                duration_ns(latest_ns as f64),
                duration_ns(down_ns as f64)
            ),
            "it waited for a core that something else used",
            then_repeat_or(
                "stop what else uses this machine",
                &format!("{remedy}, in a new run"),
            ),
        );
        (explanation, numbers)
    })
}

/// The shortest time without frames over the resets that ended, and at least the time after which a
/// frame counts as late: a reset that loses nothing is no shorter.
fn shortest_silence_ns(observed: &FrameObserved<'_>) -> Option<u64> {
    let silences = resets(observed).filter_map(|reset| reset.silent_ns);
    Some(silences.min()?.max(STALLED_ONE_IN * FrameTrial::LATE_NS))
}

fn resets<'a>(observed: &FrameObserved<'a>) -> impl Iterator<Item = &'a ResetRecord> {
    let found = observed.result.disturbances().iter();
    let events = found.flat_map(|trial| &trial.events);
    events.filter_map(|event| event.reset.as_ref())
}

/// Makes every check that applies.
pub(super) fn checks(observed: &FrameObserved<'_>) -> Vec<Option<Check>> {
    let Some(event) = observed.test.procedure.event() else {
        return Vec::new();
    };
    // Without a load from the search there were no disturbances.
    if observed.result.disturbances().is_empty() {
        return Vec::new();
    }
    let mut checks = vec![carries_afterwards(observed)];
    match event {
        Event::Rekey {
            every_ns,
            duration_ns,
            ..
        } => {
            // As `rekeys` plans them: none at the very end.
            let planned = duration_ns.saturating_sub(1) / (*every_ns).max(1);
            // The number of rekeys is the figure, so that fewer are no fault.
            checks.push(carried_out(observed, planned, 1));
        }
        Event::Failover { times, .. } | Event::Setup { times, .. } => {
            // Each one is two actions: down and up.
            let planned = 2 * u64::from(*times);
            checks.push(carried_out(observed, planned, planned));
        }
        Event::Reset { times, .. } => {
            let planned = u64::from(*times);
            checks.push(carried_out(observed, planned, planned));
            checks.push(restarted(observed));
        }
        Event::Desync { times, .. } => {
            let planned = u64::from(*times);
            checks.push(carried_out(observed, planned, planned));
        }
        // The hostile packets that came through are the figure, and do not invalidate the trial.
        Event::Hostile { percents, .. } => checks.push(hostile_sent(observed, percents.len())),
    }
    checks
}

/// Checks that afterwards the DUT carries half the load as it did before.
fn carries_afterwards(observed: &FrameObserved<'_>) -> Option<Check> {
    let result = observed.result;
    let trial = result.trials.get(result.evidence_trial?)?;
    let is_carried =
        |own: &FrameTrial| own.sent > 0 && own.lost().saturating_mul(QUIET_LOST_ONE_IN) <= own.sent;
    let failed = trial.each_direction().iter().find(|own| !is_carried(own));
    let failure = failed.map(|own| {
        Explanation::new(
            format!(
                "afterwards the device lost {} at {}, half of its load",
                count(own.lost(), own.sent, "frame"),
                load(trial)
            ),
            "it has not recovered from the events: a tunnel or a worker stayed down",
            then_repeat("look in its log for what stayed down, and remove the cause"),
        )
    });
    let mut detail = format!(
        "afterwards, of {} frames at {} frames/s: lost {}, allowed {} or fewer",
        trial.sent,
        trial.load,
        trial.lost(),
        trial.sent / QUIET_LOST_ONE_IN
    );
    if let [there, back] = trial.directions.as_slice() {
        detail += &format!(
            " in each direction; {} from A to B, {} from B to A",
            there.lost(),
            back.lost()
        );
    }
    check("carries-afterwards", failure, detail)
}

/// Checks that the planned actions were done.
fn carried_out(observed: &FrameObserved<'_>, planned: u64, least: u64) -> Option<Check> {
    let disturbances = observed.result.disturbances().iter();
    let events = || disturbances.clone().flat_map(|trial| &trial.events);
    let done = events().count() as u64;
    let longest_us = events().map(|event| event.took_ns).max().unwrap_or(0) / 1000;
    let mut detail = format!("{done} of {planned} were done, the longest in {longest_us} us");
    if done < planned {
        detail += ": the load was over before the others";
    }
    let failure = (done < least).then(|| {
        Explanation::new(
            format!(
                "{done} of {planned} events were carried out, the longest in {}",
                duration_ns(longest_us as f64 * 1000.0)
            ),
            "the device or the machine took so long for one that the load was over before the others",
            then_repeat_or(
                "stop what else uses this machine",
                "ask for fewer events or a longer load, in a new run",
            ),
        )
    });
    check("events-carried-out", failure, detail)
}

/// Checks that each reset has replaced the processes that it was to restart.
fn restarted(observed: &FrameObserved<'_>) -> Option<Check> {
    let all: Vec<&ResetRecord> = resets(observed).collect();
    let proven = all.iter().filter(|reset| reset.is_proven()).count();
    let mut detail = format!(
        "{proven} of {} resets changed what identifies the device's processes on gw2",
        all.len()
    );
    let unproven = all.iter().find(|reset| !reset.is_proven());
    if let Some(reset) = unproven.or(all.last()) {
        let words = |words: &[String]| match words {
            [] => "nothing".to_owned(),
            words => words.join("; "),
        };
        let which = match unproven {
            Some(_) => "one that did not",
            None => "the last",
        };
        let (before, after) = (words(&reset.before), words(&reset.after));
        detail += &format!(" ({which}: from {before} to {after})");
    }
    let failure = (all.is_empty() || proven < all.len()).then(|| {
        Explanation::new(
            format!(
                "{} of {} changed nothing that identifies the device's processes on gw2",
                all.len() - proven,
                count(all.len() as u64, 0, "reset")
            ),
            "the command for the reset restarts something else, or nothing",
            "correct the device's commands for resets, and measure in a new run",
        )
    });
    check("device-restarted", failure, detail)
}

/// Each attack, and the trial that it was made in.
fn attacks<'a>(
    observed: &FrameObserved<'a>,
) -> impl Iterator<Item = (&'a Disturbance, &'a FrameTrial)> {
    let result = observed.result;
    let attacked = result.disturbances().iter();
    let attacked = attacked.filter(|disturbance| disturbance.attack.is_some());
    attacked.filter_map(|attacked| Some((attacked, result.trials.get(attacked.trial)?)))
}

/// The check that each of the planned attacks sent its configured number of packets, or nearly.
fn hostile_sent(observed: &FrameObserved<'_>, planned: usize) -> Option<Check> {
    let made = attacks(observed).count();
    let mut difference =
        (made != planned).then(|| format!("{made} of {planned} attacks were carried out"));
    let mut shares = Vec::new();
    for (disturbance, trial) in attacks(observed) {
        let Some(attack) = disturbance.attack else {
            continue;
        };
        let per_second = u128::from(trial.load) * u128::from(attack.percent) / 100;
        let wanted = per_second * u128::from(trial.duration_ns) / 1_000_000_000;
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        // A share so small that it rounds to no packet still needs one to be an attack.
        let is_enough = attack.sent > 0
            && attack.sent.saturating_mul(100) >= wanted.saturating_mul(HOSTILE_SENT_PERCENT);
        if !is_enough {
            difference.get_or_insert_with(|| {
                format!(
                    "at a share of {} % {} of {wanted} hostile packets were sent",
                    attack.percent, attack.sent
                )
            });
        }
        shares.push(format!("{} % {} of {wanted}", attack.percent, attack.sent));
    }
    let mut detail = format!(
        "hostile packets sent, by their share: {}",
        shares.join(", ")
    );
    let failure = difference.map(|difference| {
        detail +=
            &format!("; with less than {HOSTILE_SENT_PERCENT} % of them it is no such attack");
        Explanation::new(
            difference,
            "the sending station lacks CPU time for load and attack together",
            then_repeat_or(
                "stop what else uses this machine",
                "ask for a lower `load` or smaller `shares`, in a new run",
            ),
        )
    });
    check("hostile-packets-sent", failure, detail)
}

/// Whether the procedure took the link down in a trial.
pub(super) fn link_was_cut(observed: &FrameObserved<'_>, number: usize) -> bool {
    let found = observed.result.disturbances().iter();
    // Disturbances name the place of their trial in the result, and readings count trials from 1.
    let mut found = found.filter(|it| it.trial + 1 == number);
    found.any(|it| it.events.iter().any(|event| event.name == "link-down"))
}

/// Whether the procedure acted on the device, its links or its keys in a trial.
pub(super) fn was_acted_on(observed: &FrameObserved<'_>, number: usize) -> bool {
    let mut found = observed.result.disturbances().iter();
    found.any(|it| it.trial + 1 == number && !it.events.is_empty())
}

/// Whether the procedure opened a way past the device in a trial: frames in clear are then the
/// figure, and no fault of the trial.
pub(super) fn was_exposed(observed: &FrameObserved<'_>, number: usize) -> bool {
    let event = observed.test.procedure.event();
    let mut found = observed.result.disturbances().iter();
    event.is_some_and(Event::opens_bypass) && found.any(|it| it.trial + 1 == number)
}

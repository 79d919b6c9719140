//! Checks of what was done to a DUT under a load, and of how it came out of it.

use super::FrameObserved;
use crate::evidence::check;
use campaign::plan::{Event, Procedure};
use journal::record::{Check, Disturbance, FrameTrial, ResetFound};

/// A recovered DUT loses at most one of this many frames at half the load: a tunnel of a hundred
/// that stayed down would lose ten times that.
const QUIET_LOST_ONE_IN: u64 = 1000;
/// Share of the configured hostile packets that must have been sent, in per cent: with fewer it is
/// another trial.
const HOSTILE_SENT_PERCENT: u64 = 50;

/// The largest part of a failure, one in this many, for which a sender may stand still: it sends
/// afterwards what nobody was there to lose, so that an outage seems shorter by as much.
const STALLED_ONE_IN: u64 = 4;

/// What to say of a sender that may have missed a failure.
pub(super) fn stalled(observed: &FrameObserved<'_>, figures: &[&FrameTrial]) -> Option<String> {
    let Procedure::Disturbed(test) = &observed.test.procedure else {
        return None;
    };
    let (what, down_ns, remedy) = match test.event {
        Event::Failover { down_ns, .. } => ("failure", down_ns, "ask for longer ones, or give"),
        Event::Reset { .. } => ("reset", shortest_silence_ns(observed)?, "give"),
        _ => return None,
    };
    let latest_ns = figures.iter().map(|trial| trial.late_ns_max).max()?;
    (latest_ns > down_ns / STALLED_ONE_IN).then(|| {
        format!(
            "the sender stood still for {} us, and may have missed as much of a {what} of {} us: {remedy} the stations \
             more cores",
            latest_ns / 1000,
            down_ns / 1000
        )
    })
}

/// The shortest time without frames over the resets that ended, and at least the time after which a
/// frame counts as late: a reset that loses nothing is no shorter.
fn shortest_silence_ns(observed: &FrameObserved<'_>) -> Option<u64> {
    let silences = resets(observed).filter_map(|reset| reset.silent_ns);
    Some(silences.min()?.max(STALLED_ONE_IN * FrameTrial::LATE_NS))
}

fn resets<'a>(observed: &FrameObserved<'a>) -> impl Iterator<Item = &'a ResetFound> {
    let found = observed.result.disturbances().iter();
    let events = found.flat_map(|trial| &trial.events);
    events.filter_map(|event| event.reset.as_ref())
}

/// Makes every check that applies.
pub(super) fn checks(observed: &FrameObserved<'_>) -> Vec<Option<Check>> {
    let Procedure::Disturbed(test) = &observed.test.procedure else {
        return Vec::new();
    };
    // A search that found nothing leaves no load to do it under.
    if observed.result.disturbances().is_empty() {
        return Vec::new();
    }
    let mut checks = vec![carries_afterwards(observed)];
    match &test.event {
        Event::Rekey {
            every_ns,
            duration_ns,
            ..
        } => {
            let planned = duration_ns.saturating_sub(1) / (*every_ns).max(1);
            // How many there were is the figure, so that fewer are no fault.
            checks.push(carried_out(observed, planned, 1));
        }
        Event::Failover { times, .. } | Event::Setup { times, .. } => {
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
        // What came through of them is the figure, and nothing that makes a trial another one.
        Event::Hostile { percents, .. } => checks.push(hostile_sent(observed, percents.len())),
    }
    checks
}

/// After all of it, the DUT carries half the load as it did before.
fn carries_afterwards(observed: &FrameObserved<'_>) -> Option<Check> {
    let result = observed.result;
    let trial = result.trials.get(result.evidence_trial?)?;
    let is_carried =
        |own: &FrameTrial| own.sent > 0 && own.lost().saturating_mul(QUIET_LOST_ONE_IN) <= own.sent;
    let passed = trial.each_direction().iter().all(is_carried);
    let mut detail = format!(
        "afterwards, of {} frames at {} frames/s {} were lost, of {} or fewer allowed",
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
    check("carries-afterwards", passed, detail)
}

/// What was planned was done.
fn carried_out(observed: &FrameObserved<'_>, planned: u64, least: u64) -> Option<Check> {
    let disturbances = observed.result.disturbances().iter();
    let events = || disturbances.clone().flat_map(|trial| &trial.events);
    let done = events().count() as u64;
    let longest_us = events().map(|event| event.took_ns).max().unwrap_or(0) / 1000;
    let mut detail = format!("{done} of {planned} were done, the longest in {longest_us} us");
    if done < planned {
        detail += ": the load was over before the others";
    }
    check("events-carried-out", done >= least, detail)
}

/// Each reset has replaced what it was to restart.
fn restarted(observed: &FrameObserved<'_>) -> Option<Check> {
    let all: Vec<&ResetFound> = resets(observed).collect();
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
    let passed = !all.is_empty() && proven == all.len();
    check("device-restarted", passed, detail)
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
    let mut passed = attacks(observed).count() == planned;
    let mut shares = Vec::new();
    for (disturbance, trial) in attacks(observed) {
        let Some(attack) = disturbance.attack else {
            continue;
        };
        let per_second = u128::from(trial.load) * u128::from(attack.percent) / 100;
        let wanted = per_second * u128::from(trial.duration_ns) / 1_000_000_000;
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        passed &= attack.sent > 0
            && attack.sent.saturating_mul(100) >= wanted.saturating_mul(HOSTILE_SENT_PERCENT);
        shares.push(format!("{} % {} of {wanted}", attack.percent, attack.sent));
    }
    let mut detail = format!(
        "hostile packets sent, by their share: {}",
        shares.join(", ")
    );
    if !passed {
        detail += &format!(
            "; with less than {HOSTILE_SENT_PERCENT} % of them it is no such attack: ask for a lower `load`, \
             or smaller `shares`"
        );
    }
    check("hostile-packets-sent", passed, detail)
}

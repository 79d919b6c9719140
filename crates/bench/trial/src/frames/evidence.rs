//! Checks of frame tests: of every frame trial of a procedure, and of the links and the DUT during
//! the trial with the evidence.

mod clocks;
mod confirmed;
mod disturbed;
mod every;
mod links;
mod number;
mod path;

use super::Strays;
use super::procedure;
use super::trials::was_offered;
use crate::command::Cores;
use crate::evidence::failure::{count, nothing_seen, then_repeat, then_repeat_or};
use crate::evidence::neighbours::CONTROL_FRAMES;
use crate::evidence::{ObservedPath, check};
use journal::record::{Check, Explanation, FrameResult, FrameTrial};
use plan::{FrameTest, Role};
use testbed::FramePath;
use units::human::{duration_ns, frame_rate};

/// Two counts of the same frames that are read one after the other may differ by one in this many.
const COUNTED_ONE_IN: u64 = 1000;
/// The receiving station may lose one of this many frames.
const STATION_LOST_ONE_IN: u64 = 1000;

/// The readings of a frame test.
#[derive(Debug, Clone)]
pub struct FrameObserved<'a> {
    /// The requested test.
    pub test: &'a FrameTest,
    /// The result, including the trial with the evidence.
    pub result: &'a FrameResult,
    /// Frames that do not belong to their trial, over all trials.
    pub strays: &'a Strays,
    /// The path during the trial with the evidence; `None` without links.
    pub seen: Option<FrameReadings<'a>>,
}

/// The readings of the trial with the evidence.
#[derive(Debug, Clone)]
pub struct FrameReadings<'a> {
    /// Links and DUT.
    pub path: ObservedPath<'a>,
    /// The ends that sent and received the frames.
    pub ends: &'a FramePath,
    /// Cores of the stations.
    pub cores: &'a Cores,
}

/// Makes every check that applies to a frame test.
#[must_use]
pub fn frame_checks(observed: &FrameObserved<'_>) -> Vec<Check> {
    let mut checks = vec![
        offered_as_intended(observed),
        frames_arrived(observed),
        receiver_kept_up(observed),
        frames_intact(observed),
        only_test_frames(observed),
    ];
    checks.push(confirmed::throughput_confirmed(observed));
    checks.extend(disturbed::checks(observed));
    if let Some(seen) = &observed.seen {
        checks.extend(path::checks(observed, seen));
        checks.extend(every::checks(observed, seen));
        checks.push(links::sealed_as_sent(observed, seen));
        checks.push(links::links_carried_the_load(observed, seen));
        checks.push(number::cipher_link_frames(observed, seen));
        checks.push(clocks::clocks_compared(observed));
    }
    checks.into_iter().flatten().collect()
}

/// Returns the trials that a figure is read from directly.
fn figures<'a>(observed: &FrameObserved<'a>) -> Vec<&'a FrameTrial> {
    let result = observed.result;
    // The trial with the evidence and the confirming ones after it are in no figure.
    let end = result.evidence_trial.unwrap_or(result.trials.len());
    let trials = &result.trials[..end.min(result.trials.len())];
    procedure::of(&observed.test.procedure).figure_trials(result, trials)
}

/// The offered load is the intended load (RFC 2285 §3.5), in every frame trial.
fn offered_as_intended(observed: &FrameObserved<'_>) -> Option<Check> {
    let figures = figures(observed);
    let failed = figures.iter().find(|trial| !was_offered(trial));
    let objection = match failed {
        Some(trial) => Some(not_offered(trial)),
        // Asked only if every load was offered: frames of a late sender also come in bursts.
        None => disturbed::stalled(observed, &figures).or_else(|| in_bursts(observed, &figures)),
    };
    let trials = &observed.result.trials;
    let paced = trials.iter().filter(|trial| trial.load > 0);
    // All trials are counted for the detail; only the ones of the figure can fail the check. A
    // search meets loads that cannot be offered by design.
    let short = paced.clone().filter(|trial| !was_offered(trial));
    let late: u64 = trials.iter().map(|trial| trial.late_frames).sum();
    let latest_ns = trials.iter().map(|trial| trial.late_ns_max).max();
    let sent: u64 = trials.iter().map(|trial| trial.sent).sum();
    let suffers = if late.saturating_mul(100) > sent.saturating_mul(FrameTrial::LATE_PERCENT) {
        ", which comes in bursts then: the figure suffers"
    } else {
        ""
    };
    let (failure, numbers) = objection.unzip();
    let mut detail = numbers.map_or_else(String::new, |numbers| numbers + "; ");
    detail += &format!(
        "in {} of {} paced trials the station offered what was intended; {late} frames left over 1 ms late\
         {suffers}, the latest by {} us",
        paced.clone().count() - short.clone().count(),
        paced.count(),
        latest_ns.unwrap_or(0) / 1000
    );
    let least = short.min_by_key(|trial| trial.load);
    if let Some(least) = least.filter(|least| failed.is_none_or(|failed| failed.load != least.load))
    {
        detail += &format!(
            "; the least load that it did not offer was {}",
            offered(least)
        );
    }
    check("offered-as-intended", failure, detail)
}

/// An explanation, and the counters of the trial that it is about.
type Objection = (Explanation, String);

fn not_offered(trial: &FrameTrial) -> Objection {
    let short = trial.intended.saturating_sub(trial.sent);
    let difference = match short {
        0 if trial.sent == 0 => format!("the station sent no frame at {}", load(trial)),
        0 => format!(
            "the station took {} to send the frames of {}",
            duration_ns(trial.elapsed_ns as f64),
            duration_ns(trial.duration_ns as f64)
        ),
        _ => format!(
            "the station sent {} less than intended at {}",
            count(short, trial.intended, "frame"),
            load(trial)
        ),
    };
    let explanation = Explanation::new(
        difference,
        "it lacks CPU time for this load, or other programs took it",
        then_repeat_or(
            "stop what else uses this machine",
            "ask for less or give the stations more cores, in a new run",
        ),
    );
    let numbers = format!(
        "a figure stands on a load that was not offered, {}",
        offered(trial)
    );
    (explanation, numbers)
}

/// The load of a trial, for people.
fn load(trial: &FrameTrial) -> String {
    match trial.load {
        0 => "full speed".to_owned(),
        load => frame_rate(load as f64),
    }
}

/// Describes a load whose frames left in bursts. A disturbance of the device has a separate bound,
/// and an overload is meant to exceed the capacity. In memory, generator, device and analyser are
/// threads that take turns if cores are few, so all their traffic comes in bursts: the report warns
/// of it.
fn in_bursts(observed: &FrameObserved<'_>, figures: &[&FrameTrial]) -> Option<Objection> {
    let procedure = &observed.test.procedure;
    let has_own_bound = procedure.event().is_some() || procedure::of(procedure).overloads();
    if has_own_bound || observed.seen.is_none() {
        return None;
    }
    let trial = figures.iter().find(|trial| trial.came_in_bursts())?;
    let numbers = format!(
        "a figure stands on a load that came in bursts, {}: {} frames left over 1 ms late, the latest by {} us",
        offered(trial),
        trial.late_frames,
        trial.late_ns_max / 1000
    );
    let explanation = Explanation::new(
        format!(
            "{} of those sent at {} left over 1 ms late, the latest by {}, so the load came in bursts",
            count(trial.late_frames, trial.sent, "frame"),
            load(trial),
            duration_ns(trial.late_ns_max as f64)
        ),
        "the sending station waited for a core that something else used",
        then_repeat_or(
            "stop what else uses this machine",
            "ask for less in a new run",
        ),
    );
    Some((explanation, numbers))
}

fn offered(trial: &FrameTrial) -> String {
    format!(
        "{} frames/s ({} of {} frames sent, in {} us of {})",
        trial.load,
        trial.sent,
        trial.intended,
        trial.elapsed_ns / 1000,
        trial.duration_ns / 1000
    )
}

/// Checks that some frames arrived in each loaded direction of the trial with the evidence: missing
/// frames show nothing, neither that they were sealed nor that they were not.
fn frames_arrived(observed: &FrameObserved<'_>) -> Option<Check> {
    let result = observed.result;
    let trial = result.trials.get(result.evidence_trial?)?;
    let ways = trial.each_direction();
    let least = ways.iter().map(|own| own.received).min().unwrap_or(0);
    let detail = format!(
        "of {} frames sent at {} {} arrived, by way {least} or more; none is no evidence",
        trial.sent,
        load(trial),
        trial.received
    );
    let what = format!("frame of {} arrived at {}", trial.sent, load(trial));
    check("frames-arrived", nothing_seen(least, &what), detail)
}

/// Checks the receiving station's loss, which is not the DUT's.
fn receiver_kept_up(observed: &FrameObserved<'_>) -> Option<Check> {
    let result = observed.result;
    // An overload is meant to be more than can be carried.
    let figures = if procedure::of(&observed.test.procedure).overloads() {
        Vec::new()
    } else {
        figures(observed)
    };
    let spoils = |own: &FrameTrial| {
        let lost = own.station_lost().saturating_mul(STATION_LOST_ONE_IN);
        own.load > 0 && lost > own.sent
    };
    // A direction of its trial may be spoilt although the sum is within the limit.
    let spoilt = figures
        .iter()
        .find(|trial| spoils(trial) || trial.each_direction().iter().any(spoils));
    let lossy: Vec<&FrameTrial> = result
        .trials
        .iter()
        .filter(|trial| trial.station_lost() > 0)
        .collect();
    let dropped: u64 = lossy.iter().map(|trial| trial.station_lost()).sum();
    let mut detail = format!(
        "the receiving station lost {dropped} frames itself, in {} of {} trials",
        lossy.len(),
        result.trials.len()
    );
    // Loss of the station at a bound is only reported: it makes the figure too low, not too high.
    let bounds = result.throughput.iter().flat_map(|found| &found.goals);
    for goal in bounds {
        for (bound, load) in [("lower", goal.lower), ("upper", goal.upper)] {
            let Some(load) = load else { continue };
            let at = lossy.iter().filter(|trial| trial.load == load);
            let lost: u64 = at.map(|trial| trial.station_lost()).sum();
            if lost > 0 {
                let name = &goal.goal;
                detail += &format!(
                    "; {lost} of them at the {bound} bound of `{name}`, which counts them as lost"
                );
            }
        }
    }
    let failure = spoilt.map(|trial| {
        detail += &format!(
            "; of {} frames/s it lost {} of {} sent, which is not the DUT's loss",
            trial.load,
            trial.station_lost(),
            trial.sent
        );
        Explanation::new(
            format!(
                "the receiving station itself lost {} at {}",
                count(trial.station_lost(), trial.sent, "frame"),
                load(trial)
            ),
            "it waited for a core that something else used, or is too slow for this load: this loss is not the DUT's",
            then_repeat_or(
                "stop what else uses this machine",
                "ask for less or give the stations more cores, in a new run",
            ),
        )
    });
    check("receiver-kept-up", failure, detail)
}

/// Checks that no frame was damaged without a device. Frames that a device damages, duplicates or
/// reorders are a property of that device.
fn frames_intact(observed: &FrameObserved<'_>) -> Option<Check> {
    let sum = |of: fn(&FrameTrial) -> u64| observed.result.trials.iter().map(of).sum::<u64>();
    let (received, corrupted) = (sum(|trial| trial.received), sum(|trial| trial.corrupted));
    let detail = format!(
        "{corrupted} frames were damaged, {received} intact; {} were doubled and {} overtaken",
        sum(|trial| trial.duplicated),
        sum(|trial| trial.reordered)
    );
    let is_rig = |seen: &FrameReadings<'_>| seen.path.cell.dut.adapter.profile().role == Role::Rig;
    let is_device = !observed.seen.as_ref().is_some_and(is_rig);
    let failure = (corrupted > 0 && !is_device).then(|| {
        Explanation::new(
            format!(
                "{} came damaged, although no device is in the path",
                count(corrupted, received + corrupted, "frame")
            ),
            "a network card, its driver or an offload changes frames",
            then_repeat(
                "switch its offloads off (`ethtool -K`), or use another card or frame port",
            ),
        )
    });
    let failure = failure.or_else(|| nothing_seen(received, "frame came intact"));
    check("frames-intact", failure, detail)
}

/// Checks that the receiver saw next to nothing but the frames of its trial, and could open the
/// sealed ones.
fn only_test_frames(observed: &FrameObserved<'_>) -> Option<Check> {
    let strays = observed.strays;
    let trials = &observed.result.trials;
    let sent: u64 = trials.iter().map(|trial| trial.sent).sum();
    let seen = observed.seen.as_ref();
    let impaired = seen
        .and_then(|seen| seen.path.impaired)
        .copied()
        .unwrap_or_default();
    let ways = [impaired.a_to_b, impaired.b_to_a];
    let corrupted: u64 = ways.iter().map(|way| way.corrupted).sum();
    let duplicated: u64 = ways.iter().map(|way| way.duplicated).sum();
    // A flipped bit may hide a test frame's mark; no copy of a sealed packet is opened.
    let foreign_most = CONTROL_FRAMES * trials.len() as u64 + sent / COUNTED_ONE_IN + corrupted;
    let refused_most = sent / COUNTED_ONE_IN + corrupted + duplicated;
    let refused: u64 = strays.refused.values().sum();
    let reasons = strays
        .refused
        .iter()
        .map(|(reason, count)| format!(" {reason} {count}"));
    let detail = format!(
        "of other trials came {} frames late, {} were no test frames, of {foreign_most} or fewer allowed; {} \
         could not be opened, of {} or fewer allowed{}",
        strays.stale,
        strays.foreign,
        refused,
        refused_most,
        reasons.collect::<String>()
    );
    let failure = if strays.foreign > foreign_most {
        Some(Explanation::new(
            format!(
                "the receiver got {} beside those of its trials, of {foreign_most} or fewer allowed",
                count(strays.foreign, 0, "frame")
            ),
            "another program sends on the link, or the device multiplies or rewrites frames",
            then_repeat("stop other programs that use the lab's links"),
        ))
    } else if refused > refused_most {
        Some(Explanation::new(
            format!(
                "the receiver could not open {}, of {refused_most} or fewer allowed",
                count(refused, sent, "sealed frame")
            ),
            "the device seals with other keys than it was given, or sends packets twice or far out of order",
            then_repeat("look in its log and at the reasons among the counters"),
        ))
    } else {
        let received = trials.iter().map(|trial| trial.received).sum();
        nothing_seen(received, "test frame came")
    };
    check("only-test-frames", failure, detail)
}

#[cfg(test)]
mod tests;

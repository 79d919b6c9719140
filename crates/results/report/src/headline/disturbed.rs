//! Events at a device under a load, in a few words and numbers.

use super::{Fact, repeats};
use crate::format::{Scale, counted, percent, time_ns};
use crate::layout::Run;
use crate::layout::disturbed::{attack_name, title};
use crate::layout::frames::FrameSet;
use crate::tables::frames::{mean_rate, percent_name};
use plan::{Event, Failure, Procedure};
use stats::{
    DesyncResult, DisturbanceResult, EventTimes, FailoverResult, HostileResult, RekeyResult,
    ResetResult, SetupResult,
};

/// Figure, unit, range and detail of a fact.
type Words = (String, String, String, String);

/// One fact per set with a figure of the device.
pub(super) fn facts(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let sets = run.frame_sets();
    let disturbed = sets.iter().filter(|set| set.kind.is_disturbed());
    disturbed.filter_map(|set| fact(device, set)).collect()
}

fn fact(device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    let Procedure::Disturbed(test) = &set.test.procedure else {
        return None;
    };
    let cell = set.own_cell(device)?;
    let found = cell.frames()?.disturbance()?;
    let load = set
        .load()
        .map_or_else(String::new, |load| format!(", {load}"));
    let (figure, unit, range, detail) = match &test.event {
        Event::Rekey { .. } => rekey(found, found.rekey()?)?,
        Event::Failover {
            failure: Failure::Bypass,
            ..
        } => bypass(found.failover()?)?,
        Event::Failover { failure, .. } => failover(*failure, found.failover()?)?,
        Event::Reset { .. } => reset(found.reset()?)?,
        Event::Setup { .. } => setup(found.setup()?)?,
        Event::Desync { .. } => desync(found.desync()?)?,
        Event::Hostile { attack, .. } => {
            let what = attack_name(*attack);
            hostile(what, found, found.hostile()?)?
        }
    };
    Some(Fact {
        label: format!("{}{load}", title(&test.event)),
        figure,
        unit,
        range,
        detail,
    })
}

fn rekey(found: &DisturbanceResult, rekey: &RekeyResult) -> Option<Words> {
    let lost = rekey.lost_frames.as_ref()?;
    let worst = match lost.max {
        most if most > 0.0 => format!("at most {most:.0} lost by one"),
        _ => "none lost a frame".to_owned(),
    };
    let mut parts = vec![format!("{}, {worst}", counted(rekey.rekeys, "rekey"))];
    let clean = rekey.clean;
    if lost.max > 0.0 && clean.repeats < clean.of_repeats {
        parts.push(match clean.repeats {
            0 => "without rekeys the load lost frames too, in every repeat".to_owned(),
            repeats => format!(
                "in the {repeats} of {} repeats whose load lost nothing without rekeys: {} lost by {}",
                clean.of_repeats,
                counted(clean.lost, "frame"),
                counted(clean.rekeys, "rekey")
            ),
        });
    }
    if let Some(reached) = &rekey.reached_per_s {
        let number = Scale::plain();
        parts.push(format!(
            "{}/s of {}/s configured",
            number.number(reached.mean),
            number.number(rekey.asked_per_s)
        ));
    }
    if let Some(ratio) = &rekey.throughput_ratio {
        parts.push(format!("throughput {:.4} of that without", ratio.mean));
    }
    let p99 = |load: &stats::DisturbedLoad| load.latency.as_ref()?.p99_ns;
    let quiet = found.quiet.as_ref().and_then(p99);
    if let Some((with, without)) = p99(&rekey.disturbed).zip(quiet) {
        parts.push(format!(
            "p99 {}, without rekeys {}",
            time_ns(with as f64),
            time_ns(without as f64)
        ));
    }
    let figure = Scale::plain().number(lost.mean);
    let range = repeats(lost, &Scale::plain()).replace("repeats", "single rekeys");
    Some((
        figure,
        "frames lost per rekey".into(),
        range,
        parts.join("; "),
    ))
}

/// The median, or a note that most events have no duration.
fn figure(times: &EventTimes) -> (String, String) {
    match times.median_ns {
        Some(median) => {
            let scale = Scale::time(median);
            (scale.number(median), scale.unit)
        }
        None => ("no recovery".into(), String::new()),
    }
}

/// `events 1.00–1.06 s`: the shortest and the longest event.
fn between(times: &EventTimes) -> String {
    let Some(ended) = &times.ended_ns else {
        return String::new();
    };
    let scale = Scale::time(ended.max);
    let value = scale.value(ended.max);
    let shortest = scale.number(ended.min);
    let range = match (ended.n, shortest == scale.number(ended.max)) {
        (1, _) => return "one event".to_owned(),
        (_, true) => format!("events {value}"),
        (_, false) => format!("events {shortest}–{value}"),
    };
    match times.endless() {
        0 => range,
        _ => format!("{range}, or no end"),
    }
}

/// `; 2 of 10 without recovery`.
fn endless(times: &EventTimes) -> String {
    match times.endless() {
        0 => String::new(),
        some => format!("; {some} of {} without recovery", times.events),
    }
}

fn failover(failure: Failure, found: &FailoverResult) -> Option<Words> {
    (found.outage_ns.events > 0).then_some(())?;
    let (figure, unit) = figure(&found.outage_ns);
    let range = between(&found.outage_ns);
    let longest = found.outage_ns.max_ns.map_or("no end".into(), time_ns);
    let mended = match failure {
        Failure::Crash | Failure::Bypass => "started again",
        Failure::Link => "joined again",
    };
    let mut detail = format!(
        "median outage of {}, longest {longest}",
        counted(found.failures, "failure")
    );
    if let Some(down) = &found.down_ns {
        detail.push_str(&format!("; {mended} after {}", time_ns(down.mean)));
    }
    if let Some(first) = found.first_frame_ns.median_ns {
        detail.push_str(&format!("; first frame {} later", time_ns(first)));
    }
    detail.push_str(&endless(&found.outage_ns));
    Some((figure, unit, range, detail))
}

/// Whether the device fails closed, with the count that shows it.
fn bypass(found: &FailoverResult) -> Option<Words> {
    let figure = if found.fails_closed()? {
        "fails closed"
    } else {
        "FAILS OPEN"
    };
    let detail = format!(
        "{} of the stations in clear between the gateways in {}, each with a default route past the \
         encryptor",
        counted(found.clear_frames?, "frame"),
        counted(found.failures, "failure")
    );
    Some((figure.into(), String::new(), String::new(), detail))
}

fn reset(found: &ResetResult) -> Option<Words> {
    (found.frame_loss_ns.events > 0).then_some(())?;
    let (figure, unit) = figure(&found.frame_loss_ns);
    let longest = found.frame_loss_ns.max_ns.map_or("no end".into(), time_ns);
    let mut detail = format!(
        "median reset time of {}, by lost frames, longest {longest}",
        counted(found.resets, "reset")
    );
    if let Some(median) = found.timestamp_ns.median_ns {
        detail.push_str(&format!("; by timestamps {}", time_ns(median)));
    }
    let range = match found.differing.len() {
        0 => between(&found.frame_loss_ns),
        differing => format!(
            "{}; the methods differ in {differing} of {}",
            between(&found.frame_loss_ns),
            found.resets
        ),
    };
    if let Some(ready) = &found.ready_ns {
        detail.push_str(&format!("; reported up after {}", time_ns(ready.mean)));
    }
    detail.push_str(&endless(&found.outage_ns));
    Some((figure, unit, range, detail))
}

fn setup(found: &SetupResult) -> Option<Words> {
    (found.all_carry_ns.events > 0).then_some(())?;
    let (figure, unit) = figure(&found.all_carry_ns);
    let range = between(&found.all_carry_ns);
    let mut detail = format!(
        "until {}, median of {}",
        match found.tunnels {
            1 => "the tunnel carries".to_owned(),
            tunnels => format!("all {tunnels} tunnels carry"),
        },
        counted(found.set_ups, "set-up")
    );
    if let Some(first) = found.first_frame_ns.median_ns {
        detail.push_str(&format!("; first frame after {}", time_ns(first)));
    }
    if let Some(rate) = found.tunnels_per_s.as_ref().filter(|_| found.tunnels > 1) {
        let rate = Scale::plain().number(rate.mean);
        detail.push_str(&format!("; {rate} tunnels/s"));
    }
    detail.push_str(&endless(&found.all_carry_ns));
    Some((figure, unit, range, detail))
}

fn desync(found: &DesyncResult) -> Option<Words> {
    (found.outage_ns.events > 0).then_some(())?;
    let (figure, unit) = figure(&found.outage_ns);
    let range = between(&found.outage_ns);
    let longest = found.outage_ns.max_ns.map_or("no end".into(), time_ns);
    let mut detail = format!(
        "median outage of {}, longest {longest}",
        counted(found.times, "time")
    );
    if let Some(lost) = &found.lost_frames {
        detail.push_str(&format!("; {:.0} frames lost at most", lost.max));
    }
    if let Some(reported) = &found.reported {
        detail.push_str(&format!(
            "; found {} by the device",
            counted(reported.desyncs, "time")
        ));
    }
    detail.push_str(&endless(&found.outage_ns));
    Some((figure, unit, range, detail))
}

fn hostile(what: &str, found: &DisturbanceResult, hostile: &HostileResult) -> Option<Words> {
    let last = hostile.shares.last()?;
    let lost = |share: &stats::HostileShare| percent(100.0 * (1.0 - share.forwarded_ratio.mean));
    let sent = last.packets_per_s.as_ref();
    let sent = sent.map_or_else(String::new, |rate| format!(" ({})", mean_rate(rate)));
    let most = format!("{}{sent}", percent_name(last.percent));
    let quiet = found.quiet.as_ref();
    let (figure, unit, detail) = match hostile.suffers_from_percent {
        Some(from) => (
            format!("from {from}"),
            "% on".to_owned(),
            format!(
                "of the load in {what} it loses more than 0.1 %; with {most} it loses {}",
                lost(last)
            ),
        ),
        None if quiet.is_some_and(stats::DisturbedLoad::suffers) => (
            "no figure".into(),
            String::new(),
            "the load lost more than 0.1 % without hostile packets".into(),
        ),
        None => (
            format!("≥ {}", last.percent),
            "% withstood".to_owned(),
            format!("of the load in {what}: with {most} it loses {}", lost(last)),
        ),
    };
    let came = match hostile.delivered {
        0 => "none came through".to_owned(),
        frames => format!("{} CAME THROUGH", counted(frames, "hostile packet")),
    };
    let range = repeats(
        &last.forwarded_ratio,
        &Scale {
            divisor: 0.01,
            unit: "% forwarded".into(),
        },
    );
    // Delivered hostile packets are a defect, so they are named next to the figure.
    Some(match hostile.delivered {
        0 => (figure, unit, range, format!("{detail}; {came}")),
        _ => (figure, unit, format!("{came}; {range}"), detail),
    })
}

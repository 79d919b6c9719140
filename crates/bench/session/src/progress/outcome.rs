//! The outcome of a trial in words: its figure, or the reason for its absence.

use super::frames::frames_figure;
use journal::record::{
    DeviceFatigue, DeviceRecord, DeviceResult, DeviceSpeed, FatigueSegment, Figures, FramesSeen,
    HttpResult, IkeResult, KatOutcome, KatRow, Latency, Measured, Outcome, SpeedTrial,
    ToolParameters, Transfer, TrialRecord, VideoResult, in_brief,
};
use plan::LackingCores;
use units::human;

/// Describes the outcome of a trial: its figure, or why it has none.
pub(super) fn came_of(record: &TrialRecord) -> String {
    match &record.outcome {
        Outcome::Invalid { reasons, .. } => {
            let words = reasons
                .iter()
                .map(|reason| invalid(&record.outcome, reason));
            format!("invalid: {}", words.collect::<Vec<_>>().join("; "))
        }
        Outcome::Failed { reason } => format!("failed: {}", on_one_line(reason)),
        Outcome::Measured(measured) => figure(measured),
    }
}

/// Describes a cell that the campaign leaves out on a machine with too few cores.
pub(super) fn skipped(lacking: LackingCores) -> String {
    format!("skipped: {lacking}")
}

/// Describes a reason of an invalid trial: its check and the difference, or the whole reason.
fn invalid(outcome: &Outcome, reason: &str) -> String {
    match outcome.explanation(reason) {
        Some(found) => format!("{} failed: {}", in_brief(reason), found.difference),
        None => reason.to_owned(),
    }
}

/// Reasons may have several lines: a sentence, then help or a tool's last lines.
fn on_one_line(reason: &str) -> String {
    reason.lines().collect::<Vec<_>>().join("; ")
}

fn figure(measured: &Measured) -> String {
    match &measured.figures {
        Figures::Transfer(transfer) => {
            let words = |way: &Transfer| human::bit_rate(received_bps(way)) + &loss(way);
            transfer
                .each_way()
                .map(words)
                .collect::<Vec<_>>()
                .join(" and back ")
        }
        Figures::Latency(latency) => {
            format!("median {}", human::duration_ns(median_ns(latency)))
        }
        Figures::Http(http) => transactions(http),
        Figures::Video(video) => frames_shown(video),
        Figures::Ike(ike) => set_ups(ike),
        Figures::Frames(frames) => frames_figure(frames),
        Figures::Device(device) => device_figure(device),
        Figures::None => "nothing".to_owned(),
    }
}

fn frames_shown(video: &VideoResult) -> String {
    let of = |count: fn(&FramesSeen) -> u64| video.sum(|stream| count(&stream.frames));
    let lost = video.sum(|stream| stream.rtp.map_or(0, |rtp| rtp.lost));
    format!(
        "{} of {} frames shown, {} damaged, {} lost",
        of(|frames| frames.shown),
        of(|frames| frames.expected),
        of(|frames| frames.damaged),
        human::counted(lost, "packet")
    )
}

fn set_ups(ike: &IkeResult) -> String {
    let Some(trial) = ike.figures() else {
        return "no set-ups".to_owned();
    };
    let median = trial.latency(500);
    let median = median.map_or("none".to_owned(), |ns| human::duration_ns(ns as f64));
    let found = match ike.search {
        Some(_) => "at most ",
        None => "",
    };
    format!(
        "{found}{} IKEv2 set-ups/s, {} of {} in time, median {median}",
        trial.per_s, trial.in_time, trial.intended
    )
}

fn transactions(http: &HttpResult) -> String {
    let seconds = http.duration_ns.max(1) as f64 / 1e9;
    let bps = 8.0 * http.object_bytes as f64 / seconds;
    format!(
        "{:.0} transactions/s, {}",
        http.transactions as f64 / seconds,
        human::bit_rate(bps)
    )
}

/// Describes a result of a crypto device: the failed cases, the rate, or a fatigue trial.
fn device_figure(result: &DeviceResult) -> String {
    match &result.found {
        DeviceRecord::NotOffered(why) => format!("not offered: {}", on_one_line(why)),
        DeviceRecord::Kat(rows) => known_answers(rows),
        DeviceRecord::Speed(trial) => speed(trial),
        DeviceRecord::Fatigue(segments) => segments.last().map_or_else(String::new, fatigue),
    }
}

fn speed(trial: &SpeedTrial) -> String {
    let sum = |of: fn(&DeviceSpeed) -> u64| trial.devices.iter().map(of).sum::<u64>() as f64;
    let (operations, bytes) = (sum(|device| device.operations), sum(|device| device.bytes));
    let seconds = trial.span_ns.max(1) as f64 / 1e9;
    let rate = format!("{} operations/s", human::number(operations / seconds));
    if bytes > 0.0 {
        format!("{rate}, {}/s", human::data(bytes / seconds))
    } else {
        rate
    }
}

fn known_answers(rows: &[KatRow]) -> String {
    let count = |is: &dyn Fn(&KatOutcome) -> bool| {
        let rows = rows.iter().filter(|row| is(&row.outcome));
        rows.count()
    };
    let absent = match count(&|outcome| matches!(outcome, KatOutcome::NotOffered(_))) {
        0 => String::new(),
        rows => format!(", {rows} not offered"),
    };
    format!(
        "{} cases passed, {} failed{absent}",
        count(&|outcome| *outcome == KatOutcome::Pass),
        count(&KatOutcome::is_bad)
    )
}

/// Describes a fatigue trial so far.
pub(super) fn fatigue(segment: &FatigueSegment) -> String {
    let sum = |of: fn(&DeviceFatigue) -> u64| segment.devices.iter().map(of).sum::<u64>();
    let right = sum(|device| device.counts.right);
    let bad = sum(|device| device.counts.bad());
    format!(
        "{} operations right and {bad} not in {}",
        human::number(right as f64),
        human::duration_ns(segment.elapsed_ns() as f64)
    )
}

fn received_bps(transfer: &Transfer) -> f64 {
    transfer.received_bytes as f64 * 8e9 / transfer.duration_ns.max(1) as f64
}

fn loss(transfer: &Transfer) -> String {
    match &transfer.datagrams {
        Some(datagrams) if datagrams.sent > 0 => {
            let percent = 100.0 * datagrams.lost as f64 / datagrams.sent as f64;
            format!(", {} % lost", human::number(percent))
        }
        _ => String::new(),
    }
}

/// The median round trip, which the report has as well; 0 without any.
fn median_ns(latency: &Latency) -> f64 {
    let mut times = latency.round_trips_ns.clone();
    times.sort_unstable();
    let middle = times.len().saturating_sub(1) / 2;
    times.get(middle).map_or(0.0, |&time| time as f64)
}

/// Tool parameters as the tool's options: `-P 4 -w 1 MiB`.
pub(super) fn in_words(parameters: &ToolParameters) -> String {
    let words = [
        parameters.streams.map(|streams| format!("-P {streams}")),
        parameters.window_bytes.map(|bytes| format!("-w {bytes}")),
        parameters.datagram_bytes.map(|bytes| format!("-l {bytes}")),
        parameters
            .rate_bps
            .map(|bps| format!("-b {}", human::bit_rate(bps as f64))),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

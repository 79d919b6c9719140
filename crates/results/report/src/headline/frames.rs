//! Frame tests in a few words and numbers.

use super::{Fact, repeats};
use crate::format::{Scale, time_ns};
use crate::layout::Run;
use crate::layout::frames::{FrameKind, FrameSet};
use plan::LatencyPath;
use stats::{CellResult, GoalResult, LoadLatency};

/// Summary of a device's frame tests: throughput of the smallest frames by direction, and latency
/// at the middle load.
pub(super) fn facts(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let sets = run.frame_sets();
    let of = |kind| sets.iter().filter(move |set| set.kind == kind);
    let throughput = of(FrameKind::Throughput).filter_map(|set| throughput(run, device, set));
    let latency = of(FrameKind::Latency).find_map(|set| latency(device, set));
    throughput.chain(latency).collect()
}

/// The device's cells of a set, the smallest frames first.
pub(super) fn cells<'s>(device: &str, set: &'s FrameSet<'_>) -> Vec<(String, &'s CellResult)> {
    let mut points: Vec<_> = set.points.iter().collect();
    points.sort_by(|a, b| {
        a.traffic
            .mean_frame_bytes
            .total_cmp(&b.traffic.mean_frame_bytes)
    });
    let of = |point: &&crate::layout::frames::FramePoint<'s>| {
        let own = |cell: &&&CellResult| cell.dut == device;
        Some((point.name(), *point.cells.iter().find(own)?))
    };
    points.iter().filter_map(of).collect()
}

fn throughput(run: &Run<'_>, device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    let cells = cells(device, set);
    let (size, cell) = cells.iter().find(|(_, cell)| cell.frame_rate().is_some())?;
    let goal = cell.frames()?.throughput.as_ref()?.goals.first()?;
    let rates = goal.lower.as_ref()?;
    let scale = Scale::si(rates.frames_per_s.mean, "pps");
    let l2 = Scale::si(rates.l2_bps.mean, "bit/s");
    let mut detail = format!("{} at L2 (goal {})", l2.value(rates.l2_bps.mean), goal.goal);
    let at_least = if cell.frames()?.is_only_lower_bound() {
        "at least "
    } else {
        ""
    };
    if !at_least.is_empty() {
        detail = format!("{}; {detail}", unbounded(goal));
    }
    let means = run.results.mean_frame_rates.iter();
    let own = |cell: &str| cells.iter().any(|(_, known)| known.id == cell);
    let mut means = means.filter(|mean| mean.cells.iter().any(|cell| own(cell)));
    let mean = means.find_map(|mean| Some((mean, mean.frames_per_s?)));
    if let Some((mean, rate)) = mean {
        detail.push_str(&format!(
            "; mean over {} {}",
            mean.lacking().unwrap_or_else(|| "sizes".to_owned()),
            Scale::si(rate, "pps").value(rate)
        ));
    }
    if let Some(verdict) = cell.verdict() {
        detail.push_str(&format!("; {}", verdict.limit.name()));
    }
    Some(Fact {
        label: super::loads::label(set, "Throughput", size),
        figure: format!("{at_least}{}", scale.number(rates.frames_per_s.mean)),
        range: repeats(&rates.frames_per_s, &scale),
        unit: scale.unit,
        detail,
    })
}

/// Why a goal has no figure, with the known bound: `No lower bound in any repeat: even the lowest
/// load, 1 kpps, does not meet the goal.`
pub(super) fn without(cell: &CellResult) -> Option<String> {
    let goal = cell.frames()?.throughput.as_ref()?.goals.first()?;
    goal.lower
        .is_none()
        .then(|| unbounded(goal))
        .filter(|why| !why.is_empty())
        .map(|why| format!("{why}."))
}

/// The missing bound of a search, and the upper bound if known.
fn unbounded(goal: &GoalResult) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(upper) = goal.upper.as_ref().filter(|_| !goal.upper_is_testers()) {
        let rate = &upper.frames_per_s;
        let scale = Scale::si(rate.mean, "pps");
        parts.push(format!("less than {}", scale.value(rate.mean)));
    }
    let why = goal.irregular.first();
    parts.extend(why.map(|why| why.trim_end_matches('.').to_owned()));
    parts.join("; ")
}

fn latency(device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    let cells = cells(device, set);
    let (size, found) = cells.iter().find_map(|(size, cell)| {
        let latency = &cell.frames()?.latency;
        let distance = |found: &&LoadLatency| found.percent.unwrap_or(0).abs_diff(50);
        Some((size, latency.iter().min_by_key(distance)?))
    })?;
    let scale = Scale::time(found.p50_ns as f64);
    let load = match found.percent {
        Some(percent) => format!("at {percent} % of the throughput"),
        None => "at the load of the evidence".into(),
    };
    let p99 = found.p99_ns.map_or("–".into(), |p99| time_ns(p99 as f64));
    Some(Fact {
        label: match found.path() {
            LatencyPath::OneWay => "Latency, one way",
            LatencyPath::RoundTrip => "Round trip of frames",
        }
        .into(),
        figure: scale.number(found.p50_ns as f64),
        range: repeats(&found.p50_each_ns, &scale),
        unit: scale.unit,
        detail: format!("median {load}, {size} frames; p99 {p99}"),
    })
}

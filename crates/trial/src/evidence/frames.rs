//! Checks of frame tests: of every frame trial of a procedure, and of the links and the DUT during the one
//! whose evidence is read.

use super::cipher::CipherSeen;
use super::gateway::Gateway;
use super::{check, link, tool};
use crate::frames::{Strays, was_offered};
use campaign::plan::{Adapter, Cell, FrameTest, Procedure};
use journal::record::{Check, Cpu, FrameResult, FrameTrial, InterfaceCounters};
use lab::{FrameEnd, FramePath, Links, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Ethernet header and FCS.
const ETHERNET_AND_FCS_BYTES: u64 = 14 + 4;
/// Frames that others may send on a link in a trial: ARP, ND, a gateway's own.
const CONTROL_FRAMES: u64 = 64;
/// Of so many frames, one may be missing where two counts of them are compared that are read one after the
/// other.
const COUNTED_ONE_IN: u64 = 1000;
/// Of so many frames, the receiving station may lose one.
const STATION_LOST_ONE_IN: u64 = 1000;

/// What was read in a frame test.
#[derive(Debug, Clone)]
pub struct FrameObserved<'a> {
    /// What was asked for.
    pub test: &'a FrameTest,
    /// What was found, the trial with the evidence included.
    pub result: &'a FrameResult,
    /// What came beside the frames, over all trials.
    pub strays: &'a Strays,
    /// The path during the trial with the evidence; `None` where there are no links.
    pub path: Option<PathSeen<'a>>,
}

/// What was read of links and DUT during the trial with the evidence.
#[derive(Debug, Clone)]
pub struct PathSeen<'a> {
    /// The cell measured.
    pub cell: &'a Cell,
    /// The links as they were asked for.
    pub links: Links,
    /// Where frames went in and came out.
    pub path: &'a FramePath,
    /// Every interface of the path, as `node/interface`.
    pub link_ends: &'a [String],
    /// Counter differences, by `node/interface`.
    pub counters: &'a BTreeMap<String, InterfaceCounters>,
    /// Offloads in force, by `node/interface`.
    pub offloads: &'a BTreeMap<String, BTreeMap<String, String>>,
    /// The DUT's counters as differences, by `gateway/counter`.
    pub dut_counters: &'a BTreeMap<String, u64>,
    /// What was seen between the gateways; `None` where the path does not lead there.
    pub cipher: Option<CipherSeen<'a>>,
    /// Cores of the stations: of the source's, and of the sink's.
    pub cores: (&'a [u16], &'a [u16]),
    /// CPU time by role.
    pub cpu: &'a Cpu,
}

/// Makes every check that applies to a frame test.
#[must_use]
pub fn frame_checks(observed: &FrameObserved<'_>) -> Vec<Check> {
    let mut checks = vec![
        offered_as_intended(observed),
        receiver_kept_up(observed),
        frames_intact(observed),
        only_test_frames(observed),
    ];
    if let Some(seen) = &observed.path {
        checks.extend([
            offloads(seen),
            cores(seen),
            tool::machine(seen.cpu),
            interfaces_agree(observed, seen),
        ]);
        checks.extend(between_the_gateways(seen));
        checks.push(dut_counters(observed, seen));
    }
    checks.into_iter().flatten().collect()
}

/// The trials that a figure is read of directly, rather than by a search, which takes a load that was not
/// offered for one that was not carried.
fn figures<'a>(observed: &FrameObserved<'a>) -> Vec<&'a FrameTrial> {
    let result = observed.result;
    let end = result.evidence_trial.unwrap_or(result.trials.len());
    let trials = &result.trials[..end.min(result.trials.len())];
    let last = |count: usize| {
        trials[trials.len().saturating_sub(count)..]
            .iter()
            .collect()
    };
    match &observed.test.procedure {
        Procedure::Load(_) => last(1),
        Procedure::Latency(plan) if !result.latency.is_empty() => last(plan.percents.len()),
        Procedure::Recovery(_) if result.recovery.is_some() => last(1),
        Procedure::LossCurve(_) => {
            // The top of a curve may be more than the generator can do: the record of it tells.
            let offered = trials.iter().filter(|trial| was_offered(trial));
            let highest = offered.map(|trial| trial.load).max().unwrap_or(0);
            trials
                .iter()
                .filter(|trial| trial.load <= highest)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The load that left the station is the load that was asked for (RFC 2285 §3.5), in every frame trial.
fn offered_as_intended(observed: &FrameObserved<'_>) -> Option<Check> {
    let figures = figures(observed);
    let failed = figures.iter().find(|trial| !was_offered(trial));
    let trials = &observed.result.trials;
    let paced = trials.iter().filter(|trial| trial.load > 0);
    let short = paced.clone().filter(|trial| !was_offered(trial));
    let late = trials.iter().map(|trial| trial.late_frames).sum::<u64>();
    let latest_us = trials
        .iter()
        .map(|trial| trial.late_ns_max)
        .max()
        .unwrap_or(0)
        / 1000;
    let mut detail = format!(
        "in {} of {} paced trials the station offered what was intended; {late} frames left over 1 ms late, \
         the latest by {latest_us} us",
        paced.clone().count() - short.clone().count(),
        paced.count()
    );
    if let Some(least) = short.min_by_key(|trial| trial.load) {
        detail += &format!(
            "; the least load that it did not offer was {}",
            offered(least)
        );
    }
    if let Some(trial) = failed {
        detail += &format!(
            "; a figure stands on a load that was not offered, {}: ask for less, or give the stations more \
             cores",
            offered(trial)
        );
    }
    check("offered-as-intended", failed.is_none(), detail)
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

/// What the receiving station lost itself is not the DUT's loss.
fn receiver_kept_up(observed: &FrameObserved<'_>) -> Option<Check> {
    let result = observed.result;
    let figures = figures(observed);
    let spoilt = figures.iter().find(|trial| {
        let lost = trial.receiver_dropped.saturating_mul(STATION_LOST_ONE_IN);
        trial.load > 0 && lost > trial.sent
    });
    let lossy: Vec<&FrameTrial> = result
        .trials
        .iter()
        .filter(|trial| trial.receiver_dropped > 0)
        .collect();
    let dropped: u64 = lossy.iter().map(|trial| trial.receiver_dropped).sum();
    let mut detail = format!(
        "the receiving station lost {dropped} frames itself, in {} of {} trials",
        lossy.len(),
        result.trials.len()
    );
    let bounds = result.throughput.iter().flat_map(|found| &found.goals);
    for goal in bounds {
        for (bound, load) in [("lower", goal.lower), ("upper", goal.upper)] {
            let Some(load) = load else { continue };
            let at = lossy.iter().filter(|trial| trial.load == load);
            let lost: u64 = at.map(|trial| trial.receiver_dropped).sum();
            if lost > 0 {
                let name = &goal.goal;
                detail += &format!(
                    "; {lost} of them at the {bound} bound of `{name}`, which counts them as forwarded"
                );
            }
        }
    }
    if let Some(trial) = spoilt {
        detail += &format!(
            "; of {} frames/s it lost {} of {} sent, which is not the DUT's loss: ask for less, or give the \
             stations more cores",
            trial.load, trial.receiver_dropped, trial.sent
        );
    }
    check("receiver-kept-up", spoilt.is_none(), detail)
}

/// No frame was damaged. Doubled and overtaken ones are facts of the DUT.
fn frames_intact(observed: &FrameObserved<'_>) -> Option<Check> {
    let sum = |of: fn(&FrameTrial) -> u64| observed.result.trials.iter().map(of).sum::<u64>();
    let (received, corrupted) = (sum(|trial| trial.received), sum(|trial| trial.corrupted));
    let detail = format!(
        "{corrupted} frames were damaged, {received} intact; {} were doubled and {} overtaken",
        sum(|trial| trial.duplicated),
        sum(|trial| trial.reordered)
    );
    check("frames-intact", corrupted == 0, detail)
}

/// The receiver saw next to nothing but the frames of its trial, and could open what it had to open.
fn only_test_frames(observed: &FrameObserved<'_>) -> Option<Check> {
    let strays = observed.strays;
    let trials = &observed.result.trials;
    let sent: u64 = trials.iter().map(|trial| trial.sent).sum();
    let foreign_most = CONTROL_FRAMES * trials.len() as u64 + sent / COUNTED_ONE_IN;
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
        sent / COUNTED_ONE_IN,
        reasons.collect::<String>()
    );
    let passed = strays.foreign <= foreign_most && refused <= sent / COUNTED_ONE_IN;
    check("only-test-frames", passed, detail)
}

/// As for tools: every interface of the path.
fn offloads(seen: &PathSeen<'_>) -> Option<Check> {
    let ends: BTreeSet<&String> = seen.link_ends.iter().collect();
    link::offloads(seen.links.offloads, &ends, seen.offloads)
}

/// On which cores the stations' programs ran: a fact.
fn cores(seen: &PathSeen<'_>) -> Option<Check> {
    let list = |cores: &[u16]| {
        let words: Vec<String> = cores.iter().map(u16::to_string).collect();
        words.join(", ")
    };
    let (source, sink) = seen.cores;
    let shared: Vec<u16> = source
        .iter()
        .copied()
        .filter(|core| sink.contains(core))
        .collect();
    let mut detail = format!(
        "the source ran on core {}, the sink on core {}",
        list(source),
        list(sink)
    );
    if !shared.is_empty() {
        detail += &format!(": they shared core {}", list(&shared));
    }
    check("cores-of-stations", true, detail)
}

/// What the stations' interfaces carried is what the generator says it sent, and the analyser that it got.
fn interfaces_agree(observed: &FrameObserved<'_>, seen: &PathSeen<'_>) -> Option<Check> {
    let trial = evidence_trial(observed)?;
    let ends = [&seen.path.source, &seen.path.sink];
    let duplex = observed.test.traffic.duplex;
    let counters = |end: &FrameEnd| {
        let name = interface(end);
        seen.counters.get(&name).copied().ok_or(name)
    };
    let (source, sink) = match (counters(ends[0]), counters(ends[1])) {
        (Ok(source), Ok(sink)) => (source, sink),
        (Err(name), _) | (_, Err(name)) => {
            return check("interfaces-agree", false, format!("{name} has no counters"));
        }
    };
    // With both directions loaded each end is a source and a sink.
    let sum = |one: u64, other: u64| one + if duplex { other } else { 0 };
    let left = sum(source.tx_packets, sink.tx_packets);
    let came = sum(
        sink.rx_packets + sink.rx_dropped,
        source.rx_packets + source.rx_dropped,
    );
    let arrived = trial.received + trial.duplicated + trial.corrupted + trial.receiver_dropped;
    let slack = CONTROL_FRAMES + trial.sent / COUNTED_ONE_IN;
    // A virtual link may count a super-packet as one.
    let least = |frames: u64| {
        if seen.links.offloads {
            0
        } else {
            frames.saturating_sub(slack)
        }
    };
    let within = |counted: u64, frames: u64| (least(frames)..=frames + slack).contains(&counted);
    let dropped = dropped_on_the_way(seen);
    let detail = format!(
        "{} sent {left} frames, the generator {}; {} received {came}, the analyser {} and lost {}; {slack} more \
         or fewer are allowed{dropped}",
        interface(ends[0]),
        trial.sent,
        interface(ends[1]),
        arrived - trial.receiver_dropped,
        trial.receiver_dropped
    );
    let passed = within(left, trial.sent) && within(came, arrived);
    check("interfaces-agree", passed, detail)
}

/// Interfaces that dropped frames.
fn dropped_on_the_way(seen: &PathSeen<'_>) -> String {
    let dropped = seen.counters.iter().filter_map(|(name, found)| {
        let frames = found.rx_dropped + found.tx_dropped;
        (frames > 0).then(|| format!("; {name} dropped {frames}"))
    });
    dropped.collect()
}

/// What applies of the checks of the link between the gateways.
fn between_the_gateways(seen: &PathSeen<'_>) -> Vec<Option<Check>> {
    let Some(cipher) = &seen.cipher else {
        return Vec::new();
    };
    match &seen.cell.dut.adapter {
        Adapter::Cipherbench { engine, .. } => {
            let clear = match engine.as_str() {
                "null" => check(
                    "no-clear-text",
                    true,
                    format!(
                        "the engine does not encrypt, as asked: {}",
                        cipher.marker_shown()
                    ),
                ),
                _ => cipher.no_clear_text(),
            };
            vec![cipher.encrypted(), clear, cipher.no_foreign_frames()]
        }
        adapter if adapter.encrypts() => vec![
            cipher.encrypted(),
            cipher.no_clear_text(),
            cipher.no_foreign_frames(),
        ],
        _ => vec![cipher.clear_text_visible(), cipher.foreign_frames_visible()],
    }
}

/// The DUT's own counters say that it sealed and opened what was received, and every packet in is a packet out
/// or a drop.
fn dut_counters(observed: &FrameObserved<'_>, seen: &PathSeen<'_>) -> Option<Check> {
    if !seen.cell.dut.adapter.encrypts() {
        return None;
    }
    let trial = evidence_trial(observed)?;
    let ip_bytes = trial
        .received_bytes
        .saturating_sub(trial.received * ETHERNET_AND_FCS_BYTES);
    let mut passed = true;
    let mut said = Vec::new();
    let (mut into, mut out) = (None::<u64>, None::<u64>);
    for end in [&seen.path.source, &seen.path.sink] {
        // Where the station seals and opens by itself, there is no gateway beside it.
        let Some(name) = gateway_beside(end) else {
            continue;
        };
        let Some(gateway) = Gateway::of(seen.dut_counters, name) else {
            return check("dut-counters", false, format!("{name} shows no counters"));
        };
        let is_source = end == &seen.path.source;
        let duplex = observed.test.traffic.duplex;
        if is_source || duplex {
            *into.get_or_insert(0) += gateway.count("clear_rx_bytes");
        }
        if !is_source || duplex {
            *out.get_or_insert(0) += gateway.count("clear_tx_bytes");
        }
        let (balanced, balance) = gateway.balance();
        passed &= balanced;
        said.push(format!("{name}: {balance}"));
    }
    let both_ends = said.len() == 2;
    let ways = match (into, out) {
        // Each way crosses a single gateway, at its one side or the other.
        (Some(into), Some(out)) if !both_ends => vec![("carried", into + out)],
        (into, out) => [("took in", into), ("put out", out)]
            .into_iter()
            .filter_map(|(way, bytes)| Some((way, bytes?)))
            .collect(),
    };
    for (way, bytes) in ways {
        passed &= bytes >= ip_bytes;
        said.push(format!(
            "{way} {bytes} B in clear, of {ip_bytes} B or more expected"
        ));
    }
    check("dut-counters", passed && !said.is_empty(), said.join("; "))
}

fn gateway_beside(end: &FrameEnd) -> Option<&'static str> {
    match (end.node, &end.esp) {
        (NodeId::A, None) => Some(NodeId::Gw1.name()),
        (NodeId::B, None) => Some(NodeId::Gw2.name()),
        _ => None,
    }
}

fn evidence_trial<'a>(observed: &FrameObserved<'a>) -> Option<&'a FrameTrial> {
    observed.result.trials.get(observed.result.evidence_trial?)
}

fn interface(end: &FrameEnd) -> String {
    format!("{}/{}", end.node.name(), end.interface)
}

//! Checks of the links and the DUT during the frame trial with the evidence.

use super::{CONTROL_FRAMES, COUNTED_ONE_IN, FrameObserved, FrameReadings};
use crate::evidence::failure::{count, nothing_seen, size};
use crate::evidence::gateway::{Gateway, counted_wrong, counters_rose, dut_work, not_counted};
use crate::evidence::places::{Ends, FrameEnds};
use crate::evidence::{
    ETHERNET_AND_FCS_BYTES, check, dut_as_asked, impaired, machine, nat, places, settings,
    then_repeat,
};
use journal::record::{Check, Explanation, FrameTrial, LostAt};
use testbed::FrameEnd;
use units::human;

/// Makes every check that applies.
pub(super) fn checks(observed: &FrameObserved<'_>, seen: &FrameReadings<'_>) -> Vec<Option<Check>> {
    let path = &seen.path;
    let mut checks = vec![
        path.offloads_as_asked(&[]),
        settings::path_unchanged(path.settings),
        path.driver_counters(),
        cores(seen),
        machine::machine_was_ours(path.cpu),
        interfaces_agree(observed, seen),
    ];
    checks.extend(path.between_the_gateways());
    checks.extend(impaired::checks(path));
    checks.push(nat::addresses_translated(path));
    checks.push(sealed_by_station(observed, seen));
    checks.push(places::links_lossless(path, &observed.lost_at()));
    checks.push(dut_counters(observed, seen));
    checks.push(counters_rose(path));
    checks.push(dut_as_asked(
        path.cell,
        path.dut_facts,
        path.dut_counters,
        evidence_trial(observed),
    ));
    checks
}

/// Nothing looks between a single gateway and the station that is its peer. The proof is that the
/// station opened the gateway's packets, or the gateway the station's.
fn sealed_by_station(observed: &FrameObserved<'_>, seen: &FrameReadings<'_>) -> Option<Check> {
    seen.path.cell.dut.adapter.external()?.gateway.as_ref()?;
    let result = observed.result;
    let trial = evidence_trial(observed)?;
    let opens = seen.ends.sink.peer.is_some();
    let (verb, engine) = if opens {
        ("opened", &result.receiver.engine)
    } else {
        ("sealed", &result.sender.engine)
    };
    let frames = if opens { trial.received } else { trial.sent };
    let (failure, detail) = match engine {
        // Arriving frames also show that the device opened the station's packets.
        Some(engine) => (
            nothing_seen(
                trial.received,
                &if opens {
                    format!("frame of {} sent was opened by the station", trial.sent)
                } else {
                    format!("frame of {frames} that the station sealed came out of the device")
                },
            ),
            format!(
                "the station {verb} {frames} frames with the keys that it has agreed on with the device, by {engine}, and \
                 {} arrived; whatever else came counts among those that could not be opened, or were no test frames",
                trial.received
            ),
        ),
        None => (
            Some(Explanation::new(
                format!("the station {verb} none of its {frames} frames itself"),
                "it did not stand for the device's peer",
                then_repeat("this is a fault of the tester: report it"),
            )),
            format!("the station has no engine, and {verb} none of {frames} frames"),
        ),
    };
    check("station-is-peer", failure, detail)
}

/// Reports the cores of the stations' programs: a fact.
fn cores(seen: &FrameReadings<'_>) -> Option<Check> {
    let cores = seen.cores;
    let [a, b] = cores.in_words(&cores.a, &cores.b);
    let (source, sink) = if seen.ends.begins_at_b() {
        (b, a)
    } else {
        (a, b)
    };
    let mut detail = format!("the source ran on core {source}, the sink on core {sink}");
    let shared = cores.shared();
    if !shared.is_empty() {
        let [shared, _] = cores.in_words(&shared, &[]);
        detail += &format!(": they shared core {shared}");
    }
    check("cores-of-stations", None, detail)
}

/// Checks that the stations' interfaces carried the frames that the generator counts as sent and
/// the analyser as received.
fn interfaces_agree(observed: &FrameObserved<'_>, seen: &FrameReadings<'_>) -> Option<Check> {
    let trial = evidence_trial(observed)?;
    let ends = [&seen.ends.source, &seen.ends.sink];
    let duplex = trial.loads_both();
    let counters = |end: &FrameEnd| {
        let name = interface(end);
        seen.path.counters.get(&name).copied().ok_or(name)
    };
    let (source, sink) = match (counters(ends[0]), counters(ends[1])) {
        (Ok(source), Ok(sink)) => (source, sink),
        (Err(name), _) | (_, Err(name)) => {
            let failure = Explanation::new(
                format!("{name} has no counters"),
                "the interface was removed or renamed during the trial",
                then_repeat("stop what reconfigures the lab's links"),
            );
            return check(
                "interfaces-agree",
                failure,
                format!("{name} has no counters"),
            );
        }
    };
    // With both directions loaded each end is a source and a sink.
    let sum = |one: u64, other: u64| one + if duplex { other } else { 0 };
    let left = sum(source.tx_packets, sink.tx_packets);
    let came = sum(
        sink.rx_packets + sink.rx_dropped,
        source.rx_packets + source.rx_dropped,
    );
    let analysed = trial.received + trial.duplicated + trial.too_late + trial.corrupted;
    let arrived = analysed + trial.receiver_dropped + trial.after_end;
    let slack = CONTROL_FRAMES + trial.sent / COUNTED_ONE_IN;
    // A virtual link may count a super-packet as one.
    let least = |frames: u64| {
        if seen.path.links.offloads {
            0
        } else {
            frames.saturating_sub(slack)
        }
    };
    // Frames that found the sink's queue full were counted there, but no program saw them.
    let full = sum(sink.rx_dropped, source.rx_dropped);
    let within = |counted: u64, frames: u64, more: u64| {
        (least(frames)..=frames + more + slack).contains(&counted)
    };
    let dropped = dropped_on_the_way(seen);
    let detail = format!(
        "{} sent {left} frames, the generator {}; {} received {came}, the analyser {}, \
         after its end {}, and lost {}; {slack} more or fewer are allowed{dropped}",
        interface(ends[0]),
        trial.sent,
        interface(ends[1]),
        analysed,
        trial.after_end,
        trial.receiver_dropped
    );
    let difference = if !within(left, trial.sent, 0) {
        Some(frames_apart(
            (ends[0], "sent"),
            left,
            ("generator sent", trial.sent),
        ))
    } else if !within(came, arrived, full) {
        Some(frames_apart(
            (ends[1], "received"),
            came,
            ("analyser counted", arrived),
        ))
    } else {
        None
    };
    let failure = difference.map(|difference| {
        Explanation::new(
            difference,
            "something else sends on this interface or takes frames from it, or it merges or splits frames",
            then_repeat("stop other programs that use the lab's links"),
        )
    });
    let failure = failure.or_else(|| nothing_seen(trial.sent, "frame was sent"));
    check("interfaces-agree", failure, detail)
}

/// `a/a0 sent 120 frames (12 %) more than the generator sent`.
fn frames_apart(
    (end, verb): (&FrameEnd, &str),
    found: u64,
    (counter, expected): (&str, u64),
) -> String {
    let by = count(found.abs_diff(expected), expected, "frame");
    let than = if found > expected { "more" } else { "fewer" };
    format!("{} {verb} {by} {than} than the {counter}", interface(end))
}

/// Interfaces that dropped frames.
fn dropped_on_the_way(seen: &FrameReadings<'_>) -> String {
    let dropped = seen.path.counters.iter().filter_map(|(name, found)| {
        let frames = found.rx_dropped + found.tx_dropped;
        (frames > 0).then(|| format!("; {name} dropped {frames}"))
    });
    dropped.collect()
}

/// Checks that the DUT's counters show the received frames as sealed and opened, and every packet
/// in as a packet out or a drop. As for tools, only our encryptor is checked.
fn dut_counters(observed: &FrameObserved<'_>, seen: &FrameReadings<'_>) -> Option<Check> {
    seen.path.cell.dut.adapter.encryptor()?;
    let trial = evidence_trial(observed)?;
    let ip_bytes = trial
        .received_bytes
        .saturating_sub(trial.received * ETHERNET_AND_FCS_BYTES);
    let mut differences = Vec::new();
    let mut said = Vec::new();
    for end in [&seen.ends.source, &seen.ends.sink] {
        // A station that seals and opens by itself has no gateway.
        let Some(name) = end.gateway_beside() else {
            continue;
        };
        let Some(gateway) = Gateway::of(seen.path.dut_counters, name) else {
            let detail = format!("{name} shows no counters");
            return check("dut-counters", not_counted(name), detail);
        };
        differences.extend(gateway.imbalance());
        said.push(format!("{name}: {}", gateway.balance()));
    }
    let duplex = trial.loads_both();
    let work = dut_work(seen.ends, seen.path.dut_counters, duplex);
    let (into, out) = work.map_or((None, None), |work| {
        (work.taken_in_bytes, work.put_out_bytes)
    });
    // With both directions loaded, each crosses a single gateway, at its one side or the other.
    let took_in = if duplex && said.len() == 1 {
        "carried"
    } else {
        "took in"
    };
    // Counters of a side that no gateway has are not there.
    for (way, bytes) in [(took_in, into), ("put out", out)] {
        let Some(bytes) = bytes else { continue };
        // No upper bound here: `trials_sealed` has one for each trial.
        if bytes < ip_bytes {
            let by = size(ip_bytes - bytes, ip_bytes, human::data);
            differences.push(format!(
                "the device {way} {by} less in clear than was received"
            ));
        }
        said.push(format!(
            "{way} {bytes} B in clear, of {ip_bytes} B or more expected"
        ));
    }
    if said.is_empty() {
        differences.push("no gateway of the path shows counters".to_owned());
    }
    let failure = counted_wrong(&differences);
    let failure = failure
        .or_else(|| nothing_seen(ip_bytes, "packet was received that it could have counted"));
    check("dut-counters", failure, said.join("; "))
}

impl FrameObserved<'_> {
    /// Returns where frames of the trial with the evidence were lost, as far as counters show.
    pub(crate) fn lost_at(&self) -> Vec<LostAt> {
        let Some(seen) = &self.seen else {
            return Vec::new();
        };
        let ends = Ends::Frames(FrameEnds {
            source: interface(&seen.ends.source),
            sink: interface(&seen.ends.sink),
            trial: evidence_trial(self),
            duplex: evidence_trial(self).is_some_and(FrameTrial::loads_both),
        });
        seen.path.lost_at(&ends)
    }
}

fn evidence_trial<'a>(observed: &FrameObserved<'a>) -> Option<&'a FrameTrial> {
    observed.result.trials.get(observed.result.evidence_trial?)
}

fn interface(end: &FrameEnd) -> String {
    format!("{}/{}", end.node.name(), end.interface)
}

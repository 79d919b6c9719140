//! Checks of the stations and of their tools' reports.

use super::failure::{count, nothing_seen, percent, size, then_repeat, then_repeat_or};
use super::{Load, ToolObserved, check};
use crate::transfer::Totals;
use journal::record::{Check, Explanation};
use std::collections::BTreeSet;
use units::human::{self, duration_ns};

/// Allowed difference of offered and intended load, in percent.
const OFFERED_PERCENT: u64 = 2;
/// Allowed difference of a tool's intervals and its summary, in percent.
const SUMMARY_PERCENT: u64 = 1;
/// Station B may drop one of this many datagrams.
const STATION_LOST_ONE_IN: u64 = 1000;
/// Allowed time between the ends of processes, and between an end and the plan, in percent of the
/// measured time.
const SKEW_PERCENT: u64 = 5;

/// Reports the cores of the stations' tools. A fact rather than a test: shared cores bias a figure,
/// they do not falsify it.
pub(super) fn cores(observed: &ToolObserved<'_>) -> Option<Check> {
    let used = |programs: &[testbed::protocol::Program]| -> Vec<u16> {
        let cores = programs.iter().flat_map(|program| &program.cores);
        let cores: BTreeSet<u16> = cores.copied().collect();
        cores.into_iter().collect()
    };
    let commands = observed.commands;
    let (a, b) = (used(&commands.clients), used(&commands.servers));
    let [on_a, on_b] = commands.cores.in_words(&a, &b);
    let shared = commands.cores.shared_by(&a, &b);
    let detail = if b.is_empty() {
        format!("station A's tool ran on core {on_a}; B's kernel answered")
    } else if shared.is_empty() {
        format!("station A's tools ran on core {on_a}, station B's on core {on_b}")
    } else {
        let [shared, _] = commands.cores.in_words(&shared, &[]);
        format!(
            "station A's tools ran on core {on_a}, station B's on core {on_b}: they shared core {shared}"
        )
    };
    check("cores-of-stations", None, detail)
}

/// Checks that several processes sent at one time: only then are they one load. All send for the
/// same time, so their ends are compared; a started process may wait long before it sends.
pub(super) fn processes_in_step(observed: &ToolObserved<'_>) -> Option<Check> {
    let processes = observed.commands.clients.len();
    if processes < 2 {
        return None;
    }
    let timing = observed.commands.timing;
    let slack_ns = timing.measured_ns() / 100 * SKEW_PERCENT;
    let ends = observed.client_ends_ns;
    let first = ends.iter().copied().min().unwrap_or(0);
    let last = ends.iter().copied().max().unwrap_or(0);
    // A tool's last words wait in the queue behind its datagrams.
    let late_ns = observed.drained_most_ns();
    // A late end is excused by the time that the queue took to drain. An early one never is.
    let off = |end: u64| match end.checked_sub(timing.run_ns) {
        Some(late) => late.saturating_sub(late_ns),
        None => timing.run_ns - end,
    };
    let difference = if ends.len() != processes {
        Some(format!(
            "{} of {processes} processes ended in time",
            ends.len()
        ))
    // `first` is the minimum, so the difference cannot be negative.
    } else if last - first > slack_ns {
        let apart = duration_ns((last - first) as f64);
        Some(format!("the {processes} processes ended {apart} apart"))
    } else if off(first).max(off(last)) > slack_ns {
        let by = duration_ns(off(first).max(off(last)) as f64);
        Some(format!(
            "a process ended {by} before or after the planned time"
        ))
    } else {
        None
    };
    let failure = difference.map(|difference| {
        Explanation::new(
            difference,
            "some of them waited for a core, so they did not load the path together",
            then_repeat_or(
                "stop what else uses this machine",
                "measure with fewer `cores`, one process on each, than the stations have, in a new run",
            ),
        )
    });
    let ms = |ns: u64| ns / 1_000_000;
    let detail = format!(
        "{} of {processes} processes ended from {} to {} ms after the first one's start, planned were \
         {} ms; {} ms early, late or apart are allowed",
        ends.len(),
        ms(first),
        ms(last),
        ms(timing.run_ns),
        ms(slack_ns)
    );
    check("processes-in-step", failure, detail)
}

/// Checks that the intervals add up to the tool's summary, and no more arrived than was sent:
/// except for a block of each stream, which newer versions of iperf3 may send and not count.
pub(super) fn tool_agrees_with_itself(observed: &ToolObserved<'_>) -> Option<Check> {
    let Load::Transfer { totals, .. } = &observed.load else {
        return None;
    };
    let near = |intervals: u64, summary: Option<u64>| {
        summary.is_some_and(|summary| {
            within(intervals, summary, SUMMARY_PERCENT)
                // Threads that are stopped between sending and counting make the two differ by a
                // block of each stream.
                || intervals.abs_diff(summary) <= totals.uncounted_bytes
        })
    };
    let parameters = &observed.commands.parameters;
    let datagram_bytes = u64::from(parameters.datagram_bytes.unwrap_or(0));
    let copied_bytes = observed.copies_most().saturating_mul(datagram_bytes);
    let failure = if !near(totals.sent_bytes, totals.sent_summary_bytes) {
        Some(sums_differ(
            "sent",
            totals.sent_bytes,
            totals.sent_summary_bytes,
        ))
    } else if !near(totals.received_bytes, totals.received_summary_bytes) {
        let (bytes, summary) = (totals.received_bytes, totals.received_summary_bytes);
        Some(sums_differ("received", bytes, summary))
    } else {
        let more = more_received(totals, copied_bytes, observed.stations());
        more.or_else(|| nothing_seen(totals.received_bytes, "byte was received"))
    };
    let summary =
        |bytes: Option<u64>| bytes.map_or("no figure".to_owned(), |bytes| format!("{bytes} B"));
    let copies = match copied_bytes {
        0 => String::new(),
        bytes => format!("; {bytes} B or less of those are copies that the impaired path made"),
    };
    let detail = format!(
        "sent: {} B by intervals, {} by the summary; received: {} B by intervals, {} by the summary; up to {} B may have \
         been sent uncounted{copies}",
        totals.sent_bytes,
        summary(totals.sent_summary_bytes),
        totals.received_bytes,
        summary(totals.received_summary_bytes),
        totals.uncounted_bytes
    );
    check("tool-agrees-with-itself", failure, detail)
}

/// The tool's intervals do not add up to its summary.
fn sums_differ(verb: &str, intervals: u64, summary: Option<u64>) -> Explanation {
    let difference = match summary {
        Some(summary) => {
            let by = size(intervals.abs_diff(summary), summary, human::data);
            let than = if intervals > summary { "more" } else { "less" };
            format!("by its intervals the tool {verb} {by} {than} than by its summary")
        }
        None => format!("the tool's summary does not say how much it {verb}"),
    };
    Explanation::new(
        difference,
        "the tool ended early, or this version of it counts wrong",
        then_repeat(
            "install another version of the tool (`cipherbench doctor` shows which is used)",
        ),
    )
}

/// More arrived than was sent, if so.
fn more_received(totals: &Totals, copied_bytes: u64, [from, to]: [&str; 2]) -> Option<Explanation> {
    let most = totals.sent_bytes.saturating_add(totals.uncounted_bytes);
    let most = most.saturating_add(copied_bytes);
    let more = totals.received_bytes.checked_sub(most)?;
    (more > 0).then(|| {
        Explanation::new(
            format!(
                "station {to} received {} more than station {from} sent",
                size(more, totals.sent_bytes, human::data)
            ),
            "something on the path duplicates packets, or another client sent to the tool's server",
            then_repeat("stop other programs that use the lab's links"),
        )
    })
}

/// The offered load of the sender is the intended load (RFC 2285 §3.5).
pub(super) fn offered_as_intended(observed: &ToolObserved<'_>) -> Option<Check> {
    let Load::Transfer { totals, .. } = &observed.load else {
        return None;
    };
    let intended = observed.commands.parameters.rate_bps?;
    let bits = u128::from(totals.offered_bytes) * 8 * 1_000_000_000;
    let offered = u64::try_from(bits / u128::from(totals.offered_ns.max(1))).unwrap_or(u64::MAX);
    // Of the measured time, by the sender's clock: the receiver's time may include a queue that
    // drained.
    let passed = within(offered, intended, OFFERED_PERCENT);
    let rates = format!("{} of {} intended", megabits(offered), megabits(intended));
    let failure = (!passed).then(|| {
        let rate = |bps: u64| human::bit_rate(bps as f64);
        let off = percent(offered.abs_diff(intended), intended);
        if offered < intended { Explanation::new(
                format!(
                    "the station offered {} ({off} less) of {} intended",
                    rate(offered),
                    rate(intended)
                ),
                "it lacks CPU time for this rate, or other programs took it",
                then_repeat_or(
                    "stop what else uses this machine",
                    "ask for less, give the stations more cores or streams, or leave the rate open, in a new run",
                ),
            ) } else {
// iperf3 catches up on data that it could not send in time.
 Explanation::new(
                format!(
                    "the station offered {} ({off} more) of {} intended",
                    rate(offered),
                    rate(intended)
                ),
                "it stalled before the measured time and caught up in it",
                then_repeat_or(
                    "stop what else uses this machine",
                    "measure for longer in a new run",
                ),
            ) }
    });
    let detail = format!("the station offered {rates}");
    check("offered-as-intended", failure, detail)
}

/// Checks the receiver's socket drops, which are not the DUT's loss. At a set rate they spoil the
/// figure of loss; a flood is expected to overrun a buffer, and the record shows which.
pub(super) fn station_kept_up(observed: &ToolObserved<'_>) -> Option<Check> {
    let Load::Transfer { totals, .. } = &observed.load else {
        return None;
    };
    let parameters = &observed.commands.parameters;
    let sent = totals.sent_bytes / u64::from(parameters.datagram_bytes?).max(1);
    let lost = observed.station_lost;
    let kept_up = lost.saturating_mul(STATION_LOST_ONE_IN) <= sent;
    let passed = kept_up || parameters.rate_bps.is_none();
    let [_, to] = observed.stations();
    let numbers = format!("station {to}'s sockets dropped {lost} of {sent} datagrams sent");
    let detail = match (kept_up, passed) {
        (false, true) => format!("{numbers}: the loss is in part the station's, at full speed"),
        (true, _) | (false, false) => numbers,
    };
    let failure = (!passed).then(|| {
        Explanation::new(
            format!(
                "station {to} itself dropped {} of those sent",
                count(lost, sent, "datagram")
            ),
            "its receive buffer is too small, or it waited for a core: this loss is not the DUT's",
            then_repeat_or(
                "raise net.core.rmem_max (`cipherbench doctor --apply`) and stop what else uses this machine",
                "ask for less or give the stations more cores, in a new run",
            ),
        )
    });
    let failure = failure.or_else(|| nothing_seen(sent, "datagram was sent"));
    check("station-kept-up", failure, detail)
}

fn within(found: u64, expected: u64, percent: u64) -> bool {
    u128::from(found.abs_diff(expected)) * 100 <= u128::from(expected) * u128::from(percent)
}

fn megabits(bps: u64) -> String {
    format!("{}.{:03} Mbit/s", bps / 1_000_000, bps % 1_000_000 / 1000)
}

//! Warnings about what happened on the path within single trials by tools.

use super::{Warning, WarningKind, counted, warning};
use crate::analysis::levels::{LEVELS_APART, TwoLevels};
use crate::figures::repeats::Total;
use journal::Journal;
use journal::record::{Evidence, InterfaceCounters, Measured, Outcome, TrialRecord};
use plan::Measurement;
use std::collections::BTreeSet;
use units::human::{bit_rate, duration_ns};

/// Segments of a super-packet of 64 KiB at an MTU of 1500 B: one dropped packet may have carried
/// this number of segments with offloads on.
const SEGMENTS_PER_SUPER_PACKET: u64 = 46;
/// Segments sent again that are too few to mean anything, and the share of all segments.
const RETRANSMITTED_LEAST: u64 = 20;
const RETRANSMITTED_ONE_IN: u64 = 1000;
/// Packets lost in one direction that are too few to compare the directions.
const LOST_LEAST: u64 = 3;
/// Minimum ratio of the loss of one direction to the other's.
const LOST_RATIO: u64 = 3;

/// What is found in the latest trials of each cell and repeat that were measured, without
/// objections.
fn in_measured<'j, T>(
    journal: &'j Journal,
    find: impl Fn(&TrialRecord, &'j Measured) -> Option<T>,
) -> Vec<(&'j TrialRecord, T)> {
    let latest = journal.latest_trials().into_values();
    let found = latest.filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) => Some((trial, find(trial, measured)?)),
        _ => None,
    });
    found.collect()
}

fn cells(found: &[(&TrialRecord, impl Sized)]) -> Vec<String> {
    let names: BTreeSet<&str> = found.iter().map(|(trial, _)| trial.cell.as_str()).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// `2 trials of 1 cell`.
fn of_cells(found: &[(&TrialRecord, impl Sized)]) -> String {
    let trials = counted(found.len(), "trial");
    format!("{trials} of {}", counted(cells(found).len(), "cell"))
}

/// The intervals of one trial have two levels.
pub(super) fn intervals_apart(journal: &Journal) -> Option<Warning> {
    let found = in_measured(journal, |_, measured| {
        TwoLevels::of(&measured.transfer()?.intervals)
    });
    let (trial, worst) = found
        .iter()
        .max_by(|(_, one), (_, other)| one.ratio().total_cmp(&other.ratio()))?;
    let seconds = |ns: u64| format!("{:.1}", ns as f64 / 1e9);
    let slow = worst.slow_ns.iter();
    let slow: Vec<String> = slow
        .map(|(begin, end)| format!("from {} to {} s", seconds(*begin), seconds(*end)))
        .collect();
    let text = format!(
        "In {} the rate lay on two levels within the trial, at least {LEVELS_APART} times apart; most \
         in repeat {} of `{}`: {}, but {} {}. The mean over the trial is the rate of neither.",
        of_cells(&found),
        trial.repeat,
        trial.cell,
        bit_rate(worst.high_bps),
        bit_rate(worst.low_bps),
        slow.join(" and ")
    );
    let advice = "Find out what changed at that time (clock, another program, the device's own work), \
                  hold it still, and measure again; until then read the two levels, not the mean.";
    warning(WarningKind::IntervalsApart, cells(&found), text, advice)
}

/// Retransmissions of a trial, and what counters of the path explain.
struct Retransmitted {
    segments: u64,
    sent: u64,
    drops: u64,
    explained: u64,
}

impl Retransmitted {
    /// `None` if the kernels' counters were not read, or explain the retransmissions.
    fn of(evidence: &Evidence, offloads: bool) -> Option<Self> {
        let settings = evidence.settings.as_ref()?;
        let tcp = |name: &str| settings.counted("a", name);
        let interfaces = evidence.interfaces.values().flat_map(|counters| {
            let dropped = [counters.rx_dropped, counters.tx_dropped];
            let errors = [counters.rx_errors, counters.tx_errors];
            dropped.into_iter().chain(errors)
        });
        let device = evidence.dut_counters.iter();
        let device = device
            .filter(|(name, _)| name.contains("drop"))
            .map(|(_, count)| *count);
        // Every counter that names drops, even if some count one drop twice: a larger sum explains
        // more, and the warning must be certain.
        let drops = interfaces
            .chain(settings.queue_drops.values().copied())
            .chain(device)
            .total();
        let per_drop = if offloads {
            SEGMENTS_PER_SUPER_PACKET
        } else {
            1
        };
        // Segments that the receiver had already, and probes for a lost tail: no segment was lost.
        let needless = tcp("TCPDSACKRecv").saturating_add(tcp("TCPLossProbes"));
        let found = Self {
            segments: tcp("RetransSegs"),
            sent: tcp("OutSegs"),
            drops,
            explained: drops.saturating_mul(per_drop).saturating_add(needless),
        };
        let more = found.segments.saturating_sub(found.explained);
        let allowed = RETRANSMITTED_LEAST.max(found.sent / RETRANSMITTED_ONE_IN);
        (more > allowed).then_some(found)
    }
}

/// TCP sent more again than counters of the path explain.
pub(super) fn unexplained_retransmissions(journal: &Journal) -> Option<Warning> {
    let plan = &journal.header.plan;
    let has_offloads = |trial: &TrialRecord| {
        let cell = plan.cells.iter().find(|cell| cell.id == trial.cell);
        let stations = cell.and_then(|cell| cell.stations);
        stations.is_some_and(|stations| stations.offloads)
    };
    let found = in_measured(journal, |trial, measured| {
        // UDP trials retransmit nothing, and the tools' control connections are no figure.
        measured.transfer()?.datagrams.is_none().then_some(())?;
        Retransmitted::of(&measured.evidence, has_offloads(trial))
    });
    let (trial, worst) = found
        .iter()
        .max_by_key(|(_, one)| one.segments - one.explained)?;
    let text = format!(
        "In {} TCP sent more segments again than the path explains; most in repeat {} of `{}`: {} of {} \
         segments, while interfaces, queues and the device count {} drops, and at most {} are \
         explained.",
        of_cells(&found),
        trial.repeat,
        trial.cell,
        worst.segments,
        worst.sent,
        worst.drops,
        worst.explained
    );
    let advice = "Something loses packets without counting them: look at the kernels' backlog \
                  (`/proc/net/softnet_stat`), at the device, and between its gateways.";
    warning(
        WarningKind::UnexplainedRetransmissions,
        cells(&found),
        text,
        advice,
    )
}

/// Lost requests and lost replies of a trial with `ping`.
struct LostEchoes {
    requests: u64,
    replies: u64,
}

impl LostEchoes {
    /// `None` if both directions are alike, or a station has several interfaces.
    fn of(evidence: &Evidence) -> Option<Self> {
        let only = |station: &str| -> Option<InterfaceCounters> {
            let mut of = evidence
                .interfaces
                .iter()
                .filter(|(name, _)| name.starts_with(station));
            let (_, counters) = of.next()?;
            // Several interfaces may carry other traffic of the station, and their packets do not
            // pair with the peer's.
            of.next().is_none().then_some(*counters)
        };
        let (a, b) = (only("a/")?, only("b/")?);
        let lost = |sent: u64, received: u64| sent.saturating_sub(received);
        let found = Self {
            requests: lost(a.tx_packets, b.rx_packets),
            replies: lost(b.tx_packets, a.rx_packets),
        };
        let (more, less) = if found.requests > found.replies {
            (found.requests, found.replies)
        } else {
            (found.replies, found.requests)
        };
        (more >= LOST_LEAST && more >= less.saturating_mul(LOST_RATIO)).then_some(found)
    }
}

/// Echoes were lost in one direction.
pub(super) fn one_way_loss(journal: &Journal) -> Option<Warning> {
    let plan = &journal.header.plan;
    let is_echo = |trial: &TrialRecord| {
        let cell = plan.cells.iter().find(|cell| cell.id == trial.cell);
        cell.is_some_and(|cell| matches!(cell.measurement, Measurement::Ping { .. }))
    };
    let found = in_measured(journal, |trial, measured| {
        let echoes = LostEchoes::of(&measured.evidence);
        echoes.filter(|_| is_echo(trial))
    });
    let (trial, worst) = found
        .iter()
        .max_by_key(|(_, one)| one.requests.max(one.replies))?;
    let text = format!(
        "In {} echoes were lost in one direction; most in repeat {} of `{}`: {} packets from A to B, {} from \
         B to A.",
        of_cells(&found),
        trial.repeat,
        trial.cell,
        worst.requests,
        worst.replies
    );
    let advice = "Look at parts that only one direction uses: the gateways' inbound and outbound \
                  SAs, their policies, queues and counters.";
    warning(WarningKind::OneWayLoss, cells(&found), text, advice)
}

/// A queue drained after the sender of datagrams had ended.
pub(super) fn queue_drained(journal: &Journal) -> Option<Warning> {
    let found = in_measured(journal, |_, measured| {
        let ways = measured.transfer()?.each_way();
        ways.filter_map(|way| Some(way.drain()?.time_ns)).max()
    });
    let longest_ns = found.iter().map(|(_, time_ns)| *time_ns).max()?;
    let text = format!(
        "In {} datagrams came for longer than they were sent, at a steady rate, for up to {}: a queue in front of \
         something slower than the sender drained. The rate is over the time in which they came.",
        of_cells(&found),
        duration_ns(longest_ns as f64)
    );
    let advice = "Read the rate as the path's limit; for loss and delay under a load, set a `rate` below it.";
    warning(WarningKind::QueueDrained, cells(&found), text, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::PathSettings;

    fn evidence(tcp: &[(&str, u64)], drops: u64) -> Evidence {
        let counters = |pairs: &[(&str, u64)]| {
            let named = pairs.iter();
            named
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        Evidence {
            settings: Some(PathSettings {
                stack: counters(tcp),
                queue_drops: counters(&[("gw1/w0", drops)]),
                ..PathSettings::default()
            }),
            ..Evidence::default()
        }
    }

    #[test]
    fn retransmissions_are_held_against_drops_and_what_was_needless() {
        let sent = ("a/OutSegs", 100_000);
        let again = |count| ("a/RetransSegs", count);
        // Allowed are 100 of 100 000 segments beyond the explained ones, and 20 at least.
        let is_found = |tcp: &[(&str, u64)], drops, offloads| {
            Retransmitted::of(&evidence(tcp, drops), offloads).is_some()
        };
        assert!(
            !is_found(&[sent, again(100)], 0, false),
            "one in a thousand"
        );
        assert!(is_found(&[sent, again(101)], 0, false));
        assert!(!is_found(&[sent, again(500)], 400, false));
        assert!(is_found(&[sent, again(501)], 400, false));
        assert!(!is_found(&[sent, again(501)], 9, true), "super-packets");
        let needless = [
            sent,
            again(501),
            ("a/TCPDSACKRecv", 300),
            ("a/TCPLossProbes", 101),
        ];
        assert!(!is_found(&needless, 0, false));
        assert!(!is_found(&[("a/OutSegs", 10), again(20)], 0, false));
        assert!(is_found(&[("a/OutSegs", 10), again(21)], 0, false));
        // B's retransmissions are of its acknowledgements' connection.
        assert!(!is_found(&[sent, ("b/RetransSegs", 900)], 0, false));
        let old = Evidence::default();
        assert!(Retransmitted::of(&old, false).is_none());
    }

    #[test]
    fn drops_are_those_of_interfaces_and_of_the_device_too() {
        let mut evidence = evidence(&[("a/OutSegs", 1000), ("a/RetransSegs", 100)], 0);
        assert!(Retransmitted::of(&evidence, false).is_some());
        let dropped = InterfaceCounters {
            rx_dropped: 30,
            tx_errors: 20,
            ..InterfaceCounters::default()
        };
        evidence.interfaces.insert("gw2/w1".to_owned(), dropped);
        let drops = "gw1/dropped_packets.send_failed".to_owned();
        evidence.dut_counters.insert(drops, 30);
        assert!(Retransmitted::of(&evidence, false).is_none());
    }

    #[test]
    fn loss_in_one_direction_is_told_from_loss_in_both() {
        let with = |requests: u64, replies: u64| {
            let counters = |rx_packets, tx_packets| InterfaceCounters {
                rx_packets,
                tx_packets,
                ..InterfaceCounters::default()
            };
            let arrived = 1000 - requests;
            let interfaces = [
                ("a/a0".to_owned(), counters(arrived - replies, 1000)),
                ("b/b0".to_owned(), counters(arrived, arrived)),
            ];
            Evidence {
                interfaces: interfaces.into(),
                ..Evidence::default()
            }
        };
        assert!(LostEchoes::of(&with(0, 0)).is_none());
        assert!(LostEchoes::of(&with(2, 0)).is_none());
        assert!(LostEchoes::of(&with(5, 4)).is_none());
        let found = LostEchoes::of(&with(0, 9)).unwrap();
        assert_eq!((found.requests, found.replies), (0, 9));
        let found = LostEchoes::of(&with(9, 3)).unwrap();
        assert_eq!((found.requests, found.replies), (9, 3));
    }
}

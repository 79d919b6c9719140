//! Refuses reports of one end that the other end, the clock or the link contradicts.
//!
//! The receiver knows of a datagram by its sequence number only. So a stray or damaged one raises
//! the highest number as if all between had been sent: no receiver can know of more datagrams than
//! the sender had sent by then. The ends' clocks begin apart by less than one interval, unless an
//! impaired path delays their agreement. A datagram that raises no number came out of order, which
//! the tool counts.

use super::{END_LIMIT_NS, Pair, RACE_DATAGRAMS, TransferError, TransferSettings};
use crate::iperf3::{Session, Step};
use plan::Tool;
use units::human::{bit_rate, duration_ns};

/// A super-packet counts as one frame at a shaper, so TCP may get a few percent more than its rate.
const LINK_PERCENT: u128 = 110;
/// Times that a kernel sends a segment again before it gives up, and once more (tcp(7),
/// `tcp_retries2`).
const AGAIN_MOST: u64 = 16;
/// The smallest segment that a kernel cuts a stream into.
const SEGMENT_BYTES_LEAST: u64 = 48;

/// Checks a pair.
///
/// # Errors
/// With the first contradiction.
pub(super) fn check(pair: &Pair, asked: &TransferSettings<'_>) -> Result<(), TransferError> {
    let [from, to] = asked.stations();
    for (session, station) in [(&pair.sender, from), (&pair.receiver, to)] {
        within_the_trial(session, asked).map_err(|what| asked.impossible(station, what))?;
    }
    // They differ if another client used the server, or a stream never connected.
    let [sent, received] = [pair.sender.streams, pair.receiver.streams];
    if sent != received {
        let what = format!("{received} streams where station {from} has {sent}");
        return Err(asked.impossible(to, what));
    }
    if let Some(rate_bps) = asked.link_bps {
        carried_by_the_link(pair, asked, rate_bps).map_err(|what| asked.impossible(to, what))?;
    }
    // The other contradictions are about numbered datagrams, so only retransmissions are left for
    // TCP.
    let Some(size) = asked.parameters.datagram_bytes else {
        return sent_again(&pair.sender).map_err(|what| asked.impossible(from, what));
    };
    for (session, station) in [(&pair.sender, from), (&pair.receiver, to)] {
        let bytes = session.block_bytes;
        // 0: the tool does not report it.
        if bytes != 0 && bytes != u64::from(size) {
            let what = format!("datagrams of {bytes} B where {size} B were asked for");
            return Err(asked.impossible(station, what));
        }
    }
    known_after_sent(pair, asked)?;
    explained_by_number(&pair.receiver, u64::from(size).max(1), asked)
}

/// Times are no longer than the trial and the time for its tools to end.
fn within_the_trial(session: &Session, asked: &TransferSettings<'_>) -> Result<(), String> {
    let limit_ns = asked.timing.run_ns.saturating_add(END_LIMIT_NS);
    let end_ns = session.steps.iter().map(|step| step.end_ns).max();
    let rtt_ns = session.steps.iter().filter_map(|step| step.rtt_ns).max();
    let times = [
        ("an end of the test", end_ns),
        ("a round trip", rtt_ns),
        ("a jitter", Some(session.jitter_ns)),
    ];
    for (what, ns) in times {
        if let Some(ns) = ns.filter(|ns| *ns > limit_ns) {
            let [ns, limit_ns] = [ns, limit_ns].map(|ns| duration_ns(ns as f64));
            return Err(format!(
                "{what} of {ns}, longer than the trial with its end ({limit_ns})"
            ));
        }
    }
    Ok(())
}

/// Nothing arrives faster than its link carries it.
fn carried_by_the_link(
    pair: &Pair,
    asked: &TransferSettings<'_>,
    rate_bps: u64,
) -> Result<(), String> {
    let mut bytes = 0_u128;
    for step in &pair.receiver.steps {
        bytes += u128::from(step.bytes);
        // Data held back by the path, or by a stalled reader, comes in one step.
        let time_ns = step.end_ns.saturating_add(asked.timing.step_ns);
        let time_ns = u128::from(time_ns.saturating_add(asked.apart_ns));
        // Bits per second by nanoseconds, in per cent, to bytes.
        let most = u128::from(rate_bps) * LINK_PERCENT * time_ns / 100 / 8_000_000_000;
        if bytes > most {
            return Err(format!(
                "{bytes} B in the first {}, more than its link of {} carries in that time",
                duration_ns(step.end_ns as f64),
                bit_rate(rate_bps as f64)
            ));
        }
    }
    Ok(())
}

/// No segment is sent again more often than a kernel does.
fn sent_again(sender: &Session) -> Result<(), String> {
    let retransmits = sender.steps.iter().filter_map(|step| step.retransmits);
    let retransmits = retransmits.fold(0, u64::saturating_add);
    let written = sender.bytes().saturating_add(sender.uncounted_bytes());
    // A bound for any path: it is not to refuse a bad path, but a counter that wrapped or was never
    // set.
    let most = (written / SEGMENT_BYTES_LEAST).saturating_mul(AGAIN_MOST);
    if retransmits > most {
        return Err(format!("{retransmits} retransmissions of {written} B"));
    }
    Ok(())
}

/// iperf2 sends its last datagram again until the server answers, at most this often, and counts
/// none of them.
const CLOSING_DATAGRAMS: u64 = 10;

/// The receiver knows of no datagram before it was sent, step by step and in total.
pub(super) fn known_after_sent(
    pair: &Pair,
    asked: &TransferSettings<'_>,
) -> Result<(), TransferError> {
    let closing = if asked.tool == Tool::Iperf2.name() {
        CLOSING_DATAGRAMS
    } else {
        0
    };
    let race = (RACE_DATAGRAMS + closing) * pair.sender.streams;
    let packets = |steps: &[Step]| -> u64 { steps.iter().filter_map(|step| step.packets).sum() };
    let steps = &pair.receiver.steps;
    for (at, step) in steps.iter().enumerate() {
        let known = packets(&steps[..=at]);
        let by_ns = step.end_ns.saturating_add(asked.timing.step_ns);
        let by_ns = by_ns.saturating_add(asked.apart_ns);
        // One interval later by the sender's clock, and a whole step of the sender's counts if it
        // has begun by then: both only raise the bound.
        let begun = pair
            .sender
            .steps
            .partition_point(|sent| sent.start_ns < by_ns);
        let sent = packets(&pair.sender.steps[..begun]);
        if known > sent.saturating_add(race) {
            let [from, to] = asked.stations();
            return Err(TransferError::MoreThanSent {
                tool: asked.tool,
                from,
                to,
                known,
                sent,
                by_ms: step.end_ns / 1_000_000,
            });
        }
    }
    Ok(())
}

/// Datagrams that raise no sequence number are no more than those out of order.
fn explained_by_number(
    receiver: &Session,
    size: u64,
    asked: &TransferSettings<'_>,
) -> Result<(), TransferError> {
    let race = RACE_DATAGRAMS * receiver.streams;
    let [_, station] = asked.stations();
    // Summed over all steps before it is compared, since the tool counts datagrams out of order for
    // the whole test only.
    let mut unexplained = 0_u64;
    let mut worst: Option<(u64, &Step)> = None;
    for step in &receiver.steps {
        let raised = step.packets.unwrap_or(0).saturating_add(race);
        let more = (step.bytes / size).saturating_sub(raised);
        unexplained = unexplained.saturating_add(more);
        if more > worst.map_or(0, |(most, _)| most) {
            worst = Some((more, step));
        }
    }
    let received = receiver.bytes() / size;
    if receiver.out_of_order > received {
        let out_of_order = receiver.out_of_order;
        let what = format!("{out_of_order} of {received} datagrams out of order");
        return Err(asked.impossible(station, what));
    }
    match worst {
        Some((_, step)) if unexplained > receiver.out_of_order => Err(TransferError::Unnumbered {
            tool: asked.tool,
            station,
            from_ms: step.start_ns / 1_000_000,
            to_ms: step.end_ns / 1_000_000,
            datagrams: step.bytes / size,
            raised: step.packets.unwrap_or(0),
            out_of_order: receiver.out_of_order,
        }),
        _ => Ok(()),
    }
}

//! Columns of bulk transfers; those of a duplex transfer in the other direction begin with
//! `reverse_`.

use crate::kit::column::{Context, Declared, text};
use crate::layout::evidence::measured;
use journal::record::{TcpFacts, Transfer};

/// Figures of a bulk transfer.
pub(crate) const COLUMNS: &[Declared] = &[
    ("tool", "tool of a bulk transfer", |row| {
        row.cell.parameters.tool.clone()
    }),
    ("streams", "parallel streams over all processes", |row| {
        text(transfer(row)?.parameters.streams?)
    }),
    ("window_bytes", "requested socket buffer", |row| {
        text(transfer(row)?.parameters.window_bytes?)
    }),
    ("datagram_bytes", "UDP payload", |row| {
        text(transfer(row)?.parameters.datagram_bytes?)
    }),
    ("intended_payload_bps", "intended load", |row| {
        text(transfer(row)?.parameters.rate_bps?)
    }),
    ("measured_ns", "measured time, without warm-up", |row| {
        text(transfer(row)?.duration_ns)
    }),
    (
        "sent_bytes",
        "payload that the sender handed to its sockets; for a duplex transfer, like all columns of a transfer, from A to B",
        |row| text(transfer(row)?.sent_bytes),
    ),
    (
        "received_bytes",
        "payload that the other station received",
        |row| text(transfer(row)?.received_bytes),
    ),
    ("offered_payload_bps", "sent_bytes as a rate", |row| {
        bps(transfer(row)?, |found| found.sent_bytes)
    }),
    (
        "payload_throughput_bps",
        "received_bytes as a rate",
        |row| bps(transfer(row)?, |found| found.received_bytes),
    ),
    ("retransmits", "TCP segments retransmitted", |row| {
        text(transfer(row)?.retransmits?)
    }),
    ("datagrams_sent", "UDP datagrams sent", |row| {
        text(transfer(row)?.datagrams?.sent)
    }),
    (
        "datagrams_lost",
        "sent datagrams that were not received",
        |row| text(transfer(row)?.datagrams?.lost),
    ),
    (
        "datagrams_out_of_order",
        "out of order at the receiver",
        |row| text(transfer(row)?.datagrams?.out_of_order),
    ),
    (
        "rfc3550_jitter_ns",
        "interarrival jitter by RFC 3550 §6.4.1, as iperf computes it, mean over its streams",
        |row| text(transfer(row)?.datagrams?.jitter_ns),
    ),
    (
        "baseline_rtt_ns",
        "TCP: shortest echo on the idle path, just before the transfer",
        |row| text(tcp(row)?.baseline_rtt_ns?),
    ),
    (
        "loaded_rtt_ns",
        "TCP: mean round trip during the transfer, by the sender's kernel",
        |row| text(tcp(row)?.loaded_rtt_ns?),
    ),
    (
        "tcp_segment_bytes",
        "TCP: maximum segment size at the start",
        |row| text(tcp(row)?.segment_bytes?),
    ),
    (
        "congestion_used",
        "TCP: congestion control that the sender's kernel used",
        |row| tcp(row)?.congestion.clone(),
    ),
    (
        "reverse_offered_payload_bps",
        "for a duplex transfer from B to A; so are the other columns reverse_…",
        |row| bps(reverse(row)?, |found| found.sent_bytes),
    ),
    (
        "reverse_payload_throughput_bps",
        "as payload_throughput_bps",
        |row| bps(reverse(row)?, |found| found.received_bytes),
    ),
    ("reverse_retransmits", "as retransmits", |row| {
        text(reverse(row)?.retransmits?)
    }),
    ("reverse_datagrams_sent", "as datagrams_sent", |row| {
        text(reverse(row)?.datagrams?.sent)
    }),
    ("reverse_datagrams_lost", "as datagrams_lost", |row| {
        text(reverse(row)?.datagrams?.lost)
    }),
    ("reverse_rfc3550_jitter_ns", "as rfc3550_jitter_ns", |row| {
        text(reverse(row)?.datagrams?.jitter_ns)
    }),
    ("reverse_loaded_rtt_ns", "as loaded_rtt_ns", |row| {
        text(reverse(row)?.tcp.as_ref()?.loaded_rtt_ns?)
    }),
];

fn transfer<'a>(row: &Context<'a>) -> Option<&'a Transfer> {
    measured(row.trial)?.transfer()
}

/// The other direction of a duplex transfer.
fn reverse<'a>(row: &Context<'a>) -> Option<&'a Transfer> {
    transfer(row)?.reverse.as_deref()
}

fn tcp<'a>(row: &Context<'a>) -> Option<&'a TcpFacts> {
    transfer(row)?.tcp.as_ref()
}

fn bps(transfer: &Transfer, bytes: fn(&Transfer) -> u64) -> Option<String> {
    let seconds = transfer.duration_ns as f64 / 1e9;
    (transfer.duration_ns > 0).then(|| format!("{:.0}", 8.0 * bytes(transfer) as f64 / seconds))
}

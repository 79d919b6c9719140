//! Transfers by tools, separately for each direction: the payload carried, and RFC 6349's figures.

use crate::format::{self, Scale};
use crate::layout::Run;
use crate::table::{Cell, Table};
use stats::{
    Bulk, BulkDirection, CeilingBasis, CellResult, Datagrams, DirectionName, Estimate, Rfc6349,
};

/// One row per direction, and their sum, of transfers other than A to B alone; `None` if none.
pub(crate) fn each_way(run: &Run<'_>, protocol: &str) -> Option<Table> {
    let note = "payload offered and received: mean ± largest distance from it; a row for each way of a duplex \
                transfer, and for the sum of both; retransmitted: TCP segments in one trial; jitter: RFC 3550 \
                section 6.4.1";
    let is_udp = protocol == "udp";
    let mut table = Table::new("Each direction", note)
        .labels(["Cell", "Direction"])
        .figures(["Offered", "Received"]);
    table = if is_udp {
        table.figures(["Lost", "Jitter"])
    } else {
        table.figure("Retransmitted")
    };
    for (cell, bulk) in bulks(run, protocol) {
        let is_usual = matches!(
            bulk.directions[..],
            [BulkDirection {
                direction: DirectionName::AToB,
                ..
            }]
        );
        if is_usual {
            continue;
        }
        let mut row = |name: &str, rates: [&Estimate; 2], others: Vec<Cell>| {
            let mut cells = vec![Cell::label(&cell.id), Cell::label(name)];
            cells.extend(rates.map(|rate| Cell::plain(format::bit_rate(rate))));
            cells.extend(others);
            table.push(cells);
        };
        let others = |datagrams: &Option<Datagrams>, retransmits: &Option<Estimate>| {
            if is_udp {
                datagram_cells(datagrams.as_ref()).into()
            } else {
                vec![number(retransmits.as_ref())]
            }
        };
        for way in &bulk.directions {
            let rates = [&way.offered_payload_bps, &way.payload_throughput_bps];
            row(
                way.direction.name(),
                rates,
                others(&way.datagrams, &way.retransmits),
            );
        }
        if bulk.directions.len() > 1 {
            let rates = [&bulk.offered_payload_bps, &bulk.payload_throughput_bps];
            row(
                "sum of both",
                rates,
                others(&bulk.datagrams, &bulk.retransmits),
            );
        }
    }
    table.with_rows()
}

/// One row for each direction of TCP transfers with the needed facts; `None` without any.
pub(crate) fn rfc6349(run: &Run<'_>) -> Option<Table> {
    let note = "RFC 6349 section 4, means of the repeats. Transfer time: of the payload received, ideal by the line \
                rate or by the baseline's rate, and measured; time ratio: measured by ideal (section 4.1). \
                Efficiency: share of the bytes sent that were not retransmissions, retransmitted segments taken \
                as full (section 4.2). Baseline: shortest echo on the idle path before the transfer; under load: \
                mean by the sender's kernel; buffer delay: increase in per cent of the baseline (section 4.3). \
                In brackets: the smallest and the largest repeat. Not comparable: a round trip under load was shorter \
                than the echo on the idle path, which includes the wake-up of ping. \
                A dash: the tool does not report what the figure needs";
    let mut table = Table::new("RFC 6349: transfer time, efficiency, buffer delay", note)
        .labels(["Cell", "Direction"])
        .figures(["Ideal time", "Measured", "Time ratio", "Efficiency"])
        .figures(["Baseline", "Under load", "Buffer delay"])
        .texts(["Ideal by", "Congestion control"]);
    for (cell, bulk) in bulks(run, "tcp") {
        for way in &bulk.directions {
            let Some(found) = &way.rfc6349 else { continue };
            let mut cells = vec![Cell::label(&cell.id), Cell::label(way.direction.name())];
            cells.extend(figures(found));
            table.push(cells);
        }
    }
    table.with_rows()
}

/// The cells of a protocol with a transfer.
fn bulks<'r>(
    run: &'r Run<'_>,
    protocol: &'r str,
) -> impl Iterator<Item = (&'r CellResult, &'r Bulk)> {
    let cells = run.results.cells.iter();
    let cells = cells.filter(move |cell| cell.protocol == protocol);
    cells.filter_map(|cell| Some((cell, cell.bulk()?)))
}

fn datagram_cells(datagrams: Option<&Datagrams>) -> [Cell; 2] {
    let lost = datagrams.map(|found| format::loss(found.lost, &found.loss_ratio));
    let jitter = datagrams.map(|found| format::time_ns(found.rfc3550_jitter_ns.mean));
    [lost, jitter].map(Cell::or_missing)
}

fn number(estimate: Option<&Estimate>) -> Cell {
    Cell::or_missing(estimate.map(|found| Scale::plain().value(found.mean)))
}

/// `106.5 % (16.0 to 353.0 %)`: a mean alone would hide scattered repeats.
fn with_range(found: &Estimate) -> String {
    let mean = format::percent(found.mean);
    let (low, high) = (format::percent(found.min), format::percent(found.max));
    if low == high {
        mean
    } else {
        format!("{mean} ({} to {high})", low.trim_end_matches(" %"))
    }
}

fn figures(found: &Rfc6349) -> [Cell; 9] {
    let time = |estimate: Option<&Estimate>| {
        Cell::or_missing(estimate.map(|found| format::time_ns(found.mean)))
    };
    let percent = |estimate: &Option<Estimate>| Cell::or_missing(estimate.as_ref().map(with_range));
    let delay = match (&found.buffer_delay_percent, found.is_comparable()) {
        (None, false) => Cell::absent("not comparable"),
        (delay, _) => percent(delay),
    };
    let ideal = found.ideal.as_ref();
    let basis = ideal.map_or("", |ideal| match ideal.basis {
        CeilingBasis::LineRate => "line rate",
        CeilingBasis::Baseline => "baseline",
    });
    let ratio = ideal.map(|ideal| format::ratio_number(ideal.transfer_time_ratio.mean));
    [
        time(ideal.map(|ideal| &ideal.ideal_transfer_ns)),
        time(ideal.map(|ideal| &ideal.measured_transfer_ns)),
        Cell::or_missing(ratio),
        percent(&found.efficiency_percent),
        time(found.baseline_rtt_ns.as_ref()),
        time(found.loaded_rtt_ns.as_ref()),
        delay,
        Cell::plain(basis),
        Cell::plain(found.congestion_control.as_deref().unwrap_or("")),
    ]
}

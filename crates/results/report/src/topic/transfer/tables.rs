//! Throughput by cores and MTU, UDP by datagram size, and the figures of RFC 6349.

use crate::kit::cells::{
    FORMAT, Labels, cell_table, drift_cells, joined_sets, mean, of_baseline, ratio_cell,
    reason_cell, throughput_cell,
};
use crate::kit::format::{Scale, bit_rate, loss, percent, ratio_number, si, time_ns};
use crate::kit::table::{Cell, Table};
use crate::layout::{Point, Run, Set};
use stats::{
    Bulk, BulkDirection, CeilingBasis, CellResult, Datagrams, DirectionName, Estimate, Metric,
    Rfc6349,
};

/// Throughput of sets of one protocol: devices as rows, settings and MTUs as columns.
pub(super) fn throughput(run: &Run<'_>, sets: &[Set<'_>]) -> Vec<Table> {
    joined_sets("Payload throughput", sets, |set| matrix(run, set))
}

/// One set: payload, cores and devices as rows, MTUs as columns, each with the baseline ratio.
fn matrix(run: &Run<'_>, set: &Set<'_>) -> Table {
    let note = format!("{}; {FORMAT}{}", set.common, of_baseline(set, "figure"));
    let caption = format!("{} payload throughput", set.protocol.name());
    // MTUs are columns here, not labels.
    let labels = Labels {
        mtu: false,
        ..Labels::of(set)
    };
    let mut table = labels.head(Table::new(caption, note));
    let titles = ["Throughput", "Ratio"];
    let is_compared = set.compared_with().is_some();
    // Without a device to compare with, the whole column would be empty.
    let titles = &titles[..1 + usize::from(is_compared)];
    for mtu in set.mtus() {
        table = table.figures_of(format!("MTU {mtu} B"), titles.iter().copied());
    }
    for payload in set.payloads() {
        for cores in set.cores() {
            let here = |point: &&Point<'_>| (point.payload, point.cores) == (payload, cores);
            let points: Vec<&Point<'_>> = set.points.iter().filter(here).collect();
            for dut in &set.duts {
                let at = |mtu: u16| {
                    let mut points = points.iter().filter(|point| point.mtu == mtu);
                    points.find_map(|point| Some((*point, point.cell(dut)?)))
                };
                // The labels are the same for all MTUs, so any cell of the row has them.
                let Some((point, cell)) = set.mtus().into_iter().find_map(at) else {
                    continue;
                };
                let mut cells = labels.cells(point, cell);
                for cell in set.mtus().into_iter().map(|mtu| Some(at(mtu)?.1)) {
                    cells.push(cell.map_or_else(Cell::missing, throughput_cell));
                    if is_compared {
                        let ratio =
                            |cell: &CellResult| ratio_cell(run, cell, Metric::PayloadThroughput);
                        cells.push(cell.map_or_else(Cell::missing, ratio));
                    }
                }
                table.push(cells);
            }
        }
    }
    table
}

/// Drift of the goodput in every repeat of a long TCP transfer; `None` without any.
pub(super) fn goodput_drift(run: &Run<'_>, set: &Set<'_>) -> Option<Table> {
    let note = format!(
        "{}; goodput by interval of the tool; change over the whole time by the Theil-Sen slope, in per cent of the \
         median, and its 95 % interval; p: Mann-Kendall test; both corrected for the correlation of adjacent intervals",
        set.common
    );
    let mut table = Table::new("TCP over a long time: drift of the goodput", note)
        .labels(["Device", "MTU", "Cores", "Repeat"])
        .figures(["Median", "Change", "95 % interval", "p", "Allowed"])
        .figures(["Intervals"])
        .texts(["Judged"]);
    for point in &set.points {
        for dut in set.baseline.into_iter().chain(set.devices()) {
            let found = point.cell(dut).and_then(CellResult::bulk);
            for one in found.map_or(&[][..], |found| &found.goodput_drift) {
                let mut cells = vec![
                    Cell::label(run.label(dut)),
                    Cell::label(format!("{} B", point.mtu)),
                    Cell::label(point.cores.to_string()),
                    Cell::label(one.repeat.to_string()),
                ];
                cells.extend(drift_cells(Some(&one.drift), |bps| si(bps, "bit/s")));
                table.push(cells);
            }
        }
    }
    table.with_rows()
}

/// Offered, received and lost datagrams of every UDP cell.
pub(super) fn datagrams(run: &Run<'_>, sets: &[Set<'_>]) -> Vec<Table> {
    joined_sets("UDP by datagram size", sets, |set| datagrams_of(run, set))
}

fn datagrams_of(run: &Run<'_>, set: &Set<'_>) -> Table {
    let note = format!(
        "{}; payload and datagrams per second; received: {FORMAT}{}",
        set.common,
        of_baseline(set, "received")
    );
    let caption = "UDP by datagram size: received, lost and offered";
    let table = Table::new(caption, note);
    let titles = ["Received", "Lost", "Offered", "Datagrams"];
    let metric = Some(Metric::PayloadThroughput);
    cell_table(run, set, table, &titles, metric, |cell| match cell.bulk() {
        Some(bulk) => datagram_cells(cell, bulk).into(),
        None => {
            // The reason is below the main figure.
            let missing = Cell::missing;
            vec![reason_cell(cell), missing(), missing(), missing()]
        }
    })
}

fn datagram_cells(cell: &CellResult, bulk: &Bulk) -> [Cell; 4] {
    let datagrams = bulk.datagrams.as_ref();
    let rate = datagrams.map(|found| mean(&found.received_datagrams_per_s, "/s"));
    let loss = datagrams.map(|found| loss(found.lost, &found.loss_ratio));
    [
        throughput_cell(cell),
        // Next to what arrived, which says little without it.
        Cell::or_missing(loss),
        Cell::plain(mean(&bulk.offered_payload_bps, "bit/s")),
        Cell::or_missing(rate),
    ]
}

/// One row per direction, and their sum, of transfers other than A to B alone; `None` if none.
pub(super) fn each_way(run: &Run<'_>, protocol: &str) -> Option<Table> {
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
        table.figures(["Retransmitted"])
    };
    for (cell, bulk) in bulks(run, protocol) {
        // One direction, from A to B, is the usual case, which the other tables contain.
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
        // Ways and their sum have the same columns.
        let mut row = |name: &str, rates: [&Estimate; 2], others: Vec<Cell>| {
            let mut cells = vec![Cell::label(&cell.id), Cell::label(name)];
            cells.extend(rates.map(|rate| Cell::plain(bit_rate(rate))));
            cells.extend(others);
            table.push(cells);
        };
        let others = |datagrams: &Option<Datagrams>, retransmits: &Option<Estimate>| {
            if is_udp {
                loss_cells(datagrams.as_ref()).into()
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
        // The other tables have this sum for a transfer in both directions.
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
pub(super) fn rfc6349(run: &Run<'_>) -> Option<Table> {
    let note = "means of the repeats; in brackets: the smallest and the largest repeat; transfer time: of the payload \
                received, ideal by the line rate or by the baseline's rate, and measured; time ratio: measured by \
                ideal (RFC 6349 section 4.1); efficiency: share of the bytes sent that were not retransmissions, \
                retransmitted segments taken as full (section 4.2); baseline: shortest echo on the idle path before \
                the transfer; under load: mean by the sender's kernel; buffer delay: the increase (section 4.3, which \
                divides it by the baseline: results.json has that share, which a baseline of microseconds makes \
                meaningless); not comparable: a round trip under load was shorter than the echo on the idle path, \
                which includes the wake-up of ping; a dash: the tool does not report what the figure needs, or \
                the path is the baseline itself and its link has no rate";
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

fn loss_cells(datagrams: Option<&Datagrams>) -> [Cell; 2] {
    let lost = datagrams.map(|found| loss(found.lost, &found.loss_ratio));
    let jitter = datagrams.map(|found| time_ns(found.rfc3550_jitter_ns.mean));
    [lost, jitter].map(Cell::or_missing)
}

fn number(estimate: Option<&Estimate>) -> Cell {
    Cell::or_missing(estimate.map(|found| Scale::plain().value(found.mean)))
}

/// `106.5 % (16.0 to 353.0 %)`: a mean alone would hide scattered repeats.
fn with_range(found: &Estimate) -> String {
    let mean = percent(found.mean);
    let (low, high) = (percent(found.min), percent(found.max));
    if low == high {
        mean
    } else {
        format!("{mean} ({} to {high})", low.trim_end_matches(" %"))
    }
}

/// `820 µs (16.0 to 940)`.
fn time_with_range(found: &Estimate) -> String {
    let scale = Scale::time(found.mean);
    let (low, high) = (scale.number(found.min), scale.number(found.max));
    let mean = scale.value(found.mean);
    if low == high {
        mean
    } else {
        format!("{mean} ({low} to {high})")
    }
}

fn figures(found: &Rfc6349) -> [Cell; 9] {
    let time =
        |estimate: Option<&Estimate>| Cell::or_missing(estimate.map(|found| time_ns(found.mean)));
    let percent = |estimate: &Option<Estimate>| Cell::or_missing(estimate.as_ref().map(with_range));
    let delay = match (&found.buffer_delay_ns, found.is_comparable()) {
        (None, false) => Cell::absent("not comparable"),
        (delay, _) => Cell::or_missing(delay.as_ref().map(time_with_range)),
    };
    let ideal = found.ideal.as_ref();
    let basis = ideal.map_or("", |ideal| match ideal.basis {
        CeilingBasis::LineRate => "line rate",
        CeilingBasis::Baseline => "baseline",
    });
    // Without a line rate, the baseline has no ratio: it would always be 1.
    let ratio = ideal.map(|ideal| ratio_number(ideal.transfer_time_ratio.mean));
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

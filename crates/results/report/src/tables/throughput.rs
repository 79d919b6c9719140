//! Throughput by cores and MTU, and UDP by datagram size.

use super::frames::drift_cells;
use super::{
    FORMAT, Labels, cell_table, mean, of_baseline, ratio_cell, reason_cell, throughput_cell,
};
use crate::format::{self, Scale};
use crate::layout::{Point, Run, Set};
use crate::table::{Cell, Table, joined};
use stats::{Bulk, CellResult, Metric};

/// Throughput of sets of one protocol: devices as rows, settings and MTUs as columns.
pub(crate) fn throughput(run: &Run<'_>, sets: &[Set<'_>]) -> Vec<Table> {
    let tables = sets.iter().map(|set| matrix(run, set));
    joined(
        "Payload throughput",
        Set::settings(sets).into_iter().zip(tables).collect(),
    )
}

/// One set: payload, cores and devices as rows, MTUs as columns, each with the baseline ratio.
fn matrix(run: &Run<'_>, set: &Set<'_>) -> Table {
    let note = format!("{}; {FORMAT}{}", set.common, of_baseline(set, "figure"));
    let caption = format!("{} payload throughput", set.protocol.name());
    let labels = Labels {
        mtu: false,
        ..Labels::of(set)
    };
    let mut table = labels.head(Table::new(caption, note));
    let titles = ["Throughput", "Ratio"];
    let is_compared = set.compared_with().is_some();
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
pub(crate) fn goodput_drift(run: &Run<'_>, set: &Set<'_>) -> Option<Table> {
    let note = format!(
        "{}; goodput by interval of the tool; change over the whole time by the Theil-Sen slope, in per cent of the \
         median, and its 95 % interval; p: Mann-Kendall test; both corrected for the correlation of adjacent intervals",
        set.common
    );
    let mut table = Table::new("TCP over a long time: drift of the goodput", note)
        .labels(["Device", "MTU", "Cores", "Repeat"])
        .figures(["Median", "Change", "95 % interval", "p", "Allowed"])
        .figure("Intervals")
        .text("Judged");
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
                cells.extend(drift_cells(Some(&one.drift), |bps| {
                    Scale::si(bps, "bit/s").value(bps)
                }));
                table.push(cells);
            }
        }
    }
    table.with_rows()
}

/// Offered, received and lost datagrams of every UDP cell.
pub(crate) fn datagrams(run: &Run<'_>, sets: &[Set<'_>]) -> Vec<Table> {
    let tables = sets.iter().map(|set| datagrams_of(run, set));
    let settings = Set::settings(sets).into_iter();
    joined("UDP by datagram size", settings.zip(tables).collect())
}

fn datagrams_of(run: &Run<'_>, set: &Set<'_>) -> Table {
    let note = format!(
        "{}; payload and datagrams per second; received: {FORMAT}{}",
        set.common,
        of_baseline(set, "received")
    );
    let caption = "UDP by datagram size: offered, received and lost";
    let table = Table::new(caption, note);
    let titles = ["Offered", "Received", "Datagrams", "Lost"];
    let metric = Some(Metric::PayloadThroughput);
    cell_table(run, set, table, &titles, metric, |cell| match cell.bulk() {
        Some(bulk) => datagram_cells(cell, bulk).into(),
        None => {
            let (missing, reason) = (Cell::missing, reason_cell(cell));
            vec![missing(), reason, missing(), missing()]
        }
    })
}

fn datagram_cells(cell: &CellResult, bulk: &Bulk) -> [Cell; 4] {
    let datagrams = bulk.datagrams.as_ref();
    let rate = datagrams.map(|found| mean(&found.received_datagrams_per_s, "/s"));
    let loss = datagrams.map(|found| format::loss(found.lost, &found.loss_ratio));
    [
        Cell::plain(mean(&bulk.offered_payload_bps, "bit/s")),
        throughput_cell(cell),
        Cell::or_missing(rate),
        Cell::or_missing(loss),
    ]
}

//! Throughput by cores and MTU, and UDP by datagram size.

use super::frames::drift_cells;
use super::{FORMAT, cell_table, mean, of_baseline, ratio_cell, reason_cell, throughput_cell};
use crate::format::{self, Scale};
use crate::layout::{Point, Protocol, Run, Set, payload_name};
use crate::table::{Cell, Table};
use stats::{Bulk, CellResult, Metric};

/// Throughput in the source reports' layout, rows cores and columns MTU: a table per datagram size
/// and device, baseline and device one under the other, and their ratio.
pub(crate) fn throughput(run: &Run<'_>, set: &Set<'_>) -> Vec<Table> {
    let devices: Vec<Option<&str>> = match set.devices().count() {
        0 => vec![None],
        _ => set.devices().map(Some).collect(),
    };
    let mut tables = Vec::new();
    for payload in set.payloads() {
        let points: Vec<&Point<'_>> = set
            .points
            .iter()
            .filter(|point| point.payload == payload)
            .collect();
        tables.extend(
            devices
                .iter()
                .map(|device| matrix(run, set, &points, *device)),
        );
    }
    tables
}

/// One table: cores down, MTU across.
fn matrix(run: &Run<'_>, set: &Set<'_>, points: &[&Point<'_>], device: Option<&str>) -> Table {
    let note = format!("{}; rows: cores per station; {FORMAT}", set.common);
    let mut table = Table::new(caption(set, points, device), note).labels(["Cores", "Device"]);
    table = table.figures(set.mtus().iter().map(|mtu| format!("MTU {mtu} B")));
    let figure =
        |point: &Point<'_>, dut: &str| point.cell(dut).map_or_else(Cell::missing, throughput_cell);
    let ratio = |point: &Point<'_>, dut: &str| {
        let of = |cell: &CellResult| ratio_cell(run, cell, Metric::PayloadThroughput);
        point.cell(dut).map_or_else(Cell::missing, of)
    };
    for cores in set.cores() {
        let at = |mtu: u16| {
            points
                .iter()
                .find(|point| (point.mtu, point.cores) == (mtu, cores))
        };
        let mut row = |label: &str, value: &dyn Fn(&Point<'_>) -> Cell| {
            let values = set
                .mtus()
                .into_iter()
                .map(|mtu| at(mtu).map_or_else(Cell::missing, |point| value(point)));
            let labels = [Cell::label(cores.to_string()), Cell::label(label)];
            table.push(labels.into_iter().chain(values).collect());
        };
        if let Some(baseline) = set.baseline {
            row(baseline, &|point| figure(point, baseline));
        }
        if let Some(device) = device {
            row(device, &|point| figure(point, device));
            if set.baseline.is_some() {
                row("ratio", &|point| ratio(point, device));
            }
        }
    }
    table
}

fn caption(set: &Set<'_>, points: &[&Point<'_>], device: Option<&str>) -> String {
    let what = match set.protocol {
        Protocol::Udp => {
            let size = payload_name(points.first().and_then(|point| point.payload));
            format!("UDP payload throughput, datagrams of {size}")
        }
        _ => "TCP payload throughput".to_owned(),
    };
    match (set.baseline, device) {
        (Some(baseline), Some(device)) => format!("{what}: {device} against {baseline}"),
        (only, device) => format!("{what}: {}", device.or(only).unwrap_or_default()),
    }
}

/// Drift of the goodput of every repeat of a long TCP transfer; `None` without any.
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

/// Offered, received and lost of every UDP cell of a set.
pub(crate) fn datagrams(run: &Run<'_>, set: &Set<'_>) -> Table {
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
